# SPDX-License-Identifier: Apache-2.0
# More heads than a picture shows: its titles say how many there are.
for heads in 8 16; do
    "$LOCUS" plot alibi --what bias --heads $heads -o bias.svg && sed -n 's/.*>\(bias by distance[^<]*\)<.*/\1/p' bias.svg
done
"$LOCUS" plot alibi --what attention --heads 12 -o attention.svg && grep -c 'attention, head [0-7] of 12<' attention.svg
