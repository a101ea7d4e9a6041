# SPDX-License-Identifier: Apache-2.0
"""torch's own files (.bin, .pt, .pth), read with weights_only: no code of the file is run."""

import os

from .folder import ConvertError, Model, companions, read_json

NAMES = ("pytorch_model.bin", "model.pt", "model.bin", "model.pth")
INDEX = "pytorch_model.bin.index.json"
WRAPPERS = ("state_dict", "model_state_dict", "model")


def _starts_like_torch(path):
    with open(path, "rb") as file:
        head = file.read(2)
    return head == b"PK" or head[:1] == b"\x80"


def _files(source):
    if not os.path.isdir(source):
        return [source]
    index = os.path.join(source, INDEX)
    if os.path.exists(index):
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        for name in names:
            if os.path.basename(name) != name or not os.path.isfile(os.path.join(source, name)):
                raise ConvertError(f"{index}: found {name!r}, expected the name of a file beside it")
        return [os.path.join(source, name) for name in names]
    return [path for path in (os.path.join(source, name) for name in NAMES) if os.path.isfile(path)][:1]


def recognises(source):
    files = _files(source)
    return bool(files) and _starts_like_torch(files[0])


def _load(path):
    try:
        import torch
    except ImportError:
        raise ConvertError(f"{path}: needs torch, which is not installed") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # torch raises whatever its readers do; its advice is to run the file's code
        kind = type(problem).__name__
        raise ConvertError(f"{path}: torch refuses it with weights_only ({kind}), expected tensors only") from None
    for name in WRAPPERS:
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    if not isinstance(found, dict) or not any(isinstance(value, torch.Tensor) for value in found.values()):
        raise ConvertError(f"{path}: found {type(found).__name__}, expected a dictionary of tensors")
    return found


def _floats(path, found):
    """Numpy arrays of all tensors of floats; of those that share memory the first, as tied weights do."""
    import torch

    tensors, seen = {}, set()
    for name, value in found.items():
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue  # position_ids and the like
        place = (value.data_ptr(), tuple(value.shape), value.stride())
        if value.numel() > 1 and place in seen:
            continue
        seen.add(place)
        stored = value.untyped_storage().nbytes() // value.element_size()
        if value.numel() > stored:  # a few numbers of the file expanded to gigabytes
            raise ConvertError(f"{path}: tensor {name}: found {value.numel()} numbers, expected no more than the {stored} stored")
        known = value.dtype in (torch.float16, torch.float32, torch.float64)
        tensors[name] = (value if known else value.float()).detach().contiguous().numpy()
    return tensors


def _by_tensors(config, tensors):
    """"BertForMaskedLM" or the like, of a file from before configurations said so; None: it is another's."""
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in tensors else ""
    layout = ("embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight")
    if any(prefix + name not in tensors for name in layout) or config.get("type_vocab_size") != 2:
        return None
    if "cls.predictions.transform.dense.weight" not in tensors:
        return "BertModel"
    return "BertForPreTraining" if "cls.seq_relationship.weight" in tensors else "BertForMaskedLM"


def _family(config, tensors, path):
    """Files of old have no model_type: "BertForMaskedLM" says it, or the names of the tensors."""
    if "model_type" in config:
        return config
    if not config.get("architectures"):
        config = {**config, "architectures": [_by_tensors(config, tensors)]}
    word = str(config["architectures"][0])
    for name in ("XLMRoberta", "Roberta", "DistilBert", "Albert", "Electra", "RoFormer", "MPNet", "Bert", "GPT2", "T5"):
        if word.startswith(name):
            return {**config, "model_type": {"XLMRoberta": "xlm-roberta"}.get(name, name.lower())}
    raise ConvertError(f"{path}: found no model_type, expected one")


def read(source, config=None):
    """`config`: in place of config.json."""
    files = _files(source)
    tensors = {}
    for path in files:
        tensors.update(_floats(path, _load(path)))
    folder = os.path.dirname(files[0]) or "."
    path = os.path.join(folder, "config.json")
    if config is None and not os.path.exists(path):
        raise ConvertError(f"{files[0]}: found no config.json beside it, expected one (--config FILE)")
    return Model(_family(config or read_json(path), tensors, path), tensors, companions(folder))
