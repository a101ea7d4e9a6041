# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand calls, good and refused, keep neither references nor memory."""

import gc
import os
import sys
import tracemalloc

import numpy as np
import pytest

import locus
from locus import _native

CALLS = int(os.environ.get("LOCUS_LEAK_CALLS", "100000"))


def resident():
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def parts():
    a = np.ones((1, 1, 2, 4), np.float32)
    config = {"scheme": "t5", "options": {"buckets": 8, "max_distance": 20}, "causal": 1, "threads": 1}
    tensors = {"q": a, "k": a.copy(), "v": a.copy(), "bias": np.ones((8, 1), np.float32)}
    return config, tensors, np.empty_like(a), np.empty((1, 1, 2), np.float32)


def good(config, tensors, out, lse):
    _native.forward(config, tensors, out, lse)


def backward(config, tensors, out, lse):
    grads = {name: np.empty_like(array) for name, array in tensors.items()}
    _native.backward(config, tensors, out, lse, out, grads, False)


def refused(config, tensors, out, lse):
    for spoilt in (
        (config, dict(tensors, q=3), out, lse),
        (config, dict(tensors, k=tensors["k"][..., :3]), out, lse),
        (dict(config, options={"buckets": "x"}), tensors, out, lse),
        (config, tensors, tensors["q"], lse),
    ):
        try:
            _native.forward(*spoilt)
        except (locus.LocusError, TypeError):
            continue
        raise AssertionError("a wrong call passed")


def layer(config, tensors, out, lse):
    x, w = np.ones((1, 2, 4), np.float32), np.ones((4, 4), np.float32)
    arrays = dict(x=x, w_q=w, w_k=w, w_v=w)
    saved = _native.layer_forward({"heads": 1}, arrays, np.empty_like(x), lse)
    _native.layer_backward({"heads": 1}, arrays, saved, x, {"w_q": np.empty_like(w)}, False)


@pytest.mark.parametrize("work, share", [(good, 1), (backward, 4), (refused, 10), (layer, 8)])
def test_nothing_is_kept(parts, work, share):
    config, tensors, out, lse = parts
    watched = [config, tensors, out, lse, config["options"], *tensors.values(), None, True, "t5", "q", locus.LocusValueError]

    def repeat(count):
        for _ in range(count):
            work(*parts)
        gc.collect()

    repeat(2000)
    references = [sys.getrefcount(thing) for thing in watched]
    memory = resident()
    repeat(CALLS // share)
    assert [after - before for after, before in zip(map(sys.getrefcount, watched), references)] == pytest.approx(
        [0] * len(watched), abs=20
    )
    assert resident() - memory < 4 << 20

    tracemalloc.start()
    repeat(200)
    before = tracemalloc.get_traced_memory()[0]
    repeat(2000)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


def test_case_files_are_closed(tmp_path):
    path = tmp_path / "case.safetensors"
    a = np.ones((1, 1, 2, 4), np.float32)
    locus.case.save(path, locus.case.Case("attend", "none", {"q": a, "k": a, "v": a}))
    locus.case.run(path)
    files, memory = len(os.listdir("/proc/self/fd")), resident()
    for _ in range(500):
        locus.case.run(path)
        locus.case.load(path)
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 4 << 20
