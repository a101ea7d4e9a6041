# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# The errors differ from machine to machine, the last digits of the ranges too.
golden shaw/keys-values.safetensors
"$LOCUS" attend case.safetensors --check --threads 2 >report
echo "exit $?"
sed -n -e '1s/, [a-z0-9]* ([^)]*),/, ISA (PATH),/' -e 1,3p report
awk 'NR > 3 { print $1, $2, NF, $6, $7 }' report
ls
