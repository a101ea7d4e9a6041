#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cross.sh [TARGET...]: the library, and the program where there is one, for other systems, each in a folder
# of its own under build/cross. BUILD, JOBS and CMAKE_FLAGS count. What came out is judged by its first bytes.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
all="aarch64 riscv64 musl musl-aarch64 macos macos-x86_64 windows"

toolchain_of() { echo "${1%%-*}"; }
processor_of() {
    case $1 in
    riscv64) echo riscv64 ;;
    aarch64 | macos | *-aarch64) echo aarch64 ;;
    *) echo x86_64 ;;
    esac
}
library_of() {
    case $1 in
    macos*) echo liblocus.dylib ;;
    windows) echo liblocus.dll ;;
    *) echo liblocus.so ;;
    esac
}

bytes_at() { od -An -v -tx1 -j"$2" -N"$3" "$1" | tr -d ' \n'; } # FILE OFFSET COUNT
kind_of() { # what its header says a file is for
    case $(bytes_at "$1" 0 4) in
    7f454c46) echo "ELF $(bytes_at "$1" 18 2)" ;;
    cffaedfe) echo "Mach-O $(bytes_at "$1" 4 4)" ;;
    4d5a*) echo "PE $(bytes_at "$1" "$((0x$(bytes_at "$1" 61 1)$(bytes_at "$1" 60 1) + 4))" 2)" ;;
    *) echo "no program: $(bytes_at "$1" 0 4)" ;;
    esac
}
expected_of() {
    case $1 in
    aarch64) echo "ELF b700" ;;
    riscv64) echo "ELF f300" ;;
    musl) echo "ELF 3e00" ;;
    musl-aarch64) echo "ELF b700" ;;
    macos) echo "Mach-O 0c000001" ;;
    macos-x86_64) echo "Mach-O 07000001" ;;
    windows) echo "PE 6486" ;;
    esac
}

build_for() { # TARGET
    tree=$build/cross/$1
    # shellcheck disable=SC2086
    cmake -S . -B "$tree" -G "Unix Makefiles" "-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/$(toolchain_of "$1").cmake" \
        "-DLOCUS_PROCESSOR=$(processor_of "$1")" "-DLOCUS_ZIG=$zig" -DLOCUS_TESTS=OFF -DLOCUS_WERROR=ON \
        ${CMAKE_FLAGS:-} --log-level=WARNING >/dev/null
    cmake --build "$tree" -j "${JOBS:-2}" --target locus-product >/dev/null
    files="$(library_of "$1")"
    [ "$1" = windows ] || files="$files locus"
    for file in $files; do
        [ "$(kind_of "$tree/$file")" = "$(expected_of "$1")" ] || {
            echo "cross: $tree/$file: found $(kind_of "$tree/$file"), expected $(expected_of "$1")" >&2
            exit 1
        }
        printf '%-14s %-16s %9d bytes\n' "$1" "$file" "$(wc -c <"$tree/$file")"
    done
}

zig=$(tools/zig.sh)
for target in ${*:-$all}; do
    [ -n "$(expected_of "$target")" ] || { echo "cross: found $target, expected one of: $all" >&2; exit 2; }
    build_for "$target"
done
