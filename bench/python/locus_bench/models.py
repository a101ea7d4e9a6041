# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shape of DeBERTa-v3-base and T5-base, random weights, patched beside unpatched.

Dropout is off, so that what is timed is what was compared. ``--full-models`` gives them the 12 layers and the whole
vocabulary of the published checkpoints; else the vocabulary is short, because the gradient of an embedding that holds half
of all parameters would hide that of two layers.
"""

from __future__ import annotations

import torch

from . import shapes
from .contest import Contest, Shape
from .modules import beside_patched

BRIEF_VOCABULARY = 1000


def _vocabulary(options, published: int) -> int:
    return published if options.full_models else BRIEF_VOCABULARY


def _encoder(name: str, model, shape: Shape, options) -> Contest:
    ids = torch.randint(2, BRIEF_VOCABULARY, (shape.batch, shape.tokens))
    name = f"{name}, {options.layers} layer{'s' if options.layers > 1 else ''}"
    return beside_patched(name, model.eval(), {"input_ids": ids}, list(model.parameters()))


def deberta(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Model

    config = shapes.deberta_v3(_vocabulary(options, 128100), shape.hidden, options.layers, shape.heads)
    return _encoder("DeBERTa-v3 model", DebertaV2Model(config), shape, options)


def t5(shape: Shape, options) -> Contest:
    from transformers import T5EncoderModel

    config = shapes.t5(_vocabulary(options, 32128), shape.hidden, options.layers, shape.heads, shape.width)
    return _encoder("T5 encoder model", T5EncoderModel(config), shape, options)
