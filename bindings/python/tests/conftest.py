# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: a small call of every scheme, and where the golden files are."""

import faulthandler
import os
import pathlib
import signal
import sys

import numpy as np
import pytest

import locus

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
sys.path.append(str(ROOT / "bench" / "python"))  # locus_bench

B, H, T, D = 2, 3, 9, 8

# Options of a small call, and the shapes of the scheme's own tensors in `attend`.
CALLS = {
    "none": ({}, {}),
    "sinusoidal": ({}, {}),
    "learned": ({}, {}),
    "shaw": (dict(clip_left=3, clip_right=2), dict(rel_k=(6, D), rel_v=(6, D))),
    "relative_key": ({}, dict(rel_k=(2 * T - 1, D))),
    "relative_key_query": ({}, dict(rel_k=(2 * T - 1, D))),
    "transformer_xl": (dict(delta_min=1 - T), dict(rel_k=(H, 2 * T - 1, D), u=(H, D), w=(H, D))),
    "t5": (dict(buckets=8, max_distance=20, bidirectional=1), dict(bias=(8, H))),
    "tupe": (
        dict(buckets=8, max_distance=20, bidirectional=1),
        dict(pos_q=(H, T, D), pos_k=(H, T, D), bias=(8, H), cls=(2, H)),
    ),
    "deberta": (dict(span=4, buckets=4, max_distance=30), dict(rel_k=(H, 8, D), rel_q=(H, 8, D))),
    "alibi": ({}, dict(slopes=(H,))),
    "kerple": (dict(form="log"), dict(a=(H,), p=(H,))),
    "rope": (dict(base=100.0, pairing="interleaved"), {}),
    "xpos": (dict(scale_base=64), {}),
    "distance": (dict(delta_min=1 - T), dict(bias=(H, 2 * T - 1))),
}


class Call:
    """A call of one scheme: arrays and options, ready for attend(**call.arrays, **call.keywords)."""

    def __init__(self, scheme, seed=1):
        random = np.random.default_rng(seed)
        options, shapes = CALLS[scheme]
        shapes = dict(q=(B, H, T, D), k=(B, H, T, D), v=(B, H, T, D), **shapes)
        self.arrays = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
        for name in ("a", "p", "slopes"):
            if name in self.arrays:
                self.arrays[name] = np.abs(self.arrays[name]) + np.float32(0.1)
        self.scheme = scheme
        self.options = options
        self.dout = random.standard_normal((B, H, T, D), np.float32)

    @property
    def keywords(self):
        return dict(self.options, scheme=self.scheme)

    def case(self, **settings):
        """The same as a Case."""
        return locus.case.Case("attend", self.scheme, self.arrays, dict(self.options, **settings), dout=self.dout)


if "LOCUS_TEST_CURRENT" in os.environ:
    # A run that is cut off by its time limit leaves behind what it was doing.
    current = open(os.environ["LOCUS_TEST_CURRENT"], "w", encoding="utf-8")
    faulthandler.register(signal.SIGTERM, file=current, all_threads=True, chain=True)

    def pytest_runtest_logstart(nodeid, location):
        current.seek(0)
        current.truncate()
        print(nodeid, file=current, flush=True)


@pytest.fixture(params=sorted(CALLS))
def call(request):
    """A call of each scheme in turn."""
    return Call(request.param)


@pytest.fixture
def qkv():
    """q, k, v of plain attention."""
    arrays = Call("none").arrays
    return arrays["q"], arrays["k"], arrays["v"]
