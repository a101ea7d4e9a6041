# SPDX-License-Identifier: Apache-2.0
# The columns are as wide as the longest entry; later schemes may add some.
"$LOCUS" schemes >table
head -n 15 table | sed 's/  */ /g'
tail -n 2 table
