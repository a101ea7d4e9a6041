# SPDX-License-Identifier: Apache-2.0
# With cairo a PNG of the width that was asked for; without it one line that says what to install.
. "$SUPPORT/lib.sh"
if "$LOCUS" plot t5 --width 500 -o t5.png 2>message; then
    dd if=t5.png bs=1 count=4 2>/dev/null | tail -c 3 >kind
    printf 'PNG' | cmp - kind && [ "$(od -An -tu1 -j18 -N2 t5.png | tr -s ' ')" = " 1 244" ] && echo "as asked"
else
    grep -q 'install libcairo2-dev' message && [ "$(wc -l <message)" -eq 1 ] && echo "as asked"
    absent t5.png
fi
