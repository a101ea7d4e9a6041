#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other systems, by the compiler that tools/zig.sh installs: sources compile for macOS and Windows (a sample of
# them in quick runs), the library for Windows is linked and computes under wine what the golden vectors say; in
# full runs `make cross` builds every target.
. "$(dirname "$0")/../support/check.sh"

zig=$(tools/zig.sh 2>"$SCRATCH/why")
[ -n "$zig" ] || {
    begin cross/zig
    skip "$(cat "$SCRATCH/why")"
    finish cross
}

begin cross/unknown
refuse "a target that nobody knows must be refused" tools/cross.sh beos

begin cross/toolchain
refuse "a toolchain without its compiler must be refused" cmake -S . -B "$SCRATCH/none" -DLOCUS_ZIG="$SCRATCH/zig" \
    -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/windows.cmake"
cp "$SCRATCH/.output" "$SCRATCH/refused"
check "and says what installs it" grep -q 'tools/zig.sh' "$SCRATCH/refused"

# What asks the system, for the two that differ most.
compile() { # TARGET FILE
    ZIG_GLOBAL_CACHE_DIR=$BUILD/zig/cache ZIG_LOCAL_CACHE_DIR=$BUILD/zig/cache "$zig" cc -target "$1" -std=c11 \
        -Wall -Wextra -Werror -Isrc -Iinclude -c "$2" -o "$SCRATCH/one.o"
}
begin cross/system
check "Windows: src/io/windows/system.c" compile x86_64-windows-gnu src/io/windows/system.c
check "macOS: src/io/system.c" compile aarch64-macos.13.0 src/io/system.c
for file in src/core/memory.c src/core/parallel.c src/core/cpu.c src/io/names.c src/text/read.c; do
    for target in x86_64-windows-gnu aarch64-macos.13.0 x86_64-macos.13.0 riscv64-linux-gnu.2.36 aarch64-linux-musl; do
        check "$file for $target" compile $target $file
    done
done

run_windows() { # PROGRAM ARGUMENT...
    (cd "$SCRATCH" && WINEPREFIX=$SCRATCH/wine WINEDEBUG=-all "$wine" "$@")
}
if [ -z "${LOCUS_TEST_SAMPLE-}" ]; then
    begin cross/windows
    check "liblocus.dll" env "BUILD=$BUILD" CMAKE_FLAGS=-DCMAKE_BUILD_TYPE=Debug tools/cross.sh windows
    check "a program with liblocus.a" "${zig%/*}/x86_64-windows-gnu-cc" -std=c11 -Wall -Wextra -Werror -Iinclude \
        tests/cross/cases.c "$BUILD/cross/windows/liblocus.a" -o "$SCRATCH/cases.exe"
    begin cross/wine
    wine=$(command -v wine64 || ls /usr/lib/wine/wine64 2>/dev/null)
    if [ -n "$wine" ]; then
        check "golden vectors hold" run_windows cases.exe "$ROOT"/tests/golden/*/[bcs]*.safetensors
        check "and the results were written" test -s "$SCRATCH/results.safetensors"
        refuse "a file that is not there is refused" run_windows cases.exe nothing.safetensors
        refuse "a folder is refused" run_windows cases.exe "$ROOT/tests"
    else
        skip "wine64 is not installed"
    fi
fi

if [ -n "${LOCUS_TEST_FULL-}" ]; then
    begin cross/all
    check "make cross" env "BUILD=$BUILD" tools/cross.sh
fi

finish cross
