# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shape of DeBERTa-v3-base and T5-base, random weights, patched beside unpatched.

Dropout is off, so that what is timed is what was compared. ``--full-models`` gives them the 12 layers and the whole
vocabulary of the published checkpoints; else the vocabulary is short, because the gradient of an embedding that holds half
of all parameters would hide that of two layers.
"""

from __future__ import annotations

import torch

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
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=_vocabulary(options, 128100),
        hidden_size=shape.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        max_position_embeddings=512,
        position_buckets=256,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return _encoder("DeBERTa-v3 model", DebertaV2Model(config), shape, options)


def t5(shape: Shape, options) -> Contest:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=_vocabulary(options, 32128),
        d_model=shape.hidden,
        d_kv=shape.width,
        d_ff=4 * shape.hidden,
        num_layers=options.layers,
        num_heads=shape.heads,
        dropout_rate=0.0,
    )
    return _encoder("T5 encoder model", T5EncoderModel(config), shape, options)
