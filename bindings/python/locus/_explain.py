# SPDX-License-Identifier: Apache-2.0
"""A score split into the terms it is a sum of."""

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
    rows: range  # of queries
    keys: range
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
        labels = dict(x_label="key n", y_label="query m", x_first=self.keys.start, y_first=self.rows.start, **about)
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


def _range(whole):
    """A range as (first, count); None and open ends reach to the last row."""
    if whole is None:
        return 0, -1
    if isinstance(whole, slice):
        if whole.step not in (None, 1):
            raise ValueError("rows, keys: expected a step of 1")
        first = whole.start or 0
        return first, -1 if whole.stop is None else whole.stop - first
    return whole.start, len(whole)


def explain(q=None, k=None, v=None, mask=None, dropout=0.0, causal=False, scale=None, *, scheme="none", heads=None,
            batch=0, head=0, rows=None, keys=None, **more):
    """The score of every pair of one head, split into its terms, in double precision.

    >>> e = locus.explain(q, k, v, scheme="t5", bias=table, head=3)
    >>> e.terms["content"] + e.terms["bias"]                 # is e.score
    >>> e.plot()                                             # or let a notebook show e

    Takes what `attend` takes, or, with x, what `layer` takes. `rows` and `keys` are ranges or slices, for
    long inputs. The rest of the library never builds a matrix of all pairs; this does.
    """
    settings = {"dropout": dropout, "causal": causal, "scale": scale, "heads": heads}
    given = {"q": q, "k": k, "v": v, "mask": mask}
    config, tensors = split(scheme, given, settings, more)
    kind = "layer" if tensors.get("x") is not None else "attend"
    raw = _native.explain(kind, config, tensors, (batch, head, *_range(rows), *_range(keys)))
    shape = raw["queries"], raw["keys"]

    def matrix(name, dtype=np.float64):
        return np.frombuffer(raw[name], dtype)

    names = [name for name, _ in raw["names"]]
    first_row, first_key = _range(rows)[0], _range(keys)[0]
    return Explanation(
        scheme=scheme,
        batch=batch,
        head=head,
        rows=range(first_row, first_row + shape[0]),
        keys=range(first_key, first_key + shape[1]),
        query_offset=raw["query_offset"],
        scale=raw["scale"],
        terms=dict(zip(names, matrix("terms").reshape(len(names), *shape))),
        formulas=dict(raw["names"]),
        score=matrix("score").reshape(shape),
        weight=matrix("weight").reshape(shape),
        visible=matrix("visible", np.bool_).reshape(shape),
        lse=matrix("lse"),
    )
