# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shapes of published models from a folder: the C runtime (`locus.Model`) beside transformers, patched
transformers, ONNX Runtime and CTranslate2 on the same weights, which are random.

What is timed is ids in, the mean of the last hidden states out. Forward only. A contest has texts of one length, or the lines
of a file (``--text``), which peers may sort and batch as they like: several batch sizes are tried, the fastest is kept.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
import time

import numpy
import torch

import locus
import locus.torch
from locus import _native
from locus._model import _Texts

from . import onnx, shapes
from .contest import Contest, Shape
from .shapes import MOST_TOKENS

VOCABULARY = 30522
EMBEDDING = 4  # of _native.model_run
BATCHES = (1, 8, 32)  # sizes of sorted batches that a peer may choose from
SENTENCES = 256


# ---- texts ----


def _padded(texts: list) -> tuple:
    """ids and mask of texts that share a batch."""
    longest = max(map(len, texts))
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    mask = torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return ids, mask


def _means(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.to(states.dtype)[:, :, None]
    return (states * weights).sum(1) / weights.sum(1)


def _batched(texts: list, size: int, run):
    """`run` takes a list of texts and gives a vector for each: over sorted batches, back in the order of the texts."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    parts = [order[i : i + size] for i in range(0, len(order), size)]
    batches = [[texts[i] for i in part] for part in parts]
    places = torch.argsort(torch.tensor(order))

    def call():
        return torch.cat([run(batch) for batch in batches])[places]

    return call


def _fastest(texts: list, run):
    """The best of several batch sizes."""
    if len(texts) == 1:
        return lambda: run(texts)
    found = {}
    for size in BATCHES:
        call = _batched(texts, size, run)
        call()
        begin = time.process_time()
        call()
        found[time.process_time() - begin] = call
    return found[min(found)]


# ---- contestants: each makes a function of a list of texts ----


def _native_run(folder: str, texts: list):
    """In batches as `locus.Model` makes them of a list of texts, in their order."""
    model = locus.Model(folder, threads=torch.get_num_threads())
    batches = []
    for first, last in _Texts(texts).batches():
        flat = numpy.concatenate(texts[first:last]).astype(numpy.int32).tobytes()
        lengths = [len(text) for text in texts[first:last]]
        batches.append((flat, numpy.cumsum([0] + lengths, dtype=numpy.int64).tobytes()))

    def part(flat, offsets):
        found = _native.model_run(model._handle, flat, None, offsets, None, None, None, EMBEDDING, False)
        raw, rows, width = found["embedding"][0]
        return torch.frombuffer(raw, dtype=torch.float32).view(rows, width)

    def run():
        return torch.cat([part(*batch) for batch in batches])

    return run


def _torch_run(model):
    def run(texts):
        ids, mask = _padded(texts)
        with torch.no_grad():
            return _means(model(input_ids=ids, attention_mask=mask)[0], mask)

    return run


def session(path: str):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.log_severity_level = 3
    if os.environ.get("OMP_WAIT_POLICY") == "passive":  # waiting threads of OpenMP sleep: so do these
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


def export(model, texts: list, path: str) -> None:
    """As it is for one text; with axes of any length for many."""
    ids, mask = _padded(texts[:2])
    axes = {name: {0: "batch", 1: "tokens"} for name in ("ids", "mask", "states")} if len(texts) > 1 else None
    torch.onnx.export(
        model, (ids, mask), path, input_names=["ids", "mask"], output_names=["states"], dynamic_axes=axes, dynamo=False
    )


def _onnx_run(model, texts: list, folder: str):
    path = os.path.join(folder, "model.onnx")
    export(model, texts, path)
    graph = session(path)
    names = {given.name for given in graph.get_inputs()}

    def run(texts):
        ids, mask = _padded(texts)
        feed = {name: x.numpy() for name, x in (("ids", ids), ("mask", mask)) if name in names}
        return _means(torch.from_numpy(graph.run(["states"], feed)[0]), mask)

    return run


def _ctranslate2_run(folder: str):
    import ctranslate2

    converted = os.path.join(folder, "ctranslate2")
    ctranslate2.converters.TransformersConverter(folder).convert(converted)
    encoder = ctranslate2.Encoder(converted, device="cpu", intra_threads=torch.get_num_threads())

    def run(texts):
        states = torch.from_numpy(numpy.array(encoder.forward_batch(texts).last_hidden_state))
        return _means(states, _padded(texts)[1])

    return run


def _write_vocabulary(folder: str, size: int) -> None:
    """A tokenizer that nobody calls: CTranslate2 wants the words."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"word{i}" for i in range(len(words), size)]
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(words) + "\n")
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        file.write('{"tokenizer_class": "BertTokenizer"}\n')


def offer(contest: Contest, contestant: str, make) -> None:
    """A peer that cannot run says why."""
    try:
        contest.runs[contestant] = make()
    except Exception as problem:  # whatever it raises
        contest.absent[contestant] = " ".join(str(problem).split())[:120] or type(problem).__name__
    contest.forward_only.add(contestant)


def _contest(name: str, model, texts: list) -> Contest:
    from transformers import logging

    logging.set_verbosity_error()  # the pooler that is not in the file is not used
    model = model.eval()
    exact = copy.deepcopy(model).double()
    contest = Contest(name, [], lambda: torch.cat([_torch_run(exact)([text]) for text in texts]))
    holder = tempfile.TemporaryDirectory()
    contest.holder = holder  # until the contest is over
    model.save_pretrained(holder.name)
    if model.config.model_type == "bert":
        _write_vocabulary(holder.name, VOCABULARY)

    def loaded(attention):
        return type(model).from_pretrained(holder.name, attn_implementation=attention).eval()

    def patched():
        swapped = copy.deepcopy(model)
        locus.torch.patch(swapped)
        return swapped

    offer(contest, "locus", lambda: _native_run(holder.name, texts))
    offer(contest, "transformers, eager", lambda: _fastest(texts, _torch_run(loaded("eager"))))
    offer(contest, "transformers, sdpa", lambda: _fastest(texts, _torch_run(loaded("sdpa"))))
    offer(contest, "transformers, patched", lambda: _fastest(texts, _torch_run(patched())))
    if onnx.version():
        offer(contest, "onnxruntime", lambda: _fastest(texts, _onnx_run(loaded("eager"), texts, holder.name)))
    else:
        contest.absent["onnxruntime"] = "not installed"
    offer(contest, "ctranslate2", lambda: _fastest(texts, _ctranslate2_run(holder.name)))
    return contest


# ---- models ----


def _one(shape: Shape) -> list:
    return torch.randint(1000, VOCABULARY, (shape.batch, shape.tokens)).tolist()


def _bert(width: int, layers: int):
    from transformers import BertModel

    return BertModel(shapes.bert(VOCABULARY, width, layers, 12), add_pooling_layer=False)


def _deberta(width: int, heads: int):
    from transformers import DebertaV2Model

    return DebertaV2Model(shapes.deberta_v3(VOCABULARY, width, 12, heads))


def _mpnet():
    from transformers import MPNetModel

    return MPNetModel(shapes.mpnet_base(VOCABULARY), add_pooling_layer=False)


def _t5():
    from transformers import T5EncoderModel

    return T5EncoderModel(shapes.t5(VOCABULARY, 768, 12, 12))


def _learned(name: str, make, shape: Shape):
    """None: the model has no position so far out."""
    return _contest(name, make(), _one(shape)) if shape.tokens <= MOST_TOKENS else None


def minilm(shape: Shape, options):
    return _learned("MiniLM-L6", lambda: _bert(384, 6), shape)


def bert_base(shape: Shape, options):
    return _learned("BERT-base", lambda: _bert(768, 12), shape)


def mpnet(shape: Shape, options):
    return _learned("MPNet-base", _mpnet, shape)


def t5(shape: Shape, options) -> Contest:
    return _contest("T5-base encoder", _t5(), _one(shape))


def deberta(shape: Shape, options) -> Contest:
    return _contest("DeBERTa-v3-xsmall", _deberta(384, 6), _one(shape))


def deberta_base(shape: Shape, options) -> Contest:
    return _contest("DeBERTa-v3-base", _deberta(768, 12), _one(shape))


# ---- lines of a file ----


def _lengths(options) -> list:
    """Of the first lines of --text, a word or a mark each a token, and two that a tokenizer adds; else drawn."""
    if options.text is None:
        return (torch.randn(SENTENCES).mul(0.6).add(3.0).exp().clamp(2, 120).int() + 2).tolist()
    with open(options.text, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()][:SENTENCES]
    return [min(len(re.findall(r"\w+|[^\w\s]", line)) + 2, MOST_TOKENS) for line in lines]


def _sentences(name: str, model, options) -> Contest:
    texts = [torch.randint(1000, VOCABULARY, (length,)).tolist() for length in _lengths(options)]
    return _contest(f"{name}, {len(texts)} texts of {min(map(len, texts))} to {max(map(len, texts))}", model, texts)


def minilm_sentences(shape: Shape, options) -> Contest:
    return _sentences("MiniLM-L6", _bert(384, 6), options)


def deberta_sentences(shape: Shape, options) -> Contest:
    return _sentences("DeBERTa-v3-xsmall", _deberta(384, 6), options)
