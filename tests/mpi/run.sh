#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Attention over 1 to 4 ranks against one process; what ranks say when one of them is wrong or
# gone; the lab over ranks (lab.py).
. "$(dirname "$0")/../support/check.sh"

ring=$BUILD/tests/mpi/ring
begin mpi/available
if [ ! -x "$ring" ] || ! command -v mpirun >/dev/null; then
    skip "no MPI in this build, or no mpirun"
    finish mpi
    exit
fi
check "the program is there" test -x "$ring"

OMP_NUM_THREADS=1
# Open MPI does not give back all of its memory; what is ours is counted by the tests of attention.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export OMP_NUM_THREADS ASAN_OPTIONS
as_root=
[ "$(id -u)" -ne 0 ] || as_root=--allow-run-as-root
# More ranks than cores are fine; a rank on this machine needs no network.
ranks() { # NUMBER ARGUMENT...
    number=$1
    shift
    # shellcheck disable=SC2086
    timeout 300 mpirun $as_root --oversubscribe --mca btl self,vader -n "$number" "$ring" "$@"
}

# What the program counts is counted here, too.
count_ranks() { # NUMBER
    ranks "$1" all $files >"$SCRATCH/log" 2>&1
    line=$(grep '^mpi: [0-9]* passed' "$SCRATCH/log")
    grep -E '^(FAIL|SKIP) ' "$SCRATCH/log" | head -n 20
    [ -n "$line" ] || { tail -n 20 "$SCRATCH/log"; failed=$((failed + 1)); return; }
    set -- $(echo "$line" | tr -dc '0-9 ')
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

files=$(find tests/golden -name '*.safetensors' \
    ! -path '*/inkling/positions*' ! -path '*/wavlm/positions*' ! -path '*/positions/*' ! -path '*/sam/*' ! -path '*/swin/*' ! -path '*/gates/*' ! -path '*/wall/*' | sort)
numbers="1 2 3 4"
[ "${LOCUS_TEST_SAMPLE:-0}" = 0 ] || numbers="1 3"
for number in $numbers; do count_ranks "$number"; done

begin mpi/same-bits-from-run-to-run
check "a run" sh -c "grep '^digest ' '$SCRATCH/log' >'$SCRATCH/first'"
ranks "$number" digest >"$SCRATCH/again" 2>&1
check "another run has the same bits" sh -c "grep '^digest ' '$SCRATCH/again' | diff '$SCRATCH/first' -"

begin mpi/a-rank-is-killed
began=$(date +%s)
refuse "the job fails" ranks 3 killed
cp "$SCRATCH/.output" "$SCRATCH/killed"
check "and ends soon" test $(($(date +%s) - began)) -lt 120
check "a rank was killed" grep -q 'signal 9' "$SCRATCH/killed"
refuse "nobody goes on" grep -q '^killed: ' "$SCRATCH/killed"

begin mpi/bench
bench() { # ARGUMENT...
    # shellcheck disable=SC2086
    timeout 300 mpirun $as_root --oversubscribe --mca btl self,vader -n 2 "$LOCUS" bench --mpi "$@"
}
check "runs" bench -n 600 --block-rows 100 --rounds 1 --backward --json
cp "$SCRATCH/.output" "$SCRATCH/bench.json"
check "its JSON has both ranks" python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert found["ranks"] == len(found["rank"]) == 2 and found["alone_seconds"] > 0
assert all(r["bytes_sent"] > 0 and 0 <= r["hidden"] <= 1 for r in found["rank"])' "$SCRATCH/bench.json"
check "helps" sh -c "'$LOCUS' bench --mpi --help | grep -q 'mpirun -n 2 locus bench --mpi'"
cp "$LOCUS" "$SCRATCH/locus"
refuse "says that there is no program" "$SCRATCH/locus" bench --mpi
cp "$SCRATCH/.output" "$SCRATCH/none"
check "in one line" grep -q '^locus bench: ranks of MPI: no program .*/locus-mpi' "$SCRATCH/none"

mkdir "$SCRATCH/lab"
# shellcheck disable=SC2086
[ "${LOCUS_TEST_SAMPLE:-0}" != 0 ] ||
    PYTHONDONTWRITEBYTECODE=1 python3 tests/mpi/lab.py "$LOCUS" "$SCRATCH/lab" mpirun $as_root --oversubscribe \
        --mca btl self,vader >"$SCRATCH/lab.txt" 2>&1 || echo "FAILED lab.py" >>"$SCRATCH/lab.txt"
if [ -e "$SCRATCH/lab.txt" ]; then
    while read -r result name detail; do
        begin "mpi/lab/$name"
        check "$detail" test "$result" = PASSED
    done <"$SCRATCH/lab.txt"
fi

finish mpi
