# SPDX-License-Identifier: Apache-2.0
"""Attention over the ranks of a process group: each holds its rows of q, k and v, keys and values go round.

In step s a rank works on the keys of the rank s before it, which their owner sends, while those of step s + 1 are
under way. Results of the steps are joined by lse, in the order of steps; backward, gradients of keys go back to their owner.
``<locus/mpi.h>`` does the same in C.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from locus import _native
from locus._errors import LocusValueError
from locus._schemes import DIFFERENTIABLE, TENSORS, schemes

if dist.is_available() and not dist.is_initialized():
    # Its functions have the group that exists when it is imported as a default argument, and optimizers import it by way of
    # torch._dynamo. Imported after init_process_group it would keep that group, and gloo's threads, beyond
    # destroy_process_group; one of them may then want the interpreter that has ended, which aborts the rank.
    import torch.distributed.nn.functional  # noqa: F401

_REFUSED = {
    "q_offsets": "no ragged batches",
    "k_offsets": "no ragged batches",
    "log_gate": "no gates, which need the sums of all positions in between",
    "log_decay": "no decays, which need the sums of all positions in between",
}
_BY_QUERY = ("q", "pos_query", "gate")  # rows of queries on axis 2
_TRAVEL = ("k", "v", "key_mask", "k_positions")  # with the keys
_AXIS = {"k": 2, "v": 2, "key_mask": 1}  # of rows; positions have it last


class _Run(NamedTuple):
    """Rows that follow each other: the first of the whole, how many, the first of the rank."""

    row: int
    count: int
    local: int


def _chunks(rows: int, ranks: int, rank: int, layout: str):
    count = 2 * ranks if layout == "zigzag" else ranks
    numbers = (rank, count - 1 - rank) if layout == "zigzag" else (rank,)
    return [(rows * i // count, rows * (i + 1) // count) for i in numbers]


def ring_rows(rows: int, group=None, layout: str = "contiguous") -> Tensor:
    """The rows of a sequence of `rows` that this rank holds, in order: ``x[:, ring_rows(T)]``.

    ``contiguous``: rank after rank, as even as can be. ``zigzag``: chunks r and 2P - 1 - r of 2P, which gives all ranks as
    many pairs below the diagonal; for ``causal``.
    """
    _check_layout(layout)
    chunks = _chunks(rows, dist.get_world_size(group), dist.get_rank(group), layout)
    return torch.cat([torch.arange(first, past) for first, past in chunks])


def _check_layout(layout) -> None:
    if layout not in ("contiguous", "zigzag"):
        raise LocusValueError(f"layout: found {layout!r}, expected 'contiguous' or 'zigzag'")


class _Ring:
    """Who holds what, and what of it meets."""

    def __init__(self, group, layout: str, counts, config: dict):
        self.group, self.layout, self.config = group, layout, config
        self.rank, self.ranks = dist.get_rank(group), len(counts)
        self.counts = counts  # of queries and keys of each rank
        self.queries = sum(q for q, _ in counts)
        self.keys = sum(k for _, k in counts)
        offset = config.get("query_offset")
        self.offset = self.keys - self.queries if offset is None else offset
        left, right = config.get("window_left", -1), config.get("window_right", -1)
        self.low = 0 if config.get("causal") else -(1 << 60)
        self.low = max(self.low, -right) if right >= 0 else self.low
        self.high = left if left >= 0 else 1 << 60

    def runs(self, rank: int, side: int):
        """Of the queries (side 0) or the keys (1) of a rank."""
        if self.layout == "contiguous":
            first = sum(count[side] for count in self.counts[:rank])
            return [_Run(first, self.counts[rank][side], 0)]
        local, runs = 0, []
        for first, past in _chunks((self.queries, self.keys)[side], self.ranks, rank, self.layout):
            runs.append(_Run(first, past - first, local))
            local += past - first
        return runs

    def meet(self, q: _Run, k: _Run) -> bool:
        first = self.offset + q.row
        least, most = first - (k.row + k.count - 1), first + q.count - 1 - k.row
        return q.count > 0 and k.count > 0 and least <= self.high and most >= self.low

    def needs(self, rank: int, owner: int) -> bool:
        return any(self.meet(q, k) for q in self.runs(rank, 0) for k in self.runs(owner, 1))

    def before(self, step: int) -> int:
        return (self.rank - step) % self.ranks

    def after(self, step: int) -> int:
        return (self.rank + step) % self.ranks

    def start(self, sends, receives):
        """Pairs of tensor and rank of the group, sent and received in the background."""
        peer = lambda rank: dist.get_global_rank(self.group, rank) if self.group is not None else rank  # noqa: E731
        works = [dist.irecv(t, peer(rank), group=self.group) for t, rank in receives]
        return works + [dist.isend(t, peer(rank), group=self.group) for t, rank in sends]

    def place(self, q: _Run, k: _Run) -> dict:
        return {**self.config, "query_offset": self.offset + q.row, "key_offset": k.row, "first_query": q.row}


_COUNTING = {s.name for s in schemes() if "counted" in s.traits}  # a query counts all keys between
_TWO_AXES = {s.name for s in schemes() for t in s.tensors if t.name == "k_positions" and t.shape.endswith(" 2")}


def _axes_of(config: dict) -> int:
    """How many numbers a given position has: of the scheme, or by its option."""
    return 2 if config["scheme"] in _TWO_AXES else int(config["options"].get("axes", 1))


def _axis(name: str, t: Tensor, axes: int) -> int:
    return _AXIS.get(name, t.dim() - (2 if axes > 1 else 1))


def _keys_of(ring: _Ring, named: dict) -> dict:
    """What travels, as it is sent: dense, masks as bytes."""
    keys = {name: named[name].detach().contiguous() for name in _TRAVEL if name in named}
    return {name: t.view(torch.uint8) if t.dtype is torch.bool else t for name, t in keys.items()}


def _room_for(ring: _Ring, keys: dict, owner: int) -> dict:
    axes = _axes_of(ring.config)
    room = {}
    for name, t in keys.items():
        shape = list(t.shape)
        shape[_axis(name, t, axes)] = ring.counts[owner][1]
        room[name] = t.new_empty(shape)
    return room


def _steps(ring: _Ring, keys: dict):
    """(owner, its keys) for every step in which this rank needs them, own ones first."""

    def start(step):
        room = _room_for(ring, keys, ring.before(step)) if ring.needs(ring.rank, ring.before(step)) else {}
        sent = keys.values() if ring.needs(ring.after(step), ring.rank) else ()
        works = ring.start([(t, ring.after(step)) for t in sent], [(t, ring.before(step)) for t in room.values()])
        return room, works

    ahead = start(1) if ring.ranks > 1 else None
    yield 0, ring.rank, keys
    for step in range(1, ring.ranks):
        room, works = ahead
        for work in works:
            work.wait()
        ahead = start(step + 1) if step + 1 < ring.ranks else None
        yield step, ring.before(step), room


def _block(ring: _Ring, named: dict, keys: dict, q: _Run, k: _Run) -> dict:
    """The tensors of one run of queries against one run of keys."""
    axes = _axes_of(ring.config)
    some = {name: t for name, t in named.items() if name not in _TRAVEL and name != "sink"}
    for name in _BY_QUERY:
        if name in some:
            some[name] = some[name].narrow(2, q.local, q.count)
    for name, t in keys.items():
        some[name] = t.narrow(_axis(name, t, axes), k.local, k.count)
        if name == "k_positions":
            some[name] = some[name].contiguous()
    if "q_positions" in some:
        t = some["q_positions"]
        some["q_positions"] = t.narrow(_axis("q_positions", t, axes), q.local, q.count).contiguous()
    for name in ("mask", "bias_dense"):
        if name in some:
            some[name] = some[name].narrow(2, q.local, q.count).narrow(3, k.row, k.count)
    return {name: t.detach() for name, t in some.items()}


def _forward(ring: _Ring, named: dict):
    q, v = named["q"], named["v"]
    out = torch.zeros((*q.shape[:3], v.shape[3]))
    lse = torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    if "sink" in named:
        lse[:] = named["sink"].detach().double()[None, :, None]
    for _, owner, keys in _steps(ring, _keys_of(ring, named)):
        for a in ring.runs(ring.rank, 0):
            for b in ring.runs(owner, 1):
                if ring.meet(a, b):
                    _join(ring, _block(ring, named, keys, a, b), out, lse, a, b)
    high = lse.float()
    low = torch.where(torch.isfinite(lse), lse - high.double(), 0.0).float()
    return out, high, low


def _join(ring: _Ring, some: dict, out: Tensor, lse: Tensor, a: _Run, b: _Run) -> None:
    part = torch.empty((*some["q"].shape[:3], some["v"].shape[3]))
    high, low = torch.empty(part.shape[:3]), torch.empty(part.shape[:3])
    _native.forward(ring.place(a, b), some, part, high, low)
    old, new = lse.narrow(2, a.local, a.count), high.double() + low.double()
    both = torch.logaddexp(old, new)
    seen = both != -torch.inf
    keep = torch.where(seen, torch.exp(old - both), 0.0).float()[..., None]
    take = torch.where(seen, torch.exp(new - both), 0.0).float()[..., None]
    rows = out.narrow(2, a.local, a.count)
    rows.mul_(keep).add_(part * take)
    old.copy_(both)


def _backward(ring: _Ring, named: dict, results, dout: Tensor, dlse: Optional[Tensor], wanted):
    out, high, low = results
    tables = {name: torch.zeros(named[name].shape) for name in wanted if name not in ("k", "v")}
    sums = {name: torch.zeros(named[name].shape) for name in ("k", "v")}
    pending = []
    for step, owner, keys in _steps(ring, _keys_of(ring, named)):
        found = {name: torch.zeros(keys[name].shape) for name in ("k", "v") if keys}
        for a in ring.runs(ring.rank, 0):
            for b in ring.runs(owner, 1):
                if ring.meet(a, b):
                    _spread(ring, _block(ring, named, keys, a, b), results, dout, dlse, tables, found, a, b)
        if step == 0:
            for name, t in found.items():
                sums[name] += t
            continue
        pending.append(_return(ring, step, found, sums))
        if len(pending) > 1:
            _collect(pending.pop(0), sums)
    for last in pending:
        _collect(last, sums)
    if "sink" in tables:
        row_dot = (dout.double() * out.double()).sum(-1) - (0.0 if dlse is None else dlse.double())
        weight = torch.exp(named["sink"].detach().double()[None, :, None] - (high.double() + low.double()))
        tables["sink"] -= torch.where(torch.isfinite(high), weight * row_dot, 0.0).sum((0, 2)).float()
    return {**tables, **sums}


def _spread(ring, some, results, dout, dlse, tables, found, a: _Run, b: _Run) -> None:
    rows = [t.narrow(2, a.local, a.count) for t in results]
    grads = {name: t for name, t in tables.items() if name != "sink"}
    for name in _BY_QUERY:
        if name in grads:
            grads[name] = grads[name].narrow(2, a.local, a.count)
    if "bias_dense" in grads:
        grads["bias_dense"] = grads["bias_dense"].narrow(2, a.local, a.count).narrow(3, b.row, b.count)
    for name in ("k", "v"):
        grads[name] = found[name].narrow(2, b.local, b.count)
    drows = dlse.narrow(2, a.local, a.count) if dlse is not None else None
    _native.backward(
        ring.place(a, b), some, rows[0], rows[1], dout.narrow(2, a.local, a.count), grads, True, drows, rows[2]
    )


def _return(ring: _Ring, step: int, found: dict, sums: dict):
    """Gradients of another rank's keys to it; those of own keys from the rank that had them in this step."""
    back = {name: torch.empty_like(t) for name, t in sums.items()} if ring.needs(ring.after(step), ring.rank) else {}
    works = ring.start(
        [(t, ring.before(step)) for t in found.values()], [(t, ring.after(step)) for t in back.values()]
    )
    return works, back, found  # found lives until it is sent


def _collect(pending, sums: dict) -> None:
    works, back, _ = pending
    for work in works:
        work.wait()
    for name, t in back.items():
        sums[name] += t


class _RingAttend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ring, names, *tensors):
        results = _forward(ring, dict(zip(names, tensors)))
        ctx.ring, ctx.names = ring, names
        ctx.save_for_backward(*results, *tensors)
        ctx.set_materialize_grads(False)
        return results[:2]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout, dlse):
        out, high, low, *tensors = ctx.saved_tensors
        dout = torch.zeros_like(out) if dout is None else dout.contiguous()
        dlse = None if dlse is None else dlse.contiguous()
        wanted = [name for name, need in zip(ctx.names, ctx.needs_input_grad[2:]) if need]
        named = dict(zip(ctx.names, tensors))
        grads = _backward(ctx.ring, named, (out, high, low), dout, dlse, wanted)
        return (None, None, *[grads[name] if name in wanted else None for name in ctx.names])


def _agree(group, layout: str, mine) -> list:
    """Number of rows of all ranks; the same error on all where one is wrong or differs."""
    found: list = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, mine, group=group)
    for rank, (error, _, _) in enumerate(found):
        if error is not None:
            raise LocusValueError(f"rank {rank}: {error}")
    for rank, (_, _, call) in enumerate(found):
        for name, value in call.items():
            if value != found[0][2].get(name) or len(call) != len(found[0][2]):
                raise LocusValueError(f"rank {rank}: {name}: found {value!r}, another than on rank 0")
    counts = [rows for _, rows, _ in found]
    if layout == "zigzag":
        for rank, count in enumerate(counts):
            for side, name in enumerate(("q", "k")):
                rows = sum(c[side] for c in counts)
                held = sum(past - first for first, past in _chunks(rows, len(counts), rank, layout))
                if count[side] != held:
                    raise LocusValueError(f"rank {rank}: {name}: found {count[side]} rows, expected {held} of {rows} in zigzag order")
    return counts


def _describe(named: dict, config: dict) -> dict:
    axes = _axes_of(config)
    call = {name: value for name, value in config.items() if name not in ("threads", "options")}
    call.update(config["options"])
    for name, t in named.items():
        shape = list(t.shape)
        rows = 2 if name in (*_BY_QUERY, "mask", "bias_dense") else None
        if name in _TRAVEL or name == "q_positions":
            rows = _axis(name, t, axes)
        if rows is not None:
            shape[rows] = -1
        call["tensor " + name] = (str(t.dtype), tuple(shape))
    return call


# Whose rows a tensor has on its axis of rows.
_ROWS_OF = {
    **{name: "k" for name in ("v", "key_mask", "k_positions")},
    **{name: "q" for name in ("pos_query", "gate", "q_positions", "mask", "bias_dense")},
}


def _check(named: dict, axes: int) -> Optional[str]:
    for name, t in named.items():
        if not isinstance(t, Tensor) or t.device.type != "cpu":
            return f"{name}: expected a tensor on the CPU"
        if name in ("q", "k", "v") and t.dim() != 4:
            return f"{name}: found {t.dim()} axes, expected 4"
        if name in _REFUSED:
            return f"{name}: ring_attend takes {_REFUSED[name]}"
    for name, like in _ROWS_OF.items():
        if name not in named:
            continue
        t, rows = named[name], named[like].shape[2]
        axis = 2 if name in (*_BY_QUERY, "mask", "bias_dense") else _axis(name, t, axes)
        if not 0 <= axis < t.dim() or t.shape[axis] != rows:
            return f"{name}: found {list(t.shape)}, expected the {rows} rows that this rank holds on axis {axis}"
    return None


def ring_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group=None,
    layout: str = "contiguous",
    scheme: str = "none",
    causal: bool = False,
    scale: Optional[float] = None,
    dropout: float = 0.0,
    seed: Optional[Tensor] = None,
    window_left: int = -1,
    window_right: int = -1,
    query_offset: Optional[int] = None,
    softcap: Optional[float] = None,
    return_lse: bool = False,
    **more,
):
    """``locus.torch.attend`` of a sequence that is spread over the ranks of `group`, differentiable in all tensors.

    >>> rows = ring_rows(T, layout="zigzag")                       # of this rank
    >>> out = ring_attend(q[:, :, rows], k[:, :, rows], v[:, :, rows], layout="zigzag", scheme="alibi", causal=True)

    All ranks call it together, each with its rows of q, k, v, ``key_mask``, ``q_positions`` and ``k_positions``; ``mask`` and
    ``bias_dense`` have its rows and the keys of all; tables are whole on every rank. ``contiguous`` rows may be of any number.
    Positions and dropout are those of the whole call: `seed` must be the same on all ranks.

    Gradients of q, k and v are those of the sum of the losses of all ranks. A table's gradient is the part that this rank's
    queries add to it, as for every other parameter of the model: sum them over the ranks (``all_reduce``), once per step.
    """
    _check_layout(layout)
    named = {"q": q, "k": k, "v": v}
    options = {}
    for name, value in more.items():
        if value is not None:
            (named if name in TENSORS else options)[name] = value
    error = f"scheme: ring_attend takes no {scheme}, which counts keys" if scheme in _COUNTING else None
    error = error or _check(named, _axes_of({"scheme": scheme, "options": options}))
    if dropout > 0 and seed is None:
        error = error or "seed: dropout needs one, the same on all ranks"
    config = {
        "scheme": scheme,
        "options": options,
        "causal": bool(causal),
        "window_left": window_left,
        "window_right": window_right,
        "query_offset": query_offset,
        "scale": scale,
        "dropout": dropout,
        "dropout_seed": int(seed) if seed is not None else 0,
        "softcap": softcap,
        "threads": torch.get_num_threads(),
    }
    rows = (q.shape[2], k.shape[2]) if error is None else (0, 0)
    counts = _agree(group, layout, (error, rows, {**_describe(named, config), "layout": layout} if error is None else {}))
    kind = q.dtype
    named = {n: t.float() if n in DIFFERENTIABLE and t.dtype is not torch.float32 else t for n, t in named.items()}
    out, lse = _RingAttend.apply(_Ring(group, layout, counts, config), tuple(named), *named.values())
    out = out if kind is torch.float32 else out.to(kind)
    return (out, lse) if return_lse else out
