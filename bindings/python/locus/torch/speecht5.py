# SPDX-License-Identifier: Apache-2.0
"""SpeechT5: scheme ``shaw`` (keys only) in the encoder, ``none`` in the decoder. The encoder's table travels instead of [n,n,D]."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .adapter import Adapter, cached, can_run, dropout_of, run_joined, weights_wanted
from .masks import from_additive


class Position(NamedTuple):
    encoding: object
    states: Tensor  # of the first layer: what the original would need to write the rows out

    def dense(self) -> Tensor:
        return self.encoding.written_out(self.states)

    def arguments(self) -> dict:
        """Row r of the table stands for m - n = r - reach; Locus counts n - m upwards."""
        reach = self.encoding.max_length
        table = self.encoding.pe_k.weight.flip(0)
        return {"scheme": "shaw", "rel_k": table, "clip_left": reach - 1, "clip_right": reach}


class Encoding(Adapter):
    scheme = "table"
    together = True
    knows = needs = ("hidden_states",)

    def forward(self, hidden_states):
        return Position(self, hidden_states) if can_run(hidden_states) else super().forward(hidden_states)

    def written_out(self, hidden_states) -> Tensor:
        return super().forward(hidden_states)


class Attention(Adapter):
    scheme = "shaw in the encoder, else none"
    together = True
    knows = (
        "hidden_states",
        "key_value_states",
        "past_key_values",
        "attention_mask",
        "layer_head_mask",
        "position_bias",
        "output_attentions",
        "cache_position",
    )
    needs = knows[:4] + ("position_bias",)

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, position, past = given["hidden_states"], given.get("position_bias"), given.get("past_key_values")
        known = position is None or isinstance(position, Position)
        factors = given.get("layer_head_mask") is not None
        if weights_wanted(self, given) or not known or factors or not can_run(states):
            if isinstance(position, Position):
                given = dict(given, position_bias=position.dense())
            return super().forward(**given)
        others = given.get("key_value_states")
        crosses, queries = others is not None, states.shape[1]
        k, v = cached(self, past, others if crosses else states, crosses, given.get("cache_position"), self.num_heads)
        keys = k.shape[-2]
        offset = 0 if crosses or past is None else keys - queries
        call = from_additive(given.get("attention_mask"), queries, keys, offset).arguments()
        if position is not None:
            call.update(position.arguments())
        p = dropout_of(self, self.dropout)
        q = self.q_proj(states)
        out = run_joined(q, k, v, self.num_heads, scale=self.scaling, query_offset=offset, dropout=p, **call)
        return self.out_proj(out), None

    def _project(self, states: Tensor):
        return self.k_proj(states), self.v_proj(states)
