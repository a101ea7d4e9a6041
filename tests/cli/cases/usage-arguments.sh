# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try attend
try attend case -o
try attend case --output=
try attend case --check=yes
try attend one two --check
try attend case -o out --tolerance 1
try attend -- --check --check
try inspect
try inspect ""
try inspect one two
try demo now
try schemes one two
try schemes --json --markdown
