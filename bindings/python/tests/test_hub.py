# SPDX-License-Identifier: Apache-2.0
"""attn_implementation="locus" beside "eager", on models with random parameters: logits, gradients, generated ids."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import locus.torch  # noqa: E402
from locus.torch import hub, imports  # noqa: E402

LOGITS = 2e-5
GRADIENTS = 1e-4  # of the largest gradient

SMALL = dict(
    vocab_size=99,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=128,
)
MARKS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
GROUPED = dict(num_key_value_heads=2, head_dim=8)

# name: (head of AutoModel, configuration)
DECODERS = {
    "llama": lambda: transformers.LlamaConfig(**SMALL, **MARKS, **GROUPED),
    "qwen2": lambda: transformers.Qwen2Config(**SMALL, **MARKS, num_key_value_heads=2),
    "qwen3": lambda: transformers.Qwen3Config(**SMALL, **MARKS, **GROUPED),
    "mistral": lambda: transformers.MistralConfig(**SMALL, **MARKS, **GROUPED, sliding_window=6),
    "gemma2": lambda: transformers.Gemma2Config(**SMALL, **MARKS, **GROUPED, sliding_window=6, query_pre_attn_scalar=8),
    "gemma3": lambda: transformers.Gemma3TextConfig(
        **SMALL, **MARKS, **GROUPED, sliding_window=6, query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SMALL, **MARKS, **GROUPED, sliding_window=6, num_local_experts=2, num_experts_per_tok=1,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "smollm3": lambda: transformers.SmolLM3Config(**SMALL, **MARKS, num_key_value_heads=2),
    "gpt2": lambda: transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=128, **MARKS),
    "opt": lambda: transformers.OPTConfig(
        vocab_size=99, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=128, word_embed_proj_dim=32, **MARKS,
    ),
}
ENCODERS = {
    "bert": lambda: transformers.BertConfig(**SMALL, pad_token_id=0),
    "modernbert": lambda: transformers.ModernBertConfig(
        **SMALL, pad_token_id=0, local_attention=8, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2,
        reference_compile=False,
    ),
    "roberta": lambda: transformers.RobertaConfig(**SMALL, **MARKS),
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def attended(monkeypatch):
    """How often the kernels were called by the two registered functions."""
    calls = []
    attend, directly = hub.attend, hub._directly

    def short(query, key, value, call, *settings):
        out = directly(query, key, value, call, *settings)
        if out is not None:
            calls.append(call)
        return out

    monkeypatch.setattr(hub, "attend", lambda *args, **more: calls.append(more) or attend(*args, **more))
    monkeypatch.setattr(hub, "_directly", short)
    return calls


def pair(head, config, train=False):
    """The same model on "eager" and on "locus"."""
    torch.manual_seed(0)
    eager = head.from_config(config(), attn_implementation="eager")
    with torch.no_grad():
        for parameter in eager.parameters():
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)  # attention that is not flat
    ours = head.from_config(config(), attn_implementation="locus")
    ours.load_state_dict(eager.state_dict())
    assert ours.config._attn_implementation == "locus"
    return eager.train(train), ours.train(train)


def decoder(name, **more):
    return pair(transformers.AutoModelForCausalLM, DECODERS[name], **more)


def tokens(batch=2, length=17, seed=1):
    return torch.randint(3, 99, (batch, length), generator=torch.Generator().manual_seed(seed))


def close(got, want, tolerance, what=""):
    largest = max(1.0, float(want.detach().abs().max()))
    assert float((got.detach() - want.detach()).abs().max()) <= tolerance * largest, what


def compare(eager, ours, call, seen=None):
    """Logits where they are seen, then every gradient."""
    want, got = (model(**call).logits for model in (eager, ours))
    seen = torch.ones(want.shape[:-1], dtype=torch.bool) if seen is None else seen.bool()
    close(got[seen], want[seen], LOGITS, "logits")
    weight = torch.randn(want[seen].shape, generator=torch.Generator().manual_seed(2))
    for model, logits in ((eager, want), (ours, got)):
        (logits[seen] * weight).sum().backward()
    want, got = ({n: p.grad for n, p in m.named_parameters() if p.grad is not None} for m in (eager, ours))
    assert len(want) > 10 and want.keys() == got.keys()
    largest = max(float(grad.abs().max()) for grad in want.values())
    for name, grad in want.items():  # the gradient of a key's bias is 0, so no gradient is its own measure
        assert float((got[name] - grad).abs().max()) <= GRADIENTS * largest, name


@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name, side, attended):
    ids = tokens()
    seen = torch.ones_like(ids)
    if side == "left":
        seen[1, :5] = 0
    elif side == "right":
        seen[1, 12:] = 0
    compare(*decoder(name), dict(input_ids=ids, attention_mask=seen), seen)
    assert len(attended) == 2
    assert all("mask" not in call and "bias_dense" not in call for call in attended)


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders(name):
    ids = tokens()
    seen = torch.ones_like(ids)
    seen[1, 12:] = 0
    compare(*pair(transformers.AutoModelForMaskedLM, ENCODERS[name]), dict(input_ids=ids, attention_mask=seen), seen)


def test_vit(attended):
    config = lambda: transformers.ViTConfig(  # noqa: E731
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4
    )
    pixels = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    compare(*pair(transformers.AutoModelForImageClassification, config), dict(pixel_values=pixels))
    assert len(attended) == 2


def whisper():
    return transformers.WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=20,
        max_target_positions=64, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None, **MARKS,
    )


def test_whisper(attended):
    eager, ours = pair(transformers.AutoModelForSpeechSeq2Seq, whisper)
    features = torch.randn(2, 8, 40, generator=torch.Generator().manual_seed(1))
    compare(eager, ours, dict(input_features=features, decoder_input_ids=tokens(2, 9)))
    assert len(attended) == 6
    ids = [model.generate(features, max_new_tokens=8, do_sample=False) for model in (eager, ours)]
    assert torch.equal(*ids)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", DECODERS)
def test_generate(name, cache):
    if (name, cache) in {("opt", "static")}:
        cache = "dynamic"  # transformers says that OPT has no static cache
    ids = tokens(3, 11)
    seen = torch.ones_like(ids)
    seen[1, :4] = 0
    eager, ours = decoder(name)
    more = {} if cache == "dynamic" else dict(cache_implementation="static", disable_compile=True)
    made = [
        model.generate(ids, attention_mask=seen, max_new_tokens=10, min_new_tokens=10, do_sample=False, **more)
        for model in (eager, ours)
    ]
    assert torch.equal(*made)


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_decode_in_pieces(name):
    """A prompt in two pieces, then a token: the second piece sees the first."""
    eager, ours = decoder(name)
    ids = tokens(1, 14)
    logits = []
    for model in (eager, ours):
        first = model(ids[:, :6], use_cache=True)
        second = model(ids[:, 6:13], past_key_values=first.past_key_values, use_cache=True)
        logits.append([second.logits, model(ids[:, 13:], past_key_values=second.past_key_values).logits])
    for got, want in zip(logits[1], logits[0]):
        close(got, want, LOGITS)


@pytest.mark.parametrize("lengths", [(4, 8, 5), (30, 18, 41)], ids=["short", "long"])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3"])
def test_packed(name, lengths, attended):
    """position_ids that start anew: several texts in one row, two rows of them."""
    eager, ours = decoder(name)
    positions = torch.stack([torch.cat([torch.arange(n) for n in order]) for order in (lengths, lengths[::-1])])
    call = dict(input_ids=tokens(2, sum(lengths)), position_ids=positions, use_cache=False)
    compare(eager, ours, call)
    assert len(attended) == 2 and not any("mask" in call for call in attended)  # one for each layer


def test_training_with_dropout():
    """The same seed drops the same weights; dropped weights are not those of eager, but as many."""
    _, ours = decoder("gpt2", train=True)
    ids = tokens()
    losses = []
    for _ in range(2):
        torch.manual_seed(3)
        losses.append(float(ours(input_ids=ids, labels=ids).loss))
    assert losses[0] == losses[1]


def test_weights_on_request():
    """Weights are asked for: the model's own formula has them."""
    eager, ours = decoder("llama")
    want, got = (model(tokens(), output_attentions=True).attentions for model in (eager, ours))
    for a, b in zip(got, want):
        close(a, b, LOGITS)


def test_double():
    """"sdpa" judges: eager code rounds softmax to float32."""
    peer, ours = (model.double() for model in decoder("llama"))
    peer.set_attn_implementation("sdpa")
    close(ours(tokens()).logits, peer(tokens()).logits, 1e-12)


def test_switched_afterwards():
    eager, _ = decoder("llama")
    want = eager(tokens()).logits
    eager.set_attn_implementation("locus")
    close(eager(tokens()).logits, want, LOGITS)


def test_masks_of_ones_own():
    """A 4-D mask goes in as it is."""
    eager, ours = decoder("llama")
    seen = torch.rand(2, 1, 17, 17, generator=torch.Generator().manual_seed(5)) < 0.6
    seen |= torch.eye(17, dtype=torch.bool)
    added = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    want = eager(tokens(), attention_mask=added).logits
    close(ours(tokens(), attention_mask=added).logits, want, LOGITS)
    close(ours(tokens(), attention_mask=seen).logits, want, LOGITS)


def test_locus_does_not_import_transformers():
    program = (
        "import sys, locus.torch; assert 'transformers' not in sys.modules;"
        "from transformers.modeling_utils import AttentionInterface; assert 'locus' in AttentionInterface();"
        "from transformers.masking_utils import AttentionMaskInterface; assert 'locus' in AttentionMaskInterface()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_families_that_choose_classes_by_name():
    """DistilBERT of transformers 4 does not go through the interface: one line says so, and what it takes."""
    if int(transformers.__version__.split(".")[0]) >= 5:
        pytest.skip("transformers 5 has no such tables")
    config = transformers.DistilBertConfig(vocab_size=99, dim=32, n_layers=1, n_heads=4, hidden_dim=64)
    with pytest.raises(ValueError, match="attn_implementation: found 'locus' for distilbert, .*expected one of eager, .*sdpa"):
        transformers.AutoModel.from_config(config, attn_implementation="locus")
    transformers.AutoModel.from_config(config, attn_implementation="sdpa")


def test_families_that_do_not_ask(recwarn):
    """MPNet never looks at the interface: said once, with what to do."""
    config = transformers.MPNetConfig(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48)
    for _ in range(2):
        transformers.AutoModel.from_config(config, attn_implementation="locus")
    said = [str(w.message) for w in recwarn if "locus" in str(w.message)]
    assert len(said) == 1 and "MPNetModel" in said[0] and "use locus.torch.patch(model)" in said[0]


def test_position_bias_is_added():
    """T5 of transformers 5 hands its bias to the attention function: it is a dense bias there."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 7, 8, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 4, 7, 7, requires_grad=True)
    module = torch.nn.Module()
    module.is_causal = True
    out, _ = hub.locus_attention_forward(module, q, k, v, None, scaling=1.0, position_bias=bias)
    seen = torch.ones(7, 7).tril().bool()
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias.masked_fill(~seen, -1e30), scale=1.0).transpose(1, 2)
    close(out, want, 1e-5)
    got = torch.autograd.grad(out.square().sum(), bias)[0]
    close(got, torch.autograd.grad(want.square().sum(), bias)[0], 1e-5)


IMPORTS = """
import sys
exec(sys.argv[1])
import warnings
warnings.filterwarnings("error", message="locus")
from transformers import ModernBertModel, T5Model, BertModel
exec(sys.argv[2])
"""


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_importing_locus_breaks_no_import(before):
    lines = ["import locus.torch", ""] if before else ["", "import locus.torch"]
    done = subprocess.run([sys.executable, "-c", IMPORTS, *lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_callback_that_fails_breaks_no_import():
    with pytest.warns(UserWarning, match="locus.torch: json: KeyError"):
        imports.when_imported("json", lambda module: {}["nothing"])


def test_padded_doubles():
    """Eager code gives NaN here: it rounds softmax to float32, where the lowest double is -inf."""
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    ids = torch.randint(3, 99, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    added = torch.zeros(2, 1, 9, 9, dtype=torch.float64).masked_fill(torch.ones(9, 9).triu(1).bool(), float("-inf")) + 0.25 * torch.eye(9)
    torch.manual_seed(2)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").double().eval()
    with torch.no_grad():
        want = [model(ids, attention_mask=m).logits for m in (mask, None, added)]
        model.set_attn_implementation("locus")
        found = [model(ids, attention_mask=m).logits for m in (mask, None, added)]
    seen = mask.bool()
    torch.testing.assert_close(found[0][seen], want[0][seen], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1:], want[1:], rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_traced_without_padding_run_with_it():
    eager, ours = decoder("llama")

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = ours

        def forward(self, ids, mask):
            return self.model(ids, attention_mask=mask, use_cache=False).logits

    ids = tokens()
    mask = torch.ones_like(ids)
    with torch.no_grad():
        traced = torch.jit.trace(Logits(), (ids.flip(1), mask.clone()), check_trace=False)
        close(traced(ids, mask), eager(ids, attention_mask=mask).logits, LOGITS)
        mask[0, :4] = 0
        close(traced(ids, mask)[mask.bool()], eager(ids, attention_mask=mask).logits[mask.bool()], LOGITS)
