# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
python3 -c 'import casefile; casefile.write("case.safetensors", *casefile.plain())'
"$LOCUS" attend case.safetensors --check --json >report.json
echo "exit $?"
python3 - <<'END'
import json
report = json.load(open("report.json"))
assert report["passed"] is False, report["passed"]
assert len(report["results"]) >= 2
for r in report["results"]:
    assert r["worst"] is None and r["tolerance"] is None and r["passed"] is None, r
    assert r["min"] is not None and r["nan"] == 0
print("passed:", report["passed"])
END
