# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
model bert position_embedding_type=relative_key_query
rounded explain bert --text "the license of the work"
rounded explain bert --text "the license of the work" --json
rounded explain bert --text "the license of the work" --layer 1 --head 1 -o terms.svg
grep -c '<rect\|<path' terms.svg | grep -vx 0 >/dev/null && echo "a picture"
rounded explain bert --text "the work" --layer 0 --query 1 --json
rounded explain bert --text "the work" --layer 0 --head 1 --query 1 --key 2
rounded explain bert
rounded explain bert --text a --head 1
rounded explain bert --text a --tokens b
rounded explain bert --text a --layer 2
rounded explain bert --text a --layer 1 --head 2
rounded explain bert --text a -o a.svg
rounded explain --scheme t5 --tokens a --layer 1
