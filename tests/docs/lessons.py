# SPDX-License-Identifier: Apache-2.0
"""lessons.py FILE: the Python of docs/lessons.md, as one program, prints what stands below each call; and the terms are
those of the formulas, written here once more in plain numbers."""
import contextlib
import io
import math
import re
import sys

A, B = (1, 0), (0, 1)
X = [A, B, A]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def turned(vector, angle):
    x, y = vector
    return x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)


def crossed(p):
    """The four terms of positions in the input, for the last token."""
    return {"content": [dot(X[2], x) for x in X], "content-position": [dot(X[2], p[n]) for n in range(3)],
            "position-content": [dot(p[2], x) for x in X], "position-position": [dot(p[2], p[n]) for n in range(3)]}


CONTENT = {"content": [1, 0, 1]}
SHAW = [(2, 0), (0, 0), (0, 1)]
XL = {-2: (0, 0), -1: (0, 0), 0: (0, 1), 1: (1, 0), 2: (1, 1)}
DEBERTA = [(0, 0), (0, 1), (1, 0), (3, 1)], [(0, 0), (1, 0), (0, 2), (1, 4)]
ROWS = [min(3, max(0, 2 - n + 2)) for n in range(3)]
EXPECTED = [
    ("none", CONTENT),
    ("learned", crossed([(0, 0), (1, 0), (1, 1)])),
    ("sinusoidal", crossed([(math.sin(i), math.cos(i)) for i in range(3)])),
    ("shaw", {**CONTENT, "content-position": [dot(A, SHAW[max(-1, min(1, n - 2)) + 1]) for n in range(3)]}),
    ("transformer_xl", {**CONTENT, "content-position": [dot(A, XL[2 - n]) for n in range(3)], "u.k": [dot((1, 2), x) for x in X],
                        "w.r": [dot((0, 2), XL[2 - n]) for n in range(3)]}),
    ("t5", {**CONTENT, "bias": [1, 1, 0]}),  # a bucket for 0, another for what lies before
    ("tupe", {**CONTENT, "position-position": [dot((1, 1), p) for p in ((0, 1), (1, 0), (2, 0))]}),
    ("deberta", {**CONTENT, "content-position": [dot(A, DEBERTA[0][t]) for t in ROWS],
                 "position-content": [dot(X[n], DEBERTA[1][t]) for n, t in enumerate(ROWS)]}),
    ("alibi", {**CONTENT, "bias": [-0.5 * (2 - n) for n in range(3)]}),
    ("kerple", {**CONTENT, "bias": [-math.log(1 + 2 - n) for n in range(3)]}),
    ("rope", {"rotation": [dot(turned(A, 2), turned(X[n], n)) for n in range(3)]}),
    ("xpos", None),  # its decay is not one of pen and paper
]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    scope, found, calls = {}, [], []
    for block in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(block, scope)
        lines = out.getvalue().splitlines()
        if not block.endswith("".join("# %s\n" % line for line in lines)):
            found.append("prints\n%s\nbut says\n%s" % ("\n".join(lines), block))
        if "locus" not in calls and "locus" in scope:
            calls, explain = ["locus"], scope["locus"].explain
            scope["locus"].explain = lambda *a, **k: calls.append((k.get("scheme", "none"), explain(*a, **k))) or calls[-1][1]
            with contextlib.redirect_stdout(io.StringIO()):
                scope["explain"](*scope["qkv"])
    if [name for name, _ in calls[1:]] != [name for name, _ in EXPECTED]:
        found.append("schemes are %s" % [name for name, _ in calls[1:]])
    for (name, explained), (_, terms) in zip(calls[1:], EXPECTED):
        for term, want in (terms or {}).items():
            got = [float(value) for value in explained.terms[term][2]]
            if max(abs(a - b) for a, b in zip(got, want)) > 1e-12:
                found.append("%s, %s: %s, expected %s" % (name, term, got, want))
        total = [sum(float(term[2][n]) for term in explained.terms.values()) for n in range(3)]
        if max(abs(a - float(b)) for a, b in zip(total, explained.score[2])) > 1e-12:
            found.append("%s: the terms do not add up" % name)
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
