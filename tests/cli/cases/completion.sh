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
ask locus plot al
ask locus plot t5 --what di
ask locus plot t5 --theme ''
ask locus plot rope --option pa
ask locus explain --scheme de
ask locus bench --direction b
END
bash ask
