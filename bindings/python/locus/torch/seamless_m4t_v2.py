# SPDX-License-Identifier: Apache-2.0
"""SeamlessM4T v2: as Wav2Vec2-BERT, of which it has ``relative_key`` and no positions at all."""

from __future__ import annotations

from . import wav2vec2_bert


class SelfAttention(wav2vec2_bert.SelfAttention):
    knows = ("hidden_states", "attention_mask", "output_attentions")
    needs = knows[:2]
    schemes = {"relative_key": "shaw", None: "none"}
