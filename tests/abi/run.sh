#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that was compiled against the headers of 0.2, which stand in tests/abi/0.2 as they were,
# runs with the library of the day and gives the answers of then. A header of 0.2 is never changed
# here: a later version gets a folder of its own.
. "$(dirname "$0")/../support/check.sh"

here=tests/abi
for version in "$here"/[0-9]*; do
    name=${version##*/}
    begin "abi/$name/headers"
    check "has its headers" test -f "$version/locus/locus.h"
    old() { ${CC:-cc} -std=c11 -Wall -Wextra -Werror "-I$version" "$here/program.c" "$BUILD/liblocus.so" "-Wl,-rpath,$BUILD" -lm -o "$SCRATCH/program-$name"; }
    begin "abi/$name/program"
    if [ -e "$BUILD/liblocus.so" ]; then
        check "compiles against them and links with the library of the day" old
        answers() { "$SCRATCH/program-$name" tests/golden/t5/encoder.safetensors >"$SCRATCH/answers-$name"; }
        check "runs" answers
        check "gives the answers of then" diff "$version/answers" "$SCRATCH/answers-$name"
    else
        skip "no shared library in this build"
    fi
done

# Structs that a caller allocates begin with their size, or say that they never grow.
begin abi/every-struct-has-a-size
check "structs" python3 - include/locus/*.h <<'END'
import re, sys
handed_out = {"locus_option_info", "locus_tensor_info", "locus_scheme_info", "locus_explainer_term",
              "locus_picture_kind", "locus_file_tensor", "locus_problem", "locus_label", "locus_offset"}
for path in sys.argv[1:]:
    text = open(path).read()
    for match in re.finditer(r"((?:/\*(?:(?!\*/).)*\*/\s*)?)typedef struct (\w+) \{\n(.*?)\n\}", text, re.S):
        words, name, body = match.groups()
        before = text[:match.start()][-400:]
        closed = "never grow" in words or "never grow" in before
        assert name in handed_out or closed or re.match(r"\s*uint32_t size;", body), f"{path}: {name}"
END

finish abi
