# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
model small model_type=t5
rounded explain small --text "the license" --stack decoder --decoder-ids 0,5,9
rounded explain small --text "the license" --stack decoder --decoder-ids 0,5,9 --layer 1 --head 1
rounded explain small --text "the license" --stack cross --decoder-ids 0,5,9 --layer 1 --head 1
rounded explain small --text "the license" --stack cross --decoder-ids 0,5,9 --layer 0 --query 1
rounded explain small --text "the license" --stack cross --decoder-ids 0,5 --layer 0 --query 1 --json
rounded explain small --text "the license" --stack cross --decoder-ids 0,5 --layer 0 --query 1 --csv
rounded explain small --text "the license" --stack cross --layer 1 -o cross.svg
grep -c 'token of the decoder' cross.svg
rounded plot small --what bias --stack decoder -n 8
rounded plot small --what share --stack decoder --csv
# what does not fit
rounded plot small --what share --stack cross
rounded plot small --what bias --stack cross
rounded explain small --text a --stack middle
rounded explain small --text a --decoder-ids 0
rounded explain small --text a --stack decoder --decoder-ids 0,x
rounded explain small --text a --stack cross --layer 0 --csv
rounded explain --scheme t5 --tokens a --stack decoder
rounded plot rope --stack decoder
model bert
rounded explain bert --text a --stack decoder
rounded plot ./bert --what bias --stack decoder
