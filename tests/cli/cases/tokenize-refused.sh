# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try tokenize
try tokenize absent "text"
mkdir empty && try tokenize empty "text"
tokenizer bert
try tokenize bert
try tokenize bert x --file y
try tokenize bert --file absent.txt
try tokenize bert "a b c" --truncate 1
try tokenize bert x --truncate 0
try tokenize bert x --truncte 9
mkdir broken && printf '{"model": {"type": "Other"}}' >broken/tokenizer.json
try tokenize broken "text"
mkdir cut && head -c 1000 bert/tokenizer.json >cut/tokenizer.json
try tokenize cut "text"
mkdir spm && head -c 300 "$GOLDEN/../data/tokenizers/unigram.model" >spm/spiece.model
try tokenize spm "text"
mkdir jieba && printf '{"model_type": "roformer"}' >jieba/config.json && echo '[UNK]' >jieba/vocab.txt
try tokenize jieba "text"
