#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/scale.md: predicted efficiency of attention over ranks, by the cost model that is written there."""

WIDTH, HEADS = 64, 16
CORE, CORES = 200e9, 32  # flops per second of a core in these kernels; cores of a machine
LINKS, LATENCY = (12.5e9, 3.1e9), 30e-6  # bytes per second each way (100 and 25 Gbit/s), seconds of a message
ROWS = 8192  # of a message
SCHEMES = {"plain": 1.00, "T5": 1.02, "Shaw": 1.02, "DeBERTa": 1.60}  # time by that of plain attention
EXTRA = 0.03  # joins, packing, plans of blocks: measured


def step(rows, factor, backward, link):
    """(seconds of work, seconds on the wire) of one step of the ring, rows x rows pairs."""
    work = factor * (10 if backward else 4) * rows * rows * WIDTH * HEADS / (CORE * CORES)
    pieces = -(-rows // ROWS) * (2 if backward else 1)
    wire = (4 if backward else 2) * rows * WIDTH * HEADS * 4 / link + pieces * LATENCY
    return work, wire


def efficiency(length, ranks, factor, link):
    """Work of one machine over that of all, forward and backward."""
    rows = length // ranks
    useful = took = 0.0
    for backward in (False, True):
        work, wire = step(rows, factor, backward, link)
        useful += ranks * work
        took += work * (1 + EXTRA) + (ranks - 1) * max(work * (1 + EXTRA), wire)
    return useful / took


def main():
    lengths = range(17, 23)
    print("| machines | scheme | " + " | ".join(f"2^{e}" for e in lengths) + " |")
    print("|---|---|" + "---|" * len(lengths))
    for ranks in (8, 64, 512):
        for name, factor in SCHEMES.items():
            cells = []
            for e in lengths:
                found = [efficiency(1 << e, ranks, factor, link) for link in LINKS]
                cells.append(" / ".join(f"{100 * f:.0f}" for f in found))
            print(f"| {ranks} | {name} | " + " | ".join(cells) + " |")


main()
