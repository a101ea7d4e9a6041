# SPDX-License-Identifier: Apache-2.0
"""bfloat16 and float16: the numbers of float32, rounded once, without copies."""

import numpy as np
import pytest

import locus

try:
    import torch
except ImportError:
    torch = None

try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16 = None

KINDS = [np.float16] + ([bfloat16] if bfloat16 is not None else [])


def made(kind, *shape):
    return np.random.default_rng(7).normal(size=shape).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["none", "alibi", "rope"])
def test_numpy(kind, scheme):
    q, k, v, dout = made(kind, 4, 2, 3, 20, 8)
    options = {"pairing": "half"} if scheme == "rope" else {}
    out, lse = locus.attend(q, k, v, scheme=scheme, causal=True, return_lse=True, **options)
    wide = [a.astype(np.float32) for a in (q, k, v)]
    want, want_lse = locus.attend(*wide, scheme=scheme, causal=True, return_lse=True, **options)
    assert out.dtype == kind and lse.dtype == np.float32
    assert np.array_equal(out, want.astype(kind)) and np.array_equal(lse, want_lse)
    found = locus.attend_backward(dout, q, k, v, scheme=scheme, causal=True, out=want, lse=lse, **options)
    grads = locus.attend_backward(dout.astype(np.float32), *wide, scheme=scheme, causal=True, out=want, lse=lse, **options)
    for name in "qkv":
        assert found[name].dtype == kind
        assert np.array_equal(found[name], grads[name].astype(kind))


def layer_arrays(kind):
    return {
        "x": made(kind, 2, 9, 12),
        "w_q": made(kind, 8, 12) / kind(4),
        "w_k": made(np.float32, 8, 12) / 4,  # types may be mixed
        "w_v": made(kind, 8, 12),
        "w_o": made(kind, 12, 8),
        "b_k": made(kind, 8),
        "bias": made(kind, 8, 2),
    }


T5 = dict(heads=2, scheme="t5", buckets=8, max_distance=16, bidirectional=True)


@pytest.mark.parametrize("kind", KINDS)
def test_layer(kind):
    arrays = layer_arrays(kind)
    dout = made(kind, 2, 9, 12)
    wide = {name: array.astype(np.float32) for name, array in arrays.items()}
    out = locus.layer(**arrays, **T5)
    want = locus.layer(**wide, **T5)
    assert out.dtype == kind and np.array_equal(out, want.astype(kind))
    found = locus.layer_backward(dout, **arrays, **T5)
    grads = locus.layer_backward(dout.astype(np.float32), **wide, **T5)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype, name
        assert np.array_equal(found[name], grads[name].astype(array.dtype)), name
    into = np.empty(out.shape, np.float32)
    locus.layer(**arrays, **T5, out=into)
    assert np.array_equal(into, want)


@pytest.mark.parametrize("kind", KINDS)
def test_layer_in_a_file(kind, tmp_path):
    """A layer of halves from a file: the stored numbers, as exact as with float32."""
    settings = {name: value for name, value in T5.items() if name != "scheme"}
    case = locus.case.Case("layer", "t5", layer_arrays(kind), settings, dout=made(kind, 2, 9, 12))
    locus.case.save(tmp_path / "layer.safetensors", case)
    found = locus.case.run(tmp_path / "layer.safetensors")
    want = locus.case.run(tmp_path / "layer.safetensors", oracle=True)
    assert found.out.dtype == np.float32 and np.abs(found.out - want.out).max() < 5e-6 * np.abs(want.out).max()
    # One scale for all: the gradient of b_k is 0, a sum of terms as large as those of the others.
    largest = max(np.abs(grad).max() for grad in want.grads.values())
    for name, grad in want.grads.items():
        assert np.abs(found.grads[name] - grad).max() < 2e-5 * largest, name


def test_another_type_is_still_refused():
    q = made(np.float64, 1, 1, 4, 4)
    with pytest.raises(ValueError, match="found F64"):
        locus.attend(q, q, q)
    arrays = layer_arrays(np.float16)
    with pytest.raises(ValueError, match="tensor grad.w_k: found another type, expected F32"):
        config, tensors = locus._layer._prepare(*(arrays[name] for name in ("x", "w_q", "w_k", "w_v")), None, 2, False, None, 0.0, "none", {})
        out, lse, saved = locus._layer._forward(config, tensors, None, None)
        grads = {"w_k": np.empty((8, 12), np.float16)}
        locus._native.layer_backward(config, tensors, saved, out, grads, False, None)


@pytest.mark.skipif(torch is None, reason="torch is not installed")
class TestTorch:
    kinds = pytest.mark.parametrize("kind", ["bfloat16", "float16"])

    @kinds
    def test_attend(self, kind):
        import locus.torch as lt

        kind = getattr(torch, kind)
        torch.manual_seed(1)
        q, k, v, dout = torch.randn(4, 2, 3, 20, 8).to(kind)
        q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for t in (q, k, v))
        bias = torch.randn(32, 3).to(kind).requires_grad_()
        call = {"scheme": "t5", "buckets": 32, "max_distance": 128, "bidirectional": 1}
        out = lt.attend(q, k, v, bias=bias, **call)
        wide = [t.detach().float().requires_grad_() for t in (q, k, v, bias)]
        want = lt.attend(*wide[:3], bias=wide[3], **call)
        assert out.dtype is kind and torch.equal(out, want.to(kind)) and out.stride() == q.stride()
        grads = torch.autograd.grad(out, (q, k, v, bias), dout)
        expected = torch.autograd.grad(want, wide, dout.float())
        for grad, other in zip(grads, expected):
            assert grad.dtype is kind
            assert torch.allclose(grad.float(), other, atol=2e-2, rtol=2e-2)

    @kinds
    def test_sdpa(self, kind):
        import locus.torch as lt

        q, k, v = torch.randn(3, 2, 4, 33, 16).to(getattr(torch, kind))
        found = lt.scaled_dot_product_attention(q, k, v, is_causal=True)
        want = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
        assert found.dtype is q.dtype
        assert torch.allclose(found.float(), want, atol=1e-2)

    @kinds
    def test_no_copies(self, kind, monkeypatch):
        """The short way alone serves them, forward and backward."""
        import locus.torch as lt
        from locus.torch import functional

        monkeypatch.setattr(functional.op, "call", None)
        q, k, v = (t.requires_grad_() for t in torch.randn(3, 1, 2, 9, 8).to(getattr(torch, kind)))
        lt.attend(q, k, v, scheme="alibi").sum().backward()
        assert q.grad.dtype is q.dtype

    @kinds
    def test_no_copies_in_graphs(self, kind):
        """torch.compile and torch.func hand halves over as they are: no conversion is in the graph, and the bits are the same."""
        import locus.torch as lt
        from torch._dynamo.backends.common import aot_autograd
        from functorch.compile import make_boxed_func

        kind, nodes = getattr(torch, kind), []

        def watched(module, inputs):
            nodes.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
            return make_boxed_func(module.forward)

        def attended(q, k, v, bias):
            return lt.attend(q, k, v, scheme="t5", bias=bias, buckets=32, max_distance=128, bidirectional=1)

        given = [torch.randn(shape).to(kind) for shape in ((2, 3, 9, 8),) * 3 + ((32, 3),)]
        leaves, dout = [t.clone().requires_grad_() for t in given], torch.randn(2, 3, 9, 8).to(kind)
        want = torch.autograd.grad(attended(*leaves), leaves, dout)
        out = torch.compile(attended, fullgraph=True, backend=aot_autograd(fw_compiler=watched, bw_compiler=watched))(*leaves)
        assert torch.equal(out, attended(*given))
        assert all(torch.equal(a, b) for a, b in zip(torch.autograd.grad(out, leaves, dout), want))
        assert any("attend_backward" in node for node in nodes) and not any("_to_copy" in node for node in nodes)
        out, pull = torch.func.vjp(attended, *given)
        assert torch.equal(out, attended(*given)) and all(torch.equal(a, b) for a, b in zip(pull(dout), want))

    @kinds
    def test_operator(self, kind):
        from locus.torch.op import OTHERS, TABLES

        q, k, v = torch.randn(3, 1, 2, 5, 4).to(getattr(torch, kind))
        others = len(TABLES + OTHERS) + 1  # the seed is the last
        call = [q.requires_grad_(), k, v.float(), *[None] * others, "none", "", True, -1, -1, None, None, 0.0, None]
        torch.library.opcheck(torch.ops.locus.attend.default, tuple(call))
        out, lse = torch.ops.locus.attend(*call)
        assert out.dtype is q.dtype and lse.dtype is torch.float32

    @kinds
    def test_lse_and_second_derivatives(self, kind):
        import locus.torch as lt

        kind = getattr(torch, kind)
        q, k, v = (t.requires_grad_() for t in torch.randn(3, 1, 1, 5, 4).to(kind))
        out, lse = lt.attend(q, k, v, return_lse=True)
        assert lse.dtype is torch.float32
        (grad,) = torch.autograd.grad(out.float().sum() + lse.sum(), q, create_graph=True)
        assert grad.dtype is kind
        grad.float().square().sum().backward()
        assert q.grad.dtype is kind and torch.isfinite(q.grad).all()

    def test_attn_implementation(self):
        """A model in bfloat16, its attention in Locus and in PyTorch: as near to each other as to float32."""
        transformers = pytest.importorskip("transformers")
        import locus.torch  # noqa: F401

        config = transformers.LlamaConfig(
            vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64,
        )
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        ids = torch.arange(40)[None] % 99
        exact = model(ids).logits.detach()
        found = {}
        for way in ("sdpa", "locus"):
            model.bfloat16().set_attn_implementation(way)
            found[way] = model(ids).logits.detach()
            assert found[way].dtype is torch.bfloat16
        near = float((found["sdpa"].float() - exact).abs().max())
        assert float((found["locus"].float() - exact).abs().max()) <= 2 * near
