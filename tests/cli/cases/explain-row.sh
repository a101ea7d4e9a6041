# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# One query and all its keys; equal words have equal content, hidden keys have none.
try explain --scheme transformer_xl --tokens "the cat sat on the mat" --query 4 --causal
try explain --scheme none --tokens 'one "two" ünï' -q 2 --csv
golden deberta/v2-shared.safetensors
try explain case.safetensors --query 1 --head 1
