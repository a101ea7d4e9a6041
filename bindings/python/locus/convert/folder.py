# SPDX-License-Identifier: Apache-2.0
"""A model folder in the layout of the Hugging Face hub: what every source becomes."""

import json
import os
import shutil
import struct
from dataclasses import dataclass, field

import numpy

from .._errors import LocusValueError, Status

TYPES = {"float32": "F32", "float16": "F16", "float64": "F64"}

# Beside the weights; what a tokenizer, a generation or sentence-transformers reads.
COMPANIONS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "source.spm",
    "target.spm",
    "generation_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)


class ConvertError(LocusValueError):
    """A source that cannot be converted: one line that names the file, what was found, what was expected."""

    def __init__(self, message, status=Status.FORMAT):
        # Names of a file's tensors are part of messages: what a terminal would obey is written out.
        line = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in message)
        super().__init__(line, status)


@dataclass
class Model:
    """What is written: config.json, model.safetensors and other files, by name."""

    config: dict
    tensors: dict
    copies: dict = field(default_factory=dict)  # name: path
    texts: dict = field(default_factory=dict)  # name: bytes, or what becomes JSON
    room: object = None  # keeps a temporary folder alive until all is written


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem).splitlines()[0]
        raise ConvertError(f"{path}: {reason}") from None


def _modules(folder):
    """The files of the modules that modules.json lists, where sentence-transformers has them."""
    path = os.path.join(folder, "modules.json")
    listed = read_json(path) if os.path.isfile(path) else []
    names = [one.get("path") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    plain = [name for name in names if isinstance(name, str) and name and os.path.basename(name) == name and name[0] != "."]
    return [os.path.join(name, file) for name in plain for file in ("config.json", "model.safetensors", "pytorch_model.bin")]


def companions(folder):
    """The tokenizer files and the like that `folder` has."""
    found = {}
    for name in [*COMPANIONS, *_modules(folder)]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            found[name] = path
    return found


def halves(rows, heads):
    """Rows of q or k, [heads, pairs, 2] to [heads, 2, pairs]: neighbours that turn together become halves."""
    outputs, inputs = rows.shape
    return rows.reshape(heads, outputs // heads // 2, 2, inputs).swapaxes(1, 2).reshape(outputs, inputs)


def write_safetensors(path, tensors):
    """`tensors` (name: numpy array of float16, float32 or float64) in the order of their names."""
    header, at, arrays = {"__metadata__": {"format": "pt"}}, 0, []
    for name in sorted(tensors):
        array = numpy.asarray(tensors[name], order="C")  # keeps rank 0
        header[name] = {
            "dtype": TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
        arrays.append(array.astype(array.dtype.newbyteorder("<"), copy=False))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for array in arrays:
            file.write(array.tobytes())


def write_folder(folder, model):
    """The files of `model`; each appears when it is complete."""
    os.makedirs(folder, exist_ok=True)

    def place(name, write):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        partial = path + ".partial"
        try:
            write(partial)
            os.replace(partial, path)
        finally:
            if os.path.exists(partial):
                os.remove(partial)

    def text(content):
        data = (
            content
            if isinstance(content, bytes)
            else (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
        )

        def write(path):
            with open(path, "wb") as file:
                file.write(data)

        return write

    for name, source in model.copies.items():
        place(name, lambda path, source=source: shutil.copyfile(source, path))
    for name, content in model.texts.items():
        place(name, text(content))
    place("model.safetensors", lambda path: write_safetensors(path, model.tensors))
    place("config.json", text(model.config))
