# SPDX-License-Identifier: Apache-2.0
"""The pictures of SAM, SAM-HQ, GOT-OCR2, SegGPT and ViTDet: scheme ``sam``, or ``none`` where positions are switched off."""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

from .adapter import Adapter, can_run, dropout_of, run_joined, weights_wanted


@functools.lru_cache(maxsize=16)
def grid(height: int, width: int) -> Tensor:
    """y and x of each patch, [height * width, 2], row by row."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([y.flatten(), x.flatten()], 1)


def _resized(table: Tensor, size: int) -> Tensor:
    """`table` [R,D] with a row for each distance of `size` patches, made between its own as the original does."""
    rows = 2 * size - 1
    return table if table.shape[0] == rows else F.interpolate(table.T[None], size=rows, mode="linear")[0].T


def _relative(module) -> bool:
    name = "use_rel_pos" if hasattr(module, "use_rel_pos") else "use_relative_position_embeddings"
    return getattr(module, name)


class VisionAttention(Adapter):
    knows = ("hidden_states", "output_attentions")
    needs = knows

    @classmethod
    def used_scheme(cls, module) -> str:
        return "sam" if _relative(module) else "none"

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states = given[self.knows[0]]
        captured = "forward" in vars(self)  # transformers 4 reads weights by a forward of its own around this one
        if captured or weights_wanted(self, given) or not can_run(states):
            return super().forward(*args, **kwargs)
        _, height, width, _ = states.shape
        call = self._positions(height, width) if _relative(self) else {}
        q, k, v = self.qkv(states).flatten(1, 2).chunk(3, dim=-1)
        heads = self.num_heads if hasattr(self, "num_heads") else self.num_attention_heads
        drops = hasattr(self, "dropout") and "Sdpa" not in type(self).locus_original.__name__  # the SDPA classes do not
        p = dropout_of(self, self.dropout) if drops else 0.0
        out = run_joined(q, k, v, heads, dropout=p, **call)
        return self._result(self.proj(out.unflatten(1, (height, width))))

    def _positions(self, height: int, width: int) -> dict:
        places = grid(height, width)
        return {
            "scheme": "sam",
            "rel_h": _resized(self.rel_pos_h, height),
            "rel_w": _resized(self.rel_pos_w, width),
            "q_positions": places,
            "k_positions": places,
        }

    def _result(self, out: Tensor) -> tuple:
        return out, None


class VitDetAttention(VisionAttention):
    knows = needs = ("hidden_state", "output_attentions")

    def _result(self, out: Tensor) -> tuple:
        return (out,)
