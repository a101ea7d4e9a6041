# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# Nothing is written over what is read, nor into the folder of a model.
model bert
cp -r bert before
mkdir bert/inner
ln -s bert link
quiet run bert --ids 5,6 --task hidden -o bert/model.safetensors
quiet run bert --ids 5,6 --task hidden -o bert/model.safetensors.index.json
quiet run bert/ --ids 5,6 --task hidden -o bert/inner/x
quiet run link --ids 5,6 --task hidden -o ../folder/bert/new
quiet explain bert --text "the license" -o link/x.svg
quiet plot bert -o bert/x.svg
(cd bert && quiet run . --ids 5,6 --task hidden -o x)
quiet run bert --ids 5,6 --task hidden -o beside.safetensors
rmdir bert/inner
diff -r bert before && ls
