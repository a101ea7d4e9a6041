# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shapes of small published checkpoints, patched beside unpatched.

Random weights, short vocabulary; the peer runs what transformers chooses by itself: SDPA where the family has it (BERT, MiniLM,
ALBERT), else its eager code. Shapes are the checkpoints' own, whatever --heads, --width and --layers say.
"""

from __future__ import annotations

import torch

from . import shapes
from .contest import Contest, Shape
from .modules import beside_patched

VOCABULARY = 1000
PEER = "transformers, unpatched"


def _encoder(name: str, model, shape: Shape) -> Contest:
    ids = torch.randint(3, VOCABULARY, (shape.batch, shape.tokens))
    call = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return beside_patched(name, model.eval(), call, list(model.parameters()), PEER)


def _bert(name: str, shape: Shape, layers: int, heads: int, hidden: int) -> Contest:
    from transformers import BertModel

    return _encoder(name, BertModel._from_config(shapes.bert(VOCABULARY, hidden, layers, heads)), shape)


def bert_tiny(shape: Shape, options) -> Contest:
    return _bert("BERT-tiny, patched", shape, 2, 2, 128)


def minilm(shape: Shape, options) -> Contest:
    return _bert("MiniLM-L6, patched", shape, 6, 12, 384)


def albert(shape: Shape, options) -> Contest:
    from transformers import AlbertModel

    return _encoder("ALBERT-base, patched", AlbertModel._from_config(shapes.albert_base(VOCABULARY)), shape)


def t5_small(shape: Shape, options) -> Contest:
    from transformers import T5EncoderModel

    model = T5EncoderModel._from_config(shapes.flan_t5_small(VOCABULARY))
    return _encoder("FLAN-T5-small encoder, patched", model, shape)


def mpnet(shape: Shape, options) -> Contest:
    from transformers import MPNetModel

    return _encoder("MPNet-base, patched", MPNetModel._from_config(shapes.mpnet_base(VOCABULARY)), shape)


def deberta_xsmall(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Model

    model = DebertaV2Model._from_config(shapes.deberta_v3(VOCABULARY, 384, 12, 6))
    return _encoder("DeBERTa-v3-xsmall, patched", model, shape)
