#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every example was built, is short, runs, and says something.
. "$(dirname "$0")/../support/check.sh"

for source in examples/*.c; do
    [ -e "$source" ] || break
    name=$(basename "$source" .c)
    begin "examples/$name"
    check "at most 60 lines" test "$(wc -l <"$source")" -le 60
    check "was built" test -x "$BUILD/examples/$name"
    set --
    if [ "$name" = embed ]; then
        cp -rL tests/data/tokenizers/bert "$SCRATCH/bert"
        python3 tests/cli/support/model.py "$SCRATCH/bert"
        set -- "$SCRATCH/bert" "the license" "a work"
    fi
    [ "$name" = finetune ] && set -- examples/stories260K "Once upon a time, there was a cat."
    run() { "$BUILD/examples/$name" "$@" >"$SCRATCH/output" 2>"$SCRATCH/errors" || { cat "$SCRATCH/errors"; return 1; }; }
    check "runs" run "$@"
    check "prints something" test -s "$SCRATCH/output"
    check "prints nothing on stderr" empty "$SCRATCH/errors"
done

finish examples
