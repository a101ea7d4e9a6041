# SPDX-License-Identifier: Apache-2.0
"""Wav2Vec2-Conformer: ``transformer_xl`` for relative positions, ``none`` for rotary ones and for none.

Rotary positions turn the hidden states before the projections here, which the original's own method does.
"""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from .adapter import Adapter, by_heads, can_run, dropout_of, run_joined, weights_wanted
from .masks import from_additive


class SelfAttention(Adapter):
    knows = ("hidden_states", "attention_mask", "relative_position_embeddings", "output_attentions")
    needs = knows[:3]
    schemes = {"relative": "transformer_xl", "rotary": "none", None: "none"}

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        kind = module.position_embeddings_type
        known = ", ".join(str(name) for name in cls.schemes)
        return None if kind in cls.schemes else f"position_embeddings_type {kind!r}, expected one of {known}"

    @classmethod
    def used_scheme(cls, module) -> str:
        return cls.schemes[module.position_embeddings_type]

    def forward(self, *args, **kwargs):
        given, kind = self.given(args, kwargs), self.position_embeddings_type
        hidden_states, relative_position_embeddings = given["hidden_states"], given.get("relative_position_embeddings")
        lacking = kind in ("relative", "rotary") and relative_position_embeddings is None
        if weights_wanted(self, given) or lacking or not can_run(hidden_states):
            return super().forward(*args, **kwargs)
        turned = hidden_states
        if kind == "rotary":
            turned = self._apply_rotary_embedding(hidden_states, relative_position_embeddings)
        q, k, v = self.linear_q(turned), self.linear_k(turned), self.linear_v(hidden_states)
        tokens = q.shape[1]
        seen = from_additive(given.get("attention_mask"), tokens, tokens, 0).arguments()
        call = self._positions(kind, relative_position_embeddings)
        p = dropout_of(self, self.dropout.p)
        return self.linear_out(run_joined(q, k, v, self.num_heads, query_offset=0, dropout=p, **seen, **call)), None

    def _positions(self, kind: Optional[str], rows: Optional[Tensor]) -> dict:
        if kind != "relative":
            return {}
        # rows [1, 2T-1, E] go from distance T-1 down to -(T-1); Locus counts upwards.
        table = by_heads(self.linear_pos(rows[0].flip(0)), self.num_heads)
        return {
            "scheme": "transformer_xl",
            "rel_k": table,
            "u": self.pos_bias_u,
            "w": self.pos_bias_v,
            "delta_min": -(rows.shape[1] // 2),
        }
