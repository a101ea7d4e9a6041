# SPDX-License-Identifier: Apache-2.0
"""What the adapters of all model families share.

An adapter is a class that goes in front of a Hugging Face class: ``type("Locus...", (Adapter, Original))``. Swapping
sets ``module.__class__``, so parameters, names, buffers and hooks stay what and where they are, and ``super().forward`` is
the original code, to which an adapter hands a call that it does not do exactly.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Optional

import torch
from torch import Tensor

from .direct import attend_joined, attend_plainly, by_heads, split
from .functional import attend

_switch = threading.local()
_lock = threading.Lock()
_switched = 0  # threads that are within original_code: as long as there are none nobody asks which
_KINDS = (torch.float32, torch.bfloat16, torch.float16)


@contextlib.contextmanager
def original_code():
    """Within it every patched module of this thread runs its original code."""
    before = getattr(_switch, "original", False)
    _switch.original = True
    _count_switched(1)
    try:
        yield
    finally:
        _count_switched(-1)
        _switch.original = before


def _count_switched(more: int) -> None:
    global _switched
    with _lock:
        _switched += more


class Adapter:
    """In front of one class of every generation of transformers that has it: arguments are taken by the names that the
    installed one gives them (``locus_names``)."""

    scheme = "none"
    knows: tuple = ()  # parameters of the forward that this adapter stands in for; (): any
    needs: tuple = ()  # those that a forward must have to be the one that is meant
    by_implementation = True  # False: right only where patch has looked at the module, not wherever a name of attention is given
    together = False  # True: of no use, or wrong, unless everything that is known of its family is swapped
    locus_names: tuple = ()

    def given(self, args: tuple, kwargs: dict) -> dict:
        """The arguments of a call by name; those that were left out are absent."""
        return dict(zip(self.locus_names, args), **kwargs) if args else kwargs

    @classmethod
    def unfit(cls, names: tuple) -> Optional[str]:
        """Why this adapter cannot stand in for a forward with parameters of these names; None: it can."""
        if not cls.knows or (set(names) <= set(cls.knows) and set(cls.needs) <= set(names)):
            return None
        return f"forward takes ({', '.join(names)}), expected {', '.join(cls.needs)} and no others than {', '.join(cls.knows)}"

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        """Why this module can not be swapped; None: it can."""
        return None

    @classmethod
    def used_scheme(cls, module) -> str:
        return cls.scheme


_capturing = None  # transformers.utils.output_capturing, where there is one


def watch_capturing() -> None:
    """transformers 5 takes attention weights from the results of modules, by hooks: adapters look at who asks."""
    global _capturing
    _capturing = _capturing or sys.modules.get("transformers.utils.output_capturing")


def weights_wanted(module, given: dict) -> bool:
    """Somebody reads the weights of this call."""
    wanted = given.get("output_attentions")
    if wanted or (wanted is None and getattr(getattr(module, "config", None), "output_attentions", False)):
        return True
    if _capturing is None:
        return False
    active = _capturing._active_collector
    collected = active.global_var if torch.compiler.is_compiling() else active.get()
    return bool(collected) and any("attentions" in name for name in collected)


def only_the_past(module, queries: int) -> bool:
    """A call without a mask is causal, counted from the first key: what transformers leaves to "sdpa" and its like."""
    how = getattr(getattr(module, "config", None), "_attn_implementation", None)
    return queries > 1 and how not in (None, "eager") and getattr(module, "is_causal", False)


def runs_original_code() -> bool:
    """Within original_code."""
    return _switched > 0 and getattr(_switch, "original", False)


def can_run(states: Tensor) -> bool:
    """CPU and a type that Locus computes; the rest is the original code's."""
    return states.is_cpu and states.dtype in _KINDS and not (_switched and runs_original_code())


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


def run_joined(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    *,
    scheme: str = "none",
    causal: bool = False,
    query_offset: Optional[int] = None,
    scale: Optional[float] = None,
    mask: Optional[Tensor] = None,
    key_mask: Optional[Tensor] = None,
    head_mask: Optional[Tensor] = None,
    dropout: float = 0.0,
    **more,
) -> Tensor:
    """q [B,T,H*D] as the linear maps make it, k and v alike or [B,Hk,T,D] as caches keep them; out [B,T,H*Dv].

    [B,H,T,D] is made only where something has to be done there.
    """
    if key_mask is not None and key_mask.shape[0] != q.shape[0]:
        key_mask = key_mask.expand(q.shape[0], -1)
    if head_mask is None and not dropout:
        out = attend_joined(q, k, v, heads, (scheme, causal, -1, -1, query_offset, scale, None, 0.0), mask, key_mask, more)
        if out is not None:
            return out
    more.update(scheme=scheme, causal=causal, query_offset=query_offset, scale=scale, mask=mask)
    return joined(run(*split(q, k, v, heads), head_mask=head_mask, key_mask=key_mask, dropout=dropout, **more))


def dropout_of(module: torch.nn.Module, p: float) -> float:
    return p if module.training else 0.0


def cached(module, past, states: Tensor, crosses: bool, cache_position, heads: int):
    """Keys and values: module._project(states), [B,T,H*D], or where there is a cache of Hugging Face those of this call
    and of earlier ones, [B,H,T,D], with the cache brought up to date."""
    if past is None:
        return module._project(states)
    from transformers.cache_utils import EncoderDecoderCache

    both = isinstance(past, EncoderDecoderCache)
    cache = (past.cross_attention_cache if crosses else past.self_attention_cache) if both else past
    if crosses and both and past.is_updated.get(module.layer_idx):
        layer = cache.layers[module.layer_idx]
        return layer.keys, layer.values
    new = (by_heads(part, heads) for part in module._project(states))
    position = () if cache_position is None or crosses else ({"cache_position": cache_position},)
    keys, values = cache.update(*new, module.layer_idx, *position)
    if crosses and both:
        past.is_updated[module.layer_idx] = True
    return keys, values
