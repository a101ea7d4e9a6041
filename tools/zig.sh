#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# zig.sh: the C compiler for other systems, the Python package ziglang, in a venv of its own in the build
# folder; prints the path of the program zig. Exit 1 where it cannot be had. cmake/zig.cmake uses it.
cd "$(dirname "$0")/.." || exit 1
version=0.17.0
venv=${BUILD:-build}/zig
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac

find_zig() { for zig in "$venv"/lib/python3*/site-packages/ziglang/zig; do [ -x "$zig" ] && echo "$zig" && return; done; return 1; }

mkdir -p "${BUILD:-build}"
if [ "$(cat "$venv/locus-version" 2>/dev/null)" != "$version" ]; then
    { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "ziglang==$version" &&
        find_zig && echo "$version" >"$venv/locus-version"; } >"${BUILD:-build}/zig.log" 2>&1 || {
        echo "zig: pip found no ziglang $version (${BUILD:-build}/zig.log)" >&2
        exit 1
    }
fi
find_zig
