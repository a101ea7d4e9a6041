# SPDX-License-Identifier: Apache-2.0
"""Swin, Swin v2, Swin2SR, Donut's and MaskFormer's Swin and CLAP's audio: scheme ``swin`` within each window.

Masks of shifted windows hold -100, which hides much and not all: they are added as they are, as in the original.
"""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from .adapter import Adapter, can_run, dropout_of, head_mask_fits, run_joined, weights_wanted
from .sam import grid


def _call(table: Tensor, window: tuple, mask: Optional[Tensor], windows: int) -> dict:
    height, width = window
    places = grid(height, width)
    call = {"scheme": "swin", "bias": table.view(2 * height - 1, 2 * width - 1, -1), "q_positions": places, "k_positions": places}
    if mask is not None:  # [windows of a picture, T, T]
        call["bias_dense"] = mask[:, None].repeat(windows // mask.shape[0], 1, 1, 1)
    return call


class SelfAttention(Adapter):
    """All but Swin of transformers 5: the output map is a module of its own."""

    scheme = "swin"
    knows = ("hidden_states", "attention_mask", "head_mask", "output_attentions")
    needs = knows[:2]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, head_mask = given["hidden_states"], given.get("head_mask")
        height, width = self.window_size
        other = states.shape[1] != height * width  # the original refuses it
        if weights_wanted(self, given) or other or not head_mask_fits(head_mask) or not can_run(states):
            return super().forward(*args, **kwargs)
        p = dropout_of(self, self.dropout.p)
        q, k, call = self._scored(states, given.get("attention_mask"))
        return (run_joined(q, k, self.value(states), self.num_attention_heads, head_mask=head_mask, dropout=p, **call),)

    def _scored(self, states: Tensor, mask: Optional[Tensor]) -> tuple:
        """Queries, keys, and what is added to their products."""
        call = _call(self.relative_position_bias_table, self.window_size, mask, states.shape[0])
        return self.query(states), self.key(states), call


class CosineAttention(SelfAttention):
    """Swin v2, Swin2SR: cosines with a factor by head, and a table that a network makes of the distances."""

    def _scored(self, states: Tensor, mask: Optional[Tensor]) -> tuple:
        by_head = (self.num_attention_heads, self.attention_head_size)
        q, k = (F.normalize(made(states).unflatten(-1, by_head), dim=-1) for made in (self.query, self.key))
        factors = torch.clamp(self.logit_scale, max=math.log(100.0)).exp()
        table = 16 * torch.sigmoid(self.continuous_position_bias_mlp(self.relative_coords_table))
        twice = None if mask is None else mask + mask  # the original adds it so
        call = _call(table, self.window_size, twice, states.shape[0])
        return (q * factors[:, 0]).flatten(2), k.flatten(2), dict(call, scale=1.0)


class Attention(Adapter):
    """Swin of transformers 5."""

    scheme = "swin"
    knows = ("hidden_states", "attention_mask")
    needs = knows

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, positions = given["hidden_states"], self.relative_position_bias
        other = states.shape[1] != positions.window_area
        if weights_wanted(self, given) or other or not can_run(states):
            return super().forward(*args, **kwargs)
        q, k, v = self.q_proj(states), self.k_proj(states), self.v_proj(states)
        table, window = positions.relative_position_bias_table, positions.window_size
        call = _call(table, window, given.get("attention_mask"), states.shape[0])
        p = dropout_of(self, self.attention_dropout)
        return self.o_proj(run_joined(q, k, v, self.num_attention_heads, dropout=p, **call)), None
