# SPDX-License-Identifier: Apache-2.0
"""What the adapters of all model families share.

An adapter is a class that goes in front of a Hugging Face class: ``type("Locus...", (Adapter, Original))``. Swapping
sets ``module.__class__``, so parameters, names, buffers and hooks stay what and where they are, and ``super().forward`` is
the original code, to which an adapter hands a call that it does not do exactly.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Optional

import torch
from torch import Tensor

from . import direct
from .functional import attend

_switch = threading.local()
_KINDS = (torch.float32, torch.bfloat16, torch.float16)


@contextlib.contextmanager
def original_code():
    """Within it every patched module of this thread runs its original code."""
    before = getattr(_switch, "original", False)
    _switch.original = True
    try:
        yield
    finally:
        _switch.original = before


class Adapter:
    scheme = "none"
    signature: tuple = ()  # of the forward that this adapter stands in for, self left out

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        """Why this module can not be swapped; None: it can."""
        return None

    @classmethod
    def used_scheme(cls, module) -> str:
        return cls.scheme


def runs_original_code() -> bool:
    """Within original_code."""
    return getattr(_switch, "original", False)


def can_run(states: Tensor) -> bool:
    """CPU and a type that Locus computes; the rest is the original code's."""
    return states.is_cpu and states.dtype in _KINDS and not runs_original_code()


def by_heads(states: Tensor, heads: int) -> Tensor:
    """[B,T,H*D] as [B,H,T,D], without a copy."""
    return states.view(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(-3, -2)


def joined(out: Tensor) -> Tensor:
    """[B,H,T,D] as [B,T,H*D]; free when q was a view of [B,T,H*D]."""
    return out.transpose(1, 2).flatten(2)


def head_mask_fits(head_mask: Optional[Tensor]) -> bool:
    """A factor by batch and head multiplies outputs as well as it does weights."""
    return head_mask is None or (head_mask.dim() == 4 and head_mask.shape[2:] == (1, 1))


def run(q: Tensor, k: Tensor, v: Tensor, *, head_mask=None, key_mask=None, **call) -> Tensor:
    """attend, with a mask by key that may serve the whole batch, and factors by head."""
    if key_mask is not None:
        call["key_mask"] = key_mask.expand(q.shape[0], -1)
    out = attend(q, k, v, **call)
    return out if head_mask is None else out * head_mask


def by_token(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scheme: str = "none",
    causal: bool = False,
    window_left: int = -1,
    query_offset: Optional[int] = None,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    mask: Optional[Tensor] = None,
    key_mask: Optional[Tensor] = None,
    **more,
) -> Optional[Tensor]:
    """attend without dropout on the short way, as [B,T,H,D]; None: not for it."""
    if key_mask is not None and key_mask.shape[0] != q.shape[0]:
        key_mask = key_mask.expand(q.shape[0], -1)
    settings = (scheme, causal, window_left, -1, query_offset, scale, softcap, 0.0)
    return direct.attend(q, k, v, mask, key_mask, settings, more, False, True)


def run_joined(q: Tensor, k: Tensor, v: Tensor, *, head_mask=None, dropout: float = 0.0, **call) -> Tensor:
    """joined(run(...)), without a stop at [B,H,T,D] where nothing has to be done there."""
    if head_mask is None and not dropout:
        out = by_token(q, k, v, **call)
        if out is not None:
            return out.flatten(2)
    return joined(run(q, k, v, head_mask=head_mask, dropout=dropout, **call))


def dropout_of(module: torch.nn.Module, p: float) -> float:
    return p if module.training else 0.0


def cached(module, past, states: Tensor, crosses: bool, cache_position, project):
    """Keys and values of this call and of earlier ones, with the cache of Hugging Face brought up to date."""
    if past is None:
        return project(states)
    from transformers.cache_utils import EncoderDecoderCache

    both = isinstance(past, EncoderDecoderCache)
    cache = (past.cross_attention_cache if crosses else past.self_attention_cache) if both else past
    if crosses and both and past.is_updated.get(module.layer_idx):
        layer = cache.layers[module.layer_idx]
        return layer.keys, layer.values
    position = {"cache_position": None if crosses else cache_position}
    keys, values = cache.update(*project(states), module.layer_idx, position)
    if crosses and both:
        past.is_updated[module.layer_idx] = True
    return keys, values
