# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
golden kerple/log.safetensors
"$LOCUS" attend case.safetensors --check --threads 2 --json >checked.json
echo "exit $?"
"$LOCUS" attend case.safetensors -o out.safetensors --isa generic --json >written.json
echo "exit $?"
"$LOCUS" attend case.safetensors --check --oracle --json >oracle.json
echo "exit $?"
python3 - <<'END'
import json
a, b, c = (json.load(open(n + ".json")) for n in ("checked", "written", "oracle"))
for report in (a, b, c):
    assert list(report) == ["case", "output", "level", "scheme", "isa", "path", "threads",
                            "passed", "settings", "given", "results"], list(report)
    assert report["settings"]["form"] == "log" and "note" not in report["settings"]
    for t in report["given"]:
        assert list(t) == ["name", "shape", "bytes"] and not t["name"].startswith("want.")
    for r in report["results"]:
        assert list(r) == ["name", "shape", "bytes", "min", "max", "nan", "want_nan", "worst",
                           "tolerance", "passed"]
assert a["passed"] is True and a["threads"] == 2 and a["output"] is None
assert all(r["passed"] is True and r["worst"] <= r["tolerance"] for r in a["results"])
assert b["passed"] is None and b["isa"] == "generic" and b["output"] == "out.safetensors"
assert all(r["passed"] is None and r["worst"] is None for r in b["results"])
assert c["isa"] == "double" and c["path"] == "oracle" and c["passed"] is True
print(a["case"], a["level"], a["scheme"], *[r["name"] for r in a["results"]])
END
