# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
model bert position_embedding_type=relative_key_query max_position_embeddings=600
rounded plot ./bert --what share --text "the license of the work" --csv
rounded plot bert --what terms --text "the work" --layer 1 --head 1 --csv
rounded plot bert -o share.svg
grep -c "what its heads look by" share.svg
rounded plot bert --what bias
rounded plot bert --what share --tokens a
rounded plot bert --what rows
rounded plot bert --what bias --length 1025
rounded plot bert --what terms --text a --layer 2
# MOST_MODEL_TOKENS, 512, with [CLS] and [SEP]
long=$(head -c 1020 /dev/zero | sed 's/\x0\x0/a /g')
quiet plot bert --what share --text "$long"
quiet plot bert --what share --text "$long a"
model plain
rounded plot plain --what share
