# SPDX-License-Identifier: Apache-2.0
"""Derivatives of locus.torch.attend: each kind that torch knows is right, for every scheme, lse included."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from conftest import CALLS, Call  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import locus  # noqa: E402
from locus.torch import attend  # noqa: E402

@pytest.fixture(autouse=True)
def one_thread():
    """Hundreds of tiny calls: on a busy machine a second thread is mostly waited for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


CLOSE = 2e-5  # of the largest element: float32 against double, as for gradients elsewhere
EXACT = 1e-12  # double against the oracle, which is double too

# Calls beside those of conftest: what else a scheme can be asked for.
OTHERS = {
    "kerple": [dict(form="power")],
    "rope": [dict(pairing="half"), dict(pairing="half", width=6, theta_scale=0.5, base=50.0)],
    "shaw": [dict(clip_left=0, clip_right=0)],
    "transformer_xl": [dict(delta_min=-4, clamp=4)],
}
VARIANTS = [(name, None) for name in sorted(CALLS)] + [(name, i) for name in OTHERS for i in range(len(OTHERS[name]))]


def made(scheme, variant=None):
    """Tensors in double by name, and keywords of one call."""
    call = Call(scheme)
    options = call.options if variant is None else OTHERS[scheme][variant]
    arrays = dict(call.arrays)
    if "clip_left" in options:
        rows = options["clip_left"] + options["clip_right"] + 1
        arrays.update({name: arrays[name][:rows] for name in ("rel_k", "rel_v")})
    if options.get("clamp"):
        arrays["rel_k"] = arrays["rel_k"][:, : 2 * options["clamp"] + 1]
    tensors = {name: torch.from_numpy(array).double() for name, array in arrays.items()}
    return tensors, dict(options, scheme=scheme)


def small(scheme, variant=None):
    """The same with one batch entry and four tokens, for derivatives by differences."""
    tensors, keywords = made(scheme, variant)
    return {name: t[:1, :, :4] if name in ("q", "k", "v") else t for name, t in tensors.items()}, keywords


def function_of(names, keywords, kind=None):
    """f(*tensors) -> [B,H,Tq,Dv + 1]: out with lse as one more column."""

    def call(*tensors):
        tensors = [t if kind is None else t.to(kind) for t in tensors]
        out, lse = attend(**dict(zip(names, tensors)), **keywords, return_lse=True)
        return torch.cat([out, lse[..., None]], -1)

    return call


def close(got, want, tolerance=CLOSE):
    got, want = (x if isinstance(x, (tuple, list)) else [x] for x in (got, want))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(a, (tuple, list)):
            close(a, b, tolerance)
            continue
        largest = max(1.0, float(b.detach().abs().max())) if b.numel() else 1.0
        assert a.shape == b.shape and float((a.detach().double() - b.detach()).abs().max()) <= tolerance * largest


# ---- the formula in torch operations ----


@pytest.mark.parametrize("scheme, variant", VARIANTS)
@pytest.mark.parametrize("settings", [{}, dict(causal=True), dict(window_left=2, window_right=1, scale=0.7)])
def test_double_is_the_oracle(scheme, variant, settings):
    tensors, keywords = made(scheme, variant)
    tensors["q"] = tensors["q"][:, :, 4:]
    arrays = {name: t.float().numpy() for name, t in tensors.items()}
    options = {name: value for name, value in keywords.items() if name != "scheme"}
    want = locus.case.run(locus.case.Case("attend", scheme, arrays, dict(options, **settings)), oracle=True)
    out, lse = attend(**tensors, **keywords, **settings, return_lse=True)
    assert out.dtype == lse.dtype == torch.float64
    close(out, torch.from_numpy(np.asarray(want.out)).double(), EXACT if want.out.dtype == np.float64 else 2e-7)
    close(lse, torch.from_numpy(np.asarray(want.lse)).double(), EXACT if want.lse.dtype == np.float64 else 2e-7)


@pytest.mark.parametrize("scheme, variant", VARIANTS)
def test_gradcheck(scheme, variant):
    tensors, keywords = small(scheme, variant)
    inputs = [t.clone().requires_grad_() for t in tensors.values()]
    call = function_of(tensors, keywords)
    torch.autograd.gradcheck(call, inputs, check_forward_ad=True, fast_mode=True)


@pytest.mark.parametrize("scheme", ["none", "t5", "deberta", "shaw"])
def test_gradgradcheck(scheme):
    tensors, keywords = small(scheme)
    inputs = [t.clone().requires_grad_() for t in tensors.values()]
    torch.autograd.gradgradcheck(function_of(tensors, keywords), inputs, fast_mode=True)


def test_gradcheck_of_the_kernels():
    """The fused passes against differences of themselves: float32, so wide steps and a wide tolerance."""
    tensors, keywords = small("t5")
    inputs = [t[:, :, :2] if t.dim() == 4 else t for t in tensors.values()]
    inputs = [t.float().clone().requires_grad_() for t in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that float32 is not double
        torch.autograd.gradcheck(function_of(tensors, keywords), inputs, eps=2e-2, atol=4e-2, rtol=1e-2)


# ---- every kind of derivative of the float32 operator ----


def _loss(f):
    return lambda *tensors: f(*tensors).square().sum()


def _tangents(tensors):
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.dtype) for t in tensors)


def _every(tensors):
    return tuple(range(len(tensors)))


def _jvp(f, *tensors):
    return torch.func.jvp(f, tensors, _tangents(tensors))


def _linearized(f, *tensors):
    _, push = torch.func.linearize(f, *tensors)
    return push(*_tangents(tensors))


def _grad(f, *tensors):
    return torch.func.grad(_loss(f), _every(tensors))(*tensors)


def _vjp(f, *tensors):
    out, pull = torch.func.vjp(f, *tensors)
    return pull(torch.ones_like(out))


def _backward_twice(f, *tensors):
    tensors = [t.clone().requires_grad_() for t in tensors]
    grads = torch.autograd.grad(_loss(f)(*tensors), tensors, create_graph=True)
    return torch.autograd.grad(sum((g * t).sum() for g, t in zip(grads, _tangents(tensors))), tensors)


def _dual(f, *tensors):
    with forward_ad.dual_level():
        result = f(*[forward_ad.make_dual(x, t) for x, t in zip(tensors, _tangents(tensors))])
        return forward_ad.unpack_dual(result).tangent


def _dual_over_backward(f, *tensors):
    leaves = [t.clone().requires_grad_() for t in tensors]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(leaves, _tangents(tensors))]
        grads = torch.autograd.grad(_loss(f)(*duals), leaves)
        return [forward_ad.unpack_dual(g).tangent for g in grads]


def _each_alone(f, *tensors):
    """vmap over batch entries, tables shared."""
    dims = tuple(0 if t.dim() == 4 else None for t in tensors)
    return torch.func.vmap(f, in_dims=dims)(*[t[:, None] if t.dim() == 4 else t for t in tensors])


def _gradients_of_each(f, *tensors):
    dims = tuple(0 if t.dim() == 4 else None for t in tensors)
    per_entry = torch.func.vmap(torch.func.grad(_loss(f), _every(tensors)), in_dims=dims)
    return per_entry(*[t[:, None] if t.dim() == 4 else t for t in tensors])


def _each_with_tables(f, *tensors):
    """vmap over tables too: nothing to join."""
    return torch.func.vmap(f)(*[torch.stack([t, 0.5 * t]) for t in tensors])


def _hessian(f, *tensors):
    return torch.func.hessian(_loss(f), (0, len(tensors) - 1))(*tensors)


KINDS = [
    _jvp,
    _linearized,
    _grad,
    _vjp,
    _backward_twice,
    _dual,
    _dual_over_backward,
    _each_alone,
    _gradients_of_each,
    _each_with_tables,
]


MATRIX = [(kind, "shaw") for kind in KINDS] + [
    (kind, scheme) for scheme in sorted(CALLS) if scheme != "shaw" for kind in (_grad, _backward_twice, _each_alone)
]


@pytest.mark.parametrize("kind, scheme", MATRIX)
def test_of_the_operator(kind, scheme):
    tensors, keywords = made(scheme)
    names, values = list(tensors), list(tensors.values())
    want = kind(function_of(names, keywords), *values)
    got = kind(function_of(names, keywords, torch.float32), *[t.float() for t in values])
    close(got, want, 6 * CLOSE if kind in (_backward_twice, _dual_over_backward) else CLOSE)


def _jacrev(f, *tensors):
    return torch.func.jacrev(f, (0, len(tensors) - 1))(*tensors)


def _jacfwd(f, *tensors):
    return torch.func.jacfwd(f, (0, len(tensors) - 1))(*tensors)


def _jacrev_twice(f, *tensors):
    return torch.func.jacrev(torch.func.jacrev(_loss(f)))(*tensors)


def _grad_of_jvp(f, *tensors):
    return torch.func.grad(lambda *t: torch.func.jvp(_loss(f), t, _tangents(t))[1], (0, 1))(*tensors)


@pytest.mark.parametrize("kind", [_jacrev, _jacfwd, _hessian, _jacrev_twice, _grad_of_jvp])
def test_jacobians(kind):
    tensors, keywords = small("t5")
    names, values = list(tensors), list(tensors.values())
    want = kind(function_of(names, keywords), *values)
    close(kind(function_of(names, keywords, torch.float32), *[t.float() for t in values]), want, 6 * CLOSE)


def test_called_without_attend():
    """torch.ops.locus.attend itself has the same derivatives."""
    from locus.torch.op import OTHERS, TABLES

    tensors, _ = made("none")
    rest = [None] * (len(TABLES) + len(OTHERS) + 1) + ["none", "", False, -1, -1, None, None, 0.0, None]
    values = [t.float() for t in tensors.values()]
    got = _jvp(lambda *t: torch.ops.locus.attend(*t, *rest)[0], *values)
    close(got, _jvp(lambda *t: attend(*t), *tensors.values()))
    got = _grad(lambda *t: torch.ops.locus.attend(*t, *rest)[0], *values)
    close(got, _grad(lambda *t: attend(*t), *tensors.values()))


# ---- masks and dropout ----


@pytest.mark.parametrize("kind", [_jvp, _grad, _backward_twice, _each_alone])
def test_masked(kind):
    """Rows that see nothing have no derivative, and what a hidden key holds reaches nobody."""
    tensors, keywords = made("t5")
    by_key = torch.ones(1, 9, dtype=torch.bool)
    by_key[:, 5:] = False
    mask = torch.ones(1, 1, 9, 9, dtype=torch.bool)
    mask[:, :, 3] = False
    dense = torch.zeros(1, 1, 9, 9, dtype=torch.float64)
    dense[..., 2] = -float("inf")

    def masked(kind):
        call = functools.partial(attend, **keywords, mask=mask, bias_dense=dense.to(kind))
        return lambda *t: call(**dict(zip(tensors, t)), key_mask=by_key.expand(t[0].shape[0], -1))

    hidden = tensors["k"].clone()
    hidden[:, :, 5:] = float("nan")
    values = [hidden if name == "k" else t for name, t in tensors.items()]
    want = kind(masked(torch.float64), *tensors.values())
    got = kind(masked(torch.float64), *values)
    if kind in (_jvp, _each_alone):
        close(got, want, EXACT)
    close(kind(masked(torch.float32), *[t.float() for t in tensors.values()]), want, 6 * CLOSE)


@pytest.mark.parametrize("kind", [_jvp, _grad, _backward_twice])
def test_under_dropout(kind):
    tensors, keywords = made("shaw")
    seed = torch.tensor([7])
    names, values = list(tensors), list(tensors.values())
    keywords.update(dropout=0.3, seed=seed)
    want = kind(function_of(names, keywords), *values)
    close(kind(function_of(names, keywords, torch.float32), *[t.float() for t in values]), want, 6 * CLOSE)


def test_vmap_and_dropout():
    q = torch.randn(3, 1, 2, 9, 8)
    one = lambda q: attend(q, q, q, dropout=0.5)  # noqa: E731
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(one)(q)
    same = torch.func.vmap(one, randomness="same")(q[:1].expand(3, -1, -1, -1, -1))
    assert torch.equal(same[0], same[1]) and torch.equal(same[1], same[2])
    different = torch.func.vmap(one, randomness="different")(q[:1].expand(3, -1, -1, -1, -1))
    assert not torch.equal(different[0], different[1])


def test_only_lse():
    """The gradient of lse alone, and of out alone, are not mixed up."""
    tensors, keywords = made("deberta")
    for part in (0, 1):
        want, got = (
            _grad(lambda *t: attend(**dict(zip(tensors, t)), **keywords, return_lse=True)[part], *values)
            for values in (tensors.values(), [t.float() for t in tensors.values()])
        )
        close(got, want)


def test_forward_mode_of_something_else():
    q = torch.randn(1, 2, 5, 4)
    value, tangent = torch.func.jvp(lambda s: attend(q, q, q) * s, (torch.ones(1),), (torch.ones(1),))
    assert torch.equal(value, attend(q, q, q)) and torch.equal(tangent, value)
