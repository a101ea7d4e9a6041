# SPDX-License-Identifier: Apache-2.0
"""llama2.c: seven int32, then all weights as float32; beside it the pieces of its tokenizer.

Its rotations turn neighbouring pairs; those of transformers' Llama turn halves. So the rows of q and k are sorted
anew, per head: first the even ones, then the odd ones."""

import glob
import os
import struct

import numpy

from .folder import ConvertError, Model, halves

HEADER = struct.Struct("<7i")
MOST = 2**24


def _sizes(source):
    with open(source, "rb") as file:
        head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    width, inner, layers, heads, groups, vocabulary, positions = HEADER.unpack(head)
    shared, vocabulary = vocabulary > 0, abs(vocabulary)
    sizes = (width, inner, layers, heads, groups, vocabulary, positions)
    if any(not 0 < size < MOST for size in sizes) or width % heads or heads % groups or (width // heads) % 2:
        return None
    return sizes, shared


def _shapes(sizes, shared):
    width, inner, layers, heads, groups, vocabulary, positions = sizes
    keys, half = width // heads * groups, width // heads // 2
    shapes = [
        ("word", (vocabulary, width)),
        ("input_layernorm", (layers, width)),
        ("self_attn.q_proj", (layers, width, width)),
        ("self_attn.k_proj", (layers, keys, width)),
        ("self_attn.v_proj", (layers, keys, width)),
        ("self_attn.o_proj", (layers, width, width)),
        ("post_attention_layernorm", (layers, width)),
        ("mlp.gate_proj", (layers, inner, width)),
        ("mlp.down_proj", (layers, width, inner)),
        ("mlp.up_proj", (layers, inner, width)),
        ("norm", (width,)),
        ("cosines", (positions, half)),
        ("sines", (positions, half)),
    ]
    return shapes + ([] if shared else [("head", (vocabulary, width))])


def _numbers(shapes):
    return sum(int(numpy.prod(shape, dtype=object)) for _, shape in shapes)


def recognises(source):
    if not os.path.isfile(source) or os.path.getsize(source) < HEADER.size:
        return False
    found = _sizes(source)
    return found is not None and os.path.getsize(source) == HEADER.size + 4 * _numbers(_shapes(*found))


def read(source):
    sizes, shared = _sizes(source)
    width, inner, layers, heads, groups, vocabulary, positions = sizes
    flat = numpy.fromfile(source, dtype="<f4", offset=HEADER.size)
    parts, at = {}, 0
    for name, shape in _shapes(sizes, shared):
        count = int(numpy.prod(shape))
        parts[name], at = flat[at : at + count].reshape(shape), at + count
    tensors = {"model.embed_tokens.weight": parts.pop("word"), "model.norm.weight": parts.pop("norm")}
    if not shared:
        tensors["lm_head.weight"] = parts.pop("head")
    del parts["cosines"], parts["sines"]
    for name, stack in parts.items():
        for layer in range(layers):
            rows = stack[layer]
            if name.endswith(("q_proj", "k_proj")):
                rows = halves(rows, heads if name.endswith("q_proj") else groups)
            tensors[f"model.layers.{layer}.{name}.weight"] = numpy.ascontiguousarray(rows)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": shared,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    return Model(config, tensors, texts=_tokenizer(source, vocabulary))


# ---- the tokenizer ----


def _tokenizer(source, vocabulary):
    """tok*.bin beside the weights becomes a SentencePiece model with byte fallback."""
    files = sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(source) or "."), "tok*.bin")))
    if not files:
        return {}
    pieces = _pieces(files[0], vocabulary)
    return {
        "tokenizer.model": _model(pieces),
        "tokenizer_config.json": {
            "tokenizer_class": "LlamaTokenizer",
            "add_bos_token": True,
            "add_eos_token": False,
            "legacy": True,
        },
    }


def _pieces(path, vocabulary):
    with open(path, "rb") as file:
        data = file.read()
    pieces, at = [], 4  # behind the longest length
    for index in range(vocabulary):
        if len(data) < at + 8:
            raise ConvertError(f"{path}: found {index} pieces, expected {vocabulary}")
        score, size = struct.unpack_from("<fi", data, at)
        if size < 0 or len(data) < at + 8 + size:
            raise ConvertError(f"{path}: piece {index}: found {size} bytes, expected no more than the file has")
        text = data[at + 8 : at + 8 + size].decode("utf-8", "replace")
        pieces.append((text.strip("\n") if index < 3 else text.replace(" ", "\u2581"), score))
        at += 8 + size
    return pieces


def _field(number, payload):
    """One field of the wire format: bytes, an int or a float."""
    if isinstance(payload, bytes):
        return _varint(number << 3 | 2) + _varint(len(payload)) + payload
    if isinstance(payload, float):
        return _varint(number << 3 | 5) + struct.pack("<f", payload)
    return _varint(number << 3) + _varint(payload)


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _kind(index, text):
    """Of a piece: 1 normal, 2 unknown, 3 control, 6 byte."""
    if index < 3:
        return 2 if index == 0 else 3
    return 6 if len(text) == 6 and text.startswith("<0x") and text.endswith(">") else 1


def _model(pieces):
    """A ModelProto: BPE, byte fallback, a space before the text, nothing normalised."""
    out = b""
    for index, (text, score) in enumerate(pieces):
        kind = _kind(index, text)
        out += _field(1, _field(1, text.encode()) + _field(2, float(score)) + (_field(3, kind) if kind != 1 else b""))
    trainer = _field(3, 2) + _field(4, len(pieces)) + _field(35, 1)
    normalizer = _field(1, b"identity") + _field(3, 1) + _field(4, 0) + _field(5, 1)
    return out + _field(2, trainer) + _field(3, normalizer)
