# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# A letter means the same behind one dash and behind two, in every command.
for command in "plot alibi --what bias --csv" "explain --scheme alibi --query 1 --csv"; do
    for length in "-n 5" "--n 5" "--n=5" "-n5" "--length 5"; do
        # The words of a command are meant to be split.
        # shellcheck disable=SC2086
        "$LOCUS" $command $length >"$(echo "$length" | tr -d ' =')"
        echo "exit $?"
    done
    for other in --n5 -n5 --length5; do cmp ./-n5 "./$other"; done
done
tiny='--heads 2 --rounds 1 --isa generic --no-baseline --scheme alibi --direction forward --json'
for size in "-n 9 -d 8" "--n 9 --d 8" "--length 9 --dim 8"; do
    # shellcheck disable=SC2086
    "$LOCUS" bench $tiny $size | grep -oE '"(n|d)": [0-9]+' | tr '\n' ' '
    echo
done
try plot alibi --z 1
try plot alibi -z 1
