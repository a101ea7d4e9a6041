# SPDX-License-Identifier: Apache-2.0
# A layer whose tensors are F16, BF16 and F32: as near to the oracle as one of F32.
. "$SUPPORT/lib.sh"
python3 - <<'END'
import casefile

_, metadata = casefile.plain(kind="layer", scheme="t5", heads="2", buckets="8", max_distance="16", bidirectional="1",
                             grad="1")


def half(*shape):
    return ("F16",) + casefile.ramp(*shape)[1:]


def brain(*shape):
    _, shape, values = casefile.ramp(*shape)  # exact: few bits
    data = casefile.pack("F32", values)
    return ("BF16", shape, b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4)))


casefile.write("case.safetensors", {
    "x": half(1, 4, 4), "w_q": brain(4, 4), "w_k": half(4, 4), "w_v": casefile.ramp(4, 4), "w_o": half(4, 4),
    "b_q": brain(4), "bias": half(8, 2), "dout": brain(1, 4, 4)}, metadata)
END
quiet attend case.safetensors --oracle -o want.safetensors
python3 - <<'END'
import casefile

inputs, metadata = casefile.read("case.safetensors")
want, _ = casefile.read("want.safetensors")
inputs.update(("want." + name, tensor) for name, tensor in want.items())
casefile.write("case.safetensors", inputs, metadata)
END
quiet attend case.safetensors --check
"$LOCUS" attend case.safetensors -o out.safetensors > /dev/null
"$LOCUS" inspect out.safetensors | awk '$2 == "F32" { print $1, $2 }' | sort
