#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw-terms.py: `locus schemes --json` on stdin, docs/terms.svg on stdout.

Which of the eight places where position can enter attention each scheme uses. Drawn from
the declarations; tests/docs checks that the committed picture is not stale."""
import json
import sys

TERMS = ["content", "content-position", "position-content", "position-position", "bias", "value", "rotation", "input"]
LEFT, TOP, CELL, WIDTH = 190, 128, 26, 66

schemes = json.load(sys.stdin)
rows = [(s["name"], [t in s["terms"] for t in TERMS]) for s in schemes]
width, height = LEFT + WIDTH * len(TERMS) + 20, TOP + CELL * len(rows) + 18
out = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ' font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" role="img">',
    "<title>Which terms of the score each scheme uses</title>",
    f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
]
for column, term in enumerate(TERMS):
    x = LEFT + WIDTH * column + WIDTH // 2
    out.append(f'<text transform="translate({x},{TOP - 12}) rotate(-40)" fill="#333333">{term}</text>')
for line, (name, marks) in enumerate(rows):
    y = TOP + CELL * line
    if line % 2 == 0:
        out.append(f'<rect x="10" y="{y}" width="{width - 20}" height="{CELL}" fill="#f1f4f8"/>')
    out.append(f'<text x="{LEFT - 14}" y="{y + 18}" text-anchor="end" fill="#111111">{name}</text>')
    for column, used in enumerate(marks):
        x, middle = LEFT + WIDTH * column + WIDTH // 2, y + CELL // 2
        out.append(
            f'<circle cx="{x}" cy="{middle}" r="7" fill="#1f6fb2"/>' if used
            else f'<circle cx="{x}" cy="{middle}" r="2" fill="#b8c2cc"/>'
        )
out.append("</svg>")
print("\n".join(out))
