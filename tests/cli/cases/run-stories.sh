# SPDX-License-Identifier: Apache-2.0
# The trained model in the repository: what README shows.
. "$SUPPORT/lib.sh"
cp -r "$GOLDEN/../../examples/stories260K" stories260K || exit 1
try run stories260K "Once upon a time" --max-length 32
try inspect stories260K | grep -v '^memory'
