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

begin docs/links
links() { # FILE: targets of [text](target) that are files
    grep -o '](\([^)#]*\)[^)]*)' "$1" | sed 's/^](//; s/[)#].*//' | grep -vE '^$|^[a-z]+:'
}
for file in *.md docs/*.md; do
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
