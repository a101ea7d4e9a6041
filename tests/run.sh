#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [quick|normal|full] [PART-OF-A-SUITE-NAME]
#
# Runs every suite: the programs that build/tests/programs lists and the scripts
# tests/*/run.sh; then the same with both compilers, without threads and under sanitizers:
#
#   quick   a sample of every suite, this build only
#   normal  everything; the sanitizer build runs a sample of every suite
#   full    the exhaustive grids; the sanitizer build runs all of them too
#
# Scripts get the program under test as their argument, and BUILD and LOCUS in the
# environment. A suite ends with "SUITE: N passed, N failed, N skipped". One that crashes,
# prints no such line, or ran no case counts as a failure. The last line of all is
# "N passed, M failed".
set -u
cd "$(dirname "$0")/.." || exit 2

mode=${1:-normal}
filter=${2:-}
case $mode in
quick | normal | full) ;;
*) echo "usage: tests/run.sh [quick|normal|full] [PART-OF-A-SUITE-NAME]" >&2; exit 2 ;;
esac

BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
export LC_ALL=C
# Threads that wait sleep at once: two suites run side by side, and one that spins for its partner
# takes the core that the partner waits for (a call of 0.3 ms took 20 ms on a busy machine).
export OMP_WAIT_POLICY=passive
unset GOMP_SPINCOUNT
unset LOCUS_ISA LOCUS_TEST_SAMPLE LOCUS_TEST_FULL BASH_ENV
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX

logs=$BUILD/tests/logs
rm -rf "$logs"
mkdir -p "$logs"
started=$(date +%s)
passed=0 failed=0 skipped=0

# ---- one suite -------------------------------------------------------------------------

# Run a command as suite $1 and leave $logs/$1.{log,status}; every / in a name becomes +.
run_suite() {
    local name=$1 log began
    shift
    log=$logs/${name//\//+}
    began=$(date +%s)
    # A suite that hangs is a failure of its own, not of the whole run.
    timeout --kill-after=10 "$limit" "$@" >"$log.log" 2>&1 </dev/null &
    trap "kill $! 2>/dev/null" TERM
    wait $!
    local status=$?
    echo "$(($(date +%s) - began)) $name" >>"$logs/seconds"
    echo $status >"$log.status"
}

# Judge what run_suite left: count it, and show the log unless all is well.
judge() {
    local name=$1 log status line p=0 f=0 s=0
    log=$logs/${name//\//+}
    status=$(cat "$log.status" 2>/dev/null || echo "no exit")
    line=$(tail -n 1 "$log.log" 2>/dev/null | grep -aE '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    if [ -n "$line" ]; then
        read -r p f s < <(sed -E 's/^[^ ]+: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/' <<<"$line")
    fi
    local trouble=
    case $status in
    0) ;;
    124 | 137) trouble="no end within $limit seconds" ;;
    *) [ "$f" -gt 0 ] || trouble="exit code $status" ;;
    esac
    [ -n "$line" ] || trouble=${trouble:-no summary line}
    [ $((p + f + s)) -gt 0 ] || trouble=${trouble:-no case ran}
    if [ -n "$trouble" ]; then f=$((f + 1)); fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    grep -a '^SKIP ' "$log.log" | sed "s,^SKIP ,SKIP $name: ," >>"$logs/skips"
    if [ "$f" -gt 0 ]; then
        echo "---- $name ----"
        if [ "$(wc -l <"$log.log")" -le 80 ]; then cat "$log.log"
        else head -n 40 "$log.log"; echo "[... all of it: $log.log]"; tail -n 20 "$log.log"; fi
        echo "---- $name: $p passed, $f failed, $s skipped${trouble:+ ($trouble)}"
    else
        printf '%-40s %5d passed%s\n' "$name" "$p" "$([ "$s" -eq 0 ] || echo ", $s skipped")"
    fi
}

# ---- many suites -----------------------------------------------------------------------

declare -a running=()

reap() { # wait until fewer than $1 suites run; judge those that ended
    while [ "${#running[@]}" -ge "$1" ] && [ "${#running[@]}" -gt 0 ]; do
        local still=() entry name
        for entry in "${running[@]}"; do
            name=${entry#* }
            if [ -s "$logs/${name//\//+}.status" ] || ! kill -0 "${entry%% *}" 2>/dev/null; then
                wait "${entry%% *}"
                judge "$name"
            else
                still+=("$entry")
            fi
        done
        running=(${still[@]+"${still[@]}"})
        [ "${#running[@]}" -lt "$1" ] || sleep 0.05
    done
}

stop() { # leave nothing running behind an interrupted run
    trap - INT TERM
    for entry in ${running[@]+"${running[@]}"}; do kill "${entry%% *}" 2>/dev/null; done
    wait
    echo "interrupted"
    exit 130
}
trap stop INT TERM

start() { # NAME COMMAND...
    [[ $1 == *"$filter"* ]] || return 0
    reap "$JOBS"
    run_suite "$@" &
    running+=("$! $1")
}

# Scripts that judge the source tree or the ordinary build; once is enough.
once=" aarch64 cross support headers symbols install docs source page web abi static packages "

suites() { # PREFIX TREE: start all suites of one build
    local prefix=$1 tree=$2 program script suite
    [ -s "$tree/tests/programs" ] || start "${prefix}programs" echo "no list of test programs in $tree"
    export BUILD=$tree LOCUS=$tree/locus
    for script in tests/*/run.sh; do
        [ -e "$script" ] || continue
        suite=$(basename "$(dirname "$script")")
        [ -n "$prefix" ] && [[ $once == *" $suite "* ]] && continue
        start "$prefix$suite" "$script" "$LOCUS"
    done
    while read -r program; do
        # One that was to be built and is not there is not a smaller run.
        if [ -x "$tree/tests/$program" ]; then start "$prefix$program" "$tree/tests/$program"
        else start "$prefix$program" echo "not built: $tree/tests/$program"; fi
    done <"$tree/tests/programs"
    reap 1
    export BUILD=$main_tree
}

# ---- other builds ----------------------------------------------------------------------

build_case() { # NAME TREE CMAKE-ARGUMENTS...: configure and build all; that is one case
    local name=$1 tree=$2
    shift 2
    if cmake -S . -B "$tree" -G "Unix Makefiles" --log-level=WARNING "$@" &&
        cmake --build "$tree" -j "$JOBS"; then
        echo "$name: 1 passed, 0 failed, 0 skipped"
    else
        echo "$name: 0 passed, 1 failed, 0 skipped"
        return 1
    fi
}

skip_case() { # NAME REASON
    echo "SKIP $1: $2"
    echo "$1: 0 passed, 0 failed, 1 skipped"
}
export -f build_case skip_case
export JOBS

# Build as a suite of its own, alone, because make uses all cores itself. 0: it was built,
# so that nobody runs what an earlier build left behind.
build_now() { # NAME TREE CMAKE-ARGUMENTS...
    [[ $1 == *"$filter"* || $filter == "${1%%/*}"/* ]] || return 1
    run_suite "$1" bash -c 'build_case "$@"' - "$@" &
    running+=("$! $1")
    reap 1
    [ "$(cat "$logs/${1//\//+}.status")" = 0 ]
}

# The extension module is part of these builds where the tests have a Python.
python_flags=
[ ! -x "$BUILD/venv/bin/python" ] || python_flags="-DLOCUS_PYTHON=ON -DPython_EXECUTABLE=$BUILD/venv/bin/python"

# ---- the run ---------------------------------------------------------------------------

main_tree=$BUILD
: >"$logs/skips"
case $mode in
quick) limit=600; export LOCUS_TEST_SAMPLE=1 ;;
normal) limit=1800 ;;
full) limit=86400; export LOCUS_TEST_FULL=1 ;;
esac
suites "" "$main_tree"

if [ "$mode" != quick ]; then
    # Warnings are failures under both compilers.
    build_now warnings/gcc "$main_tree/strict" -DLOCUS_WERROR=ON $python_flags
    clang=$(command -v clang-14 || command -v clang)
    if [ -n "$clang" ]; then
        build_now warnings/clang "$main_tree/clang" -DLOCUS_WERROR=ON $python_flags "-DCMAKE_C_COMPILER=$clang"
    else
        start warnings/clang bash -c 'skip_case "$@"' - warnings/clang "clang is not installed"
    fi

    # Without threads: built, and judged by the golden vectors.
    if build_now serial/build "$main_tree/serial" -DLOCUS_WERROR=ON -DLOCUS_OPENMP=OFF; then
        for program in $(grep '^golden/' "$main_tree/serial/tests/programs"); do
            start "serial/$program" "$main_tree/serial/tests/$program"
        done
        reap 1
    fi

    # AddressSanitizer and UndefinedBehaviorSanitizer over a sample, or over everything.
    # Without cairo, whose fonts stay in memory until the end and would count as leaks.
    if build_now sanitize/build "$main_tree/sanitize" -DLOCUS_SANITIZE=ON -DLOCUS_CAIRO=OFF $python_flags; then
        [ "$mode" = full ] || export LOCUS_TEST_SAMPLE=1
        export LOCUS_TEST_SANITIZED=1
        # Not detect_stack_use_after_return: before gcc 14 its frames are aligned too little for
        # 64-byte vectors (GCC bug 110027), and every AVX-512 kernel stops there.
        export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:strict_string_checks=1
        export UBSAN_OPTIONS=print_stacktrace=1
        suites sanitize/ "$main_tree/sanitize"
    fi
fi

# ---- the count -------------------------------------------------------------------------

if [ $((passed + failed)) -eq 0 ]; then
    echo "nothing ran"
    failed=1
fi
cat "$logs/skips"
echo "skipped: $skipped$([ "$skipped" -eq 0 ] || echo ' (reasons above)'), $(($(date +%s) - started)) seconds"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
