# SPDX-License-Identifier: Apache-2.0
"""GGUF files that the package gguf writes, read in C: the bits of model.safetensors with the same numbers."""
import os
import shutil

import numpy
import pytest

import locus

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")
safetensors = pytest.importorskip("safetensors.torch")

TOKENIZERS = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "tests", "data", "tokenizers")
TEXTS = ["the license", "a work of the license", "the"]
KINDS = {"F32": gguf.GGMLQuantizationType.F32, "F16": gguf.GGMLQuantizationType.F16,
         "BF16": gguf.GGMLQuantizationType.BF16, "Q8_0": gguf.GGMLQuantizationType.Q8_0}


def pairs(rows, heads):
    """Rows of q and k as llama.cpp turns them: neighbours instead of halves."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def renamed(architecture, layers, name):
    kinds = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2, "bert": gguf.MODEL_ARCH.BERT, "t5": gguf.MODEL_ARCH.T5}
    base, kind = name.rsplit(".", 1)
    return gguf.get_tensor_name_map(kinds[architecture], layers).get_name(base) + "." + kind


def llama(config):
    yield "rope.dimension_count", config.hidden_size // config.num_attention_heads
    yield "attention.head_count_kv", config.num_key_value_heads
    yield "attention.layer_norm_rms_epsilon", config.rms_norm_eps
    yield "rope.freq_base", config.rope_theta


def qwen2(config):
    yield from llama(config)


def bert(config):
    yield "attention.layer_norm_epsilon", config.layer_norm_eps
    yield "pooling_type", 1


def t5(config):
    yield "attention.key_length", config.d_kv
    yield "attention.relative_buckets_count", config.relative_attention_num_buckets
    yield "attention.layer_norm_rms_epsilon", config.layer_norm_epsilon
    yield "decoder_start_token_id", config.decoder_start_token_id


def sizes(config):
    yield "embedding_length", config.hidden_size
    yield "block_count", config.num_hidden_layers
    yield "attention.head_count", config.num_attention_heads
    yield "feed_forward_length", getattr(config, "intermediate_size", None) or config.d_ff
    yield "context_length", getattr(config, "max_position_embeddings", 512)


def write(path, architecture, model, kind, more=()):
    """The file, and the state of the model with the numbers that it holds."""
    config, state = model.config, dict(model.state_dict())
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {**dict(sizes(config)), **dict(globals()[architecture](config)), **dict(more)}.items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{architecture}.{key}", value)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    for name, value in list(state.items()):
        if name.endswith(("embed_tokens.weight", "position_ids")) and architecture not in ("llama", "qwen2") or "pooler" in name:
            del state[name]
            continue
        rows = value.numpy()
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            rows = pairs(rows, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
        own = KINDS[kind] if value.ndim == 2 and value.shape[1] % 32 == 0 else gguf.GGMLQuantizationType.F32
        packed = gguf.quantize(numpy.ascontiguousarray(rows), own)
        writer.add_tensor(renamed(architecture, config.num_hidden_layers, name), packed, raw_dtype=own)
        state[name] = torch.from_numpy(gguf.dequantize(gguf.quantize(value.contiguous().numpy(), own), own).copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {name: value.contiguous() for name, value in state.items()}


def make(architecture, gated=True):
    torch.manual_seed(5)
    if architecture == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=3000, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rope_theta=20000.0, architectures=["LlamaForCausalLM"]))
    if architecture == "qwen2":
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
            vocab_size=3000, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, architectures=["Qwen2ForCausalLM"]))
    if architecture == "bert":
        return transformers.BertModel(transformers.BertConfig(
            vocab_size=3000, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=64, architectures=["BertModel"]))
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=3000, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=False, decoder_start_token_id=0, architectures=["T5ForConditionalGeneration"]))


def answers(model):
    """What the model makes of a text: states of every layer, and of decoders logits or what they say."""
    found = list(model.hidden(TEXTS[1]))
    if model.info["decoder_layers"]:
        return [*found, model.tokenizer(model(TEXTS[1], max_length=9)).ids]
    return [*found, model.logits(TEXTS[1])] if model.tasks[0] == "generate" else found


@pytest.mark.parametrize(
    ("architecture", "kind", "gated"),
    [*((name, kind, True) for name in ("llama", "qwen2", "bert", "t5") for kind in KINDS), ("t5", "F32", False)])
def test_same_bits(tmp_path, architecture, kind, gated):
    model = make(architecture, gated).eval()
    folder = tmp_path / "model"
    shutil.copytree(os.path.join(TOKENIZERS, "bert"), folder)
    path = str(tmp_path / "model.gguf")
    state = write(path, architecture, model, kind)
    model.config.save_pretrained(folder)
    safetensors.save_file(state, folder / "model.safetensors")
    wanted = answers(locus.Model(str(folder)))
    for got, want in zip(answers(locus.Model(path, tokenizer=str(folder))), wanted):
        assert numpy.array_equal(got, want)


def test_refused(tmp_path):
    path = str(tmp_path / "model.gguf")
    more = {"rope.dimension_count": 8}
    write(path, "llama", make("llama"), "F32", more)
    with pytest.raises(locus.LocusError, match=r"model.gguf: llama.rope.dimension_count: found 8, expected all of a head, 16"):
        locus.Model(path)
    whole = open(path, "rb").read()
    for cut in (30, 200, len(whole) - 40):
        with open(path, "wb") as file:
            file.write(whole[:cut])
        with pytest.raises(locus.LocusError, match=r"model.gguf: (byte|tensor) .*found"):
            locus.Model(path)
