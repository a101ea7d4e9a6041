# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# 4,096 tokens in memory that would not hold one matrix of them (134 MB each).
[ -z "${LOCUS_TEST_SANITIZED-}" ] || { echo "sanitizers need more memory"; exit 77; }
ulimit -v 120000 2>/dev/null || { echo "ulimit -v does not work here"; exit 77; }
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
"$LOCUS" explain --scheme transformer_xl --length 4096 --causal -o long.svg >table || echo "exit $?"
sed -n '1p;$p' table
[ "$(wc -c <long.svg)" -lt 3000000 ] || echo "long.svg is too large"
