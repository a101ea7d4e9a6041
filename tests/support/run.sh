#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runner and the script harness must fail when they should: they run here on small
# trees made of fake suites.
. "$(dirname "$0")/check.sh"

tree=$SCRATCH/tree

fake() { # NAME BODY: one more suite in the tree, a script if NAME has no slash
    case $1 in
    */*) file=$tree/build/tests/$1 && echo "$1" >>"$tree/build/tests/programs" ;;
    *) file=$tree/tests/$1/run.sh ;;
    esac
    mkdir -p "${file%/*}"
    printf '#!/bin/sh\n%s\n' "$2" >"$file"
    chmod +x "$file"
}

fresh() { # a tree with one good suite
    rm -rf "$tree"
    mkdir -p "$tree/tests" "$tree/build/tests"
    cp tests/run.sh "$tree/tests/"
    fake good/test_good 'echo "good: 3 passed, 0 failed, 0 skipped"'
}

run() { # EXIT LAST-LINE [FILTER]
    (unset BUILD LOCUS; JOBS=2 "$tree/tests/run.sh" quick "${3-}") >"$SCRATCH/out" 2>&1
    code=$?
    cat "$SCRATCH/out"
    [ $code -eq "$1" ] && [ "$(tail -n 1 "$SCRATCH/out")" = "$2" ]
}

begin runner/good
fresh
fake also 'echo noise; echo "also: 2 passed, 0 failed, 1 skipped"'
check "sums up" run 0 "5 passed, 0 failed"
check "counts skips" grep -q '^skipped: 1 ' "$SCRATCH/out"
check "keeps times" grep -q '^[0-9]* good/test_good$' "$tree/build/tests/logs/seconds"
check "runs in the tree" grep -q '^also ' "$SCRATCH/out"

begin runner/arguments
fresh
fake shows 'echo "$1 $BUILD $LOCUS" >shown; echo "shows: 1 passed, 0 failed, 0 skipped"'
check "passes" run 0 "4 passed, 0 failed"
check "the program, the build, the program" \
    grep -qx "$tree/build/locus $tree/build $tree/build/locus" "$tree/shown"

bad() { # NAME BODY LAST-LINE
    begin "runner/$1"
    fresh
    fake "bad/test_bad" "$2"
    check "fails" run 1 "$3"
}
bad failure 'echo "bad: 1 passed, 2 failed, 0 skipped"; exit 1' "4 passed, 2 failed"
bad failure-with-exit-0 'echo "bad: 1 passed, 2 failed, 0 skipped"' "4 passed, 2 failed"
bad crash 'echo "bad: 7 passed, 0 failed, 0 skipped"; kill -SEGV $$' "10 passed, 1 failed"
bad exit-code 'echo "bad: 7 passed, 0 failed, 0 skipped"; exit 3' "10 passed, 1 failed"
bad silent 'exit 0' "3 passed, 1 failed"
bad no-summary 'echo "all is well"' "3 passed, 1 failed"
bad nothing-ran 'echo "bad: 0 passed, 0 failed, 0 skipped"' "3 passed, 1 failed"
bad summary-is-not-last 'echo "bad: 1 passed, 0 failed, 0 skipped"; echo Killed' "3 passed, 1 failed"

begin runner/not-built
fresh
echo gone/test_gone >>"$tree/build/tests/programs"
check "fails" run 1 "3 passed, 1 failed"

begin runner/left-over
fresh
mkdir -p "$tree/build/tests/old"
printf '#!/bin/sh\nexit 1\n' >"$tree/build/tests/old/test_old"
chmod +x "$tree/build/tests/old/test_old"
check "is not run" run 0 "3 passed, 0 failed"

begin runner/empty
fresh
: >"$tree/build/tests/programs"
check "fails" run 1 "0 passed, 1 failed"

begin runner/filter
fresh
fake other 'echo "other: 1 passed, 0 failed, 0 skipped"'
check "one" run 0 "1 passed, 0 failed" other
check "none fails" run 1 "0 passed, 1 failed" no-such-suite

# ---- check.sh --------------------------------------------------------------------------

mkdir -p "$SCRATCH/tests/fake"
cp -r tests/support "$SCRATCH/tests/"
script() { # EXIT LAST-LINE BODY
    printf '. "$(dirname "$0")/../support/check.sh"\n%s\nfinish fake\n' "$3" >"$SCRATCH/tests/fake/run.sh"
    (unset BUILD LOCUS; sh "$SCRATCH/tests/fake/run.sh") >"$SCRATCH/out" 2>&1
    code=$?
    cat "$SCRATCH/out"
    [ $code -eq "$1" ] && [ "$(tail -n 1 "$SCRATCH/out")" = "$2" ]
}

begin scripts/harness
check "passes" script 0 "fake: 1 passed, 0 failed, 0 skipped" 'begin a; check x true; refuse y false'
check "fails" script 1 "fake: 1 passed, 1 failed, 0 skipped" 'begin a; check x false; check y true; begin b; check x true'
check "refusal that does not come" script 1 "fake: 0 passed, 1 failed, 0 skipped" 'begin a; refuse x true'
check "an empty case" script 1 "fake: 0 passed, 1 failed, 0 skipped" 'begin a'
check "an empty suite" script 1 "fake: 0 passed, 1 failed, 0 skipped" ''
check "a skip" script 0 "fake: 0 passed, 0 failed, 1 skipped" 'begin a; skip reason'
check "a skip hides no failure" script 1 "fake: 0 passed, 1 failed, 0 skipped" 'begin a; check x false; skip reason'
check "a missing file is not empty" script 1 "fake: 0 passed, 1 failed, 0 skipped" 'begin a; check x empty /no/such/file'

# ---- the time limit ----------------------------------------------------------------------

# What timeout does: a signal to the whole group, once the suite has got to its case.
cut() { # COMMAND...: it makes $SCRATCH/started
    rm -f "$SCRATCH/started"
    setsid "$@" >"$SCRATCH/out" 2>&1 &
    suite=$!
    until [ -e "$SCRATCH/started" ] || ! kill -0 $suite 2>/dev/null; do sleep 0.05; done
    kill -TERM -$suite
    wait $suite
    [ $? -eq 143 ]
}

begin support/cut-off
printf '. "$(dirname "$0")/../support/check.sh"\nbegin fake/slow\ncheck "it ends" sh -c "echo so far; touch %s; sleep 600"\n' \
    "$SCRATCH/started" >"$SCRATCH/tests/fake/run.sh"
check "ends a script" cut sh "$SCRATCH/tests/fake/run.sh"
check "names the case and the check" grep -qx 'CUT OFF in fake/slow: it ends' "$SCRATCH/out"
check "shows what it said" grep -q 'so far' "$SCRATCH/out"

finish support
