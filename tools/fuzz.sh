#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh RUNS [TARGET...]: build the targets of tests/fuzz with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer (clang-14 and libclang-rt-14-dev), and run each so many times from what
# tests/fuzz/seeds.py gives. MOST=BYTES: the longest input (2000).
set -u
cd "$(dirname "$0")/.." || exit 1
runs=${1:-100000}
[ $# -eq 0 ] || shift
build=${BUILD:-build}/fuzz
clang=$(command -v clang-14 || command -v clang) || { echo "fuzz: clang is not installed" >&2; exit 77; }
mkdir -p "$build"
# Freed memory is kept apart for a while; much of it costs more page faults than the readers.
export ASAN_OPTIONS="${ASAN_OPTIONS:-quarantine_size_mb=4}"

sources() { # TARGET: what it is made of
    case $1 in
    fuzz_json) ;;
    fuzz_torch) echo tests/fuzz/scratch.c tests/fuzz/tensors.c ;;
    fuzz_gguf) echo tests/fuzz/scratch.c tests/fuzz/tensors.c src/model/gguf.c src/model/settings.c ;;
    fuzz_case) echo tests/fuzz/scratch.c src/case/load.c src/case/metadata.c src/schemes/*.c ;;
    fuzz_config | fuzz_generation | fuzz_index | fuzz_weights)
        echo tests/fuzz/scratch.c tests/fuzz/model.c src/model/settings.c src/model/families.c src/model/checkpoint.c src/model/gguf.c \
            src/model/rope.c src/model/generate/settings.c src/model/generate/restrict.c src/model/families/*.c src/schemes/*.c \
            "${BUILD:-build}/liblocus-parts.a" -fopenmp ;; # what the families append to a program is not run
    fuzz_body) # the readers of requests; what they call beyond them is the library's
        echo serve/[!n]*.c cli/json.c cli/text.c cli/complain.c -I. -Icli "$PWD/${BUILD:-build}/liblocus.so" \
            "-Wl,-rpath,$PWD/${BUILD:-build}" -lmicrohttpd -lpthread ;;
    *) echo tests/fuzz/scratch.c tests/fuzz/fuzz.c src/text/*.c ;;
    esac
}

[ $# -gt 0 ] || set -- $(for file in tests/fuzz/fuzz_*.c; do basename "$file" .c; done)
for target in "$@"; do
    # shellcheck disable=SC2046
    "$clang" -std=c11 -O2 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc -Itests \
        "tests/fuzz/$target.c" src/io/*.c src/core/*.c $(sources "$target") -lm -o "$build/$target" || exit 1
    mkdir -p "$build/seeds-$target"
    python3 tests/fuzz/seeds.py "$target" "$build/seeds-$target" || exit 1
    "$build/$target" -runs="$runs" -max_len="${MOST:-2000}" -timeout=20 -rss_limit_mb=2048 -close_fd_mask=1 \
        -artifact_prefix="$build/" "$build/seeds-$target" 2>"$build/$target.log" || {
        tail -n 40 "$build/$target.log"
        echo "fuzz: $target failed; the input is in $build" >&2
        exit 1
    }
    grep '^Done' "$build/$target.log" | sed "s/^/$target: /"
done
