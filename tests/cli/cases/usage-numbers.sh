# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
for n in abc 0 -1 1025 1000000 4294967297 99999999999999999999 1e3 "" " 2" 2x 0x10 +2; do
    try attend case --check --threads "$n"
done
for x in abc 0 -1 nan inf 1e999 0x1p3 "" " 1" 1,5; do
    try attend case --check --tolerance "$x"
done
