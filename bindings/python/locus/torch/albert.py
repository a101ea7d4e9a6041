# SPDX-License-Identifier: Apache-2.0
"""ALBERT: schemes ``none``, ``relative_key``, ``relative_key_query``; output projection, residual and norm are part of its attention."""

from __future__ import annotations

from .adapter import attend_plainly, can_run, dropout_of, head_mask_fits, run_joined, weights_wanted
from .bert import SelfAttention
from .masks import from_additive, hides_nothing


class Attention(SelfAttention):
    knows = ("hidden_states", "attention_mask", "head_mask", "output_attentions")
    needs = ("hidden_states", "attention_mask")

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, attention_mask, head_mask = given["hidden_states"], given.get("attention_mask"), given.get("head_mask")
        leaves_out = head_mask is not None and hasattr(self, "dropout_prob")  # the SDPA class does nothing with it
        if weights_wanted(self, given) or leaves_out or not head_mask_fits(head_mask) or not can_run(hidden_states):
            return super(SelfAttention, self).forward(*args, **kwargs)
        q, k, v = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
        heads = self.num_attention_heads
        scheme = self._scheme()
        if scheme == "none" and head_mask is None and not self.training and hides_nothing(attention_mask):
            out = attend_plainly(q, k, v, heads)
            if out is not None:
                return self._after(hidden_states, out)
        tokens = hidden_states.shape[1]
        call = from_additive(attention_mask, tokens, tokens, 0).arguments()
        if scheme != "none":
            # ALBERT does not scale its relative scores, so the table is stretched to undo the scale.
            call["rel_k"] = self.distance_embedding.weight * self.attention_head_size**0.5
        p = dropout_of(self, self.attention_dropout.p)
        out = run_joined(q, k, v, heads, scheme=scheme, head_mask=head_mask, query_offset=0, dropout=p, **call)
        return self._after(hidden_states, out)

    def _after(self, hidden_states, out):
        projected = self.output_dropout(self.dense(out))
        out = self.LayerNorm(hidden_states + projected)
        return (out,) if "output_attentions" in self.locus_names else (out, None)
