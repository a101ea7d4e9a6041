# SPDX-License-Identifier: Apache-2.0
"""``locus::attend``: Locus as a PyTorch operator, with derivatives of every kind.

One functional operator forward, one backward, both with fake kernels, so that ``torch.compile`` keeps
its graph whole. Strided views go in as they lie; results come out in the memory order of ``q``, so a
``transpose(1, 2).reshape(...)`` behind a (B, T, H, D) model stays free.

First derivatives backward run in the fused kernels. Forward-mode and second derivatives run in torch operations
(exact.py); ``torch.func`` reaches both through the dispatcher, ``vmap`` by the rules of batched.py.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Optional

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from locus import _native

from . import batched, exact

# The tensors that calls may have, as the library declares them: those of all schemes, then those of each.
_DECLARED = {
    tensor["name"]: tensor
    for declared in [{"tensors": _native.common_tensors()}, *_native.schemes()]
    for tensor in declared["tensors"]
    if tensor["levels"] & 1  # of attend
}

INPUTS = tuple(name for name, tensor in _DECLARED.items() if tensor["gradient"])  # in the order of the schema; q, k, v first
TABLES = INPUTS[3:]
PLANNED = tuple(name for name, tensor in _DECLARED.items() if tensor["planned"])  # numbers that plans are made from
MASKS = tuple(name for name in _DECLARED if name not in INPUTS + PLANNED)
OTHERS = MASKS + PLANNED  # without gradients
SETTINGS = (
    "str scheme, str options, bool causal, int window_left, int window_right, "
    "SymInt? query_offset, float? scale, float dropout, float? softcap"
)

_TENSORS = ", ".join(
    [f"Tensor {name}" for name in INPUTS[:3]] + [f"Tensor? {name}" for name in TABLES + OTHERS] + ["Tensor? seed"]
)
_COUNT = len(INPUTS) + len(OTHERS) + 1  # tensors of the schema, the seed of the dropout included

_library = torch.library.Library("locus", "DEF")
_library.define(f"attend({_TENSORS}, {SETTINGS}) -> (Tensor, Tensor)")
_library.define(
    f"attend_backward(Tensor? dout, Tensor? dlse, Tensor out, Tensor lse, {_TENSORS}, {SETTINGS}, bool[] needs) -> Tensor[]"
)


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


def spelt(options) -> str:
    """Pairs of name and value as that string."""
    return ",".join(f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in options)


def _config(settings, seed: Optional[Tensor]) -> dict:
    scheme, options, causal, window_left, window_right, query_offset, scale, dropout, softcap = settings
    return {
        "scheme": scheme,
        "options": _parsed(options),
        "causal": causal,
        "window_left": window_left,
        "window_right": window_right,
        "query_offset": query_offset,
        "scale": scale,
        "dropout": dropout,
        "softcap": softcap,
        "dropout_seed": 0 if seed is None else int(seed),
        "threads": torch.get_num_threads(),
    }


def _rows(tensor: Tensor) -> Tensor:
    """Locus reads any strides, as long as the last axis is dense."""
    return tensor if tensor.dim() == 0 or tensor.stride(-1) == 1 or tensor.size(-1) < 2 else tensor.contiguous()


def real_rows(gradient: Tensor) -> Tensor:
    """The same for a gradient that comes in, which may be negated lazily."""
    return _rows(gradient.resolve_neg() if gradient.is_neg() else gradient)


def _named(tensors) -> dict:
    named = {}
    for name, t in zip(INPUTS, tensors):
        if t is not None:
            rows = _rows(t)
            named[name] = rows.detach() if rows.requires_grad else rows  # DLPack refuses those that need a gradient
    for name, t in zip(OTHERS, tensors[len(INPUTS) :]):
        if t is not None:
            named[name] = t
    return named


def dense(like: Tensor, shape) -> Tensor:
    """New memory of `shape` and the type of `like` whose axes lie in the order of those of `like`, the last one innermost."""
    dtype = like.dtype
    if like.is_contiguous():
        return torch.empty(shape, dtype=dtype, device=like.device)
    stride = like.stride()
    order = sorted(range(len(shape) - 1), key=lambda axis: -stride[axis])
    dense, step = [1] * len(shape), shape[-1]
    for axis in reversed(order):
        dense[axis], step = step, step * shape[axis]
    return torch.empty_strided(shape, dense, dtype=dtype, device=like.device)


def _results(q: Tensor, v: Tensor):
    out = dense(q, (q.size(0), q.size(1), q.size(2), v.size(3)))
    return out, torch.empty(q.shape[:3], dtype=_kind_of_lse(q), device=q.device)


def _kind_of_lse(q: Tensor) -> torch.dtype:
    return torch.float64 if q.dtype is torch.float64 else torch.float32


def _forward(*args):
    out, lse = _results(args[0], args[2])
    tensors, settings = args[:_COUNT], args[_COUNT:]
    _native.forward(_config(settings, tensors[-1]), _named(tensors), out, lse)
    return out, lse


def _backward(dout, dlse, out, lse, *args):
    tensors, settings, needs = args[:_COUNT], args[_COUNT:-1], args[-1]
    grads = {name: dense(t, t.shape) for name, t, need in zip(INPUTS, tensors, needs) if need}
    dout = torch.zeros_like(out) if dout is None else real_rows(dout).detach()
    dlse = None if dlse is None else real_rows(dlse).detach()
    config = _config(settings, tensors[-1])
    _native.backward(config, _named(tensors), out.detach(), lse.detach(), dout, grads, False, dlse)
    return list(grads.values())


_library.impl("attend", _forward, "CPU")
_library.impl("attend_backward", _backward, "CPU")


@torch.library.register_fake("locus::attend", lib=_library)
def _fake_forward(*args):
    return _results(args[0], args[2])


@torch.library.register_fake("locus::attend_backward", lib=_library)
def _fake_backward(dout, dlse, out, lse, *args):
    return [dense(t, t.shape) for t, need in zip(args, args[-1]) if need]


# ---- autograd ----


_is_compiling = torch.compiler.is_compiling  # names of our own: looking them up in torch costs more than they do
_modes = torch._C._len_torch_dispatch_stack
_transform = torch._C._functorch.maybe_current_level
_trace = torch._C._get_tracing_state


def plain() -> bool:
    """Nobody watches the dispatcher (torch.compile, torch.jit.trace, fake tensors, functorch): it can be left out, 20 us per call."""
    return not _is_compiling() and _modes() == 0 and _transform() is None and _trace() is None


def _is_kernels(kernel, args) -> bool:
    """The kernel can be called as it is: q, or out of a backward pass, has memory (not on meta)."""
    return plain() and not args[2 if kernel is _backward else 0].is_meta


def _below_autograd(operator, kernel, args):
    if _is_kernels(kernel, args):
        return kernel(*args)
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*args)


def _inside(operator, kernel, args):
    """_below_autograd for Function.forward, which has switched derivatives off; those of outer levels must stay on."""
    if _is_kernels(kernel, args):
        return kernel(*args)
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        return operator(*args)


def _any_requires_grad(tensors) -> bool:
    return torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in tensors)


def _any_tangent(tensors) -> bool:
    """A derivative in forward mode is asked for (torch.func.jvp takes the same road as forward_ad)."""
    if forward_ad._current_level < 0:
        return False
    return any(isinstance(t, Tensor) and forward_ad.unpack_dual(t).tangent is not None for t in tensors)


@contextlib.contextmanager
def _untraced():
    """torch.jit.trace has written the operator down already; its function in Python must not stand beside it."""
    before = _trace()
    if before is not None:
        torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        if before is not None:
            torch._C._set_tracing_state(before)


def _apply(function, args):
    """function.apply. The levels of torch.func are the dispatcher's business: here one of them is left, at most."""
    if plain():
        return function.apply(*args)
    with enable_single_level_autograd_function(), _untraced():
        return function.apply(*args)


class _Attend(torch.autograd.function._SingleLevelFunction):
    """Keeps inputs, out and lse; the weights are computed again on the way back."""

    @staticmethod
    def forward(ctx, *args):
        out, lse = _inside(torch.ops.locus.attend.default, _forward, args)
        ctx.settings = args[_COUNT:]
        ctx.save_for_backward(out, lse, *args[:_COUNT])
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, dout, dlse):
        needs = list(ctx.needs_input_grad[: len(INPUTS)])
        rest = (None,) * (_COUNT - len(INPUTS) + len(ctx.settings))
        if dout is None and dlse is None:
            return (None,) * len(INPUTS) + rest
        out, lse, *tensors = ctx.saved_tensors
        grads = iter(backward(dout, dlse, out, lse, *tensors, *ctx.settings, needs))
        return tuple(next(grads) if need else None for need in needs) + rest


def _attend_with_gradients(*args):
    if _any_tangent(args[:_COUNT]):
        return exact_forward(*args)
    if _any_requires_grad(args[: len(INPUTS)]):
        return _apply(_Attend, args)
    return _below_autograd(torch.ops.locus.attend.default, _forward, args)


class _Backward(torch.autograd.function._SingleLevelFunction):
    """The fused backward pass; its own derivatives are worked out in torch operations when they are asked for."""

    @staticmethod
    def forward(ctx, *args):
        ctx.save_for_backward(*args[: 4 + _COUNT])
        ctx.settings = args[4 + _COUNT :]
        ctx.set_materialize_grads(False)
        return tuple(_inside(torch.ops.locus.attend_backward.default, _backward, args))

    @staticmethod
    def backward(ctx, *second):
        saved = ctx.saved_tensors
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[: 4 + len(INPUTS)]) if need and i not in (2, 3)]

        def first(*values):
            args = list(saved)
            for i, value in zip(wanted, values):
                args[i] = value
            return tuple(_exact_backward(_pulled, *args, *ctx.settings))

        found = dict(zip(wanted, _pulled(first, [saved[i] for i in wanted], second)))
        return tuple(found.get(i) for i in range(4 + _COUNT + len(ctx.settings)))


def _backward_with_gradients(*args):
    if _any_tangent(args[: 4 + _COUNT]):
        return _exact_backward(_pulled_in_kernel, *args)
    if _any_requires_grad(args[: 4 + _COUNT]):
        return list(_apply(_Backward, args))
    return _below_autograd(torch.ops.locus.attend_backward.default, _backward, args)


# ---- in torch operations ----


def exact_forward(*args):
    """The operator in torch operations, in the type of q."""
    tensors, settings = args[:_COUNT], args[_COUNT:]
    out, lse = exact.attend(_exact_named(tensors), _config(settings, tensors[-1]))
    return out.to(args[0].dtype), lse.to(_kind_of_lse(args[0]))


def _exact_named(tensors) -> dict:
    return {name: t for name, t in zip(INPUTS + OTHERS, tensors) if t is not None}


@contextlib.contextmanager
def _leaves_allowed():
    """torch.func forbids requires_grad_ in functions that it transforms; this is a kernel below it."""
    before = torch._C._functorch.get_inplace_requires_grad_allowed()
    torch._C._functorch.set_inplace_requires_grad_allowed(True)
    try:
        yield
    finally:
        torch._C._functorch.set_inplace_requires_grad_allowed(before)


def _grads_or_zeros(results, grads):
    return tuple(torch.zeros_like(r) if g is None else g.to(r.dtype) for r, g in zip(results, grads))


def _pulled_in_kernel(forward, inputs, grads):
    """Gradients of forward(*inputs), a tuple, where its results have `grads`; differentiable in both again.

    For kernels: torch.func can not add a level while the dispatcher is between two of them.
    """
    with torch.enable_grad(), _leaves_allowed():
        inputs = [t.view_as(t) if t.requires_grad else t.view_as(t).requires_grad_() for t in inputs]
        results = forward(*inputs)
        return torch.autograd.grad(results, inputs, _grads_or_zeros(results, grads), create_graph=True, materialize_grads=True)


def _pulled(forward, inputs, grads):
    """The same outside of kernels, at any level of torch.func."""
    results, pull = torch.func.vjp(forward, *inputs)
    return pull(_grads_or_zeros(results, grads))


def _exact_backward(pulled, dout, dlse, out, lse, *args):
    tensors, settings, needs = args[:_COUNT], args[_COUNT:-1], args[-1]
    named, config = _exact_named(tensors), _config(settings, tensors[-1])
    wanted = [name for name, need in zip(INPUTS, needs) if need]

    def forward(*values):
        return exact.attend({**named, **dict(zip(wanted, values))}, config)

    return list(pulled(forward, [named[name] for name in wanted], (dout, dlse)))


_library.impl("attend", _attend_with_gradients, "Autograd")
_library.impl("attend_backward", _backward_with_gradients, "Autograd")
batched.register(_library, len(INPUTS), _COUNT)


def call(*args):
    """The operator; without the dispatcher where nobody watches it."""
    return _attend_with_gradients(*args) if plain() else torch.ops.locus.attend.default(*args)


def backward(*args):
    """Its backward pass, likewise."""
    return _backward_with_gradients(*args) if plain() else torch.ops.locus.attend_backward.default(*args)
