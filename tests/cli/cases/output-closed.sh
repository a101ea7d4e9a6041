# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# A closed pipe is an error like a full disk; the shell opens it, sleep closes it.
{
    sleep 1
    "$LOCUS" schemes --json
    echo "exit $?" >code
} | true
cat code
"$LOCUS" schemes >&-
echo "exit $?"
