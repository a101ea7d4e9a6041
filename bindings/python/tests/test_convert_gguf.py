# SPDX-License-Identifier: Apache-2.0
"""`python -m locus.convert` on GGUF files that are made here: every kind of block against a decoder that goes number
by number, names and rows of a Llama, the tokenizer, and what is refused."""

import json
import os
import struct

import numpy
import pytest

import locus
from locus.convert import ConvertError, convert, from_gguf

RANDOM = numpy.random.default_rng(11)
WIDTH, HEADS, GROUPS, WORDS = 64, 2, 1, 262
KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "BF16": 30}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(content):
    """With its type before it."""
    if isinstance(content, bool):
        return struct.pack("<I?", 7, content)
    if isinstance(content, int):
        return struct.pack("<II", 4, content)
    if isinstance(content, float):
        return struct.pack("<If", 6, content)
    if isinstance(content, str):
        return struct.pack("<I", 8) + text(content)
    inner = [value(one) for one in content]
    return struct.pack("<I", 9) + inner[0][:4] + struct.pack("<Q", len(inner)) + b"".join(one[4:] for one in inner)


def block(kind):
    """Bytes of one block and its 32 numbers."""
    scale, least = (numpy.float16(x) for x in RANDOM.standard_normal(2))
    out = scale.tobytes()
    if kind == "Q8_0":
        codes = RANDOM.integers(-128, 128, 32).astype("i1")
        return out + codes.tobytes(), [float(scale) * int(q) for q in codes]
    if kind.endswith("1"):
        out += least.tobytes()
    codes = [int(q) for q in RANDOM.integers(0, 32 if kind.startswith("Q5") else 16, 32)]
    if kind.startswith("Q5"):
        out += struct.pack("<I", sum((q >> 4) << i for i, q in enumerate(codes)))
    out += bytes((codes[i] & 15) | (codes[i + 16] & 15) << 4 for i in range(16))
    middle = {"Q4_0": 8, "Q5_0": 16}.get(kind, 0)
    return out, [float(scale) * (q - middle) + (float(least) if kind.endswith("1") else 0.0) for q in codes]


def tensor(kind, *shape):
    """Its bytes and what they mean."""
    if kind in ("F32", "F16"):
        array = RANDOM.standard_normal(shape).astype("<f4" if kind == "F32" else "<f2")
        return array.tobytes(), array.astype("f4")
    if kind == "BF16":
        bits = RANDOM.standard_normal(shape).astype("<f4").view("<u4") >> 16
        return bits.astype("<u2").tobytes(), (bits << 16).view("f4")
    blocks = [block(kind) for _ in range(int(numpy.prod(shape)) // 32)]
    numbers = numpy.array([number for _, numbers in blocks for number in numbers], "f4")
    return b"".join(data for data, _ in blocks), numbers.reshape(shape)


def byte_tokens():
    """The letters that byte-level BPE writes bytes with."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, more = {}, 0
    for byte in range(256):
        letters[byte] = chr(byte if byte in kept else 256 + more)
        more += byte not in kept
    return [letters[byte] for byte in range(256)]


def settings():
    tokens = ["<|endoftext|>", "<|im_start|>", *byte_tokens(), "he", "ll", "hell", "Ġhe"]
    return {
        "general.architecture": "llama",
        "llama.block_count": 1, "llama.context_length": 32, "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": 96, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": GROUPS,
        "llama.rope.freq_base": 100000.0, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3] + [1] * (len(tokens) - 2),
        "tokenizer.ggml.merges": ["h e", "l l", "he ll", "Ġ he"],
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.add_bos_token": False,
    }  # fmt: skip


def parts(kind):
    keys = WIDTH // HEADS * GROUPS
    return {
        "token_embd.weight": tensor(kind, WORDS, WIDTH),
        "output_norm.weight": tensor("F32", WIDTH),
        "blk.0.attn_norm.weight": tensor("F32", WIDTH),
        "blk.0.ffn_norm.weight": tensor("F32", WIDTH),
        "blk.0.attn_q.weight": tensor(kind, WIDTH, WIDTH),
        "blk.0.attn_k.weight": tensor(kind, keys, WIDTH),
        "blk.0.attn_v.weight": tensor(kind, keys, WIDTH),
        "blk.0.attn_output.weight": tensor(kind, WIDTH, WIDTH),
        "blk.0.ffn_gate.weight": tensor(kind, 96, WIDTH),
        "blk.0.ffn_up.weight": tensor(kind, 96, WIDTH),
        "blk.0.ffn_down.weight": tensor(kind, WIDTH, 96),
    }


def write(path, values, tensors, kind, version=3):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for key, content in values.items():
        out += text(key) + value(content)
    data = b""
    for name, (raw, numbers) in tensors.items():
        own = "F32" if numbers.ndim == 1 else kind
        out += text(name) + struct.pack("<I", numbers.ndim) + struct.pack(f"<{numbers.ndim}Q", *numbers.shape[::-1])
        out += struct.pack("<IQ", KINDS.get(own, 12), len(data))
        data += raw + bytes(-len(raw) % 32)
    path.write_bytes(out + bytes(-len(out) % 32) + data)


def load(folder):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    return load_file(os.path.join(folder, "model.safetensors"))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers(tmp_path, kind):
    tensors = parts(kind)
    write(tmp_path / "small.gguf", settings(), tensors, kind)
    assert convert(tmp_path / "small.gguf", tmp_path / "out")[0] == "GGUF"
    found = load(tmp_path / "out")
    for ours, theirs in (
        ("model.embed_tokens", "token_embd"), ("model.layers.0.mlp.down_proj", "blk.0.ffn_down"),
        ("model.layers.0.self_attn.v_proj", "blk.0.attn_v"), ("model.norm", "output_norm"),
    ):  # fmt: skip
        numpy.testing.assert_allclose(found[ours + ".weight"], tensors[theirs + ".weight"][1], rtol=1e-6)
    size = WIDTH // HEADS
    for name, heads in (("q", HEADS), ("k", GROUPS)):  # pair i is column i and i + half of transformers
        rows, want = found[f"model.layers.0.self_attn.{name}_proj.weight"], tensors[f"blk.0.attn_{name}.weight"][1]
        for row in range(heads * size):
            head, i = divmod(row, size)
            numpy.testing.assert_allclose(
                rows[row], want[head * size + 2 * (i % (size // 2)) + i // (size // 2)], rtol=1e-6
            )


def test_the_folder_runs(tmp_path):
    write(tmp_path / "small.gguf", settings(), parts("Q4_1"), "Q4_1")
    convert(tmp_path / "small.gguf", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["rope_theta"], config["rms_norm_eps"], config["tie_word_embeddings"]) == (100000.0, 1e-5, True)
    tokenizer = locus.Tokenizer(tmp_path / "out")
    letters = byte_tokens()
    assert tokenizer("hell he<|im_start|>12").ids == [260, 261, 1, *(2 + letters.index(c) for c in "12")]
    assert tokenizer.decode(tokenizer("hell é 12").ids) == "hell é 12"
    assert locus.Model(tmp_path / "out").info["family"] == "llama"


def changed(key, content):
    return {**settings(), key: content}


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (changed("general.architecture", "qwen2"), "F32", "general.architecture: found qwen2, expected llama"),
        (changed("llama.rope.scaling.type", "yarn"), "F32", "rope.scaling.type: found yarn, expected none"),
        (changed("llama.block_count", "many"), "F32", "llama.block_count: found many, expected a number"),
        (changed("tokenizer.ggml.bos_token_id", 99999), "F32", "bos_token_id: found 99999, expected less than"),
        (changed("tokenizer.ggml.tokens", "a"), "F32", "tokenizer.ggml.tokens: found str, expected a list of texts"),
        ({k: v for k, v in settings().items() if "merges" not in k}, "F32", "merges: found nothing, expected a list of texts"),
        (changed("general.architecture", "\x1b[31m\nforged"), "F32", r"found \\x1b\[31m\\nforged, expected llama$"),
        (settings(), "Q4_K", "tensor token_embd.weight: found type 12 of shape"),
    ],
)
def test_refusals(tmp_path, values, kind, message):
    write(tmp_path / "bad.gguf", values, parts("F32"), kind)
    with pytest.raises(ConvertError, match=message):
        convert(tmp_path / "bad.gguf", tmp_path / "out")


def test_every_cut_is_refused(tmp_path):
    write(tmp_path / "whole.gguf", settings(), parts("Q4_0"), "Q4_0")
    data = (tmp_path / "whole.gguf").read_bytes()
    for size in [*range(4, 400, 7), len(data) // 2, len(data) - 40]:
        (tmp_path / "cut.gguf").write_bytes(data[:size])
        with pytest.raises(ConvertError, match="found"):
            convert(tmp_path / "cut.gguf", tmp_path / "out")


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    """A line, where a mapped file would end the process."""
    path = tmp_path / "whole.gguf"
    write(path, settings(), parts("F16"), "F16")
    read = from_gguf._tensor

    def cut_first(*arguments):
        os.truncate(path, 100)
        return read(*arguments)

    monkeypatch.setattr(from_gguf, "_tensor", cut_first)
    with pytest.raises(ConvertError, match="found the end at byte 100, expected"):
        convert(path, tmp_path / "out")
