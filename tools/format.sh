#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format.sh          format all C sources in place
# format.sh --check  name the files that would change; exit 1 if there are any
# Exit 77: no clang-format 14 here (other versions decide otherwise).
set -u
cd "$(dirname "$0")/.." || exit 1

formatter=
for name in clang-format-14 clang-format; do
    if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
        formatter=$name
        break
    fi
done
[ -n "$formatter" ] || { echo "format: clang-format 14 is not installed" >&2; exit 77; }

sources() {
    for folder in include src lab cli examples bench bindings tests; do
        [ -d "$folder" ] && find "$folder" -name '*.[ch]' -type f
    done | LC_ALL=C sort
}

if [ "${1-}" = --check ]; then
    # Many files per process: a process each took most of the time.
    wrong=$(sources | xargs "$formatter" --style=file --dry-run 2>&1 |
        sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: .*/\1: not formatted (make format)/p' | LC_ALL=C sort -u)
    [ -z "$wrong" ] && exit 0
    echo "$wrong"
    exit 1
fi
sources | xargs "$formatter" --style=file -i
