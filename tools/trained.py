#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trained.py OUT RUN...: what the page needs of text models that `locus lab train` made.

Of each RUN (a folder; the name of its last part is the scheme): the rows of the characters below, the first
block's norm and projections, and the tensors of the scheme, cut to the page's 64 positions. Rows are rounded
to 8 bits, value = code * scale of the row, so that the page stays small. docs/page.md has the commands.
"""
import array
import json
import os
import struct
import sys

CHARACTERS = " abcdefghijklmnopqrstuvwxyz.,;:!?'\"-_"  # row 0 is the start of a text, id 256
LONGEST = 64
START = 256
# What the lab gives each scheme, where it is not the scheme's own default.
OPTIONS = {
    "shaw": "clip_left=16,clip_right=16",
    "transformer_xl": "table=half",
    "t5": "buckets=32,max_distance=128,bidirectional=0",
    "deberta": "span=32,buckets=32,max_distance=128",
    "kerple": "form=log",
    "rope": "pairing=interleaved",
}
TABLES = ("rel_k", "rel_v", "bias", "u", "w", "w_r", "pos", "w_pq", "w_pk", "rel", "a", "p")


def read(path):
    """name -> (shape, floats) of a checkpoint; Adam's moments are left out."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.tell()
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__" or name.startswith("adam."):
                continue
            begin, end = about["data_offsets"]
            file.seek(start + begin)
            tensors[name] = about["shape"], array.array("f", file.read(end - begin))
    return tensors


def take_rows(tensor, rows):
    shape, values = tensor
    width = len(values) // shape[0]
    return [len(rows), *shape[1:]], array.array("f", [x for row in rows for x in values[row * width:(row + 1) * width]])


def cut(scheme, name, tensor):
    """Rows that 64 positions can reach."""
    rows = tensor[0][0]
    if scheme.startswith("relative_key") and name == "rel_k":
        middle = rows // 2
        return take_rows(tensor, range(middle - LONGEST + 1, middle + LONGEST))
    if name == "pos":
        return take_rows(tensor, range(LONGEST))
    return tensor


def layer(scheme, checkpoint):
    """The tensors of one model under the names of a layer."""
    rows = [START] + [ord(character) for character in CHARACTERS]
    found = {"embed": take_rows(checkpoint["embed.weight"], rows)}
    for ours, theirs in (("norm.weight", "norm1.weight"), ("norm.bias", "norm1.bias"), ("w_q", "attn.w_q"),
                         ("w_k", "attn.w_k"), ("w_v", "attn.w_v")):
        found[ours] = checkpoint["blocks.0." + theirs]
    for name in TABLES:
        tensor = checkpoint.get("blocks.0.attn." + name) or checkpoint.get("shared." + name)
        if tensor is not None:
            found[name] = cut(scheme, name, tensor)
    return found


def rounded(tensor):
    """Codes of 8 bits and a scale per row."""
    shape, values = tensor
    width = shape[-1]
    codes, scales = array.array("b"), array.array("f")
    for at in range(0, len(values), width):
        row = values[at:at + width]
        scale = max(map(abs, row)) / 127 or 1.0
        scales.append(scale)
        codes.extend(round(x / scale) for x in row)
    return codes, scales


def write(path, tensors, metadata):
    header, blocks, at = {"__metadata__": metadata}, [], 0
    for name, (dtype, shape, values) in tensors:
        data = values.tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        blocks.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def main():
    out, runs = sys.argv[1], sys.argv[2:]
    wide, narrow = [], []  # F32 first: they want to be aligned
    schemes = []
    for run in runs:
        scheme = os.path.basename(os.path.normpath(run))
        schemes.append(scheme)
        for name, tensor in layer(scheme, read(os.path.join(run, "checkpoint.safetensors"))).items():
            shape, values = tensor
            if len(values) < 512:
                wide.append((f"{scheme}.{name}", ("F32", shape, values)))
                continue
            codes, scales = rounded(tensor)
            wide.append((f"{scheme}.{name}.scale", ("F32", [len(scales)], scales)))
            narrow.append((f"{scheme}.{name}", ("I8", shape, codes)))
    options = {"options." + scheme: OPTIONS.get(scheme, "") for scheme in schemes}
    write(out, wide + narrow, {"characters": CHARACTERS, **options})


main()
