# SPDX-License-Identifier: Apache-2.0
"""locus.torch.scaled_dot_product_attention beside PyTorch's, on PyTorch's own samples among others."""

import importlib.util
import sys
import types
import unittest

import pytest

torch = pytest.importorskip("torch")

import locus.torch  # noqa: E402
from locus import LocusError  # noqa: E402

ours = locus.torch.scaled_dot_product_attention
theirs = torch.nn.functional.scaled_dot_product_attention
CLOSE = 2e-5  # of the largest element; PyTorch's is float32, too


def samples(dtype, requires_grad):
    """PyTorch's OpInfo samples of scaled_dot_product_attention."""
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:  # torch's test helpers derive a class from its TestCase
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    (info,) = [o for o in op_db if o.name == "nn.functional.scaled_dot_product_attention"]
    return list(info.sample_inputs("cpu", dtype, requires_grad=requires_grad))


def tensors_of(args, kwargs):
    return [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.requires_grad]


def close(got, want, tolerance, what):
    assert got.shape == want.shape and got.dtype == want.dtype, what
    largest = max(1.0, float(want.detach().abs().max())) if want.numel() else 1.0
    assert not want.numel() or float((got.detach() - want.detach()).abs().max()) <= tolerance * largest, what


def compare(*args, tolerance=CLOSE, **kwargs):
    """out and gradients; returns ours."""
    inputs = tensors_of(args, kwargs)
    got, want = ours(*args, **kwargs), theirs(*args, **kwargs)
    close(got, want, tolerance, "out")
    if inputs:
        weight = torch.randn(want.shape, generator=torch.Generator().manual_seed(2)).to(want.dtype)
        grads = zip(torch.autograd.grad(got, inputs, weight), torch.autograd.grad(want, inputs, weight))
        for a, b in grads:
            close(a, b, tolerance, "gradient")
    return got


def kept_weights(args, kwargs):
    """The formula with just those weights that Locus drops under the current seed."""
    torch.manual_seed(0)
    q, k, v = args
    shape = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    eye = torch.eye(k.shape[-2], dtype=v.dtype).expand(*shape, -1, -1)
    kept = ours(q * 0, k * 0, eye, dropout_p=kwargs["dropout_p"]).detach() != 0
    logits = q @ k.mT * q.shape[-1] ** -0.5
    if kwargs.get("is_causal"):
        logits = logits.masked_fill(~torch.ones(logits.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return (logits.softmax(-1) * kept / (1 - kwargs["dropout_p"])) @ v


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_of_pytorch(dtype):
    count = 0
    for sample in samples(dtype, True):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        if kwargs.get("dropout_p", 0.0) == 0.0:
            compare(*args, tolerance=CLOSE if dtype == torch.float32 else 1e-10, **kwargs)
        else:
            want = kept_weights(args, kwargs)
            torch.manual_seed(0)
            got = ours(*args, **kwargs)
            close(got, want, CLOSE, "out under dropout")
            inputs = tensors_of(args, kwargs)
            for a, b in zip(torch.autograd.grad(got.sum(), inputs), torch.autograd.grad(want.sum(), inputs)):
                close(a, b, CLOSE, "gradient under dropout")
        count += 1
    assert count >= 20


def test_gradcheck_of_samples():
    for sample in samples(torch.float64, True)[:5:4]:
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        torch.autograd.gradcheck(lambda *a: ours(*a, **kwargs), args, check_forward_ad=True, fast_mode=True)


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 2, 3), (2, 1, 2, 3)])
def test_axes(lead):
    q, k, v = normal(*lead, 5, 8), normal(*lead, 7, 8), normal(*lead, 7, 4)
    compare(q, k, v)
    compare(q, k, v, is_causal=True)
    compare(q, k, v, attn_mask=torch.ones(5, 7, dtype=torch.bool).tril(2), scale=0.3)


@pytest.mark.parametrize("shape", [(5, 1), (5, 7), (1, 1, 1, 7), (2, 1, 5, 7), (1, 4, 5, 7), (2, 4, 1, 7)])
def test_masks_broadcast(shape):
    q, k, v = normal(2, 4, 5, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 6)
    seen = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.7
    compare(q, k, v, attn_mask=seen | (torch.arange(shape[-1]) == 0))
    compare(q, k, v, attn_mask=normal(*shape))
    compare(q, k, v, attn_mask=torch.zeros(shape).masked_fill(~seen & (torch.arange(shape[-1]) > 0), -torch.inf))


def test_mask_over_several_batch_axes():
    q, k, v = normal(2, 3, 4, 5, 8), normal(2, 3, 4, 7, 8), normal(2, 3, 4, 7, 6)
    compare(q, k, v, attn_mask=normal(3, 1, 5, 7))
    compare(q, k, v, attn_mask=normal(2, 1, 1, 1, 7))


def test_grouped_heads_and_broadcast_batches():
    q, k, v = normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 8)
    compare(q, k, v, enable_gqa=True)
    compare(normal(2, 4, 5, 8), normal(1, 4, 7, 8), normal(1, 4, 7, 8))
    compare(normal(2, 4, 5, 8), normal(2, 1, 7, 8), normal(2, 1, 7, 8))
    with pytest.raises(LocusError, match="heads: found shapes"):
        ours(q, k, v)


def test_rows_that_see_nothing():
    q, k, v = normal(1, 2, 3, 8), normal(1, 2, 4, 8), normal(1, 2, 4, 8)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    assert compare(q, k, v, attn_mask=mask)[:, :, 1].abs().max() == 0


@pytest.mark.parametrize("shape", [(0, 2, 3, 8), (2, 2, 0, 8)])
def test_nothing_to_do(shape):
    q = torch.randn(shape)
    assert ours(q, q, q).shape == theirs(q, q, q).shape


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow(dtype):
    q, k, v = (normal(2, 3, 9, 16, dtype=dtype) for _ in range(3))
    compare(q, k, v, is_causal=True, tolerance=2 ** (-6 if dtype == torch.bfloat16 else -9))


@pytest.mark.parametrize(
    "line, call",
    [
        ("expected one of the two", lambda q: ours(q, q, q, attn_mask=torch.ones(4, 4, dtype=torch.bool), is_causal=True)),
        ("expected a torch.Tensor", lambda q: ours(q, [1], q)),
        ("at least 2 axes", lambda q: ours(q[0, 0, 0], q, q)),
        ("expected shapes that broadcast", lambda q: ours(q, q, q, attn_mask=torch.ones(3, 4))),
        ("expected torch.bool or a floating type", lambda q: ours(q, q, q, attn_mask=torch.ones(4, 4, dtype=torch.int32))),
        ("use dropout=", lambda q: locus.torch.attend(q, q, q, dropout_p=0.1)),
        ("use causal=", lambda q: locus.torch.attend(q, q, q, is_causal=True)),
        ("use mask= for booleans", lambda q: locus.torch.attend(q, q, q, attn_mask=torch.ones(4, 4))),
        ("expected 4 axes", lambda q: locus.torch.attend(q[0], q[0], q[0])),
    ],
)
def test_refusals(line, call):
    with pytest.raises(LocusError, match=line) as caught:
        call(torch.randn(1, 2, 4, 8))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_autocast(kind):
    """The type of the result, and of what follows, is PyTorch's; the numbers are as near to float32 as halves are."""
    q, k, v = (torch.randn(2, 3, 9, 8, requires_grad=True) for _ in range(3))
    added = torch.randn(9, 9)
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, added)
    with torch.autocast("cpu", dtype=kind):
        want = torch.nn.functional.scaled_dot_product_attention(q, k, v, added)
        found = locus.torch.scaled_dot_product_attention(q, k, v, added)
        wide = locus.torch.scaled_dot_product_attention(q.double(), k.double(), v.double())
    assert found.dtype is want.dtype is kind and wide.dtype is torch.float64
    assert (found - exact).abs().max() <= 0.05
    found.float().sum().backward()
    assert q.grad.dtype is torch.float32
