# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
model bert position_embedding_type=relative_key_query
"$LOCUS" inspect bert | grep -v '^memory'
"$LOCUS" inspect bert --json | grep -v '"bytes"'
model classes vocab_size=390 'architectures=["BertForSequenceClassification"]' 'id2label={"0": "no", "1": "yes"}'
"$LOCUS" inspect classes | grep -v '^memory'
rm classes/tokenizer.json
"$LOCUS" inspect classes | grep -v '^memory'
try inspect bert --values --json >/dev/null
echo '{"model_type": "mamba"}' >bert/config.json
"$LOCUS" inspect bert --json 2>/dev/null | cut -c 1-70
try inspect bert 2>/dev/null
