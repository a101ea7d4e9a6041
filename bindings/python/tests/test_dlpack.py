# SPDX-License-Identifier: Apache-2.0
"""Arrays that speak DLPack only: versioned, legacy, of other devices, read-only, used up, broken."""

import ctypes

import numpy as np
import pytest

import locus

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


class Producer:
    """A NumPy array behind __dlpack__, with every field of the tensor open to change."""

    def __init__(self, array, legacy=False, major=1, flags=0, dense=False, **fields):
        self.array, self.legacy, self.deleted, self.exported = array, legacy, 0, 0
        self.shape = array.shape
        self._shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self._strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        self._deleter = Deleter(self._delete)
        self.managed = Legacy() if legacy else Versioned(major=major, minor=0, flags=flags)
        self.managed.deleter = self._deleter
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data, 1, array.ndim
        tensor.code = {"f": 2, "u": 1, "i": 0, "b": 6}[array.dtype.kind]
        tensor.bits, tensor.lanes = 8 * array.itemsize, 1
        tensor.shape = self._shape
        if not dense:
            tensor.strides = self._strides
        for name, value in fields.items():
            setattr(tensor, name, value)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **keywords):
        if self.legacy and keywords:
            raise TypeError("unexpected keyword max_version")
        self.exported += 1
        name = b"dltensor" if self.legacy else b"dltensor_versioned"
        return api.PyCapsule_New(ctypes.addressof(self.managed), name, None)


def refused(qkv, producer, words, kind=locus.LocusValueError, **where):
    with pytest.raises(kind, match=words):
        locus.attend(producer, *qkv[1:], **where)
    assert producer.deleted == producer.exported


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_both_capsules(qkv, legacy, dense):
    want = locus.attend(*qkv, scheme="alibi")
    producers = [Producer(array, legacy, dense=dense) for array in qkv]
    assert locus.attend(*producers, scheme="alibi").tobytes() == want.tobytes()
    assert [producer.deleted for producer in producers] == [1, 1, 1]


def test_byte_offset(qkv):
    want = locus.attend(*qkv)
    q = np.concatenate([np.zeros(3, np.float32), qkv[0].ravel()])
    producer = Producer(qkv[0], data=q.ctypes.data, byte_offset=12)
    assert locus.attend(producer, *qkv[1:]).tobytes() == want.tobytes()


def test_bool_masks(qkv):
    mask = np.random.default_rng(0).random((2, 9)) < 0.5
    want = locus.attend(*qkv, key_mask=mask)
    assert locus.attend(*qkv, key_mask=Producer(mask)).tobytes() == want.tobytes()


def test_outputs(qkv):
    out = np.empty_like(qkv[0])
    locus.attend(*qkv, out=Producer(out))
    assert out.tobytes() == locus.attend(*qkv).tobytes()
    with pytest.raises(locus.LocusValueError, match="tensor out: found read-only memory"):
        locus.attend(*qkv, out=Producer(out, flags=1))


@pytest.mark.parametrize(
    "fields, words",
    [
        (dict(device_type=2), r"tensor q: found memory of device CUDA \(type 2\), expected CPU"),
        (dict(device_type=99), r"tensor q: found memory of device another \(type 99\)"),
        (dict(code=2, bits=64), "tensor q: found F64, expected F32"),
        (dict(bits=64), "tensor q: found F64, expected F32"),
        (dict(code=5), "tensor q: found another type"),
        (dict(lanes=4), "tensor q: found vectors as elements"),
        (dict(ndim=0), "tensor q: found 0 axes, expected 1 to 4"),
        (dict(ndim=5), "tensor q: found 5 axes"),
        (dict(ndim=-1), "tensor q: found -1 axes"),
        (dict(data=None), "tensor q: found no data"),
        (dict(byte_offset=2), "tensor q: found data at an odd address"),
    ],
)
@pytest.mark.parametrize("legacy", [False, True])
def test_refusals(qkv, fields, words, legacy):
    refused(qkv, Producer(qkv[0], legacy, **fields), words)


def test_sizes_that_do_not_fit(qkv):
    for axis in range(4):
        producer = Producer(qkv[0])
        producer._strides[axis] = 2**61
        refused(qkv, producer, "tensor q: found")
        producer = Producer(qkv[0])
        producer._shape[axis] = 2**62
        producer._strides[axis] = 0
        refused(qkv, producer, "tensor q: found")
    producer = Producer(qkv[0])
    producer._shape[0] = -1
    refused(qkv, producer, "tensor q: found")


def test_another_major_version(qkv):
    refused(qkv, Producer(qkv[0], major=2), "tensor q: found DLPack 2, expected 1")


def test_a_used_capsule(qkv):
    producer = Producer(qkv[0])
    capsule = producer.__dlpack__()
    producer.__dlpack__ = None

    class Again:
        shape = qkv[0].shape

        def __dlpack__(self, **_):
            return capsule

    locus.attend(Again(), *qkv[1:])
    with pytest.raises(locus.LocusValueError, match="tensor q: found no fresh DLPack capsule"):
        locus.attend(Again(), *qkv[1:])
    assert producer.deleted == 1


@pytest.mark.parametrize("value", [None, 3, "capsule", b""])
def test_no_capsule_at_all(qkv, value):
    class Odd:
        shape = qkv[0].shape

        def __dlpack__(self, **_):
            return value

    with pytest.raises(locus.LocusValueError, match="found no fresh DLPack capsule"):
        locus.attend(Odd(), *qkv[1:])


def test_exceptions_of_the_producer_pass(qkv):
    class Broken:
        shape = qkv[0].shape

        def __dlpack__(self, **_):
            raise BufferError("not today")

    with pytest.raises(BufferError, match="not today"):
        locus.attend(Broken(), *qkv[1:])
