# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
"$LOCUS" demo --quick --json >demo.json
echo "exit $?"
python3 - <<'END'
import json
demo = json.load(open("demo.json"))
for s in demo["schemes"]:
    if not s["passed"] or s["output_error"] > 5e-6 or s["gradient_error"] > 2e-5:
        print(s["name"], s["output_error"], s["gradient_error"])
    assert s["large_output_error"] <= 2e-5 and s["large_gradient_error"] <= 1e-4
    assert s["both_seconds"] > s["forward_seconds"] > 0
    if s["name"] == "none":  # is not compared with itself
        assert s["forward_against_plain"] is s["both_against_plain"] is None
    else:
        assert s["forward_against_plain"] > 0 and s["both_against_plain"] > 0
    assert s["bytes"] > 0 and (s["name"] == "none") == (s["bytes"] == s["plain_bytes"])
assert demo["page"] is None
print(" ".join(demo["sentence"]))
for s in demo["schemes"][:14]:
    print(s["name"], s["level"], s["parameters"])
END
