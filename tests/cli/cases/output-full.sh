# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
[ -c /dev/full ] || { echo "no /dev/full here"; exit 77; }
golden none/plain.safetensors
for arguments in --help --version schemes "schemes --json" "schemes --markdown" \
    "inspect case.safetensors" "inspect case.safetensors --json" "attend case.safetensors --check" \
    "--generate man"; do
    "$LOCUS" $arguments >/dev/full
    echo "exit $?"
done
