# SPDX-License-Identifier: Apache-2.0
"""VITS: scheme ``shaw`` with tables for keys and values, which are 0 beyond their window."""

from __future__ import annotations

from torch.nn import functional as F

from .adapter import Adapter, can_run, dropout_of, run_joined, weights_wanted
from .masks import from_additive


class Attention(Adapter):
    scheme = "shaw"
    knows = ("hidden_states", "key_value_states", "attention_mask", "layer_head_mask", "output_attentions")
    needs = ("hidden_states", "key_value_states", "attention_mask", "output_attentions")

    @classmethod
    def used_scheme(cls, module) -> str:
        return "shaw" if module.window_size else "none"

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states = given["hidden_states"]
        if weights_wanted(self, given) or given.get("layer_head_mask") is not None or not can_run(states):
            return super().forward(*args, **kwargs)
        q, k, v = self.q_proj(states), self.k_proj(states), self.v_proj(states)
        tokens = q.shape[1]
        call = from_additive(given.get("attention_mask"), tokens, tokens, 0).arguments()
        if self.window_size:
            # A row of zeros at either end serves every key beyond the window.
            tables = (F.pad(table[0], (0, 0, 1, 1)) for table in (self.emb_rel_k, self.emb_rel_v))
            call.update(zip(("rel_k", "rel_v"), tables), scheme="shaw")
            call.update(clip_left=self.window_size + 1, clip_right=self.window_size + 1)
        p = dropout_of(self, self.dropout)
        return self.out_proj(run_joined(q, k, v, self.num_heads, scale=self.scaling, dropout=p, **call)), None
