# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
tokenizer bert
try tokenize bert "Copyright notice: caf$(printf '\303\251')" "" "a [MASK]"
try tokenize bert "the license" --pair "it's" --truncate 6
try tokenize bert "the license" --plain
tokenizer roberta
try tokenize roberta "the  <mask> license" -- "-x"
# Tokens that hold NUL, also at their end.
tokenizer byt5
printf 'x\0\n\0\n' | try tokenize byt5 --file -
