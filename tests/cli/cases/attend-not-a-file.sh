# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# Whatever is not a regular file is refused at once.
mkdir folder
mkfifo fifo
: >empty
echo '<!DOCTYPE html><html>' >page.safetensors
for file in folder fifo empty page.safetensors /dev/zero; do
    try attend $file --check
    try inspect $file
done
