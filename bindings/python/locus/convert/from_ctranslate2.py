# SPDX-License-Identifier: Apache-2.0
"""CTranslate2 (model.bin, versions 2 to 6): encoder-decoders with sinusoidal positions become Marian.

int8 rows are q / scale of the row. self_attention/linear_0 is q, k, v in one; attention/linear_1 is k, v in one. A
model that starts from a zero embedding gets a token more, <pad>, with that row: transformers' decoder start."""

import os
import struct
import tempfile
import zipfile

import numpy

from .folder import ConvertError, Model, read_json

TYPES = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
OLD_TYPES = {1: "i1", 2: "<i2", 4: "<f4"}  # before version 4: by their size
UNKNOWN = ("decoder/alibi", "decoder/alibi_use_positive_positions", "decoder/scale_alibi", "encoder/embeddings_merge")
ACTIVATIONS = {0: "relu", 1: "gelu_new", 2: "swish", 3: "gelu"}


def _weights(source):
    return os.path.join(source, "model.bin") if os.path.isdir(source) else source


def recognises(source):
    if source.endswith(".argosmodel"):
        return True
    path = _weights(source)
    if not os.path.isfile(path):
        path = os.path.join(source, "model", "model.bin")
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(64)
    return len(head) == 64 and 2 <= struct.unpack_from("<I", head)[0] <= 6 and b"Transformer" in head


class _File:
    def __init__(self, path):
        self.path, self.at = path, 0
        with open(path, "rb") as file:
            self.data = file.read()

    def take(self, size):
        if size > len(self.data) - self.at:
            raise ConvertError(f"{self.path}: found the end at byte {len(self.data)}, expected {size} bytes more")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self):
        return self.take(self.number("<H"))[:-1].decode("utf-8", "replace")


def _variables(path):
    """(spec, name: array, alias: name)."""
    file, found, aliases = _File(path), {}, {}
    version = file.number("<I")
    spec = file.text()
    file.number("<I")
    for _ in range(file.number("<I")):
        name = file.text()
        shape = [file.number("<I") for _ in range(file.number("B"))]
        kind, count = file.number("B"), file.number("<I")
        types = TYPES if version >= 4 else OLD_TYPES
        if kind not in types:
            raise ConvertError(f"{path}: {name}: found type {kind}, expected one of {sorted(types)}")
        data = file.take(count if version >= 4 else count * kind)
        array = numpy.frombuffer(data, types[kind])
        places = 1
        for extent in shape:
            places *= extent
        if array.size != places:
            raise ConvertError(f"{path}: {name}: found {array.size} numbers for {places} places")
        found[name] = array.reshape(shape)
    if version >= 3:
        for _ in range(file.number("<I")):
            alias, name = file.text(), file.text()
            if name not in found:
                raise ConvertError(f"{path}: alias {alias}: found no {name}, expected it before")
            found[alias], aliases[alias] = found[name], name
    return spec, found, aliases


class _Source:
    """Tensors by name; what was never asked for is refused at the end."""

    def __init__(self, path):
        self.path = path
        self.spec, self.found, self.aliases = _variables(path)
        self.left = set(self.found)

    def has(self, name):
        return name in self.found

    def raw(self, name):
        if name not in self.found:
            raise ConvertError(f"{self.path}: tensor {name} is missing, expected that of an encoder-decoder")
        self.left.discard(name)
        return self.found[name]

    def option(self, name, preset):
        return int(self.raw(name)) if name in self.found else preset

    def floats(self, name):
        value = self.raw(name)
        if value.dtype.kind == "f":
            return value.astype("f4")
        scale = self.raw(self.aliases.get(name, name) + "_scale").astype("f8")
        return (value.astype("f8") / (scale[:, None] if scale.ndim else scale)).astype("f4")

    def check_all_used(self):
        left = sorted(name for name in self.left if not name.endswith("_scale"))
        if left:
            raise ConvertError(f"{self.path}: found {left[0]}, expected nothing beyond a Marian encoder-decoder")


def _copy_norm(source, tensors, name, to):
    tensors[to + ".weight"] = source.floats(name + "/gamma")
    tensors[to + ".bias"] = source.floats(name + "/beta")


def _copy_maps(source, tensors, name, targets):
    """One linear map, or several whose outputs lie one behind the other."""
    weight, bias = source.floats(name + "/weight"), source.floats(name + "/bias")
    rows = weight.shape[0] // len(targets)
    for i, to in enumerate(targets):
        tensors[to + ".weight"] = weight[i * rows : (i + 1) * rows]
        tensors[to + ".bias"] = bias[i * rows : (i + 1) * rows]


def _copy_layer(source, tensors, name, to, cross):
    own = to + "self_attn."
    _copy_norm(source, tensors, name + "self_attention/layer_norm", to + "self_attn_layer_norm")
    _copy_maps(
        source, tensors, name + "self_attention/linear_0", [own + part for part in ("q_proj", "k_proj", "v_proj")]
    )
    _copy_maps(source, tensors, name + "self_attention/linear_1", [own + "out_proj"])
    if cross:
        other = to + "encoder_attn."
        _copy_norm(source, tensors, name + "attention/layer_norm", to + "encoder_attn_layer_norm")
        _copy_maps(source, tensors, name + "attention/linear_0", [other + "q_proj"])
        _copy_maps(source, tensors, name + "attention/linear_1", [other + "k_proj", other + "v_proj"])
        _copy_maps(source, tensors, name + "attention/linear_2", [other + "out_proj"])
    _copy_norm(source, tensors, name + "ffn/layer_norm", to + "final_layer_norm")
    _copy_maps(source, tensors, name + "ffn/linear_0", [to + "fc1"])
    _copy_maps(source, tensors, name + "ffn/linear_1", [to + "fc2"])


def _sinusoid(rows, width):
    """What CTranslate2 makes where the file has no table: sines, then cosines, of positions that count from 1."""
    step = numpy.log(10000.0) / (width // 2 - 1)
    angles = numpy.arange(1, rows + 1)[:, None] * numpy.exp(-step * numpy.arange(width // 2))
    return numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], axis=1).astype("f4")


def _copy_stack(source, tensors, side):
    """Everything of the encoder or the decoder but its word table; returns the number of layers."""
    to, layers = f"model.{side}.", 0
    while source.has(f"{side}/layer_{layers}/self_attention/linear_0/weight"):
        _copy_layer(source, tensors, f"{side}/layer_{layers}/", f"{to}layers.{layers}.", side == "decoder")
        layers += 1
    if source.has(f"{side}/layer_norm/gamma"):
        _copy_norm(source, tensors, f"{side}/layer_norm", to + "layer_norm")
    name = f"{side}/position_encodings/encodings"
    width = tensors[to + "layers.0.final_layer_norm.weight"].shape[0]
    tensors[to + "embed_positions.weight"] = source.floats(name) if source.has(name) else _sinusoid(512, width)
    return layers


def _one_row_more(table):
    return numpy.concatenate([table, numpy.zeros((1, *table.shape[1:]), table.dtype)])


def _convert(path):
    source, tensors = _Source(path), {}
    if not source.spec.startswith("Transformer") or "Decoder" in source.spec or "Encoder" in source.spec:
        raise ConvertError(f"{path}: found {source.spec}, expected an encoder-decoder (TransformerSpec)")
    layers = {side: _copy_stack(source, tensors, side) for side in ("encoder", "decoder")}
    table = "encoder/embeddings_0" if source.has("encoder/embeddings_0/weight") else "encoder/embeddings"
    words = {"encoder": source.floats(table + "/weight"), "decoder": source.floats("decoder/embeddings/weight")}
    head, bias = source.floats("decoder/projection/weight"), source.floats("decoder/projection/bias")
    zero_start = source.option("decoder/start_from_zero_embedding", 0)
    if zero_start:
        words = {side: _one_row_more(word) for side, word in words.items()}
        head, bias = _one_row_more(head), _one_row_more(bias)
    shared = numpy.array_equal(words["encoder"], words["decoder"])
    tied = numpy.array_equal(head, words["decoder"])
    if shared:
        tensors["model.shared.weight"] = words["encoder"]
    else:
        for side in words:
            tensors[f"model.{side}.embed_tokens.weight"] = words[side]
    if not tied:
        tensors["lm_head.weight"] = head
    tensors["final_logits_bias"] = bias[None, :]
    return _config(source, tensors, layers, words, shared, tied, zero_start), tensors


def _config(source, tensors, layers, words, shared, tied, zero_start):
    heads = dict.fromkeys(layers, source.option("num_heads", 8))
    first = {side: source.option(side + "/pre_norm", 1) for side in layers}
    scale = {side: source.option(side + "/scale_embeddings", 1) for side in layers}
    activation = {side: source.option(side + "/activation", 0) for side in layers}
    end = {side: f"model.{side}.layer_norm.weight" in tensors for side in layers}
    source.left -= {"decoder/alignment_heads", "decoder/alignment_layer"}
    for name in UNKNOWN:
        if source.option(name, 0) != 0:
            raise ConvertError(f"{source.path}: {name}: found {source.option(name, 0)}, expected 0")
    for side in layers:
        heads[side] = source.option(side + "/num_heads", heads[side])
        if activation[side] not in ACTIVATIONS:
            expected = f"expected one of {sorted(ACTIVATIONS)}"
            raise ConvertError(f"{source.path}: {side}/activation: found {activation[side]}, {expected}")
    source.check_all_used()
    kinds = {
        side: {
            "activation_function": ACTIVATIONS[activation[side]],
            "scale_embedding": bool(scale[side]),
            "normalize_before": bool(first[side]),
            "add_final_layer_norm": end[side],
        }
        for side in layers
    }
    # keys of ours: transformers' Marian has decoders of the encoder's kind only
    other = {"decoder_" + key: kind for key, kind in kinds["decoder"].items() if kind != kinds["encoder"][key]}
    width = words["encoder"].shape[1]
    inner = [tensors[f"model.{side}.layers.0.fc1.weight"].shape[0] for side in ("encoder", "decoder")]
    last = words["decoder"].shape[0] - 1
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "d_model": width,
        "encoder_layers": layers["encoder"],
        "decoder_layers": layers["decoder"],
        "encoder_attention_heads": heads["encoder"],
        "decoder_attention_heads": heads["decoder"],
        "encoder_ffn_dim": inner[0],
        "decoder_ffn_dim": inner[1],
        **kinds["encoder"],
        **other,
        "vocab_size": words["encoder"].shape[0],
        "decoder_vocab_size": words["decoder"].shape[0],
        "max_position_embeddings": min(tensors[f"model.{side}.embed_positions.weight"].shape[0] for side in layers),
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": tied,
        "is_encoder_decoder": True,
        "pad_token_id": last if zero_start else 0,
        "decoder_start_token_id": last if zero_start else 1,
    }


def _vocabulary(folder, name):
    """The tokens of shared_vocabulary.json or .txt, by id; None: there is no such file."""
    path = os.path.join(folder, name + ".json")
    if os.path.exists(path):
        return read_json(path)
    path = os.path.join(folder, name + ".txt")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def _finish(folder, config, tensors):
    """Ends, generation and tokenizer, by the vocabulary."""
    shared = _vocabulary(folder, "shared_vocabulary")
    target = shared or _vocabulary(folder, "target_vocabulary")
    end = target.index("</s>") if target and "</s>" in target else 0
    config["eos_token_id"] = config["forced_eos_token_id"] = end
    config["bos_token_id"] = end
    model = Model(config, tensors)
    start = config["decoder_start_token_id"]
    model.texts["generation_config.json"] = {
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "pad_token_id": config["pad_token_id"],
        "max_length": config["max_position_embeddings"],
        "num_beams": 4,
        **({"bad_words_ids": [[start]]} if start == config["pad_token_id"] else {}),
    }
    if shared is None:
        for name in ("source_vocabulary.txt", "target_vocabulary.txt"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                model.copies[name] = path
        return model
    tokens = {token: i for i, token in enumerate(shared)}
    if len(shared) < config["vocab_size"]:
        tokens["<pad>"] = config["vocab_size"] - 1
    pieces = {
        name: os.path.join(place, name) for place in (folder, os.path.dirname(folder)) for name in os.listdir(place)
    }
    both = [pieces.get(name) for name in ("source.spm", "target.spm")]
    one = pieces.get("sentencepiece.model")
    if one or both[0]:
        model.copies["source.spm"] = both[0] or one
        model.copies["target.spm"] = both[1] or both[0] or one
        model.texts["vocab.json"] = tokens
        model.texts["tokenizer_config.json"] = {"tokenizer_class": "MarianTokenizer"}
    return model


def read(source):
    if source.endswith(".argosmodel"):
        return _read_archive(source)
    path = _weights(source)
    if not os.path.isfile(path):
        path = os.path.join(source, "model", "model.bin")
    return _finish(os.path.dirname(path) or ".", *_convert(path))


def _read_archive(source):
    """Argos Translate's zip: one folder with model/model.bin and sentencepiece.model in it."""
    room = tempfile.TemporaryDirectory(prefix="locus-convert-")
    try:
        with zipfile.ZipFile(source) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and ".." not in name]
            if sum(archive.getinfo(name).file_size for name in names) > 2**32:
                raise ConvertError(f"{source}: found more than 4 GiB, expected a translation model")
            archive.extractall(room.name, names)
    except (zipfile.BadZipFile, OSError) as problem:
        raise ConvertError(f"{source}: {str(problem).splitlines()[0]}") from None
    for place, _, files in os.walk(room.name):
        if "model.bin" in files:
            model = read(place)
            model.room = room  # its files are copied later
            return model
    raise ConvertError(f"{source}: found no model.bin, expected one inside")
