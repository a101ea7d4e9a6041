#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, twice in a row, as C11 and as C++17.
. "$(dirname "$0")/../support/check.sh"

warnings="-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror"

mpi_flags=$(pkg-config --cflags mpi-c 2>/dev/null || pkg-config --cflags ompi-c 2>/dev/null)

alone() { # COMPILER STANDARD EXTENSION HEADER
    printf '#include <locus/%s>\n#include <locus/%s>\nint unused_here;\n' "$4" "$4" >"$SCRATCH/alone.$3"
    # shellcheck disable=SC2046,SC2086
    "$1" "-std=$2" $warnings -Iinclude $(echo $mpi_flags | sed 's/-I/-isystem /g') -fsyntax-only "$SCRATCH/alone.$3"
}

for path in include/locus/*.h; do
    header=${path##*/}
    begin "headers/$header/c11"
    [ "$header" != mpi.h ] || [ -e "$BUILD/liblocus_mpi.so" ] || { skip "no MPI"; continue; }
    check "compiles alone as C11" alone "${CC:-cc}" c11 c "$header"
    begin "headers/$header/c++17"
    if command -v "${CXX:-g++}" >/dev/null; then
        check "compiles alone as C++17" alone "${CXX:-g++}" c++17 cpp "$header"
    else
        skip "no C++ compiler"
    fi
done

# locus.h is what a user of attention needs; pictures, made-up problems and MPI stand apart.
begin headers/locus.h-has-what-attention-needs
for path in include/locus/*.h; do
    header=${path##*/}
    case $header in
    locus.h) ;;
    picture.h | plot.h | problem.h | mpi.h)
        refuse "locus.h has $header" grep -q "^#include <locus/$header>" include/locus/locus.h ;;
    *) check "locus.h lacks $header" grep -q "^#include <locus/$header>" include/locus/locus.h ;;
    esac
done

begin headers/a-broken-header-is-noticed
mkdir -p "$SCRATCH/bad/locus"
printf '#ifndef X\n#define X\nsize_t broken(void);\n#endif\n' >"$SCRATCH/bad/locus/broken.h"
broken() { printf '#include <locus/broken.h>\n' >"$SCRATCH/b.c"; "${CC:-cc}" -std=c11 $warnings "-I$SCRATCH/bad" -fsyntax-only "$SCRATCH/b.c"; }
refuse "a header that needs another one must not pass" broken

finish headers
