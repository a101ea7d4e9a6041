# SPDX-License-Identifier: Apache-2.0
"""How a patched model is held against itself unpatched."""

import pytest
import torch

import locus.torch
import locus.torch.adapter
from locus.torch import albert, bert

FORWARD = 2e-5  # of the largest element: two float32 computations of the same numbers, a few layers deep
GRADIENT = 1e-4  # of the largest gradient in the model


def real_states(result, call, real):
    """Every hidden state and the logits, [tokens, E] each: those of real tokens."""
    found = []
    sides = (("encoder_hidden_states", call.get("attention_mask")), ("decoder_hidden_states", real), ("hidden_states", real))
    for key, mask in sides:
        found += [(state, mask) for state in result.get(key) or ()]
    found += [(result[key], real) for key in ("logits", "last_hidden_state", "prediction_scores") if key in result]
    # An adapter behind the encoder shortens the sequence; then every row counts.
    return [state[mask.bool()] if state.shape[1] == mask.shape[1] else state.flatten(0, 1) for state, mask in found]


def errors(got, want):
    """The largest difference, relative to the largest element."""
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, want, strict=True))


def loss_of(states):
    """Sums that no hidden state can leave unnoticed."""
    generator = torch.Generator().manual_seed(1)
    return sum((state * torch.randn(state.shape, generator=generator)).mean() for state in states)


def run(model, call, real):
    """Hidden states and, by name, parameter gradients."""
    model.zero_grad()
    states = real_states(model(**call, output_hidden_states=True, return_dict=True), call, real)
    loss_of(states).backward()
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
        monkeypatch.setattr(locus.torch.adapter, "attend_joined", self._watched(locus.torch.adapter.attend_joined))
        for module in (bert, albert):
            monkeypatch.setattr(module, "attend_plainly", self._watched(module.attend_plainly))

    def _watched(self, short):
        def watched(*args):
            out = short(*args)
            self.calls += out is not None
            return out

        return watched


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
    assert errors(got, want) < FORWARD
    check_gradients(got_grads, want_grads)


def check_gradients(got, want):
    assert got.keys() == want.keys()
    largest = max(float(grad.abs().max()) for grad in want.values())
    for name, grad in want.items():
        assert float((got[name] - grad).abs().max()) < GRADIENT * largest, name


def both(model, call):
    """The same calls with and without Locus, gradients off."""
    with torch.no_grad():
        want = call(model)
        with locus.torch.patched(model, strict=True):
            return call(model), want


@pytest.fixture(autouse=True)
def repaired_transformer_xl(monkeypatch):
    """TransfoXLModel.forward of transformers 4.57.6 calls tensor.type_as(dtype=...), which torch does not know."""
    original = torch.Tensor.type_as

    def type_as(self, other=None, dtype=None):
        return self.to(dtype) if other is None else original(self, other)

    monkeypatch.setattr(torch.Tensor, "type_as", type_as)
