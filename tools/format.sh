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
    for folder in include src cli examples bench bindings tests; do
        [ -d "$folder" ] && find "$folder" -name '*.[ch]' -type f
    done | LC_ALL=C sort
}

if [ "${1-}" = --check ]; then
    status=0
    for file in $(sources); do
        "$formatter" --style=file "$file" | cmp -s - "$file" || {
            echo "$file: not formatted (make format)"
            status=1
        }
    done
    exit $status
fi
sources | xargs "$formatter" --style=file -i
