#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh RUNS [TARGET...]: build the targets of tests/fuzz with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer (clang-14 and libclang-rt-14-dev), and run each so many times from the
# files of tests/data.
set -u
cd "$(dirname "$0")/.." || exit 1
runs=${1:-100000}
[ $# -eq 0 ] || shift
build=${BUILD:-build}/fuzz
clang=$(command -v clang-14 || command -v clang) || { echo "fuzz: clang is not installed" >&2; exit 77; }
mkdir -p "$build"

seed() { # TARGET: what to begin with
    seeds=$build/seeds-$1
    mkdir -p "$seeds"
    data=tests/data/tokenizers
    case $1 in
    fuzz_tokenizer_json)
        for file in "$data"/*/tokenizer.json; do cp "$file" "$seeds/$(basename "$(dirname "$file")")"; done ;;
    fuzz_sentencepiece) cp "$data"/*.model "$seeds" ;;
    fuzz_folder)
        for file in "$data"/*/tokenizer_config.json; do
            { printf '\000[UNK]\n[CLS]\n[SEP]\na\n##b\n\000'; cat "$file"; } |
                sed '1s/^\x00/0/' >"$seeds/$(basename "$(dirname "$file")")"
        done ;;
    fuzz_text)
        cut -f2 "$data/golden.txt" | sort -u | head -n 150 | while read -r text; do
            printf '%s' "$text" | python3 -c 'import sys; t = sys.stdin.read(); sys.stdout.buffer.write(b"a" + (b"" if t == "." else bytes.fromhex(t)))' \
                >"$seeds/$(printf '%s' "$text" | cksum | cut -d' ' -f1)"
        done ;;
    esac
}

[ $# -gt 0 ] || set -- $(for file in tests/fuzz/fuzz_*.c; do basename "$file" .c; done)
for target in "$@"; do
    "$clang" -std=c11 -O2 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc -Itests \
        "tests/fuzz/$target.c" tests/fuzz/fuzz.c src/text/*.c src/io/*.c src/core/*.c -lm -o "$build/$target" || exit 1
    seed "$target"
    "$build/$target" -runs="$runs" -max_len=20000 -timeout=20 -rss_limit_mb=2048 -close_fd_mask=1 \
        -artifact_prefix="$build/" "$build/seeds-$target" 2>"$build/$target.log" || {
        tail -n 40 "$build/$target.log"
        echo "fuzz: $target failed; the input is in $build" >&2
        exit 1
    }
    grep '^Done' "$build/$target.log" | sed "s/^/$target: /"
done
