# SPDX-License-Identifier: Apache-2.0
"""read.py DIR OUTCOME: what a report says against what was planted and against its own numbers; one
line per case, its name and, behind a tab, what is wrong."""
import csv
import html.parser
import json
import pathlib
import re
import sys

SCHEMES = 14


class Tables(html.parser.HTMLParser):
    """The text of every cell of the table with the id `answer`."""

    def __init__(self):
        super().__init__()
        self.inside, self.rows, self.cell = False, [], None

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.inside = dict(attributes).get("id") == "answer"
        elif self.inside and tag == "tr":
            self.rows.append([])
        elif self.inside and tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag == "table":
            self.inside = False
        elif self.cell is not None and tag in ("td", "th"):
            self.rows[-1].append(self.cell.strip())
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def verdicts(folder, outcome):
    board = json.loads((folder / "scoreboard.json").read_text())
    found = [] if [c["id"] for c in board] == ["R%d" % i for i in range(1, 13)] else ["ids"]
    for claim in board:
        if set(claim) < {"id", "claim", "published", "ours", "verdict"}:
            found.append("%s lacks a key" % claim["id"])
        expected = outcome
        if outcome == "partial":  # one seed, no rope, nothing but copy and text
            expected = "reproduced" if claim["id"] in ("R2", "R4", "R8", "R12") else "not run"
        if claim["verdict"] != expected:
            found.append("%s is %s, expected %s" % (claim["id"], claim["verdict"], expected))
        if (claim["ours"] == "") != (claim["verdict"] == "not run"):
            found.append("%s says %r" % (claim["id"], claim["ours"]))
    return found


def read_results(folder):
    with open(folder / "results.csv", newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def means(rows):
    """Every mean is the mean of its seeds; what is undefined in one is undefined."""
    groups, found = {}, []
    for row in rows:
        key = (row["task"], row["scheme"], row["length"], row["metric"])
        groups.setdefault(key, {})[row["seed"]] = row["value"]
    for key, values in groups.items():
        if key[0] == "all":
            continue
        own = [float("nan" if v == "undefined" else v) for s, v in values.items() if s != "mean"]
        mean = values.get("mean")
        if not own or any(v != v for v in own):
            found += [] if mean == "undefined" else ["%s: mean %s of %s" % (key, mean, own)]
        elif mean == "undefined" or abs(float(mean) - sum(own) / len(own)) > 1e-9 * max(1, abs(float(mean))):
            found.append("%s: mean %s of %s" % (key, mean, own))
    return found if len(groups) > 500 else ["%d groups" % len(groups)]


def copied(folder, rows):
    """Numbers of a run are in results.csv as the run wrote them."""
    index = {(r["task"], r["scheme"], r["seed"], r["length"], r["metric"]): r["value"] for r in rows}
    found, count = [], 0
    for path in sorted(folder.glob("runs/*/*/seed*/metrics.csv"))[::7]:
        task, scheme, seed = path.parts[-4], path.parts[-3], path.parts[-2][4:]
        for row in csv.DictReader(open(path, encoding="ascii")):
            value = index.get((task, scheme, seed, row["length"], row["metric"]))
            count += 1
            same = value is not None and (value == row["value"] or (
                "undefined" not in (value, row["value"]) and float(value) == float(row["value"])))
            if not same:
                found.append("%s %s: %s, not %s" % (path, row["metric"], value, row["value"]))
    return found if count > 20 else ["%d numbers" % count]


def answer(page, rows):
    """Each number of the table is one of its scheme's means, rounded."""
    tables = Tables()
    tables.feed(page)
    means_of = {}
    for row in rows:
        if row["seed"] == "mean" and row["value"] != "undefined":
            means_of.setdefault(row["scheme"], []).append(float(row["value"]))
    found, numbers = [], 0
    body = tables.rows[1:]
    if [r[0] for r in body] != sorted({r[0] for r in body}, key=[r[0] for r in body].index):
        found.append("a scheme is there twice")
    if len(body) != SCHEMES:
        found.append("%d rows" % len(body))
    for row in body:
        for cell in row[1:]:
            for number in re.findall(r"\d+(?:\.\d+)?", cell):
                digits = len(number.partition(".")[2])
                numbers += 1
                if not any(abs(float(number) - v) <= 0.5000001 * 10 ** -digits
                           for v in means_of[row[0]]):
                    found.append("%s: %s is not in results.csv" % (row[0], number))
    return found if numbers > 60 else found + ["%d numbers" % numbers]


def unranked(page, outcome):
    """The run below 95 % inside L is named; nothing beyond the end of a table has a number."""
    if outcome == "partial":
        return [] if "not complete" in page and "step 40 of 120" in page else ["says it is complete"]
    return [] if "Not ranked" in page and "none (0.62)" in page else ["the run that failed is ranked"]


def figures(folder, page):
    files = {p.name for p in (folder / "figures").iterdir()}
    found = ["%s has no numbers" % f for f in files if f.endswith(".svg") and f[:-3] + "csv" not in files]
    found += ["%s is not in the page" % f for f in files if "figures/" + f not in page]
    for path in (folder / "figures").glob("*.csv"):
        if path.read_text().count("\n") < 2:
            found.append("%s is empty" % path.name)
    return found if len(files) > 10 else ["%d files" % len(files)]


def main():
    folder, outcome = pathlib.Path(sys.argv[1]), sys.argv[2]
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = read_results(folder)

    def report(name, found):
        print("%s/%s\t%s" % (outcome, name, "; ".join(found[:4])))

    report("verdicts", verdicts(folder, outcome))
    report("means", means(rows))
    report("copied", copied(folder, rows))
    report("answer", answer(page, rows))
    report("unranked", unranked(page, outcome))
    report("figures", figures(folder, page))


main()
