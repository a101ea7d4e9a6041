# SPDX-License-Identifier: Apache-2.0
try() { "$LOCUS" "$@"; echo "exit $?"; }
try run
try run nowhere
try run nowhere text --ids 1
try run nowhere --ids 1 --pair a
try run nowhere a --tokens-per-batch 0
try run nowhere a --tokens-per-batch 1048577 # beyond MOST_BATCH
try run nowhere a --tokens-per-batch 1048576
try run nowhere a --beams 65 # beyond MOST_BEAMS
try run nowhere a --beams 64
try run nowhere --ids 1,2
try run nowhere --ids 1,x
try run nowhere --ids 1,2147483648
try run nowhere --ids 1, --json
try run nowhere --ids 1 --task hiden
try run nowhere --ids 1 --task sing
try run nowhere --ids 1 --task hidden
try run nowhere --ids 1 -o h.safetensors
mkdir folder
try run folder --ids 1
echo '{"model_type": "mamba"}' >folder/config.json
try run folder --ids 1
echo '{"model_type": "bert"}' >folder/config.json
try run folder --ids 1
try run folder --ids 1 --isa avx1024
