# SPDX-License-Identifier: Apache-2.0
"""Trained models: from the files of the Hugging Face hub and a text to an answer."""

import os

import numpy as np

from . import _native
from ._errors import LocusTypeError, LocusValueError
from ._explain import explain
from ._tokenizer import Tokenizer

_HIDDEN, _LOGITS, _EMBEDDING, _QKV = 1, 2, 4, 8
_BATCH = 2048  # tokens of one pass; more of them change no bit


class _Texts:
    """Ids of several texts, one behind the other."""

    def __init__(self, encodings):
        self.ids = [encoding.ids for encoding in encodings]
        self.tokens = [encoding.tokens for encoding in encodings]
        self.types = [encoding.types for encoding in encodings]

    def batches(self):
        """(first, last) of runs of texts with about _BATCH tokens together."""
        first, tokens = 0, 0
        for i, ids in enumerate(self.ids):
            tokens += len(ids)
            if tokens >= _BATCH:
                yield first, i + 1
                first, tokens = i + 1, 0
        if first < len(self.ids):
            yield first, len(self.ids)


def _joined(lists):
    return np.concatenate([np.asarray(part, np.int32) for part in lists] or [np.zeros(0, np.int32)]).tobytes()


def _floats(raw, *shape):
    return None if raw is None else np.frombuffer(raw, np.float32).reshape(shape)


class Model:
    """A trained model: config.json, model.safetensors and tokenizer files in one folder.

    >>> model = locus.Model("all-MiniLM-L6-v2")
    >>> model(["The cat sleeps.", "A kitten is napping."]).shape      # embeddings
    (2, 384)
    >>> locus.Model("a-classifier")("a question", pair="an answer")   # {"yes": 0.98, "no": 0.02}
    >>> locus.Model("bert-base-uncased")("Paris is the [MASK] of France.")
    >>> locus.Model("opus-mt-en-fr")("The cat sleeps.")               # "Le chat dort."

    A model does what its head is for; `task` asks for something else. A text gives the same bits alone and in any batch.
    The model never changes; threads may share it.
    """

    def __init__(self, folder, *, threads=0):
        self._handle = _native.model_open(folder, threads)
        self._folder = folder
        self.info = _native.model_info(self._handle)
        self._tokenizer = None

    def __repr__(self):
        i = self.info
        return f"Model({os.fspath(self._folder)!r}): {i['family']}, {i['layers']} layers of {i['width']}, {i['scheme']}"

    @property
    def tokenizer(self):
        """Its Tokenizer, read when it is first asked for."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._folder)
        return self._tokenizer

    @property
    def tasks(self):
        """What it can do, the default first."""
        head = [self.info["head"]] if self.info["head"] else []
        return ["embed", *head] if self.info["modules"] else [*head, "embed"]

    def __call__(self, texts, pair=None, *, task=None, truncate=0, **settings):
        """The answer to a text, or an array or list of those to several.

        embed: a vector; classify: {label: probability}; tokens: [(token, tag)]; fill: for each mask the five best
        (token, probability); generate: a text (`settings`: beams, max_length, sample, temperature, top_k, top_p, seed, ...).
        """
        task = task or self.tasks[0]
        if task not in self.tasks:
            raise LocusValueError(f"task: found {task!r}, expected one of {', '.join(self.tasks)}")
        if settings and task != "generate":
            raise LocusTypeError(f"{task}: no setting {next(iter(settings))!r}")
        single = isinstance(texts, (str, bytes))
        encoded = self._encode([texts] if single else list(texts), [pair] if single else pair, truncate)
        answers = self._generate(encoded, settings) if task == "generate" else self._answer(encoded, task)
        if single:
            return answers[0]
        return np.stack(answers) if task == "embed" and answers else answers

    def hidden(self, text, pair=None, *, truncate=0):
        """What every layer made of a text: [layers + 1, tokens, width], after the embeddings first; a list of arrays where the
        model narrows its last states (OPT)."""
        return self._run(self._encode([text], [pair], truncate), 0, 1, _HIDDEN)[0]

    def logits(self, text, pair=None, *, truncate=0):
        """What the head says of a text, before softmax."""
        if not self.info["head"]:
            raise LocusValueError("logits: the model has no head that gives them")
        return self._run(self._encode([text], [pair], truncate), 0, 1, _LOGITS)[1]

    def attention(self, text, layer, pair=None, *, truncate=0):
        """The attention of one layer on a text, as keywords of `locus.attend` and `locus.explain`."""
        encoded = self._encode([text], [pair], truncate)
        qkv = self._run(encoded, 0, 1, _QKV)[3]
        if not 0 <= layer < len(qkv):
            raise LocusValueError(f"layer: found {layer}, expected 0 to {len(qkv) - 1}")
        scheme, causal, scale, options, tensors = _native.model_attention(
            self._handle, layer, qkv[layer].tobytes(), qkv.shape[1]
        )
        arrays = {name: _floats(raw, *shape) for name, (raw, shape) in tensors.items()}
        return dict(arrays, scheme=scheme, causal=bool(causal), scale=scale, **options)

    def explain(self, text, layer, head, **more):
        """The score of a head on a text, split into its terms: see `locus.explain`.

        >>> e = model.explain("The keys are here.", layer=3, head=2)
        >>> e.terms["position-content"]                                 # [tokens, tokens]
        >>> e.plot()
        """
        return explain(**self.attention(text, layer), head=head, **more)

    # ---- what is behind it ----

    def _encode(self, texts, pairs, truncate):
        if pairs is None or isinstance(pairs, (str, bytes)):
            pairs = [pairs] * len(texts)
        if len(pairs) != len(texts):
            raise LocusTypeError(f"pair: found {len(pairs)} texts, expected {len(texts)}")
        most = self.info["most_tokens"]
        encoded = _Texts([self.tokenizer(t, p, truncate=truncate) for t, p in zip(texts, pairs)])
        for i, ids in enumerate(encoded.ids):
            if 0 < most < len(ids):
                raise LocusValueError(f"text {i}: found {len(ids)} tokens, the model takes at most {most}; see truncate")
        return encoded

    def _run(self, encoded, first, last, what, rows=None):
        """hidden, logits, embedding, qkv of texts first .. last - 1."""
        info, ids = self.info, encoded.ids[first:last]
        offsets = np.cumsum([0] + [len(part) for part in ids], dtype=np.int64)
        types = encoded.types[first:last] if self.tokenizer.has_types and info["types"] > 1 else None
        hidden, logits, embedding, qkv = _native.model_run(
            self._handle,
            _joined(ids),
            None if types is None else _joined(types),
            offsets.tobytes(),
            None if rows is None else np.asarray(rows, np.int32).tobytes(),
            what,
        )
        tokens, layers = int(offsets[-1]), info["layers"]
        width = {"fill": info["vocabulary"], "generate": info["next_tokens"]}.get(info["head"], len(info["labels"]))
        return (
            self._states(hidden, tokens),
            _floats(logits, -1, width) if logits else None,
            _floats(embedding, len(ids), info["last_width"]),
            _floats(qkv, layers, tokens, info["qkv_width"]),
        )

    def _states(self, raw, tokens):
        layers, width, last = self.info["layers"], self.info["width"], self.info["last_width"]
        if raw is None or width == last:
            return _floats(raw, layers + 1, tokens, width)
        numbers, split = np.frombuffer(raw, np.float32), layers * tokens * width
        return [*numbers[:split].reshape(layers, tokens, width), numbers[split:].reshape(tokens, last)]

    def _answer(self, encoded, task):
        answer = {"embed": self._embed, "classify": self._classify, "tokens": self._tag, "fill": self._fill}[task]
        return [found for first, last in encoded.batches() for found in answer(encoded, first, last)]

    def _embed(self, encoded, first, last):
        return list(self._run(encoded, first, last, _EMBEDDING)[2])

    def _probabilities(self, logits):
        x = logits.astype(np.float64)
        if self.info["multi_label"]:
            return 1.0 / (1.0 + np.exp(-x))
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def _classify(self, encoded, first, last):
        rows = self._probabilities(self._run(encoded, first, last, _LOGITS)[1])
        return [dict(zip(self.info["labels"], map(float, row))) for row in rows]

    def _tag(self, encoded, first, last):
        logits = self._run(encoded, first, last, _LOGITS)[1]
        tags = iter([self.info["labels"][i] for i in logits.argmax(axis=-1)])
        return [[(token, next(tags)) for token in encoded.tokens[i]] for i in range(first, last)]

    def _fill(self, encoded, first, last):
        mask = self.tokenizer.special["mask"]
        if mask is None:
            raise LocusValueError("fill: its tokenizer has no mask")
        ids = [id for part in encoded.ids[first:last] for id in part]
        rows = [i for i, id in enumerate(ids) if id == mask]
        probabilities = self._probabilities(self._run(encoded, first, last, _LOGITS, rows)[1]) if rows else []
        best = (
            [(self.tokenizer.token(int(i)), float(row[i])) for i in np.argsort(-row, kind="stable")[:5]]
            for row in probabilities
        )
        return [[next(best) for id in part if id == mask] for part in encoded.ids[first:last]]

    def _generate(self, encoded, settings):
        offsets = np.cumsum([0] + [len(part) for part in encoded.ids], dtype=np.int64)
        found = _native.model_generate(self._handle, _joined(encoded.ids), offsets.tobytes(), settings)
        return [self.tokenizer.decode(np.frombuffer(ids, np.int32).tolist()) for ids, _ in found]
