# SPDX-License-Identifier: Apache-2.0
"""ALBERT: schemes ``none``, ``relative_key``, ``relative_key_query``; output projection, residual and norm are part of its attention."""

from __future__ import annotations

from .adapter import by_heads, can_run, dropout_of, head_mask_fits, run_joined
from .bert import SCHEMES, SelfAttention
from .masks import from_additive


class Attention(SelfAttention):
    signature = ("hidden_states", "attention_mask", "head_mask", "output_attentions")

    def forward(self, hidden_states, attention_mask=None, head_mask=None, output_attentions=False):
        leaves_out = head_mask is not None and hasattr(self, "dropout_prob")  # the SDPA class does nothing with it
        if output_attentions or leaves_out or not head_mask_fits(head_mask) or not can_run(hidden_states):
            return super(SelfAttention, self).forward(hidden_states, attention_mask, head_mask, output_attentions)
        q, k, v = (by_heads(p(hidden_states), self.num_attention_heads) for p in (self.query, self.key, self.value))
        scheme = SCHEMES[self.position_embedding_type]
        call = {"scheme": scheme}
        if scheme != "none":
            # ALBERT does not scale its relative scores, so the table is stretched to undo the scale.
            call["rel_k"] = self.distance_embedding.weight * self.attention_head_size**0.5
        tokens = q.shape[2]
        seen = from_additive(attention_mask, tokens, tokens, 0).arguments()
        p = dropout_of(self, self.attention_dropout.p)
        out = run_joined(q, k, v, head_mask=head_mask, query_offset=0, dropout=p, **seen, **call)
        projected = self.output_dropout(self.dense(out))
        return (self.LayerNorm(hidden_states + projected),)
