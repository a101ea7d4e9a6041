# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
"$LOCUS" schemes --json >all.json && python3 - "$LOCUS" "$SUPPORT/../../../src/schemes/schemes.inc" <<'END'
import json, re, subprocess, sys
schemes = json.load(open("all.json"))
keys = {"name", "title", "formula", "rule", "scale", "terms", "traits", "options", "tensors", "citation"}
option_keys = {"name", "help", "kind", "levels", "required", "with", "default"}
for s in schemes:
    assert set(s) == keys, s
    assert s["terms"] and s["terms"][0] == "content"
    for o in s["options"]:
        rest = {"choices"} if o["kind"] == "choice" else {"minimum", "maximum"}
        assert set(o) == option_keys | rest, o
        assert (o["default"] is None) == o["required"]
    for t in s["tensors"]:
        assert set(t) == {"name", "help", "shape", "levels", "required"}, t
    one = json.loads(subprocess.check_output([sys.argv[1], "schemes", s["name"], "--json"]))
    assert one == s
print(*[s["name"] for s in schemes][:14])
listed = re.findall(r"^LOCUS_SCHEME\((\w+)\)", open(sys.argv[2]).read(), re.M)
assert [s["name"] for s in schemes] == listed
END
