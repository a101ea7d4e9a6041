# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden alibi/bloom-8.safetensors
"$LOCUS" inspect case.safetensors --json
