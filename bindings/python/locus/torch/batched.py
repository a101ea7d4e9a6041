# SPDX-License-Identifier: Apache-2.0
"""``torch.vmap`` of the two operators: the new axis joins the batch where that says the same, else sample by sample.

q, k, v, masks and dense biases have a batch axis of their own. Tables have none: where one differs from sample to
sample, or where each sample wants its own gradient of it, and under dropout (whose weights are numbered by batch entry),
samples are computed one after another.
"""

from __future__ import annotations

import torch

from locus import _native

_JOIN = {"q", "k", "v", "bias_dense", "key_mask", "mask", "dout", "dlse", "out", "lse"}
_PLANNED = {"seed", "q_offsets", "k_offsets", "q_positions", "k_positions"}
# Whatever else has an axis of the batch, as the library declares it.
_ONE_BY_ONE = _PLANNED | {
    tensor["name"]
    for declared in [{"tensors": _native.common_tensors()}, *_native.schemes()]
    for tensor in declared["tensors"]
    if tensor["levels"] & 1 and "B" in tensor["shape"].replace("|", " ").replace(",", " ").split()
} - _JOIN


def register(library, inputs: int, count: int) -> None:
    """`inputs`: how many tensors of the schema can have gradients; `count`: how many tensors it has."""
    forward, backward = torch.ops.locus.attend.default, torch.ops.locus.attend_backward.default

    def attend(info, dims, *args):
        return _mapped(forward, info.batch_size, dims, args, [])

    def attend_backward(info, dims, *args):
        needs = [names for names, need in zip(_names(backward)[4 : 4 + inputs], args[-1]) if need]
        return _mapped(backward, info.batch_size, dims, args, needs)

    torch.library.register_vmap(forward, attend, lib=library)
    torch.library.register_vmap(backward, attend_backward, lib=library)


def _names(operator):
    return [argument.name for argument in operator._schema.arguments]


def _mapped(operator, size: int, dims, args, needs):
    """(results, their batch axes)"""
    names = _names(operator)
    batched = {name for name, dim in zip(names, dims) if isinstance(dim, int)}
    args = [a.movedim(d, 0) if isinstance(d, int) else a for a, d in zip(args, dims)]
    joins = all(args[names.index(name)] is None for name in _ONE_BY_ONE if name in names)
    if joins and batched <= _JOIN and set(needs) <= _JOIN - {"bias_dense"}:
        batch = args[names.index("q")].shape[1 if "q" in batched else 0]
        results = operator(*[_joined(n, a, n in batched, size, batch) for n, a in zip(names, args)])
        results = [r.unflatten(0, (size, batch)) for r in results]
    else:
        samples = [operator(*[a[i] if n in batched else a for n, a in zip(names, args)]) for i in range(size)]
        results = [torch.stack(parts) for parts in zip(*samples)]
    if isinstance(operator._schema.returns[0].type, torch.ListType):
        return results, [0] * len(results)
    return tuple(results), (0,) * len(results)


def _joined(name: str, value, is_batched: bool, size: int, batch: int):
    """[N,B,...] as [N*B,...]; what all samples share is repeated, except where one entry serves any batch."""
    if name not in _JOIN or value is None:
        return value
    if not is_batched:
        if name in ("mask", "bias_dense") and value.shape[0] == 1:
            return value
        value = value.expand(size, *value.shape)
    return value.expand(size, batch, *value.shape[2:]).flatten(0, 1)
