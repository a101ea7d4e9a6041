# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
tokenizer bert
try tokenize bert "the license" --pair "work" --json
tokenizer t5-files
try tokenize t5-files "the license <extra_id_0>" "" --json
# Bytes that are no UTF-8, tokens that hold NUL.
tokenizer byt5
try tokenize byt5 "$(printf 'a\377')" --json
printf 'x\0y\n' | try tokenize byt5 --file - --json
# A tab begins the second segment; empty lines and a last line without an end count.
printf 'the\twork\n\nlast ' | try tokenize bert --file - --json
printf 'one\n' >lines.txt
try tokenize bert --file lines.txt --json
