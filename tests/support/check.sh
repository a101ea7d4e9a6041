# SPDX-License-Identifier: Apache-2.0
# The harness of check.h for suites that are scripts. Sourced by tests/SUITE/run.sh:
#
#     . tests/support/check.sh
#     begin headers/status
#     check "compiles alone" cc -c status.c
#     finish headers
#
# A case passes when it made at least one check and none failed. Scripts run from the root
# of the repository and find the build under test in $BUILD, the program in $LOCUS. A
# scratch folder of their own, $SCRATCH, is removed when they end.

ROOT=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
cd "$ROOT" || exit 2
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
LOCUS=${LOCUS:-$BUILD/locus}
export ROOT BUILD LOCUS
LC_ALL=C
export LC_ALL

SCRATCH=$(mktemp -d) || exit 2
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT HUP
trap cut_off TERM

case_name= case_checks=0 case_failures=0 case_skipped=0
passed=0 failed=0 skipped=0

cut_off() { # the runner's time limit: say what it was, then end
    echo "CUT OFF in $case_name: ${check_message-}"
    [ ! -s "$SCRATCH/.output" ] || tail -n 20 "$SCRATCH/.output" | sed 's/^/    /'
    [ ! -s "$SCRATCH/.current" ] || head -n 60 "$SCRATCH/.current"
    exit 143
}

end_case() {
    [ -n "$case_name" ] || return 0
    if [ $case_checks -eq 0 ] && [ $case_skipped -eq 0 ]; then
        echo "FAIL $case_name: the case checked nothing"
        case_failures=1
    fi
    if [ $case_failures -gt 0 ]; then failed=$((failed + 1))
    elif [ $case_skipped -gt 0 ]; then skipped=$((skipped + 1))
    else passed=$((passed + 1)); fi
    case_name=
}

begin() { # NAME
    end_case
    case_name=$1 case_checks=0 case_failures=0 case_skipped=0
}

check() { # MESSAGE COMMAND [ARGUMENT...]: the command must exit 0; its output shows on failure
    check_message=$1
    shift
    case_checks=$((case_checks + 1))
    if "$@" >"$SCRATCH/.output" 2>&1; then return 0; fi
    case_failures=$((case_failures + 1))
    echo "FAIL $case_name: $check_message"
    head -n 40 "$SCRATCH/.output" | sed 's/^/    /'
    return 1
}

refuse() { # MESSAGE COMMAND [ARGUMENT...]: the command must fail
    refuse_message=$1
    shift
    check "$refuse_message" not "$@"
}

not() { if "$@"; then return 1; else return 0; fi; }

empty() { # FILE: holds nothing; shows what it holds otherwise
    [ -f "$1" ] && [ ! -s "$1" ] && return 0
    cat "$1"
    return 1
}

skip() { # REASON
    case_skipped=1
    echo "SKIP $case_name: $1"
}

finish() { # SUITE: the last line; exits
    end_case
    if [ $((passed + failed + skipped)) -eq 0 ]; then
        echo "FAIL $1: no case ran"
        failed=1
    fi
    echo "$1: $passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
}
