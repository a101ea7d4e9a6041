# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
# What makes no sense gets one line.
try explain
try explain case.safetensors --scheme t5
try explain --scheme t5
try explain --scheme t5 --tokens "a b" --length 2
try explain --scheme rop --tokens "a b"
try explain --scheme nothing --tokens "a b"
try explain --scheme t5 --tokens ""
try explain --scheme t5 --tokens "   "
try explain --scheme t5 --length 0
try explain --scheme t5 --length 16385
try explain --scheme t5 --length 4 --key 1
try explain --scheme t5 --length 4 --query 4
try explain --scheme t5 --length 4 --query 1 --key 4
try explain --scheme t5 --length 4 --head 4
try explain --scheme t5 --length 4 --batch 1
try explain --scheme t5 --length 4 --json --csv
try explain --scheme t5 --length 4 -o picture.png
try explain --scheme t5 --length 4 --option buckets
try explain --scheme t5 --length 4 --option =4
try explain --scheme t5 --length 4 --option bukkets=4
try explain --scheme t5 --length 4 --option buckets=1
try explain --scheme t5 --length 4 --option buckets=5
try explain --scheme rope --length 4 --option width=3
