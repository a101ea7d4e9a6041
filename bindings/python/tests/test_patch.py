# SPDX-License-Identifier: Apache-2.0
"""Patched models against the same models unpatched: hidden states, logits, parameter gradients."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import patch_models as models  # noqa: E402

import locus.torch  # noqa: E402
import locus.torch.adapter  # noqa: E402

FORWARD = 2e-5  # of the largest element: two float32 computations of the same numbers, a few layers deep
GRADIENT = 1e-4  # of the largest gradient in the model

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
FIRST = [pytest.param(name, many[0], id=name) for name, many in CASES.items()]


def hidden_states(result):
    """Every tensor [B,T,E] of a result, those of the decoder where there is one."""
    states = result.get("decoder_hidden_states") or result.get("hidden_states")
    return list(states) + [result[key] for key in ("logits", "last_hidden_state", "prediction_scores") if key in result]


def errors(got, want, real):
    """The largest difference on real tokens, relative to the largest element."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        seen = real.bool() if a.shape[1] == real.shape[1] else torch.ones(a.shape[:2], dtype=torch.bool)
        worst = max(worst, float((a - b)[seen].abs().max() / b[seen].abs().max()))
    return worst


def loss_of(states, real):
    """Sums that no hidden state can leave unnoticed, over real tokens."""
    total = 0.0
    for i, state in enumerate(states):
        seen = real.bool() if state.shape[1] == real.shape[1] else torch.ones(state.shape[:2], dtype=torch.bool)
        weight = torch.randn(state.shape, generator=torch.Generator().manual_seed(i))
        total = total + (state * weight)[seen].mean()
    return total


def run(model, call, real):
    """Hidden states and, by name, parameter gradients."""
    model.zero_grad()
    result = model(**call, output_hidden_states=True, return_dict=True)
    states = hidden_states(result)
    loss_of(states, real).backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return [state.detach() for state in states], grads


class Counted:
    """How often patched modules came to Locus: a test that compares the original with itself shows nothing."""

    def __init__(self, monkeypatch):
        self.calls = 0
        original = locus.torch.adapter.attend

        def attend(*args, **kwargs):
            self.calls += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(locus.torch.adapter, "attend", attend)


@pytest.fixture
def counted(monkeypatch):
    return Counted(monkeypatch)


def attention_modules(report):
    return sum("ttention" in entry.kind or "Attn" in entry.kind for entry in report.swapped)


def compare(model, call, real, counted):
    want, want_grads = run(model, call, real)
    with locus.torch.patched(model, strict=True) as report:
        got, got_grads = run(model, call, real)
    assert counted.calls >= attention_modules(report) > 0
    assert errors(got, want, real) < FORWARD
    assert got_grads.keys() == want_grads.keys()
    largest = max(float(g.abs().max()) for g in want_grads.values())
    for name, grad in want_grads.items():
        assert float((got_grads[name] - grad).abs().max()) < GRADIENT * largest, name


@pytest.fixture(autouse=True)
def repaired_transformer_xl(monkeypatch):
    """TransfoXLModel.forward of transformers 4.57.6 calls tensor.type_as(dtype=...), which torch does not know."""
    original = torch.Tensor.type_as

    def type_as(self, other=None, dtype=None):
        return self.to(dtype) if other is None else original(self, other)

    monkeypatch.setattr(torch.Tensor, "type_as", type_as)


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name, options", ALL)
def test_same_numbers(name, options, padded, counted):
    model = getattr(models, name)(**options)
    # bi_data halves the batch; XLNet adds the two masks of "uni" in a way that wants a batch of one.
    batch = 4 if options.get("bi_data") else 1 if options.get("attn_type") == "uni" else 3
    call, real = models.inputs(name, batch, 29, padded)
    compare(model, call, real, counted)
