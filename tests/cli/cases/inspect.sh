# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden t5/encoder.safetensors
"$LOCUS" inspect case.safetensors
