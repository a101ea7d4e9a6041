# SPDX-License-Identifier: Apache-2.0
"""Trained models: from the files of the Hugging Face hub and a text to an answer."""

import difflib
import operator
import os
import queue
import threading

import numpy as np

from . import _native
from ._errors import LocusTypeError, LocusValueError
from ._explain import explain
from ._tokenizer import Tokenizer

_HIDDEN, _LOGITS, _EMBEDDING, _QKV, _DECODER_HIDDEN, _DECODER_QKV, _CROSS_Q, _CROSS_KV = (1 << i for i in range(8))
_STACKS = ("encoder", "decoder", "cross")  # locus_model_stack
_BATCH = 512  # tokens of one pass, whose states stay in the caches; more of them change no bit


_SETTINGS = [name for pair in _native.generation_settings() for name in pair if name is not None]
_SAME = {theirs: ours for ours, theirs in _native.generation_settings() if theirs is not None}


def _checked(settings):
    """Settings of a generation under our names: those of transformers are names, too."""
    found = {}
    for name, value in settings.items():
        if name not in _SETTINGS:
            near = difflib.get_close_matches(name, _SETTINGS, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_SETTINGS)}"
            raise LocusTypeError(f"generate: no setting {name!r}: {hint}")
        if _SAME.get(name, name) in found:
            raise LocusTypeError(f"generate: found {name} and another name of it, expected one of them")
        found[_SAME.get(name, name)] = value
    return found


def _whole(ids):
    """Ids of a text as integers; a 3.5 is none."""
    try:
        return [operator.index(id) for id in (ids.tolist() if hasattr(ids, "tolist") else ids)]
    except TypeError:
        raise LocusTypeError("ids: found something that is no whole number, expected lists of token numbers") from None


class _Texts:
    """Ids of several texts, one behind the other."""

    def __init__(self, ids, tokens=None, types=None, segments=None):
        self.ids, self.tokens, self.types, self.segments = ids, tokens, types, segments

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


def _offsets(lists):
    return np.cumsum([0] + [len(part) for part in lists], dtype=np.int64).tobytes()


def _floats(raw, *shape):
    return np.frombuffer(raw, np.float32).reshape(shape)


def _layers(parts):
    """The rows of every layer, in one array where all are as wide."""
    arrays = [_floats(*part) for part in parts]
    return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays


def _sayable(scheme, options):
    """Without those that have a default which nobody may write, as RoPE's width 0: all columns."""
    declared = {one["name"]: one for one in next(d for d in _native.schemes() if d["name"] == scheme)["options"]}
    return {
        name: value
        for name, value in options.items()
        if not isinstance(value, (int, float)) or value != declared[name]["default"] or declared[name]["minimum"] <= value
    }


def _behind(prompt, text):
    return prompt.encode() + text if isinstance(text, bytes) else prompt + text


def _reopened(folder, threads, tokenizer, precision):
    return Model(folder, threads=threads, tokenizer=tokenizer, precision=precision)


class Model:
    """A trained model: config.json, model.safetensors and tokenizer files in one folder; or a GGUF file, with `tokenizer`,
    a folder or a file.

    >>> model = locus.Model("all-MiniLM-L6-v2")
    >>> model(["The cat sleeps.", "A kitten is napping."]).shape      # embeddings
    (2, 384)
    >>> locus.Model("a-classifier")("a question", pair="an answer")   # {"yes": 0.98, "no": 0.02}
    >>> locus.Model("bert-base-uncased")("Paris is the [MASK] of France.")
    >>> locus.Model("opus-mt-en-fr")("The cat sleeps.")               # "Le chat dort."

    A model does what its head is for; `task` asks for something else. A text gives the same bits alone and in any batch.
    The model never changes; threads may share it. `locus.torch.Model` trains one.

    precision="i16" computes linear maps in integers of 16 bits (about half the time, a thousandth off), "int8" of 8 bits
    (a quarter to two fifths, some hundredths off): docs/precision.md. It is never chosen without being asked for.
    """

    def __init__(self, folder, *, threads=0, tokenizer=None, precision="exact", _trainable=False):
        self._handle = _native.model_open(folder, threads, _trainable, precision)
        self._folder, self._threads = folder, threads
        self._tokenizer_path = folder if tokenizer is None else tokenizer
        self.info = _native.model_info(self._handle)
        self._tokenizer = None

    def __reduce__(self):
        """A copy in another process reads the folder again."""
        paths = [os.path.abspath(os.fspath(path)) for path in (self._folder, self._tokenizer_path)]
        return _reopened, (paths[0], self._threads, paths[1], self.info["precision"])

    def __deepcopy__(self, memo):
        return self  # it never changes

    def __repr__(self):
        i = self.info
        return f"Model({os.fspath(self._folder)!r}): {i['family']}, {i['layers']} layers of {i['width']}, {i['scheme']}"

    @property
    def tokenizer(self):
        """Its Tokenizer, read when it is first asked for."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._tokenizer_path)
        return self._tokenizer

    @property
    def tasks(self):
        """What it can do, the default first."""
        head = [self.info["head"]] if self.info["head"] else []
        return ["embed", *head] if self.info["modules"] else [*head, "embed"]

    def __call__(self, texts, pair=None, *, task=None, truncate=0, **settings):
        """The answer to a text, or an array or list of those to several.

        embed: a vector; classify: {label: probability}; tokens: [(token, tag)]; answer: {"answer",
        "probability", "first", "last"}, the tokens of the text (of `pair`, where there is one) that answer; fill: for each mask the five best
        (token, probability); generate: a text (`settings`: beams, max_length, sample, temperature, top_k, top_p, seed, ...,
        also under the names of transformers).
        """
        if task is None and self.info["unread_head"] and not self.info["modules"]:
            raise LocusValueError(
                f"architectures.0: the head of {self.info['unread_head']} is not read; task=\"embed\" or hidden() gives states"
            )
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

    def stream(self, text, pair=None, *, truncate=0, **settings):
        """The answer to a text, piece by piece as it is written: an iterator. Without beams.

        >>> for piece in model.stream("Once upon a time", max_new_tokens=50):
        ...     print(piece, end="", flush=True)
        """
        if "generate" not in self.tasks:
            raise LocusValueError(f"stream: found a model for {', '.join(self.tasks)}, expected one that generates")
        settings = {"beams": 1, **_checked(settings)}
        if settings["beams"] not in (1, None):
            raise LocusValueError(f"stream: found beams={settings['beams']}, expected 1: a beam search knows its text at the end")
        return self._streamed(self._encode([text], [pair], truncate), settings)

    def zero_shot(self, texts, labels, *, hypothesis="This example is {}.", multi_label=False, truncate=0):
        """Which of `labels` a text is about, {label: score}, the best first, by a model of entailment."""
        alone = isinstance(texts, (str, bytes))
        names = self.info["labels"] if self.info["head"] == "classify" else []
        entailment = next((i for i, name in enumerate(names) if name.lower().startswith("entail")), None)
        if entailment is None or len(names) < 2:
            raise LocusValueError("zero_shot: id2label has no label that begins with entail")
        if "{}" not in hypothesis or not labels:
            raise LocusValueError("zero_shot: expected labels, and {} in the hypothesis")
        texts, labels = [texts] if alone else list(texts), list(labels)
        encoded = self._encode([t for t in texts for _ in labels], [hypothesis.replace("{}", one, 1) for one in labels] * len(texts), truncate)
        logits = np.concatenate([self._logits(encoded, first, last) for first, last in encoded.batches()] or [np.zeros((0, len(names)))])
        logits = logits.reshape(len(texts), len(labels), len(names)).astype(np.float64)
        if multi_label or len(labels) == 1:
            other = -1 if entailment == 0 else 0
            scores = 1.0 / (1.0 + np.exp(logits[..., other] - logits[..., entailment]))
        else:
            scores = np.exp(logits[..., entailment] - logits[..., entailment].max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
        found = [{labels[i]: float(row[i]) for i in np.argsort(-row, kind="stable")} for row in scores]
        return found[0] if alone else found

    def rank(self, query, texts, *, truncate=0):
        """[(index, score), ...] of texts by how well they answer a query, the best first, by a model with one label."""
        if self.info["head"] != "classify" or len(self.info["labels"]) != 1:
            raise LocusValueError("rank: expected a model with one label")
        texts = list(texts)
        encoded = self._encode([query] * len(texts), texts, truncate)
        logits = [x for first, last in encoded.batches() for x in self._logits(encoded, first, last)[:, 0].tolist()]
        scores = 1.0 / (1.0 + np.exp(-np.asarray(logits, np.float64)))
        return [(int(i), float(scores[i])) for i in np.argsort(-np.asarray(logits), kind="stable")]

    def hidden(self, text, pair=None, *, truncate=0):
        """What every layer made of a text: [layers + 1, tokens, width], after the embeddings first; a list of arrays where the
        model narrows its last states (OPT)."""
        return _layers(self._run(self._encode([text], [pair], truncate), 0, 1, _HIDDEN)["hidden"])

    def logits(self, text, pair=None, *, truncate=0):
        """What the head says of a text, before softmax."""
        if not self.info["head"]:
            raise LocusValueError("logits: the model has no head that gives them")
        if self.info["decoder_layers"]:
            raise LocusValueError("logits: its decoder gives them, token by token: see locus.torch.Model")
        return self._logits(self._encode([text], [pair], truncate), 0, 1)

    def attention(self, text, layer, pair=None, *, truncate=0, stack="encoder", decoder_ids=None):
        """The attention of one layer on a text, as keywords of `locus.attend` and `locus.explain`. Of an encoder-decoder also
        stack="decoder", among the decoder's own tokens, and "cross", to the encoder's: on what the model answers to the text, or
        on `decoder_ids`, start first."""
        if stack not in _STACKS:
            raise LocusValueError(f"stack: found {stack!r}, expected one of {', '.join(_STACKS)}")
        if stack != "encoder" and not self.info["decoder_layers"]:
            raise LocusValueError(f"stack: found {stack!r}, but the model has no decoder behind an encoder")
        encoded, number = self._encode([text], [pair], truncate), _STACKS.index(stack)
        if not encoded.ids[0]:
            raise LocusValueError("text: found no tokens, expected one at least")
        q, kv, types = self._asked(encoded, stack, decoder_ids)
        if not 0 <= layer < len(q):
            raise LocusValueError(f"layer: found {layer}, expected 0 to {len(q) - 1}")
        raw, queries, _ = q[layer]
        other, keys = (bytes(kv[layer][0]), kv[layer][1]) if kv else (None, queries)
        scheme, causal, scale, options, tensors = _native.model_attention(
            self._handle, number, layer, bytes(raw), other, queries, keys, types
        )
        arrays = {name: _floats(raw, *shape) for name, (raw, shape) in tensors.items()}
        return dict(arrays, scheme=scheme, causal=bool(causal), scale=scale, **_sayable(scheme, options))

    def explain(self, text, layer, head, *, stack="encoder", decoder_ids=None, **more):
        """The score of a head on a text, split into its terms: see `locus.explain`.

        >>> e = model.explain("The keys are here.", layer=3, head=2)
        >>> e.terms["position-content"]                                 # [tokens, tokens]
        >>> e.plot()
        """
        return explain(**self.attention(text, layer, stack=stack, decoder_ids=decoder_ids), head=head, **more)

    # ---- what is behind it ----

    def _asked(self, encoded, stack, decoder_ids):
        """q of every layer, k and v where they are others', types."""
        if stack == "encoder":
            types = self._types(encoded, 0, 1)
            return self._run(encoded, 0, 1, _QKV)["qkv"], None, types
        if decoder_ids is None:
            answer, _ = _native.model_generate(self._handle, _joined(encoded.ids), _offsets(encoded.ids), {})[0]
            decoder_ids = np.frombuffer(answer, np.int32)
            decoder_ids = decoder_ids[: max(1, len(decoder_ids) - 1)]  # the last one asks nothing
        if stack == "decoder":
            return self._run(encoded, 0, 1, _DECODER_QKV, decoder=[decoder_ids])["decoder_qkv"], None, None
        found = self._run(encoded, 0, 1, _CROSS_Q | _CROSS_KV, decoder=[decoder_ids])
        return found["cross_q"], found["cross_kv"], None

    def _encode(self, texts, pairs, truncate):
        if pairs is None or isinstance(pairs, (str, bytes)):
            pairs = [pairs] * len(texts)
        if len(pairs) != len(texts):
            raise LocusTypeError(f"pair: found {len(pairs)} texts, expected {len(texts)}")
        most, prompt = self.info["most_tokens"], self.info["prompt"]
        truncate = truncate or self.info["cut_tokens"]
        if prompt:
            texts = [_behind(prompt, text) for text in texts]
        found = [self.tokenizer(t, p, truncate=truncate) for t, p in zip(texts, pairs)]
        encoded = _Texts([e.ids for e in found], [e.tokens for e in found], [e.types for e in found], [e.segments for e in found])
        for i, ids in enumerate(encoded.ids):
            if 0 < most < len(ids):
                raise LocusValueError(f"text {i}: found {len(ids)} tokens, the model takes at most {most}; see truncate")
        return encoded

    def _types(self, encoded, first, last):
        known = encoded.types is not None and self.info["types"] > 1 and self.tokenizer.has_types
        return _joined(encoded.types[first:last]) if known else None

    def _run(self, encoded, first, last, what, rows=None, decoder=None, keep=False):
        """What the bits of `what` ask for, of texts first .. last - 1: name: [(floats, rows, width) of every layer]."""
        ids = encoded.ids[first:last]
        return _native.model_run(
            self._handle,
            _joined(ids),
            self._types(encoded, first, last),
            _offsets(ids),
            None if rows is None else np.asarray(rows, np.int32).tobytes(),
            None if decoder is None else _joined(decoder),
            None if decoder is None else _offsets(decoder),
            what,
            keep,
        )

    def _logits(self, encoded, first, last, rows=None):
        return _floats(*self._run(encoded, first, last, _LOGITS, rows)["logits"][0])

    def _answer(self, encoded, task):
        answer = {"embed": self._embed, "classify": self._classify, "tokens": self._tag, "answer": self._span, "fill": self._fill}[task]
        return [found for first, last in encoded.batches() for found in answer(encoded, first, last)]

    def _embed(self, encoded, first, last):
        return list(_floats(*self._run(encoded, first, last, _EMBEDDING)["embedding"][0]))

    def _probabilities(self, logits):
        x = logits.astype(np.float64)
        if self.info["multi_label"]:
            return 1.0 / (1.0 + np.exp(-x))
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def _classify(self, encoded, first, last):
        rows = self._probabilities(self._logits(encoded, first, last))
        return [dict(zip(self.info["labels"], map(float, row))) for row in rows]

    def _tag(self, encoded, first, last):
        logits = self._logits(encoded, first, last)
        tags = iter([self.info["labels"][i] for i in logits.argmax(axis=-1)])
        return [[(token, next(tags)) for token in encoded.tokens[i]] for i in range(first, last)]

    def _span(self, encoded, first, last):
        logits = self._logits(encoded, first, last).astype(np.float64)
        found, at = [], 0
        for i in range(first, last):
            ids, segments = encoded.ids[i], np.asarray(encoded.segments[i])
            part = logits[at : at + len(ids)]
            at += len(ids)
            may = segments == (1 if (segments == 1).any() else 0)
            if not may.any():
                found.append({"answer": "", "probability": 0.0, "first": -1, "last": -1})
                continue
            p = np.exp(np.where(may[:, None], part - part[may].max(axis=0), -np.inf))
            pairs = np.outer(*(p / p.sum(axis=0)).T)
            pairs = np.triu(pairs) - np.triu(pairs, 15)  # an answer has at most 15 tokens
            a, b = np.unravel_index(pairs.argmax(), pairs.shape)
            text = self.tokenizer.decode([id for id in ids[a : b + 1]])
            found.append({"answer": text, "probability": float(pairs[a, b]), "first": int(a), "last": int(b)})
        return found

    def _fill(self, encoded, first, last):
        mask = self.tokenizer.special["mask"]
        if mask is None:
            raise LocusValueError("fill: its tokenizer has no mask")
        ids = [id for part in encoded.ids[first:last] for id in part]
        rows = [i for i, id in enumerate(ids) if id == mask]
        probabilities = self._probabilities(self._logits(encoded, first, last, rows)) if rows else []
        best = (
            [(self.tokenizer.token(int(i)), float(row[i])) for i in np.argsort(-row, kind="stable")[:5]]
            for row in probabilities
        )
        return [[next(best) for id in part if id == mask] for part in encoded.ids[first:last]]

    def _generate(self, encoded, settings, told=None):
        ids, offsets = _joined(encoded.ids), _offsets(encoded.ids)
        found = _native.model_generate(self._handle, ids, offsets, _checked(settings), told)
        return [self._decoded(np.frombuffer(ids, np.int32).tolist()) for ids, _ in found]

    def _decoded(self, ids):
        """A model may have rows beyond its tokenizer's: they have no text."""
        return self.tokenizer.decode([id for id in ids if id < len(self.tokenizer)])

    def _streamed(self, encoded, settings):
        said = queue.SimpleQueue()

        def write():
            try:
                said.put(self._generate(encoded, settings, lambda text, id: said.put(id))[0])
            except BaseException as error:  # it is the reader's
                said.put(error)

        threading.Thread(target=write).start()
        ids, shown = [] if self.info["decoder_layers"] else list(encoded.ids[0]), ""
        while True:
            news = said.get()
            if isinstance(news, BaseException):
                raise news
            ids += [news] if isinstance(news, int) else []
            text = self._decoded(ids).rstrip("\ufffd") if isinstance(news, int) else news  # a part of a letter may still grow
            if text.startswith(shown) and len(text) > len(shown):
                yield text[len(shown) :]
                shown = text
            if isinstance(news, str):
                return
