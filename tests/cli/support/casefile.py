# SPDX-License-Identifier: Apache-2.0
"""Safetensors files, good and bad, with nothing but the standard library."""

import json
import struct

FORMATS = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
           "U64": "Q", "U32": "I", "U16": "H", "U8": "B", "BOOL": "B", "F16": "e"}


def pack(dtype, values):
    """Values as the bytes of a tensor; bytes are taken as they are."""
    if isinstance(values, bytes):
        return values
    return struct.pack("<%d%s" % (len(values), FORMATS[dtype]), *values)


def write_raw(path, header, data):
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header + data)


def write(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, values)}"""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        content = pack(dtype, values)
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    write_raw(path, json.dumps(header).encode(), data)


def read(path):
    """The inverse of write; tensor values stay bytes."""
    with open(path, "rb") as source:
        content = source.read()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", None)
    data = content[8 + size:]
    tensors = {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
               for name, entry in header.items()}
    return tensors, metadata


def ramp(*shape):
    """An F32 tensor of small different numbers."""
    count = 1
    for extent in shape:
        count *= extent
    return ("F32", shape, [((7 * i) % 23 - 11) / 16 for i in range(count)])


def plain(scheme="none", kind="attend", **options):
    """A small good case: one batch, two heads, four tokens, width 4."""
    metadata = {"format": "locus.case/1", "kind": kind, "scheme": scheme}
    metadata.update(options)
    return {"q": ramp(1, 2, 4, 4), "k": ramp(1, 2, 4, 4), "v": ramp(1, 2, 4, 4)}, metadata
