# SPDX-License-Identifier: Apache-2.0
# For the cases: . "$SUPPORT/lib.sh"

# Run the program and print its exit code after its output.
try() {
    "$LOCUS" "$@"
    echo "exit $?"
}

# Only the exit code and the messages.
quiet() {
    "$LOCUS" "$@" >/dev/null
    echo "exit $?"
}

# A golden file, copied here so that messages hold no path of this machine.
golden() {
    cp "$GOLDEN/$1" "${2:-case.safetensors}" || exit 1
}

need() {
    command -v "$1" >/dev/null || {
        echo "$1 is not installed"
        exit 77
    }
}

# There must be no such file.
absent() {
    for file in "$@"; do
        [ ! -e "$file" ] || echo "left behind: $file"
    done
}

# A tokenizer of tests/data, copied here.
tokenizer() {
    cp -rL "$GOLDEN/../data/tokenizers/$1" "$1" || exit 1
}

# A small model with the bert tokenizer of tests/data and made-up weights: model FOLDER [KEY=VALUE ...]
model() {
    need python3
    case " $* " in *" model_type=t5 "*) tokenizer=t5 ;; *) tokenizer=bert ;; esac
    cp -rL "$GOLDEN/../data/tokenizers/$tokenizer" "$1" || exit 1
    python3 "$SUPPORT/model.py" "$@" || exit 1
}

# Run the program, its numbers rounded, and print its exit code.
rounded() {
    "$LOCUS" "$@" >rounded.out
    code=$?
    python3 "$SUPPORT/round.py" <rounded.out
    echo "exit $code"
}
