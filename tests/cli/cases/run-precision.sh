# SPDX-License-Identifier: Apache-2.0
# --precision: the same text, what is kept as what, refusals.
. "$SUPPORT/lib.sh"
cp -r "$GOLDEN/../../examples/stories260K" stories260K || exit 1
for precision in exact i16; do
    try run stories260K "Once upon a time" --max-length 24 --precision $precision
done
try inspect stories260K --precision i16 | grep '^precision'
"$LOCUS" inspect stories260K --precision int8 --json | grep -E '"(precision|keeps)"'
try run stories260K Once --precision int4
try inspect stories260K --precision half
try inspect stories260K/model.safetensors --precision i16
try serve stories260K --precision fp16
