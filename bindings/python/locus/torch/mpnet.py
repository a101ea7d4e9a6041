# SPDX-License-Identifier: Apache-2.0
"""MPNet: scheme ``t5`` with the scale 1/sqrt(D). The swapped encoder hands its table on instead of [B,H,n,n] biases."""

from __future__ import annotations

from typing import NamedTuple, Optional

from torch import Tensor

from .adapter import Adapter, can_run, dropout_of, head_mask_fits, run_joined, weights_wanted
from .masks import from_additive

BUCKETS, MAX_DISTANCE = 32, 128  # fixed in compute_position_bias, whatever the config says


class Position(NamedTuple):
    encoder: object
    states: Tensor  # of the first layer: what the original would need to make the bias

    def dense(self) -> Tensor:
        return self.encoder.dense_position_bias(self.states)


class Encoder(Adapter):
    scheme = "bias table"
    together = True

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        rows = module.relative_attention_bias.weight.shape[0]
        return None if rows >= BUCKETS else f"relative_attention_bias has {rows} rows, expected at least {BUCKETS}"

    def compute_position_bias(self, x, position_ids=None, num_buckets=BUCKETS):
        if position_ids is not None or num_buckets != BUCKETS or not can_run(x):
            return super().compute_position_bias(x, position_ids, num_buckets)
        return Position(self, x)

    def dense_position_bias(self, x) -> Tensor:
        return super().compute_position_bias(x)


class SelfAttention(Adapter):
    scheme = "t5"
    knows = ("hidden_states", "attention_mask", "head_mask", "position_bias", "output_attentions")
    needs = ("hidden_states", "attention_mask", "position_bias")

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, position_bias, head_mask = given["hidden_states"], given.get("position_bias"), given.get("head_mask")
        known = position_bias is None or isinstance(position_bias, Position)
        if weights_wanted(self, given) or not known or not head_mask_fits(head_mask) or not can_run(hidden_states):
            if isinstance(position_bias, Position):
                given = dict(given, position_bias=position_bias.dense())
            return super().forward(**given)
        tokens, heads = hidden_states.shape[1], self.num_attention_heads
        q, k, v = self.q(hidden_states), self.k(hidden_states), self.v(hidden_states)
        call = from_additive(given.get("attention_mask"), tokens, tokens, 0).arguments()
        if position_bias is not None:
            table = position_bias.encoder.relative_attention_bias.weight
            if table.shape[0] > BUCKETS:
                table = table[:BUCKETS]
            call.update(scheme="t5", bias=table, buckets=BUCKETS, max_distance=MAX_DISTANCE, bidirectional=1)
        p = dropout_of(self, self.dropout.p)
        scale = self.attention_head_size**-0.5
        out = run_joined(q, k, v, heads, scale=scale, head_mask=head_mask, query_offset=0, dropout=p, **call)
        return (self.o(out),)
