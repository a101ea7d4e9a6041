# SPDX-License-Identifier: Apache-2.0
"""Tokens one by one: encoder-decoders of the shapes of FLAN-T5-small and opus-mt, random weights, the C runtime beside
transformers and CTranslate2.

All of them make TOKENS tokens, because the end may not come earlier; what is compared is how many there are of each, not which:
random weights leave the best two tokens close together.
"""

from __future__ import annotations

import os
import tempfile

import numpy
import torch

import locus
from locus import _native

from . import shapes
from .contest import Contest, Shape
from .runtime import offer

SOURCE, TOKENS = 24, 40
VOCABULARY = 32128
END, START = 1, 0


def _native_run(folder: str, ids: list, settings: dict):
    model = locus.Model(folder, threads=torch.get_num_threads())
    flat, offsets = numpy.array(ids, numpy.int32).tobytes(), numpy.array([0, len(ids)], numpy.int64).tobytes()

    def run():
        ((generated, _),) = _native.model_generate(model._handle, flat, offsets, settings)
        return _count(len(generated) // 4 - 1)  # int32, the start first

    return run


def _count(tokens: int) -> torch.Tensor:
    return torch.tensor([float(tokens)])


def _ctranslate2_run(folder: str, ids: list, beams: int, words: list):
    import ctranslate2

    converted = os.path.join(folder, "ctranslate2")
    ctranslate2.converters.TransformersConverter(folder).convert(converted)
    translator = ctranslate2.Translator(converted, device="cpu", intra_threads=torch.get_num_threads())
    source = [words[i] for i in ids]

    def run():
        found = translator.translate_batch(
            [source], beam_size=beams, min_decoding_length=TOKENS, max_decoding_length=TOKENS
        )
        return _count(len(found[0].hypotheses[0]))

    return run


def _contest(name: str, model, beams: int, write_words=None) -> Contest:
    contest = Contest(name, [], lambda: _count(TOKENS).double())
    holder = tempfile.TemporaryDirectory()
    contest.holder = holder
    model = model.eval()
    model.save_pretrained(holder.name)
    ids = [*torch.randint(100, VOCABULARY - 200, (SOURCE - 1,)).tolist(), END]
    length = TOKENS + 1  # the start counts

    def transformers():
        given = torch.tensor([ids])
        more = dict(num_beams=beams, min_length=length, max_length=length, do_sample=False)
        return _count(model.generate(input_ids=given, attention_mask=torch.ones_like(given), **more).shape[1] - 1)

    settings = {"beams": beams, "min_length": length, "max_length": length}
    offer(contest, "locus", lambda: _native_run(holder.name, ids, settings))
    contest.runs["transformers"] = transformers
    contest.forward_only.add("transformers")
    if write_words is None:
        contest.absent["ctranslate2"] = "its converter reads SentencePiece files, which random weights do not have"
    else:
        words = write_words(holder.name)
        offer(contest, "ctranslate2", lambda: _ctranslate2_run(holder.name, ids, beams, words))
    return contest


def _t5_words(folder: str) -> list:
    """A tokenizer that nobody calls: CTranslate2 wants the words."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "</s>", "<unk>", *(f"word{i}" for i in range(3, VOCABULARY))]
    inner = Tokenizer(models.Unigram([(word, 0.0) for word in words], unk_id=2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    return words


def t5_greedy(shape: Shape, options) -> Contest:
    from transformers import T5ForConditionalGeneration

    config = shapes.flan_t5_small(
        VOCABULARY, tie_word_embeddings=False, decoder_start_token_id=START, eos_token_id=END
    )
    model = T5ForConditionalGeneration(config)
    return _contest(f"FLAN-T5-small, greedy, {TOKENS} tokens", model, 1, _t5_words)


def marian_beams(shape: Shape, options) -> Contest:
    """Trained weights beside CTranslate2: docs/models.md."""
    from transformers import MarianMTModel

    config = shapes.opus_mt(
        VOCABULARY, decoder_start_token_id=START, pad_token_id=START, eos_token_id=END, forced_eos_token_id=END
    )
    return _contest(f"opus-mt, 4 beams, {TOKENS} tokens", MarianMTModel(config), 4)
