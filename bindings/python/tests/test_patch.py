# SPDX-License-Identifier: Apache-2.0
"""Patched models against the same models unpatched: hidden states, logits, parameter gradients."""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import patch_models as models  # noqa: E402
from patch_compare import compare, counted, repaired_transformer_xl  # noqa: E402, F401

CASES = {
    "deberta_v2": [
        {},
        dict(share_att_key=False),
        dict(pos_att_type=["c2p"]),
        dict(pos_att_type=["p2c"], share_att_key=False),
        dict(position_buckets=-1, max_relative_positions=12),
        dict(position_buckets=-1, max_relative_positions=200),
        dict(position_buckets=64),
        dict(relative_attention=False),
        dict(conv_kernel_size=3, conv_act="gelu"),
    ],
    "deberta": [{}, dict(pos_att_type=["c2p"]), dict(max_relative_positions=200), dict(relative_attention=False)],
    "t5": [{}, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)],
    "mt5": [{}],
    "umt5": [{}],
    "bert": [
        {},
        dict(attention="sdpa"),
        dict(position_embedding_type="relative_key"),
        dict(position_embedding_type="relative_key_query"),
        dict(is_decoder=True),
        dict(is_decoder=True, attention="sdpa"),
        dict(is_decoder=True, position_embedding_type="relative_key_query", use_cache=False),
    ],
    "roberta": [dict(attention="sdpa"), dict(position_embedding_type="relative_key")],
    "electra": [dict(position_embedding_type="relative_key_query")],
    "mpnet": [{}],
    "albert": [{}, dict(attention="sdpa"), dict(position_embedding_type="relative_key_query")],
    "transformer_xl": [{}, dict(same_length=False, mem_len=0), dict(pre_lnorm=True, untie_r=False)],
    "xlnet": [{}, dict(attn_type="uni"), dict(clamp_len=9), dict(bi_data=True)],
    "wav2vec2_conformer": [
        dict(position_embeddings_type="relative"),
        dict(position_embeddings_type="rotary"),
        dict(position_embeddings_type=None),
    ],
    "wav2vec2_bert": [
        dict(position_embeddings_type="relative_key"),
        dict(position_embeddings_type="relative"),
        dict(position_embeddings_type="rotary"),
        dict(add_adapter=True),
    ],
}


def _title(name, options):
    return "-".join([name] + [f"{key}={value}" for key, value in options.items()])


ALL = [pytest.param(name, options, id=_title(name, options)) for name, many in CASES.items() for options in many]


SAMPLE = os.environ.get("LOCUS_TEST_SAMPLE") == "1"


@pytest.mark.parametrize("padded", [True] if SAMPLE else [False, True], ids=lambda p: "padded" if p else "full")
@pytest.mark.parametrize("name, options", ALL)
def test_same_numbers(name, options, padded, counted):
    if models.NEW and "relative" in options.get("position_embedding_type", ""):
        pytest.skip("transformers 5 has no relative positions in BERT's family")
    model = getattr(models, name)(**options)
    # bi_data halves the batch; XLNet adds the two masks of "uni" in a way that wants a batch of one.
    batch = 4 if options.get("bi_data") else 1 if options.get("attn_type") == "uni" else 3
    call, real = models.inputs(name, batch, 29, padded)
    compare(model, call, real, counted)
