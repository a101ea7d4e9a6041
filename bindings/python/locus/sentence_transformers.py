# SPDX-License-Identifier: Apache-2.0
"""A backend for sentence-transformers 5 and 6: their pipeline, with the transformer computed by Locus.

    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling

    words = locus.sentence_transformers.Transformer("all-MiniLM-L6-v2")
    model = SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension()), Normalize()])
    model.encode(["The cat sleeps."])

Texts of a batch are computed without padding: the features are padded, as the modules behind expect, the passes are not.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile

import torch

from ._errors import LocusTypeError, LocusValueError
from ._model import _HIDDEN, Model, _Texts
from ._tokenizer import Tokenizer

try:
    from sentence_transformers.base.modules import InputModule  # 6
except ImportError:
    from sentence_transformers.models import InputModule  # 5

__all__ = ["CrossEncoder", "Transformer"]

_SETTINGS = "sentence_bert_config.json"


def _read(folder, name) -> dict:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    if not isinstance(found, dict):
        raise LocusValueError(f"{path}: found {type(found).__name__}, expected an object")
    return found


def _most_tokens(folder, model: Model):
    """As sentence-transformers finds it: the folder's setting, else the smaller of what tokenizer and positions allow."""
    given = _read(folder, _SETTINGS).get("max_seq_length")
    if given is not None:
        return int(given)
    limits = [_read(folder, "tokenizer_config.json").get("model_max_length"), model.info["most_tokens"]]
    limits = [int(limit) for limit in limits if isinstance(limit, (int, float)) and 0 < limit < 1 << 30]
    return min(limits, default=None)


def _opened(folder, threads: int) -> Model:
    """The model without what modules.json puts behind it: those modules are sentence-transformers' own here."""
    if not os.path.isfile(os.path.join(folder, "modules.json")):
        return Model(folder, threads=threads)
    with tempfile.TemporaryDirectory() as alone:
        for name in os.listdir(folder):
            if name != "modules.json":
                os.symlink(os.path.abspath(os.path.join(folder, name)), os.path.join(alone, name))
        model = Model(alone, threads=threads)
    model._folder = model._tokenizer_path = folder
    return model


class _TheirTokenizer(Tokenizer):
    """What the pipeline asks of a tokenizer of transformers."""

    @property
    def all_special_ids(self) -> list:
        return [id for id in self.special.values() if id is not None]


def _padded(lists, fill: int) -> torch.Tensor:
    rows = torch.full((len(lists), max(map(len, lists), default=0)), fill, dtype=torch.int64)
    for row, ids in zip(rows, lists):
        row[: len(ids)] = torch.tensor(ids, dtype=torch.int64)
    return rows


class Transformer(InputModule):
    """The first module of a SentenceTransformer: texts in, a vector per token out. `folder`: as for `locus.Model`."""

    config_keys = ["max_seq_length", "do_lower_case"]
    config_file_name = _SETTINGS
    save_in_root = True

    def __init__(self, folder, *, max_seq_length=None, do_lower_case=None, threads=0):
        super().__init__()
        self.folder = os.fspath(folder)
        self.locus = _opened(self.folder, threads)
        self.max_seq_length = _most_tokens(self.folder, self.locus) if max_seq_length is None else max_seq_length
        known = _read(self.folder, _SETTINGS).get("do_lower_case", False)
        self.do_lower_case = bool(known if do_lower_case is None else do_lower_case)
        self._tokenizer = _TheirTokenizer(folder)

    @property
    def tokenizer(self):
        return self._tokenizer

    def get_word_embedding_dimension(self) -> int:
        return self.locus.info["width"]

    get_embedding_dimension = get_word_embedding_dimension

    # ---- texts to features ----

    def preprocess(self, inputs, prompt=None, **kwargs) -> dict:
        """Features of texts, or of pairs of texts. sentence-transformers 6 gives the prompt here, 5 in the texts."""
        encoded = [self._encoded(one, prompt or "") for one in inputs]
        pad = self._tokenizer.special.get("pad") or 0
        features = {
            "input_ids": _padded([e.ids for e in encoded], pad),
            "attention_mask": _padded([[1] * len(e.ids) for e in encoded], 0),
            "token_type_ids": _padded([e.types for e in encoded], 0),
        }
        if prompt:
            ids = self._tokenizer(self._cleaned(prompt), truncate=self.max_seq_length or 0).ids
            features["prompt_length"] = len(ids) - (bool(ids) and ids[-1] in self._tokenizer.all_special_ids)
        return features

    def tokenize(self, texts, **kwargs) -> dict:
        """As sentence-transformers 5.0 calls it, whose own module strips texts first."""
        return self.preprocess([one.strip() if isinstance(one, str) else one for one in texts])

    def _cleaned(self, text) -> str:
        if not isinstance(text, str):
            raise LocusTypeError(f"text: found {type(text).__name__}, expected str, or a pair of them")
        return text.lower() if self.do_lower_case else text

    def _encoded(self, one, prompt: str):
        texts = [one] if isinstance(one, str) else list(one.values() if isinstance(one, dict) else one)
        if not 1 <= len(texts) <= 2:
            raise LocusTypeError(f"text: found {len(texts)} together, expected one, or a pair")
        first, *second = [self._cleaned(text) for text in texts]
        pair = second[0] if second else None
        return self._tokenizer(self._cleaned(prompt) + first, pair, truncate=self.max_seq_length or 0)

    # ---- features to vectors ----

    @torch.no_grad()
    def forward(self, features: dict, **kwargs) -> dict:
        seen = features["attention_mask"].bool()
        ids = [row[mask].tolist() for row, mask in zip(features["input_ids"], seen)]
        types = features.get("token_type_ids")
        types = None if types is None else [row[mask].tolist() for row, mask in zip(types, seen)]
        texts, parts = _Texts(ids, types=types), []
        for first, last in texts.batches():
            raw, rows, width = self.locus._run(texts, first, last, _HIDDEN)["hidden"][-1]
            parts.append(torch.frombuffer(raw, dtype=torch.float32).view(rows, width))
        states = torch.zeros(*seen.shape, self.get_word_embedding_dimension())
        if parts:
            states[seen] = torch.cat(parts)
        return {**features, "token_embeddings": states}

    # ---- files ----

    def save(self, output_path, *args, **kwargs) -> None:
        """The files of the folder, so that both libraries open the copy."""
        os.makedirs(output_path, exist_ok=True)
        for name in sorted(os.listdir(self.folder)):
            source = os.path.join(self.folder, name)
            if os.path.isfile(source) and name not in ("modules.json", _SETTINGS, "config_sentence_transformers.json", "README.md"):
                shutil.copyfile(source, os.path.join(output_path, name))
        with open(os.path.join(output_path, _SETTINGS), "w", encoding="utf-8") as file:
            json.dump(self.get_config_dict(), file, indent=2)

    @classmethod
    def load(cls, model_name_or_path, subfolder="", **kwargs):
        return cls(os.path.join(model_name_or_path, subfolder) if subfolder else model_name_or_path)


class CrossEncoder:
    """Scores of pairs of texts, with the answers of sentence_transformers.CrossEncoder.

    >>> model = locus.sentence_transformers.CrossEncoder("ms-marco-MiniLM-L6-v2")
    >>> model.predict([("a question", "an answer")])
    >>> model.rank("a question", ["an answer", "another"], top_k=1)
    """

    def __init__(self, folder, *, max_length=None, activation_fn=None, threads=0):
        self.locus = Model(folder, threads=threads)
        if self.locus.info["head"] != "classify":
            raise LocusValueError(f"{os.fspath(folder)}: found head {self.locus.info['head']!r}, expected 'classify' for a CrossEncoder")
        self.max_length = _most_tokens(os.fspath(folder), self.locus) if max_length is None else max_length
        self.activation_fn = _activation(os.fspath(folder), self.num_labels) if activation_fn is None else activation_fn

    @property
    def num_labels(self) -> int:
        return len(self.locus.info["labels"])

    def predict(self, sentences, batch_size=32, show_progress_bar=None, activation_fn=None, apply_softmax=False,
                convert_to_numpy=True, convert_to_tensor=False):
        """A score per pair, or a row of them where there are several labels."""
        single = bool(len(sentences)) and isinstance(sentences[0], str)
        pairs = [sentences] if single else list(sentences)
        for pair in pairs:
            if len(pair) != 2:
                raise LocusTypeError(f"pair: found {len(pair)} texts, expected 2")
        encoded = self.locus._encode([a for a, _ in pairs], [b for _, b in pairs], self.max_length or 0)
        logits = [torch.from_numpy(self.locus._logits(encoded, *run).copy()) for run in _shown(encoded.batches(), show_progress_bar)]
        scores = torch.cat(logits) if logits else torch.zeros(0, self.num_labels)
        scores = (activation_fn or self.activation_fn)(scores)
        if apply_softmax and self.num_labels > 1:
            scores = scores.softmax(-1)
        scores = scores[:, 0] if self.num_labels == 1 else scores
        scores = scores[0] if single else scores
        return scores if convert_to_tensor else scores.numpy() if convert_to_numpy else list(scores)

    def rank(self, query, documents, top_k=None, return_documents=False, **more):
        """[{"corpus_id": ..., "score": ...}], the best first."""
        if self.num_labels != 1:
            raise LocusValueError(f"rank: found {self.num_labels} labels, expected 1")
        scores = self.predict([(query, document) for document in documents], **more)
        found = [{"corpus_id": i, "score": score} for i, score in enumerate(scores)]
        if return_documents:
            found = [dict(one, text=documents[one["corpus_id"]]) for one in found]
        return sorted(found, key=lambda one: one["score"], reverse=True)[:top_k]


def _shown(runs, bar):
    if not bar:
        return runs
    from tqdm.auto import tqdm

    return tqdm(list(runs), desc="Batches")


def _activation(folder, labels: int):
    """What config.json says, by the name of a module of torch.nn; else a sigmoid for one label."""
    config = _read(folder, "config.json")
    theirs = config.get("sentence_transformers") or {}
    name = theirs.get("activation_fn") or config.get("sbert_ce_default_activation_function")
    if name is None:
        return torch.nn.Sigmoid() if labels == 1 else torch.nn.Identity()
    kind = getattr(torch.nn, str(name).rsplit(".", 1)[-1], None)
    if not str(name).startswith("torch.nn.") or not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        raise LocusValueError(f"{folder}: config.json: activation_fn: found {name!r}, expected a module of torch.nn")
    return kind()
