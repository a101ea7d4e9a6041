# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# A million tensors are listed as they come; a reader that leaves early stops it.
python3 - <<'END'
import casefile
entry = ',"t%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
header = "{" + "".join([entry % i for i in range(1000000)])[1:] + "}"
casefile.write_raw("many.safetensors", header.encode(), b"")
END
"$LOCUS" inspect many.safetensors | sed -n -e '1s/header.*//p' -e '$p'
{ "$LOCUS" inspect many.safetensors --json; echo "exit $?" >code; } | head -n 1
cat code
