# SPDX-License-Identifier: Apache-2.0
"""LeViT: scheme ``swin`` of the distances' amounts; layers that shrink the picture ask from every second place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .adapter import Adapter, can_run, joined, run
from .sam import grid


def _call(module, queries: Tensor, keys: Tensor, resolution: int) -> dict:
    """The learned biases are [H, |dy| * resolution + |dx|]."""
    amounts = torch.arange(1 - resolution, resolution).abs()
    table = module.attention_biases.view(-1, resolution, resolution)[:, amounts][:, :, amounts]
    return {
        "scheme": "swin",
        "bias": table.permute(1, 2, 0),
        "q_positions": queries,
        "k_positions": keys,
        "scale": module.scale,
    }


class Attention(Adapter):
    scheme = "swin"
    knows = needs = ("hidden_state",)

    def forward(self, hidden_state):
        if not can_run(hidden_state):
            return super().forward(hidden_state)
        resolution = math.isqrt(self.attention_bias_idxs.shape[1])
        places = grid(resolution, resolution)
        by_head = self.queries_keys_values(hidden_state).unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
        q, k, v = by_head.split([self.key_dim, self.key_dim, self.attention_ratio * self.key_dim], dim=3)
        out = joined(run(q, k, v, **_call(self, places, places, resolution)))
        return self.projection(self.activation(out))


class Subsample(Adapter):
    scheme = "swin"
    knows = needs = ("hidden_state",)

    @classmethod
    def refuse(cls, module):
        """Rows of biases are numbered by first appearance: by amounts only where every amount appears, from the first query on."""
        entries = module.attention_bias_idxs.shape[1]
        return None if module.attention_biases.shape[1] == entries else "biases beyond the first query, expected none"

    def forward(self, hidden_state):
        if not can_run(hidden_state):
            return super().forward(hidden_state)
        sampling = self.queries_subsample
        resolution, heads = sampling.resolution, self.num_attention_heads
        places = grid(resolution, resolution)
        asked = places.view(resolution, resolution, 2)[:: sampling.stride, :: sampling.stride].flatten(0, 1)
        by_head = self.keys_values(hidden_state).unflatten(-1, (heads, -1)).transpose(1, 2)
        k, v = by_head.split([self.key_dim, self.attention_ratio * self.key_dim], dim=3)
        q = self.queries(sampling(hidden_state)).unflatten(-1, (heads, -1)).transpose(1, 2)
        out = joined(run(q, k, v, **_call(self, asked, places, resolution)))
        return self.projection(self.activation(out))
