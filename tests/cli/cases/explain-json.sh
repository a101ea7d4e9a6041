# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# For programs: the terms add up, the weights too, and both views agree.
for name in transformer_xl/conformer tupe/relative rope/llama-gqa learned/bert none/dense-minus-inf; do
    golden $name.safetensors
    "$LOCUS" explain case.safetensors --json >all.json || echo "exit $?"
    "$LOCUS" explain case.safetensors --query 0 --json >row.json || echo "exit $?"
    "$LOCUS" explain case.safetensors --query 0 --csv >row.csv || echo "exit $?"
    "$LOCUS" explain case.safetensors --csv >all.csv || echo "exit $?"
    python3 - <<'END'
import csv, json, math
whole, row = json.load(open("all.json")), json.load(open("row.json"))
common = ["case", "scheme", "level", "seed", "batch", "head", "queries", "keys", "query_offset", "scale"]
assert list(whole) == common + ["pairs", "terms", "distances"], list(whole)
assert list(row) == common + ["terms", "query", "token", "lse", "pairs"], list(row)
assert [t["name"] for t in whole["terms"]] == [t["name"] for t in row["terms"]]
assert abs(sum(t["variation"] for t in whole["terms"]) - 1) < 1e-9
assert whole["pairs"] == sum(d["pairs"] for d in whole["distances"])
for p in row["pairs"]:
    if not p["visible"]:
        assert p["score"] == "-inf" and p["weight"] == 0
        continue
    largest = max(abs(t) for t in p["terms"])
    assert abs(sum(p["terms"]) - p["score"]) <= 1e-6 * largest
    assert abs(math.exp(p["score"] - row["lse"]) - p["weight"]) < 1e-9
assert abs(sum(p["weight"] for p in row["pairs"]) - 1) < 1e-9
for d in whole["distances"]:
    assert abs(sum(d["terms"]) - d["score"]) < 1e-9
lines = list(csv.DictReader(open("row.csv")))
assert [float(line["score"]) for line in lines] == [float(p["score"]) for p in row["pairs"]]
lines = list(csv.DictReader(open("all.csv")))
assert [float(line["weight"]) for line in lines] == [d["weight"] for d in whole["distances"]]
print(row["scheme"], row["level"], *[t["name"] for t in row["terms"]])
END
done
