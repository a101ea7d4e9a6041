# SPDX-License-Identifier: Apache-2.0
"""Around the constants of the bindings: kept plans and workspaces, panels and series of a figure, pieces of explain."""

import pathlib
import re

import numpy as np
import pytest
from conftest import ROOT

import locus
from locus import _explain, _native
from locus._plot import Figure, curves, heatmap


def constant(file, name):
    """A constant of the C sources of the module."""
    text = (pathlib.Path(ROOT) / "bindings" / "python" / "src" / file).read_text()
    return int(re.search(rf"\b{name} = (\d+)", text).group(1))


MOST_PLANS = constant("plans.c", "MOST_PLANS")
MOST_WORKSPACES = constant("plans.c", "MOST_WORKSPACES")
MOST_READ = constant("masks.c", "MOST_READ")
MOST_PANELS = constant("figures.c", "MOST_PANELS")
MOST_SERIES = constant("figures.c", "MOST_SERIES")


def draw(length, seed=0):
    random = np.random.default_rng(1000 * length + seed)
    return [random.standard_normal((1, 2, length, 4), np.float32) for _ in range(3)]


def plain(q, k, v):
    score = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 2
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("count", [MOST_PLANS - 1, MOST_PLANS, MOST_PLANS + 1, 2 * MOST_PLANS + 1])
def test_plans_of_many_shapes(count):
    _native.cache_clear()
    before = _native.cache_info()["misses"]
    for time in range(2):
        for length in range(1, count + 1):
            q, k, v = draw(length, time)
            assert np.allclose(locus.attend(q, k, v), plain(q, k, v), atol=1e-5)
    info = _native.cache_info()
    assert info["plans"] == min(count, MOST_PLANS)
    # used in turn, the one that is needed next is always the one that was given up
    assert info["misses"] - before == (count if count <= MOST_PLANS else 2 * count)


def test_plans_are_bounded_in_bytes():
    """most_plan_bytes: a plan of rotations for 2^16 keys of 64 pairs takes 33 MB, so one of three is given up."""
    _native.cache_clear()
    for length in (65536, 65535, 65534):
        q = np.ones((1, 1, 1, 128), np.float32)
        k = np.ones((1, 1, length, 128), np.float32)
        assert np.allclose(locus.attend(q, k, k, scheme="rope", pairing="half"), 1, atol=1e-5)
        assert _native.cache_info()["plan_bytes"] <= 64 << 20
    assert 1 <= _native.cache_info()["plans"] <= 2


def test_workspaces_are_bounded():
    """MOST_WORKSPACES of at most most_workspace_bytes are kept, whatever ran."""
    _native.cache_clear()
    for length in (16, 3000, 64, 5000, 400, 6000, 7000):
        q, k, v = draw(length)
        assert np.isfinite(locus.attend(q, k, v)).all()
    held = _native.cache_info()["workspace_bytes"]
    assert 0 < held <= MOST_WORKSPACES * (64 << 20)


@pytest.mark.parametrize("gap", [_explain._GAP - 1, _explain._GAP, _explain._GAP + 1, 2 * _explain._GAP + 1])
def test_rows_in_pieces(gap):
    q, k, v = draw(4 * gap + 8)
    whole = locus.explain(q, k, v, scheme="alibi", head=1)
    rows = [3 + 2 * gap, 1, 1 + gap, 3 + 3 * gap, 0, 1]
    part = locus.explain(q, k, v, scheme="alibi", head=1, rows=rows, keys=rows)
    assert np.array_equal(part.score, whole.score[np.ix_(rows, rows)])
    assert np.array_equal(part.weight, whole.weight[np.ix_(rows, rows)])
    assert np.array_equal(part.lse, whole.lse[rows])
    for name, term in part.terms.items():
        assert np.array_equal(term, whole.terms[name][np.ix_(rows, rows)])


def figure(*panels):
    return Figure(dict(title="t", caption="", description="", panels=list(panels))).text()


def test_panels_and_series():
    panel = heatmap(np.zeros((2, 2)))
    series = {str(i): np.arange(3.0) for i in range(MOST_SERIES + 1)}
    fitting = dict(list(series.items())[:-1])
    assert figure(*[panel] * MOST_PANELS)
    with pytest.raises(ValueError, match=str(MOST_PANELS)):
        figure(*[panel] * (MOST_PANELS + 1))
    assert figure(curves(fitting))
    with pytest.raises(ValueError, match=str(MOST_SERIES)):
        figure(curves(series))


def test_settings():
    """MOST_SETTINGS: more options than any scheme has are refused in words."""
    with pytest.raises(locus.LocusError, match="at most"):
        locus.plot("t5", **{f"option_{i}": 1 for i in range(constant("pictures.c", "MOST_SETTINGS") + 1)})


def test_prepared_settings():
    """_MOST settings are kept; one more, and they are read anew."""
    torch = pytest.importorskip("torch")
    import locus.torch
    from locus.torch import direct

    q = torch.from_numpy(draw(3)[0])
    want = locus.torch.attend(q, q, q, scale=0.5)
    for number in range(direct._MOST + 2):
        scale = 1 + number / 1024
        out = locus.torch.attend(q, q, q, scale=scale)
        if number % 64 == 0:
            assert np.allclose(out, plain(q.numpy() * (2 * scale), q.numpy(), q.numpy()), atol=1e-5)
    assert len(direct._prepared) <= direct._MOST
    assert torch.equal(locus.torch.attend(q, q, q, scale=0.5), want)


def test_plans_differ_in_any_one_number():
    """A plan is kept by the numbers it was made from: every word of them counts."""
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((1, 2, 12, 8), np.float32) for _ in range(3))
    known = np.array([1, 0.3, 0.1, 0.03], np.float32)

    def turned(frequencies):
        return locus.attend(q, k, v, scheme="rope", pairing="half", frequencies=frequencies)

    first = turned(known)
    for index in range(known.size):
        other = known.copy()
        other[index] += np.float32(0.25)
        assert not np.array_equal(turned(other), first), index
    rows = np.arange(23) % 5
    bias = random.standard_normal((5, 2), np.float32)
    first = locus.attend(q, k, v, scheme="table", rows=rows, bias=bias, delta_min=-11)
    for index in range(rows.size):
        other = rows.copy()
        other[index] = (other[index] + 1) % 5
        assert not np.array_equal(locus.attend(q, k, v, scheme="table", rows=other, bias=bias, delta_min=-11), first), index


@pytest.mark.parametrize("stride", [0, 3, -5, 1 << 61])
def test_strides_of_single_elements_mean_nothing(stride):
    q, k, v = draw(6)
    want = locus.attend(q, k, v)
    odd = np.lib.stride_tricks.as_strided(q, q.shape, (stride, *q.strides[1:]))
    out = np.zeros_like(want)
    into = np.lib.stride_tricks.as_strided(out, out.shape, (stride, *out.strides[1:]))
    locus.attend(odd, k, v, out=into)
    assert np.array_equal(out, want)


@pytest.mark.parametrize("bit", [0, 31, 32, 61])
def test_seeds_count_to_their_last_bit(bit):
    torch = pytest.importorskip("torch")
    import locus.torch

    q, k, v = draw(16)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    results = []
    for seed in (5, 5 ^ 1 << bit):
        got = locus.torch.attend(*tensors, dropout=0.5, seed=torch.tensor([seed])).numpy()
        assert np.array_equal(got, locus.attend(q, k, v, dropout=0.5, dropout_seed=seed))
        results.append(got)
    assert not np.array_equal(*results)


@pytest.mark.parametrize("length", [MOST_READ - 1, MOST_READ, MOST_READ + 1, 2 * MOST_READ + 1])
def test_longest_mask_that_every_layer_reads(length):
    torch = pytest.importorskip("torch")
    from locus.torch import masks

    mask = torch.zeros(1, 1, 1, length)
    assert masks.hides_nothing(mask) == (length <= MOST_READ)
    assert masks.hides_nothing(mask.expand(-1, -1, length, -1)) == (length <= MOST_READ)
    assert masks.from_additive(mask, 1, length, length - 1) == masks.EVERYTHING
    mask[..., -1] = torch.finfo(torch.float32).min
    assert not masks.hides_nothing(mask)
    assert not masks.from_additive(mask, 1, length, length - 1).key_mask[0, -1]
