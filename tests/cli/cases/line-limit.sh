# SPDX-License-Identifier: Apache-2.0
# A line has at most MOST_LINE bytes (cli/inputs.c): 16,777,216. An endless one ends there.
. "$SUPPORT/lib.sh"
tokenizer bert
head -c 16777216 /dev/zero | tr '\0' a | "$LOCUS" tokenize bert --file - --json | head -c 40
echo
{ echo short && head -c 16777217 /dev/zero | tr '\0' a; } >long
try tokenize bert --file long
tr '\0' a </dev/zero 2>/dev/null | "$LOCUS" tokenize bert --file -
echo "exit $?"
