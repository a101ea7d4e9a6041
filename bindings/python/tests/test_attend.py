# SPDX-License-Identifier: Apache-2.0
"""attend, layer and their gradients: against the oracle, on arrays of many kinds."""

import array

import numpy as np
import pytest
from conftest import CALLS, GOLDEN, H, T, Call

import locus


def near(got, want, tolerance):
    return np.max(np.abs(got - want)) <= tolerance * max(1.0, np.max(np.abs(want)))


def test_every_scheme_has_a_call():
    """A call of ours, or a golden case of its own (test_golden.py)."""
    schemes = {scheme.name for scheme in locus.schemes()}
    assert set(CALLS) <= schemes
    assert all(any((GOLDEN / name).glob("*.safetensors")) for name in schemes - set(CALLS))


@pytest.mark.parametrize("causal", [False, True])
def test_against_the_oracle(call, causal):
    want = locus.case.run(call.case(causal=causal), oracle=True)
    out, lse = locus.attend(**call.arrays, **call.keywords, causal=causal, return_lse=True)
    grads = locus.attend_backward(call.dout, **call.arrays, **call.keywords, causal=causal, out=out, lse=lse)
    assert near(out, want.out, 5e-6) and near(lse, want.lse, 5e-6)
    assert set(grads) == set(want.grads) == set(call.arrays)
    for name in grads:
        assert near(grads[name], want.grads[name], 2e-5), name


def test_causal_counts_from_the_end(qkv):
    q, k, v = qkv
    out = locus.attend(q[:, :, :2], k[:, :, :4], v[:, :, :4], causal=True)
    mask = np.array([[[[1, 1, 1, 0], [1, 1, 1, 1]]]], bool)
    assert out.tobytes() == locus.attend(q[:, :, :2], k[:, :, :4], v[:, :, :4], mask).tobytes()
    top = locus.attend(q[:, :, :2], k[:, :, :4], v[:, :, :4], causal=True, query_offset=0)
    mask = np.array([[[[1, 0, 0, 0], [1, 1, 0, 0]]]], bool)
    assert top.tobytes() == locus.attend(q[:, :, :2], k[:, :, :4], v[:, :, :4], mask).tobytes()


def test_arguments_stand_in_the_order_of_pytorch(qkv):
    q, k, v = qkv
    mask = np.ones((1, 1, T, T), bool)
    mask[..., 4] = False
    by_order = locus.attend(q, k, v, mask, 0.0, True, 0.5)
    by_name = locus.attend(q=q, k=k, v=v, mask=mask, dropout=0.0, causal=True, scale=0.5)
    assert by_order.tobytes() == by_name.tobytes()


def test_masks_take_bool_and_bytes_of_any_strides(qkv):
    q, k, v = qkv
    wide = np.random.default_rng(2).random((2, 2 * T)) < 0.7
    mask = wide[:, ::2]
    dense = np.ascontiguousarray(mask)
    want = locus.attend(q, k, v, key_mask=dense)
    for same in (mask, mask.astype(np.uint8), dense.view(np.uint8)):
        assert locus.attend(q, k, v, key_mask=same).tobytes() == want.tobytes()


def test_a_row_without_keys_gives_zero(qkv):
    q, k, v = qkv
    mask = np.zeros((1, 1, T, T), bool)
    out, lse = locus.attend(*qkv, mask, return_lse=True)
    assert not out.any() and np.isneginf(lse).all()


def test_strides(qkv):
    q, k, v = qkv
    want = locus.attend(q, k, v, scheme="alibi")
    turned = [np.ascontiguousarray(a.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for a in qkv]
    assert locus.attend(*turned, scheme="alibi").tobytes() == want.tobytes()
    out = np.empty_like(turned[0])
    locus.attend(q, k, v, scheme="alibi", out=out)
    assert out.strides == turned[0].strides and np.array_equal(out, want)
    shared = [np.broadcast_to(a[:1], a.shape) for a in qkv]
    assert locus.attend(*shared)[1].tobytes() == locus.attend(q, k, v)[0].tobytes()


def test_grouped_heads(qkv):
    q, k, v = qkv
    one = locus.attend(q, k[:, :1], v[:, :1])
    same = locus.attend(q, np.repeat(k[:, :1], H, 1), np.repeat(v[:, :1], H, 1))
    assert one.tobytes() == same.tobytes()


def test_other_buffers():
    flat = array.array("f", range(16))
    view = memoryview(flat).cast("B").cast("f", (1, 1, 4, 4))
    want = np.asarray(view)
    assert locus.attend(view, view, view).tobytes() == locus.attend(want, want, want).tobytes()


def test_results_into_given_arrays(qkv):
    out, lse = np.empty_like(qkv[0]), np.empty(qkv[0].shape[:3], np.float32)
    assert locus.attend(*qkv, out=out, lse=lse, return_lse=True)[0] is out
    dout = np.ones_like(out)
    once = locus.attend_backward(dout, *qkv, out=out, lse=lse, wrt=["q"])
    assert set(once) == {"q"}
    twice = {"q": once["q"].copy()}
    locus.attend_backward(dout, *qkv, out=out, lse=lse, grads=twice, accumulate=True)
    assert np.allclose(twice["q"], 2 * once["q"])
    with pytest.raises(ValueError, match="wrt: found 'bias'"):
        locus.attend_backward(dout, *qkv, wrt=["bias"])


def test_empty_calls(qkv):
    q, k, v = qkv
    assert locus.attend(q[:, :, :0], k, v).shape == (2, H, 0, 8)
    assert not locus.attend(q, k[:, :, :0], v[:, :, :0]).any()


def test_layer_is_the_sublayer():
    random = np.random.default_rng(3)
    x = random.standard_normal((2, T, 12), np.float32)
    w_q, w_k, w_v = (random.standard_normal((H * 4, 12), np.float32) for _ in range(3))
    w_o = random.standard_normal((12, H * 4), np.float32)

    def heads(w):
        return np.ascontiguousarray((x @ w.T).reshape(2, T, H, 4).transpose(0, 2, 1, 3))

    inner = locus.attend(heads(w_q), heads(w_k), heads(w_v), scheme="alibi", causal=True)
    want = inner.transpose(0, 2, 1, 3).reshape(2, T, H * 4)
    assert near(locus.layer(x, w_q, w_k, w_v, heads=H, scheme="alibi", causal=True), want, 1e-5)
    out, lse = locus.layer(x, w_q, w_k, w_v, w_o, heads=H, scheme="alibi", causal=True, return_lse=True)
    assert near(out, want @ w_o.T, 1e-5) and lse.shape == (2, H, T)
    grads = locus.layer_backward(np.ones_like(out), x, w_q, w_k, w_v, w_o, heads=H, scheme="alibi", causal=True)
    assert set(grads) == {"x", "w_q", "w_k", "w_v", "w_o"}
    assert near(grads["w_o"], np.ones((2 * T, 12)).T @ want.reshape(2 * T, -1), 1e-5)


def test_threads_do_not_change_bits(call):
    one = locus.attend(**call.arrays, **call.keywords, threads=1)
    assert locus.attend(**call.arrays, **call.keywords, threads=2).tobytes() == one.tobytes()


def test_every_kernel_table(call):
    want = locus.attend(**call.arrays, **call.keywords)
    for isa in locus.cpu_info()["available"]:
        assert near(locus.attend(**call.arrays, **call.keywords, isa=isa), want, 1e-5)


def test_dropout_follows_its_seed(qkv):
    a, b, c = (locus.attend(*qkv, dropout=0.5, dropout_seed=seed) for seed in (7, 7, 8))
    assert a.tobytes() == b.tobytes() != c.tobytes()


def test_numpy_numbers_serve_as_options(qkv):
    bias = np.zeros((8, H), np.float32)
    options = dict(buckets=np.int32(8), max_distance=np.int64(20), bidirectional=True)
    want = locus.attend(*qkv, scheme="t5", bias=bias, buckets=8, max_distance=20, bidirectional=1)
    assert locus.attend(*qkv, scheme="t5", bias=bias, **options).tobytes() == want.tobytes()
    assert locus.attend(*qkv, scheme="rope", pairing="half", base=np.float64(500)).shape == qkv[0].shape


def test_calls_with_equal_plans_share_one(qkv):
    locus._native.cache_clear()
    for _ in range(5):
        locus.attend(*qkv, scheme="alibi")
    locus.attend(*qkv, scheme="alibi", causal=True)
    info = locus._native.cache_info()
    assert (info["misses"], info["plans"]) == (info["misses"], 2) and info["hits"] >= 4


def test_the_cache_is_bounded():
    for rows in range(1, 100):
        x = np.zeros((1, 1, rows, 4), np.float32)
        locus.attend(x, x, x, scheme="rope", pairing="half")
    assert locus._native.cache_info()["plans"] <= 64


def test_the_environment_lowers_the_ceiling(qkv, monkeypatch):
    plain = locus.attend(*qkv)
    generic = locus.attend(*qkv, isa="generic")
    monkeypatch.setenv("LOCUS_ISA", "generic")
    assert locus.attend(*qkv).tobytes() == generic.tobytes()
    monkeypatch.delenv("LOCUS_ISA")
    assert locus.attend(*qkv).tobytes() == plain.tobytes()


def test_case_round_trip(tmp_path):
    call = Call("kerple")
    path = tmp_path / "case.safetensors"
    case = call.case(causal=True, scale=0.25)
    case.note = "a note"
    locus.case.save(path, case)
    again = locus.case.load(path)
    assert (again.kind, again.scheme, again.note) == ("attend", "kerple", "a note")
    assert again.settings == {"form": "log", "causal": "1", "scale": "0.25"}
    assert all(np.array_equal(again.tensors[name], call.arrays[name]) for name in call.arrays)
    assert np.array_equal(again.dout, call.dout)
    assert locus.case.run(path).out.tobytes() == locus.case.run(again).out.tobytes()
