# SPDX-License-Identifier: Apache-2.0
# --rank: texts behind a query, the best first, whatever the batches are.
. "$SUPPORT/lib.sh"
try() { "$LOCUS" "$@"; echo "exit $?"; }
model reranker architectures='["BertForSequenceClassification"]' id2label='{"0": "LABEL_0"}'
model two architectures='["BertForSequenceClassification"]' id2label='{"0": "no", "1": "yes"}'
printf 'the work\nof\n\nthe license of the work\nof\n' >lines
rounded run reranker --rank "the license" --file lines
rounded run reranker --rank "the license" of "the work" --json
"$LOCUS" run reranker --rank "the license" --file lines --json >whole
"$LOCUS" run reranker --rank "the license" --file lines --json --tokens-per-batch 1 | cmp - whole
try run two --rank "the license" of 2>&1
try run reranker --rank "the license" of --pair of 2>&1
