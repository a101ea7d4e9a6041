# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Around STRIP, 16 query rows that are summed at a time: every pair counts once.
for n in 15 16 17 31 32 33; do
    "$LOCUS" explain --scheme alibi --length $n --json >all.json || echo "exit $?"
    "$LOCUS" explain --scheme alibi --length $n --causal --json >causal.json || echo "exit $?"
    N=$n python3 - <<'END'
import json, os
n = int(os.environ["N"])
for name, pairs in ("all", n * n), ("causal", n * (n + 1) // 2):
    e = json.load(open(name + ".json"))
    assert e["pairs"] == pairs == sum(d["pairs"] for d in e["distances"]), (n, e["pairs"])
    slope = -[d for d in e["distances"] if d["distance"] == 1][0]["terms"][1]
    for d in e["distances"]:
        assert d["pairs"] == (0 if name == "causal" and d["distance"] < 0 else n - abs(d["distance"]))
        if d["pairs"]:
            assert abs(d["terms"][1] + slope * abs(d["distance"])) < 1e-12, d
END
done
# MOST_BARS, 64 keys of a row as bars; more of them as curves.
for n in 63 64 65 128 129; do
    "$LOCUS" explain --scheme alibi --length $n --query 5 -o row.svg >/dev/null || echo "exit $?"
    [ "$(grep -c '<path' row.svg)" -gt "$n" ] && echo "$n bars" || echo "$n curves"
done
# EXPLAIN_CELLS, 96 rows and columns of a heatmap at most.
for n in 95 96 97 191 192 193; do
    "$LOCUS" explain --scheme alibi --length $n -o all.svg >/dev/null || echo "exit $?"
    python3 - $n <<'END'
import re, sys
print(sys.argv[1], "narrowest cell", min(float(w) for w in re.findall(r"h([0-9.]+)v", open("all.svg").read())))
END
done
# PAGE_NUMBERS, 400,000 in a page: two terms of four heads.
quiet explain --scheme t5 --length 223 -o page.html
quiet explain --scheme t5 --length 224 -o long.html
[ -e page.html ] && [ ! -e long.html ] && echo "one page"
# EXPLAIN_TOKENS, 16,384 at most, and MOST_BYTES, 2^20 of a text.
quiet explain --scheme alibi --length 16385
python3 - <<'END'
open("fits.txt", "w").write("w" + " " * ((1 << 20) - 2) + "w")
open("over.txt", "w").write("w" + " " * ((1 << 20) - 1) + "w")
END
quiet explain --scheme alibi --text fits.txt
quiet explain --scheme alibi --text over.txt
