#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""found.py OUT COPY TEXT: the numbers of the page's chart «What training found».

COPY and TEXT are folders that `locus lab run` made, one with the task copy, one with text (they may be the same).
A number is the mean over the seeds that are through; null where a table has no row for the length. docs/page.md
has the commands.
"""
import csv
import glob
import json
import os
import sys

SCHEMES = ("none sinusoidal learned shaw relative_key relative_key_query transformer_xl t5 tupe deberta alibi kerple "
           "rope xpos").split()
COPIED = 0.95  # exact match at the trained length from which a seed counts as one that learned to copy


def runs_of(folder, task, scheme, metric):
    """One {length: value or None} per finished seed."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "runs", task, scheme, "seed*", "metrics.csv"))):
        with open(path, encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["metric"] == metric]
        found.append({int(row["length"]): None if row["value"] == "undefined" else float(row["value"]) for row in rows})
    return found


def mean(values):
    return None if not values or None in values else round(sum(values) / len(values), 4)


def settings_of(folder, task):
    path = sorted(glob.glob(os.path.join(folder, "runs", task, SCHEMES[0], "seed*", "run.json")))[0]
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def chart(folder, task, metric, factor=1):
    runs = {scheme: runs_of(folder, task, scheme, metric) for scheme in SCHEMES}
    lengths = sorted(runs[SCHEMES[0]][0])
    values = {scheme: [mean([None if run[n] is None else run[n] * factor for run in runs[scheme]]) for n in lengths]
              for scheme in SCHEMES}
    return lengths, values, runs


def seeds(count):
    return "one seed" if count == 1 else "the mean over %d seeds" % count


def main():
    out, copy_folder, text_folder = sys.argv[1:]
    lengths, copied, runs = chart(copy_folder, "copy", "em", 100)
    s = settings_of(copy_folder, "copy")
    charts = [{
        "name": "copy", "title": "Rows of random symbols copied without a mistake, in percent", "lengths": lengths,
        "values": copied, "unit": "symbols",
        "seeds": {scheme: sum(run[s["length"]] >= COPIED for run in runs[scheme]) for scheme in SCHEMES},
        "of": len(runs[SCHEMES[0]]),
        "about": "Higher is better. Trained on up to %d symbols: %d layers of width %d, %s steps; %s." % (
            s["length"], s["layers"], s["width"], format(s["steps"], ","), seeds(len(runs[SCHEMES[0]])))}]
    lengths, bits, runs = chart(text_folder, "text", "bpc")
    s = settings_of(text_folder, "text")
    charts.append({
        "name": "text", "title": "Bits per character of a novel", "lengths": lengths, "values": bits, "unit": "characters",
        "about": "Lower is better. Trained on windows of %d characters of five novels of Jane Austen, read in the sixth: %d layers "
                 "of width %d, %s steps; %s." % (s["length"], s["layers"], s["width"], format(s["steps"], ","),
                                                 seeds(len(runs[SCHEMES[0]])))})
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"charts": charts}, file, indent=1)
        file.write("\n")


main()
