# SPDX-License-Identifier: Apache-2.0
# Every model of examples/lab runs, is explained and inspected; one is drawn.
models=$GOLDEN/../../examples/lab
for scheme in none sinusoidal learned shaw relative_key relative_key_query transformer_xl t5 tupe deberta alibi kerple rope xpos; do
    "$LOCUS" run "$models/$scheme" "It is a truth universally" --max-length 40 --json >text
    grep -q '"text": "It is a truth universally[^"]' text || cat text
    "$LOCUS" explain "$models/$scheme" --text "It is a truth" --layer 1 --head 2 >explained
    sed -n '1s/, c = .*//;1s/^.*: //p' explained
    awk '/^variation/ { exit } NR > 3 && NF { printf "  %s", $1 } END { print "" }' explained
    "$LOCUS" inspect "$models/$scheme" | grep -E '^(positions|parameters|tasks)'
done
cd "$models" || exit 1
"$LOCUS" plot ./kerple --what bias | head -n 5
"$LOCUS" plot ./sinusoidal --what share
"$LOCUS" run learned --ids 256,73,116 --max-length 200
