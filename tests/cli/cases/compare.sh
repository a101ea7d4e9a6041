# SPDX-License-Identifier: Apache-2.0
# locus compare: a trained model in integers beside itself; what is refused.
. "$SUPPORT/lib.sh"
cp -r "$GOLDEN/../../examples/stories260K" stories260K || exit 1
try compare stories260K "Once upon a time" "The cat sat on the mat and" --precision exact
"$LOCUS" compare stories260K "Once upon a time" --precision i16 --json >i16.json
"$LOCUS" compare stories260K "Once upon a time" --precision int8 --json >int8.json
python3 - <<'END'
import json
i16, int8 = json.load(open("i16.json")), json.load(open("int8.json"))
print(sorted(i16), len(i16["states"]), i16["answers"], i16["changed"])
for one, most in (i16, 2e-3), (int8, 5e-2):
    errors = [s["rms_error"] for s in one["states"]] + [one["logits"]["rms_error"]]
    print(one["precision"], all(0 < e < most for e in errors), 1 - one["least_cosine"] < most)
print(int8["bytes"] < i16["bytes"] < i16["exact_bytes"])
END
try compare stories260K --precision i16
try compare stories260K Once --file lines.txt
try compare stories260K Once --precision int4
