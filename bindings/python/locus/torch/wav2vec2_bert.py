# SPDX-License-Identifier: Apache-2.0
"""Wav2Vec2-BERT: as Wav2Vec2-Conformer, and ``shaw`` (keys only) for its own relative_key."""

from __future__ import annotations

from . import wav2vec2_conformer


class SelfAttention(wav2vec2_conformer.SelfAttention):
    schemes = {**wav2vec2_conformer.SelfAttention.schemes, "relative_key": "shaw"}

    def _positions(self, kind, rows) -> dict:
        if kind != "relative_key":
            return super()._positions(kind, rows)
        return {
            "scheme": "shaw",
            "rel_k": self.distance_embedding.weight,
            "clip_left": self.left_max_position_embeddings,
            "clip_right": self.right_max_position_embeddings,
        }
