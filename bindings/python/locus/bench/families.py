# SPDX-License-Identifier: Apache-2.0
"""Whole encoders of the shapes of small published checkpoints, patched beside unpatched.

Random weights, short vocabulary; the peer runs what transformers chooses by itself: SDPA where the family has it (BERT, MiniLM,
ALBERT), else its eager code. Shapes are the checkpoints' own, whatever --heads, --width and --layers say.
"""

from __future__ import annotations

import torch

from .contest import Contest, Shape
from .modules import beside_patched

VOCABULARY = 1000
PEER = "transformers, unpatched"


def _encoder(name: str, model, shape: Shape) -> Contest:
    ids = torch.randint(3, VOCABULARY, (shape.batch, shape.tokens))
    call = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return beside_patched(name, model.eval(), call, list(model.parameters()), PEER)


def _bert(name: str, shape: Shape, layers: int, heads: int, hidden: int) -> Contest:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return _encoder(name, BertModel._from_config(config), shape)


def bert_tiny(shape: Shape, options) -> Contest:
    return _bert("BERT-tiny, patched", shape, 2, 2, 128)


def minilm(shape: Shape, options) -> Contest:
    return _bert("MiniLM-L6, patched", shape, 6, 12, 384)


def albert(shape: Shape, options) -> Contest:
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(
        vocab_size=VOCABULARY,
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return _encoder("ALBERT-base, patched", AlbertModel._from_config(config), shape)


def t5_small(shape: Shape, options) -> Contest:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=512,
        d_kv=64,
        d_ff=1024,
        num_layers=8,
        num_heads=6,
        feed_forward_proj="gated-gelu",
        dropout_rate=0.0,
    )
    return _encoder("FLAN-T5-small encoder, patched", T5EncoderModel._from_config(config), shape)


def mpnet(shape: Shape, options) -> Contest:
    from transformers import MPNetConfig, MPNetModel

    config = MPNetConfig(vocab_size=VOCABULARY, max_position_embeddings=514, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return _encoder("MPNet-base, patched", MPNetModel._from_config(config), shape)


def deberta_xsmall(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=VOCABULARY,
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        intermediate_size=1536,
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
    return _encoder("DeBERTa-v3-xsmall, patched", DebertaV2Model._from_config(config), shape)
