#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measure.py LOCUS: run the benchmark and put what it found into docs (`make measure`).

Writes docs/bench.svg, and in docs/performance.md what stands between the two lines
<!-- measured --> and <!-- end of measured -->. Takes about four minutes; on a shared machine, pin it
to a core: taskset -c 1 make measure."""
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"


def bench(locus, *options):
    """The lines before the table, and the table as a list of {column: cell}."""
    text = subprocess.run([locus, "bench", "--markdown", *options], check=True, capture_output=True, text=True).stdout
    lines = text.splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = lines[lines.index("```") + 1:lines.index("```", 1)]
    return head, [dict(zip(cells[0], row)) for row in cells[2:]]


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=DOCS, capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short=10", "HEAD") + (", with changes" if git("status", "--porcelain", "src", "lab", "bench", "cli") else "")


def table(columns, rows):
    return ["| " + " | ".join(columns) + " |", "|---" + "|--:" * (len(columns) - 1) + "|",
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def both(rows, **match):
    """One cell: the figures of a column at each n, with slashes between."""
    column = match.pop("column")
    found = [r[column] for r in rows if all(r[k] == v for k, v in match.items())]
    return " / ".join(found) if found and set(found) != {"-"} else "-"


def schemes(rows):
    names = list(dict.fromkeys(r["scheme"] for r in rows))
    columns = ["scheme"]
    for direction in ("forward", "backward"):
        columns += [f"{direction} ms", "% peak", "x plain", "x OpenBLAS"]
    return table(columns, [[name] + [both(rows, scheme=name, direction=d, column=c)
                                     for d in ("forward", "backward")
                                     for c in ("ms", "% peak", "x plain", "baseline x")] for name in names])


def maps(rows):
    sizes = list(dict.fromkeys(r["d"] for r in rows))
    columns = ["inputs to outputs"]
    for pass_name in ("y", "dx", "dW"):
        columns += [f"{pass_name} % peak", f"{pass_name} x sgemm"]
    return table(columns, [[size] + [both(rows, d=size, direction=d, column=c)
                                     for d in ("forward", "input grad", "weight grad")
                                     for c in ("% peak", "baseline x")] for size in sizes])


def few(rows, columns):
    return table(columns, [[r[c] for c in columns] for r in rows])


def measured(locus):
    head, rows = bench(locus, "--svg", str(DOCS / "bench.svg"))
    out = [f"Commit {commit()}. One thread; d = 64; {' / '.join(dict.fromkeys(r['n'] for r in rows))} tokens in "
           f"{' / '.join(dict.fromkeys(r['heads'] for r in rows))} heads. Above 1 under \"x OpenBLAS\" means that Locus is faster.",
           "", "```", *head, "```", "", *schemes(rows)]
    out += ["![Share of the peak and time over plain attention, by scheme](bench.svg)", "", "Masks, forward: `locus bench --scheme none "
            "--causal --padded`. \"x plain\" is the time over that of the full call.", ""]
    out += few(bench(locus, "--scheme", "none", "--causal", "--padded", "--direction", "forward")[1],
               ["scheme", "n", "ms", "% peak", "x plain"])
    out += ["Dropout of a tenth of the weights, and logits so large that most weights are all but zero: `locus bench --scheme none "
            "--dropout 0.1 --peaked`.", ""]
    out += few(bench(locus, "--scheme", "none", "--dropout", "0.1", "--peaked", "--no-baseline")[1],
               ["scheme", "direction", "n", "ms", "% peak", "x plain"])
    out += ["Decoding, one query over 16,384 keys in 12 heads that lie in memory: `locus bench --decode`. The baseline is a pure read "
            "of K and V, and of the table rows that the query reaches; 0.9 means 1.11 times the read.", ""]
    out += few(bench(locus, "--decode", "--scheme", "none,t5,alibi,rope,transformer_xl")[1], ["scheme", "n", "ms", "x plain", "baseline x"])
    out += ["Linear maps, 128 / 512 rows: `locus bench --linear`. y = x Wᵀ with W packed once, dx = dz W, dW = dzᵀ x.", ""]
    out += maps(bench(locus, "--linear")[1])
    return out


def main():
    page = DOCS / "performance.md"
    before, rest = page.read_text().split(BEGIN + "\n")
    after = rest.split(END)[1]
    page.write_text(before + "\n".join([BEGIN, *measured(sys.argv[1]), END]) + after)


main()
