# SPDX-License-Identifier: Apache-2.0
"""ONNX graphs that were exported from transformers, also those that onnxruntime quantised.

The name of a product is the path of its module, "/encoder/layer.0/output/dense/MatMul_quant", and its weight is stored
transposed; everything else keeps the name that it had. A quantised tensor X is (X_quantized - X_zero_point) X_scale,
unless X itself is there, too."""

import os
import re

import numpy

from .folder import ConvertError, Model, companions, read_json
from .onnx_file import read_graph

PRODUCTS = ("MatMul", "MatMulInteger", "Gemm", "FusedMatMul", "DynamicQuantizeMatMul")
PARTS = ("_quantized", "_scale", "_zero_point")


def recognises(source):
    if os.path.isdir(source):
        return any(name.endswith(".onnx") for name in os.listdir(source))
    return source.endswith(".onnx")


def _files(source):
    """The files of one model: an encoder and a decoder, or one."""
    if not os.path.isdir(source):
        return [source]
    names = sorted(name for name in os.listdir(source) if name.endswith(".onnx"))
    both = [
        name for name in ("encoder.onnx", "encoder_model.onnx", "decoder.onnx", "decoder_model.onnx") if name in names
    ]
    if len(both) != 2 and len(names) != 1:
        raise ConvertError(f"{source}: found {', '.join(names)}, expected one ONNX file, or an encoder and a decoder")
    return [os.path.join(source, name) for name in (both if len(both) == 2 else names)]


def _value(graph, name):
    """The tensor `name` (without _quantized) as floats."""
    if name in graph.tensors:
        value = graph.tensors[name]
        return value if value.dtype.kind == "f" else None
    quantized, scale, zero = (graph.tensors.get(name + part) for part in PARTS)
    if quantized is None or scale is None:
        return None
    zero = 0 if zero is None else zero.astype("f8")
    return ((quantized.astype("f8") - zero) * scale.astype("f8")).astype("f4")


def _plain(name):
    return name[: -len("_quantized")] if name.endswith("_quantized") else name


def _module(node):
    """ "/encoder/layer.0/output/dense/MatMul_quant": encoder.layer.0.output.dense. Wrappers of exporters fall away."""
    path = node.name.strip("/").split("/")[:-1]
    return re.sub(r"^(m|model_core)\.", "", ".".join(path))


def _tensors(graph):
    found, products = {}, {}
    for node in graph.nodes:
        if node.kind in PRODUCTS and len(node.inputs) > 1:
            products.setdefault(_plain(node.inputs[1]), node)
    for name in sorted({_plain(name) for name in graph.tensors}):
        value = _value(graph, name)
        own_name = "::" not in name and not name.startswith("/")
        if value is None or (own_name and name.endswith(PARTS)):
            continue
        node = products.get(name)
        if node is not None and value.ndim == 2:
            target = name if own_name else _module(node) + ".weight"
            if re.search(r"_proj_\d+\.weight$", target):
                continue  # the second use of a shared weight
            own_gemm = node.kind == "Gemm" and own_name  # keeps [outputs, inputs], until it is quantised
            found[target] = value if own_gemm else numpy.ascontiguousarray(value.T)
        elif own_name and value.ndim > 0:
            found[name] = value
    return found


def _rename(name):
    name = re.sub(r"^m\.", "", name)
    return re.sub(r"^enc\.", "encoder.", name)


def _count(tensors, pattern):
    return 1 + max((int(found.group(1)) for name in tensors if (found := re.search(pattern, name))), default=-1)


def _t5_config(tensors, path):
    q = tensors.get("encoder.block.0.layer.0.SelfAttention.q.weight")
    bias = tensors.get("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
    word = tensors.get("shared.weight")
    gated = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight" in tensors
    inner = tensors.get("encoder.block.0.layer.1.DenseReluDense.%s.weight" % ("wi_0" if gated else "wi"))
    if q is None or bias is None or word is None or inner is None:
        raise ConvertError(f"{path}: found no config.json and not the tensors of T5, expected a config.json beside it")
    config = {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": q.shape[1],
        "d_kv": q.shape[0] // bias.shape[1],
        "d_ff": inner.shape[0],
        "num_layers": _count(tensors, r"^encoder\.block\.(\d+)\."),
        "num_decoder_layers": _count(tensors, r"^decoder\.block\.(\d+)\."),
        "num_heads": bias.shape[1],
        "relative_attention_num_buckets": bias.shape[0],
        "relative_attention_max_distance": 128,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "layer_norm_epsilon": 1e-6,
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "vocab_size": word.shape[0],
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
        "is_encoder_decoder": True,
    }
    if config["num_decoder_layers"] == 0:
        config["architectures"] = ["T5EncoderModel"]
    return config


def _deberta_config(tensors):
    """Of DeBERTa-v3, which all exports without a config.json that we know of are."""
    word = tensors["deberta.embeddings.word_embeddings.weight"]
    classes = tensors.get("classifier.weight")
    config = {
        "model_type": "deberta-v2",
        "architectures": ["DebertaV2Model" if classes is None else "DebertaV2ForSequenceClassification"],
        "hidden_size": word.shape[1],
        "num_hidden_layers": _count(tensors, r"encoder\.layer\.(\d+)\."),
        "num_attention_heads": word.shape[1] // 64,
        "intermediate_size": tensors["deberta.encoder.layer.0.intermediate.dense.weight"].shape[0],
        "hidden_act": "gelu",
        "vocab_size": word.shape[0],
        "max_position_embeddings": 512,
        "layer_norm_eps": 1e-7,
        "relative_attention": True,
        "position_buckets": tensors["deberta.encoder.rel_embeddings.weight"].shape[0] // 2,
        "max_relative_positions": -1,
        "share_att_key": True,
        "pos_att_type": "p2c|c2p",
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    if classes is not None:
        config["id2label"] = {str(i): f"LABEL_{i}" for i in range(classes.shape[0])}
    return config


def read(source):
    files = _files(source)
    tensors = {}
    for path in files:
        for name, value in _tensors(read_graph(path)).items():
            tensors[_rename(name)] = value
    folder = os.path.dirname(files[0]) or "."
    shared = tensors.pop("encoder.embed_tokens.weight", None)
    if shared is not None:
        tensors.setdefault("shared.weight", shared)
    beside = os.path.join(folder, "config.json")
    if os.path.exists(beside):
        config = read_json(beside)
    elif "deberta.encoder.rel_embeddings.weight" in tensors:
        config = _deberta_config(tensors)
    else:
        config = _t5_config(tensors, files[0])
    return Model(config, tensors, companions(folder))
