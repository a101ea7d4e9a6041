# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
tokenizer roberta
ids=$("$LOCUS" tokenize roberta "Copyright notice, e" --json | sed 's/.*"ids": \[\([^]]*\)\].*/\1/; s/ //g')
try tokenize roberta --ids "$ids"
try tokenize roberta --ids "$ids" --json
try tokenize roberta --ids "$ids,999999"
try tokenize roberta --ids 1,,2
try tokenize roberta --ids -1
