#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw-kernels.py FOLDER: the pictures of docs/performance.md, kernel-*.svg.

Drawn from the rules that they explain; tests/docs checks that the committed ones are not stale."""
import sys
from pathlib import Path

CELL = 22
BLUE, PALE, ORANGE, GREEN, GREY, INK = "#1f6fb2", "#d5e6f5", "#e08a2c", "#4f9d69", "#e8ecf0", "#222222"


class Picture:
    def __init__(self, title, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" role="img">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def box(self, x, y, width, height, fill, stroke="#ffffff"):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{stroke}"/>')

    def text(self, x, y, words, anchor="start", fill=INK, size=13):
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">{words}</text>')

    def cell(self, x, y, column, row, fill, words=""):
        self.box(x + column * CELL, y + row * CELL, CELL, CELL, fill)
        if words != "":
            dark = fill in (BLUE, ORANGE, GREEN)
            self.text(x + column * CELL + CELL / 2, y + row * CELL + 15, words, "middle", "#ffffff" if dark else INK, 11)

    def line(self, x1, y1, x2, y2):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-dasharray="3 3"/>')

    def save(self, path):
        path.write_text("\n".join(self.parts + ["</svg>"]) + "\n")


def tile():
    """Scores are never whole: a tile of them, and in it a register tile."""
    p = Picture("A tile of the scores, and the register tile inside it", 760, 330)
    p.text(130, 30, "K, packed: a panel is 64 keys, turned so that a row holds one channel of all of them")
    for panel in range(8):
        p.box(130 + panel * 50, 40, 48, 40, BLUE if panel == 2 else PALE)
    p.text(20, 130, "Q: 48 rows")
    for band in range(8):
        p.box(60, 140 + band * 18, 50, 16, ORANGE if band == 3 else GREY)
    for panel in range(8):
        for band in range(8):
            p.box(130 + panel * 50, 140 + band * 18, 48, 16, GREEN if (panel, band) == (2, 3) else GREY)
    p.line(254, 80, 254, 190)
    p.line(110, 202, 228, 202)
    p.text(130, 310, "S: 48 queries x 512 keys, 96 KB, in the second cache; softmax, then times V, then forgotten")
    p.text(545, 160, "6 x 64 scores are 24 vectors")
    p.text(545, 180, "of 16, all in registers: per")
    p.text(545, 200, "channel 4 loads of keys,")
    p.text(545, 220, "6 broadcasts of queries,")
    p.text(545, 240, "24 multiply-adds")
    return p


def slices():
    """A bias by distance: the same vector for every row, one place further left."""
    rows, keys = 5, 9
    p = Picture("A bias by distance is one vector; row i reads a slice of it", 640, 290)
    p.text(20, 28, "one vector per head, by distance n - m:")
    x, y = 130, 42
    for z in range(rows - 1 + keys):
        p.cell(x, y, z, 0, PALE, z - rows + 1)
    for i in range(rows):
        p.text(118, y + 62 + i * CELL, f"query {i}", "end")
        for j in range(keys):
            p.cell(x, y + 46, rows - 1 - i + j, i, BLUE if j == i else GREY, j - i)
    p.text(20, 232, "Row i is the slice that starts i places further left.")
    p.text(20, 252, "Sixteen keys are sixteen neighbours: one load, no index.")
    p.text(20, 272, "T5, ALiBi, KERPLE: buckets and slopes are expanded to this vector once per head.")
    return p


def strip():
    """q R for relative tables rolls along with the keys."""
    rows, keys = 4, 6
    p = Picture("The rolling strip of products with a relative table", 760, 330)
    for step, y in ((0, 60), (1, 190)):
        first = step * keys
        p.text(20, y - 14, f"keys {first} to {first + keys - 1}:" if step == 0 else f"keys {first} to {first + keys - 1}: the strip has rolled on")
        for i in range(rows):
            p.text(98, y + 15 + i * CELL, f"q{i}", "end")
            for z in range(rows - 1 + keys):
                entry = first + z - rows + 1
                used = rows - 1 - i <= z < rows - 1 - i + keys
                fresh = step == 0 or z >= rows - 1
                p.cell(110, y, z, i, (ORANGE if fresh else BLUE) if used else GREY, entry)
    p.text(330, 80, "Each cell: q_i · R[distance], computed once.")
    p.text(330, 102, "A row of scores reads the coloured slice,")
    p.text(330, 124, "shifted by one from row to row.")
    p.text(330, 215, "blue: kept from the last step", fill=BLUE)
    p.text(330, 237, "orange: new entries, as many as there are new keys", fill="#b5651d")
    p.text(20, 310, "n keys cost n entries per query: one product more than plain attention, and no n x n array of shifted copies.")
    return p


def band():
    """Beyond a clip all distances share one row."""
    size, clip = 12, 2
    p = Picture("The band of a clipped table", 640, 330)
    x, y = 60, 50
    p.text(x, 36, "row of the table that serves each pair; clip = 2")
    for i in range(size):
        for j in range(size):
            r = max(-clip, min(clip, j - i))
            p.cell(x, y, j, i, BLUE if abs(j - i) < clip else PALE if r > 0 else GREY, r)
    for c in (4, 8):
        p.line(x + c * CELL, y, x + c * CELL, y + size * CELL)
        p.line(x, y + c * CELL, x + size * CELL, y + c * CELL)
    p.text(345, 90, "Tiles on the diagonal see the band.")
    p.text(345, 112, "Tiles beyond it need one row: the product")
    p.text(345, 134, "is one number per query, added to all keys.")
    p.text(345, 170, "So Shaw and DeBERTa cost n R products")
    p.text(345, 192, "(R rows of the table), not n x n.")
    return p


def row():
    """Log buckets: neighbours are within sixteen entries of each other."""
    index = [3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 9, 10, 10, 10, 10]
    p = Picture("Sixteen neighbours from one load and one permutation", 560, 265)
    x = 150
    p.text(20, 55, "products, by entry")
    p.text(20, 190, "scores of 16 keys")
    for z in range(16):
        p.cell(x, 40, z, 0, PALE if 3 + z <= 10 else GREY, 3 + z)
        p.cell(x, 175, z, 0, BLUE, index[z])
        p.line(x + (index[z] - 3) * CELL + 11, 62, x + z * CELL + 11, 175)
    p.text(20, 228, "Entries ascend with the key in steps of 0 or 1, so that 16 keys lie within one")
    p.text(20, 248, "loaded vector: load, permute, add. Never a gather.")
    return p


def main():
    folder = Path(sys.argv[1])
    for draw in (tile, slices, strip, band, row):
        draw().save(folder / f"kernel-{draw.__name__}.svg")


main()
