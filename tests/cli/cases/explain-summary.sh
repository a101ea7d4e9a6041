# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# All pairs of a head: shares of the terms, means by distance.
try explain --scheme tupe --tokens "the cat sat on the mat"
try explain --scheme rope --tokens "the cat sat on the mat" --causal --head 3
try explain --scheme sinusoidal --tokens "one" --seed 7
printf 'the cat\nsat\n' | try explain --scheme alibi --text -
