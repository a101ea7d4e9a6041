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

"$python" tests/model/compare.py --random "$SCRATCH" >"$SCRATCH/random.txt" 2>"$SCRATCH/random.err" ||
    { tail -n 20 "$SCRATCH/random.err"; echo "FAILED compare.py --random" >>"$SCRATCH/random.txt"; }
"$python" tests/model/generate.py --random "$SCRATCH" >"$SCRATCH/decoders.txt" 2>"$SCRATCH/decoders.err" ||
    { tail -n 20 "$SCRATCH/decoders.err"; echo "FAILED generate.py --random" >>"$SCRATCH/decoders.txt"; }
"$python" tests/model/compare.py --trained "$(dirname "$python")/../../models" ${LOCUS_TEST_FULL:+--full} \
    >"$SCRATCH/trained.txt" 2>"$SCRATCH/trained.err" ||
    { tail -n 20 "$SCRATCH/trained.err"; echo "FAILED compare.py --trained" >>"$SCRATCH/trained.txt"; }
"$python" tests/model/generate.py --trained "$(dirname "$python")/../../models" \
    >>"$SCRATCH/decoders.txt" 2>"$SCRATCH/decoders.err" ||
    { tail -n 20 "$SCRATCH/decoders.err"; echo "FAILED generate.py --trained" >>"$SCRATCH/decoders.txt"; }

"$python" tests/model/text.py "$(dirname "$python")/../../models" >"$SCRATCH/text.txt" 2>"$SCRATCH/text.err" ||
    { tail -n 20 "$SCRATCH/text.err"; echo "FAILED text.py" >>"$SCRATCH/text.txt"; }
# RESULT NAME DETAIL...
cat "$SCRATCH/random.txt" "$SCRATCH/decoders.txt" "$SCRATCH/trained.txt" "$SCRATCH/text.txt" >"$SCRATCH/results"
while read -r result name detail; do
    begin "model/transformers/$name"
    case $result in
    SKIPPED) skip "$detail" ;;
    *) check "$detail" test "$result" = PASSED ;;
    esac
done <"$SCRATCH/results"
finish model
