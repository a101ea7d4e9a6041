# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden t5/encoder.safetensors
"$LOCUS" attend case.safetensors -o out.safetensors >report
echo "exit $?"
"$LOCUS" inspect out.safetensors | awk '$2 == "F32" { print $1, $2, $3 }' | sort
ls
