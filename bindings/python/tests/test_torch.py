# SPDX-License-Identifier: Apache-2.0
"""locus.torch.attend: numbers and gradients against the plain formula in double, and torch's manners."""

import math
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import plain  # noqa: E402

import locus.torch  # noqa: E402
from locus.torch import attend, exact, op  # noqa: E402

FORWARD, GRADIENT = 5e-6, 2e-5  # of the largest element: float32 against double, as for the golden vectors
B, H, D = 2, 3, 8

# name: (options, {table: shape}); R-free shapes only, for 13 queries and 21 keys
SCHEMES = {
    "none": ({}, {}),
    "shaw": (dict(clip_left=4, clip_right=2), dict(rel_k=(7, D), rel_v=(7, 5))),
    "relative_key": ({}, dict(rel_k=(63, D))),
    "relative_key_query": ({}, dict(rel_k=(63, D))),
    "transformer_xl": (dict(delta_min=-12), dict(rel_k=(H, 33, D), u=(H, D), w=(H, D))),
    "t5": (dict(buckets=8, max_distance=16, bidirectional=1), dict(bias=(8, H))),
    "tupe": ({}, dict(pos_q=(H, 21, D), pos_k=(H, 21, D))),
    "deberta": (dict(span=8, buckets=8, max_distance=12), dict(rel_k=(H, 16, D), rel_q=(H, 16, D))),
    "alibi": ({}, dict(slopes=(H,))),
    "kerple": (dict(form="log"), dict(a=(H,), p=(H,))),
    "rope": (dict(pairing="half"), {}),
}


def tensors(shapes, queries=13, keys=21, heads=H, kv_heads=H, seed=0):
    """q, k, v as views of [B,T,H,D], and tables; all of them want gradients."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator)

    q = normal(B, queries, heads, D).transpose(1, 2)
    k = normal(B, keys, kv_heads, D).transpose(1, 2)
    v = normal(B, keys, kv_heads, 5).transpose(1, 2)
    tables = {name: normal(*shape) for name, shape in shapes.items()}
    for name in ("a", "p", "slopes"):
        if name in tables:
            tables[name] = tables[name].abs() + 0.1
    return [x.requires_grad_() for x in (q, k, v)], {name: x.requires_grad_() for name, x in tables.items()}


def close(got, want, tolerance, what):
    want = want.detach()
    largest = max(1.0, float(want.abs().max()))
    assert float((got.detach().double() - want.double()).abs().max()) <= tolerance * largest, what


def compare(scheme, options, qkv, tables, scale=0.3, seen=None, offset=None, **masks):
    inputs = {**dict(zip("qkv", qkv)), **tables}
    out, lse = attend(
        *qkv, scheme=scheme, scale=scale, query_offset=offset, return_lse=True, **tables, **options, **masks
    )
    want, want_lse = plain.attend(*qkv, scheme, tables, options, scale, seen, offset)
    close(out, want, FORWARD, "out")
    close(lse, want_lse, FORWARD, "lse")
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(9))
    got_grads = torch.autograd.grad((out * weight).sum(), inputs.values())
    want_grads = torch.autograd.grad((want * weight).sum(), inputs.values())
    for name, got, expected in zip(inputs, got_grads, want_grads):
        close(got, expected, GRADIENT, f"gradient of {name}")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_formula(scheme):
    options, shapes = SCHEMES[scheme]
    compare(scheme, options, *tensors(shapes))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_formula_masked(scheme):
    options, shapes = SCHEMES[scheme]
    qkv, tables = tensors(shapes)
    by_key = torch.arange(21)[None] < torch.tensor([21, 10])[:, None]
    causal = plain.distance(13, 21, 8) >= 0
    compare(scheme, options, qkv, tables, seen=by_key[:, None, None] & causal, causal=True, key_mask=by_key)


def test_full_mask_window_and_dense_bias():
    qkv, tables = tensors(dict(bias_dense=(1, H, 13, 21), rel_k=(7, D), rel_v=(7, 5)))
    delta = plain.distance(13, 21, 3)
    window = (delta <= 6) & (delta >= -9)
    mask = torch.rand(B, 1, 13, 21, generator=torch.Generator().manual_seed(1)) < 0.7
    mask |= delta == 0
    options = SCHEMES["shaw"][0]
    compare("shaw", options, qkv, tables, seen=mask & window, offset=3, mask=mask, window_left=6, window_right=9)


def test_grouped_heads():
    qkv, tables = tensors(dict(bias=(8, 4)), heads=4, kv_heads=2)
    compare("t5", SCHEMES["t5"][0], qkv, tables)


def test_result_lies_as_q_does():
    (q, k, v), _ = tensors({})
    assert attend(q, k, v).transpose(1, 2).is_contiguous()
    by_time = q.detach().permute(2, 0, 1, 3).contiguous().permute(1, 2, 0, 3)
    assert attend(by_time, k, v).permute(2, 0, 1, 3).is_contiguous()


def test_expanded_gradient_and_strided_rows():
    (q, k, v), _ = tensors({})
    out = attend(q, k, v[..., ::2])
    (grad,) = torch.autograd.grad(out.sum(), [v])
    want, _ = plain.attend(q, k, v[..., ::2], "none", {}, {}, 1 / math.sqrt(D))
    (expected,) = torch.autograd.grad(want.sum(), [v])
    close(grad, expected, GRADIENT, "gradient of v")


def test_only_wanted_gradients(monkeypatch):
    (q, k, v), tables = tensors(dict(bias=(8, H)))
    asked = []
    backward = op._native.attend_backward

    def watched(*args):
        needs, indices, grads = args[6], args[7::2], backward(*args)
        assert [grad is not None for grad in grads] == list(needs)
        asked.append([op._native.tensor_index(name) for name in ("k", "bias")] == [i for i, n in zip(indices, needs) if n])
        return grads

    monkeypatch.setattr(op._native, "attend_backward", watched)
    out = attend(q.detach(), k, v.detach(), scheme="t5", **tables, **SCHEMES["t5"][0])
    out.sum().backward()
    assert asked == [True] and k.grad is not None and tables["bias"].grad is not None


FIRE = dict(w_1=(5,), b_1=(5,), w_2=(H, 5), b_2=(H,), c=(1,), threshold=(1,))


def test_fire_is_numpys():
    """A scheme whose tensors are its own: results and gradients are those of locus.attend, and double is near them."""
    qkv, tables = tensors(FIRE, queries=21)
    call = dict(scheme="fire", causal=True)
    weight = torch.randn(B, H, 21, 5, generator=torch.Generator().manual_seed(1))
    out = attend(*qkv, **call, **tables)
    (out * weight).sum().backward()
    arrays = {name: t.detach().numpy() for name, t in {**dict(zip("qkv", qkv)), **tables}.items()}
    assert np.array_equal(out.detach().numpy(), locus.attend(**arrays, **call))
    grads = locus.attend_backward(weight.numpy(), **arrays, **call)
    for name, tensor in {**dict(zip("qkv", qkv)), **tables}.items():
        close(tensor.grad, torch.from_numpy(grads[name]), 1e-6, name)
    double = {name: torch.from_numpy(a).double().requires_grad_() for name, a in arrays.items()}
    exact = attend(**double, **call)
    close(out, exact, FORWARD, "double")
    for name, grad in zip(double, torch.autograd.grad((exact * weight).sum(), double.values())):
        close(torch.from_numpy(grads[name]), grad, GRADIENT, name)


def test_torch_takes_what_the_library_declares():
    names = {t.name for scheme in locus.schemes() for t in scheme.tensors if "attend" in t.levels}
    assert names <= set(op.INPUTS + op.OTHERS)
    assert set(exact.SCHEMES) <= {scheme.name for scheme in locus.schemes()}


@pytest.mark.parametrize("name", sorted(set(op.INPUTS) - exact.TENSORS))
def test_what_is_not_written_in_torch_operations_is_refused(name):
    """A tensor that the library learns later is never left out of float64 and of second derivatives without a word."""
    q = torch.randn(1, 2, 3, 4, dtype=torch.float64)
    with pytest.raises(locus.LocusError, match=f"tensor {name}: found, but not in torch operations"):
        attend(q, q, q, **{name: torch.zeros(1, dtype=torch.float64)})


def test_fewer_axes_broadcast():
    """Masks and dense biases as PyTorch's attention takes them."""
    (q, k, v), tables = tensors(dict(bias_dense=(H, 13, 21)))
    mask = torch.rand(13, 21, generator=torch.Generator().manual_seed(1)) < 0.7
    bias = tables["bias_dense"]
    want = torch.nn.functional.scaled_dot_product_attention
    for seen in (mask, mask[None], mask[:1]):
        close(attend(q, k, v, mask=seen), want(q, k, v, attn_mask=seen), FORWARD, "mask")
    for added in (bias, bias[0], bias[:, :1]):
        got = torch.autograd.grad(attend(q, k, v, bias_dense=added).square().sum(), bias)[0]
        close(got, torch.autograd.grad(want(q, k, v, attn_mask=added).square().sum(), bias)[0], GRADIENT, "bias")
    arrays = [x.detach().numpy() for x in (q, k, v)]
    assert np.array_equal(locus.attend(*arrays, mask=mask.numpy()), attend(q, k, v, mask=mask).detach().numpy())
    grads = locus.attend_backward(np.ones((B, H, 13, 5), np.float32), *arrays, bias_dense=bias.detach().numpy())
    assert grads["bias_dense"].shape == bias.shape


def test_a_gradient_that_is_negated_lazily():
    (q, k, v), _ = tensors({})
    out = attend(q, k, v)
    weight = torch.randn_like(out)
    one = torch.autograd.grad(out, (q, k, v), weight, retain_graph=True)
    other = torch.autograd.grad(out, (q, k, v), torch._neg_view(weight))
    assert all(torch.equal(a, -b) for a, b in zip(one, other))


def test_registered_properly():
    (q, k, v), tables = tensors(dict(bias=(8, H)))
    args = [q, k, v] + [tables.get(name) for name in op.TABLES] + [None] * (len(op.OTHERS) + 1)
    args += ["t5", "buckets=8,max_distance=16,bidirectional=1", False, -1, -1, None, None, 0.0, None]
    torch.library.opcheck(torch.ops.locus.attend.default, args)


def test_compiles_to_one_graph():
    (q, k, v), tables = tensors(SCHEMES["deberta"][1])

    def call(q, k, v, **tables):
        out = attend(q * 2, k, v, scheme="deberta", **tables, **SCHEMES["deberta"][0])
        return out.transpose(1, 2).flatten(2).tanh()

    inputs = [q, k, v, *tables.values()]
    want = torch.autograd.grad(call(q, k, v, **tables).square().sum(), inputs)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(q, k, v, **tables).square().sum(), inputs)
    assert all(torch.equal(a, b) for a, b in zip(got, want))


def test_types():
    (q, k, v), _ = tensors({})
    with pytest.raises(TypeError, match="tensor q: found torch.float64, expected torch.float32"):
        attend(q.double(), k, v)
    for dtype, step in ((torch.bfloat16, 2**-7), (torch.float16, 2**-10)):
        narrow = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        out = attend(*narrow)
        want = attend(*[x.float() for x in narrow])
        out.sum().backward()
        assert out.dtype == dtype and narrow[0].grad.dtype == dtype
        assert float((out - want).abs().max()) <= step * float(want.abs().max())


def test_refusals_come_from_the_library():
    (q, k, v), _ = tensors({})
    with pytest.raises(ValueError, match="option .spam. is not known to scheme none"):
        attend(q, k, v, scheme="none", spam=3)
    with pytest.raises(TypeError, match="tensor rel_z: no such tensor of attend"):
        attend(q, k, v, rel_z=q)
    with pytest.raises(ValueError, match="tensor bias is missing"):
        attend(q, k, v, scheme="t5")


def test_dropout_is_a_mask_of_weights():
    torch.manual_seed(5)
    q, k = (torch.randn(B, H, 40, D) for _ in range(2))
    v = torch.eye(64).expand(B, H, 64, 64)
    k = torch.randn(B, H, 64, D)
    q.requires_grad_()
    weights = attend(q, k, v)
    torch.manual_seed(6)
    dropped = attend(q, k, v, dropout=0.25)
    torch.manual_seed(6)
    assert torch.equal(dropped, attend(q, k, v, dropout=0.25))
    assert not torch.equal(dropped, attend(q, k, v, dropout=0.25))
    kept = dropped != 0
    torch.testing.assert_close(dropped, weights * kept / 0.75)
    assert abs(float(kept.float().mean()) - 0.75) < 0.02
    # The way back meets the same mask.
    torch.manual_seed(6)
    value = torch.randn(B, H, 64, 7, requires_grad=True)
    want, _ = plain.attend(q, k, value, "none", {}, {}, D**-0.5, keep=kept.double() / 0.75)
    torch.manual_seed(6)
    seed = torch.randint(1 << 62, (1,), dtype=torch.int64)
    got = attend(q, k, value, dropout=0.25, seed=seed)
    weight = torch.randn_like(got)
    for a, b in zip(
        torch.autograd.grad((got * weight).sum(), [q, value]), torch.autograd.grad((want * weight).sum(), [q, value])
    ):
        close(a, b, GRADIENT, "gradient under dropout")


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        q = torch.randn(1, 2, 33, 16, generator=generator, requires_grad=True)
        out = attend(q, q, q, scheme="alibi")
        out.sum().backward()
        return torch.cat([out.detach().flatten(), q.grad.flatten()])


def test_forked_workers():
    """Threads of the parent do not reach its children; they must not be waited for."""
    want = [Items()[i] for i in range(4)]
    loader = torch.utils.data.DataLoader(Items(), batch_size=1, num_workers=2, multiprocessing_context="fork", timeout=60)
    for got, expected in zip(loader, want):
        assert torch.equal(got[0], expected)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("first", ["torch", "locus"])
def test_one_openmp(first):
    """Two pools of threads on the same cores would wait for each other."""
    program = (
        f"import {first}; import torch, locus.torch; x = torch.randn(1, 8, 128, 16); locus.torch.attend(x, x, x) @ x.mT;"
        "print(len({line.split()[-1] for line in open('/proc/self/maps') if 'omp' in line.rsplit('/', 1)[-1]}))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "1"
