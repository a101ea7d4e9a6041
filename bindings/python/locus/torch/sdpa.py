# SPDX-License-Identifier: Apache-2.0
"""``scaled_dot_product_attention`` with the signature and the meaning of PyTorch's, on Locus."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from locus._errors import LocusTypeError, LocusValueError

from .functional import attend, check_tensor

_NAMES = ("query", "key", "value")


def _broadcast(what: str, shapes) -> tuple:
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        found = ", ".join(str(list(shape)) for shape in shapes)
        raise LocusValueError(f"{what}: found shapes {found}, expected shapes that broadcast") from None


def _by_batch(tensors, enable_gqa: bool):
    """query, key, value as [B,H,T,D], and the batch axes that B stands for."""
    for name, t in zip(_NAMES, tensors):
        if t.dim() < 2:
            raise LocusValueError(f"tensor {name}: found shape {list(t.shape)}, expected at least 2 axes")
    tensors = [t[None] if t.dim() == 2 else t for t in tensors]
    batch = _broadcast("query, key, value: batch", [t.shape[:-3] for t in tensors])
    heads = [t.shape[-3] for t in tensors]
    if not enable_gqa:
        heads = list(_broadcast("query, key, value: heads", [(h,) for h in heads])) * 3
    expanded = [t.expand(*batch, h, *t.shape[-2:]) for t, h in zip(tensors, heads)]
    return [_flat(t) for t in expanded], batch


def _flat(t: Tensor) -> Tensor:
    """All axes before the last three as one."""
    return t[None] if t.dim() == 3 else t.flatten(0, -4)


def _mask(mask: Tensor, batch: tuple, heads: int, queries: int, keys: int) -> dict:
    check_tensor("attn_mask", mask)
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise LocusTypeError(f"tensor attn_mask: found {mask.dtype}, expected torch.bool or a floating type")
    full = (*batch, heads, queries, keys)
    if _broadcast("attn_mask beside batch, heads, queries, keys", [mask.shape, full]) != full:
        raise LocusValueError(f"tensor attn_mask: found shape {list(mask.shape)}, expected one that broadcasts to {list(full)}")
    mask = mask.reshape((1,) * (len(full) - mask.dim()) + tuple(mask.shape))
    mask = mask.expand(*mask.shape[:-2], queries, keys)
    if any(extent != 1 for extent in mask.shape[:-3]):
        mask = mask.expand(*batch, *mask.shape[-3:])
        mask = _flat(mask)
    else:
        mask = mask.reshape(1, *mask.shape[-3:])
    return {"mask" if mask.dtype is torch.bool else "bias_dense": mask}


def _autocast(tensor):
    narrows = isinstance(tensor, Tensor) and tensor.dtype is torch.float32
    return tensor.to(torch.get_autocast_dtype("cpu")) if narrows else tensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``torch.nn.functional.scaled_dot_product_attention`` on Locus: the same arguments, the same meaning.

    query [...,Hq,L,E], key [...,H,S,E], value [...,H,S,Ev]; batch axes broadcast. ``attn_mask`` broadcasts to
    [...,Hq,L,S]: booleans, true = take part, or numbers that are added. ``is_causal`` counts from the first query and
    the first key. Which weights ``dropout_p`` drops differs from PyTorch's choice; the seed is from torch's generator.
    Under ``torch.autocast`` for the CPU float32 tensors become its type first, as PyTorch's do.
    """
    for name, t in zip(_NAMES, (query, key, value)):
        check_tensor(name, t)
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = (_autocast(t) for t in (query, key, value, attn_mask))
    if not isinstance(is_causal, (bool, int)):
        raise LocusTypeError(f"is_causal: found {type(is_causal)}, expected a bool")
    if attn_mask is not None and is_causal:
        raise LocusValueError("attn_mask: found one beside is_causal=True, expected one of the two")
    call = {"query_offset": 0} if is_causal else {}
    simple = query.dim() == key.dim() == value.dim() == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]
    q, k, v, batch = query, key, value, query.shape[:-3]
    if not simple:
        (q, k, v), batch = _by_batch((query, key, value), enable_gqa)
    if attn_mask is not None:
        call.update(_mask(attn_mask, tuple(batch), q.shape[1], q.shape[2], k.shape[2]))
    out = attend(q, k, v, dropout=dropout_p, causal=is_causal, scale=scale, **call)
    if simple:
        return out
    axes = max(query.dim(), key.dim(), value.dim())
    return out[0, 0] if axes == 2 else out.reshape(*batch, *out.shape[1:])
