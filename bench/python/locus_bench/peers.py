# SPDX-License-Identifier: Apache-2.0
"""Compiled FlexAttention, which says why where it can not run."""

from __future__ import annotations

from typing import Optional

import torch

from .contest import Contest


def add_flex(contest: Contest, options, q, k, v, score, scale: Optional[float] = None) -> None:
    """FlexAttention has no backward pass on CPUs."""
    if not options.flex:
        contest.absent["compiled FlexAttention"] = "not wanted (--no-flex)"
        return
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.reset()
    compiled = torch.compile(flex_attention)
    inputs = [x.detach() for x in (q, k, v)]

    def run():
        with torch.no_grad():
            return compiled(*inputs, score_mod=score, scale=scale)

    try:
        run()
    except Exception as error:  # whatever its compiler raises, it is the peer's reason
        contest.absent["compiled FlexAttention"] = str(error).strip().splitlines()[0][:120]
        return
    contest.runs["compiled FlexAttention"] = run
    contest.forward_only.add("compiled FlexAttention")
