# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# What is not a regular file is not replaced: a FIFO, and a device behind a link.
mkfifo fifo.svg
ln -s /dev/null device.svg
mkdir folder.svg
for name in fifo.svg device.svg folder.svg; do
    quiet plot t5 --csv -o $name
    quiet explain --scheme t5 --tokens "a b" -o $name
done
quiet bench --scheme none --length 64 --rounds 1 --direction forward --svg fifo.svg
[ -p fifo.svg ] && [ -c device.svg ] && echo "both are what they were"
# A name as long as a name may be.
long=$(printf 'x%.0s' $(seq 250)).svg
quiet plot t5 -o $long
[ -f $long ] && rm $long
# A limit of file size is a full disk, not a signal; nothing is left behind.
golden none/plain.safetensors
(
    ulimit -f 1
    for command in "attend case.safetensors" "plot t5" "explain case.safetensors"; do
        quiet $command -o out.svg
    done
    quiet lab train --task copy --scheme t5 --steps 2 -o lab
) 2>&1 | cat
ls -A . lab
