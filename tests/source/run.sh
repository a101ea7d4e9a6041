#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of the source tree, and that a breach of each is caught.
. "$(dirname "$0")/../support/check.sh"

begin source/layers
check "includes point down" tools/check-layers

planted() { # FILE TEXT: a small tree with one extra line in one file
    rm -rf "$SCRATCH/tree"
    for folder in core schemes kernels attention layer ref nn io case plot; do
        mkdir -p "$SCRATCH/tree/src/$folder"
        printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <locus/status.h>\n#include "core/size.h"\n' \
            >"$SCRATCH/tree/src/$folder/file.c"
    done
    mkdir -p "$SCRATCH/tree/cli" "$SCRATCH/tree/lab" "$SCRATCH/tree/bench" "$SCRATCH/tree/include/locus"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <locus/locus.h>\n#include "cli.h"\n' \
        >"$SCRATCH/tree/cli/file.c"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include <locus/locus.h>\n' >"$SCRATCH/tree/bench/file.h"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n#include "bench/file.h"\n#include "nn/linear.h"\n' \
        >"$SCRATCH/tree/bench/file.c"
    printf '# SPDX-License-Identifier: Apache-2.0\n' >"$SCRATCH/tree/CMakeLists.txt"
    [ -z "$1" ] || printf "$2" >>"$SCRATCH/tree/$1"
}

begin source/layers-planted
planted ""
check "the small tree is clean" tools/check-layers "$SCRATCH/tree"
upward() { # FILE INCLUDE
    planted "$1" "#include $2\n"
    refuse "$1 including $2 must be caught" tools/check-layers "$SCRATCH/tree"
}
upward src/core/file.c '"schemes/scheme.h"'
upward src/core/file.c '<locus/attention.h>'
upward src/schemes/file.c '"kernels/kernels.h"'
upward src/schemes/file.c '<locus/attention.h>'
upward src/ref/file.c '<locus/attention.h>'
upward src/kernels/file.c '"schemes/scheme.h"'
upward src/kernels/file.c '<locus/scheme.h>'
upward src/attention/file.c '"nn/linear.h"'
upward src/ref/file.c '"kernels/kernels.h"'
upward src/ref/file.c '"attention/plan.h"'
upward src/nn/file.c '"schemes/scheme.h"'
upward src/layer/file.c '"attention/plan.h"'
upward src/io/file.c '"schemes/scheme.h"'
upward src/case/file.c '"io/reader.h"'
upward src/io/file.c '<omp.h>'
upward src/schemes/file.c '<immintrin.h>'
upward src/core/file.c '"size.h"'
upward cli/file.c '"core/size.h"'
upward cli/file.c '"nn/linear.h"'
upward lab/file.c '"attention/plan.h"'
upward bench/file.h '"nn/linear.h"'
upward bench/file.h '"core/size.h"'
upward bench/file.c '"attention/plan.h"'
upward bench/file.c '"schemes/scheme.h"'
upward cli/file.c '"../src/core/size.h"'
mkdir -p "$SCRATCH/tree/src/stray" && cp "$SCRATCH/tree/src/core/file.c" "$SCRATCH/tree/src/stray/"
refuse "an unknown layer must be caught" tools/check-layers "$SCRATCH/tree"
mkdir -p "$SCRATCH/nothing"
refuse "an empty tree must not pass" tools/check-layers "$SCRATCH/nothing"

# Two sources that call each other, by way of a third; two headers that include each other; and what
# only looks like a circle.
begin source/circles-planted
function_in() { # FILE NAME CALLS
    printf 'int %s(int a)\n{\n    return %s;\n}\n' "$2" "$3" >>"$SCRATCH/tree/src/$1"
}
planted ""
function_in attention/one.c locus_one "locus_two(a)"
function_in attention/two.c locus_two "locus_three(a)"
function_in attention/three.c locus_three "a"
check "a chain of calls is no circle" tools/check-layers "$SCRATCH/tree"
function_in attention/three.c locus_back "locus_one(a)"
refuse "three sources that call each other must be caught" tools/check-layers "$SCRATCH/tree"
tools/check-layers "$SCRATCH/tree" >"$SCRATCH/circle"
check "the circle is named" grep -q 'circle inside src/attention' "$SCRATCH/circle"
check "and every call of it" grep -q 'src/attention/three.c: calls locus_one' "$SCRATCH/circle"
planted ""
function_in plot/one.c plot_one "locus_two(a)"
function_in io/two.c locus_two "plot_one(a)"
check "folders are told apart" tools/check-layers "$SCRATCH/tree"
planted ""
function_in ref/one.c locus_one "locus_two(a)"
printf '/* locus_one(a) */\nint locus_one(int a);\nint locus_two(int a)\n{\n    return a; /* locus_one */\n}\n' \
    >"$SCRATCH/tree/src/ref/two.c"
check "comments and declarations are no calls" tools/check-layers "$SCRATCH/tree"
planted ""
printf '#include "layer/two.h"\n' >"$SCRATCH/tree/src/layer/one.h"
printf '#include "layer/one.h"\n' >"$SCRATCH/tree/src/layer/two.h"
refuse "headers that include each other must be caught" tools/check-layers "$SCRATCH/tree"
planted ""
printf 'int bench_one(int a)\n{\n    return bench_two(a);\n}\n' >>"$SCRATCH/tree/bench/file.c"
printf 'int bench_two(int a)\n{\n    return bench_one(a);\n}\n' >"$SCRATCH/tree/bench/other.c"
refuse "a circle outside of src must be caught" tools/check-layers "$SCRATCH/tree"

begin source/rules
check "patterns" tools/check-source

begin source/rules-planted
planted ""
check "the small tree is clean" tools/check-source "$SCRATCH/tree"
breach() { # FILE TEXT
    planted "$1" "$2"
    refuse "'$2' in $1 must be caught" tools/check-source "$SCRATCH/tree"
}
breach src/core/file.c 'void f(void) { exit(1); }\n'
breach src/core/file.c 'void f(void) { abort (); }\n'
breach src/io/file.c 'void f(void) { printf("x"); }\n'
breach src/io/file.c 'FILE *f = stderr;\n'
breach src/nn/file.c 'void f(void) { assert(0); }\n'
breach src/ref/file.c 'void *f(void) { return malloc(1); }\n'
breach cli/file.c 'void f(char *s) { strcpy(s, "x"); }\n'
breach cli/file.c 'int f(char *s) { return atoi(s); }\n'
breach cli/file.c 'int f(void);\t\n'
breach cli/file.c 'int f(void);  \n'
breach cli/file.c 'int f(void);\r\n'
breach cli/file.c 'int no_newline;'
breach CMakeLists.txt 'add_compile_options(-ffast-math)\n'
breach CMakeLists.txt 'add_compile_options(-march=native)\n'
breach src/plot/file.c 'int f(char *s) { return snprintf(s, 9, "%%.9g", 0.5); }\n'
breach src/case/file.c 'double f(char *s) { return strtod (s, NULL); }\n'
breach cli/file.c 'int f(void) { return setlocale(LC_ALL, "") != NULL; }\n'
breach src/kernels/file.c '#pragma GCC optimize ("O3")\n'
planted "" && printf 'int f(void);\n' >"$SCRATCH/tree/src/core/file.c"
refuse "a file without an SPDX line must be caught" tools/check-source "$SCRATCH/tree"
planted ""
printf 'static const char text[] = "snprintf(x)"; _Static_assert(1, "x"); void my_free(void *p);\n' \
    >>"$SCRATCH/tree/src/core/file.c"
check "near misses pass" tools/check-source "$SCRATCH/tree"

begin source/format
tools/format.sh --check >"$SCRATCH/format" 2>&1
case $? in
77) skip "clang-format 14 is not installed" ;;
*) check "make format would change" empty "$SCRATCH/format" ;;
esac

begin source/scripts
for script in tests/run.sh tests/*/run.sh tools/*.sh tools/check-* .ci/run; do
    check "$script is executable" test -x "$script"
    case $(head -n 1 "$script") in
    *bash*) check "$script parses" bash -n "$script" ;;
    *) check "$script parses" sh -n "$script" ;;
    esac
done

finish source
