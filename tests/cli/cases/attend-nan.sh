# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# The table of a check says how many NaN there are and how many there should be.
golden none/plain.safetensors
python3 - <<'END'
import casefile, math, struct
tensors, metadata = casefile.read("case.safetensors")
def put(name, index, value):
    dtype, shape, data = tensors[name]
    code, width = ("<d", 8) if dtype == "F64" else ("<f", 4)
    data = data[:index * width] + struct.pack(code, value) + data[(index + 1) * width:]
    tensors[name] = dtype, shape, data
put("q", 0, math.nan)
put("want.grad.v", 3, math.nan)
casefile.write("case.safetensors", tensors, metadata)
END
"$LOCUS" attend case.safetensors --check >report
echo "exit $?"
sed 1,2d report | awk '{ print $1, $2, $5, $6, $8 }'
"$LOCUS" attend case.safetensors --check --json 2>/dev/null | python3 -c '
import json, sys
for r in json.load(sys.stdin)["results"]:
    print(r["name"], r["nan"], r["want_nan"], r["passed"])'
