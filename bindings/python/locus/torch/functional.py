# SPDX-License-Identifier: Apache-2.0
"""``attend``: what users call. Checks arguments, converts types, chooses between the operator and exact.py."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from locus._errors import LocusMemoryError, LocusTypeError, LocusValueError, Status

from . import direct, op
from .op import INPUTS, OTHERS, PLANNED, TABLES

_NARROW = (torch.bfloat16, torch.float16)

# Names of PyTorch's scaled_dot_product_attention that `attend` does not have, and what to write instead.
_PYTORCH = {
    "attn_mask": "mask= for booleans, bias_dense= for numbers that are added",
    "dropout_p": "dropout=",
    "is_causal": "causal= (the last query sees the last key; with query_offset=0 the first sees the first, as in PyTorch)",
    "enable_gqa": "nothing: fewer heads in k and v are understood as they are",
}


# ---- checks ----


def check_tensor(name: str, tensor, axes: Optional[int] = None) -> None:
    if not isinstance(tensor, Tensor):
        raise LocusTypeError(f"tensor {name}: found {type(tensor)}, expected a torch.Tensor")
    if tensor.is_nested:
        raise LocusTypeError(f"tensor {name}: found a nested tensor, expected one with an extent for every axis")
    if tensor.layout is not torch.strided:
        raise LocusTypeError(f"tensor {name}: found layout {tensor.layout}, expected torch.strided")
    if not tensor.is_cpu and not tensor.is_meta:
        raise LocusValueError(f"tensor {name}: found device {tensor.device}, expected cpu")
    if axes is not None and tensor.dim() != axes:
        raise LocusValueError(f"tensor {name}: found shape {list(tensor.shape)}, expected {axes} axes")


def _check_types(tensors: dict) -> torch.dtype:
    """The type to compute in: float64 where all are, else float32."""
    kinds = {t.dtype for t in tensors.values()}
    if kinds == {torch.float64}:
        return torch.float64
    for name, t in tensors.items():
        if t.dtype is not torch.float32 and t.dtype not in _NARROW:
            raise LocusTypeError(
                f"tensor {name}: found {t.dtype}, expected torch.float32, bfloat16 or float16 ("
                "float64 must be the type of all)"
            )
    return torch.float32


def _check_numbers(causal, window_left, window_right, query_offset, scale, dropout, softcap) -> None:
    for name, value in (("window_left", window_left), ("window_right", window_right), ("query_offset", query_offset)):
        if value is not None and (isinstance(value, (bool, float, Tensor)) or not hasattr(type(value), "__index__")):
            raise LocusTypeError(f"{name}: found {type(value)}, expected an integer")
    for name, value in (("scale", scale), ("dropout", dropout), ("softcap", softcap)):
        if value is not None and not isinstance(value, (int, float, torch.SymFloat)):
            raise LocusTypeError(f"{name}: found {type(value)}, expected a number")
    if not isinstance(causal, (bool, int)):
        raise LocusTypeError(f"causal: found {type(causal)}, expected a bool")


def _check_text(name: str, text) -> None:
    if not isinstance(text, str):
        raise LocusTypeError(f"{name}: found {type(text)}, expected a str")
    if not text.isprintable():  # half a surrogate pair among others
        raise LocusValueError(f"{name}: found {text!r}, expected printable text")


def _check_seed(seed) -> None:
    check_tensor("seed", seed)
    if seed.numel() != 1 or seed.dtype is not torch.int64:
        raise LocusValueError(f"tensor seed: found {seed.dtype} {list(seed.shape)}, expected torch.int64 with one element")


def _drawn(seed: Optional[Tensor]) -> tuple:
    """A seed from torch's generator where none is given, and its number; None: nobody may look at it now."""
    if seed is not None:
        _check_seed(seed)
    if not op.plain() or (seed is not None and not seed.is_cpu):
        return seed, None
    if seed is None:
        seed = torch.randint(1 << 62, (1,), dtype=torch.int64)
    return seed, int(seed)


def _on_meta(tensors: dict) -> bool:
    """Shapes without data: all of them or none."""
    where = {name: t.is_meta for name, t in tensors.items()}
    if any(where.values()) and not all(where.values()):
        name = next(name for name, meta in where.items() if meta)
        raise LocusValueError(f"tensor {name}: found device meta, expected cpu")
    return any(where.values())


def _widened(tensor: Tensor, queries: int) -> Tensor:
    """A mask or dense bias of fewer axes, or of one row for all queries, as [B or 1, H or 1, Tq, Tk]: PyTorch's broadcasting."""
    while 1 < tensor.dim() < 4:
        tensor = tensor[None]
    return tensor.expand(-1, -1, queries, -1) if tensor.dim() == 4 and tensor.shape[2] == 1 else tensor


def _spelt(options: dict) -> str:
    """Options as text, because operators take no dictionaries; refuses what is none."""
    parts = []
    for name, value in options.items():
        if name in _PYTORCH:
            raise LocusTypeError(f"{name}: no such argument of attend, use {_PYTORCH[name]}")
        if isinstance(value, Tensor):
            raise LocusTypeError(f"tensor {name}: no such tensor of attend, expected one of {', '.join(INPUTS + OTHERS)}")
        if value is None:
            continue
        if not isinstance(value, (bool, int, float, str)):
            raise LocusTypeError(f"option {name}: found {type(value)}, expected a number or a str")
        if isinstance(value, str):
            _check_text(f"option {name}", value)
        if isinstance(value, str) and ("," in value or "=" in value):
            raise LocusValueError(f"option {name}: found {value!r}, expected one value")
        parts.append((name, value))
    return op.spelt(parts)


# ---- ragged batches ----


def _both_offsets(more: dict) -> dict:
    """`offsets` or `cu_seqlens` as offsets of queries and of keys."""
    names = [name for name in ("offsets", "cu_seqlens", "q_offsets", "k_offsets") if more.get(name) is not None]
    rest = {name: value for name, value in more.items() if name not in ("offsets", "cu_seqlens")}
    if not names or names[0] not in ("offsets", "cu_seqlens"):
        return rest
    if len(names) > 1:
        raise LocusValueError(f"{names[0]}: found beside {names[1]}, expected one of them")
    check_tensor(names[0], more[names[0]], 1)
    offsets = more[names[0]]
    if offsets.dtype is torch.int32:
        offsets = offsets.long()
    return dict(rest, q_offsets=offsets, k_offsets=offsets)


def _rows(name: str, tensor) -> Tensor:
    """[S,H,j,D], jagged, as [1,H,T,D]."""
    if not getattr(tensor, "is_nested", False) or tensor.layout is not torch.jagged or tensor.dim() != 4:
        raise LocusTypeError(f"tensor {name}: expected a nested tensor [S,H,j,D] of layout torch.jagged, like q")
    if not isinstance(tensor.size(1), int) or tensor.lengths() is not None:
        raise LocusTypeError(f"tensor {name}: found its ragged axis elsewhere or gaps between sequences, expected [S,H,j,D] without gaps")
    return tensor.values()[None]


def _attend_nested(q, k, v, call: dict):
    lse = call.pop("return_lse")
    if lse:
        raise LocusValueError("return_lse: found with nested tensors, expected offsets and plain ones")
    rows = [_rows(name, tensor) for name, tensor in (("q", q), ("k", k), ("v", v))]
    out = attend(*rows, q_offsets=q.offsets(), k_offsets=k.offsets(), **call)
    nested = torch.nested.nested_tensor_from_jagged(out[0].transpose(0, 1), q.offsets())
    return nested.transpose(1, 2)


# ---- the call ----


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Optional[Tensor] = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: Optional[float] = None,
    *,
    scheme: str = "none",
    key_mask: Optional[Tensor] = None,
    window_left: int = -1,
    window_right: int = -1,
    query_offset: Optional[int] = None,
    softcap: Optional[float] = None,
    seed: Optional[Tensor] = None,
    return_lse: bool = False,
    **more,
):
    """Attention with positions on CPU tensors, differentiable in q, k, v and every table.

    >>> out = attend(q, k, v, scheme="t5", bias=table, buckets=32, max_distance=128, bidirectional=1)
    >>> out = attend(q, k, v, scheme="alibi", causal=True)

    q is [B,H,Tq,D], k [B,Hk,Tk,D], v [B,Hk,Tk,Dv], in any memory order. Tensors of the scheme (``rel_k``, ``bias``,
    ``bias_dense`` ...) and its options (``span``, ``buckets`` ...) are given by name, as docs/schemes.md has them.
    ``key_mask`` [B,Tk] and ``mask`` [B or 1, H or 1, Tq, Tk] are boolean, true = take part; ``mask`` and ``bias_dense`` may
    have fewer axes, or one row for all queries, as in PyTorch.

    float32 inside. bfloat16 and float16 are read and written in place, also under torch.compile and torch.func; out has
    the type of q and is rounded once. float64, if it is the type of all, is computed in torch operations: exact, slow,
    n x n memory. Dropout takes its seed from torch's generator unless ``seed`` (an int64 tensor with one
    element) is given.

    ``softcap``, ``sink`` [H] and positions of rotations go to the library as they are.

    Ragged batches: sequences one after another in [1,H,T,D] and ``offsets`` [S+1] (int32 or int64, also called
    ``cu_seqlens``) where they begin, or ``q_offsets`` and ``k_offsets`` where queries and keys differ; or q, k and v as
    nested tensors [S,H,j,D] of layout torch.jagged, as PyTorch's own attention takes them. Each sequence has the bits
    of a call of its own, in both directions.

    Returns out [B,H,Tq,Dv]; with ``return_lse`` also the logarithm of each row's sum, [B,H,Tq]. Both have gradients.
    First derivatives backward are fused; forward mode and higher derivatives are right and slow, like float64.
    """
    if more and ("offsets" in more or "cu_seqlens" in more):
        more = _both_offsets(more)
    if type(dropout) is float or type(dropout) is int:
        number = 0
        if dropout > 0:
            seed, number = _drawn(seed)
        if number is not None:
            settings = (scheme, causal, window_left, window_right, query_offset, scale, softcap, dropout)
            found = direct.attend(q, k, v, mask, key_mask, settings, more, return_lse, False, number)
            if found is not None:
                return found
    if getattr(q, "is_nested", False):
        settings = dict(mask=mask, dropout=dropout, causal=causal, scale=scale, scheme=scheme, key_mask=key_mask)
        settings.update(window_left=window_left, window_right=window_right, query_offset=query_offset, softcap=softcap)
        return _attend_nested(q, k, v, dict(settings, seed=seed, return_lse=return_lse, **more))
    tables = {name: more.pop(name) for name in TABLES if more.get(name) is not None}
    floating = {"q": q, "k": k, "v": v, **tables}
    for name, tensor in floating.items():
        check_tensor(name, tensor, 4 if name in ("q", "k", "v") else None)
    for name, tensor in (("mask", mask), ("key_mask", key_mask)):
        if tensor is not None:
            check_tensor(name, tensor)
    if mask is not None:
        mask = _widened(mask, q.shape[2])
    if "bias_dense" in floating:
        floating["bias_dense"] = _widened(floating["bias_dense"], q.shape[2])
    planned = {name: more.pop(name) for name in PLANNED if more.get(name) is not None}
    for name, tensor in planned.items():
        check_tensor(name, tensor)
    _check_numbers(causal, window_left, window_right, query_offset, scale, dropout, softcap)
    _check_text("scheme", scheme)
    kind = _check_types(floating)
    given = {**floating, **planned, **{n: t for n, t in (("mask", mask), ("key_mask", key_mask)) if t is not None}}
    meta = _on_meta({name: t for name, t in given.items() if name not in planned})
    if seed is not None:
        _check_seed(seed)
    if dropout > 0 and seed is None:
        seed = torch.randint(1 << 62, (1,), dtype=torch.int64)
    if kind is not torch.float64 and not torch.compiler.is_compiling():
        floating = {name: t.resolve_neg() if t.is_neg() else t for name, t in floating.items()}
    args = (
        *[floating.get(name) for name in INPUTS],
        *[given.get(name) for name in OTHERS],
        seed if dropout > 0 else None,
        scheme,
        _spelt(more),
        bool(causal),
        window_left,
        window_right,
        query_offset,
        scale,
        dropout,
        softcap,
    )
    call = op.exact_forward if kind is torch.float64 else op.call
    try:
        out, lse = (torch.ops.locus.attend.default if meta else call)(*args)
    except RuntimeError as error:  # what torch says when its allocator fails, in one line and our kind
        if "can't allocate memory" not in str(error):
            raise
        raise LocusMemoryError("attend: found no memory for copies of its tensors", Status.MEMORY) from None
    return (out, lse) if return_lse else out
