# SPDX-License-Identifier: Apache-2.0
"""`python -m locus.convert`: small files of every format, made here, and what becomes of them."""

import json
import os
import struct
import zipfile

import numpy
import pytest

import locus
from locus.convert import ConvertError, convert
from locus.convert.__main__ import main

RANDOM = numpy.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype("<f4")


def load(folder):
    from safetensors.numpy import load_file

    return load_file(os.path.join(folder, "model.safetensors"))


def config(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.fixture(autouse=True)
def needs_safetensors():
    pytest.importorskip("safetensors")


# ---- llama2.c ----

WIDTH, INNER, LAYERS, HEADS, GROUPS, VOCABULARY, POSITIONS = 16, 24, 2, 4, 2, 300, 8


def write_llama(path, shared=True):
    keys, half = WIDTH // HEADS * GROUPS, WIDTH // HEADS // 2
    parts = {
        "word": floats(VOCABULARY, WIDTH),
        "norm1": floats(LAYERS, WIDTH),
        "q": floats(LAYERS, WIDTH, WIDTH),
        "k": floats(LAYERS, keys, WIDTH),
        "v": floats(LAYERS, keys, WIDTH),
        "o": floats(LAYERS, WIDTH, WIDTH),
        "norm2": floats(LAYERS, WIDTH),
        "w1": floats(LAYERS, INNER, WIDTH),
        "w2": floats(LAYERS, WIDTH, INNER),
        "w3": floats(LAYERS, INNER, WIDTH),
        "norm": floats(WIDTH),
        "cosines": floats(POSITIONS, half),
        "sines": floats(POSITIONS, half),
    }
    if not shared:
        parts["head"] = floats(VOCABULARY, WIDTH)
    with open(path, "wb") as file:
        words = VOCABULARY if shared else -VOCABULARY
        file.write(struct.pack("<7i", WIDTH, INNER, LAYERS, HEADS, GROUPS, words, POSITIONS))
        for part in parts.values():
            file.write(part.tobytes())
    return parts


def write_pieces(path):
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n"] + ["<0x%02X>" % i for i in range(256)]
    pieces += [" ", "a", "b", "ab", " ab"] + ["x%d" % i for i in range(VOCABULARY - 264)]
    with open(path, "wb") as file:
        file.write(struct.pack("<i", 8))
        for i, piece in enumerate(pieces):
            file.write(struct.pack("<fi", -float(i), len(piece.encode())) + piece.encode())


@pytest.mark.parametrize("shared", (True, False))
def test_llama2c(tmp_path, shared):
    parts = write_llama(tmp_path / "small.bin", shared)
    write_pieces(tmp_path / "tok300.bin")
    assert convert(tmp_path / "small.bin", tmp_path / "out")[0] == "llama2.c"
    found = load(tmp_path / "out")
    size = WIDTH // HEADS
    for name, heads in (("q", HEADS), ("k", GROUPS)):
        rows = found[f"model.layers.1.self_attn.{name}_proj.weight"]
        for head in range(heads):  # pair i of llama2.c is column i and i + half of transformers
            for i in range(size // 2):
                for part in range(2):
                    want = parts[name][1][head * size + 2 * i + part]
                    assert numpy.array_equal(rows[head * size + part * (size // 2) + i], want)
    assert numpy.array_equal(found["model.layers.0.mlp.up_proj.weight"], parts["w3"][0])
    assert numpy.array_equal(found["model.layers.1.mlp.down_proj.weight"], parts["w2"][1])
    assert ("lm_head.weight" in found) is not shared
    settings = config(tmp_path / "out")
    assert settings["num_key_value_heads"] == GROUPS and settings["tie_word_embeddings"] is shared
    tokenizer = locus.Tokenizer(tmp_path / "out")
    assert tokenizer("ab").ids == [1, 263]
    assert tokenizer.decode(tokenizer("ab\xe9").ids) == "ab\xe9"  # by its bytes


# ---- CTranslate2 ----


def text(value):
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def write_ctranslate2(path, tensors, aliases=(), version=6, spec="TransformerSpec"):
    kinds = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    with open(path, "wb") as file:
        file.write(struct.pack("<I", version) + text(spec) + struct.pack("<II", 1, len(tensors)))
        for name, value in tensors.items():
            value = numpy.asarray(value)
            file.write(text(name) + struct.pack("B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape))
            if version >= 4:
                file.write(struct.pack("<BI", kinds[value.dtype.name], value.nbytes))
            else:
                file.write(struct.pack("<BI", value.itemsize, value.size))
            file.write(value.tobytes())
        if version >= 3:
            file.write(struct.pack("<I", len(aliases)))
            for alias, name in aliases:
                file.write(text(alias) + text(name))


def translation(first=0, words=(9, 9), width=8, inner=12):
    tensors = {}

    def norm(name):
        tensors[name + "/gamma"], tensors[name + "/beta"] = floats(width), floats(width)

    def linear(name, outputs, inputs):
        tensors[name + "/weight"], tensors[name + "/bias"] = floats(outputs, inputs), floats(outputs)

    for side in ("encoder", "decoder"):
        name = f"{side}/layer_0/"
        norm(name + "self_attention/layer_norm")
        linear(name + "self_attention/linear_0", 3 * width, width)
        linear(name + "self_attention/linear_1", width, width)
        norm(name + "ffn/layer_norm")
        linear(name + "ffn/linear_0", inner, width)
        linear(name + "ffn/linear_1", width, inner)
        tensors[side + "/pre_norm"] = numpy.int8(first)
        tensors[side + "/num_heads"] = numpy.int16(2)
        if first:
            norm(side + "/layer_norm")
    norm("decoder/layer_0/attention/layer_norm")
    linear("decoder/layer_0/attention/linear_0", width, width)
    linear("decoder/layer_0/attention/linear_1", 2 * width, width)
    linear("decoder/layer_0/attention/linear_2", width, width)
    tensors["decoder/projection/bias"] = floats(words[1])
    for side in ("encoder", "decoder"):
        tensors[side + "/activation"] = numpy.int8(2)
    return tensors


def test_ctranslate2_shared(tmp_path):
    source = tmp_path / "model"
    source.mkdir()
    tensors = translation()
    tensors["decoder/embeddings/weight"] = RANDOM.integers(-127, 127, (9, 8)).astype("i1")
    tensors["decoder/embeddings/weight_scale"] = 1 + numpy.abs(floats(9))
    tensors["decoder/start_from_zero_embedding"] = numpy.int8(1)
    aliases = [
        (name, "decoder/embeddings/weight") for name in ("encoder/embeddings_0/weight", "decoder/projection/weight")
    ]
    write_ctranslate2(source / "model.bin", tensors, aliases)
    (source / "shared_vocabulary.json").write_text(json.dumps(["</s>", "<unk>"] + ["p%d" % i for i in range(7)]))
    (tmp_path / "sentencepiece.model").write_bytes(b"pieces")
    assert convert(source, tmp_path / "out")[0] == "CTranslate2"
    found, settings = load(tmp_path / "out"), config(tmp_path / "out")
    want = tensors["decoder/embeddings/weight"] / tensors["decoder/embeddings/weight_scale"][:, None].astype("f8")
    assert numpy.array_equal(found["model.shared.weight"][:9], want.astype("f4"))
    assert not found["model.shared.weight"][9].any() and found["final_logits_bias"].shape == (1, 10)
    fused = tensors["decoder/layer_0/self_attention/linear_0/weight"]
    assert numpy.array_equal(found["model.decoder.layers.0.self_attn.v_proj.weight"], fused[16:])
    fused = tensors["decoder/layer_0/attention/linear_1/bias"]
    assert numpy.array_equal(found["model.decoder.layers.0.encoder_attn.v_proj.bias"], fused[8:])
    assert settings["vocab_size"] == 10 and settings["decoder_start_token_id"] == 9 and settings["eos_token_id"] == 0
    assert settings["activation_function"] == "swish" and not settings["normalize_before"]
    assert json.loads((tmp_path / "out" / "vocab.json").read_text())["<pad>"] == 9
    assert (tmp_path / "out" / "target.spm").read_bytes() == b"pieces"
    archive = tmp_path / "zh_en.argosmodel"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("model/model.bin", "model/shared_vocabulary.json", "sentencepiece.model"):
            file.write(tmp_path / name, "translate/" + name)
    convert(archive, tmp_path / "other")
    for name in ("config.json", "model.safetensors", "vocab.json", "source.spm"):
        assert (tmp_path / "other" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_ctranslate2_old(tmp_path):
    """Version 2: two vocabularies, norms before, positions from 1 that are not stored."""
    tensors = translation(first=1, words=(9, 7))
    for name in ("num_heads", "pre_norm", "activation"):
        tensors = {key: value for key, value in tensors.items() if not key.endswith(name)}
    tensors["encoder/embeddings/weight"] = floats(9, 8)
    tensors["decoder/embeddings/weight"] = floats(7, 8)
    tensors["decoder/projection/weight"] = floats(7, 8)
    write_ctranslate2(tmp_path / "model.bin", tensors, version=2, spec="TransformerBase")
    (tmp_path / "target_vocabulary.txt").write_text("<blank>\n<s>\n</s>\na\nb\nc\nd\n")
    convert(tmp_path, tmp_path / "out")
    found, settings = load(tmp_path / "out"), config(tmp_path / "out")
    assert settings["normalize_before"] and settings["add_final_layer_norm"] and not settings["tie_word_embeddings"]
    assert settings["eos_token_id"] == 2 and settings["decoder_start_token_id"] == 1
    assert numpy.array_equal(found["lm_head.weight"], tensors["decoder/projection/weight"])
    positions = found["model.encoder.embed_positions.weight"]
    numpy.testing.assert_allclose(positions[0, [0, 4]], [numpy.sin(1), numpy.cos(1)], rtol=1e-6)
    numpy.testing.assert_allclose(positions[4, [3, 7]], [numpy.sin(5e-4), numpy.cos(5e-4)], rtol=1e-5)


def test_ctranslate2_of_two_kinds(tmp_path):
    """An encoder of two layers with norms behind, a decoder of one with norms before, other heads and activation."""
    tensors = translation()
    for name in [name for name in tensors if name.startswith("encoder/layer_0/")]:
        tensors[name.replace("layer_0", "layer_1")] = floats(*tensors[name].shape)
    tensors["decoder/layer_norm/gamma"], tensors["decoder/layer_norm/beta"] = floats(8), floats(8)
    tensors["decoder/pre_norm"], tensors["decoder/num_heads"] = numpy.int8(1), numpy.int16(4)
    tensors["decoder/activation"] = numpy.int8(0)
    tensors["decoder/scale_embeddings"] = numpy.int8(0)
    for name in ("encoder/embeddings_0", "decoder/embeddings", "decoder/projection"):
        tensors[name + "/weight"] = floats(9, 8)
    write_ctranslate2(tmp_path / "model.bin", tensors)
    convert(tmp_path, tmp_path / "out")
    settings = config(tmp_path / "out")
    assert (settings["encoder_layers"], settings["decoder_layers"]) == (2, 1)
    assert (settings["encoder_attention_heads"], settings["decoder_attention_heads"]) == (2, 4)
    assert not settings["normalize_before"] and settings["decoder_normalize_before"]
    assert not settings["add_final_layer_norm"] and settings["decoder_add_final_layer_norm"]
    assert (settings["activation_function"], settings["decoder_activation_function"]) == ("swish", "relu")
    assert settings["scale_embedding"] and not settings["decoder_scale_embedding"]
    assert locus.Model(tmp_path / "out").info["family"] == "marian"
    tensors["decoder/activation"] = numpy.int8(9)
    write_ctranslate2(tmp_path / "model.bin", tensors)
    with pytest.raises(ConvertError, match="decoder/activation: found 9, expected one of"):
        convert(tmp_path, tmp_path / "out")


# ---- ONNX ----


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


ONNX_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "float16": 10}


def tensor(name, value):
    value = numpy.asarray(value)
    dims = b"".join(field(1, extent) for extent in value.shape)
    return dims + field(2, ONNX_TYPES[value.dtype.name]) + field(8, name) + field(9, value.tobytes())


def write_onnx(path, tensors, nodes=()):
    graph = b"".join(field(5, tensor(name, value)) for name, value in tensors.items())
    for kind, name, inputs in nodes or [("Identity", "end", ["x"])]:
        node = b"".join(field(1, one) for one in inputs) + field(2, name + "_out") + field(3, name) + field(4, kind)
        graph += field(1, node)
    path.write_bytes(field(1, 8) + field(7, graph))


def quantized(name, rows, columns, dtype="int8", zero=0):
    low = 0 if dtype == "uint8" else -100
    values = RANDOM.integers(low, low + 200, (rows, columns)).astype(dtype)
    scale = numpy.float32(0.02)
    found = {name + "_quantized": values, name + "_scale": scale, name + "_zero_point": numpy.array(zero, dtype)}
    return found, ((values.astype("f8") - zero) * scale.astype("f8")).astype("f4")


def test_onnx_quantised(tmp_path):
    """A product's weight by the path of its module, transposed; tables as they are; a float goes before its int8."""
    tensors, nodes, want = {}, [], {}
    found, table = quantized("deberta.embeddings.word_embeddings.weight", 20, 8, "uint8", 100)
    tensors.update(found)
    nodes.append(("Gather", "/deberta/embeddings/word_embeddings/Gather", [list(found)[0], "input_ids"]))
    want["deberta.embeddings.word_embeddings.weight"] = table
    found, weight = quantized("onnx::MatMul_7", 8, 6)
    tensors.update(found)
    path = "/deberta/encoder/layer.0/intermediate/dense/MatMul_quant"
    nodes.append(("MatMulInteger", path, ["x", "onnx::MatMul_7_quantized", "a", "b"]))
    want["deberta.encoder.layer.0.intermediate.dense.weight"] = weight.T
    found, _ = quantized("onnx::MatMul_9", 8, 8)
    exact = floats(8, 8)
    tensors.update(found, **{"onnx::MatMul_9": exact})
    path = "/deberta/encoder/layer.0/attention/self/query_proj"
    nodes.append(("MatMulInteger", path + "/MatMul_quant", ["x", "onnx::MatMul_9_quantized"]))
    nodes.append(("MatMul", path + "_1/MatMul", ["y", "onnx::MatMul_9"]))  # the second use
    want["deberta.encoder.layer.0.attention.self.query_proj.weight"] = exact.T
    found, weight = quantized("classifier.weight", 8, 3)
    tensors.update(found)
    nodes.append(("MatMulInteger", "/classifier/Gemm_MatMul_quant", ["x", "classifier.weight_quantized"]))
    want["classifier.weight"] = weight.T
    want["deberta.encoder.rel_embeddings.weight"] = tensors["deberta.encoder.rel_embeddings.weight"] = floats(10, 8)
    want["classifier.bias"] = tensors["classifier.bias"] = floats(3).astype("f2")
    tensors["/deberta/Constant_output_0"] = numpy.int64(3)
    write_onnx(tmp_path / "model.onnx", tensors, nodes)
    (tmp_path / "spm.model").write_bytes(b"pieces")
    assert convert(tmp_path / "model.onnx", tmp_path / "out")[0] == "ONNX"
    found = load(tmp_path / "out")
    assert sorted(found) == sorted(want)
    for name, value in want.items():
        assert numpy.array_equal(found[name], value), name
    settings = config(tmp_path / "out")
    assert settings["position_buckets"] == 5 and len(settings["id2label"]) == 3 and settings["intermediate_size"] == 6
    assert (tmp_path / "out" / "spm.model").read_bytes() == b"pieces"


def test_onnx_t5(tmp_path):
    source = tmp_path / "t5"
    source.mkdir()
    for side, prefix, word in (
        ("encoder", "enc", "enc.embed_tokens.weight"),
        ("decoder", "m.decoder", "m.shared.weight"),
    ):
        tensors, nodes = {word: floats(30, 8)}, [("Gather", "/x/Gather", [word, "ids"])]
        tensors[prefix + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = floats(4, 2)
        path = "/" + prefix.replace(".", "/") + "/block.0/layer."
        for module, rows, columns in (("0/SelfAttention/q", 6, 8), ("1/DenseReluDense/wi_0", 5, 8)):
            tensors[f"onnx::{side}{module}"] = floats(columns, rows)
            nodes.append(("MatMul", path + module + "/MatMul", ["x", f"onnx::{side}{module}"]))
        write_onnx(source / (side + ".onnx"), tensors, nodes)
    convert(source, tmp_path / "out")
    found, settings = load(tmp_path / "out"), config(tmp_path / "out")
    assert found["decoder.block.0.layer.1.DenseReluDense.wi_0.weight"].shape == (5, 8)
    assert found["encoder.block.0.layer.0.SelfAttention.q.weight"].shape == (6, 8) and found["shared.weight"].shape == (
        30,
        8,
    )
    assert (settings["d_kv"], settings["num_heads"], settings["d_ff"]) == (3, 2, 5)
    assert settings["feed_forward_proj"] == "gated-gelu" and settings["num_decoder_layers"] == 1


def piper_tensors():
    tensors = {"sid": floats(30, 8), "enc_p.proj.weight": floats(12, 8, 1), "enc_p.proj.bias": floats(12)}
    for name in "qkvo":
        tensors[f"enc_p.encoder.attn_layers.0.conv_{name}.weight"] = floats(8, 8, 1)
        tensors[f"enc_p.encoder.attn_layers.0.conv_{name}.bias"] = floats(8)
    for name in "kv":
        tensors[f"enc_p.encoder.attn_layers.0.emb_rel_{name}"] = floats(1, 9, 4)
    for norm in (1, 2):
        tensors[f"enc_p.encoder.norm_layers_{norm}.0.gamma"] = floats(8)
        tensors[f"enc_p.encoder.norm_layers_{norm}.0.beta"] = floats(8)
    for conv, shape in ((1, (16, 8, 3)), (2, (8, 16, 3))):
        tensors[f"enc_p.encoder.ffn_layers.0.conv_{conv}.weight"] = floats(*shape)
        tensors[f"enc_p.encoder.ffn_layers.0.conv_{conv}.bias"] = floats(shape[0])
    return tensors


def test_piper(tmp_path):
    tensors = piper_tensors()
    write_onnx(tmp_path / "voice.onnx", tensors)
    (tmp_path / "voice.onnx.json").write_text('{"phoneme_id_map": {}}')
    assert convert(tmp_path / "voice.onnx", tmp_path / "out")[0] == "Piper"
    found, settings = load(tmp_path / "out"), config(tmp_path / "out")
    name = "text_encoder.encoder.layers.0."
    assert numpy.array_equal(
        found[name + "attention.out_proj.weight"], tensors["enc_p.encoder.attn_layers.0.conv_o.weight"][:, :, 0]
    )
    assert numpy.array_equal(found[name + "final_layer_norm.bias"], tensors["enc_p.encoder.norm_layers_2.0.beta"])
    assert settings["window_size"] == 4 and settings["num_attention_heads"] == 2 and settings["flow_size"] == 6


# ---- torch ----


def test_torch(tmp_path):
    torch = pytest.importorskip("torch")
    word = torch.randn(20, 8)
    tensors = {
        "bert.embeddings.word_embeddings.weight": word,
        "bert.embeddings.position_ids": torch.arange(8),
        "bert.pooler.dense.weight": torch.randn(8, 8).t(),
        "bert.pooler.dense.bias": torch.randn(8).bfloat16(),
        "cls.predictions.decoder.weight": word,
    }
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    assert convert(tmp_path, tmp_path / "out")[0] == "torch"
    found = load(tmp_path / "out")
    assert sorted(found) == sorted(list(tensors)[i] for i in (0, 2, 3))  # no integers, tied weights once
    for name, value in found.items():
        assert numpy.array_equal(value, tensors[name].float().numpy())
    assert config(tmp_path / "out")["model_type"] == "bert"
    assert (tmp_path / "out" / "vocab.txt").exists()
    (tmp_path / "other.json").write_text('{"model_type": "electra"}')
    convert(tmp_path, tmp_path / "out", config=tmp_path / "other.json", tokenizer=tmp_path / "vocab.txt")
    assert config(tmp_path / "out") == {"model_type": "electra"}


@pytest.mark.parametrize(
    ("prefix", "heads", "architecture"),
    [
        ("", (), "BertModel"),
        ("bert.", ("predictions.transform.dense",), "BertForMaskedLM"),
        ("bert.", ("predictions.transform.dense", "seq_relationship"), "BertForPreTraining"),
    ],
)
def test_torch_without_model_type(tmp_path, prefix, heads, architecture):
    """Files from before configurations named their family: the tensors say it."""
    torch = pytest.importorskip("torch")
    names = ("embeddings.word_embeddings", "embeddings.token_type_embeddings", "encoder.layer.0.attention.self.query")
    tensors = {f"{prefix}{name}.weight": torch.randn(4, 4) for name in names}
    tensors.update({f"cls.{name}.weight": torch.randn(4, 4) for name in heads})
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text('{"hidden_size": 4, "type_vocab_size": 2}')
    convert(tmp_path, tmp_path / "out")
    found = config(tmp_path / "out")
    assert (found["model_type"], found["architectures"]) == ("bert", [architecture])
    (tmp_path / "config.json").write_text('{"hidden_size": 4, "type_vocab_size": 1}')  # a RoBERTa, perhaps
    with pytest.raises(ConvertError, match="found no model_type, expected one"):
        convert(tmp_path, tmp_path / "out")


# ---- refusals ----


class Call:
    def __reduce__(self):
        return os._exit, (3,)  # a reader that runs the code of a file ends the tests here


def broken_sources(folder):
    """(a name, a source, a part of the message)."""
    folder.mkdir()
    (folder / "empty.bin").write_bytes(b"")
    yield "empty", folder / "empty.bin", "no known format"
    (folder / "noise.bin").write_bytes(RANDOM.bytes(4000))
    yield "noise", folder / "noise.bin", "no known format"
    yield "absent", folder / "absent", "no such file"
    write_llama(folder / "cut.bin")
    data = (folder / "cut.bin").read_bytes()
    (folder / "cut.bin").write_bytes(data[:-4])
    yield "llama-cut", folder / "cut.bin", "no known format"
    (folder / "model.onnx").write_bytes(b"\x3a\xff\xff\xff\xff\x0f")
    yield "onnx-length", folder / "model.onnx", "beyond its message"
    (folder / "digits.onnx").write_bytes(b"\xff" * 40)
    yield "onnx-number", folder / "digits.onnx", "does not end"
    (folder / "nothing.onnx").write_bytes(b"")
    yield "onnx-empty", folder / "nothing.onnx", "found no graph"
    write_onnx(folder / "other.onnx", {"a": floats(2)})
    yield "onnx-other", folder / "other.onnx", "config.json"
    shape = field(1, 1000) + field(1, 1000) + field(2, 1) + field(8, "a") + field(9, b"abcd")
    (folder / "short.onnx").write_bytes(field(7, field(5, shape)))
    yield "onnx-short", folder / "short.onnx", "found 1 numbers for 1000000"
    tensors = piper_tensors()
    del tensors["enc_p.proj.bias"]
    write_onnx(folder / "voice.onnx", tensors)
    (folder / "voice.onnx.json").write_text('{"phoneme_id_map": {}}')
    yield "piper-missing", folder / "voice.onnx", "enc_p.proj.bias is missing"
    (folder / "bad.argosmodel").write_bytes(b"PK\3\4 and no more")
    yield "argos", folder / "bad.argosmodel", "not a zip"
    write_ctranslate2(folder / "model.bin", translation())
    yield "ctranslate2-missing", folder / "model.bin", "encoder/embeddings/weight is missing"
    data = (folder / "model.bin").read_bytes()
    (folder / "half.bin").write_bytes(data[: len(data) // 2])
    yield "ctranslate2-cut", folder / "half.bin", "found the end"
    tensors = translation()
    for name in ("encoder/embeddings", "decoder/embeddings", "decoder/projection"):
        tensors[name + "/weight"] = floats(9, 8)
    tensors["encoder/relative_keys"] = floats(3)
    write_ctranslate2(folder / "more.bin", tensors)
    yield "ctranslate2-more", folder / "more.bin", "found encoder/relative_keys"


def torch_sources(folder):
    import torch

    folder.mkdir()
    torch.save(Call(), folder / "code.bin")
    yield "torch-code", folder / "code.bin", "weights_only"
    torch.save([1, 2], folder / "list.bin")
    yield "torch-list", folder / "list.bin", "found list"
    torch.save({"w": torch.ones(1).expand(30000, 20000)}, folder / "expanded.bin")
    yield "torch-expanded", folder / "expanded.bin", "tensor w: found 600000000 numbers, expected no more than the 1 stored"
    torch.save({"a": torch.ones(2)}, folder / "alone.bin")
    yield "torch-alone", folder / "alone.bin", "no config.json"
    (folder / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "../alone.bin"}}')
    yield "torch-index", folder, "expected the name of a file beside it"


def refusals(tmp_path):
    yield from broken_sources(tmp_path / "plain")
    try:
        import torch  # noqa: F401
    except ImportError:
        return
    yield from torch_sources(tmp_path / "torch")


def test_refusals(tmp_path, capsys):
    for name, source, part in refusals(tmp_path):
        with pytest.raises(ConvertError) as found:
            convert(source, tmp_path / "out")
        message = str(found.value)
        assert part in message and "\n" not in message and len(message) < 400, (name, message)
        assert main([str(source), "-o", str(tmp_path / "out")]) == 1
        assert part in capsys.readouterr().err
        assert not (tmp_path / "out").exists(), name


def test_command(tmp_path, capsys):
    write_llama(tmp_path / "small.bin")
    assert main([str(tmp_path / "small.bin"), "-o", str(tmp_path / "out")]) == 0
    assert "from llama2.c" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "small.bin"), "-o", str(tmp_path / "file")]) == 1
    assert "file" in capsys.readouterr().err
