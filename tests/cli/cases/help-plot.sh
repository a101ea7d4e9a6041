# SPDX-License-Identifier: Apache-2.0
"$LOCUS" plot --help
