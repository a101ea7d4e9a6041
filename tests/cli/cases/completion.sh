# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need bash
"$LOCUS" --generate bash >locus.bash
cat >ask <<'END'
. ./locus.bash
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _locus
    echo "$* -> ${COMPREPLY[*]}"
}
: >case.safetensors
ask locus s
ask locus attend --o
ask locus attend case
ask locus attend case.safetensors --isa gen
ask locus attend case.safetensors -o ca
ask locus schemes ro
ask locus help in
END
bash ask
