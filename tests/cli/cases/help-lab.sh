# SPDX-License-Identifier: Apache-2.0
"$LOCUS" lab --help
