#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generated documents are those that the program generates today; local links lead somewhere.
. "$(dirname "$0")/../support/check.sh"

begin docs/schemes.md
if [ -x "$LOCUS" ]; then
    fresh() { "$LOCUS" schemes --markdown >"$SCRATCH/schemes.md"; }
    check "locus schemes --markdown" fresh
    check "stale: locus schemes --markdown > docs/schemes.md" diff -u docs/schemes.md "$SCRATCH/schemes.md"
else
    skip "no program in this build"
fi

begin docs/stubs
if [ -x "$LOCUS" ] && command -v python3 >/dev/null 2>&1; then
    for stub in bindings/python/locus/__init__.pyi bindings/python/locus/torch/functional.pyi; do
        cp "$stub" "$SCRATCH/stub.pyi"
        check "tools/write-stubs.py" python3 tools/write-stubs.py "$LOCUS" "$SCRATCH/stub.pyi"
        check "stale: tools/write-stubs.py build/locus $stub" diff -u "$stub" "$SCRATCH/stub.pyi"
    done
else
    skip "no program in this build, or no python3"
fi

begin docs/stills
if [ -x "$LOCUS" ] && command -v node >/dev/null 2>&1; then
    check "tools/stills.mjs" node --no-warnings tools/stills.mjs "$SCRATCH" "$LOCUS"
    for picture in switch.svg product.svg; do
        check "stale: node tools/stills.mjs docs build/locus" cmp "docs/$picture" "$SCRATCH/$picture"
    done
else
    skip "no program in this build, or no node"
fi

begin docs/lessons.md
if [ -x "$LOCUS" ] && command -v python3 >/dev/null 2>&1; then
    fresh() { python3 tools/lessons.py "$LOCUS" >"$SCRATCH/lessons.md"; }
    check "tools/lessons.py" fresh
    check "stale: tools/lessons.py build/locus > docs/lessons.md" diff -u docs/lessons.md "$SCRATCH/lessons.md"
else
    skip "no program in this build, or no python3"
fi

begin docs/lessons-on-paper
python=$BUILD/venv/bin/python
if [ -e "$BUILD/python/locus/_native.abi3.so" ] && [ -x "$python" ]; then
    mkdir -p "$SCRATCH/package/locus"
    ln -s "$ROOT"/bindings/python/locus/*.py "$BUILD/python/locus/_native.abi3.so" "$SCRATCH/package/locus/"
    check "the Python of the lessons" env "PYTHONPATH=$SCRATCH/package" PYTHONDONTWRITEBYTECODE=1 "$python" tests/docs/lessons.py docs/lessons.md
    sed 's/^# score \[5/# score [6/' docs/lessons.md >"$SCRATCH/spoiled.md"
    check "a wrong number is not noticed" sh -c '! PYTHONPATH=$1 "$2" tests/docs/lessons.py "$3" >/dev/null' sh \
        "$SCRATCH/package" "$python" "$SCRATCH/spoiled.md"
else
    skip "no venv, or no extension module in this build"
fi

begin docs/kernel-pictures
if command -v python3 >/dev/null 2>&1; then
    check "tools/draw-kernels.py" python3 tools/draw-kernels.py "$SCRATCH"
    for picture in docs/kernel-*.svg; do
        check "stale: tools/draw-kernels.py docs" cmp "$picture" "$SCRATCH/${picture#docs/}"
    done
else
    skip "no python3"
fi

begin docs/gallery
if [ -x "$LOCUS" ]; then
    check "tools/gallery.sh" tools/gallery.sh "$LOCUS" "$SCRATCH/gallery"
    check "stale: make gallery" diff -rq docs/gallery "$SCRATCH/gallery"
    check "a picture of every scheme" sh -c '
        for scheme in $("$1" schemes --json | sed -n "s/^    \"name\": \"\([a-z0-9_]*\)\",$/\1/p"); do
            grep -q "locus plot $scheme" docs/gallery/README.md || { echo "none of $scheme"; exit 1; }
        done' sh "$LOCUS"
else
    skip "no program in this build"
fi

block() { # LANGUAGE: the first fenced block of README.md in it
    awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } /^\`\`\`/ { if (on) exit } on' README.md
}

begin docs/readme-program
block c >"$SCRATCH/program.c"
check "has a program" test -s "$SCRATCH/program.c"
compile() {
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iinclude "$SCRATCH/program.c" "$BUILD/liblocus.so" \
        "-Wl,-rpath,$BUILD" -o "$SCRATCH/program"
}
check "compiles" compile
runs() { "$SCRATCH/program" >"$SCRATCH/program.out"; }
check "runs" runs
check "prints one line per token" test "$(wc -l <"$SCRATCH/program.out")" -eq 4

begin docs/readme-shell
block sh | sed "s,build/locus,$LOCUS,; s,build/out,$SCRATCH/out," >"$SCRATCH/shell.sh"
check "has commands" test "$(wc -l <"$SCRATCH/shell.sh")" -ge 3
commands() { sh -e "$SCRATCH/shell.sh" >"$SCRATCH/shell.out"; }
check "run" commands

begin docs/links
links() { # FILE: targets of [text](target) that are files
    grep -o '](\([^)#]*\)[^)]*)' "$1" | sed 's/^](//; s/[)#].*//' | grep -vE '^$|^[a-z]+:'
}
for file in *.md docs/*.md docs/gallery/*.md; do
    [ -e "$file" ] || continue
    check "$file ends with a newline" test -z "$(tail -c 1 "$file")"
    for target in $(links "$file"); do
        check "$file: no file $target" test -e "$(dirname "$file")/$target"
    done
done

begin docs/changelog
version=$(awk '/^#define LOCUS_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/locus/status.h)
check "CHANGELOG.md has no section for $version" grep -qF "## $version" CHANGELOG.md

finish docs
