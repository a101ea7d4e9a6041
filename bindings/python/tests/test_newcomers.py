# SPDX-License-Identifier: Apache-2.0
"""What people try first: shapes without elements, shapes without data, modules on meta."""

import pytest

torch = pytest.importorskip("torch")

from locus import LocusError  # noqa: E402
from locus.torch import attend, nn, scaled_dot_product_attention  # noqa: E402


@pytest.mark.parametrize("shape", [(0, 3, 5, 8), (2, 0, 5, 8), (2, 3, 0, 8), (0, 0, 0, 8)])
def test_backward_of_nothing(shape):
    """The gradient of a sum is one number with strides 0, also where there is nothing to sum."""
    q = torch.randn(shape, requires_grad=True)
    out = scaled_dot_product_attention(q, q, q)
    assert out.shape == shape
    out.sum().backward()
    assert q.grad.shape == shape


def test_no_keys():
    q = torch.randn(2, 3, 5, 8, requires_grad=True)
    k = torch.randn(2, 3, 0, 8, requires_grad=True)
    out = attend(q, k, k)
    assert torch.equal(out, torch.zeros_like(q))
    out.sum().backward()
    assert torch.equal(q.grad, torch.zeros_like(q)) and k.grad.shape == k.shape


@pytest.mark.parametrize("scheme", ["none", "t5", "deberta", "rope"])
@pytest.mark.parametrize("shape", [(2, 0, 16), (0, 4, 16)])
def test_modules_on_nothing(scheme, shape):
    layer = nn.EncoderLayer(16, 2, scheme=scheme)
    out = layer(torch.randn(shape))
    assert out.shape == shape
    out.sum().backward()


@pytest.mark.parametrize("needs", [False, True])
def test_meta(needs):
    q = torch.empty(2, 3, 5, 8, device="meta", requires_grad=needs)
    out = attend(q, q, q)
    assert out.is_meta and out.shape == q.shape and out.requires_grad == needs
    if needs:
        out.sum().backward()
        assert q.grad.is_meta and q.grad.shape == q.shape
    with pytest.raises(LocusError, match="meta"):
        attend(q, torch.randn(2, 3, 5, 8), q)


@pytest.mark.parametrize("scheme", ["none", "t5", "deberta"])
def test_module_made_on_meta(scheme):
    with torch.device("meta"):
        layer = nn.EncoderLayer(16, 2, scheme=scheme)
    assert layer(torch.empty(2, 5, 16, device="meta")).shape == (2, 5, 16)
    other = nn.EncoderLayer(16, 2, scheme=scheme)
    layer.to_empty(device="cpu").load_state_dict(other.state_dict(), strict=True)
    x = torch.randn(2, 5, 16)
    assert torch.equal(layer(x), other(x))


def test_results_are_on_the_cpu_whatever_the_default_device():
    q = torch.randn(2, 3, 5, 8, requires_grad=True)
    with torch.device("meta"):
        out = attend(q, q, q)
        out.sum().backward()
    assert out.device.type == "cpu" and q.grad.device.type == "cpu"


@pytest.mark.filterwarnings("ignore")
def test_jit_trace_records_the_call():
    """A trace keeps the operator, not the numbers that it gave for the example."""
    q, k, v = (torch.randn(1, 2, 5, 8) for _ in range(3))
    traced = torch.jit.trace(lambda q, k, v: attend(q, k, v, causal=True), (q, k, v))
    other = torch.randn(1, 2, 5, 8)
    assert torch.equal(traced(other, k, v), attend(other, k, v, causal=True))
    traced = torch.jit.trace(scaled_dot_product_attention, (q, k, v))
    assert torch.equal(traced(other, k, v), scaled_dot_product_attention(other, k, v))
