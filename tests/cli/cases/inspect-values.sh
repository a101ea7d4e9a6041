# SPDX-License-Identifier: Apache-2.0
. "$SUPPORT/lib.sh"
need python3
python3 - <<'END'
import casefile, struct
nan, inf = float("nan"), float("inf")
halves = struct.pack("<8H", 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E01, 0x0001, 0x8000, 0x7BFF)
brains = struct.pack("<6H", 0x3F80, 0xFF80, 0x7F81, 0x0001, 0x0000, 0xC040)
casefile.write("values.safetensors", {
    "f64": ("F64", (6,), [1.0, -2.5, nan, inf, 5e-324, 0.0]),
    "f32": ("F32", (2, 3), [1.5, -inf, 1e-40, 0.0, -0.0, 3.0]),
    "signalling": ("F32", (2,), struct.pack("<2I", 0x7F800001, 0x3F800000)),
    "all-nan": ("F32", (2,), [nan, nan]),
    "f16": ("F16", (8,), halves),
    "bf16": ("BF16", (6,), brains),
    "i64": ("I64", (3,), [-2**63, 0, 2**62]),
    "i32": ("I32", (2,), [-2**31, 2**31 - 1]),
    "i16": ("I16", (2,), [-32768, 1]),
    "i8": ("I8", (3,), [-128, -1, 127]),
    "u64": ("U64", (1,), [2**64 - 1]),
    "u32": ("U32", (1,), [2**32 - 1]),
    "u16": ("U16", (1,), [65535]),
    "u8": ("U8", (2,), [0, 255]),
    "bool": ("BOOL", (3,), [0, 1, 255]),
    "f8": ("F8_E4M3", (2,), b"\x01\x02"),
    "none": ("F32", (0, 3), []),
    "scalar": ("F32", (), [2.0]),
    "long": ("F32", (20000,), [1.0] * 19999 + [-1.0]),
})
END
"$LOCUS" inspect values.safetensors --values
"$LOCUS" inspect values.safetensors --values --json >values.json
python3 - <<'END'
import json
t = {t["name"]: t["values"] for t in json.load(open("values.json"))["tensors"]}
print(t["f64"], t["none"], t["f8"], t["all-nan"], sep="\n")
END
