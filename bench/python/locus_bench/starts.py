# SPDX-License-Identifier: Apache-2.0
"""From nothing to the first vector, by programs of their own; and tokenizing. Both want trained files: ``--folder``.

Locus is the program `locus` where it is on the PATH (or in LOCUS), else Python with `locus.Model`.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch

import locus

from . import onnx
from .contest import Contest, Shape
from .runtime import export, offer

TEXT = "The cat sleeps on the warm windowsill while rain falls outside."
MEGABYTE = 1 << 20

BY_TRANSFORMERS = """
import sys, json, torch
torch.set_num_threads({threads})
from transformers import AutoModel, AutoTokenizer
tokenizer, model = AutoTokenizer.from_pretrained({folder!r}), AutoModel.from_pretrained({folder!r}).eval()
with torch.no_grad():
    vector = model(**tokenizer({text!r}, return_tensors="pt"))[0].mean(1)[0]
print(json.dumps((vector / vector.norm()).tolist()))
"""
BY_ONNX = """
import json, numpy, onnxruntime, tokenizers
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = {threads}
graph = onnxruntime.InferenceSession({path!r}, settings, providers=["CPUExecutionProvider"])
ids = numpy.array([tokenizers.Tokenizer.from_file({folder!r} + "/tokenizer.json").encode({text!r}).ids])
ids = ids[:, : numpy.count_nonzero(ids)]
vector = graph.run(["states"], {{"ids": ids, "mask": numpy.ones_like(ids)}})[0].mean(1)[0]
print(json.dumps((vector / numpy.linalg.norm(vector)).tolist()))
"""
BY_PACKAGE = """
import json, locus
print(json.dumps(locus.Model({folder!r}, threads={threads})({text!r}).tolist()))
"""


def _run(command: list):
    def run():
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        vector = torch.tensor(found["embedding"] if isinstance(found, dict) else found)
        return vector / vector.norm()

    return run


def _python(source: str, **values):
    values = dict(values, text=TEXT, threads=torch.get_num_threads())
    return _run([sys.executable, "-c", source.format(**values)])


def _program(folder: str):
    path = os.environ.get("LOCUS") or shutil.which("locus")
    if path is None:
        return _python(BY_PACKAGE, folder=folder)
    return _run([path, "run", folder, TEXT, "--task", "embed", "--json", "--threads", str(torch.get_num_threads())])


@functools.lru_cache(maxsize=1)
def _encoder(folder: str):
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def _exact(folder: str):
    tokenizer, model = _encoder(folder)
    with torch.no_grad():
        vector = model.double()(**tokenizer(TEXT, return_tensors="pt"))[0].mean(1)[0]
    model.float()
    return vector / vector.norm()


def first_result(shape: Shape, options):
    """None without --folder."""
    if options.folder is None:
        print("  starts: no --folder, nothing to start", file=sys.stderr)
        return None
    folder = os.path.abspath(options.folder)
    contest = Contest("start to first result", [], lambda: _exact(folder))
    holder = tempfile.TemporaryDirectory()
    contest.holder = holder
    offer(contest, "locus", lambda: _program(folder))
    offer(contest, "python, transformers", lambda: _python(BY_TRANSFORMERS, folder=folder))
    if not onnx.version():
        contest.absent["python, onnxruntime"] = "not installed"
        return contest
    path = os.path.join(holder.name, "model.onnx")
    tokenizer, model = _encoder(folder)
    export(model, [tokenizer(TEXT)["input_ids"], tokenizer(TEXT[:20])["input_ids"]], path)
    offer(contest, "python, onnxruntime", lambda: _python(BY_ONNX, folder=folder, path=path))
    return contest


def tokenizing(shape: Shape, options):
    """Both give ids as a list; the text is the first megabyte of --text."""
    if options.folder is None or options.text is None:
        return None
    import tokenizers

    with open(options.text, encoding="utf-8") as file:
        text = file.read(MEGABYTE)
    theirs = tokenizers.Tokenizer.from_file(os.path.join(options.folder, "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    ours = locus.Tokenizer(options.folder)
    contest = Contest("tokenizing 1 MB", [], lambda: torch.tensor(theirs.encode(text).ids).double())
    offer(contest, "locus", lambda: lambda: torch.tensor(list(ours(text).ids)))
    offer(contest, "tokenizers", lambda: lambda: torch.tensor(theirs.encode(text).ids))
    return contest
