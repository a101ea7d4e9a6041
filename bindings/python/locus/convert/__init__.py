# SPDX-License-Identifier: Apache-2.0
"""Other formats into the folder that `locus run` reads: config.json, model.safetensors, tokenizer files.

    python -m locus.convert bert-base/ -o bert               torch's pytorch_model.bin, with weights_only
    python -m locus.convert model_quantized.onnx -o deberta  exported from transformers, quantised or not
    python -m locus.convert translate-zh_en.argosmodel -o zh-en
    python -m locus.convert stories260K.bin -o stories       llama2.c
    python -m locus.convert SmolLM2-135M.Q8_0.gguf -o smollm2
    python -m locus.convert en_US-joe-medium.onnx -o joe     the text encoder of a Piper voice

>>> locus.convert.convert("stories260K.bin", "stories")
"""

import os

from . import from_ctranslate2, from_gguf, from_llama2c, from_onnx, from_piper, from_torch
from .folder import ConvertError, companions, read_json, write_folder

FORMATS = {
    "CTranslate2": from_ctranslate2,
    "GGUF": from_gguf,
    "llama2.c": from_llama2c,
    "Piper": from_piper,
    "ONNX": from_onnx,
    "torch": from_torch,
}

__all__ = ["ConvertError", "convert"]


def convert(source, folder, *, config=None, tokenizer=None):
    """Write the model of `source` (a file or a folder) to `folder`.

    `config`: a config.json to take in place of the one beside the source. `tokenizer`: a file, or a folder, with the
    tokenizer. Returns the format's name, the number of tensors and of their numbers. Raises ConvertError, a line.
    """
    source, folder = os.fspath(source), os.fspath(folder)
    if not os.path.exists(source):
        raise ConvertError(f"{source}: no such file or folder")
    try:
        return _convert(source, folder, config, tokenizer)
    except OSError as problem:
        raise ConvertError(f"{problem.filename or source}: {problem.strerror or problem}") from None


def _convert(source, folder, config, tokenizer):
    name = next((name for name, reader in FORMATS.items() if reader.recognises(source)), None)
    if name is None:
        raise ConvertError(f"{source}: found no known format, expected one of {', '.join(FORMATS)}")
    if config is not None and name == "torch":
        model = from_torch.read(source, read_json(config))
    else:
        model = FORMATS[name].read(source)
        if config is not None:
            model.config = read_json(config)
    if tokenizer is not None:
        tokenizer = os.fspath(tokenizer)
        model.copies.update(
            companions(tokenizer) if os.path.isdir(tokenizer) else {os.path.basename(tokenizer): tokenizer}
        )
    write_folder(folder, model)
    return name, len(model.tensors), sum(value.size for value in model.tensors.values())
