#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trained.py OUT MODEL...: what the page needs of text models that `locus lab export` wrote.

Of each MODEL (a folder, config.json says which scheme): the rows of the characters below, the first
block's norm and projections, and the tensors of the scheme, cut to the page's 64 positions. Rows are rounded
to 8 bits (projections to 7, W_v to 5), value = code * scale of the row, so that the page stays small. Where positions are added to the
input (learned, sinusoidal) they are the tensor "input", and attention itself is that of "none".
docs/page.md has the commands.
"""
import array
import json
import math
import os
import struct
import sys

CHARACTERS = " abcdefghijklmnopqrstuvwxyz.,;:!?'\"-_"  # row 0 is the start of a text, id 256
LONGEST = 64
START = 256
# How far the codes of large tensors go: shorter ones pack better, and no score depends on w_v.
CODES = {"w_q": 63, "w_k": 63, "w_r": 63, "w_v": 15}
TABLES = ("rel_k", "rel_v", "bias", "u", "w", "w_r", "pos", "w_pq", "w_pk", "rel", "a", "p")


def read(path):
    """name -> (shape, floats) of model.safetensors, F32 or F16."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.tell()
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            begin, end = about["data_offsets"]
            file.seek(start + begin)
            count, code = (end - begin) // 2, "e"
            if about["dtype"] == "F32":
                count, code = (end - begin) // 4, "f"
            tensors[name] = about["shape"], array.array("f", struct.unpack("<%d%s" % (count, code), file.read(end - begin)))
    return tensors


def sinusoids(width):
    """The rows that the lab adds: sines and cosines take turns."""
    rows = array.array("f")
    for position in range(LONGEST):
        for column in range(width):
            angle = position * 10000.0 ** (-(column // 2 * 2) / width)
            rows.append(math.cos(angle) if column % 2 else math.sin(angle))
    return [LONGEST, width], rows


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
    if scheme == "sinusoidal":
        found["input"] = sinusoids(checkpoint["embed.weight"][0][1])
    if scheme == "learned":
        found["input"] = cut(scheme, "pos", checkpoint["shared.pos"])
        return found
    for name in TABLES:
        tensor = checkpoint.get("blocks.0.attn." + name) or checkpoint.get("shared." + name)
        if tensor is not None:
            found[name] = cut(scheme, name, tensor)
    return found


def rounded(tensor, most):
    """Codes from -most to most and a scale per row."""
    shape, values = tensor
    width = shape[-1]
    codes, scales = array.array("b"), array.array("f")
    for at in range(0, len(values), width):
        row = values[at:at + width]
        scale = max(map(abs, row)) / most or 1.0
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
    out, models = sys.argv[1], sys.argv[2:]
    wide, narrow, about = [], [], {"characters": CHARACTERS}  # F32 first: they want to be aligned
    for model in models:
        with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        scheme = config["scheme"]
        about["options." + scheme] = ",".join("%s=%s" % pair for pair in config["options"].items())
        for name, tensor in layer(scheme, read(os.path.join(model, "model.safetensors"))).items():
            shape, values = tensor
            if name == "input":
                about["attention." + scheme] = "none"
            if len(values) < 512:
                wide.append((f"{scheme}.{name}", ("F32", shape, values)))
                continue
            codes, scales = rounded(tensor, CODES.get(name, 127))
            wide.append((f"{scheme}.{name}.scale", ("F32", [len(scales)], scales)))
            narrow.append((f"{scheme}.{name}", ("I8", shape, codes)))
    write(out, wide + narrow, about)


main()
