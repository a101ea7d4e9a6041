# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try attend case --check --isa sse9
try attend case --check --isa genric
try attend case --check --isa ""
LOCUS_ISA=sse9 try attend case --check
