#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models against transformers: random weights of every architecture, and trained ones that pip can
# fetch, in build/models. What cannot be had is skipped by name.
. "$(dirname "$0")/../support/check.sh"

python=$BUILD/venv/bin/python
[ -x "$python" ] || python=$(dirname "$BUILD")/venv/bin/python # a build inside the main one
if ! "$python" -c 'import torch, transformers, safetensors' 2>/dev/null; then
    begin model/transformers
    skip "no venv with torch, transformers and safetensors (tools/setup.sh tests makes it)"
    finish model
    exit
fi
if [ -n "${LOCUS_TEST_SANITIZED:-}" ]; then
    begin model/transformers
    skip "the comparison runs with the ordinary build; test_model runs here"
    finish model
    exit
fi
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE TRANSFORMERS_VERBOSITY PYTHONDONTWRITEBYTECODE

compare() { # SCRIPT ARGUMENT...: its lines go to results
    script=$1
    shift
    "$python" "tests/model/$script" "$@" >>"$SCRATCH/results" 2>"$SCRATCH/error" ||
        { tail -n 20 "$SCRATCH/error"; echo "FAILED $script it ended early" >>"$SCRATCH/results"; }
}
compare compare.py "$SCRATCH"
compare generate.py "$SCRATCH"
compare gradients.py "$SCRATCH"
compare explain.py "$SCRATCH"
compare trained.py ${LOCUS_TEST_FULL:+--all} "$(dirname "$python")/../../models"
# RESULT NAME DETAIL...
while read -r result name detail; do
    begin "model/transformers/$name"
    case $result in
    SKIPPED) skip "$detail" ;;
    *) check "$detail" test "$result" = PASSED ;;
    esac
done <"$SCRATCH/results"
finish model
