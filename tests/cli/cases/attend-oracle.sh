# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden t5/encoder.safetensors
quiet attend case.safetensors --oracle --check -o out.safetensors --tolerance 1e-9
"$LOCUS" inspect out.safetensors | awk '$2 == "F64" { print $1, $2 }' | sort
