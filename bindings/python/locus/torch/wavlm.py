# SPDX-License-Identifier: Apache-2.0
"""WavLM: scheme ``wavlm``. The first layer hands its table on instead of [B*H,n,n] biases."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .adapter import Adapter, can_run, dropout_of, run_joined, weights_wanted


class Position(NamedTuple):
    first: object  # the layer that has the table

    def dense(self, batch: int, tokens: int) -> Tensor:
        """What the original would hand on."""
        return self.first.compute_bias(tokens, tokens).repeat(batch, 1, 1)


class Attention(Adapter):
    scheme = "wavlm"
    knows = ("hidden_states", "attention_mask", "position_bias", "output_attentions", "index")
    needs = knows[:3]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, position_bias, mask = given["hidden_states"], given.get("position_bias"), given.get("attention_mask")
        known = position_bias is None or isinstance(position_bias, Position)
        if weights_wanted(self, given) or not known or not can_run(hidden_states):
            if isinstance(position_bias, Position):
                given = dict(given, position_bias=position_bias.dense(*hidden_states.shape[:2]))
            return super().forward(**given)
        position = position_bias or Position(self)
        q, k, v = self.q_proj(hidden_states), self.k_proj(hidden_states), self.v_proj(hidden_states)
        out = run_joined(
            q,
            k,
            v,
            self.num_heads,
            scheme="wavlm",
            gate=self._gates(hidden_states),
            bias=position.first.rel_attn_embed.weight,
            buckets=self.num_buckets,
            max_distance=self.max_distance,
            key_mask=None if mask is None else mask.eq(1),
            dropout=dropout_of(self, self.dropout),
        )
        return self.out_proj(out), None, position

    def _gates(self, states: Tensor) -> Tensor:
        """[B,H,T]: a (b g - 1) + 2, where a and b are made of a head's own columns."""
        by_head = states.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
        made = torch.sigmoid(self.gru_rel_pos_linear(by_head).unflatten(-1, (2, 4)).sum(-1))
        return made[..., 0] * (made[..., 1] * self.gru_rel_pos_const[..., 0] - 1.0) + 2.0
