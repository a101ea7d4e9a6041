#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# locus serve: every door, batches against texts alone, limits, clients that break the rules or vanish,
# signals; the clients `openai` and `huggingface_hub` where a venv has them; two servers behind nginx.
. "$(dirname "$0")/../support/check.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

begin serve/available
if ! command -v python3 >/dev/null; then
    skip "no python3"
    finish serve
    exit
fi
if ! "$LOCUS" --version | grep -q libmicrohttpd; then
    skip "this program was built without libmicrohttpd"
    finish serve
    exit
fi
check "the program names its HTTP library" sh -c "'$LOCUS' --version | grep -q '^http: libmicrohttpd'"

tab=$(printf '\t')
cases() { # FILE: lines NAME<tab>TROUBLE, each a case
    while IFS=$tab read -r name trouble; do
        begin "serve/$name"
        check "$trouble" test -z "$trouble"
    done <"$1"
}

ran=$SCRATCH/ran
begin serve/ended
check "the tests came to their end" python3 tests/serve/serve.py "$LOCUS" "$SCRATCH" "$ran"
cases "$ran"

python=$BUILD/venv/bin/python
[ -x "$python" ] || python=$(dirname "$BUILD")/venv/bin/python
begin serve/clients
if [ -n "${LOCUS_TEST_SANITIZED:-}" ] || ! "$python" -c 'import openai, huggingface_hub' 2>/dev/null; then
    skip "no venv with openai and huggingface_hub, or a sanitizer run"
else
    check "openai and huggingface_hub" "$python" tests/serve/clients.py "$LOCUS" "$SCRATCH"
fi
begin serve/replicas
if [ -n "${LOCUS_TEST_SANITIZED:-}" ] || ! PATH=$PATH:/usr/sbin command -v nginx >/dev/null; then
    skip "no nginx, or a sanitizer run"
else
    check "two servers behind nginx, one of them killed" python3 tests/serve/replicas.py "$LOCUS" "$SCRATCH"
fi
finish serve
