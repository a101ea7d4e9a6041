# SPDX-License-Identifier: Apache-2.0
"""BLOOM, MPT and Falcon: ALiBi as they have it, a bias by head and key, which beside a causal mask is -slope |m - n|.

The bias goes to Locus as ``bias_dense`` whose rows are one row in memory: it is read where it lies, and the positions
that BLOOM counts around padding stay what they are.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from .adapter import Adapter, can_run, dropout_of, head_mask_fits, joined, run, weights_wanted
from .masks import from_additive


class BloomAttention(Adapter):
    scheme = "none, ALiBi as a bias by key"
    knows = (
        "hidden_states",
        "residual",
        "alibi",
        "attention_mask",
        "layer_past",
        "head_mask",
        "use_cache",
        "output_attentions",
        "cache_position",
    )
    needs = knows[:5]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, head_mask, past = given["hidden_states"], given.get("head_mask"), given.get("layer_past")
        in_slices = self.pretraining_tp > 1 and self.slow_but_exact
        if weights_wanted(self, given) or in_slices or not head_mask_fits(head_mask) or not can_run(states):
            return super().forward(*args, **kwargs)
        q, k, v = self._reshape(self.query_key_value(states))
        k, v = _remembered(self, past, k, v, given)
        bias = given["alibi"].unflatten(0, (-1, self.num_heads))
        call = _call(bias, given.get("attention_mask"), q.shape[2], k.shape[2])
        p = dropout_of(self, self.attention_dropout.p)
        out = self.dense(joined(run(q, k, v, scale=self.inv_norm_factor, head_mask=head_mask, dropout=p, **call)))
        dropped = torch.nn.functional.dropout(out, self.hidden_dropout, self.training)
        return given["residual"] + dropped, None


def _remembered(module, past, k: Tensor, v: Tensor, given: dict) -> tuple:
    """Keys and values of this call and of earlier ones."""
    if past is None:
        return k, v
    place = ({"cache_position": given["cache_position"]},) if "cache_position" in given else ()
    return past.update(k, v, module.layer_idx, *place)


def _call(bias: Tensor, mask, queries: int, keys: int) -> dict:
    """`bias` [B or 1, H, 1, Tk] and what the mask lets be seen."""
    seen = from_additive(mask, queries, keys, keys - queries).arguments()
    bias = bias[..., -keys:].expand(-1, -1, queries, -1)
    if "bias_dense" in seen:
        bias = bias + seen["bias_dense"]
    return dict(seen, bias_dense=bias, query_offset=keys - queries)


class MptAttention(Adapter):
    scheme = "none, ALiBi as a bias by key"
    knows = ("hidden_states", "position_bias", "past_key_values", "attention_mask", "cache_position")
    needs = knows[:4]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, bias, past = given["hidden_states"], given.get("position_bias"), given.get("past_key_values")
        mask = given.get("attention_mask")
        by_key = bias is not None and bias.dim() == 3 and bias.shape[1] == 1 and (mask is None or mask.dtype is torch.bool)
        if weights_wanted(self, given) or not by_key or not can_run(states):
            return super().forward(*args, **kwargs)
        mixed = self.Wqkv(states)
        if self.clip_qkv:
            mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in mixed.chunk(3, dim=2))
        k, v = _remembered(self, past, k, v, given)
        if k.shape[2] > bias.shape[2]:
            raise ValueError(f"MptAttention: found {k.shape[2]} keys, expected at most {bias.shape[2]}, max_seq_len")
        call = _call(bias[None], None if mask is None else ~mask, q.shape[2], k.shape[2])
        p = dropout_of(self, self.attn_dropout_p)
        return self.out_proj(joined(run(q, k, v, scale=self.softmax_scale, dropout=p, **call))), None


class FalconAttention(Adapter):
    scheme = "none, ALiBi as a bias by key"
    by_implementation = False
    knows = (
        "hidden_states",
        "alibi",
        "attention_mask",
        "position_ids",
        "layer_past",
        "head_mask",
        "use_cache",
        "output_attentions",
        "cache_position",
        "position_embeddings",
    )
    needs = knows[:5]

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        if not module.config.alibi:
            return "alibi=False turns queries and keys, expected alibi=True"
        how = module.config._attn_implementation
        return None if how == "eager" else f"{how!r} joins ALiBi and mask into [B,H,n,n], expected attn_implementation='eager'"

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, alibi, head_mask = given["hidden_states"], given.get("alibi"), given.get("head_mask")
        past = given.get("layer_past")
        if weights_wanted(self, given) or alibi is None or not head_mask_fits(head_mask) or not can_run(states):
            return super().forward(*args, **kwargs)
        q, k, v = (part.transpose(1, 2) for part in self._split_heads(self.query_key_value(states)))
        k, v = _remembered(self, past, k, v, given)
        bias = alibi.view(states.shape[0], self.num_heads, 1, -1) * self.inv_norm_factor
        call = _call(bias, given.get("attention_mask"), q.shape[2], k.shape[2])
        p = dropout_of(self, self.attention_dropout.p)
        out = run(q, k, v, scale=self.inv_norm_factor, head_mask=head_mask, dropout=p, **call)
        return self.dense(joined(out)), None
