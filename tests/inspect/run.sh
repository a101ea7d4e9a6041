#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh LOCUS: every hostile file through the command line; see verdicts.py.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/locus-inspect-XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
python3 "$(dirname "$0")/verdicts.py" "$1" "$scratch"
