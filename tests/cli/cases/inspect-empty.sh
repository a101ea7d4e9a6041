# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
python3 -c 'import casefile; casefile.write_raw("empty.safetensors", b"{}", b"")'
try inspect empty.safetensors
try inspect empty.safetensors --json
python3 -c 'import casefile; casefile.write("half.safetensors", {}, {"format": "locus.case/1"})'
try inspect half.safetensors
