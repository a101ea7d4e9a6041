# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
model bert
rounded run bert "the license"
rounded run bert "the license" --pair "" --json
rounded run bert "the license" --pair "it's" --json
rounded run bert --ids 2,5,3 --json
rounded run bert "the license" "a work" --json --tokens-per-batch 1
printf 'the license\ta work\n\na\0b' | rounded run bert --file - --json
rounded run bert "the license of the work, the license of the work, the license of the work" --truncate 24 --json
rounded run bert "the license of the work" --truncate 4 --json --task hidden -o h.safetensors
"$LOCUS" inspect h.safetensors | grep -c hidden
rounded run bert --ids 2,400,3
rounded run bert "the license" "a [MASK] work" "the license of the work, the license of the work, the license of the work" a
rounded run bert "the license" --task classify
rounded run bert a b --task hidden -o h.safetensors
model classes 'architectures=["BertForSequenceClassification"]' 'id2label={"0": "no", "1": "yes"}'
rounded run classes "the license"
rounded run classes "the license" "a work"
rounded run classes "the license" --json
rounded run classes "the license" --task embed
model tags 'architectures=["BertForTokenClassification"]' 'id2label={"0": "O", "1": "B-X", "2": "I-X"}'
rounded run tags "the license"
rounded run tags "the license" --json
rounded run tags --ids 2,3
rm tags/tokenizer.json
rounded run tags --ids 2,3
rounded run tags "the license"
rounded run tags --ids 2,3 --json
model masks 'architectures=["BertForMaskedLM"]'
rounded run masks "the [MASK] of the [MASK]" "a" "[MASK]"
rounded run masks "the [MASK]" --json
rounded run masks --ids 2,4,3 --json
