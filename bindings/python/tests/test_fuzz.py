# SPDX-License-Identifier: Apache-2.0
"""Ten thousand calls with something wrong: each raises, none crashes, and good calls still work after."""

import importlib
import os
import random

import numpy as np
import pytest
from conftest import CALLS, Call

import locus
from locus import _native

try:
    torch = None if os.environ.get("LOCUS_TEST_NO_TORCH") else importlib.import_module("torch")
except ImportError:
    torch = None

COUNT = int(os.environ.get("LOCUS_FUZZ_CALLS", "10000"))
RAISED = (locus.LocusError, TypeError, ValueError, MemoryError, OverflowError, BufferError, RuntimeError)


class Raises:
    def __dlpack__(self, **_):
        raise BufferError("broken")


class Odd:
    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **_):
        return self.value


def dead_memory():
    view = memoryview(bytearray(64)).cast("f", (1, 1, 4, 4))
    view.release()
    return view


def dead_storage():
    tensor = torch.ones(1, 1, 4, 4)
    tensor.untyped_storage().resize_(0)
    return tensor


TYPES = ["f8", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "c8", ">f4", "O", "S4", "U2", "M8[s]", "f4,u1"]
THINGS = [
    lambda r: r.choice([3, 0.5, "text", b"", [1, 2], {}, (), object(), None, True, Ellipsis, np.float32(1), np, Raises]),
    lambda r: Raises(),
    lambda r: Odd(r.choice([None, 1, "capsule", b"x"])),
    lambda r: dead_memory(),
]
if torch is not None:
    THINGS += [
        lambda r: dead_storage(),
        lambda r: torch.ones(1, 1, 4, 4, device="meta"),
        lambda r: torch.ones(1, 1, 4, 4, dtype=r.choice([torch.float64, torch.bfloat16, torch.half, torch.int64])),
        lambda r: torch.ones(4, 4).to_sparse(),
        lambda r: torch.ones(()),
    ]


def wrong_type(r, a):
    return np.zeros(a.shape, r.choice(TYPES))


def wrong_rank(r, a):
    return r.choice([a[None, None], a.reshape(-1)[:1].reshape(()), a[..., None, None, None]])


def wrong_shape(r, a):
    axis = r.randrange(a.ndim)
    return np.concatenate([a, a], axis=axis)


def wrong_strides(r, a):
    if r.random() < 0.5 or a.shape[-1] < 2:
        longest = int(np.argmax(a.shape))
        return np.flip(a, longest)
    return np.repeat(a, 2, -1)[..., ::2]


def wrong_size(r, a):
    axis = r.randrange(a.ndim)
    shape = list(a.shape)
    shape[axis] = 2 ** r.choice([25, 31, 40])
    return np.broadcast_to(np.zeros([1 if i == axis else n for i, n in enumerate(a.shape)], np.float32), shape)


def wrong_address(r, a):
    return np.frombuffer(bytearray(a.nbytes + 1), np.float32, a.size, offset=1).reshape(a.shape)


def wrong_thing(r, a):
    return r.choice(THINGS)(r)


ARRAYS = [wrong_type, wrong_rank, wrong_shape, wrong_strides, wrong_size, wrong_address, wrong_thing]

NUMBERS = [2**70, -(2**70), 2**63, -2, float("nan"), float("inf"), "x", None.__class__, [], b"1", object(), 1j]
SETTINGS = {
    "causal": [2, -1, *NUMBERS],
    "window_left": [-2, *NUMBERS[:2], *NUMBERS[4:]],
    "window_right": [-2, *NUMBERS[:2], *NUMBERS[4:]],
    "query_offset": [2**32, *NUMBERS[:3], *NUMBERS[4:]],
    "scale": [n for n in NUMBERS if n not in (2**70, -(2**70), 2**63, -2)],
    "dropout": [1.0, -0.1, *NUMBERS],
    "dropout_seed": [-1, 2**64, *NUMBERS[4:], -(2**70)],
    "threads": [-1, 5000, *NUMBERS],
    "isa": ["sse9", "x" * 300, "avx2\0", 3, b"avx2"],
    "path": ["", "row", "x" * 300, 3],
    "scheme": ["", "T5", "t5 ", "x" * 5000, "t5\0", "\ud800", 5, None, b"t5"],
    "options": [[], 3, {"nothing": 1}, {"base": object()}, {3: 4}, {"width": "1\0"}],
    "anything": [1],
}


def spoil(r, call):
    """(config, tensors, out, lse) of a good call with one thing wrong in it, and what that is."""
    config = {"scheme": call.scheme, "options": dict(call.options)}
    tensors = dict(call.arrays)
    out, lse = np.empty_like(call.dout), np.empty(call.dout.shape[:3], np.float32)
    kind = r.randrange(10)
    if kind < 5:
        name, change = r.choice(sorted(tensors)), r.choice(ARRAYS)
        tensors[name] = change(r, tensors[name])
        # What is optional may be left out, and schemes without a table check no rows of it.
        return (config, tensors, out, lse), (name, change.__name__)
    if kind < 7:
        name = r.choice(sorted(SETTINGS))
        config[name] = r.choice(SETTINGS[name])
        return (config, tensors, out, lse), (name, config[name])
    if kind == 7:
        change = r.choice([wrong_type, wrong_rank, wrong_shape, wrong_strides, wrong_address, wrong_thing])
        if r.random() < 0.5:
            out = change(r, out)
        else:
            lse = change(r, lse)
        return (config, tensors, out, lse), ("result", change.__name__)
    if kind == 8:
        name = r.choice(["q", "k", "v"])
        return (config, tensors, tensors[name], lse), ("overlap", name)
    arguments = [config, tensors, out, lse]
    if r.random() < 0.5:
        arguments[r.randrange(4)] = r.choice([None, 3, "x", [], object()])
    else:
        del arguments[r.randrange(4)]
    return tuple(arguments), ("arguments", len(arguments))


# Combinations that are not wrong: an absent optional tensor, a table that any number of rows serves.
OPTIONAL = {("slopes", "wrong_thing"), ("rel_k", "wrong_thing"), ("rel_q", "wrong_thing"), ("rel_v", "wrong_thing"),
            ("bias", "wrong_thing"), ("cls", "wrong_thing")}
ANY_ROWS = {"rel_k", "pos_q", "pos_k"}


def may_pass(arguments, what):
    name, change = what
    if what in OPTIONAL and arguments[1][name] is None:
        return True
    any_rows = name in ANY_ROWS or (name == "bias" and arguments[0].get("scheme") == "distance")
    return any_rows and change in ("wrong_shape", "wrong_size")


def test_wrong_calls_raise():
    r = random.Random(20240607)
    calls = [Call(scheme) for scheme in sorted(CALLS)]
    good = [locus.attend(**call.arrays, **call.keywords).tobytes() for call in calls]
    raised, kinds = 0, set()
    while raised < COUNT:
        arguments, what = spoil(r, r.choice(calls))
        try:
            _native.forward(*arguments)
        except RAISED as error:
            raised += 1
            kinds.add(type(error))
            assert str(error)
        else:
            assert may_pass(arguments, what), what
    assert {locus.LocusValueError, TypeError} <= kinds
    assert good == [locus.attend(**call.arrays, **call.keywords).tobytes() for call in calls]


def test_wrong_gradients_raise():
    r = random.Random(7)
    calls = [Call(scheme) for scheme in sorted(CALLS)]
    states = [locus.attend(**call.arrays, **call.keywords, return_lse=True) for call in calls]
    for _ in range(COUNT // 10):
        which = r.randrange(len(calls))
        call, (out, lse) = calls[which], states[which]
        grads = {name: np.empty_like(array) for name, array in call.arrays.items()}
        dout = call.dout
        name, change = r.choice(sorted(grads)), r.choice([wrong_type, wrong_rank, wrong_shape, wrong_strides, wrong_address])
        if r.random() < 0.3:
            dout = change(r, dout)
        elif r.random() < 0.3:
            grads["nothing"] = out
        elif r.random() < 0.3:
            grads[name] = call.arrays[name]
        else:
            grads[name] = change(r, grads[name])
        config = {"scheme": call.scheme, "options": call.options}
        with pytest.raises(RAISED):
            _native.backward(config, call.arrays, out, lse, dout, grads, False)
