# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
try atend
try scheme
try Inspect
try nonsense
try help atend
try ""
