# SPDX-License-Identifier: Apache-2.0
"""A score split into the terms it is a sum of."""

import functools
import operator
from dataclasses import dataclass

import numpy as np

from . import _native
from ._call import split
from ._plot import heatmap, plot


@dataclass(frozen=True)
class Explanation:
    """Every pair of one head: the terms of its score, the score, and the weight after softmax.

    A pair that causal, a window or a mask hides has terms 0, score -inf, weight 0 and visible False.
    """

    scheme: str
    batch: int
    head: int
    rows: range | tuple  # of queries; a tuple where they were given as a list
    keys: range | tuple
    query_offset: int  # the position of query row 0
    scale: float
    terms: dict  # name -> [rows, keys], in double precision; they add up to the score
    formulas: dict  # name -> formula of the term
    score: np.ndarray
    weight: np.ndarray
    visible: np.ndarray
    lse: np.ndarray

    @property
    def title(self):
        return f"{self.scheme}, head {self.head}"

    def panels(self, **about):
        """One heatmap per term, then the score and the weights."""
        labels = dict(x_label="key n", y_label="query m", **_axis("x", self.keys), **_axis("y", self.rows), **about)
        hidden = ~self.visible
        parts = [(name, values, self.formulas[name]) for name, values in self.terms.items()]
        parts.append(("score", self.score, "sum of the terms"))
        parts.append(("weight", self.weight, "exp(score - lse)"))
        return [
            heatmap(np.where(hidden, np.nan, values), **dict(dict(title=name, note=note), **labels))
            for name, values, note in parts
        ]

    def plot(self, **keywords):
        """A picture of it; see locus.plot."""
        return plot(self, **keywords)

    def _repr_svg_(self):
        return self.plot()._repr_svg_()


def _axis(axis, numbers):
    """What a panel calls rows or columns: the first number where they follow each other, else each by name."""
    if isinstance(numbers, range) and numbers.step == 1:
        return {f"{axis}_first": numbers.start}
    return {f"{axis}_names": [str(number) for number in numbers]}


def _chosen(what, given, count):
    """The numbers that `given` selects; None: all. `count()` tells how many there are."""
    if given is None or isinstance(given, range):
        return given
    if isinstance(given, slice):
        return range(*given.indices(count()))
    try:
        if hasattr(given, "__iter__"):
            return tuple(operator.index(number) for number in given)
        number = operator.index(given)
        return range(number, number + 1)
    except TypeError:
        raise TypeError(f"{what}: found {given!r}, expected a number, a range, a slice or a list of numbers") from None


_GAP = 16  # numbers closer than this are computed in one piece, with those in between


def _pieces(numbers):
    """(first, count) of the pieces that hold all of `numbers`, in ascending order."""
    if numbers is None:
        return [(0, -1)]
    ascending = np.unique(np.array(numbers, np.int64))
    cuts = np.flatnonzero(np.diff(ascending) > _GAP) + 1
    parts = np.split(ascending, cuts)
    return [(int(part[0]), int(part[-1] - part[0] + 1)) if len(part) else (0, 0) for part in parts]


def _places(numbers, pieces):
    """Where `numbers` are among those of all pieces."""
    held = np.concatenate([np.arange(first, first + count) for first, count in pieces])
    return np.searchsorted(held, np.array(numbers, np.int64))


def explain(q=None, k=None, v=None, mask=None, dropout=0.0, causal=False, scale=None, *, scheme="none", heads=None,
            batch=0, head=0, rows=None, keys=None, **more):
    """The score of every pair of one head, split into its terms, in double precision.

    >>> e = locus.explain(q, k, v, scheme="t5", bias=table, head=3)
    >>> e.terms["content"] + e.terms["bias"]                 # is e.score
    >>> e.plot()                                             # or let a notebook show e

    Takes what `attend` takes, or, with x, what `layer` takes. `rows` and `keys` choose queries and keys of long inputs:
    a number, a range, a slice or a list of numbers; the results keep both axes. The rest of the library never builds
    a matrix of all pairs; this does.
    """
    settings = {"dropout": dropout, "causal": causal, "scale": scale, "heads": heads}
    given = {"q": q, "k": k, "v": v, "mask": mask}
    config, tensors = split(scheme, given, settings, more)
    kind = "layer" if tensors.get("x") is not None else "attend"

    def piece(rows, keys):
        return _native.explain(kind, config, tensors, (batch, head, *rows, *keys))

    nothing = functools.cache(lambda: piece((0, 0), (0, 0)))
    rows = _chosen("rows", rows, lambda: nothing()["all_queries"])
    keys = _chosen("keys", keys, lambda: nothing()["all_keys"])
    row_pieces, key_pieces = _pieces(rows), _pieces(keys)
    raw = [[piece(r, k) for k in key_pieces] for r in row_pieces]
    some = raw[0][0]
    names = [name for name, _ in some["names"]]

    def chosen(joined):
        """Of [.., rows, keys] of all pieces what was asked for."""
        if rows is not None:
            joined = joined[..., _places(rows, row_pieces), :]
        return joined if keys is None else joined[..., _places(keys, key_pieces)]

    def matrix(name, dtype=np.float64, terms=()):
        def one(part):
            return np.frombuffer(part[name], dtype).reshape(*terms, part["queries"], part["keys"])

        return chosen(np.block([[one(part) for part in line] for line in raw]))

    terms = matrix("terms", terms=(len(names),))
    lse = np.concatenate([np.frombuffer(line[0]["lse"]) for line in raw])
    return Explanation(
        scheme=scheme,
        batch=batch,
        head=head,
        rows=range(terms.shape[1]) if rows is None else rows,
        keys=range(terms.shape[2]) if keys is None else keys,
        query_offset=some["query_offset"],
        scale=some["scale"],
        terms=dict(zip(names, terms)),
        formulas=dict(some["names"]),
        score=matrix("score"),
        weight=matrix("weight"),
        visible=matrix("visible", np.bool_),
        lse=lse if rows is None else lse[_places(rows, row_pieces)],
    )
