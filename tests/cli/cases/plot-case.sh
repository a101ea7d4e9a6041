# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden shaw/keys-values.safetensors
quiet plot --case case.safetensors
quiet plot shaw --case case.safetensors --what attention,terms,rows,distance
try plot t5 --case case.safetensors
try plot --case case.safetensors --causal
try plot --case absent.safetensors
printf 'nothing' >bad.safetensors
try plot --case bad.safetensors
