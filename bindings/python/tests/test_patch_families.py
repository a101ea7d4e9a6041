# SPDX-License-Identifier: Apache-2.0
"""Families that locus.torch.patch learnt later, each by a small random model: states and parameter gradients."""

import ast
import importlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
hf = pytest.importorskip("transformers")

import patch_models as models  # noqa: E402
from patch_compare import attention_modules, check_gradients, counted, errors, loss_of  # noqa: E402, F401

import locus.torch  # noqa: E402

patch = importlib.import_module("locus.torch.patch")

FORWARD = 1e-5  # of the largest element

T5_LIKE = dict(
    vocab_size=97,
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=2,
    num_decoder_layers=2,
    num_heads=4,
    dropout_rate=0.0,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=16,
    feed_forward_proj="gated-gelu",
    pad_token_id=0,
    decoder_start_token_id=0,
)
PICTURE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8)
SWIN = dict(image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, drop_path_rate=0.0)
SPEECH = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, layerdrop=0.0)
SEAMLESS = dict(
    hidden_size=32,
    speech_encoder_layers=2,
    speech_encoder_attention_heads=4,
    speech_encoder_intermediate_size=48,
    speech_encoder_dropout=0.0,
    conv_depthwise_kernel_size=3,
    adaptor_dropout=0.0,
)


def module(folder, file, name):
    return getattr(importlib.import_module(f"transformers.models.{folder}.{file}"), name)


def config(folder, name, **sizes):
    return getattr(importlib.import_module(f"transformers.models.{folder}.configuration_{folder}"), name)(**sizes)


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


def eager(made):
    made._attn_implementation = "eager"
    return made


# ---- texts ----


def switch_transformers():
    sizes = dict(T5_LIKE, num_sparse_encoder_layers=0, num_sparse_decoder_layers=0)
    made = config("switch_transformers", "SwitchTransformersConfig", **sizes)
    return hf.SwitchTransformersModel(made), _both_sides()


def pop2piano():
    made = config("pop2piano", "Pop2PianoConfig", **dict(T5_LIKE, composer_vocab_size=3))
    call = dict(inputs_embeds=noise(2, 21, 32), attention_mask=models.padding(2, 21))
    return hf.Pop2PianoForConditionalGeneration(made), dict(call, decoder_input_ids=models.tokens(2, 17, 4))


def longt5():
    made = config("longt5", "LongT5Config", **dict(T5_LIKE, local_radius=4))
    return hf.LongT5Model(made), _both_sides()


def _both_sides():
    real = models.padding(2, 21)
    ids = models.tokens(2, 21) * real
    return dict(input_ids=ids, attention_mask=real, decoder_input_ids=models.tokens(2, 17, 4))


def udop():
    sizes = dict(T5_LIKE, image_size=16, patch_size=8, relative_attention_num_buckets=32, relative_attention_max_distance=128)
    made = config("udop", "UdopConfig", **sizes)
    boxes = torch.rand(2, 21, 4, generator=torch.Generator().manual_seed(3))
    pictures = dict(pixel_values=noise(2, 3, 16, 16), bbox=boxes)
    return hf.UdopForConditionalGeneration(made), dict(_both_sides(), **pictures)


def _by_key(ids):
    """Padding before, between and behind: BLOOM counts around it."""
    real = torch.ones_like(ids)
    real[0, :4] = real[1, -3:] = 0
    real[1, 7] = 0
    return dict(input_ids=ids, attention_mask=real, use_cache=False)


def bloom():
    made = config("bloom", "BloomConfig", vocab_size=97, hidden_size=32, n_layer=2, n_head=4)
    return hf.BloomModel(made), _by_key(models.tokens(2, 21))


def mpt():
    made = config("mpt", "MptConfig", vocab_size=97, d_model=32, n_layers=2, n_heads=4, max_seq_len=32, expansion_ratio=2)
    return hf.MptModel(made), _by_key(models.tokens(2, 21))


def falcon(**more):
    sizes = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True)
    made = config("falcon", "FalconConfig", **{**sizes, **more})
    return hf.FalconModel(eager(made)), _by_key(models.tokens(2, 21))


def falcon_groups():
    return falcon(new_decoder_architecture=True, num_kv_heads=2)


def vits():
    kind = module("vits", "modeling_vits", "VitsEncoder")
    sizes = dict(vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, window_size=3, ffn_dim=48)
    made = config("vits", "VitsConfig", **sizes, layerdrop=0.0)
    real = models.padding(2, 21)
    return kind(made), dict(hidden_states=noise(2, 21, 32), attention_mask=real, padding_mask=real[..., None].float())


# ---- pictures ----


def sam():
    kind = module("sam", "modeling_sam", "SamVisionEncoder")
    made = eager(hf.SamVisionConfig(**PICTURE, window_size=3, global_attn_indexes=[1], output_channels=8, mlp_dim=48))
    return kind(made), dict(pixel_values=noise(2, 3, 64, 64))


def sam_sdpa():
    kind = module("sam", "modeling_sam", "SamVisionEncoder")
    made = hf.SamVisionConfig(**PICTURE, window_size=3, global_attn_indexes=[1], output_channels=8, mlp_dim=48)
    made._attn_implementation = "sdpa"
    return kind(made), dict(pixel_values=noise(2, 3, 64, 64))


def sam_hq():
    kind = module("sam_hq", "modeling_sam_hq", "SamHQVisionEncoder")
    sizes = dict(PICTURE, window_size=3, global_attn_indexes=[1], output_channels=8, mlp_dim=48)
    return kind(eager(config("sam_hq", "SamHQVisionConfig", **sizes))), dict(pixel_values=noise(2, 3, 64, 64))


def got_ocr2():
    kind = module("got_ocr2", "modeling_got_ocr2", "GotOcr2VisionEncoder")
    sizes = dict(PICTURE, window_size=3, global_attn_indexes=[1], output_channels=8, mlp_dim=48)
    return kind(eager(config("got_ocr2", "GotOcr2VisionConfig", **sizes))), dict(pixel_values=noise(2, 3, 64, 64))


def seggpt():
    made = hf.SegGptConfig(**dict(PICTURE, image_size=[64, 32], mlp_dim=48, drop_path_rate=0.0), merge_index=0)
    made.intermediate_hidden_state_indices = [1]
    images = {name: noise(1, 3, 32, 32) for name in ("pixel_values", "prompt_pixel_values", "prompt_masks")}
    return hf.SegGptModel(made), images


def vitdet():
    made = hf.VitDetConfig(**PICTURE, pretrain_image_size=64, use_relative_position_embeddings=True, window_size=3)
    made.window_block_indices = [0]
    return hf.VitDetModel(made), dict(pixel_values=noise(2, 3, 64, 64))


def swin():
    return hf.SwinModel(eager(hf.SwinConfig(**SWIN))), dict(pixel_values=noise(2, 3, 64, 64))


def swinv2():
    return hf.Swinv2Model(eager(hf.Swinv2Config(**SWIN))), dict(pixel_values=noise(2, 3, 64, 64))


def swin2sr():
    made = hf.Swin2SRConfig(**dict(SWIN, image_size=16, patch_size=1, num_heads=[2, 4]))
    return hf.Swin2SRModel(eager(made)), dict(pixel_values=noise(2, 3, 16, 16))


def donut():
    return hf.DonutSwinModel(eager(hf.DonutSwinConfig(**SWIN))), dict(pixel_values=noise(2, 3, 64, 64))


def maskformer():
    kind = module("maskformer", "modeling_maskformer_swin", "MaskFormerSwinModel")
    made = module("maskformer", "configuration_maskformer_swin", "MaskFormerSwinConfig")(**SWIN)
    return kind(eager(made)), dict(pixel_values=noise(2, 3, 64, 64))


def clap():
    sizes = dict(spec_size=64, patch_size=4, patch_stride=[4, 4], num_mel_bins=16, window_size=4, hidden_size=32)
    sizes.update(patch_embeds_hidden_size=16, depths=[2, 2], num_attention_heads=[2, 4], drop_path_rate=0.0)
    return hf.ClapAudioModel(eager(hf.ClapAudioConfig(**sizes))), dict(input_features=noise(2, 1, 256, 16))


def beit():
    made = hf.BeitConfig(**PICTURE, intermediate_size=48, use_relative_position_bias=True, drop_path_rate=0.0)
    return hf.BeitModel(eager(made)), dict(pixel_values=noise(2, 3, 64, 64))


def data2vec_vision():
    made = hf.Data2VecVisionConfig(**PICTURE, intermediate_size=48, use_relative_position_bias=True, drop_path_rate=0.0)
    return hf.Data2VecVisionModel(eager(made)), dict(pixel_values=noise(2, 3, 64, 64))


def levit():
    sizes = dict(hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8])
    sizes.update(down_ops=[["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]], drop_path_rate=0)
    return hf.LevitModel(hf.LevitConfig(image_size=112, **sizes)), dict(pixel_values=noise(2, 3, 112, 112))


# ---- speech ----


def fastspeech2_conformer():
    kind = module("fastspeech2_conformer", "modeling_fastspeech2_conformer", "FastSpeech2ConformerEncoder")
    made = config("fastspeech2_conformer", "FastSpeech2ConformerConfig", hidden_size=32, vocab_size=30)
    part = dict(made.encoder_config, num_attention_heads=4, layers=2, linear_units=48, kernel_size=3)
    real = models.padding(2, 21)
    return kind(made, part, use_encoder_input_layer=True), dict(input_tensor=models.tokens(2, 21) % 30, attention_mask=real[:, None])


def wavlm():
    kind = module("wavlm", "modeling_wavlm", "WavLMEncoder")
    made = hf.WavLMConfig(**SPEECH, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=4, num_buckets=16, max_bucket_distance=20)
    return kind(made), dict(hidden_states=noise(2, 29, 32), attention_mask=models.padding(2, 29).bool())


def speecht5():
    sizes = dict(hidden_size=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=48, decoder_layers=2)
    sizes.update(decoder_attention_heads=4, decoder_ffn_dim=48, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
    made = config("speecht5", "SpeechT5Config", **sizes, encoder_max_relative_position=6)
    call = dict(input_values=noise(2, 21, 32), attention_mask=models.padding(2, 21), decoder_input_values=noise(2, 17, 32))
    return hf.SpeechT5Model(made), dict(call, use_cache=False)


def sew_d(**more):
    kind = module("sew_d", "modeling_sew_d", "SEWDTransformerEncoder")
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, position_buckets=8)
    made = config("sew_d", "SEWDConfig", **sizes, max_position_embeddings=32, **more)
    return kind(made), dict(hidden_states=noise(2, 29, 32), attention_mask=models.padding(2, 29))


def sew_d_own_projections():
    return sew_d(share_att_key=False, pos_att_type=("c2p",))


def seamless_m4t():
    kind = module("seamless_m4t", "modeling_seamless_m4t", "SeamlessM4TConformerEncoder")
    made = config("seamless_m4t", "SeamlessM4TConfig", **SEAMLESS, max_source_positions=40)
    return kind(made), dict(hidden_states=noise(2, 29, 32), attention_mask=models.padding(2, 29))


def seamless_m4t_v2():
    kind = module("seamless_m4t_v2", "modeling_seamless_m4t_v2", "SeamlessM4Tv2ConformerEncoder")
    sides = dict(left_max_position_embeddings=6, right_max_position_embeddings=2)
    made = config("seamless_m4t_v2", "SeamlessM4Tv2Config", **SEAMLESS, **sides)
    made._attn_implementation = "sdpa"  # the eager one of transformers 5.23 adds booleans to scores: padding stays visible
    return kind(made), dict(hidden_states=noise(2, 29, 32), attention_mask=models.padding(2, 29))


PARTLY = ("longt5", "udop")  # their decoders
FAMILIES = [
    switch_transformers,
    pop2piano,
    longt5,
    udop,
    bloom,
    mpt,
    falcon,
    falcon_groups,
    vits,
    sam,
    sam_sdpa,
    sam_hq,
    got_ocr2,
    seggpt,
    vitdet,
    swin,
    swinv2,
    swin2sr,
    donut,
    maskformer,
    clap,
    beit,
    data2vec_vision,
    levit,
    fastspeech2_conformer,
    wavlm,
    speecht5,
    sew_d,
    sew_d_own_projections,
    seamless_m4t,
    seamless_m4t_v2,
]


def real(state, mask):
    """Padded queries that see nothing are 0 with Locus and a mean of all values with Hugging Face: nobody reads them."""
    return state if mask is None or state.shape[:2] != mask.shape else state[mask.bool()]


def run(model, call):
    model.zero_grad()
    call = {name: value.clone() if torch.is_tensor(value) else value for name, value in call.items()}  # WavLM writes there
    result = model(**call, return_dict=True)
    found = [result] if torch.is_tensor(result) else [result[key] for key in ("last_hidden_state", "logits") if key in result]
    states = [real(state, call.get("attention_mask")) for state in found]
    loss_of(states).backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return [state.detach() for state in states], grads


@pytest.mark.parametrize("make", FAMILIES, ids=lambda make: make.__name__)
def test_same_numbers(make, counted):
    call = None

    def made():
        nonlocal call
        model, call = make()
        return model

    model = models.seeded(made)
    want, want_grads = run(model, call)
    if models.NEW and make is beit:
        with pytest.raises(ValueError, match="BeitAttention: forward takes|BeitAttention: no adapter"):
            locus.torch.patch(model)
        return
    with locus.torch.patched(model, strict=make.__name__ not in PARTLY) as report:
        assert counted.calls == 0
        got, got_grads = run(model, call)
    assert counted.calls == attention_modules(report) > 0
    assert want and errors(got, want) < FORWARD
    check_gradients(got_grads, want_grads)


@pytest.mark.parametrize("make", [hf.BloomForCausalLM, hf.MptForCausalLM, hf.FalconForCausalLM], ids=lambda kind: kind.__name__)
def test_caches(make, counted):
    """Step by step behind padding, as generate does it."""
    small = {"BloomForCausalLM": bloom, "MptForCausalLM": mpt, "FalconForCausalLM": falcon}[make.__name__]
    model = models.seeded(lambda: make(small()[0].config))
    ids = models.tokens(2, 9)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    how = dict(max_new_tokens=8, do_sample=False, output_logits=True, return_dict_in_generate=True, pad_token_id=0, eos_token_id=None)
    want = model.generate(ids, attention_mask=mask, **how)
    with locus.torch.patched(model, strict=True):
        got = model.generate(ids, attention_mask=mask, **how)
    assert counted.calls == 8 * 2  # steps, layers
    assert torch.equal(got.sequences, want.sequences)
    assert errors(got.logits, want.logits) < FORWARD


# ---- refusals ----


@pytest.mark.parametrize(
    "options, attention, why",
    [(dict(alibi=False), "eager", "alibi=False turns"), ({}, "sdpa", "'sdpa' joins ALiBi and mask")],
)
def test_falcon_is_refused_by_name(options, attention, why):
    model, _ = falcon(**options)
    model.config._attn_implementation = attention
    with pytest.raises(ValueError, match=f"FalconAttention: {why}"):
        locus.torch.patch(model)
    assert not any(locus.torch.is_patched(part) for part in model.modules())


def test_encoders_with_biases_of_boxes_are_left():
    model, _ = udop()
    report = locus.torch.patch(model)
    assert all(entry.name.startswith("decoder.") for entry in report.swapped)
    assert {entry.note for entry in report.left} == {"the encoder adds biases made of boxes, expected one made of distances"}


def test_shared_biases_are_refused_by_name():
    sizes = dict(PICTURE, intermediate_size=48, use_shared_relative_position_bias=True)
    model = hf.Data2VecVisionModel(eager(hf.Data2VecVisionConfig(**sizes)))
    with pytest.raises(ValueError, match="Data2VecVisionSelfAttention: use_shared_relative_position_bias"):
        locus.torch.patch(model)


@pytest.mark.parametrize("make", [sam, vits, wavlm, swin], ids=lambda make: make.__name__)
def test_weights_come_from_the_original(make):
    model, call = make()
    model = models.seeded(lambda: model)
    model.config._attn_implementation = "eager"
    want = model(**{k: v.clone() for k, v in call.items()}, output_attentions=True, return_dict=True)
    with locus.torch.patched(model):
        got = model(**{k: v.clone() for k, v in call.items()}, output_attentions=True, return_dict=True)
    if torch.is_tensor(want) or want.get("attentions") is None:
        pytest.skip(f"this part of {make.__name__} does not hand weights on in this transformers")
    assert len(got.attentions) == len(want.attentions)
    for mine, theirs in zip(got.attentions, want.attentions):
        assert torch.equal(mine, theirs)


# ---- docs/python-patch.md ----

ROOT = Path(__file__).resolve().parents[3]
# Family, modeling files below transformers.models, classes of its attention; then what is left out, or why nothing is taken.
LISTED = [
    ("DeBERTa", "deberta.modeling_deberta", "DisentangledSelfAttention", "`talking_head`"),
    ("DeBERTa-v2, v3", "deberta_v2.modeling_deberta_v2", "DisentangledSelfAttention", ""),
    ("T5", "t5.modeling_t5", "T5Attention", ""),
    ("mT5", "mt5.modeling_mt5", "MT5Attention", ""),
    ("UMT5", "umt5.modeling_umt5", "UMT5Attention", ""),
    ("Switch", "switch_transformers.modeling_switch_transformers", "SwitchTransformersAttention", ""),
    ("Pop2Piano", "pop2piano.modeling_pop2piano", "Pop2PianoAttention", ""),
    (
        "LongT5",
        "longt5.modeling_longt5",
        "LongT5Attention LongT5LocalAttention LongT5TransientGlobalAttention",
        "the encoder: its local attention cuts the text into blocks, and biases of global tokens are no function of a distance",
    ),
    (
        "UDOP",
        "udop.modeling_udop",
        "UdopAttention",
        "the encoder, which adds biases by distance, x and y of boxes: no scheme sums three",
    ),
    ("BERT", "bert.modeling_bert", "BertSelfAttention BertSdpaSelfAttention", "relative keys are in transformers 4 only"),
    ("ALBERT", "albert.modeling_albert", "AlbertAttention AlbertSdpaAttention", "the same"),
    ("MPNet", "mpnet.modeling_mpnet", "MPNetSelfAttention", ""),
    ("XLNet", "xlnet.modeling_xlnet", "XLNetRelativeAttention", ""),
    ("Transformer-XL", "deprecated.transfo_xl.modeling_transfo_xl", "RelPartialLearnableMultiHeadAttn", ""),
    ("BLOOM", "bloom.modeling_bloom", "BloomAttention", ""),
    ("MPT", "mpt.modeling_mpt", "MptAttention", ""),
    (
        "Falcon",
        "falcon.modeling_falcon",
        "FalconAttention",
        "rotary positions; `sdpa` with ALiBi, which joins it with the mask",
    ),
    (
        "ProphetNet",
        "prophetnet.modeling_prophetnet",
        "ProphetNetNgramSelfAttention",
        "several streams of n-grams with buckets made of position ids outside",
    ),
    (
        "CPM-Ant",
        "cpmant.modeling_cpmant",
        "CpmAntAttention",
        "buckets depend on segments, too, and are made outside as [B,H,n,n]",
    ),
    ("Nezha", "deprecated.nezha.modeling_nezha", "NezhaSelfAttention", "not tried"),
    (
        "Mega",
        "deprecated.mega.modeling_mega",
        "MegaMovingAverageGatedAttention",
        "gates and a moving average inside its attention",
    ),
    (
        "LayoutLMv2",
        "layoutlmv2.modeling_layoutlmv2",
        "LayoutLMv2SelfAttention",
        "adds biases by distance, x and y of boxes: no scheme sums three",
    ),
    ("LayoutLMv3", "layoutlmv3.modeling_layoutlmv3", "LayoutLMv3SelfAttention", "the same"),
    ("Graphormer", "deprecated.graphormer.modeling_graphormer", "GraphormerMultiheadAttention", "biases by paths in a graph"),
    ("Wav2Vec2-Conformer", "wav2vec2_conformer.modeling_wav2vec2_conformer", "Wav2Vec2ConformerSelfAttention", ""),
    ("Wav2Vec2-BERT", "wav2vec2_bert.modeling_wav2vec2_bert", "Wav2Vec2BertSelfAttention", ""),
    ("WavLM", "wavlm.modeling_wavlm", "WavLMAttention", ""),
    (
        "SeamlessM4T",
        "seamless_m4t.modeling_seamless_m4t",
        "SeamlessM4TConformerSelfAttention",
        "attention without positions of its text",
    ),
    ("SeamlessM4T v2", "seamless_m4t_v2.modeling_seamless_m4t_v2", "SeamlessM4Tv2ConformerSelfAttention", "the same"),
    ("FastSpeech2Conformer", "fastspeech2_conformer.modeling_fastspeech2_conformer", "FastSpeech2ConformerAttention", ""),
    ("VITS", "vits.modeling_vits", "VitsAttention", ""),
    ("SpeechT5", "speecht5.modeling_speecht5", "SpeechT5Attention", ""),
    ("SEW-D", "sew_d.modeling_sew_d", "DisentangledSelfAttention", ""),
    ("MCTCT", "deprecated.mctct.modeling_mctct", "MCTCTSelfAttention", "not tried"),
    ("CLAP", "clap.modeling_clap", "ClapAudioSelfAttention", "its text, which has no positions in attention"),
    (
        "SAM",
        "sam.modeling_sam",
        "SamVisionAttention SamVisionSdpaAttention",
        "its mask decoder, which has no positions in attention",
    ),
    ("SAM-HQ", "sam_hq.modeling_sam_hq", "SamHQVisionAttention SamHQVisionSdpaAttention", "the same"),
    ("GOT-OCR2", "got_ocr2.modeling_got_ocr2", "GotOcr2VisionAttention", ""),
    ("SegGPT", "seggpt.modeling_seggpt", "SegGptAttention", ""),
    ("ViTDet", "vitdet.modeling_vitdet", "VitDetAttention", ""),
    ("Swin", "swin.modeling_swin", "SwinSelfAttention SwinAttention", ""),
    ("Donut's Swin", "donut.modeling_donut_swin", "DonutSwinSelfAttention", ""),
    ("MaskFormer's Swin", "maskformer.modeling_maskformer_swin", "MaskFormerSwinSelfAttention", ""),
    ("Swin v2", "swinv2.modeling_swinv2", "Swinv2SelfAttention", ""),
    ("Swin2SR", "swin2sr.modeling_swin2sr", "Swin2SRSelfAttention", ""),
    (
        "BEiT",
        "beit.modeling_beit",
        "BeitSelfAttention BeitSdpaSelfAttention BeitAttention",
        "transformers 5, where the bias comes as a mask [1,H,n,n]; a bias that the layers share",
    ),
    (
        "Data2Vec-Vision",
        "data2vec.modeling_data2vec_vision",
        "Data2VecVisionSelfAttention Data2VecVisionSdpaSelfAttention",
        "a bias that the layers share",
    ),
    ("LeViT", "levit.modeling_levit", "LevitAttention LevitAttentionSubsample", ""),
    ("EfficientFormer", "deprecated.efficientformer.modeling_efficientformer", "EfficientFormerSelfAttention", "not tried"),
    ("DiNAT", "dinat.modeling_dinat", "NeighborhoodAttention", "each query has a window of its own in two dimensions"),
    ("NAT", "deprecated.nat.modeling_nat", "NeighborhoodAttention", "the same"),
]


def verdict(file, classes):
    """By what patch knows, so that a table that says otherwise is stale."""
    known = {name for folder, modeling, name in patch.KNOWN if f"{folder}.{modeling}" == file}
    names = set(classes.split())
    return "taken" if names <= known else "in part" if names & known else "no"


def table():
    lines = ["| family | classes | taken | left out, or why not |", "|---|---|---|---|"]
    for family, file, classes, remark in LISTED:
        names = ", ".join(f"`{name}`" for name in classes.split())
        lines.append(f"| {family} | {names} | {verdict(file, classes)} | {remark} |")
    return lines


def test_the_table_is_fresh():
    assert len(LISTED) == 51
    text = (ROOT / "docs/python-patch.md").read_text(encoding="utf-8").splitlines()
    found = [line for line in text if line.startswith("|")]
    assert found == table(), "docs/python-patch.md should have:\n" + "\n".join(table())


def defined(file):
    """Classes of a modeling file, without importing what it may need; None: this transformers has no such file."""
    path = Path(hf.__file__).parent / "models" / (file.replace(".", "/") + ".py")
    if not path.exists():
        return None
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("family, file, classes, remark", LISTED, ids=[listed[0] for listed in LISTED])
def test_listed_classes_exist_and_are_named(family, file, classes, remark):
    present = defined(file)
    if present is None:
        pytest.skip(f"this transformers has no {file}")
    assert present & set(classes.split())
    for name in set(classes.split()) - {known for _, _, known in patch.KNOWN}:
        assert name.lower().endswith(("attention", "attn"))  # what is not taken is reported by name
    assert verdict(file, classes) != "no" or remark
