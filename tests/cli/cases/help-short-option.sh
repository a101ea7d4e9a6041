# SPDX-License-Identifier: Apache-2.0
# -h, --help and "help" say the same.
"$LOCUS" --help >a && "$LOCUS" -h >b && "$LOCUS" help >c && cmp a b && cmp a c
for command in attend schemes inspect demo help; do
    "$LOCUS" $command --help >a && "$LOCUS" $command -h >b && "$LOCUS" help $command >c &&
        cmp a b && cmp a c || echo "$command differs"
done
