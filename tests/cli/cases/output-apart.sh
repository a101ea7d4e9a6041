# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# Nothing is written over what is read, nor where a model is read from; other names are free in its folder.
model bert
cp -r bert before
mkdir bert/inner
ln -s bert link
quiet run bert --ids 5,6 --task hidden -o bert/model.safetensors
quiet run bert --ids 5,6 --task hidden -o bert/model.safetensors.index.json
quiet run bert/ --ids 5,6 --task hidden -o bert/inner/config.json
quiet run link --ids 5,6 --task hidden -o ../folder/bert/tokenizer.model
quiet run bert --ids 5,6 --task hidden -o link/model-00001-of-00002.safetensors
(cd bert && quiet run . --ids 5,6 --task hidden -o vocab.txt)
quiet run bert --ids 5,6 --task hidden -o bert/hidden.safetensors
quiet run bert --ids 5,6 --task hidden -o bert/hidden.safetensors
quiet plot learned -o bert/x.svg
rm bert/hidden.safetensors bert/x.svg
quiet run bert --ids 5,6 --task hidden -o beside.safetensors
rmdir bert/inner
diff -r bert before && ls
