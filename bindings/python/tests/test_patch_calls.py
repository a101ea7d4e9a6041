# SPDX-License-Identifier: Apache-2.0
"""Patched models in all the ways that models are called: caches, masks, dropout, types; what is handed back."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import patch_models as models  # noqa: E402
from patch_compare import (  # noqa: E402, F401
    FORWARD,
    GRADIENT,
    attention_modules,
    both,
    check_gradients,
    counted,
    errors,
    real_states,
    repaired_transformer_xl,
    run,
)

import locus.torch  # noqa: E402

FIRST = [
    pytest.param(name, dict(position_embeddings_type="relative") if "conformer" in name else {}, id=name)
    for name in (
        "deberta_v2",
        "deberta",
        "t5",
        "mt5",
        "umt5",
        "bert",
        "roberta",
        "electra",
        "mpnet",
        "transformer_xl",
        "xlnet",
        "wav2vec2_conformer",
        "wav2vec2_bert",
    )
]


# ---- caches and memories ----


@pytest.mark.parametrize("name", ["t5", "umt5"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generation(name, cache, counted):
    model = getattr(models, name)()
    call, _ = models.inputs(name, 3, 23, padded=True)
    settings = dict(max_new_tokens=9, min_new_tokens=9, do_sample=False, output_logits=True, return_dict_in_generate=True)
    settings.update(cache_implementation="static" if cache == "static" else None, disable_compile=True)

    def generate(model):
        return model.generate(input_ids=call["input_ids"], attention_mask=call["attention_mask"], **settings)

    got, want = both(model, generate)
    assert torch.equal(got.sequences, want.sequences)
    assert errors(got.logits, want.logits) < FORWARD
    assert counted.calls >= 9 * 4


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["absolute", "relative_key", "relative_key_query"])
def test_decoder_steps(kind, attention, counted):
    if models.NEW and kind != "absolute":
        pytest.skip("transformers 5 has no relative positions in BERT's family")
    model = models.bert(is_decoder=True, position_embedding_type=kind, attention=attention)
    ids = models.tokens(2, 12)

    def steps(model):
        """Seven tokens, then two, then one at a time."""
        past, logits = None, []
        for first, last in ((0, 7), (7, 9), (9, 10), (10, 11), (11, 12)):
            mask = torch.ones(2, last, dtype=torch.long)
            result = model(ids[:, first:last], attention_mask=mask, past_key_values=past, use_cache=True)
            past = result.past_key_values
            logits.append(result.logits)
        return logits

    got, want = both(model, steps)
    assert errors(got, want) < FORWARD
    # What the original does with several relative queries and a cache, it does itself.
    assert counted.calls == (10 if kind == "absolute" else 6)


def test_cross_attention_of_bert(counted):
    model = models.bert(is_decoder=True, add_cross_attention=True, position_embedding_type="relative_key", use_cache=False)
    call, real = models.inputs("bert", 3, 21, padded=True)
    generator = torch.Generator().manual_seed(2)
    call["encoder_hidden_states"] = torch.randn(3, 17, 64, generator=generator)
    call["encoder_attention_mask"] = models.padding(3, 17)
    want, want_grads = run(model, call | {"attention_mask": real}, real)
    with locus.torch.patched(model, strict=True):
        got, got_grads = run(model, call, real)
    assert errors(got[-4:], want[-4:]) < FORWARD and counted.calls == 4
    check_gradients(got_grads, want_grads)


@pytest.mark.parametrize("name, options", [("transformer_xl", {}), ("xlnet", {}), ("xlnet", dict(attn_type="uni"))])
def test_memories(name, options, counted):
    model = getattr(models, name)(**options)

    def segments(model):
        mems, states = None, []
        for seed, length in ((1, 11), (2, 7), (3, 1)):
            result = model(models.tokens(2, length, seed), mems=mems, output_hidden_states=True)
            mems = result.mems
            states += list(result.hidden_states)
        return states

    got, want = both(model, segments)
    assert errors(got, want) < FORWARD and counted.calls == 6


def test_two_streams_of_xlnet(counted):
    model = models.xlnet()
    ids = models.tokens(2, 13)
    generator = torch.Generator().manual_seed(4)
    order = torch.rand(2, 13, generator=generator)
    perm_mask = (order[:, :, None] <= order[:, None, :]).float()
    target = torch.zeros(2, 5, 13)
    target[:, torch.arange(5), torch.arange(5) + 8] = 1.0
    got, want = both(model, lambda m: [m(ids, perm_mask=perm_mask, target_mapping=target).logits])
    assert errors(got, want) < FORWARD and counted.calls == 4


# ---- what is done exactly, and what is handed back ----


@pytest.mark.parametrize("name, options", FIRST)
def test_output_attentions(name, options, counted):
    model = getattr(models, name)(**options)
    if models.NEW and name == "wav2vec2_conformer":
        pytest.skip("transformers 5 records the weights of whole models, and this is an encoder")
    if models.NEW and getattr(model, "_supports_sdpa", False):  # others have nothing but eager code, and need not be told
        model.set_attn_implementation("eager")
    call, _ = models.inputs(name, 2, 17, padded=True)
    got, want = both(model, lambda m: m(**call, output_attentions=True, return_dict=True))
    assert counted.calls == 0
    for key in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for a, b in zip(got.get(key) or (), want.get(key) or (), strict=True):
            assert a is not None and torch.equal(a, b)
    assert any(want.get(key) for key in ("attentions", "decoder_attentions"))


@pytest.mark.parametrize(
    "name, taken", [("bert", 2), ("t5", 6), ("umt5", 6), ("mpnet", 2), ("xlnet", 0), ("transformer_xl", 0)]
)
@pytest.mark.skipif(models.NEW, reason="transformers 5 has no head masks")
def test_head_mask(name, taken, counted):
    model = getattr(models, name)()
    call, real = models.inputs(name, 2, 17, padded=name != "transformer_xl")
    call["head_mask"] = torch.tensor([[1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 0.25]])
    if "t5" in name:
        call["decoder_head_mask"] = call["cross_attn_head_mask"] = call["head_mask"].flip(0)
    got, want = both(model, lambda m: real_states(m(**call, output_hidden_states=True, return_dict=True), call, real))
    assert errors(got, want) < FORWARD and counted.calls == taken


def test_token_types_of_xlnet(counted):
    model = models.xlnet()
    ids = models.tokens(2, 13)
    got, want = both(model, lambda m: m(ids, token_type_ids=(ids > 40).long()).logits)
    assert torch.equal(got, want) and counted.calls == 0


@pytest.mark.parametrize("name, options", FIRST)
def test_training_with_dropout(name, options, counted):
    """A step with dropout runs on Locus, can be repeated from torch's seed, and is another one without it."""
    chance = dict(xlnet="dropout", transformer_xl="dropatt", t5="dropout_rate", mt5="dropout_rate", umt5="dropout_rate")
    if name.startswith("wav2vec2"):
        options = dict(options, attention_dropout=0.2)
    else:
        options = dict(options, **{chance.get(name, "attention_probs_dropout_prob"): 0.2})
    model = getattr(models, name)(**options).train()
    call, real = models.inputs(name, 2, 17, padded=True)
    with locus.torch.patched(model, strict=True) as report:
        results = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            results.append(run(model, call, real))
    assert counted.calls >= 3 * attention_modules(report)
    (first, grads), (again, again_grads), (other, _) = results
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert all(torch.equal(grads[key], again_grads[key]) for key in grads)
    assert not torch.equal(first[-1], other[-1])


def test_dropout_has_the_mean_of_the_original():
    """Over many masks the mean of a dropped attention is that without dropout, as it is for the original."""
    model = models.bert(attention_probs_dropout_prob=0.3)
    attention = model.bert.encoder.layer[0].attention
    locus.torch.patch(attention, strict=True)
    states = torch.randn(1, 12, 64, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        want = attention.self(states)[0]
        attention.self.train()
        torch.manual_seed(0)
        many = attention.self(states.expand(800, -1, -1))[0]
    spread = float(many.std(0).mean()) / 800**0.5
    assert float((many.mean(0) - want).abs().max()) < 6 * spread


def test_gradient_checkpointing(counted):
    model = models.t5(dropout_rate=0.1).train()
    call, real = models.inputs("t5", 2, 17, padded=True)
    locus.torch.patch(model, strict=True)
    torch.manual_seed(1)
    want, want_grads = run(model, call, real)
    for reentrant in (False, True):
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        torch.manual_seed(1)
        got, grads = run(model, call | {"use_cache": False}, real)
        assert errors(got, want) < FORWARD
        # The reentrant kind leaves out what only its first input's gradient would reach.
        check_gradients(grads, {name: grad for name, grad in want_grads.items() if name in grads or not reentrant})
        assert "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight" in grads


@pytest.fixture
def own_narrow_products():
    """oneDNN's bfloat16 kernels end the process on virtual CPUs that announce AMX and do not grant it."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def test_autocast(counted, own_narrow_products):
    """bfloat16 projections, float32 attention: nearer to float32 than the original under autocast."""
    model = models.deberta_v2()
    call, real = models.inputs("deberta_v2", 2, 29, padded=True)
    with torch.no_grad():
        exact = model(**call).logits[real.bool()]
        with torch.autocast("cpu", torch.bfloat16):
            want = model(**call).logits[real.bool()]
            with locus.torch.patched(model):
                got = model(**call).logits[real.bool()]
    assert got.dtype == want.dtype and counted.calls == 2
    assert float((got - exact).abs().max()) < 1.5 * float((want - exact).abs().max())


def test_narrow_model(counted, own_narrow_products):
    model = models.t5().to(torch.bfloat16)
    call, real = models.inputs("t5", 2, 17, padded=True)
    got, want = both(model, lambda m: [m(**call).logits[real.bool()].float()])
    assert errors(got, want) < 0.05 and counted.calls == 6


def test_double_model_runs_its_own_code(counted):
    model = models.bert().double()
    call, _ = models.inputs("bert", 2, 17, padded=True)
    got, want = both(model, lambda m: m(**call).logits)
    assert torch.equal(got, want) and counted.calls == 0


def test_double_backward():
    model = models.bert()
    states = torch.randn(1, 7, 64, generator=torch.Generator().manual_seed(4)).requires_grad_()

    def twice():
        out = model.bert.encoder(states).last_hidden_state
        (grad,) = torch.autograd.grad(out.square().sum(), [states], create_graph=True)
        return torch.autograd.grad(grad.square().sum(), [states])[0]

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the other has no second derivative
        want = twice()
    with locus.torch.patched(model):
        got = twice()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4 * float(want.abs().max()))


def test_other_masks():
    """An additive mask that is no mask goes in as a bias; one with a gradient gets its gradient."""
    model = models.bert()
    encoder = model.bert.encoder
    states = torch.randn(2, 9, 64, generator=torch.Generator().manual_seed(1))
    bias = torch.randn(2, 1, 9, 9, generator=torch.Generator().manual_seed(2))
    learned = bias.clone().requires_grad_()
    results = []
    for _ in range(2):
        plain = encoder(states, attention_mask=bias).last_hidden_state
        (grad,) = torch.autograd.grad(encoder(states, attention_mask=learned).last_hidden_state.square().sum(), [learned])
        results.append((plain.detach(), grad))
        locus.torch.patch(model)
    assert errors(*results[::-1]) < GRADIENT


def test_mask_contents_are_read_again():
    model = models.bert()
    locus.torch.patch(model)
    encoder = model.bert.encoder
    states = torch.randn(1, 9, 64)
    mask = torch.zeros(1, 1, 1, 9)
    with torch.no_grad():
        full = encoder(states, attention_mask=mask).last_hidden_state
        mask[..., 5:] = torch.finfo(torch.float32).min
        short = encoder(states, attention_mask=mask).last_hidden_state
        assert not torch.equal(full, short)
        torch.testing.assert_close(short[:, :5], encoder(states[:, :5]).last_hidden_state, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["bert", "albert", "mpnet", "deberta_v2", "t5"])
def test_traced_without_padding_run_with_it(family):
    """What the mask of the example hides must not be written into the trace."""
    import transformers

    sizes = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    made = {
        "bert": lambda: transformers.BertModel(transformers.BertConfig(**sizes)),
        "albert": lambda: transformers.AlbertModel(transformers.AlbertConfig(embedding_size=16, **sizes)),
        "mpnet": lambda: transformers.MPNetModel(transformers.MPNetConfig(**sizes)),
        "deberta_v2": lambda: transformers.DebertaV2Model(
            transformers.DebertaV2Config(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, **sizes)
        ),
        "t5": lambda: transformers.T5EncoderModel(
            transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        ),
    }
    torch.manual_seed(0)
    model = made[family]().eval()
    ids, padded = torch.randint(3, 99, (2, 9)), torch.arange(9) < torch.tensor([[9], [5]])
    with torch.no_grad():
        want = model(ids, attention_mask=padded.long())[0]
        locus.torch.patch(model)
        traced = torch.jit.trace(model, (ids.flip(1), torch.ones_like(ids)), check_trace=False, strict=False)
        found = traced(ids, padded.long())["last_hidden_state"]
    assert (found - want)[padded].abs().max() <= 2e-5 * want.abs().max()
