# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
golden none/plain.safetensors
echo old >out.safetensors
quiet attend case.safetensors -o out.safetensors
quiet inspect out.safetensors
# Never onto the case itself, by whatever name.
cp case.safetensors before
ln -s case.safetensors link.safetensors
quiet attend case.safetensors -o case.safetensors
quiet attend case.safetensors -o ./case.safetensors
quiet attend link.safetensors -o case.safetensors
quiet plot --case case.safetensors -o ../folder/case.safetensors
quiet explain case.safetensors -o case.safetensors
cmp before case.safetensors
ls
