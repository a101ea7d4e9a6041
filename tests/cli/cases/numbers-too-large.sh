# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# 2^32 is one more than an option holds, and must not become 0.
try plot t5 --seed 4294967295 -o largest.svg
try plot t5 --seed 4294967296 -o larger.svg
try plot t5 --seed 18446744073709551616 -o largest-of-all.svg
try plot t5 --seed "" -o empty.svg
ls
