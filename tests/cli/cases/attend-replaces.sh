# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden none/plain.safetensors
echo old >out.safetensors
quiet attend case.safetensors -o out.safetensors
quiet inspect out.safetensors
# Onto the case itself: the old file or the new one, never a part.
quiet attend case.safetensors -o case.safetensors
cmp out.safetensors case.safetensors
ls
