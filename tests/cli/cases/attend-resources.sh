# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden none/plain.safetensors
try attend missing.safetensors -o out.safetensors
quiet attend case.safetensors -o nowhere/out.safetensors
quiet attend case.safetensors -o .
[ -d /proc/self ] && quiet attend case.safetensors -o /proc/out.safetensors
ls
