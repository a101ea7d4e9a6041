# SPDX-License-Identifier: Apache-2.0
"""model.py FOLDER [KEY=VALUE ...]: a BERT with weights that are made up, for the 400 tokens of the
bert tokenizer of tests/data; with model_type=t5 an encoder and a decoder for the 430 of t5. Keys
replace those of config.json; values are JSON, or text."""

import json
import os
import struct
import sys

WIDTH, LAYERS, INNER = 8, 2, 12


def numbers(count, seed):
    """Numbers in [-0.5, 0.5) that every machine makes alike."""
    state, out = seed * 2654435761 + 12345, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 40) / 2**24 - 0.5)
    return out


def shapes(config):
    sizes = {"word": config["vocab_size"], "position": config["max_position_embeddings"], "token_type": 2}
    for name, rows in sizes.items():
        yield "embeddings.%s_embeddings.weight" % name, (rows, WIDTH)
    yield "embeddings.LayerNorm.weight", (WIDTH,)
    yield "embeddings.LayerNorm.bias", (WIDTH,)
    for layer in range(LAYERS):
        at = "encoder.layer.%d." % layer
        maps = {"attention.self." + name: (WIDTH, WIDTH) for name in ("query", "key", "value")}
        maps["attention.output.dense"] = (WIDTH, WIDTH)
        maps["intermediate.dense"], maps["output.dense"] = (INNER, WIDTH), (WIDTH, INNER)
        for name, shape in maps.items():
            yield at + name + ".weight", shape
            yield at + name + ".bias", shape[:1]
        if config.get("position_embedding_type", "absolute") != "absolute":
            rows = 2 * config["max_position_embeddings"] - 1
            yield at + "attention.self.distance_embedding.weight", (rows, WIDTH // config["num_attention_heads"])
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            yield at + name + ".weight", (WIDTH,)
            yield at + name + ".bias", (WIDTH,)
    architecture = config["architectures"][0]
    if "MaskedLM" in architecture:
        for name, shape in (("transform.dense.weight", (WIDTH, WIDTH)), ("transform.dense.bias", (WIDTH,))):
            yield "cls.predictions." + name, shape
        yield "cls.predictions.transform.LayerNorm.weight", (WIDTH,)
        yield "cls.predictions.transform.LayerNorm.bias", (WIDTH,)
        yield "cls.predictions.bias", (config["vocab_size"],)
    if "Classification" in architecture:
        if "Sequence" in architecture:
            yield "pooler.dense.weight", (WIDTH, WIDTH)
            yield "pooler.dense.bias", (WIDTH,)
        yield "classifier.weight", (len(config["id2label"]), WIDTH)
        yield "classifier.bias", (len(config["id2label"]),)


def shapes_t5(config):
    yield "shared.weight", (config["vocab_size"], WIDTH)
    for stack, parts in (("encoder", ("SelfAttention",)), ("decoder", ("SelfAttention", "EncDecAttention"))):
        for layer in range(LAYERS):
            at = "%s.block.%d.layer." % (stack, layer)
            for number, part in enumerate(parts):
                for name in "qkvo":
                    yield "%s%d.%s.%s.weight" % (at, number, part, name), (WIDTH, WIDTH)
                yield "%s%d.layer_norm.weight" % (at, number), (WIDTH,)
            if layer == 0:
                yield at + "0.SelfAttention.relative_attention_bias.weight", (8, config["num_heads"])
            at += "%d." % len(parts)
            yield at + "DenseReluDense.wi.weight", (INNER, WIDTH)
            yield at + "DenseReluDense.wo.weight", (WIDTH, INNER)
            yield at + "layer_norm.weight", (WIDTH,)
        yield stack + ".final_layer_norm.weight", (WIDTH,)


T5 = {
    "model_type": "t5",
    "architectures": ["T5ForConditionalGeneration"],
    "d_model": WIDTH,
    "d_kv": WIDTH // 2,
    "d_ff": INNER,
    "num_layers": LAYERS,
    "num_heads": 2,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "vocab_size": 430,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
}


def main(folder, *settings):
    config = dict(T5) if "model_type=t5" in settings else {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": INNER,
        "vocab_size": 400,
        "max_position_embeddings": 24,
    }
    for setting in settings:
        key, value = setting.split("=", 1)
        try:
            config[key] = json.loads(value)
        except ValueError:
            config[key] = value
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    header, data = {}, b""
    for seed, (name, shape) in enumerate((shapes_t5 if config["model_type"] == "t5" else shapes)(config)):
        count = 1
        for extent in shape:
            count *= extent
        whole = struct.pack("<%df" % count, *numbers(count, seed))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(whole)]}
        data += whole
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main(*sys.argv[1:])
