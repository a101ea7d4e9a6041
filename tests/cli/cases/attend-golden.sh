# SPDX-License-Identifier: Apache-2.0
# Every golden case, within the tolerance that stands in it; a sample takes the first of every
# scheme, and those that have one of their own.
[ -f "$GOLDEN/manifest.json" ] || { echo "tests/golden is not there"; exit 77; }
least=80
[ "${LOCUS_TEST_SAMPLE:-0}" = 0 ] || least=14
ran=0
for file in "$GOLDEN"/*/*.safetensors; do
    name=${file#"$GOLDEN"/}
    [ $least -eq 80 ] || [ "${name%%/*}" != "${scheme-}" ] ||
        grep -q "\"$name\"" "$GOLDEN/manifest.json" || continue
    scheme=${name%%/*}
    "$LOCUS" attend "$file" --check >report 2>&1 && oracle= || {
        code=$? oracle=
        # what the kernels cannot do yet, the oracle must
        ! grep -q 'only the oracle has it$' report ||
            { "$LOCUS" attend "$file" --oracle --check >report 2>&1 && oracle=1 || code=$?; }
        [ -n "$oracle" ] || { echo "$name: exit $code"; grep -v ' ok$' report; }
    }
    ran=$((ran + 1))
done
[ $ran -ge $least ] || echo "only $ran files"
