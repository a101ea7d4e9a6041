# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# Whatever the best instruction set of this machine is called, and portable C.
for isa in "" generic; do
    LOCUS_ISA=$isa "$LOCUS" demo --digest >digests
    echo "exit $?"
    grep -v 'as stored$' digests
done
"$LOCUS" demo --digest --json | python3 -c '
import json, sys
found = json.load(sys.stdin)["digests"]
print({d["verdict"] for d in found}, len({d["digest"] for d in found}) == len({d["name"] for d in found}) > 80)'
try demo --digest --quick
