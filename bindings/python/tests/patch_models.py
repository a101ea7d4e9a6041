# SPDX-License-Identifier: Apache-2.0
"""Small random models of every family that locus.torch.patch knows, and inputs for them."""

import pytest
import torch
import transformers as hf

VOCABULARY = 97


NEW = int(hf.__version__.split(".")[0]) >= 5  # without head masks, BERT's relative positions, Transformer-XL


def seeded(make):
    """Random weights, the same for every call; norms and biases too, so that no gradient is trivially 0."""
    torch.manual_seed(11)
    model = make()
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.dim() < 2:
                parameter.add_(0.1 * torch.randn_like(parameter))
            elif "bias" in name or "rel" in name or "distance" in name:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    return model.eval()


def _small(**more):
    sizes = dict(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=96,
        pad_token_id=0,
    )
    return {**sizes, **more}


def deberta_v2(**more):
    config = dict(
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=16,
        max_relative_positions=-1,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
    )
    return seeded(lambda: hf.DebertaV2ForMaskedLM(hf.DebertaV2Config(**_small(**{**config, **more}))))


def deberta(**more):
    config = dict(relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=32)
    return seeded(lambda: hf.DebertaForMaskedLM(hf.DebertaConfig(**_small(**{**config, **more}))))


def _t5_config(kind, **more):
    sizes = dict(
        vocab_size=VOCABULARY,
        d_model=64,
        d_kv=16,
        d_ff=96,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        relative_attention_num_buckets=16,
        relative_attention_max_distance=32,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    return kind(**{**sizes, **more})


def t5(**more):
    return seeded(lambda: hf.T5ForConditionalGeneration(_t5_config(hf.T5Config, **more)))


def mt5(**more):
    return seeded(lambda: hf.MT5ForConditionalGeneration(_t5_config(hf.MT5Config, **more)))


def umt5(**more):
    return seeded(lambda: hf.UMT5ForConditionalGeneration(_t5_config(hf.UMT5Config, **more)))


def bert(attention="eager", **more):
    config = hf.BertConfig(**_small(attn_implementation=attention, **more))
    return seeded(lambda: (hf.BertLMHeadModel if config.is_decoder else hf.BertForMaskedLM)(config))


def roberta(attention="eager", **more):
    config = hf.RobertaConfig(**_small(attn_implementation=attention, pad_token_id=0, **more))
    return seeded(lambda: hf.RobertaForMaskedLM(config))


def electra(**more):
    return seeded(lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(**_small(embedding_size=64, **more))))


def albert(attention="eager", **more):
    config = hf.AlbertConfig(**_small(embedding_size=32, **more))
    config._attn_implementation = attention
    return seeded(lambda: hf.AlbertForMaskedLM(config))


def mpnet(**more):
    return seeded(lambda: hf.MPNetForMaskedLM(hf.MPNetConfig(**_small(**more))))


def transformer_xl(**more):
    pytest.importorskip("transformers.models.deprecated.transfo_xl", exc_type=ImportError)  # transformers 5 has it no more
    from transformers.models.deprecated.transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

    sizes = dict(
        vocab_size=VOCABULARY,
        cutoffs=[30, 60],
        d_model=64,
        d_embed=64,
        n_head=4,
        d_head=16,
        d_inner=96,
        n_layer=2,
        mem_len=20,
        clamp_len=15,
        div_val=2,
        dropout=0.0,
        dropatt=0.0,
    )
    return seeded(lambda: TransfoXLLMHeadModel(TransfoXLConfig(**{**sizes, **more})))


def xlnet(**more):
    sizes = dict(
        vocab_size=VOCABULARY, d_model=64, n_layer=2, n_head=4, d_inner=96, dropout=0.0, mem_len=24, use_mems_eval=True
    )
    return seeded(lambda: hf.XLNetLMHeadModel(hf.XLNetConfig(**{**sizes, **more})))


def _speech(**more):
    sizes = dict(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        conv_depthwise_kernel_size=3,
        hidden_dropout=0.0,
        activation_dropout=0.0,
        attention_dropout=0.0,
        feat_proj_dropout=0.0,
        conformer_conv_dropout=0.0,
        layerdrop=0.0,
        apply_spec_augment=False,
    )
    return {**sizes, **more}


def wav2vec2_conformer(**more):
    """The encoder alone: the convolutions before it would need long waves."""
    kind = hf.models.wav2vec2_conformer.modeling_wav2vec2_conformer.Wav2Vec2ConformerEncoder
    config = hf.Wav2Vec2ConformerConfig(
        **_speech(num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=4, max_source_positions=100, **more)
    )
    return seeded(lambda: kind(config))


def wav2vec2_bert(**more):
    config = hf.Wav2Vec2BertConfig(
        **_speech(
            feature_projection_input_dim=40,
            left_max_position_embeddings=8,
            right_max_position_embeddings=3,
            max_source_positions=100,
            **more,
        )
    )
    return seeded(lambda: hf.Wav2Vec2BertModel(config))


def tokens(batch, length, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, VOCABULARY, (batch, length), generator=generator)


def padding(batch, length):
    """1 = real. Item 0 is full, the others lose more and more of their tail."""
    lengths = torch.tensor([length - (length // 3) * b // max(batch - 1, 1) for b in range(batch)])
    return (torch.arange(length)[None] < lengths[:, None]).long()


def inputs(name, batch, length, padded):
    """Keyword arguments of a call, and which tokens are real [B,T] (of the decoder, where there is one)."""
    real = padding(batch, length) if padded else torch.ones(batch, length, dtype=torch.long)
    ids = tokens(batch, length)
    if name in ("t5", "mt5", "umt5"):
        target = length - 5
        call = dict(input_ids=ids * real, attention_mask=real, decoder_input_ids=tokens(batch, target, 4))
        if padded:
            call["decoder_attention_mask"] = padding(batch, target)
        return call, call.get("decoder_attention_mask", torch.ones(batch, target, dtype=torch.long))
    if name == "transformer_xl":
        return dict(input_ids=ids), torch.ones_like(ids)  # takes no mask
    if name == "wav2vec2_conformer":
        states = torch.randn(batch, length, 64, generator=torch.Generator().manual_seed(5))
        return dict(hidden_states=states, attention_mask=real.bool()), real
    if name == "wav2vec2_bert":
        states = torch.randn(batch, length, 40, generator=torch.Generator().manual_seed(5))
        return dict(input_features=states, attention_mask=real), real
    if name == "xlnet" and not padded:
        return dict(input_ids=ids), real
    return dict(input_ids=ids * real, attention_mask=real), real
