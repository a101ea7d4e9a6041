# SPDX-License-Identifier: Apache-2.0
# The numbers are the machine's; that they are there, and what is compared with what, is ours.
. "$SUPPORT/lib.sh"
need python3
tiny='--n 9,16 --d 8 --heads 2 --isa generic --no-baseline --json'
"$LOCUS" bench $tiny --rounds 1 >all.json
echo "exit $?"
"$LOCUS" bench $tiny --scheme t5,none --direction all --causal --padded --rounds 2 >some.json
echo "exit $?"
"$LOCUS" bench $tiny --scheme none,shaw --decode --rounds 1 --batch 2 --threads 1,2 >decode.json
echo "exit $?"
"$LOCUS" bench $tiny --scheme none,t5 --dropout 0.5 --peaked --threads 2,1 --rounds 1 >threads.json
echo "exit $?"
"$LOCUS" bench --linear --n 5,140 --d 7,70 --isa generic --no-baseline --rounds 1 --json >linear.json
echo "exit $?"
"$LOCUS" bench --operators --length 5,70 --dim 9 --isa generic --threads 1,2 --rounds 1 --json >operators.json
echo "exit $?"
python3 - <<'END'
import json
every, some, decode, threads = (json.load(open(n + ".json")) for n in ("all", "some", "decode", "threads"))
keys = ["scheme", "direction", "isa", "threads", "batch", "heads", "n", "d", "dropout", "ms_median", "ms_min",
        "useful_gflops", "pct_fma_peak", "time_over_plain", "speedup", "baseline", "baseline_over_ours",
        "max_err", "extra_bytes"]
for row in every + some + decode + threads:
    assert list(row) == keys, list(row)
    assert row["isa"] == "generic" and row["d"] == 8 and row["heads"] == 2
    assert 0 < row["ms_min"] <= row["ms_median"] and row["extra_bytes"] > 0
    assert row["useful_gflops"] > 0 and row["pct_fma_peak"] > 0 and row["time_over_plain"] > 0
    assert 0 <= row["max_err"] < 2e-5
    assert row["dropout"] == (0.5 if "+dropout" in row["scheme"] else 0)
for row in decode + threads:
    assert row["speedup"] is None if row["threads"] == 1 else row["speedup"] > 0
for row in every + some:
    assert row["speedup"] is None
    assert row["baseline"] is None and row["baseline_over_ours"] is None
names = sorted({row["scheme"] for row in every})
print(*(n for n in names if n not in ("distance", "table", "fire", "inkling", "wavlm", "wall", "cope")))
assert len(every) == len(names) * 2 * 2 # lengths, directions
assert len(some) == 2 * 3 * 2 * 3       # schemes, views, lengths, directions
for row in every:
    if row["scheme"] == "none": assert row["time_over_plain"] == 1
print(sorted({(r["scheme"], r["direction"], r["threads"], r["batch"]) for r in some}))
print([(r["scheme"], r["direction"], r["threads"], r["batch"], r["n"], r["baseline"]) for r in decode])
assert len(threads) == 2 * 3 * 2 * 2 * 2 # schemes, views, lengths, directions, threads
print(sorted({r["scheme"] for r in threads}))
pairs = {(r["scheme"], r["direction"], r["n"], r["threads"]): r for r in threads}
for (scheme, direction, n, count), row in pairs.items():
    if count == 2: assert abs(row["speedup"] * row["ms_median"] / pairs[scheme, direction, n, 1]["ms_median"] - 1) < 1e-3
linear = json.load(open("linear.json"))
assert len(linear) == 2 * 2 * 2 * 3 # rows, inputs, outputs, directions
for row in linear:
    assert list(row) == keys[:8] + ["outputs"] + keys[8:], list(row)
    assert row["scheme"] == "linear" and row["n"] in (5, 140) and row["d"] in (7, 70) and row["outputs"] in (7, 70)
    assert row["useful_gflops"] > 0 and row["time_over_plain"] is None and 0 <= row["max_err"] < 5e-6
print(sorted({r["direction"] for r in linear}))
operators = json.load(open("operators.json"))
for row in operators:
    assert list(row) == ["operator", "n", "d", "isa", "threads", "us", "gbytes_per_s", "plain_over_ours", "max_difference"]
    assert row["us"] > 0 and row["gbytes_per_s"] > 0 and row["plain_over_ours"] > 0 and 0 <= row["max_difference"] < 2e-5
assert len(operators) == 2 * 2 * len({r["operator"] for r in operators}) # rows, threads
print(sorted({r["operator"] for r in operators}))
END
"$LOCUS" bench $tiny --scheme t5,rope --dtype f16,bf16 --peaked --rounds 1 >halves.json
echo "exit $?"
"$LOCUS" bench $tiny --scheme none,rope --decode --dtype bf16 --rounds 1 >/dev/null
echo "exit $?"
python3 - <<'END'
import json
rows = json.load(open("halves.json"))
print("halves:", sorted({row["scheme"] for row in rows}), all(row["time_over_plain"] for row in rows))
END
"$LOCUS" bench --ragged --mask blocks --scheme none,shaw --d 2 --heads 1 --isa generic --rounds 1 --json >ragged.json
echo "exit $?"
python3 - <<'END'
import json
rows = json.load(open("ragged.json"))
keys = ["scheme", "texts", "against", "direction", "threads", "ms", "ratio", "max_difference"]
assert all(list(row) == keys and row["ms"] > 0 and row["ratio"] > 0 for row in rows)
assert all(row["max_difference"] == 0 for row in rows if "mask" not in row["texts"])  # the same bits
print(sorted({(row["texts"], row["against"], row["direction"]) for row in rows}), len(rows))
END
