# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
"$LOCUS" plot alibi --what bias --heads 2 -n 2 --csv
"$LOCUS" plot shaw --what distance --tokens "a \"b\"" --csv
"$LOCUS" plot alibi --what bias --heads 2 -n 2 -o numbers.csv && wc -l <numbers.csv
# The same numbers by their own formulas.
"$LOCUS" plot sinusoidal --what encoding --option table=paper -n 5 --dim 4 --heads 2 --json >encoding.json
"$LOCUS" plot rope --what decay -n 6 --dim 8 --json >decay.json
"$LOCUS" plot deberta --what rows --option span=8 --option buckets=8 --option max_distance=16 --json >rows.json
"$LOCUS" plot none --what attention --causal -n 4 --json >attention.json
python3 - <<'END'
import json, math
def load(name):
    return json.load(open(name))["panels"]
worst = 0
for i, row in enumerate(load("encoding.json")[0]["values"]):
    for t in range(4):
        angle = i * 10000 ** (-2 * t / 8)
        worst = max(worst, abs(row[2 * t] - math.sin(angle)), abs(row[2 * t + 1] - math.cos(angle)))
print("encoding", worst < 1e-12)
curve = load("decay.json")[0]["series"][0]
want = [sum(math.cos(x * 10000 ** (-t / 4)) for t in range(4)) / 4 for x in curve["x"]]
print("decay", max(abs(a - b) for a, b in zip(want, curve["y"])) < 1e-9, len(want))
values = load("rows.json")[0]["values"]
print("rows", values[0][0], values[9][0], values[0][9], all(values[i][i] == 8 for i in range(10)))
weights = load("attention.json")[0]["values"]
print("attention", [[w is None for w in row].count(True) for row in weights],
      all(abs(sum(w or 0 for w in row) - 1) < 1e-12 for row in weights))
END
