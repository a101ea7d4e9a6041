# SPDX-License-Identifier: Apache-2.0
"""Modules of transformers, projections included, patched beside unpatched."""

from __future__ import annotations

import copy

import torch

import locus.torch

from .contest import Contest, Shape


def beside_patched(name: str, module, call: dict, inputs: list, peer: str = "transformers, eager") -> Contest:
    """The same module unpatched and patched; both hold the same parameters."""
    double = copy.deepcopy(module).double()
    swapped = copy.deepcopy(module, {id(x): x for x in module.parameters()})
    locus.torch.patch(swapped, strict=True)

    def exact():
        with torch.no_grad():
            wide = {key: x.double() if torch.is_tensor(x) and x.is_floating_point() else x for key, x in call.items()}
            return double(**wide)[0]

    contest = Contest(name, inputs, exact)
    contest.runs["locus"] = lambda: swapped(**call)[0]
    contest.runs[peer] = lambda: module(**call)[0]
    return contest


def _module(name: str, module, call: dict) -> Contest:
    given = [x for x in call.values() if torch.is_tensor(x) and x.requires_grad]
    return beside_patched(name, module.eval(), call, given + list(module.parameters()))


def deberta(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

    config = DebertaV2Config(
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        share_att_key=True,
        max_position_embeddings=512,
    )
    module = DisentangledSelfAttention(config)
    call = dict(
        hidden_states=torch.randn(shape.batch, shape.tokens, shape.hidden, requires_grad=True),
        attention_mask=torch.ones(shape.batch, 1, shape.tokens, shape.tokens, dtype=torch.bool),
        rel_embeddings=torch.randn(512, shape.hidden, requires_grad=True),
    )
    return _module("DeBERTa-v3 module", module, call)


def bert(shape: Shape, options) -> Contest:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertSelfAttention

    config = BertConfig(
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        position_embedding_type="relative_key_query",
        max_position_embeddings=max(512, shape.tokens),
    )
    call = dict(hidden_states=torch.randn(shape.batch, shape.tokens, shape.hidden, requires_grad=True))
    return _module("BERT relative_key_query module", BertSelfAttention(config), call)


def conformer(shape: Shape, options) -> Contest:
    from transformers import Wav2Vec2ConformerConfig
    from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerSelfAttention

    config = Wav2Vec2ConformerConfig(
        hidden_size=shape.hidden, num_attention_heads=shape.heads, position_embeddings_type="relative"
    )
    call = dict(
        hidden_states=torch.randn(shape.batch, shape.tokens, shape.hidden, requires_grad=True),
        relative_position_embeddings=torch.randn(1, 2 * shape.tokens - 1, shape.hidden),
    )
    return _module("Conformer module", Wav2Vec2ConformerSelfAttention(config), call)


def xlnet(shape: Shape, options) -> Contest:
    from transformers import XLNetConfig
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    module = XLNetRelativeAttention(XLNetConfig(d_model=shape.hidden, n_head=shape.heads, dropout=0.0))
    for name in ("q", "k", "v", "o", "r", "r_w_bias", "r_r_bias"):
        torch.nn.init.normal_(getattr(module, name), std=shape.hidden**-0.5)
    call = dict(
        h=torch.randn(shape.tokens, shape.batch, shape.hidden, requires_grad=True),
        g=None,
        attn_mask_h=None,
        attn_mask_g=None,
        r=torch.randn(2 * shape.tokens, 1, shape.hidden).expand(-1, shape.batch, -1),
        seg_mat=None,
    )
    return _module("XLNet module", module, call)
