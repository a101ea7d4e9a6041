# SPDX-License-Identifier: Apache-2.0
LOCUS_ISA=sse9 "$LOCUS" --version
