# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's additive masks as Locus sees masks.

The rule. In an additive mask 0 means seen, and a value of at most half of its dtype's lowest number (or -inf) means
hidden: no logit of a working model survives that. A mask with only such values becomes booleans, in the cheapest form
that says the same: lengths by key, causal and keys, or the full array. A mask with any other value, or one that
needs a gradient, is added to the logits as it is (``bias_dense``); nothing is guessed.

A row that sees no key at all (a padded query) gives 0 with Locus and the mean of all values with Hugging Face; nobody
reads such rows.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from locus import _native


class Seen(NamedTuple):
    key_mask: Optional[Tensor] = None  # [B,Tk]
    mask: Optional[Tensor] = None  # [B or 1, 1 or H, Tq, Tk]
    bias_dense: Optional[Tensor] = None
    causal: bool = False

    def arguments(self) -> dict:
        if self is EVERYTHING:
            return {}
        return {name: value for name, value in self._asdict().items() if value is not None}


EVERYTHING = Seen()
_compiling = torch.compiler.is_compiling
_trace = torch._C._get_tracing_state


def contents_unknown() -> bool:
    """torch.compile or torch.jit.trace writes down what is done: what a mask holds this time must not decide it."""
    return _compiling() or _trace() is not None


def hides_nothing(mask: Optional[Tensor]) -> bool:
    """Additive or boolean; False also where it is not known, or would take long to read."""
    return mask is None or (not contents_unknown() and _native.hides_nothing(mask))


def from_additive(mask: Optional[Tensor], queries: int, keys: int, offset: int) -> Seen:
    """What `mask` [B or 1, H or 1, Tq or 1, at least Tk], additive or boolean, lets `queries` rows see; row 0 stands at `offset`."""
    if mask is None:
        return EVERYTHING
    if contents_unknown() or mask.requires_grad:
        name = "mask" if mask.dtype is torch.bool else "bias_dense"
        return Seen(**{name: mask[..., :keys].expand(-1, -1, queries, -1)})
    if _native.hides_nothing(mask):
        return EVERYTHING
    return remembered(mask, _read_additive, queries, keys, offset)


def from_hidden(hidden: Optional[Tensor], offset: int) -> Seen:
    """`hidden` [B or 1, 1, Tq, Tk]: true or not 0 where a pair is hidden (Transformer-XL, XLNet)."""
    if hidden is None:
        return EVERYTHING
    return Seen(mask=hidden == 0) if contents_unknown() else _simplest(hidden == 0, offset)


def from_seen(seen: Tensor, offset: int) -> Seen:
    """Booleans [B or 1, H or 1, Tq, Tk], true = take part; where their contents are unknown they stay what they are."""
    if contents_unknown():
        return Seen(mask=seen)
    return remembered(seen, _simplest, offset)


def _read_additive(mask: Tensor, queries: int, keys: int, offset: int) -> Seen:
    mask = mask[..., :keys]
    if mask.size(2) > 1 and mask.stride(2) == 0:
        mask = mask[:, :, :1]
    if mask.dtype == torch.bool:
        return _simplest(mask, offset)
    seen = mask == 0
    if not bool((seen | (mask <= torch.finfo(mask.dtype).min / 2)).all()):
        return Seen(bias_dense=mask.float().expand(-1, -1, queries, -1))
    return _simplest(seen, offset)


def _simplest(seen: Tensor, offset: int) -> Seen:
    """The cheapest form of booleans [B,H,T,Tk] (T = 1: the same for every query)."""
    if bool(seen.all()):
        return EVERYTHING
    if seen.size(1) > 1:
        return Seen(mask=seen)
    last = seen[:, :, -1:]
    if seen.size(2) == 1 or bool((seen == last).all()):
        return Seen(key_mask=last[:, 0, 0])
    queries, keys = seen.shape[2:]
    past = torch.ones(queries, keys, dtype=torch.bool).tril(offset)
    if bool((seen == (last & past)).all()):
        by_key = last[:, 0, 0]
        return Seen(key_mask=None if bool(by_key.all()) else by_key, causal=True)
    return Seen(mask=seen)


def remembered(mask: Tensor, read, *key):
    """read(mask, *key). All layers of a model get the same mask: it is read once per version of its contents."""
    if mask.is_inference():  # has no version
        return read(mask, *key)
    key = (mask._version, *key)
    known = getattr(mask, "_locus_seen", None)
    if known is None or known[0] != key:
        known = (key, read(mask, *key[1:]))
        mask._locus_seen = known
    return known[1]
