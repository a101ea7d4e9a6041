# SPDX-License-Identifier: Apache-2.0
# --labels: a pair for each of them; scores of a text are one, and the same alone and in a batch.
. "$SUPPORT/lib.sh"
try() { "$LOCUS" "$@"; echo "exit $?"; }
model nli architectures='["BertForSequenceClassification"]' id2label='{"0": "contradiction", "1": "neutral", "2": "ENTAILMENT"}'
model plain architectures='["BertForSequenceClassification"]' id2label='{"0": "no", "1": "yes"}'
rounded run nli "the work" --labels "license, the work ,of"
rounded run nli "the work" --labels license,of --multi-label --json
rounded run nli "the work" --labels license --hypothesis "of {}"
printf 'the work\nof\nthe license of the work\n' >lines
"$LOCUS" run nli --file lines --labels license,of --json --tokens-per-batch 1 >alone
"$LOCUS" run nli --file lines --labels license,of --json | cmp - alone
wc -l <alone
rounded run nli --file lines --labels license,of
try run nli "the work" --labels " , " 2>&1
try run nli "the work" --labels of --hypothesis no 2>&1
try run nli "the work" --labels of --task classify 2>&1
try run nli "the work" --labels of --rank of 2>&1
try run nli "the work" --multi-label 2>&1
try run plain "the work" --labels of 2>&1
