# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# Nothing from the command line reaches the terminal unescaped.
try "$(printf 'att\033[31mend')"
try attend "--$(printf '\033]0;x\007')"
try schemes "$(printf 'a\nb')"
