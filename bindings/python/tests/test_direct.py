# SPDX-License-Identifier: Apache-2.0
"""The short way of a call and the long one: the same bits, the same refusals."""

import concurrent.futures
import gc
import os
import sys

import pytest

torch = pytest.importorskip("torch")

from conftest import CALLS, Call  # noqa: E402
from test_leaks import CALLS as LEAK_CALLS  # noqa: E402
from test_leaks import resident  # noqa: E402

from locus import LocusError, _native  # noqa: E402
from locus.torch import attend, direct, functional  # noqa: E402


SHORT = direct.attend


def both(monkeypatch, call):
    """(short, long)"""
    taken = []

    def watched(*args):
        found = SHORT(*args)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(functional.direct, "attend", watched)
    first = call()
    assert taken and all(taken)
    monkeypatch.setattr(functional.direct, "attend", lambda *args: None)
    return first, call()


@pytest.mark.parametrize("scheme", sorted(CALLS))
def test_same_bits(scheme, monkeypatch):
    made = Call(scheme)
    tensors = {name: torch.from_numpy(array).requires_grad_() for name, array in made.arrays.items()}
    mask = torch.rand(1, 1, 9, 9, generator=torch.Generator().manual_seed(1)) < 0.8
    by_key = torch.arange(9)[None] < torch.tensor([9, 7])[:, None]

    def call():
        out, lse = attend(**tensors, **made.keywords, causal=True, mask=mask, key_mask=by_key, return_lse=True)
        return out, lse, *torch.autograd.grad(out.square().sum() + 0 * lse.nan_to_num(0, 0, 0).sum(), tensors.values())

    for got, want in zip(*both(monkeypatch, call)):
        assert torch.equal(got, want)

    def without_lse():
        out = attend(**tensors, **made.keywords)
        return out, *torch.autograd.grad(out.square().sum(), tensors.values())

    for got, want in zip(*both(monkeypatch, without_lse)):
        assert torch.equal(got, want)


def test_layouts(monkeypatch):
    rows = torch.randn(2, 5, 3, 3 * 8).transpose(1, 2)
    q, k, v = rows.chunk(3, -1)
    got, want = both(monkeypatch, lambda: attend(q, k, v))
    assert torch.equal(got, want) and got.stride() == want.stride()


def test_what_takes_the_long_way():
    q = torch.randn(1, 2, 5, 8)
    minus = torch.randn(1, 2, 5, 8, dtype=torch.complex64).conj().imag
    assert minus.is_neg()
    torch.testing.assert_close(attend(minus, q, q), attend(minus.resolve_neg(), q, q))
    torch.testing.assert_close(attend(torch._neg_view(q), q, q), attend(-q, q, q))
    wide = torch.randn(1, 2, 5, 16)[..., ::2]
    torch.testing.assert_close(attend(wide, q, q), attend(wide.contiguous(), q, q))
    with torch.inference_mode():
        torch.testing.assert_close(attend(q.clone(), q, q), attend(q, q, q))


def test_settings_are_kept_and_bounded():
    q = torch.randn(1, 1, 1, 8)
    for offset in range(direct._MOST + 10):
        attend(q, q, q, causal=True, query_offset=offset)
    assert len(direct._prepared) <= direct._MOST


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_nothing_is_kept():
    torch.set_num_threads(1)  # two would wait for each other 300,000 times
    q, k, v = (torch.randn(1, 1, 2, 4, requires_grad=True) for _ in range(3))
    bare = q.detach()
    tokens, odd = torch.randn(1, 2, 4), torch.randn(1, 2, 5)

    def repeat(count):
        for _ in range(count):
            attend(bare, bare, bare, causal=True)
            direct.attend_plainly(tokens, tokens, tokens, 2)
            direct.attend_plainly(odd, odd, odd, 2)
            _native.hides_nothing(bare)
        for _ in range(count // 10):
            attend(q, k, v).sum().backward()
            q.grad = k.grad = v.grad = None
        gc.collect()

    repeat(2000)
    watched = (bare, tokens, odd, True, False)
    references, memory = [sys.getrefcount(thing) for thing in watched], resident()
    repeat(LEAK_CALLS)
    assert all(abs(sys.getrefcount(thing) - before) < 20 for thing, before in zip(watched, references))
    assert resident() - memory < 4 << 20


@pytest.mark.parametrize("more", [dict(scale=[1]), dict(window_left=0.5), dict(causal="yes"), dict(scheme=3)])
def test_refusals(more):
    q = torch.randn(1, 1, 1, 8)
    with pytest.raises(LocusError) as caught:
        attend(q, q, q, **more)
    assert "\n" not in str(caught.value)


def test_bad_calls_of_the_module():
    """The extension module trusts nobody."""
    q = torch.randn(1, 1, 2, 8)
    out, ready = torch.empty_like(q), _native.prepare({"scheme": "none"})
    good = (ready, 1, 0, out, None, 0, q, 1, q, 2, q)
    _native.run(*good)
    for place, value in ((0, object()), (1, "x"), (1, -1), (2, -1), (3, None), (5, 99), (5, 1), (6, 3), (10, None)):
        bad = list(good)
        bad[place] = value
        with pytest.raises((LocusError, TypeError, ValueError, OverflowError)):
            _native.run(*bad)
    for count in range(11):
        with pytest.raises(TypeError):
            _native.run(*good[:count])
    good = (ready, 0, 0, 0, q, 1, q, 2, q)
    assert torch.equal(_native.attend(*good), out)
    for place, value in ((0, object()), (1, "x"), (1, -1), (3, 99), (3, 1), (4, 3), (8, None)):
        bad = list(good)
        bad[place] = value
        assert _native.attend(*bad) is None
    for count in range(9):
        with pytest.raises(TypeError):
            _native.attend(*good[:count])
    lse, every = torch.empty(1, 1, 2), (True, False, True)
    back = (ready, 0, 0, out, lse, q, every, 0, q, 1, q, 2, q)
    grads = _native.attend_backward(*back)
    assert [g is not None for g in grads] == list(every)
    for place, value in ((2, "x"), (6, ()), (6, (True,) * 4), (6, None), (11, 1 << 70), (4, q), (5, lse), (5, None)):
        bad = list(back)
        bad[place] = value
        with pytest.raises((LocusError, TypeError, ValueError, OverflowError)):
            _native.attend_backward(*bad)
    with pytest.raises(TypeError):
        _native.torch((1, 2))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_dropout_takes_the_short_way(kind, monkeypatch):
    """Halves are not copied, plans are not made anew for each seed, and the bits are those of the long way."""
    tensors = [torch.randn(2, 3, 9, 8).to(kind).requires_grad_() for _ in range(3)]
    seeds = [torch.tensor([5]), torch.tensor([6])]

    def results():
        outs = [attend(*tensors, dropout=0.3, seed=seed) for seed in seeds]
        return outs + [g for out in outs for g in torch.autograd.grad(out.float().sum(), tensors)]

    results()
    misses = _native.cache_info()["misses"]
    short = results()
    assert _native.cache_info()["misses"] == misses
    assert short[0].dtype is kind and not torch.equal(short[0], short[1])
    monkeypatch.setattr(direct, "attend", lambda *args: None)
    for a, b in zip(short, results()):
        assert torch.equal(a, b) if kind is torch.float32 else torch.allclose(a.float(), b.float(), atol=0.02, rtol=0.02)


def test_dropout_from_many_threads():
    """A plan that another thread computes with keeps its seed."""
    q = torch.randn(1, 2, 64, 16)
    want = [attend(q, q, q, dropout=0.5, seed=torch.tensor([i])) for i in range(4)]

    def work(i):
        return all(torch.equal(attend(q, q, q, dropout=0.5, seed=torch.tensor([i])), want[i]) for _ in range(50))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_width_of_values_and_layout_by_token():
    q, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 3)
    settings = ("none", False, -1, -1, None, None, None, 0.0)
    plain = direct.attend(q, q, v, None, None, settings, {}, False)
    by_token = direct.attend(q, q, v, None, None, settings, {}, False, True)
    assert by_token.shape == (2, 5, 4, 3) and by_token.is_contiguous()
    assert torch.equal(by_token.transpose(1, 2), plain)
    for how in (False, True):
        leaves = [t.clone().requires_grad_() for t in (q, q, v)]
        out = direct.attend(*leaves, None, None, settings, {}, False, how)
        grads = torch.autograd.grad((out**2).sum(), leaves)
        if how:
            assert all(torch.equal(a, b) for a, b in zip(grads, before))
        before = grads


def joined(t):
    return t.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("groups, width", [(1, 8), (2, 8), (2, 3)])
@pytest.mark.parametrize("cached", [False, True])
def test_joined_heads(kind, groups, width, cached):
    """[B,T,H*D] in and out: the bits of the call by heads, gradients and second derivatives included."""
    settings = ("none", True, -1, -1, 0, None, None, 0.0)
    by_heads = [torch.randn(2, h, 5, d).to(kind) for h, d in ((4, 8), (4 // groups, 8), (4 // groups, width))]
    tokens = [joined(t).clone() for t in by_heads]
    if cached:
        tokens[1:] = by_heads[1:]
    by_key = torch.arange(5)[None] < torch.tensor([[5], [3]])
    with torch.no_grad():
        want = direct.attend(*by_heads, None, by_key, settings, {}, False, True)
        got = direct.attend_joined(*tokens, 4, settings, None, by_key)
        assert got.is_contiguous() and torch.equal(got, want.flatten(2))
        assert torch.equal(direct.attend_plainly(*tokens, 4), attend(*by_heads).transpose(1, 2).flatten(2))
    leaves, their = ([t.detach().clone().requires_grad_() for t in ts] for ts in (tokens, by_heads))
    got = direct.attend_joined(*leaves, 4, settings, None, by_key)
    want = direct.attend(*their, None, by_key, settings, {}, False, True)
    assert torch.equal(got, want.flatten(2))

    def alike(a, b):
        return all(torch.equal(x, y if x.dim() == 4 else joined(y)) for x, y in zip(a, b))

    assert alike(torch.autograd.grad(got.float().square().sum(), leaves), torch.autograd.grad(want.float().square().sum(), their))
    if kind is torch.float32:
        first = torch.autograd.grad(direct.attend_joined(*leaves, 4, settings).sin().sum(), leaves, create_graph=True)
        their_first = torch.autograd.grad(direct.attend(*their, None, None, settings, {}, False, True).sin().sum(), their, create_graph=True)
        second = [torch.autograd.grad(sum(g.square().sum() for g in gs), ts) for gs, ts in ((first, leaves), (their_first, their))]
        for a, b in zip(*second):
            torch.testing.assert_close(a, b if a.dim() == 4 else joined(b))


def test_joined_heads_that_do_not_divide():
    q = torch.randn(1, 5, 12)
    assert direct.attend_plainly(q, q, q, 5) is None
    assert direct.attend_plainly(q, torch.randn(1, 5, 10), q, 4) is None
    assert direct.attend_plainly(q.double(), q.double(), q.double(), 4) is None
    assert direct.attend_plainly(q.requires_grad_(), q, q, 4) is None
    with pytest.raises(ValueError, match="heads: found 5, expected a divisor of 12"):
        needs = (True, True, True)
        lse = torch.zeros(1, 5, 5)
        pairs = (0, q.detach(), 1, q.detach(), 2, q.detach())
        _native.attend_backward(direct.prepared(("none", False, -1, -1, 0, None, None, 0.0)), 0, 5 << 8, q.detach(), lse, q.detach(), needs, *pairs)
