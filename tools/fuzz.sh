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
    fuzz_config)
        for family in $(sed -n 's/.*\.type = "\(.*\)",/\1/p' src/model/families/*.c); do
            printf '{"model_type": "%s", "hidden_size": 8, "num_attention_heads": 2, "d_model": 8, "n_head": 2, "relative_attention": true, "pos_att_type": "c2p|p2c", "architectures": ["BertForMaskedLM"]}' \
                "$family" >"$seeds/$family"
        done ;;
    fuzz_index) printf '{"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "../x"}}' >"$seeds/one" ;;
    fuzz_weights)
        python3 - >"$seeds/one" <<'END'
import json, struct, sys
header, at = {}, 0
for name, shape in (("bert.embeddings.word_embeddings.weight", [8, 4]), ("embeddings.LayerNorm.gamma", [4])):
    size = 4 * (32 if len(shape) == 2 else 4)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
sys.stdout.buffer.write(struct.pack("<Q", len(text)) + text + bytes(at))
END
        ;;
    esac
}

sources() { # TARGET: what it is made of
    case $1 in
    fuzz_config | fuzz_index | fuzz_weights)
        echo tests/fuzz/model.c src/model/settings.c src/model/families.c src/model/checkpoint.c src/model/rope.c \
            src/model/families/*.c src/schemes/*.c ;;
    *) echo tests/fuzz/fuzz.c src/text/*.c ;;
    esac
}

[ $# -gt 0 ] || set -- $(for file in tests/fuzz/fuzz_*.c; do basename "$file" .c; done)
for target in "$@"; do
    # shellcheck disable=SC2046
    "$clang" -std=c11 -O2 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iinclude -Isrc -Itests \
        "tests/fuzz/$target.c" $(sources "$target") src/io/*.c src/core/*.c -lm -o "$build/$target" || exit 1
    seed "$target"
    "$build/$target" -runs="$runs" -max_len=20000 -timeout=20 -rss_limit_mb=2048 -close_fd_mask=1 \
        -artifact_prefix="$build/" "$build/seeds-$target" 2>"$build/$target.log" || {
        tail -n 40 "$build/$target.log"
        echo "fuzz: $target failed; the input is in $build" >&2
        exit 1
    }
    grep '^Done' "$build/$target.log" | sed "s/^/$target: /"
done
