#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bucket-tables.py OUT FLAN_T5_SMALL ALL_MPNET_BASE_V2: the learned bucket biases of two published models.

Of each folder with a model.safetensors the table [32 buckets, heads], four decimals a number. web/PROVENANCE.md says
where the models come from and under which licences.
"""
import json
import os
import struct
import sys

HEAD = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
TABLES = (
    ("a FLAN-T5-small, encoder", 0, "encoder." + HEAD, 1, "traceforge-title-model 0.2.0, MIT"),
    ("a FLAN-T5-small, decoder", 0, "decoder." + HEAD, 0, "traceforge-title-model 0.2.0, MIT"),
    ("all-mpnet-base-v2", 1, "encoder.relative_attention_bias.weight", 1, "sentence-transformers/all-mpnet-base-v2, Apache-2.0"),
)
CODES = {"F32": "f", "F16": "e"}


def read(path, name):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        about = header[name] if name in header else header["mpnet." + name]
        begin, end = about["data_offsets"]
        file.seek(file.tell() + begin)
        rows, heads = about["shape"]
        numbers = struct.unpack("<%d%s" % (rows * heads, CODES[about["dtype"]]), file.read(end - begin))
    return [[round(x, 4) for x in numbers[row * heads:(row + 1) * heads]] for row in range(rows)]


def main():
    out, folders = sys.argv[1], sys.argv[2:]
    tables = [{"title": title, "bidirectional": both, "max_distance": 128, "source": source,
               "rows": read(os.path.join(folders[which], "model.safetensors"), name)}
              for title, which, name, both, source in TABLES]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(tables, file, separators=(",", ":"))
        file.write("\n")


main()
