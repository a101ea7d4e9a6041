# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
# One number of one expected tensor moved: exit 1, and the results are written.
golden none/plain.safetensors
python3 - <<'END'
import casefile, struct
tensors, metadata = casefile.read("case.safetensors")
dtype, shape, data = tensors["want.grad.k"]
first = struct.unpack("<d", data[:8])[0]
tensors["want.grad.k"] = dtype, shape, struct.pack("<d", first + 0.01) + data[8:]
casefile.write("case.safetensors", tensors, metadata)
END
"$LOCUS" attend case.safetensors -o out.safetensors --check >report
echo "exit $?"
awk '$NF == "ok" || $NF == "FAILED" { print $1, $NF }' report
ls
# A wider tolerance lets it pass.
quiet attend case.safetensors --check --tolerance 0.1
