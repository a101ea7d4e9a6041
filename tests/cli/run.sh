#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run the command line and compare what it says.
#
#   tests/cli/run.sh [--update] BINARY [NAME...]
#
# A case is cases/NAME.sh with what it must print and return:
#   NAME.stdout, NAME.stderr            exactly (absent: nothing)
#   NAME.stdout.glob, NAME.stderr.glob  one shell pattern per line, instead
#   NAME.exit                           exit code (absent: 0)
# Each runs in a fresh folder with LOCUS (the binary), GOLDEN (tests/golden) and SUPPORT
# (tests/cli/support) in its environment. Exit code 77 skips it; its output says why.
# --update writes what came out as what is expected.

update=0
if [ "${1-}" = --update ]; then
    update=1
    shift
fi
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: run.sh [--update] BINARY [NAME...]" >&2
    exit 2
fi

here=$(cd "$(dirname "$0")" && pwd)
LOCUS=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
GOLDEN=$here/../golden
SUPPORT=$here/support
PYTHONPATH=$SUPPORT
PYTHONDONTWRITEBYTECODE=1
LC_ALL=C
export LOCUS GOLDEN SUPPORT PYTHONPATH PYTHONDONTWRITEBYTECODE LC_ALL
unset LOCUS_ISA NO_COLOR
shift

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'echo "CUT OFF in cli/${current-}"; exit 143' TERM

limit=
command -v timeout >/dev/null && limit='timeout 300'

# Does file $1 match the patterns in file $2, line by line?
matches() {
    while IFS= read -r pattern <&3; do
        IFS= read -r line <&4 || return 1
        # The pattern is meant to be one.
        # shellcheck disable=SC2254
        case $line in
        $pattern) ;;
        *) return 1 ;;
        esac
    done 3<"$2" 4<"$1"
    [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ]
}

# Compare stream $2 of case $1 with its expectation; says what differs.
compare() {
    wanted=$here/cases/$1.$2
    if [ -f "$wanted.glob" ]; then
        matches "$scratch/$2" "$wanted.glob" && return 0
        echo "--- $1: $2 does not match $1.$2.glob"
        diff "$wanted.glob" "$scratch/$2"
        return 1
    fi
    [ -f "$wanted" ] || wanted=/dev/null
    cmp -s "$wanted" "$scratch/$2" && return 0
    echo "--- $1: $2"
    diff "$wanted" "$scratch/$2"
    return 1
}

# Keep what came out, where there is something to keep.
keep() {
    for stream in stdout stderr; do
        [ -f "$here/cases/$1.$stream.glob" ] && continue
        rm -f "$here/cases/$1.$stream"
        [ -s "$scratch/$stream" ] && cp "$scratch/$stream" "$here/cases/$1.$stream"
    done
    rm -f "$here/cases/$1.exit"
    [ "$2" -eq 0 ] || echo "$2" >"$here/cases/$1.exit"
}

run_case() {
    current=$1
    mkdir "$scratch/folder" || exit 1
    (cd "$scratch/folder" && $limit sh "$here/cases/$1.sh") \
        >"$scratch/stdout" 2>"$scratch/stderr" </dev/null
    code=$?
    rm -rf "$scratch/folder"
    if [ $code -eq 77 ]; then
        echo "SKIP cli/$1: $(tail -n 1 "$scratch/stdout")"
        skipped=$((skipped + 1))
        return
    fi
    if [ $update -eq 1 ]; then
        keep "$1" $code
        passed=$((passed + 1))
        return
    fi
    bad=0
    compare "$1" stdout || bad=1
    compare "$1" stderr || bad=1
    expected=0
    [ -f "$here/cases/$1.exit" ] && expected=$(cat "$here/cases/$1.exit")
    if [ $code -ne "$expected" ]; then
        echo "--- $1: exit code $code, expected $expected"
        bad=1
    fi
    if [ $bad -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED cli/$1"
        failed=$((failed + 1))
    fi
}

passed=0 failed=0 skipped=0
if [ $# -eq 0 ]; then
    for script in "$here"/cases/*.sh; do
        run_case "$(basename "$script" .sh)"
    done
else
    for name in "$@"; do
        run_case "$name"
    done
fi
[ $((passed + failed)) -gt 0 ] || { echo "nothing ran"; failed=1; }
echo "cli: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
