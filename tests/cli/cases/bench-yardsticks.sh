# SPDX-License-Identifier: Apache-2.0
# Every classic scheme has a yardstick on OpenBLAS in both directions, and it computes what we do: one
# that differs is left out.
. "$SUPPORT/lib.sh"
need python3
"$LOCUS" bench --n 140 --d 8 --heads 2 --batch 2 --rounds 1 --json >rows.json || exit
python3 - <<'END'
import json, sys
rows = [row for row in json.load(open("rows.json")) if row["scheme"] not in ("table", "fire", "inkling", "wavlm", "wall", "sam", "swin", "cope")]
if not any(row["baseline"] for row in rows):
    print("OpenBLAS is not installed")
    sys.exit(77)
print("without:", *(f'{row["scheme"]} {row["direction"]} {row["n"]}' for row in rows if row["baseline"] is None))
print(sorted({row["baseline"].split()[0] for row in rows}), all(row["baseline_over_ours"] > 0 for row in rows))
END
