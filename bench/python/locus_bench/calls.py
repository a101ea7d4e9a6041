# SPDX-License-Identifier: Apache-2.0
"""What a call costs beside its work: one so small that there is none, and a batch of short texts."""

from __future__ import annotations

import torch

import locus.torch

from .contest import Contest, Shape

_theirs = torch.nn.functional.scaled_dot_product_attention


def _contest(name: str, *shape: int) -> Contest:
    inputs = [torch.randn(shape, requires_grad=True) for _ in range(3)]

    def exact():
        return _theirs(*(x.detach().double() for x in inputs))

    contest = Contest(name, inputs, exact)
    contest.runs["locus"] = lambda: locus.torch.attend(*inputs)
    contest.runs["torch, sdpa"] = lambda: _theirs(*inputs)
    return contest


def smallest(shape: Shape, options) -> Contest:
    return _contest("1 × 8 tokens, 1 head of 16", 1, 1, 8, 16)


def short_texts(shape: Shape, options) -> Contest:
    return _contest(f"64 × 16 tokens, {shape.heads} heads of {shape.width}", 64, shape.heads, 16, shape.width)
