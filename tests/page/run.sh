#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of locus demo: read, its code compiled and run, and opened in a browser, which must
# have nothing to complain about. Screenshots are left in $BUILD/tests/page.
. "$(dirname "$0")/../support/check.sh"
here=$ROOT/tests/page
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

if ! command -v python3 >/dev/null 2>&1; then
    begin page/all
    skip "python3 is not installed"
    finish page
fi

tab=$(printf '\t')
cases() { # FILE: lines of read.py and look.py, each a case
    while IFS=$tab read -r name trouble; do
        begin "page/$name"
        check "$trouble" test -z "$trouble"
    done <"$1"
}

begin page/write
write() { "$LOCUS" demo --quick -o "$SCRATCH/new/folder" >"$SCRATCH/table"; }
check "locus demo -o" write
check "the table says where the page is" grep -qF "page: $SCRATCH/new/folder/index.html" "$SCRATCH/table"
check "the page and nothing else" test "$(ls "$SCRATCH/new/folder")" = index.html
page=$SCRATCH/new/folder/index.html

begin page/read
check "read.py" sh -c 'python3 "$1/read.py" "$2" "$3/page.c" >"$3/read"' sh "$here" "$page" "$SCRATCH"
cases "$SCRATCH/read"

begin page/code
cat "$SCRATCH/page.c" "$here/calls.c" >"$SCRATCH/calls.c"
compile() { # COMPILER
    "$1" -std=c11 -Wall -Wextra -Werror -Iinclude "$SCRATCH/calls.c" "$BUILD/liblocus.so" \
        "-Wl,-rpath,$BUILD" -lm -o "$SCRATCH/calls"
}
check "compiles" compile "${CC:-cc}"
check "runs" "$SCRATCH/calls"

browser=$(cd "$here" && python3 -c 'import browser; print(browser.find() or "")')
if [ -z "$browser" ]; then
    begin page/browser
    skip "chromium is not installed"
    finish page
fi

look() { # PAGE NAME [PICTURES]
    mkdir -p "$SCRATCH/$2" && python3 "$here/look.py" "$1" "$SCRATCH/$2" ${3:+"$3"} >"$SCRATCH/$2.cases"
}

begin page/browser
mkdir -p "$BUILD/tests/page"
check "look.py" look "$page" good "$BUILD/tests/page"
check "all of its cases" test "$(wc -l <"$SCRATCH/good.cases")" -eq 14
cases "$SCRATCH/good.cases"

# A page with everything wrong in it: whoever finds nothing here does not look.
begin page/spoiled
sed -e 's/<meta http-equiv[^>]*>//' \
    -e 's|<main id="main">|<main id="start"><img src="http://127.0.0.1:9/x.png"><div style="width:3000px">\&nbsp;</div><p tabindex="5" style="color:#888">x</p><script>console.error(1)</script>|' \
    -e 's/prefers-color-scheme:dark/prefers-color-scheme:none/' "$page" >"$SCRATCH/spoiled.html"
check "look.py" look "$SCRATCH/spoiled.html" bad
for name in width-1280 width-400 names-400 links keyboard skip-link themes network console; do
    check "$name is not noticed" grep -q "^$name$tab." "$SCRATCH/bad.cases"
done

finish page
