# SPDX-License-Identifier: Apache-2.0
"""Additive masks become the cheapest form that says the same."""

import pytest

torch = pytest.importorskip("torch")

from locus.torch import masks  # noqa: E402

LOWEST = torch.finfo(torch.float32).min


def additive(seen):
    return torch.zeros(seen.shape).masked_fill(~seen, LOWEST)


def causal(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)[None, None]


BY_KEY = torch.arange(9)[None] < torch.tensor([[9], [6]])


def test_nothing_hidden():
    assert masks.from_additive(None, 4, 9, 5) == masks.EVERYTHING
    assert masks.from_additive(torch.zeros(2, 1, 4, 9), 4, 9, 5) == masks.EVERYTHING


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("expanded", [False, True])
def test_by_key(rows, expanded):
    mask = additive(BY_KEY[:, None, None]).expand(-1, -1, rows, -1)
    seen = masks.from_additive(mask if expanded else mask.clone(), 4, 9, 5)
    assert torch.equal(seen.key_mask, BY_KEY) and seen.mask is None and not seen.causal


def test_causal():
    seen = masks.from_additive(additive(causal(4, 9)), 4, 9, 5)
    assert seen == masks.Seen(causal=True)
    seen = masks.from_additive(additive(causal(4, 9) & BY_KEY[:, None, None]), 4, 9, 5)
    assert seen.causal and seen.mask is None and torch.equal(seen.key_mask, BY_KEY)


def test_causal_at_another_offset_is_not_causal():
    pattern = causal(4, 9)
    seen = masks.from_additive(additive(pattern), 4, 9, 4)
    assert not seen.causal and torch.equal(seen.mask, pattern)


def test_longer_than_the_keys():
    """A static cache masks more columns than are in use."""
    assert masks.from_additive(additive(causal(4, 9)), 4, 7, 5) == masks.Seen(causal=True)


def test_any_other_value_is_a_bias():
    for value in (-1.0, -1e4, 0.5):
        mask = additive(BY_KEY[:, None, None])
        mask[0, 0, 0, 0] = value
        seen = masks.from_additive(mask, 4, 9, 5)
        assert seen.bias_dense.shape == (2, 1, 4, 9) and seen.key_mask is None and seen.mask is None


def test_infinite_and_half_precision_masks():
    for dtype in (torch.float16, torch.bfloat16):
        mask = torch.zeros(2, 1, 1, 9, dtype=dtype).masked_fill(~BY_KEY[:, None, None], torch.finfo(dtype).min)
        assert torch.equal(masks.from_additive(mask, 4, 9, 5).key_mask, BY_KEY)
    mask = torch.zeros(2, 1, 1, 9).masked_fill(~BY_KEY[:, None, None], -torch.inf)
    assert torch.equal(masks.from_additive(mask, 4, 9, 5).key_mask, BY_KEY)


def test_masks_are_read_once_per_version():
    mask = additive(BY_KEY[:, None, None])
    first = masks.from_additive(mask, 4, 9, 5)
    assert masks.from_additive(mask, 4, 9, 5) is first
    mask[..., 3:] = LOWEST
    assert masks.from_additive(mask, 4, 9, 5).key_mask.sum() == 6


def test_booleans_take_the_same_roads():
    assert masks.from_seen(torch.ones(2, 1, 9, 9, dtype=torch.bool), 0) == masks.EVERYTHING
    assert torch.equal(masks.from_seen(BY_KEY[:, None, None].expand(-1, -1, 9, -1), 0).key_mask, BY_KEY)
    outer = BY_KEY[:, None, None] & BY_KEY[:, None, :, None]  # padded queries see nothing
    assert torch.equal(masks.from_seen(outer, 0).mask, outer)
    assert masks.from_seen(outer, 0) is masks.from_seen(outer, 0)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.bool])
def test_hides_nothing(kind):
    """Read in place at every call, so a change in place is seen, with or without a version."""
    for inference in (False, True):
        with torch.inference_mode(inference):
            mask = torch.ones(2, 1, 3, 8).bool() if kind is torch.bool else -torch.zeros(2, 1, 3, 8, dtype=kind)
            assert masks.hides_nothing(mask) and masks.hides_nothing(mask[:, :, ::2, 1::3])
            mask[1, 0, 2, 7] = 0 if kind is torch.bool else -1e-4
            assert not masks.hides_nothing(mask) and masks.hides_nothing(mask[:1]) and masks.hides_nothing(mask[..., :7])
            mask[1, 0, 2, 7] = 1 if kind is torch.bool else 0
            assert masks.hides_nothing(mask)
            mask[0, 0, 0, 0] = 0 if kind is torch.bool else float("nan")
            assert not masks.hides_nothing(mask)


def test_hides_nothing_is_not_known():
    assert masks.hides_nothing(None) and masks.hides_nothing(torch.zeros(2, 0))
    assert not masks.hides_nothing(torch.zeros(2, 1, 1, 8, dtype=torch.float64))
    assert not masks.hides_nothing(torch.zeros(2, 1, 1, 8, device="meta"))
    assert not masks.hides_nothing(torch.zeros(2, 8).to_sparse())
    assert not masks.hides_nothing("mask")
    found = []
    torch.vmap(lambda mask: found.append(masks.hides_nothing(mask)) or mask)(torch.zeros(2, 8))
    with torch._subclasses.FakeTensorMode():
        found.append(masks.hides_nothing(torch.zeros(2, 8)))
    assert found == [False, False]
