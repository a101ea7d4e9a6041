# SPDX-License-Identifier: Apache-2.0
"""FastSpeech2Conformer: scheme ``transformer_xl``, as Wav2Vec2-Conformer has it."""

from __future__ import annotations

from . import wav2vec2_conformer
from .adapter import can_run, dropout_of, run_joined, weights_wanted


class Attention(wav2vec2_conformer.SelfAttention):
    scheme = "transformer_xl"
    knows = ("hidden_states", "attention_mask", "pos_emb", "output_attentions")
    needs = knows[:3]

    @classmethod
    def refuse(cls, module):
        return None

    @classmethod
    def used_scheme(cls, module) -> str:
        return cls.scheme

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, mask, rows = given["hidden_states"], given.get("attention_mask"), given.get("pos_emb")
        by_item = rows is None or rows.shape[0] != 1
        if weights_wanted(self, given) or by_item or not can_run(states):
            return super(wav2vec2_conformer.SelfAttention, self).forward(*args, **kwargs)
        q, k, v = self.linear_q(states), self.linear_k(states), self.linear_v(states)
        call = self._positions("relative", rows)
        seen = None if mask is None else mask[:, 0] != 0
        p = dropout_of(self, self.dropout.p)
        return self.linear_out(run_joined(q, k, v, self.num_heads, key_mask=seen, dropout=p, **call)), None
