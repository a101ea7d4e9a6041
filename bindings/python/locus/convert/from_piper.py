# SPDX-License-Identifier: Apache-2.0
"""The text encoder of a Piper voice (VITS, ONNX): relative keys and values within a window."""

import json
import os

from .folder import ConvertError, Model
from .onnx_file import read_graph

LAYER = "enc_p.encoder."
MAPS = {"conv_q": "q_proj", "conv_k": "k_proj", "conv_v": "v_proj", "conv_o": "out_proj"}


def recognises(source):
    """An .onnx file with its settings, which have a map of phonemes, beside it."""
    if not source.endswith(".onnx") or not os.path.isfile(source + ".json"):
        return False
    try:
        with open(source + ".json", encoding="utf-8") as file:
            return "phoneme_id_map" in json.load(file)
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False


def read(source):
    graph = read_graph(source)

    def take(name):
        if name not in graph.tensors:
            raise ConvertError(f"{source}: tensor {name} is missing, expected the text encoder of a Piper voice")
        return graph.tensors[name]

    layers = 0
    while f"{LAYER}attn_layers.{layers}.conv_q.weight" in graph.tensors:
        layers += 1
    if layers == 0:
        take(LAYER + "attn_layers.0.conv_q.weight")
    tensors = {
        "text_encoder.embed_tokens.weight": take("enc_p.emb.weight" if "enc_p.emb.weight" in graph.tensors else "sid")
    }
    for part in ("weight", "bias"):
        tensors["text_encoder.project." + part] = take("enc_p.proj." + part)
    for layer in range(layers):
        to = f"text_encoder.encoder.layers.{layer}."
        attention = f"{LAYER}attn_layers.{layer}."
        for theirs, ours in MAPS.items():
            tensors[f"{to}attention.{ours}.weight"] = take(f"{attention}{theirs}.weight")[:, :, 0]
            tensors[f"{to}attention.{ours}.bias"] = take(f"{attention}{theirs}.bias")
        for name in ("emb_rel_k", "emb_rel_v"):
            tensors[f"{to}attention.{name}"] = take(attention + name)
        for norm, ours in ((1, "layer_norm"), (2, "final_layer_norm")):
            tensors[f"{to}{ours}.weight"] = take(f"{LAYER}norm_layers_{norm}.{layer}.gamma")
            tensors[f"{to}{ours}.bias"] = take(f"{LAYER}norm_layers_{norm}.{layer}.beta")
        for conv in ("conv_1", "conv_2"):
            for part in ("weight", "bias"):
                tensors[f"{to}feed_forward.{conv}.{part}"] = take(f"{LAYER}ffn_layers.{layer}.{conv}.{part}")
    return Model(_config(tensors, layers), tensors)


def _config(tensors, layers):
    layer = "text_encoder.encoder.layers.0."
    window = tensors[layer + "attention.emb_rel_k"]
    inner = tensors[layer + "feed_forward.conv_1.weight"]
    vocabulary, width = tensors["text_encoder.embed_tokens.weight"].shape
    return {
        "model_type": "vits",
        "architectures": ["VitsModel"],
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // window.shape[2],
        "window_size": (window.shape[1] - 1) // 2,
        "use_bias": True,
        "ffn_dim": inner.shape[0],
        "ffn_kernel_size": inner.shape[2],
        "flow_size": tensors["text_encoder.project.bias"].shape[0] // 2,
        "hidden_act": "relu",
        "layer_norm_eps": 1e-5,
    }
