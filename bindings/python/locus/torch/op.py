# SPDX-License-Identifier: Apache-2.0
"""``locus::attend``: Locus as a PyTorch operator, with gradients.

One functional operator forward, one backward, both with fake kernels, so that ``torch.compile`` keeps
its graph whole. Strided views go in as they lie; results come out in the memory order of ``q``, so a
``transpose(1, 2).reshape(...)`` behind a (B, T, H, D) model stays free.
"""

from __future__ import annotations

import functools
from typing import Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from locus import _native

# Differentiable tensors beside q, k, v, in the order of the schema.
TABLES = ("rel_k", "rel_q", "rel_v", "u", "w", "bias", "pos_q", "pos_k", "cls", "slopes", "a", "p", "bias_dense")
INPUTS = ("q", "k", "v") + TABLES
MASKS = ("key_mask", "mask")
SETTINGS = (
    "str scheme, str options, bool causal, int window_left, int window_right, "
    "SymInt? query_offset, float? scale, float dropout"
)

_TENSORS = ", ".join(
    [f"Tensor {name}" for name in INPUTS[:3]] + [f"Tensor? {name}" for name in TABLES + MASKS] + ["Tensor? seed"]
)
_COUNT = len(INPUTS) + len(MASKS) + 1  # tensors of the schema, the seed of the dropout included

_library = torch.library.Library("locus", "DEF")
_library.define(f"attend({_TENSORS}, {SETTINGS}) -> (Tensor, Tensor)")
_library.define(f"attend_backward(Tensor dout, Tensor out, Tensor lse, {_TENSORS}, {SETTINGS}, bool[] needs) -> Tensor[]")


# ---- the call ----


@functools.lru_cache(maxsize=256)
def _parsed(options: str) -> dict:
    """'span=256,form=log' as a dictionary; a string, because operators take no dictionaries."""
    result: dict = {}
    for item in filter(None, options.split(",")):
        name, _, value = item.partition("=")
        for kind in (int, float, str):
            try:
                result[name] = kind(value)
                break
            except ValueError:
                continue
    return result


def _config(settings, seed: Optional[Tensor]) -> dict:
    scheme, options, causal, window_left, window_right, query_offset, scale, dropout = settings
    return {
        "scheme": scheme,
        "options": _parsed(options),
        "causal": causal,
        "window_left": window_left,
        "window_right": window_right,
        "query_offset": query_offset,
        "scale": scale,
        "dropout": dropout,
        "dropout_seed": 0 if seed is None else int(seed),
        "threads": torch.get_num_threads(),
    }


def _rows(tensor: Tensor) -> Tensor:
    """Locus reads any strides, as long as the last axis is dense."""
    return tensor if tensor.stride(-1) == 1 or tensor.size(-1) < 2 else tensor.contiguous()


def _named(tensors) -> dict:
    named = {}
    for name, t in zip(INPUTS, tensors):
        if t is not None:
            rows = _rows(t)
            named[name] = rows.detach() if rows.requires_grad else rows  # DLPack refuses those that need a gradient
    for name, t in zip(MASKS, tensors[len(INPUTS) :]):
        if t is not None:
            named[name] = t
    return named


def _dense(like: Tensor, shape) -> Tensor:
    """New memory of `shape` whose axes lie in the order of those of `like`, the last one innermost."""
    if like.is_contiguous():
        return torch.empty(shape, dtype=torch.float32, device=like.device)
    stride = like.stride()
    order = sorted(range(len(shape) - 1), key=lambda axis: -stride[axis])
    dense, step = [1] * len(shape), shape[-1]
    for axis in reversed(order):
        dense[axis], step = step, step * shape[axis]
    return torch.empty_strided(shape, dense, dtype=torch.float32, device=like.device)


def _results(q: Tensor, v: Tensor):
    out = _dense(q, (q.size(0), q.size(1), q.size(2), v.size(3)))
    return out, torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)


def _forward(*args):
    out, lse = _results(args[0], args[2])
    tensors, settings = args[:_COUNT], args[_COUNT:]
    _native.forward(_config(settings, tensors[-1]), _named(tensors), out, lse)
    return out, lse


def _backward(dout, out, lse, *args):
    tensors, settings, needs = args[:_COUNT], args[_COUNT:-1], args[-1]
    grads = {name: _dense(t, t.shape) for name, t, need in zip(INPUTS, tensors, needs) if need}
    _native.backward(
        _config(settings, tensors[-1]), _named(tensors), out, lse, _rows(dout).detach(), grads, False
    )
    return list(grads.values())


_library.impl("attend", _forward, "CPU")
_library.impl("attend_backward", _backward, "CPU")


@torch.library.register_fake("locus::attend", lib=_library)
def _fake_forward(*args):
    return _results(args[0], args[2])


@torch.library.register_fake("locus::attend_backward", lib=_library)
def _fake_backward(dout, out, lse, *args):
    return [_dense(t, t.shape) for t, need in zip(args, args[-1]) if need]


# ---- autograd ----


def _plain() -> bool:
    """Nobody watches the dispatcher (torch.compile, fake tensors, functorch): it can be left out, 20 us per call."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _below_autograd(operator, kernel, args):
    if _plain():
        return kernel(*args)
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*args)


def _refuse_tangents(tensors) -> None:
    """Forward mode is not there; to drop the tangents would be to call the derivative 0."""
    if forward_ad._current_level < 0:
        return
    if any(isinstance(t, Tensor) and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise NotImplementedError(
            "locus::attend has no forward-mode derivative (jvp, jacfwd, linearize): use reverse mode, or the unpatched "
            "model (locus.torch.unpatch)"
        )


class _Attend(torch.autograd.Function):
    """Keeps inputs, out and lse; the weights are computed again on the way back."""

    @staticmethod
    def forward(ctx, *args):
        out, lse = _below_autograd(torch.ops.locus.attend.default, _forward, args)
        ctx.settings = args[_COUNT:]
        ctx.save_for_backward(out, lse, *args[:_COUNT])
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx, dout, _dlse):
        out, lse, *tensors = ctx.saved_tensors
        needs = list(ctx.needs_input_grad[: len(INPUTS)])
        call = _backward_once if _plain() else torch.ops.locus.attend_backward.default
        grads = iter(call(dout, out, lse, *tensors, *ctx.settings, needs))
        return tuple(next(grads) if need else None for need in needs) + (None,) * (
            _COUNT - len(INPUTS) + len(ctx.settings)
        )


def _attend_with_gradients(*args):
    _refuse_tangents(args[: len(INPUTS)])
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in args[: len(INPUTS)]):
        return _Attend.apply(*args)
    return _below_autograd(torch.ops.locus.attend.default, _forward, args)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args):
        return tuple(_below_autograd(torch.ops.locus.attend_backward.default, _backward, args))

    @staticmethod
    def backward(ctx, *_):
        raise NotImplementedError(
            "locus::attend has first derivatives only: for a double backward use the unpatched model "
            "(locus.torch.unpatch), or do not pass create_graph=True"
        )


def _backward_once(*args):
    _refuse_tangents(args[: 3 + len(INPUTS)])
    if torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in args[: 3 + _COUNT]):
        return list(_Once.apply(*args))
    return _below_autograd(torch.ops.locus.attend_backward.default, _backward, args)


_library.impl("attend", _attend_with_gradients, "Autograd")
_library.impl("attend_backward", _backward_once, "Autograd")


# ---- what users call ----

_NARROW = (torch.bfloat16, torch.float16)


def _single(name: str, tensor: Optional[Tensor]) -> Optional[Tensor]:
    if tensor is None or tensor.dtype == torch.float32:
        return tensor
    if tensor.dtype in _NARROW:
        return tensor.float()
    raise TypeError(
        f"tensor {name}: found {tensor.dtype}, expected torch.float32 (bfloat16 and float16 are converted; "
        "convert others yourself)"
    )


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
    seed: Optional[Tensor] = None,
    return_lse: bool = False,
    **more,
):
    """Attention with positions on CPU tensors, differentiable in q, k, v and every table.

    >>> out = attend(q, k, v, scheme="t5", bias=table, buckets=32, max_distance=128, bidirectional=1)
    >>> out = attend(q, k, v, scheme="alibi", causal=True)

    q is [B,H,Tq,D], k [B,Hk,Tk,D], v [B,Hk,Tk,Dv], in any memory order. Tensors of the scheme (``rel_k``, ``bias``,
    ``bias_dense`` ...) and its options (``span``, ``buckets`` ...) are given by name, as docs/schemes.md has them.
    ``key_mask`` [B,Tk] and ``mask`` [B or 1, H or 1, Tq, Tk] are boolean, true = take part.

    float32 inside. bfloat16 and float16 are converted on the way in and the result on the way out: one more copy of
    each such tensor, in both directions. Dropout takes its seed from torch's generator unless ``seed`` (an int64
    tensor with one element) is given. lse, [B,H,Tq] with ``return_lse``, has no gradient. There is no second derivative
    and no forward mode (``torch.func.jvp``); both are refused.
    """
    tables = {name: more.pop(name) for name in TABLES if name in more}
    wrong = [name for name, value in more.items() if isinstance(value, Tensor)]
    if wrong:
        raise TypeError(f"tensor {wrong[0]}: no such tensor of attend, expected one of {', '.join(INPUTS + MASKS)}")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not tensor.is_cpu:
            raise ValueError(f"tensor {name}: found device {tensor.device}, expected cpu")
    if dropout > 0 and seed is None:
        seed = torch.randint(1 << 62, (1,), dtype=torch.int64)
    call = _attend_with_gradients if _plain() else torch.ops.locus.attend.default
    out, lse = call(
        _single("q", q),
        _single("k", k),
        _single("v", v),
        *[_single(name, tables[name]) if name in tables else None for name in TABLES],
        key_mask,
        mask,
        seed if dropout > 0 else None,
        scheme,
        ",".join(f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in more.items()),
        causal,
        window_left,
        window_right,
        query_offset,
        scale,
        dropout,
    )
    if q.dtype in _NARROW:
        out = out.to(q.dtype)
    return (out, lse) if return_lse else out
