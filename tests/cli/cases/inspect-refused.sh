# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
python3 - <<'END'
import casefile
casefile.write_raw("null", b"null", b"")
casefile.write_raw("trailing", b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"12")
casefile.write_raw("short", b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}', b"12")
casefile.write_raw("twice", b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                   b'"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1")
casefile.write_raw("name", b'{"a\\u001b[2J":{"dtype":"F33","shape":[1],"data_offsets":[0,1]}}', b"1")
END
for file in null trailing short twice name missing; do
    try inspect $file
    try inspect $file --json --values 2>/dev/null
done
