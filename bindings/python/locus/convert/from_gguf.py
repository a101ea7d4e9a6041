# SPDX-License-Identifier: Apache-2.0
"""GGUF (versions 2 and 3) of the Llama architecture, with weights in floats or in blocks of 32 numbers.

A block has a scale d and, in the kinds that end in 1, a smallest value m, both F16; then

    Q4_0  (q - 8) d      Q4_1  q d + m      Q5_0  (q - 16) d      Q5_1  q d + m      Q8_0  q d

Nibbles of a block are the low ones of its 16 bytes, then the high ones; the fifth bits are 32 bits before them. Rows
of q and k are stored in pairs, as llama.cpp turns them; transformers has them in halves."""

import os
import struct

import numpy

from .folder import ConvertError, Model, halves

MAGIC = b"GGUF"
ALIGNMENT = 32
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, LIST = 8, 9
FLOATS = {0: "<f4", 1: "<f2", 28: "<f8"}
BLOCK = 32
BLOCKS = {2: ("Q4_0", 18), 3: ("Q4_1", 20), 6: ("Q5_0", 22), 7: ("Q5_1", 24), 8: ("Q8_0", 34)}  # bytes of a block
BRAIN_FLOAT = 30

NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
# tokenizer.ggml.pre: what splits a text before ByteLevel does
SPLITS = {"gpt-2": [], "default": [], "smollm": [{"type": "Digits", "individual_digits": True}]}
CONTROL, ADDED = 3, 4  # tokenizer.ggml.token_type


def recognises(source):
    if not os.path.isfile(source):
        return False
    with open(source, "rb") as file:
        return file.read(4) == MAGIC


class _File:
    """Read, not mapped: a file that shrinks meanwhile is a line, and not the end of Python."""

    def __init__(self, path):
        self.path, self.at = path, 0
        self.size, self.data = os.path.getsize(path), open(path, "rb")  # noqa: SIM115 (read closes it)

    def refuse(self, what):
        raise ConvertError(f"{self.path}: {what}")

    def take(self, size):
        if size <= self.size - self.at:
            self.data.seek(self.at)
            found = self.data.read(size)
            if len(found) == size:
                self.at += size
                return found
        self.refuse(f"found the end at byte {min(self.size, os.path.getsize(self.path))}, expected {size} bytes more")

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self):
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def value(self, kind, depth=0):
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == TEXT:
            return self.text()
        if kind != LIST or depth > 2:
            self.refuse(f"found a value of type {kind}, expected 0 to 12")
        inner, count = self.number("<I"), self.number("<Q")
        if count > self.size - self.at:
            self.refuse(f"found a list of {count} values, expected no more than the file has bytes")
        return [self.value(inner, depth + 1) for _ in range(count)]


def _read(file):
    """(values by key, name: (shape, kind, offset), where the data begins)."""
    values, tensors = {}, {}
    file.take(4)
    version = file.number("<I")
    if version not in (2, 3):
        file.refuse(f"found version {version}, expected 2 or 3")
    tensor_count, value_count = file.number("<Q"), file.number("<Q")
    for _ in range(value_count):
        key = file.text()
        values[key] = file.value(file.number("<I"))
    for _ in range(tensor_count):
        name, rank = file.text(), file.number("<I")
        if rank > 4:
            file.refuse(f"tensor {name}: found rank {rank}, expected 4 at most")
        shape = [file.number("<Q") for _ in range(rank)][::-1]
        tensors[name] = shape, file.number("<I"), file.number("<Q")
    alignment = values.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        file.refuse(f"general.alignment: found {alignment}, expected a number of bytes")
    return values, tensors, -(-file.at // alignment) * alignment


def _nibbles(raw):
    return numpy.concatenate([raw & 15, raw >> 4], axis=1)


def _unpack(kind, blocks):
    """Floats of blocks, [count, bytes] to [count, 32]."""
    name, size = BLOCKS[kind]
    scale = blocks[:, :2].copy().view("<f2").astype("f4")
    if name == "Q8_0":
        return blocks[:, 2:].view("i1") * scale
    smallest = blocks[:, 2:4].copy().view("<f2").astype("f4") if name.endswith("1") else None
    codes = _nibbles(blocks[:, size - BLOCK // 2 :]).astype("i4")
    if name.startswith("Q5"):
        bits = blocks[:, size - BLOCK // 2 - 4 : size - BLOCK // 2].copy().view("<u4")
        codes |= ((bits >> numpy.arange(BLOCK, dtype="u4")) & 1).astype("i4") << 4
    if smallest is not None:
        return codes.astype("f4") * scale + smallest
    return (codes - (8 if name == "Q4_0" else 16)).astype("f4") * scale


def _tensor(file, start, name, shape, kind, offset):
    count = 1
    for extent in shape:
        count *= extent
    if kind in FLOATS or kind == BRAIN_FLOAT:
        size = count * (2 if kind == BRAIN_FLOAT else int(FLOATS[kind][2:]))
    elif kind in BLOCKS and shape and shape[-1] % BLOCK == 0:
        size = count // BLOCK * BLOCKS[kind][1]
    else:
        known = "F32, F16, BF16, F64, " + ", ".join(one for one, _ in BLOCKS.values())
        file.refuse(f"tensor {name}: found type {kind} of shape {shape}, expected {known}")
    file.at = start + offset
    raw = numpy.frombuffer(file.take(size), "u1")
    if kind == BRAIN_FLOAT:
        return (raw.view("<u2").astype("u4") << 16).view("f4").reshape(shape)
    if kind in FLOATS:
        return raw.view(FLOATS[kind]).reshape(shape)
    return _unpack(kind, raw.reshape(-1, BLOCKS[kind][1])).reshape(shape)


def _rename(file, name):
    if name in OUTER:
        return OUTER[name]
    parts = name.split(".")
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in NAMES or parts[3] != "weight":
        file.refuse(f"found tensor {name}, expected those of a Llama")
    return f"model.layers.{parts[1]}.{NAMES[parts[2]]}.weight"


def _config(file, values, tensors):
    def number(key, *preset):
        found = values.get("llama." + key, *preset)
        if not isinstance(found, (int, float)):
            file.refuse(f"llama.{key}: found {found}, expected a number")
        return found

    scaling = values.get("llama.rope.scaling.type", "none")
    if scaling != "none":
        file.refuse(f"llama.rope.scaling.type: found {scaling}, expected none")
    heads = number("attention.head_count")
    width = number("embedding_length")
    if not heads or number("rope.dimension_count", width // heads) * heads != width:
        file.refuse(f"llama.rope.dimension_count: found {values['llama.rope.dimension_count']}, expected all of a head")
    ends = {name: values.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": width,
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": number("attention.head_count_kv", heads),
        "vocab_size": tensors["model.embed_tokens.weight"].shape[0],
        "max_position_embeddings": number("context_length"),
        "hidden_act": "silu",
        "rms_norm_eps": float(f"{number('attention.layer_norm_rms_epsilon'):.6g}"),  # of a float32
        "rope_theta": number("rope.freq_base", 10000.0),
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        **{name + "_token_id": end for name, end in ends.items() if end is not None},
    }


def _listed(file, values, key):
    found = values.get(key)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        file.refuse(f"{key}: found {'nothing' if found is None else type(found).__name__}, expected a list of texts")
    return found


def _tokenizer(file, values):
    """tokenizer.json of byte-level BPE; nothing where the file has another kind."""
    pre = values.get("tokenizer.ggml.pre", "default")
    if values.get("tokenizer.ggml.model") != "gpt2" or pre not in SPLITS:
        return {}
    tokens, merges = (_listed(file, values, f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    kinds, start = values.get("tokenizer.ggml.token_type", []), values.get("tokenizer.ggml.bos_token_id")
    if not isinstance(kinds, list) or len(kinds) > len(tokens):
        file.refuse(f"tokenizer.ggml.token_type: found {type(kinds).__name__}, expected a list of {len(tokens)} kinds")
    if start is not None and not (isinstance(start, int) and 0 <= start < len(tokens)):
        file.refuse(f"tokenizer.ggml.bos_token_id: found {start}, expected less than {len(tokens)}")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": i, "content": tokens[i], **flags, "special": kind == CONTROL}
        for i, kind in enumerate(kinds)
        if kind in (CONTROL, ADDED)
    ]
    template = None
    if values.get("tokenizer.ggml.add_bos_token") and start is not None:
        first = {"SpecialToken": {"id": tokens[start], "type_id": 0}}
        template = {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [first, *({"Sequence": {"id": one, "type_id": 0}} for one in "AB")],
            "special_tokens": {tokens[start]: {"id": tokens[start], "ids": [start], "tokens": [tokens[start]]}},
        }
    rules = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*SPLITS[pre], level]} if SPLITS[pre] else level,
        "post_processor": template,
        "decoder": {**level, "add_prefix_space": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges,
        },
    }  # fmt: skip
    return {"tokenizer.json": rules, "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}}


def read(source):
    file = _File(source)
    with file.data:
        return _model(file, *_read(file))


def _model(file, values, places, start):
    if values.get("general.architecture") != "llama":
        file.refuse(f"general.architecture: found {values.get('general.architecture')}, expected llama")
    tensors = {}
    for name, (shape, kind, offset) in places.items():
        if name != "rope_freqs.weight":
            tensors[_rename(file, name)] = _tensor(file, start, name, shape, kind, offset)
    if "model.embed_tokens.weight" not in tensors:
        file.refuse("tensor token_embd.weight is missing, expected it")
    config = _config(file, values, tensors)
    for name, rows in tensors.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config["num_attention_heads" if ".q_proj" in name else "num_key_value_heads"]
            tensors[name] = numpy.ascontiguousarray(halves(rows, heads))
    return Model(config, tensors, texts=_tokenizer(file, values))
