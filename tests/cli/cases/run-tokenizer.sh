# SPDX-License-Identifier: Apache-2.0
# --tokenizer: the folder of a model without its tokenizer, which is elsewhere, as diffusers has it.
. "$SUPPORT/lib.sh"
model whole
tokenizer bert
cp -r whole bare
rm -f bare/tokenizer* bare/vocab* bare/special*
"$LOCUS" run whole "a text" --json >one
"$LOCUS" run bare "a text" --json --tokenizer bert >two
cmp one two && [ -s one ] && echo same
"$LOCUS" explain whole --text "a text" | sed 's/whole//' >one
"$LOCUS" explain bare --text "a text" --tokenizer bert/tokenizer.json | sed 's/bare//' >two
cmp one two && [ -s one ] && echo same
quiet run bare "a text"
quiet run bare "a text" --tokenizer nowhere
