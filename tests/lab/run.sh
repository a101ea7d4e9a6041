#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training runs: stopped, killed, damaged and shared (runs.py); against PyTorch in float64 (twin.py).
. "$(dirname "$0")/../support/check.sh"

python=$BUILD/venv/bin/python
[ -x "$python" ] || python=$(dirname "$BUILD")/venv/bin/python # a build inside the main one
if [ -n "${LOCUS_TEST_SANITIZED:-}" ] || ! "$python" -c 'import torch, safetensors' 2>/dev/null; then
    begin lab/twin
    skip "the twin needs the ordinary build and a venv with torch (tools/setup.sh tests)"
else
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/lab/twin.py "$LOCUS" "$SCRATCH" ${LOCUS_TEST_FULL:+full} \
        >"$SCRATCH/twin.txt" 2>&1 || echo "FAILED the twin" >>"$SCRATCH/twin.txt"
    grep -v '^ok' "$SCRATCH/twin.txt" | head -n 40
    begin lab/twin
    check "every case agrees" grep -q '^twin: [1-9][0-9]* passed, 0 failed' "$SCRATCH/twin.txt"
fi

mkdir "$SCRATCH/runs"
PYTHONDONTWRITEBYTECODE=1 python3 tests/lab/runs.py "$LOCUS" "$SCRATCH/runs" ${LOCUS_TEST_FULL:+full} \
    >"$SCRATCH/runs.txt" 2>"$SCRATCH/runs.err" || { cat "$SCRATCH/runs.err"; echo "FAILED runs.py" >>"$SCRATCH/runs.txt"; }
while read -r result name detail; do
    begin "lab/runs/$name"
    check "$detail" test "$result" = PASSED
done <"$SCRATCH/runs.txt"
finish lab
