# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try --verison
try -x
try attend --chek case
try attend --thread 2 case
try attend --ouput x case
try attend -q case
try schemes --jsno
try inspect --value case
try demo --frobnicate
try --generate pdf
try --generate
