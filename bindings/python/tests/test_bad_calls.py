# SPDX-License-Identifier: Apache-2.0
"""Twenty thousand wrong calls of locus.torch: each raises a Locus error of one line, and good calls still work after."""

import os
import random

import pytest

torch = pytest.importorskip("torch")

from conftest import CALLS, Call  # noqa: E402

from locus import LocusError  # noqa: E402
from locus.torch import attend, scaled_dot_product_attention  # noqa: E402
from locus.torch.nn import Attention  # noqa: E402

COUNT = int(os.environ.get("LOCUS_FUZZ_CALLS", "10000"))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def nested(r):
    layout = r.choice([torch.jagged, torch.strided])
    return torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=layout)


THINGS = [
    lambda r: r.choice([3, 0.5, "text", b"", [1.0, 2.0], {}, (), object(), None, True, Ellipsis, torch, 1j]),
    lambda r: torch.ones(2, 3, 9, 8, dtype=r.choice([torch.int64, torch.int8, torch.complex64, torch.bool])),
    lambda r: torch.ones(2, 3, 9, 8, dtype=torch.float64),
    lambda r: torch.ones(r.choice([(), (1,), (9, 8), (3, 9, 8), (1, 2, 3, 9, 8)])),
    lambda r: torch.ones(r.choice([(5, 3, 9, 8), (2, 2, 9, 8), (2, 3, 9, 7), (2, 3, 4, 8, 1), (0, 3, 9, 8)])),
    lambda r: torch.ones(2, 3, 9, 8, device="meta"),
    lambda r: torch.ones(2, 3, 9, 8).to_sparse(),
    lambda r: torch.ones(1).expand(2**20, 3, 2**12, 8),
    nested,
]
NUMBERS = [2**70, -(2**70), 2**63, -2, float("nan"), float("inf"), "x", type(None), [], b"1", object(), 1j, torch.ones(2)]
SETTINGS = {
    "causal": ["x", [], object(), 0.5, torch.ones(2)],
    "window_left": [-2, *NUMBERS],
    "window_right": [-2, *NUMBERS],
    "query_offset": NUMBERS[:3] + NUMBERS[4:],
    "scale": ["x", [], object(), 1j, float("nan"), b"", torch.ones(2)],
    "dropout": [1.0, -0.1, *NUMBERS],
    "scheme": ["", "T5", "t5 ", "x" * 5000, "t5\0", "\ud800", 5, None, b"t5", ["t5"]],
    "mask": [torch.ones(9, 9, dtype=torch.bool), torch.ones(1, 1, 9, 9), 3, "x", [], torch.ones(1, 1, 8, 9) > 0],
    "key_mask": [torch.ones(9, dtype=torch.bool), torch.ones(2, 9), torch.ones(2, 8) > 0, "x"],
    "seed": ["x", 3, torch.ones(3), torch.tensor([-1])],
    "is_causal": [True],
    "attn_mask": [torch.ones(9, 9)],
    "anything": [1, "x", None, torch.ones(2)],
    "buckets": ["=", "1,2", object(), 3.5, -1, [], torch.ones(1)],
    "bias_dense": [torch.ones(3), 5, torch.ones(1, 1, 9, 8), torch.ones(2, 3, 9, 9, dtype=torch.int32)],
}


def spoilt_attend(r, calls):
    call = r.choice(calls)
    tensors = {name: torch.from_numpy(array) for name, array in call.arrays.items()}
    keywords = dict(call.keywords)
    if r.random() < 0.3:
        tensors = {name: t.requires_grad_() for name, t in tensors.items()}
    if r.random() < 0.55:
        tensors[r.choice(sorted(tensors))] = r.choice(THINGS)(r)
    else:
        name = r.choice(sorted(SETTINGS))
        keywords[name] = r.choice(SETTINGS[name])
        if name == "seed":
            keywords["dropout"] = 0.5
    return lambda: attend(**{**tensors, **keywords})


def spoilt_sdpa(r, calls):
    q = torch.ones(2, 3, 9, 8)
    args = [q, q, q]
    if r.random() < 0.6:
        args[r.randrange(3)] = r.choice(THINGS)(r)
        return lambda: scaled_dot_product_attention(*args)
    name = r.choice(["attn_mask", "dropout_p", "is_causal", "scale"])
    values = {
        "attn_mask": [torch.ones(3, 4), torch.ones(9, 9, dtype=torch.int64), 3, "x", nested(r), torch.ones(2, 2, 3, 9, 9)],
        "dropout_p": SETTINGS["dropout"],
        "is_causal": SETTINGS["causal"],
        "scale": SETTINGS["scale"],
    }
    keywords = {name: r.choice(values[name])}
    return lambda: scaled_dot_product_attention(*args, **keywords)


MODULE = Attention(8, 2, scheme="t5")


def spoilt_module(r, calls):
    thing = r.choice(THINGS)(r)
    keywords = {r.choice(["mask", "key_mask", "context"]): r.choice(THINGS)(r)} if r.random() < 0.5 else {}
    return lambda: MODULE(torch.ones(2, 9, 8) if keywords else thing, **keywords)


@pytest.mark.parametrize("spoil, share", [(spoilt_attend, 14), (spoilt_sdpa, 4), (spoilt_module, 2)])
def test_wrong_calls_raise(spoil, share):
    r = random.Random(20240607)
    calls = [Call(scheme) for scheme in sorted(CALLS)]
    want = [attend(**{n: torch.from_numpy(a) for n, a in c.arrays.items()}, **c.keywords) for c in calls]
    raised = 0
    for _ in range(COUNT * share // 10):
        call = spoil(r, calls)
        try:
            call()
        except LocusError as error:
            raised += 1
            assert str(error) and "\n" not in str(error)
    assert raised > COUNT * share // 20  # some of what was changed is right after all
    got = [attend(**{n: torch.from_numpy(a) for n, a in c.arrays.items()}, **c.keywords) for c in calls]
    assert all(torch.equal(a, b) for a, b in zip(got, want))
