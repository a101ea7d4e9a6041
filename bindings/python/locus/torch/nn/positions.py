# SPDX-License-Identifier: Apache-2.0
"""What a scheme adds to ``Attention``: its parameters, initialised as its source says, and its part of the call.

A position module may add rows to the input (``embed``) and gives keywords of ``locus.torch.attend`` (``keywords``).
Parameters are named as the tensors of the scheme in docs/schemes.md; a projection is a linear module of that name.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn

from locus import _native
from locus._errors import LocusTypeError, LocusValueError
from locus._schemes import schemes


class Shape(NamedTuple):
    """What a scheme's parameters depend on."""

    dim: int
    heads: int
    head_dim: int
    max_tokens: Optional[int]
    causal: bool


class Call(NamedTuple):
    """One call: query 0 stands at position `offset`, key 0 at position 0."""

    queries: int
    keys: int
    offset: int


def sinusoids(table: str, width: int, first: int, count: int) -> Tensor:
    """[count,width]: rows of the positions first, first + 1, ..."""
    rows = _native.sinusoids(table, width, first, count)
    return torch.frombuffer(rows, dtype=torch.float64).view(count, width).float() if count else torch.empty(0, width)


class Position(nn.Module):
    """A scheme without parameters: none, alibi, rope, xpos. Options are those of docs/schemes.md."""

    def __init__(self, scheme: str, shape: Shape, **options):
        super().__init__()
        self.scheme, self.shape, self.options = scheme, shape, options

    def embed(self, x: Tensor, first: int) -> Tensor:
        """The input with what positions first, first + 1, ... add to it."""
        return x

    def keywords(self, call: Call) -> dict:
        return {"scheme": self.scheme, **self.options}

    def extra_repr(self) -> str:
        return ", ".join([self.scheme, *(f"{name}={value}" for name, value in self.options.items())])

    def _normal(self, *shape, std: float = 0.02) -> nn.Parameter:
        return nn.Parameter(torch.randn(shape) * std)

    @staticmethod
    def _need_tokens(scheme: str, shape: Shape) -> int:
        if shape.max_tokens is None:
            raise LocusTypeError(f"scheme {scheme}: max_tokens is missing, which gives the rows of its table")
        return shape.max_tokens


# ---- at the input ----


class Sinusoidal(Position):
    """Vaswani et al. 2017: x + p_i. Nothing is learned."""

    def __init__(self, scheme, shape, table="paper", x_scale=1.0, first_position=0):
        super().__init__(scheme, shape, table=table, x_scale=x_scale, first_position=first_position)

    def embed(self, x, first):
        o = self.options
        rows = sinusoids(o["table"], x.shape[-1], first + o["first_position"], x.shape[-2])
        return o["x_scale"] * x + rows.to(x)

    def keywords(self, call):
        return {"scheme": self.scheme}


class Learned(Position):
    """Devlin et al. 2019: one row per position, normal with deviation 0.02."""

    def __init__(self, scheme, shape):
        super().__init__(scheme, shape)
        self.pos = self._normal(self._need_tokens(scheme, shape), shape.dim)

    def embed(self, x, first):
        last = first + x.shape[-2]
        if last > self.pos.shape[0]:
            raise LocusValueError(f"scheme learned: found {last} positions, expected at most max_tokens = {self.pos.shape[0]}")
        return x + self.pos[first:last]

    def keywords(self, call):
        return {"scheme": self.scheme}


# ---- relative vectors ----


class Shaw(Position):
    """Shaw et al. 2018: rows for keys and values, uniform as Glorot's (the authors' default)."""

    def __init__(self, scheme, shape, clip_left=16, clip_right=16, values=True):
        super().__init__(scheme, shape, clip_left=clip_left, clip_right=clip_right)
        rows = clip_left + clip_right + 1
        self.rel_k = nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, shape.head_dim)))
        self.rel_v = nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, shape.head_dim))) if values else None

    def keywords(self, call):
        return {"rel_k": self.rel_k, "rel_v": self.rel_v, **super().keywords(call)}


class RelativeKey(Position):
    """Huang et al. 2020: one row per distance, normal with deviation 0.02 as in BERT."""

    def __init__(self, scheme, shape):
        super().__init__(scheme, shape)
        self.rel_k = self._normal(2 * self._need_tokens(scheme, shape) - 1, shape.head_dim)

    def keywords(self, call):
        return {"rel_k": self.rel_k, **super().keywords(call)}


class TransformerXL(Position):
    """Dai et al. 2019: projected sinusoids and two biases, all normal with deviation 0.02 as the authors' code."""

    def __init__(self, scheme, shape, table="half", clamp=0):
        super().__init__(scheme, shape, table=table, clamp=clamp)
        self.w_r = nn.Linear(shape.dim, shape.heads * shape.head_dim, bias=False)
        nn.init.normal_(self.w_r.weight, std=0.02)
        self.u = self._normal(shape.heads, shape.head_dim)
        self.w = self._normal(shape.heads, shape.head_dim)

    def keywords(self, call):
        least, most = int(call.offset - call.keys + 1), int(call.offset + call.queries - 1)
        least = max(least, 0) if self.shape.causal else least
        clamp = self.options["clamp"]
        if clamp > 0:
            least, most = max(least, -clamp), min(most, clamp)
        rows = sinusoids(self.options["table"], self.shape.dim, least, max(most - least + 1, 1))
        rel_k = self.w_r(rows.to(self.w_r.weight)).view(-1, self.shape.heads, self.shape.head_dim).transpose(0, 1)
        return {"scheme": self.scheme, "rel_k": rel_k, "u": self.u, "w": self.w, "delta_min": least, "clamp": clamp}


class Deberta(Position):
    """He et al. 2021: relative rows before their projections, all normal with deviation 0.02.

    ``shared``: the projections of keys and queries serve them (DeBERTa-v3); else they have their own.
    """

    def __init__(self, scheme, shape, span=256, buckets=0, max_distance=0, c2p=True, p2c=True, shared=False):
        super().__init__(scheme, shape, span=span, buckets=buckets, max_distance=max_distance)
        self.terms = tuple(name for name, wanted in (("rel_k", c2p), ("rel_q", p2c)) if wanted)
        self.shared = shared
        self.rel = self._normal(2 * span, shape.dim)
        for name, wanted in (("w_rk", c2p and not shared), ("w_rq", p2c and not shared)):
            linear = nn.Linear(shape.dim, shape.heads * shape.head_dim, bias=False) if wanted else None
            if linear is not None:
                nn.init.normal_(linear.weight, std=0.02)
            self.add_module(name, linear)

    def projected(self, attention) -> dict:
        own = {"rel_k": attention.k, "rel_q": attention.q} if self.shared else {"rel_k": self.w_rk, "rel_q": self.w_rq}
        shape = (-1, self.shape.heads, self.shape.head_dim)
        return {name: own[name](self.rel).view(shape).transpose(0, 1) for name in self.terms}


class Tupe(Position):
    """Ke et al. 2021: positions with projections of their own, normal with deviation 0.02; bias and [CLS] rows start at 0."""

    def __init__(self, scheme, shape, buckets=32, max_distance=128, bidirectional=None, relative=True, cls=False):
        both_ways = not shape.causal if bidirectional is None else bool(bidirectional)
        options = dict(buckets=buckets, max_distance=max_distance, bidirectional=int(both_ways)) if relative else {}
        super().__init__(scheme, shape, **options)
        self.pos = self._normal(self._need_tokens(scheme, shape), shape.dim)
        self.w_pq = nn.Linear(shape.dim, shape.heads * shape.head_dim, bias=False)
        self.w_pk = nn.Linear(shape.dim, shape.heads * shape.head_dim, bias=False)
        for linear in (self.w_pq, self.w_pk):
            nn.init.normal_(linear.weight, std=0.02)
        self.bias = nn.Parameter(torch.zeros(buckets, shape.heads)) if relative else None
        self.cls = nn.Parameter(torch.zeros(2, shape.heads)) if cls else None

    def keywords(self, call):
        rows = self.pos[: max(call.offset + call.queries, call.keys)]
        shape = (-1, self.shape.heads, self.shape.head_dim)
        pos_q, pos_k = (linear(rows).view(shape).transpose(0, 1) for linear in (self.w_pq, self.w_pk))
        return {"pos_q": pos_q, "pos_k": pos_k, "bias": self.bias, "cls": self.cls, **super().keywords(call)}


# ---- biases ----


class T5(Position):
    """Raffel et al. 2020: one bias per bucket and head, normal with deviation dim^-0.5; the scale is 1."""

    def __init__(self, scheme, shape, buckets=32, max_distance=128, bidirectional=None):
        both_ways = not shape.causal if bidirectional is None else bool(bidirectional)
        super().__init__(scheme, shape, buckets=buckets, max_distance=max_distance, bidirectional=int(both_ways))
        self.bias = self._normal(buckets, shape.heads, std=shape.dim**-0.5)

    def keywords(self, call):
        return {"bias": self.bias, **super().keywords(call)}


class Alibi(Position):
    """Press et al. 2022: the published slopes; ``learned`` makes parameters of them."""

    def __init__(self, scheme, shape, learned=False):
        super().__init__(scheme, shape)
        rules = _native.rules({"scheme": "alibi"}, {name: (1, shape.heads, 1, 1) for name in "qkv"})
        self.slopes = nn.Parameter(torch.tensor(rules["slopes"])) if learned else None

    def keywords(self, call):
        return {"slopes": self.slopes, **super().keywords(call)}


class Kerple(Position):
    """Chi et al. 2022: p uniform in (0, 2), a uniform in (0, 1), both kept at 0.01 or above as the authors' code."""

    LEAST = 0.01

    def __init__(self, scheme, shape, form="log"):
        super().__init__(scheme, shape, form=form)
        self.p = nn.Parameter(2 * torch.rand(shape.heads))
        self.a = nn.Parameter(torch.rand(shape.heads))

    def keywords(self, call):
        most = 2.0 if self.options["form"] == "power" else None
        return {"a": self.a.clamp(min=self.LEAST), "p": self.p.clamp(min=self.LEAST, max=most), **super().keywords(call)}


class Fire(Position):
    """Li et al. 2024: a network of one hidden layer over the relative distance; c, threshold and width as the authors' code."""

    def __init__(self, scheme, shape, hidden=32, c=0.1, threshold=512.0):
        super().__init__(scheme, shape)
        first, second = nn.Linear(1, hidden), nn.Linear(hidden, shape.heads)  # as these begin
        self.w_1, self.b_1 = nn.Parameter(first.weight[:, 0].detach().clone()), first.bias
        self.w_2, self.b_2 = second.weight, second.bias
        self.c = nn.Parameter(torch.tensor([float(c)]))
        self.threshold = nn.Parameter(torch.tensor([float(threshold)]))

    def keywords(self, call):
        return {**dict(self.named_parameters()), **super().keywords(call)}


class Distance(Position):
    """One number per head and distance, all 0 at first."""

    def __init__(self, scheme, shape, clamp=0):
        last = self._need_tokens(scheme, shape) - 1
        super().__init__(scheme, shape, delta_min=0 if shape.causal else -last, clamp=clamp)
        self.bias = nn.Parameter(torch.zeros(shape.heads, last + 1 if shape.causal else 2 * last + 1))

    def keywords(self, call):
        return {"bias": self.bias, **super().keywords(call)}


class Table(Position):
    """Any map of distances to rows: ``rows``, that of distance delta_min first; ``tensors`` says which tables it serves."""

    def __init__(self, scheme, shape, rows=None, delta_min=None, clamp=0, tensors=("bias",)):
        if rows is None:
            raise LocusTypeError(f"scheme {scheme}: rows is missing, the row of every distance from delta_min on")
        rows = torch.as_tensor(rows, dtype=torch.int64, device="cpu")
        least = (0 if shape.causal else -(len(rows) // 2)) if delta_min is None else delta_min
        super().__init__(scheme, shape, delta_min=least, clamp=clamp)
        self.register_buffer("rows", rows)
        count = int(rows.max()) + 1 if len(rows) else 0
        sizes = {"rel_k": (count, shape.head_dim), "rel_q": (count, shape.head_dim), "rel_v": (count, shape.head_dim)}
        for name in tensors:
            if name != "bias" and name not in sizes:
                raise LocusValueError(f"tensors: found {name!r}, expected names among {', '.join(sizes)}, bias")
            self.register_parameter(
                name, nn.Parameter(torch.zeros(count, shape.heads)) if name == "bias" else self._normal(*sizes[name])
            )

    def keywords(self, call):
        return {**dict(self.named_parameters()), "rows": self.rows, **super().keywords(call)}


class Declared(Position):
    """A scheme of the library without a class of its own here: parameters by its declaration, normal with deviation 0.02.

    An axis that is none of H, D, Dv, E and no option is given by its name (``F=32``); ``tensors`` names optional ones to have.
    """

    def __init__(self, scheme, shape, tensors=(), **options):
        declared = next(d for d in schemes() if d.name == scheme)
        wanted = [t for t in declared.tensors if "attend" in t.levels and (t.required or t.name in tensors)]
        sizes = {"H": shape.heads, "D": shape.head_dim, "Dv": shape.head_dim, "E": shape.dim}
        sizes.update((o.name, o.default) for o in declared.options)
        axes = {axis for t in wanted for axis in self._axes(t)} - {o.name for o in declared.options}
        sizes.update(options)
        super().__init__(scheme, shape, **{name: value for name, value in options.items() if name not in axes})
        for tensor in wanted:
            self.register_parameter(tensor.name, self._normal(*self._extents(tensor, sizes)))

    @staticmethod
    def _axes(tensor):
        return tensor.shape.split(", ")[0].split()  # of "R D, H R D", the table that heads share

    def _extents(self, tensor, sizes):
        extents = [int(axis) if axis.isdigit() else sizes.get(axis) for axis in self._axes(tensor)]
        if None in extents or not tensor.gradient:
            raise LocusValueError(
                f"scheme {self.scheme}: tensor {tensor.name}: found no size for {tensor.shape}, expected it by the name of the axis, "
                "or use locus.torch.attend"
            )
        return extents

    def keywords(self, call):
        return {**dict(self.named_parameters()), **super().keywords(call)}


class _Function(nn.Module):
    """A function or lambda in the place of a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, distance):
        return self.function(distance)


class ByDistance(Position):
    """A bias by distance from a module or function of one's own: bias(distance) -> [R,H], distance = query position - key position.

    ``distance`` is an int64 tensor [R]. The values go to the kernels as they are (scheme ``distance``); no n x n array
    exists in either direction, and gradients reach the module.
    """

    def __init__(self, bias: nn.Module, shape: Shape):
        super().__init__("distance", shape)
        self.bias = bias

    def keywords(self, call):
        least, most = int(call.offset - call.keys + 1), int(call.offset + call.queries - 1)
        least = max(least, 0) if self.shape.causal else least
        values = self._values(torch.arange(least, max(most, least) + 1))
        return {"scheme": self.scheme, "bias": values.mT, "delta_min": least}

    def _values(self, distance: Tensor) -> Tensor:
        values = self.bias(distance)
        wanted = (distance.shape[0], self.shape.heads)
        if not isinstance(values, Tensor) or tuple(values.shape) != wanted:
            found = list(values.shape) if isinstance(values, Tensor) else type(values)
            raise LocusValueError(f"bias by distance: found {found}, expected a tensor of shape {list(wanted)} (distances, heads)")
        return values


# ---- by name ----

_CLASSES = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "shaw": Shaw,
    "relative_key": RelativeKey,
    "relative_key_query": RelativeKey,
    "transformer_xl": TransformerXL,
    "t5": T5,
    "tupe": Tupe,
    "deberta": Deberta,
    "alibi": Alibi,
    "kerple": Kerple,
    "fire": Fire,
    "distance": Distance,
    "table": Table,
}
_PRESETS = {"rope": {"pairing": "half"}}


def position_of(scheme, shape: Shape, options: dict) -> Position:
    """The position module of a scheme's name, or of a module that gives a bias by distance."""
    if isinstance(scheme, Position):
        return scheme
    if callable(scheme):
        if options:
            raise LocusTypeError(f"option {next(iter(options))}: a module or function as scheme has its own options")
        return ByDistance(scheme if isinstance(scheme, nn.Module) else _Function(scheme), shape)
    declared = {one.name: one for one in schemes()}
    if scheme not in declared:
        raise LocusValueError(f"scheme: found {scheme!r}, expected a module, a function or one of {', '.join(declared)}")
    if "causal" in declared[scheme].traits and not shape.causal:
        raise LocusValueError(f"causal: found False, expected True (scheme {scheme} looks back only)")
    try:
        return _class_of(declared[scheme])(scheme, shape, **{**_PRESETS.get(scheme, {}), **options})
    except TypeError as error:
        if isinstance(error, LocusTypeError):
            raise
        raise LocusTypeError(f"scheme {scheme}: {str(error).split('__init__() ')[-1]}") from None


def _class_of(declared):
    own = any("attend" in tensor.levels and not tensor.planned for tensor in declared.tensors)
    return _CLASSES.get(declared.name, Declared if own else Position)
