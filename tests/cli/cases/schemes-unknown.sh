# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try schemes rpoe
try schemes T5
try schemes deberta_v3
try schemes xyz --json
