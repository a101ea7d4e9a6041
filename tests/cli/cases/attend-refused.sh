# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# A file that breaks a rule is refused by name, in one line, and leaves no output.
python3 - <<'END'
import casefile
def case(name, change, **options):
    tensors, metadata = casefile.plain(**options)
    change(tensors, metadata)
    casefile.write(name, tensors, metadata)
case("misspelt-key", lambda t, m: m.update(casual="1"))
case("bad-value", lambda t, m: m.update(causal="yes"))
case("wrong-format", lambda t, m: m.update(format="locus.case/2"))
case("no-kind", lambda t, m: m.pop("kind"))
case("unknown-scheme", lambda t, m: m.update(scheme="t6"))
case("missing-tensor", lambda t, m: t.pop("v"))
case("unknown-tensor", lambda t, m: t.update(kk=casefile.ramp(1, 2, 4, 4)))
case("wrong-shape", lambda t, m: t.update(k=casefile.ramp(1, 2, 4, 5)))
case("wrong-type", lambda t, m: t.update(k=("I32", (1, 2, 4, 4), [0] * 32)))
case("missing-table", lambda t, m: m.update(buckets="8", max_distance="16"), scheme="t5")
case("missing-option", lambda t, m: t.update(rel_k=casefile.ramp(9, 4)), scheme="shaw")
case("option-range", lambda t, m: t.update(rel_k=casefile.ramp(9, 4)), scheme="shaw",
     clip_left="-4", clip_right="4")
case("row-out-of-range", lambda t, m: t.update(rel_k=casefile.ramp(5, 4)), scheme="relative_key")
case("row-out-of-range-xl", lambda t, m: t.update(rel_k=casefile.ramp(2, 4, 4),
     u=casefile.ramp(2, 4), w=casefile.ramp(2, 4)), scheme="transformer_xl", delta_min="0")
END
for file in misspelt-key bad-value wrong-format no-kind unknown-scheme missing-tensor \
    unknown-tensor wrong-shape wrong-type missing-table missing-option option-range \
    row-out-of-range row-out-of-range-xl; do
    try attend $file -o out.safetensors
    try attend $file --check 2>/dev/null
done
absent out.safetensors
ls | grep -c .
