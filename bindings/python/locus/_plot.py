# SPDX-License-Identifier: Apache-2.0
"""Pictures: numbers in, an SVG out that shows itself in a notebook."""

import zlib

import numpy as np

from . import _native


class Figure:
    """A picture. A notebook shows it; `svg`, `text()` and `save()` give it to others."""

    def __init__(self, description, theme="auto", width=960):
        self._description = description
        self._theme = theme
        self._width = width
        self.svg = self._render("svg", width)

    def _render(self, format, width, prefix=None):
        return _native.render(self._description, format, self._theme, width, prefix)

    def _repr_svg_(self):
        # Pictures of one page must not share the names of their parts.
        return self._render("svg", self._width, f"locus-{zlib.crc32(self.svg.encode()):08x}")

    def text(self, columns=80):
        """The picture in plain letters, for a terminal."""
        return self._render("terminal", columns)

    def save(self, path):
        """Write the picture; the ending says how: .svg, .txt, .csv or .json."""
        ending = str(path).rpartition(".")[2]
        formats = {"svg": "svg", "txt": "terminal", "csv": "csv", "json": "json"}
        if ending not in formats:
            raise ValueError(f"path: found the ending {ending!r}, expected svg, txt, csv or json")
        text = self.svg
        if ending != "svg":
            text = self._render(formats[ending], 80 if ending == "txt" else 0)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __str__(self):
        return self.svg


def _numbers(values, axes):
    array = np.ascontiguousarray(values, np.float64)
    if array.ndim != axes:
        raise ValueError(f"plot: found {array.ndim} axes, expected {axes}")
    return array


def heatmap(values, **about):
    """A panel of a matrix; `about` holds title, note, x_label, y_label, x_names, y_names, value_name ..."""
    return dict(about, values=_numbers(values, 2))


def curves(series, **about):
    """A panel of curves: name -> y, or name -> (x, y)."""
    rows = []
    for name, points in series.items():
        x, y = points if isinstance(points, tuple) else (None, points)
        rows.append((str(name), None if x is None else _numbers(x, 1), _numbers(y, 1)))
    return dict(about, series=rows)


def picture(
    scheme, *, theme="auto", width=None, what=None, tokens=None, length=None, heads=None, dim=None, head=None,
    window=None, causal=False, seed=2017, case=None, **options,
):
    """What `locus plot SCHEME` draws, as a Figure; `tokens` is a sentence or a list, `case` the path of a case file."""
    if tokens is not None:
        tokens = tuple(tokens.split() if isinstance(tokens, str) else tokens)
    numbers = (length or 0, heads or 0, dim or 0, -1 if head is None else head, -1 if window is None else window,
               causal, seed)
    chosen = tuple((name, value) for name, value in options.items() if value is not None)
    return Figure(_native.picture(scheme, what, tokens, numbers, chosen, case), theme, width or 0)


def plot(data, *, title=None, caption=None, description=None, theme="auto", width=None, **about):
    """A picture of a scheme, of a matrix, of curves, or of an explanation.

    >>> locus.plot("t5")
    >>> locus.plot("shaw", what="distance", tokens="the cat sat on the mat", causal=True, clip_left=3)
    >>> locus.plot(locus.attend(q, k, v)[0, 0], title="out", x_label="channel", y_label="token")
    >>> locus.plot({"alibi": -slope * distance, "t5": bias[bucket, 0]}, x_label="m - n", y_label="bias")
    >>> locus.plot(locus.explain(q, k, v, scheme="t5", bias=table))

    The name of a scheme gives what `locus plot` draws: `what` (None: what shows it best), `tokens` (a sentence or a
    list) or `length`, `heads`, `head`, `dim`, `causal`, `window`, `seed`, `case` and the options of the scheme.
    A matrix becomes a heatmap (NaN: not there), a dict of name -> y or name -> (x, y) becomes curves, an
    explanation one heatmap per term, the score and the weights. `about` labels the axes: x_label, y_label,
    x_names, y_names, x_first, y_first, note, value_name. Returns a Figure.
    """
    if isinstance(data, str):
        if not title is caption is description is None:
            raise TypeError("plot: the picture of a scheme has its own title, caption and description")
        return picture(data, theme=theme, width=width, **about)
    if hasattr(data, "panels"):
        panels = data.panels(**about)
        title = title or data.title
    elif isinstance(data, dict):
        panels = [curves(data, **about)]
    else:
        panels = [heatmap(data, **about)]
    return Figure(dict(title=title, caption=caption, description=description, panels=panels), theme, 960 if width is None else width)
