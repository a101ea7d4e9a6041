# SPDX-License-Identifier: Apache-2.0
"""A patched model stays a model: reports, refusals, copies, files, workers, compilation; and the sizes people use."""

import copy
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import patch_models as models  # noqa: E402
from patch_compare import FORWARD, check_gradients, counted, errors  # noqa: E402, F401

import locus.torch  # noqa: E402
from locus_bench import shapes  # noqa: E402


def logits(model, seed=3):
    with torch.no_grad():
        return model(models.tokens(2, 17, seed)).logits


# ---- reports and refusals ----


def test_report():
    model = models.deberta_v2()
    report = locus.torch.patch(model)
    assert [entry.kind for entry in report.swapped] == ["DebertaV2Encoder"] + ["DisentangledSelfAttention"] * 2
    assert report.swapped[1] == locus.torch.Entry(
        "deberta.encoder.layer.0.attention.self", "DisentangledSelfAttention", "deberta"
    )
    assert "3 modules swapped, 0 left" in str(report)
    assert locus.torch.patch(model).swapped == report.swapped  # again: nothing new, nothing wrong
    assert locus.torch.unpatch(model) == 3 and locus.torch.unpatch(model) == 0


def test_classes_come_back():
    model = models.t5()
    before = [type(module) for module in model.modules()]
    with locus.torch.patched(model):
        assert all(issubclass(type(new), old) for new, old in zip(model.modules(), before))
        assert [type(module) for module in model.modules()] != before
    assert [type(module) for module in model.modules()] == before


def test_inner_block_keeps_an_outer_patch():
    model = models.bert()
    locus.torch.patch(model)
    with locus.torch.patched(model):
        pass
    assert locus.torch.unpatch(model) == 2


def test_unknown_models_are_refused_by_name():
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=30, n_positions=16)
    with pytest.raises(ValueError, match="GPT2Attention: no adapter for this class") as refusal:
        locus.torch.patch(transformers.GPT2Model(config))
    assert "known families: albert, beit, bert, " in str(refusal.value)
    with pytest.raises(ValueError, match="Linear: 0 modules swapped"):
        locus.torch.patch(torch.nn.Linear(2, 2))


def test_unknown_variants_are_refused_by_name():
    model = models.deberta(talking_head=True)
    with pytest.raises(ValueError, match="DisentangledSelfAttention: talking_head mixes"):
        locus.torch.patch(model, strict=True)
    assert not any(locus.torch.is_patched(module) for module in model.modules())
    model = models.bert()
    model.bert.encoder.layer[1].attention.self.position_embedding_type = "spiral"
    report = locus.torch.patch(model)
    assert len(report.swapped) == 1
    assert report.left[0].name == "bert.encoder.layer.1.attention.self" and "'spiral'" in report.left[0].note


def test_subclasses_are_not_guessed():
    model = models.bert()
    attention = model.bert.encoder.layer[0].attention

    class MySelfAttention(type(attention.self)):
        pass

    attention.self.__class__ = MySelfAttention
    report = locus.torch.patch(model)
    assert [entry.kind for entry in report.left] == ["MySelfAttention"]


def test_other_versions_are_refused(monkeypatch):
    model = models.mpnet()
    kind = type(model.mpnet.encoder.layer[0].attention.attn)
    monkeypatch.setattr(kind, "forward", lambda self, hidden_states, sinks=None: None)
    with pytest.raises(ValueError, match=r"forward takes \(hidden_states, sinks\), expected .*another version of transformers") as caught:
        locus.torch.patch(model)
    assert "another part of its family is left as it is" in str(caught.value)  # the encoder, which is of no use alone
    assert not any(locus.torch.is_patched(module) for module in model.modules())


def test_adapters_hide_nothing():
    """What an adapter adds stands in front of the original class, and of torch.nn.Module."""
    meant = {"forward", "get_attention_mask", "get_rel_pos", "compute_position_bias", "rel_attn_core"}
    for name in locus.torch.patch.__globals__["_BY_NAME"]:
        try:
            kind = locus.torch.patch.__globals__["swapped_class"](name)
        except (AttributeError, ImportError):
            continue  # not in this version of transformers
        adapters = [c for c in kind.__mro__ if c.__module__.startswith("locus.torch.")][1:]
        added = {attribute for c in adapters for attribute in vars(c) if not attribute.startswith("__")}
        assert added & set(dir(kind.locus_original)) <= meant, kind


def test_original_code_switch(counted):
    model = models.bert()
    want = logits(model)
    locus.torch.patch(model)
    with locus.torch.original_code():
        assert torch.equal(logits(model), want)
    assert counted.calls == 0
    logits(model)
    assert counted.calls == 2


# ---- copies, files, processes ----


@pytest.mark.parametrize("name", ["deberta_v2", "bert", "mpnet"])
def test_copies_and_pickles(name):
    model = getattr(models, name)()
    locus.torch.patch(model)
    want = logits(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(logits(other), want)
        assert locus.torch.unpatch(other) > 0
    assert any(locus.torch.is_patched(module) for module in model.modules())
    memory = io.BytesIO()
    torch.save(model, memory)
    memory.seek(0)
    assert torch.equal(logits(torch.load(memory, weights_only=False)), want)


def test_pickles_load_in_a_fresh_process(tmp_path):
    model = models.bert()
    locus.torch.patch(model)
    torch.save(model, tmp_path / "model.pt")
    program = (
        "import sys, torch; model = torch.load(sys.argv[1], weights_only=False); import locus.torch;"
        "print(sum(locus.torch.is_patched(m) for m in model.modules()))"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "model.pt"], capture_output=True, text=True)
    assert done.stdout.strip() == "2", done.stderr


def test_saved_models_know_nothing_of_locus(tmp_path):
    model = models.deberta_v2()
    want_keys = list(model.state_dict())
    locus.torch.patch(model)
    assert list(model.state_dict()) == want_keys
    model.save_pretrained(tmp_path)
    again = transformers.DebertaV2ForMaskedLM.from_pretrained(tmp_path)
    assert not any(locus.torch.is_patched(module) for module in again.modules())
    assert errors([logits(again)], [logits(model)]) < FORWARD


class Embedded(torch.utils.data.Dataset):
    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return logits(self.model, index)


def test_forked_workers():
    model = models.bert()
    locus.torch.patch(model)
    want = [logits(model, index) for index in range(4)]
    loader = torch.utils.data.DataLoader(
        Embedded(model), batch_size=1, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    for got, expected in zip(loader, want):
        assert torch.equal(got[0], expected)


@pytest.mark.parametrize("name", ["bert", "wav2vec2_conformer"])
def test_compiled_models_stay_whole(name):
    options = dict(position_embeddings_type="relative") if "conformer" in name else {}
    model = getattr(models, name)(**options)
    part = model.bert.encoder.layer[0] if name == "bert" else model.layers[0]
    locus.torch.patch(part, strict=True)
    states = torch.randn(2, 12, 64, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(2, 1, 12, 12)
    mask[1, ..., 9:] = torch.finfo(torch.float32).min
    more = dict(relative_position_embeddings=model.embed_positions(states)) if options else {}
    compiled = torch.compile(part, fullgraph=True, backend="aot_eager")
    got, want = (layer(states, attention_mask=mask, **more)[0] for layer in (compiled, part))
    assert errors([got], [want]) < FORWARD
    got_grads, want_grads = (
        dict(enumerate(torch.autograd.grad(out.square().sum(), list(part.parameters())))) for out in (got, want)
    )
    check_gradients(got_grads, want_grads)


# ---- the sizes that people use ----


def deberta_v3_base(layers):
    torch.manual_seed(0)
    return transformers.DebertaV2Model(shapes.deberta_v3(300, 768, layers, 12)).eval()


def t5_base(layers):
    """Version 1.1, as in FLAN-T5: gated GELU. A ReLU turns the last bit of a number next to 0 into a whole token's
    share of a gradient, so that at this size the original in float32 is more than 1e-4 away from itself in double."""
    torch.manual_seed(0)
    config = shapes.t5(300, 768, layers, 12, d_ff=2048, feed_forward_proj="gated-gelu")
    return transformers.T5EncoderModel(config).eval()


FULL = os.environ.get("LOCUS_TEST_FULL") == "1"  # all layers at every size: minutes
heavy = pytest.mark.skipif(os.environ.get("LOCUS_TEST_SAMPLE") == "1", reason="not in the sample: large models")


@heavy
@pytest.mark.parametrize(
    "make, tokens, layers",
    [
        (deberta_v3_base, 512, 12),
        (deberta_v3_base, 2048, 12 if FULL else 1),
        (t5_base, 512, 12 if FULL else 2),
        (t5_base, 2048, 12 if FULL else 1),
    ],
)
def test_base_models(make, tokens, layers, counted):
    model = make(layers)
    ids = models.tokens(1, tokens)
    mask = torch.ones(1, tokens, dtype=torch.long)
    mask[0, -5:] = 0

    def step():
        model.zero_grad()
        states = model(ids, attention_mask=mask, output_hidden_states=True).hidden_states
        (states[-1][:, :-5] * torch.linspace(-1, 1, 768)).mean().backward()
        grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        return [state.detach()[:, :-5] for state in states], grads

    want, want_grads = step()
    locus.torch.patch(model, strict=True)
    got, got_grads = step()
    assert counted.calls == layers
    assert errors(got, want) < FORWARD
    check_gradients(got_grads, want_grads)


MEMORY = """
import sys, torch
import conftest, test_patch_models
model = test_patch_models.deberta_v3_base(1)
import locus.torch
locus.torch.patch(model, strict=True)
layer, tokens = model.encoder.layer[0], int(sys.argv[1])
rel = model.encoder.get_rel_embedding()
def step(tokens):
    states = torch.randn(1, tokens, 768, requires_grad=True)
    out, _ = layer(states, torch.ones(1, tokens, dtype=torch.long), rel_embeddings=rel, output_attentions=False)
    out.sum().backward(retain_graph=True)
def kilobytes(key):
    return int(next(line for line in open("/proc/self/status") if line.startswith(key)).split()[1])
step(64)
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before = kilobytes("VmRSS")
step(tokens)
print(kilobytes("VmHWM") - before)
"""


def peak(tokens):
    """KB that one layer, forward and backward, needs at its peak."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tokens)], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@heavy
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs /proc/self/clear_refs")
def test_memory_grows_linearly():
    """Twice the tokens, twice the memory; an array of n x n, even one of bytes and one head, would stand out."""
    short, long = peak(2048), peak(4096)
    assert long < 2.3 * short
    # 12 heads of 4096 x 4096 floats are 800 MB; states of 768 and 3,072 columns are all that may be there.
    assert long * 1024 < 4096 * 4 * (768 + 3072) * 12
