# SPDX-License-Identifier: Apache-2.0
# locus convert: a folder of integers says what the float folder says in them; what is refused.
. "$SUPPORT/lib.sh"
cp -r "$GOLDEN/../../examples/stories260K" stories260K || exit 1
for precision in i16 int8; do
    try convert stories260K --precision $precision -o $precision
    ls $precision
    "$LOCUS" run stories260K "Once upon a time" --precision $precision --task embed --json >float.json
    "$LOCUS" run $precision "Once upon a time" --task embed --json >converted.json
    cmp float.json converted.json && echo "the same"
    "$LOCUS" inspect $precision | grep '^precision' | cut -c1-16
done
python3 - <<'END'
import os
size = {f: os.path.getsize(f + "/model.safetensors") for f in ("stories260K", "i16", "int8")}
print(size["i16"] < 0.85 * size["stories260K"], size["int8"] < 0.6 * size["stories260K"])
END
try run i16 Once --precision int8
try run i16 Once --precision exact
try compare i16 Once --precision i16
try convert stories260K --precision i16 -o int8
try convert i16 --precision i16 -o again
ls again 2>/dev/null
try convert stories260K --precision exact -o exact
try convert stories260K --precision i16
try convert stories260K/model.safetensors --precision i16 -o other
