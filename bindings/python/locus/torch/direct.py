# SPDX-License-Identifier: Apache-2.0
"""The short way of a call: no dispatcher, settings read once per combination, the rest in C.

Serves plain tensors where nobody watches the dispatcher. What it does not serve, or what the library refuses, goes the
long way (functional.py), which converts, copies or raises. Results have the same bits either way.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from locus import _native
from locus._errors import LocusError

from . import op

_PLAIN_TYPES = (Tensor, torch.nn.Parameter)
_INDEX = {name: _native.tensor_index(name) for name in op.INPUTS + op.OTHERS}
_SETTINGS = ("scheme", "causal", "window_left", "window_right", "query_offset", "scale", "softcap")
_prepared: dict = {}
_MOST = 512
_HALVES = (torch.bfloat16, torch.float16)
_TYPES = (torch.float32, *_HALVES)  # read in place

# Tensors that need a gradient pass through DLPack's table of functions, not through __dlpack__.
_EXCHANGES = hasattr(Tensor, "__dlpack_c_exchange_api__")


def prepared(key: tuple):
    """The settings of `key`, read by the extension module: those of _SETTINGS, then options as pairs."""
    found = _prepared.get(key)
    if found is None:
        config = dict(zip(_SETTINGS, key))
        config["options"] = {name: value for name, value in key[len(_SETTINGS) :]}
        found = _native.prepare(config)
        if len(_prepared) >= _MOST:
            _prepared.clear()
        _prepared[key] = found
    return found


class _Attend(torch.autograd.function._SingleLevelFunction):
    """As op._Attend, with no more arguments than there are tensors."""

    @staticmethod
    def forward(ctx, call, *tensors):
        key, indices, want_lse = call
        out, lse = _run(key, indices, tensors, True)
        ctx.call = call
        ctx.save_for_backward(*tensors, out, lse)
        ctx.set_materialize_grads(False)
        return (out, lse) if want_lse else out

    @staticmethod
    def backward(ctx, dout, dlse=None):
        key, indices, _ = ctx.call
        *tensors, out, lse = ctx.saved_tensors
        needs = ctx.needs_input_grad[1:]
        if dout is None and dlse is None:
            return (None,) * (1 + len(needs))
        if dlse is not None or torch.is_grad_enabled() or not op.plain():
            return (None, *_backward_the_long_way(key, indices, tensors, needs, dout, dlse, out, lse))
        grads = [torch.empty_like(t) if need else None for t, need in zip(tensors, needs)]
        pairs = []
        for index, tensor in zip(indices, tensors):
            pairs += (index, tensor)
        for index, grad in zip(indices, grads):
            if grad is not None:
                pairs += (index, grad)
        dout = dout if dout.stride(-1) == 1 else dout.contiguous()
        threads = torch.get_num_threads()
        _native.run_backward(prepared(key), threads, 0, out, lse, dout, len(tensors), *pairs)
        return (None, *grads)


def _backward_the_long_way(key, indices, tensors, needs, dout, dlse, out, lse):
    """A graph of the gradients is wanted, or lse has one: the operator knows how, in float32."""
    kinds = [t.dtype for t in tensors]
    tensors = [t.float() if t.dtype in _HALVES else t for t in tensors]
    dout, out = (t if t is None else t.float() for t in (dout, out))
    names = op.INPUTS + op.OTHERS
    place = {_INDEX[name]: i for i, name in enumerate(names)}
    args: list = [None] * (len(names) + 1)
    asked = [False] * len(op.INPUTS)
    for index, tensor, need in zip(indices, tensors, needs):
        args[place[index]] = tensor
        if need:
            asked[place[index]] = True
    scheme, causal, left, right, offset, scale, softcap, *options = key
    settings = (scheme, op.spelt(options), causal, left, right, offset, scale, 0.0, softcap)
    found = iter(op.backward(dout, dlse, out, lse, *args, *settings, asked))
    by_place = {i: next(found) for i, need in enumerate(asked) if need}
    grads = [by_place.get(place[index]) for index in indices]
    return [grad if grad is None else grad.to(kind) for grad, kind in zip(grads, kinds)]


def _run(key, indices, tensors, want_lse: bool):
    q, v = tensors[0], tensors[2]
    width = v.shape[-1]
    out = torch.empty_like(q) if q.shape[-1] == width else op.dense(q, (*q.shape[:-1], width), q.dtype)
    lse = torch.empty(q.shape[:-1], dtype=torch.float32) if want_lse else None
    if len(tensors) == 3:
        pairs = (0, q, 1, tensors[1], 2, v)
    else:
        pairs = [part for pair in zip(indices, tensors) for part in pair]
    _native.run(prepared(key), torch.get_num_threads(), 0, out, lse, *pairs)
    return out, lse


def _others(mask, key_mask, more: dict, indices: list, tensors: list):
    """Further tensors to `indices` and `tensors`; the options as pairs; None: not for the short way."""
    options = []
    for name, value in more.items():
        if name in _INDEX:
            if value is None:
                continue
            wrong = value.dtype not in _TYPES and name not in op.PLANNED if type(value) in _PLAIN_TYPES else True
            if wrong or value.is_neg():
                return None
            indices.append(_INDEX[name])
            tensors.append(value)
        elif type(value) in (int, float, str):
            options.append((name, value))
        elif value is not None:
            return None
    for name, value in (("mask", mask), ("key_mask", key_mask)):
        if value is not None:
            if type(value) is not Tensor:
                return None
            indices.append(_INDEX[name])
            tensors.append(value)
    return options


def attend(q, k, v, mask, key_mask, settings: tuple, more: dict, return_lse: bool) -> Optional[tuple]:
    """(out, lse or None) of a call without dropout; None: take the long way."""
    if not (
        type(q) is Tensor
        and type(k) is Tensor
        and type(v) is Tensor
        and q.dtype in _TYPES
        and _EXCHANGES
        and op.plain()
        and forward_ad._current_level < 0
        and not (q.is_neg() or k.is_neg() or v.is_neg())
    ):
        return None
    indices, tensors = [0, 1, 2], [q, k, v]
    if more or mask is not None or key_mask is not None:
        options = _others(mask, key_mask, more, indices, tensors)
        if options is None:
            return None
        settings = (*settings, *options)
    try:
        if torch.is_grad_enabled() and any([t.requires_grad for t in tensors]):
            out = _Attend.apply((settings, indices, return_lse), *tensors)
            return out if return_lse else (out, None)
        return _run(settings, indices, tensors, return_lse)
    except (LocusError, TypeError, ValueError, OverflowError, IndexError, RuntimeError, BufferError):
        return None  # the long way says why, or copies what has to be copied
