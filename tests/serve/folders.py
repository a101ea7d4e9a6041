# SPDX-License-Identifier: Apache-2.0
"""Folders of small models with random weights, by the standard library alone."""
import json
import os
import random
import struct

WORDS = "the cat sleeps on a warm stone while rain falls far away and nobody asks why it does".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (shape, values) in tensors.items():
        size = 4 * len(values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape, values in tensors.values():
            file.write(struct.pack("<%df" % len(values), *values))


def bert(folder, labels=0, seed=1, width=16, layers=2, inner=24):
    """A BERT that embeds (mean, length 1), or that has `labels` labels."""
    draw = random.Random(seed)

    def tensor(*shape):
        count = 1
        for extent in shape:
            count *= extent
        return list(shape), [draw.gauss(0, 0.3) for _ in range(count)]

    def linear(name, out, into):
        tensors[name + ".weight"], tensors[name + ".bias"] = tensor(out, into), tensor(out)

    def norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = tensor(width), tensor(width)

    tensors = {}
    stem = "bert." if labels else ""
    tensors[stem + "embeddings.word_embeddings.weight"] = tensor(len(VOCABULARY), width)
    tensors[stem + "embeddings.position_embeddings.weight"] = tensor(64, width)
    tensors[stem + "embeddings.token_type_embeddings.weight"] = tensor(2, width)
    norm(stem + "embeddings.LayerNorm")
    for layer in range(layers):
        at = "%sencoder.layer.%d." % (stem, layer)
        for part in ("query", "key", "value"):
            linear(at + "attention.self." + part, width, width)
        linear(at + "attention.output.dense", width, width)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", inner, width)
        linear(at + "output.dense", width, inner)
        norm(at + "output.LayerNorm")
    linear(stem + "pooler.dense", width, width)
    if labels:
        linear("classifier", labels, width)
    config = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification" if labels else "BertModel"],
        "vocab_size": len(VOCABULARY), "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": 2, "intermediate_size": inner, "hidden_act": "gelu",
        "max_position_embeddings": 64, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    }
    if labels:
        names = ["LABEL_%d" % i for i in range(labels)]
        config["id2label"] = {str(i): name for i, name in enumerate(names)}
        config["label2id"] = {name: i for i, name in enumerate(names)}
    files = {"config.json": config, "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}}
    if not labels:
        files["modules.json"] = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
        files["1_Pooling/config.json"] = {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}
    os.makedirs(os.path.join(folder, "1_Pooling"), exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(content, file)
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(VOCABULARY) + "\n")
    # The new weights appear at once: a server may read the folder at any moment.
    write_tensors(os.path.join(folder, "new"), tensors)
    os.replace(os.path.join(folder, "new"), os.path.join(folder, "model.safetensors"))


def texts(count, seed, most=40):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, most))) for _ in range(count)]
