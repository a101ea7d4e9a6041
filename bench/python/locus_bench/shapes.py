# SPDX-License-Identifier: Apache-2.0
"""Configurations of the shapes of published models, with a vocabulary of any size. Weights are random, dropout is off."""

from __future__ import annotations

_NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
MOST_TOKENS = 512  # of models with learned positions


def bert(vocabulary: int, hidden: int, layers: int, heads: int):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=MOST_TOKENS,
        **_NO_DROPOUT,
    )


def albert_base(vocabulary: int):
    from transformers import AlbertConfig

    return AlbertConfig(
        vocab_size=vocabulary, hidden_size=768, intermediate_size=3072, num_attention_heads=12, **_NO_DROPOUT
    )


def mpnet_base(vocabulary: int):
    from transformers import MPNetConfig

    return MPNetConfig(vocab_size=vocabulary, max_position_embeddings=MOST_TOKENS + 2, **_NO_DROPOUT)


def deberta_v3(vocabulary: int, hidden: int, layers: int, heads: int):
    from transformers import DebertaV2Config

    return DebertaV2Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=MOST_TOKENS,
        position_buckets=256,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        **_NO_DROPOUT,
    )


def t5(vocabulary: int, hidden: int, layers: int, heads: int, width: int = 64, **more):
    from transformers import T5Config

    sizes = dict(d_model=hidden, d_kv=width, d_ff=4 * hidden, num_layers=layers, num_heads=heads, dropout_rate=0.0)
    return T5Config(vocab_size=vocabulary, **{**sizes, **more})


def flan_t5_small(vocabulary: int, **more):
    return t5(vocabulary, 512, 8, 6, d_ff=1024, feed_forward_proj="gated-gelu", **more)


def opus_mt(vocabulary: int, **more):
    from transformers import MarianConfig

    return MarianConfig(
        vocab_size=vocabulary,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="swish",
        scale_embedding=True,
        **more,
    )
