# SPDX-License-Identifier: Apache-2.0
"""text.py FOLDER: trained models in it, from text to answer by `locus run` against transformers with its own
tokenizer: ids, hidden states, logits, embeddings, filled masks; the weights of `locus explain` against the attention
of transformers; a batch of mixed lengths against each text alone.

One line per model: PASSED, FAILED or SKIPPED, its name, what was found."""

import json
import os
import subprocess
import sys

import numpy
import torch
import transformers
from safetensors.numpy import load_file

LOCUS = os.environ["LOCUS"]
STATES, LOGITS, WEIGHTS = 2e-5, 1e-4, 1e-5  # of the largest element; absolute; absolute

TEXTS = [
    "The cat sleeps on the mat.",
    "",
    "Ünïcödé, 東京タワー and a \U0001f468\u200d\U0001f469\u200d\U0001f467 family: 12,345.67!",
    "where is the station",
    "Position embeddings tell attention where a token is. " * 12,
    "  two  blanks \t and a tab",
]
PAIRS = [("Is the answer here?", "It is on the table."), ("a", "b " * 40)]

# name: whether its tokenizer is the slow class, which has no tokenizer.json
MODELS = {"bert-tiny": True, "all-MiniLM-L6-v2": True, "turn-detection": False}


def locus(*arguments, **more):
    done = subprocess.run([LOCUS, *arguments], capture_output=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return done.stdout


def away(got, want):
    want = numpy.asarray(want)
    assert numpy.shape(got) == want.shape, (numpy.shape(got), want.shape)
    return float(numpy.abs(got - want).max() / numpy.abs(want).max())


class Judge:
    def __init__(self, folder, fast):
        self.folder = folder
        with open(os.path.join(folder, "config.json")) as file:
            architecture, *_ = json.load(file)["architectures"]
        kind = getattr(transformers, architecture)
        self.model = kind.from_pretrained(folder, attn_implementation="eager").eval().float()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=fast)
        self.head = next((h for h in ("SequenceClassification", "MaskedLM") if h in architecture), "")
        self.modules = os.path.exists(os.path.join(folder, "modules.json"))
        self.lines = {}
        self.worst = {"states": 0.0, "logits": 0.0, "weights": 0.0}

    def reference(self, text, pair=None):
        encoded = self.tokenizer(text, pair, return_tensors="pt")
        encoded.pop("token_type_ids") if self.model.config.type_vocab_size == 0 and "token_type_ids" in encoded else None
        with torch.no_grad():
            return encoded, self.model(**encoded, output_hidden_states=True, output_attentions=True)

    def note(self, what, value):
        self.worst[what] = max(self.worst[what], value)

    def one(self, text, pair=None):
        encoded, want = self.reference(text, pair)
        second = [] if pair is None else ["--pair", pair]
        path = os.path.join(self.folder, "hidden.safetensors")
        said = json.loads(locus("run", self.folder, text, *second, "--task", "hidden", "--json", "-o", path))
        got = load_file(path)
        os.remove(path)
        assert said["ids"] == encoded["input_ids"][0].tolist(), ("ids", text)
        assert said["tokens"] == self.tokenizer.convert_ids_to_tokens(said["ids"]), ("tokens", text)
        for i, state in enumerate(want.hidden_states):
            self.note("states", away(got["hidden.%d" % i], state.numpy()))
        answer = json.loads(self.lines.get(text) or locus("run", self.folder, text, *second, "--json"))
        states = want.hidden_states[-1][0].numpy()
        if self.modules:
            mean = states.mean(axis=0)
            self.note("states", away(answer["embedding"], mean / numpy.linalg.norm(mean)))
        elif self.head == "SequenceClassification":
            self.note("logits", float(numpy.abs(answer["logits"] - want.logits[0].numpy()).max()))
            for i, p in enumerate(torch.softmax(want.logits[0].double(), 0).tolist()):
                assert abs(answer["labels"][self.model.config.id2label[i]] - p) < 1e-5

    def masks(self):
        mask = self.tokenizer.mask_token
        text = "Paris is the %s of France, and a cat is an %s." % (mask, mask)
        encoded, want = self.reference(text)
        answer = json.loads(locus("run", self.folder, text, "--task", "fill", "--json"))
        places = [i for i, id in enumerate(encoded["input_ids"][0].tolist()) if id == self.tokenizer.mask_token_id]
        assert [found["index"] for found in answer["masks"]] == places
        for found in answer["masks"]:
            p = torch.softmax(want.logits[0, found["index"]].double(), 0)
            best = p.topk(5).indices.tolist()
            assert [one["id"] for one in found["top"]] == best
            assert [one["token"] for one in found["top"]] == self.tokenizer.convert_ids_to_tokens(best)
            for one in found["top"]:
                self.note("logits", abs(one["p"] - float(p[one["id"]])))

    def weights(self):
        text = TEXTS[0]
        _, want = self.reference(text)
        layers = len(want.attentions)
        for layer in (0, layers - 1):
            weights = want.attentions[layer][0]
            for head, query in ((0, 1), (len(weights) - 1, 3)):
                where = ["--layer", str(layer), "--head", str(head), "--query", str(query)]
                found = json.loads(locus("explain", self.folder, "--text", text, *where, "--json"))
                got = [pair["weight"] for pair in found["pairs"]]
                self.note("weights", float(numpy.abs(got - weights[head, query].numpy()).max()))

    def batch(self):
        """Answers of a file of mixed lengths, and that two of its lines give the same bits alone."""
        texts = [text for text in TEXTS if "\t" not in text] * 2
        lines = locus("run", self.folder, "--file", "-", "--json", input="\n".join(texts).encode()).splitlines()
        assert len(lines) == len(texts)
        self.lines = dict(zip(texts, lines))
        for text, line in list(zip(texts, lines))[3:5]:
            assert locus("run", self.folder, text, "--json").splitlines() == [line], ("other bits", text)


def compare(name, folder, fast):
    judge = Judge(folder, fast)
    judge.batch()
    for text in TEXTS:
        judge.one(text)
    for text, pair in PAIRS:
        judge.one(text, pair)
    if judge.head == "MaskedLM":
        judge.masks()
    judge.weights()
    w = judge.worst
    good = w["states"] <= STATES and w["logits"] <= LOGITS and w["weights"] <= WEIGHTS
    found = ", ".join("%s %.1e" % item for item in w.items())
    print("PASSED" if good else "FAILED", name + "-text", found, flush=True)


def main(folder):
    for name, fast in MODELS.items():
        path = os.path.join(folder, name)
        if not os.path.exists(os.path.join(path, "model.safetensors")):
            print("SKIPPED", name + "-text", "its package could not be fetched")
            continue
        try:
            compare(name, path, fast)
        except Exception as problem:  # whatever it is, the model failed
            print("FAILED", name + "-text", " ".join(repr(problem).split()), flush=True)


main(*sys.argv[1:])
