# SPDX-License-Identifier: Apache-2.0
"""Ragged batches: one call for sequences of any length, in NumPy and in torch, with the bits of calls of their own."""

import numpy as np
import pytest

import locus

torch = pytest.importorskip("torch")
locus_torch = pytest.importorskip("locus.torch")

LENGTHS = (5, 0, 70, 17, 1, 70)
OFFSETS = np.cumsum((0,) + LENGTHS)
HEADS, WIDTH = 3, 8
SCHEMES = [
    ("none", {}),
    ("t5", {"bias": (32, HEADS), "buckets": 32, "max_distance": 128, "bidirectional": 1}),
    ("shaw", {"rel_k": (9, WIDTH), "rel_v": (9, WIDTH), "clip_left": 4, "clip_right": 4}),
    ("rope", {"pairing": "half"}),
]


def rows(seed):
    return torch.randn(1, HEADS, int(OFFSETS[-1]), WIDTH, generator=torch.Generator().manual_seed(seed))


def call_of(options):
    made = {}
    for name, value in options.items():
        made[name] = torch.randn(value, generator=torch.Generator().manual_seed(9)) if isinstance(value, tuple) else value
    return made


def one_by_one(q, k, v, call):
    bounds = zip(OFFSETS[:-1], OFFSETS[1:])
    return torch.cat([locus_torch.attend(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], **call) for a, b in bounds], 2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scheme, options", SCHEMES, ids=[scheme for scheme, _ in SCHEMES])
def test_alone(scheme, options, causal):
    call = dict(call_of(options), scheme=scheme, causal=causal)
    grads, outs, weight = [], [], rows(4)
    for attend in (lambda *x: locus_torch.attend(*x, offsets=torch.from_numpy(OFFSETS), **call), lambda *x: one_by_one(*x, call)):
        q, k, v = (rows(seed).requires_grad_() for seed in (1, 2, 3))
        out = attend(q, k, v)
        (out * weight).sum().backward()
        outs.append(out.detach())
        grads.append([x.grad for x in (q, k, v)])
    assert torch.equal(*outs)
    for got, want in zip(*grads):
        assert torch.equal(got, want)


def test_gradient_of_tables():
    call = call_of(SCHEMES[1][1])
    table, grads = call.pop("bias"), []
    for ragged in (True, False):
        bias = table.clone().requires_grad_()
        q, k, v = rows(1), rows(2), rows(3)
        words = dict(call, scheme="t5", bias=bias)
        out = locus_torch.attend(q, k, v, cu_seqlens=torch.from_numpy(OFFSETS).int(), **words) if ragged else one_by_one(q, k, v, words)
        (out * rows(4)).sum().backward()
        grads.append(bias.grad)
    torch.testing.assert_close(*grads, rtol=0, atol=2e-5)


def test_plans_are_told_apart_by_what_offsets_hold():
    q, k, v = rows(1), rows(2), rows(3)
    whole = torch.tensor([0, int(OFFSETS[-1])])
    for offsets in (torch.tensor([0, 60, int(OFFSETS[-1])]), torch.tensor([0, 61, int(OFFSETS[-1])]), whole):
        out = locus_torch.attend(q, k, v, offsets=offsets)
        end = int(offsets[1])
        alone = locus_torch.attend(q[:, :, :end], k[:, :, :end], v[:, :, :end])
        assert torch.equal(out[:, :, :end], alone)


def test_nested():
    parts = [rows(seed)[0].transpose(0, 1).contiguous() for seed in (1, 2, 3)]
    offsets = torch.from_numpy(OFFSETS)
    leaves = [part.clone().requires_grad_() for part in parts]
    q, k, v = (torch.nested.nested_tensor_from_jagged(leaf, offsets).transpose(1, 2) for leaf in leaves)
    out = locus_torch.attend(q, k, v, causal=True)
    assert out.is_nested and out.size(0) == len(LENGTHS) and out.size(1) == HEADS
    want = one_by_one(rows(1), rows(2), rows(3), {"causal": True})
    assert torch.equal(out.values(), want[0])
    out.values().sum().backward()
    assert leaves[0].grad.shape == leaves[0].shape


def test_numpy():
    q, k, v = (rows(seed).numpy() for seed in (1, 2, 3))
    out = locus.attend(q, k, v, q_offsets=OFFSETS, k_offsets=OFFSETS, causal=True)
    want = one_by_one(*(torch.from_numpy(x) for x in (q, k, v)), {"causal": True})
    assert np.array_equal(np.asarray(out), want.numpy())


@pytest.mark.parametrize(
    "words, text",
    [
        ({"offsets": torch.tensor([1, 163])}, "q_offsets: found 1 at 0"),
        ({"offsets": torch.tensor([0, 9, 4, 163])}, "q_offsets: found 4 at 2"),
        ({"offsets": torch.tensor([0, 9])}, "q_offsets: found 9 at the end"),
        ({"offsets": torch.tensor([0, 163]), "q_offsets": torch.tensor([0, 163])}, "offsets: found beside q_offsets"),
        ({"cu_seqlens": torch.tensor([0.0, 163.0])}, "q_offsets: found F32"),
        ({"offsets": torch.tensor([0, 163]), "mask": torch.ones(1, 1, 163, 163, dtype=torch.bool)}, "tensor mask"),
    ],
)
def test_refused(words, text):
    with pytest.raises((ValueError, TypeError), match=text):
        locus_torch.attend(rows(1), rows(2), rows(3), **words)
