# SPDX-License-Identifier: Apache-2.0
"$LOCUS" --version | grep -v "^http: libmicrohttpd [0-9]" # where the program was built with it
