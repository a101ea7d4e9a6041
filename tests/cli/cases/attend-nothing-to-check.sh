# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
python3 -c 'import casefile; casefile.write("case.safetensors", *casefile.plain())'
quiet attend case.safetensors --check
quiet attend case.safetensors --check -o out.safetensors
quiet inspect out.safetensors
