# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try plot
try plot t6
try plot t5 --what encoding
try plot t5 --what biass
try plot t5 -n 0
try plot t5 -n 1025
try plot t5 --tokens "   "
head -c 200000 /dev/zero | tr '\0' 'a' | sed 's/aa/a /g' >long.txt
try plot t5 --text long.txt
try plot t5 --text absent.txt
try plot t5 --tokens "a b" -n 2
try plot t5 --option buckets=3
try plot t5 --option clip_left=3
try plot t5 --option buckets
try plot t5 --head 9
try plot t5 --theme pink
try plot t5 --width 10
try plot t5 --csv --json
try plot t5 -o picture.gif
try plot t5 -o no/such/folder/t5.svg
mkdir folder.svg
try plot t5 -o folder.svg
try plot xpos --dim 3
rmdir folder.svg
absent no* *.part
