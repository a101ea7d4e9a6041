# SPDX-License-Identifier: Apache-2.0
"""The short way of a call: no dispatcher, settings read once per combination, the rest in C.

Serves plain tensors where nobody watches the dispatcher. What it does not serve, or what the library refuses, goes the
long way (functional.py), which converts, copies or raises. Results have the same bits either way.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

from locus import _native
from locus._errors import LocusError, LocusValueError

from . import op

_PLAIN_TYPES = (Tensor, torch.nn.Parameter)
_INDEX = {name: _native.tensor_index(name) for name in op.INPUTS + op.OTHERS}
_SETTINGS = ("scheme", "causal", "window_left", "window_right", "query_offset", "scale", "softcap", "dropout")
_prepared: dict = {}
_MOST = 512
_TYPES = (torch.float32, torch.bfloat16, torch.float16)  # read in place
_BY_TOKEN, _WITH_LSE = 1, 2  # how results are made: bits of _native.attend
_HEADS_SHIFT = 8  # above them: heads, where q, k and v may be [B,T,H*D] and out is
_PLAIN = (0, 1, 2)  # indices of q, k, v
_compiling = torch.compiler.is_dynamo_compiling
_gradients_on = torch.is_grad_enabled

# Tensors that need a gradient pass through DLPack's table of functions, not through __dlpack__.
_EXCHANGES = hasattr(Tensor, "__dlpack_c_exchange_api__")
if _EXCHANGES:
    _native.torch(
        (
            *_PLAIN_TYPES,
            Tensor.is_neg,
            torch.is_grad_enabled,
            torch._C._len_torch_dispatch_stack,
            torch._C._functorch.maybe_current_level,
            torch._C._get_tracing_state,
            forward_ad,
            torch.get_num_threads,
            torch.empty_like,
            torch.empty,
            {
                name: {"dtype": dtype, "device": torch.device("cpu")}
                for name, dtype in (("F32", torch.float32), ("BF16", torch.bfloat16), ("F16", torch.float16))
            },
        )
    )


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
        key, indices, how, seed = call
        out, lse = _results(key, indices, tensors, how | _WITH_LSE, seed)
        ctx.call = call
        ctx.save_for_backward(*tensors, out, lse)
        ctx.set_materialize_grads(False)
        return (out, lse) if how & _WITH_LSE else out

    @staticmethod
    def backward(ctx, dout, dlse=None):
        key, indices, how, seed = ctx.call
        *tensors, out, lse = ctx.saved_tensors
        needs = ctx.needs_input_grad[1:]
        if dout is None and dlse is None:
            return (None,) * (1 + len(needs))
        if dlse is not None or _gradients_on() or not op.plain():
            return (None, *_backward_the_long_way(ctx.call, tensors, needs, dout, dlse, out, lse))
        dout = op.real_rows(dout)
        pairs = _pairs(indices, tensors)
        return (None, *_native.attend_backward(prepared(key), seed, how, out, lse, dout, needs, *pairs))


def by_heads(states: Tensor, heads: int) -> Tensor:
    """[B,T,H*D] as [B,H,T,D], without a copy."""
    return states.view(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(-3, -2)


def split(q, k, v, heads: int):
    """[B,H,T,D] of those of q, k and v that are [B,T,H*D]: keys have heads of the width of queries, values as many."""
    q = by_heads(q, heads) if q.dim() == 3 else q
    k = by_heads(k, k.shape[2] // q.shape[3]) if k.dim() == 3 else k
    return q, k, by_heads(v, k.shape[1]) if v.dim() == 3 else v


def _backward_the_long_way(call, tensors, needs, dout, dlse, out, lse):
    """A graph of the gradients is wanted, or lse has one: the operator knows how."""
    key, indices, how, seed = call
    shapes = [t.shape for t in tensors]
    heads = how >> _HEADS_SHIFT
    if heads:
        tensors[:3] = split(*tensors[:3], heads)
        dout, out = (t if t is None else by_heads(t, heads) for t in (dout, out))
    elif how & _BY_TOKEN:
        dout, out = (t if t is None else t.transpose(1, 2) for t in (dout, out))
    names = op.INPUTS + op.OTHERS
    place = {_INDEX[name]: i for i, name in enumerate(names)}
    args: list = [None] * (len(names) + 1)
    asked = [False] * len(op.INPUTS)
    for index, tensor, need in zip(indices, tensors, needs):
        args[place[index]] = tensor
        if need:
            asked[place[index]] = True
    scheme, causal, left, right, offset, scale, softcap, dropout, *options = key
    settings = (scheme, op.spelt(options), causal, left, right, offset, scale, dropout, softcap)
    if dropout > 0:
        args[-1] = torch.tensor([seed])
    found = iter(op.backward(dout, dlse, out, lse, *args, *settings, asked))
    by_place = {i: next(found) for i, need in enumerate(asked) if need}
    grads = [by_place.get(place[index]) for index in indices]
    if heads:
        grads[:3] = [g if g is None or g.dim() == len(s) else g.transpose(1, 2).flatten(2) for g, s in zip(grads[:3], shapes)]
    return grads


def _pairs(indices, tensors):
    if len(tensors) == 3:
        return 0, tensors[0], 1, tensors[1], 2, tensors[2]
    return [part for pair in zip(indices, tensors) for part in pair]


def _results(key, indices, tensors, how: int, seed: int):
    """(out, lse), allocated here where values have another width than keys."""
    pairs = _pairs(indices, tensors)
    found = _native.attend(prepared(key), seed, how, *pairs)
    if found is not None:
        return found
    q, v = tensors[0], tensors[2]
    if how & ~_WITH_LSE:
        raise LocusValueError("attend: not the short way")  # the long one says why
    out = op.dense(q, (*q.shape[:-1], v.shape[-1]))
    lse = torch.empty(q.shape[:-1], dtype=torch.float32, device="cpu")
    _native.run(prepared(key), torch.get_num_threads(), seed, out, lse, *pairs)
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


def _served(q, k, v) -> bool:
    """Tensors that the short way takes with gradients, where nobody else watches."""
    return (
        type(q) is Tensor
        and type(k) is Tensor
        and type(v) is Tensor
        and q.dtype in _TYPES
        and _EXCHANGES
        and op.plain()
        and forward_ad._current_level < 0
        and not (q.is_neg() or k.is_neg() or v.is_neg())
    )


def attend(
    q, k, v, mask, key_mask, settings: tuple, more: dict, return_lse: bool, by_token: bool = False, seed: int = 0, heads: int = 0
):
    """out, or (out, lse); None: take the long way. `seed` is that of dropout.

    `by_token`: out as [B,T,H,D]. `heads`: q, k and v may be [B,T,H*D], which heads they have follows from those of q;
    out is [B,T,H*Dv].
    """
    if _compiling():
        return None
    how = heads << _HEADS_SHIFT | (_BY_TOKEN if by_token else 0) | (_WITH_LSE if return_lse else 0)
    indices, tensors = _PLAIN, (q, k, v)
    try:
        if more or mask is not None or key_mask is not None:
            indices, tensors = [0, 1, 2], [q, k, v]
            options = _others(mask, key_mask, more, indices, tensors)
            if options is None:
                return None
            settings = (*settings, *options)
        if _gradients_on() and any([t.requires_grad for t in tensors]):
            return _Attend.apply((settings, indices, how, seed), *tensors) if _served(q, k, v) else None
        found = _native.attend(_prepared.get(settings) or prepared(settings), seed, how, *_pairs(indices, tensors))
        if found is None and _served(q, k, v) and q.shape[-1] != v.shape[-1]:
            found = _results(settings, indices, tensors, how | _WITH_LSE, seed)
            return found if return_lse else found[0]
        return found
    except (LocusError, TypeError, ValueError, OverflowError, IndexError, RuntimeError, BufferError, AttributeError):
        return None  # the long way says why, or copies what has to be copied


_NOTHING_ELSE = prepared(("none", False, -1, -1, 0, None, None, 0.0))


def attend_plainly(q, k, v, heads: int):
    """attend_joined with nothing but q, k and v: as little as can be between a layer of an encoder and C."""
    return None if _compiling() else _native.attend(_NOTHING_ELSE, 0, heads << _HEADS_SHIFT, 0, q, 1, k, 2, v)


def attend_by_token(q, k, v, causal: bool, scale, softcap):
    """[B,H,T,D] to [B,T,H,D], with nothing hidden or only what comes after the query, counted from the first key; likewise."""
    if _compiling():
        return None
    settings = ("none", causal, -1, -1, 0, scale, softcap, 0.0)
    return _native.attend(_prepared.get(settings) or prepared(settings), 0, _BY_TOKEN, 0, q, 1, k, 2, v)


def attend_joined(q, k, v, heads: int, settings: tuple, mask=None, key_mask=None, more: dict = {}):
    """attend without dropout from [B,T,H*D] to [B,T,H*D]; k and v may also be [B,Hk,T,D]. None: take the long way."""
    return attend(q, k, v, mask, key_mask, settings, more, False, False, 0, heads)
