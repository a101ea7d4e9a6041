# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shapes of MiniLM-L6, BERT-base and DeBERTa-v3-xsmall from a folder: the C runtime (`locus.Model`)
beside transformers, patched transformers, ONNX Runtime and CTranslate2 on the same weights, which are random.

What is timed is ids in, the mean of the last hidden states out. Forward only.
"""

from __future__ import annotations

import copy
import os
import tempfile

import numpy
import torch

import locus
import locus.torch
from locus import _native

from . import onnx
from .contest import Contest, Shape

VOCABULARY = 30522
EMBEDDING = 4  # of _native.model_run


def _native_run(folder: str, ids: torch.Tensor):
    model = locus.Model(folder, threads=torch.get_num_threads())
    rows, tokens = ids.shape
    flat = ids.to(torch.int32).numpy().tobytes()
    offsets = (numpy.arange(rows + 1) * tokens).astype(numpy.int64).tobytes()

    def run():
        found = _native.model_run(model._handle, flat, None, offsets, None, EMBEDDING)[2]
        return torch.from_numpy(numpy.frombuffer(found, numpy.float32).reshape(rows, -1))

    return run


def _mean(model, ids: torch.Tensor, mask: torch.Tensor):
    def run():
        with torch.no_grad():
            return model(input_ids=ids, attention_mask=mask)[0].mean(dim=1)

    return run


def _onnx_run(model, ids: torch.Tensor, mask: torch.Tensor, folder: str):
    import onnxruntime

    path = os.path.join(folder, "model.onnx")
    torch.onnx.export(model, (ids, mask), path, input_names=["ids", "mask"], output_names=["states"], dynamo=False)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    feed = {given.name: {"ids": ids, "mask": mask}[given.name].numpy() for given in session.get_inputs()}
    return lambda: torch.from_numpy(session.run(["states"], feed)[0].mean(axis=1))


def _ctranslate2_run(folder: str, ids: torch.Tensor):
    import ctranslate2

    converted = os.path.join(folder, "ctranslate2")
    ctranslate2.converters.TransformersConverter(folder).convert(converted)
    encoder = ctranslate2.Encoder(converted, device="cpu", intra_threads=torch.get_num_threads())
    lists = ids.tolist()

    def run():
        states = numpy.array(encoder.forward_batch(lists).last_hidden_state)
        return torch.from_numpy(states.mean(axis=1))

    return run


def _contest(name: str, model, ids: torch.Tensor) -> Contest:
    from transformers import logging

    logging.set_verbosity_error()  # the pooler that is not in the file is not used
    model = model.eval()
    mask = torch.ones_like(ids)
    contest = Contest(name, [], _mean(copy.deepcopy(model).double(), ids, mask))
    holder = tempfile.TemporaryDirectory()
    contest.holder = holder  # until the contest is over
    model.save_pretrained(holder.name)

    def offer(contestant, make):
        try:
            contest.runs[contestant] = make()
        except Exception as problem:  # a peer that cannot run says why
            contest.absent[contestant] = " ".join(str(problem).split())[:120] or type(problem).__name__
        contest.forward_only.add(contestant)

    def loaded(attention):
        return type(model).from_pretrained(holder.name, attn_implementation=attention).eval()

    def patched():
        swapped = copy.deepcopy(model)
        locus.torch.patch(swapped)
        return _mean(swapped, ids, mask)

    offer("locus", lambda: _native_run(holder.name, ids))
    offer("transformers, eager", lambda: _mean(loaded("eager"), ids, mask))
    offer("transformers, sdpa", lambda: _mean(loaded("sdpa"), ids, mask))
    offer("transformers, patched", patched)
    if onnx.version():
        offer("onnxruntime", lambda: _onnx_run(loaded("eager"), ids, mask, holder.name))
    else:
        contest.absent["onnxruntime"] = "not installed"
    offer("ctranslate2", lambda: _ctranslate2_run(holder.name, ids))
    return contest


def _ids(shape: Shape) -> torch.Tensor:
    return torch.randint(1000, VOCABULARY, (shape.batch, shape.tokens))


def _bert(name: str, width: int, layers: int, shape: Shape) -> Contest:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=4 * width,
        max_position_embeddings=max(512, shape.tokens),
    )
    return _contest(name, BertModel(config, add_pooling_layer=False), _ids(shape))


def minilm(shape: Shape, options) -> Contest:
    return _bert("MiniLM-L6", 384, 6, shape)


def bert_base(shape: Shape, options) -> Contest:
    return _bert("BERT-base", 768, 12, shape)


def deberta(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=VOCABULARY,
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        intermediate_size=1536,
        max_position_embeddings=512,
        position_buckets=256,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
    )
    return _contest("DeBERTa-v3-xsmall", DebertaV2Model(config), _ids(shape))
