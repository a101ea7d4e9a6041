# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Names and metadata that would do something to a terminal.
python3 - <<'END'
import casefile
one = ("U8", (1,), [0])
names = ["\x1b[31mred", "right\u202eleft", "%n%s", "../../x", "caf\u00e9", "a\nb", "quote\"",
         "back\\slash", "\U0001f600", "soft\u00adhyphen", "nul-free\x7f", "\u0085"]
casefile.write("odd.safetensors", {n: one for n in names}, {"\x1b]0;title\x07": "a\tb\u2028c"})
END
"$LOCUS" inspect odd.safetensors
"$LOCUS" inspect odd.safetensors --json >odd.json
python3 -c 'import json; print(*map(ascii, [t["name"] for t in json.load(open("odd.json"))["tensors"]]))'
LC_ALL=C grep -c "$(printf '\033')" odd.json
exit 0
