#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page that computes: the module's bits against the portable kernels (under node), the page in
# a browser with real input events, the types of its scripts. Screenshots are left in $BUILD/tests/web.
. "$(dirname "$0")/../support/check.sh"
here=$ROOT/tests/web
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

tab=$(printf '\t')
cases() { # FILE: lines NAME<tab>TROUBLE, each a case; lines with # are for the reader
    grep '^#' "$1"
    grep -v '^#' "$1" >"$1.cases"
    while IFS=$tab read -r name trouble; do
        begin "web/$name"
        check "$trouble" test -z "$trouble"
    done <"$1.cases"
}

begin web/types
if command -v tsc >/dev/null 2>&1; then
    check "tsc" tsc --allowJs --checkJs --noEmit --strict --target es2022 --module es2022 \
        --lib es2022,dom,dom.iterable web/js/main.js web/js/explain_page.js
else
    skip "tsc is not installed (node-typescript)"
fi

missing=$(tools/setup.sh page-missing)
if [ -n "$missing" ]; then
    begin web/module
    skip "not installed:$missing"
    finish web
    exit
fi

begin web/build
check "make page" make page "BUILD=$BUILD"
page=$BUILD/page/index.html
check "at most 1.6 MB" test "$(wc -c <"$page")" -le 1600000

begin web/bits
compile() {
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -Iinclude "$here/native.c" "$BUILD/liblocus.so" "-Wl,-rpath,$BUILD" \
        -o "$SCRATCH/native"
}
check "native.c compiles" compile
if command -v node >/dev/null 2>&1; then
    check "bits.mjs" sh -c 'node --no-warnings "$1/bits.mjs" "$2/wasm/locus.wasm" "$3/native" >"$3/bits"' sh "$here" "$BUILD" "$SCRATCH"
    check "every scheme" test "$(wc -l <"$SCRATCH/bits")" -gt 80
    cases "$SCRATCH/bits"
else
    skip "node is not installed"
fi

browser=$(cd "$ROOT/tests/page" && python3 -c 'import browser; print(browser.find() or "")')
if [ -z "$browser" ]; then
    begin web/browser
    skip "chromium is not installed"
    finish web
    exit
fi
begin web/browser
mkdir -p "$BUILD/tests/web"
check "drive.py" sh -c 'python3 "$1/drive.py" "$2" "$3" "$4" "$5" >"$4/drive"' sh \
    "$here" "$page" "$LOCUS" "$SCRATCH" "$BUILD/tests/web"
cases "$SCRATCH/drive"

check "switch.py" sh -c 'python3 "$1/switch.py" "$2" "$3" "$4" "$5" >"$4/switch"' sh \
    "$here" "$LOCUS" "$ROOT" "$SCRATCH" "$BUILD/models"
check "every page" test "$(wc -l <"$SCRATCH/switch")" -ge 12
cases "$SCRATCH/switch"

# A page with mistakes in it: whoever finds nothing here does not look.
begin web/spoiled
sed -e 's/<meta http-equiv[^>]*>//' -e 's/chosen\.set(name, value)/void (name, value)/' -e 's/history\.pushState(/void (/' \
    -e 's/^function fit(/console.error(1);document.body.append(Object.assign(new Image(),{src:"http:\/\/127.0.0.1:9\/x.png"}));&/' \
    -e 's|<main id="main">|&<div style="width:3000px">\&nbsp;</div>|' \
    -e 's/dataset\.weight = String(/dataset.weight = String(0.001 + /' "$page" >"$SCRATCH/spoiled.html"
mkdir "$SCRATCH/bad"
unset LOCUS_TEST_SAMPLE
check "drive.py" sh -c 'LOCUS_WEB_CASES="controls/t5 numbers/t5 shared_address console network width-1280" \
    python3 "$1/drive.py" "$2/spoiled.html" "$3" "$2/bad" >"$2/bad/drive"' sh "$here" "$SCRATCH" "$LOCUS"
for name in controls/t5 numbers/t5 shared_address console network width-1280; do
    check "$name is not noticed" grep -q "^$name$tab." "$SCRATCH/bad/drive"
done
finish web
