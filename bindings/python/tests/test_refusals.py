# SPDX-License-Identifier: Apache-2.0
"""Refusals: the same words as from C, in exceptions of the right kind, and no trace left behind."""

import pickle

import numpy as np
import pytest
from conftest import GOLDEN, ROOT, Call

import locus
from locus import _native

# What is wrong with a call of t5, and the library's line about it.
WRONG = [
    (dict(scheme="t6"), 'scheme "t6" is unknown; did you mean "t5"?', "SCHEME"),
    (dict(buckets=1), 'option buckets: found "1", expected an integer in [2, 65536]', "OPTION"),
    (dict(buckets="many"), 'option buckets: found "many", expected an integer in [2, 65536]', "OPTION"),
    (dict(bucket=8), 'option "bucket" is not known to scheme t5; did you mean "buckets"?', "OPTION"),
    (dict(clip_left=8), 'option "clip_left" is not known to scheme t5', "OPTION"),
    (dict(slopes=np.ones(3, np.float32)), "tensor slopes is not known to scheme t5 (attend)", "TENSOR"),
    (dict(bias=None), "tensor bias is missing", "TENSOR"),
    (dict(q=np.ones((2, 3, 9), np.float32)), "tensor q: found 3 axes, expected 4", "TENSOR"),
    (dict(bias=np.ones((8, 4), np.float32)), "tensor bias: found shape [8,4], expected [8,3] (buckets H)", "TENSOR"),
    (dict(key_mask=np.ones((2, 9), np.float32)), "tensor key_mask: found F32, expected U8", "TENSOR"),
    (dict(bias=np.ones((8, 3), np.uint8)), "tensor bias: found U8, expected a floating type", "TENSOR"),
    (dict(bias=np.ones((8, 3))), "tensor bias: found F64, expected F32, F16 or BF16, or U8 or BOOL in a mask, or I64", "TENSOR"),
    (dict(causal=2), "causal: found 2, expected 0 or 1", "OPTION"),
    (dict(dropout=1.0), "dropout: found 1, expected [0, 1)", "OPTION"),
    (dict(scale=float("nan")), "scale: found nan, expected a finite number", "OPTION"),
    (dict(window_left=-2), "window: found -2 and -1, expected -1 or more", "OPTION"),
    (dict(query_offset=2**40), "query_offset: found 1099511627776, expected -2^31..2^31", "OPTION"),
    (dict(threads=2000), "threads: found 2000, expected at most 1024", "OPTION"),
    (dict(path="hexagons"), "path: found another, expected tiles or rows", "OPTION"),
    (dict(isa="sse9"), "isa: config or LOCUS_ISA names no kernel table", "ISA"),
    (dict(out=np.empty((2, 3, 9, 7), np.float32)), "tensor out: found another shape than the plan was made for", "TENSOR"),
]


@pytest.mark.parametrize("change, words, status", WRONG, ids=lambda value: str(value)[:40])
def test_words(change, words, status):
    call = Call("t5")
    with pytest.raises(locus.LocusError) as caught:
        locus.attend(**{**call.arrays, **call.keywords, **change})
    assert str(caught.value) == words
    assert caught.value.status == locus.Status[status]
    assert isinstance(caught.value, ValueError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.status) == (type(caught.value), words, caught.value.status)


def test_overlap(qkv):
    q, k, v = qkv
    with pytest.raises(locus.LocusError, match="output out overlaps q") as caught:
        locus.attend(q, k, v, out=q)
    assert caught.value.status == locus.Status.OVERLAP


def test_rows_that_do_not_exist():
    call = Call("relative_key")
    with pytest.raises(locus.LocusError) as caught:
        locus.attend(**dict(call.arrays, rel_k=call.arrays["rel_k"][:5]), **call.keywords)
    assert caught.value.status == locus.Status.RANGE


@pytest.mark.parametrize("odd", [3, "text", [1.0], object(), {}, np.float32(1)])
def test_not_an_array(qkv, odd):
    with pytest.raises((TypeError, locus.LocusValueError), match="tensor q: found"):
        locus.attend(odd, *qkv[1:])


def test_released_memory(qkv):
    view = memoryview(bytearray(16))
    view.release()
    with pytest.raises(ValueError):
        locus.attend(view, *qkv[1:])


@pytest.mark.parametrize(
    "odd",
    [
        lambda a: a[:, :, ::-1],
        lambda a: a[..., ::-1],
        lambda a: np.repeat(a, 2, -1)[..., ::2],
        lambda a: a.transpose(0, 1, 3, 2),
    ],
)
def test_strides_the_library_does_not_take(odd):
    a = np.ones((1, 2, 8, 8), np.float32)
    with pytest.raises(locus.LocusError, match="tensor q: found strides that are negative or not 1 on the last axis"):
        locus.attend(odd(a), a, a)


def test_memory_that_is_not_aligned(qkv):
    raw = bytearray(4 * 16 + 1)
    odd = np.frombuffer(raw, np.float32, 16, offset=1).reshape(1, 1, 4, 4)
    fine = np.ones((1, 1, 4, 4), np.float32)
    with pytest.raises(locus.LocusError, match="tensor k: found data at an odd address"):
        locus.attend(fine, odd, fine)
    parts = np.zeros(4, np.dtype([("a", "f4"), ("b", "u1")]))["a"].reshape(1, 1, 4, 1)
    one = np.ones((1, 1, 4, 1), np.float32)
    with pytest.raises(locus.LocusError, match="tensor k: found strides of parts of elements"):
        locus.attend(one, parts, one)


def test_read_only_outputs(qkv):
    out = np.empty_like(qkv[0])
    out.flags.writeable = False
    with pytest.raises(locus.LocusError, match="tensor out: found read-only memory"):
        locus.attend(*qkv, out=out)


def test_sizes_beyond_the_limits():
    one = np.zeros((1, 1, 1, 4), np.float32)
    for shape in [(2**40, 1, 1, 4), (1, 2**40, 1, 4), (1, 1, 2**40, 4), (2**20, 2**20, 2**18, 4)]:
        huge = np.broadcast_to(one, shape)
        with pytest.raises((ValueError, MemoryError)):
            locus.attend(huge, huge, huge)
        with pytest.raises(locus.LocusError, match="tensor q: found"):
            locus.attend(huge, huge, huge, out=one, lse=one)


def test_names_of_the_extension():
    with pytest.raises(locus.LocusError, match='config: found the key "colour"'):
        _native.forward({"colour": 1}, {}, None, None)
    with pytest.raises(locus.LocusError, match="tensor z is not known"):
        _native.forward({}, {"z": np.ones(1, np.float32)}, None, None)
    with pytest.raises(locus.LocusError, match="found a NUL"):
        _native.forward({"scheme": "t5\0"}, {}, None, None)
    for arguments in [(), (1, 2, 3, 4), ({}, 2, 3, 4), ({1: 2}, {}, 3, 4)]:
        with pytest.raises(TypeError):
            _native.forward(*arguments)


def test_saved_state_of_another_layer():
    x, w = np.ones((1, 4, 8), np.float32), np.ones((8, 8), np.float32)
    config, tensors = dict(heads=2), dict(x=x, w_q=w, w_k=w, w_v=w)
    out, lse = np.empty((1, 4, 8), np.float32), np.empty((1, 2, 4), np.float32)
    saved = _native.layer_forward(config, tensors, out, lse)
    grads = {"x": np.empty_like(x)}
    _native.layer_backward(config, tensors, saved, out, grads, False)
    with pytest.raises(locus.LocusError, match="saved: found that of another"):
        _native.layer_backward(dict(heads=4), tensors, saved, out, grads, False)
    with pytest.raises(TypeError, match="saved: found"):
        _native.layer_backward(config, tensors, object(), out, grads, False)


def test_files(tmp_path):
    missing = tmp_path / "missing.safetensors"
    with pytest.raises(OSError, match="missing.safetensors") as caught:
        locus.case.run(missing)
    assert isinstance(caught.value, locus.LocusIOError) and caught.value.status == locus.Status.IO
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"short")
    with pytest.raises(locus.LocusValueError, match=r"\[S03\]") as caught:
        locus.case.load(broken)
    assert caught.value.status == locus.Status.FORMAT
    with pytest.raises(locus.LocusValueError, match="metadata key format is missing"):
        locus.case.load(next((ROOT / "tests" / "data" / "tables").glob("*.safetensors")))


def test_a_refused_case_leaves_no_file(tmp_path):
    path = tmp_path / "case.safetensors"
    case = locus.case.Case("attend", "none", {"q": np.ones(3, np.complex64)})
    with pytest.raises(ValueError, match="tensor q: found complex64"):
        locus.case.save(path, case)
    with pytest.raises(locus.LocusError, match="tensor q: found 3 bytes, expected 12"):
        _native.file_write(path, {}, [("q", "F32", (3,), b"abc")])
    with pytest.raises(locus.LocusError, match="tensor q: found I16"):
        _native.file_write(path, {}, [("q", "I16", (3,), b"abc")])
    assert list(tmp_path.iterdir()) == []
