#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""figures.py PAGE FOLDER: the figures of the page that docs/page.md shows, light and dark, as headless Chromium draws them;
of at most 64 colours each, so that they stay small."""
import base64
import collections
import os
import struct
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "page"))
import browser

CHOOSE = "document.querySelector('[data-scheme=%s]').click()"
FIGURES = {  # name: (what to do first, what to show)
    "process": (CHOOSE % "sinusoidal", ".board > svg"),
    "sinusoid": ("", "#sinusoid figure svg"),
    "whole": (CHOOSE % "sinusoidal", ".product svg"),
    "clip": ("", "#live-distance canvas"),
    "shaw": (CHOOSE % "shaw", ".product svg"),
    "transformer-xl": (CHOOSE % "transformer_xl", ".product svg"),
    "t5": ("", "#live-t5 canvas"),
    "untied": (CHOOSE % "tupe", ".product svg"),
    "deberta": (CHOOSE % "deberta", ".product svg"),
}
COLOURS = 64


def rows_of(png):
    """Rows of (r, g, b) of a PNG as browsers write it: 8 bits, not interlaced."""
    place, data = 8, b""
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place:place + 8])
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", png[place + 8:place + 18])
        if kind == b"IDAT":
            data += png[place + 8:place + 8 + size]
        place += 12 + size
    step, data = {2: 3, 6: 4}[colour], zlib.decompress(data)
    above, rows = bytearray(width * step), []
    for y in range(height):
        start = y * (1 + width * step)
        rule, line = data[start], bytearray(data[start + 1:start + 1 + width * step])
        for x in range(len(line) if rule else 0):
            left, up, corner = (line[x - step], above[x], above[x - step]) if x >= step else (0, above[x], 0)
            paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            line[x] = line[x] + (0, left, up, (left + up) // 2, paeth)[rule] & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), step)])
        above = line
    return rows


def small(rows):
    """A PNG of the most frequent colours; others become the nearest of them."""
    chosen = [colour for colour, _ in collections.Counter(c for row in rows for c in row).most_common(COLOURS)]
    nearest = {}

    def index(colour):
        if colour not in nearest:
            nearest[colour] = min(range(len(chosen)), key=lambda i: sum((a - b) ** 2 for a, b in zip(chosen[i], colour)))
        return nearest[colour]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b"".join(b"\0" + bytes(map(index, row)) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(v for colour in chosen for v in colour)) + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def shoot(tab, act, selector):
    tab.evaluate(act)
    for _ in range(3):  # live figures are drawn as they come near, and move what is below them
        tab.evaluate("document.querySelector('%s').scrollIntoView({block: 'center'})" % selector)
        time.sleep(0.3)
    box = tab.evaluate("(b => [b.left - 8, b.top - 8, b.right + 8, b.bottom + 8])(document.querySelector('%s').getBoundingClientRect())" % selector)
    left, top, right, bottom = (max(0, round(side)) for side in box)
    rows = rows_of(base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"]))
    return [row[left:right] for row in rows[top:bottom]]


def main():
    page, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        tab = browser.Browser(profile)
        try:
            tab.open_tab()
            for theme in ("light", "dark"):
                tab.screen(900, 1400, theme)
                tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}])
                tab.visit("file://" + os.path.abspath(page))
                while not tab.evaluate("document.documentElement.dataset.ready || ''"):
                    time.sleep(0.1)
                for name, (act, selector) in FIGURES.items():
                    with open(os.path.join(folder, "%s-%s.png" % (name, theme)), "wb") as file:
                        file.write(small(shoot(tab, act, selector)))
        finally:
            tab.close()


main()
