# SPDX-License-Identifier: Apache-2.0
"""BERT, RoBERTa and the models that share their attention: schemes ``none``, ``relative_key``, ``relative_key_query``."""

from __future__ import annotations

from typing import Optional

from .adapter import Adapter, attend_plainly, cached, can_run, dropout_of, head_mask_fits, run_joined
from .masks import from_additive, hides_nothing

SCHEMES = {"absolute": "none", "relative_key": "relative_key", "relative_key_query": "relative_key_query"}


class SelfAttention(Adapter):
    signature = (
        "hidden_states",
        "attention_mask",
        "head_mask",
        "encoder_hidden_states",
        "past_key_values",
        "output_attentions",
        "cache_position",
    )

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        kind = module.position_embedding_type
        return None if kind in SCHEMES else f"position_embedding_type {kind!r}, expected one of {', '.join(SCHEMES)}"

    @classmethod
    def used_scheme(cls, module) -> str:
        return SCHEMES[module.position_embedding_type]

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        head_mask=None,
        encoder_hidden_states=None,
        past_key_values=None,
        output_attentions=False,
        cache_position=None,
    ):
        if (
            encoder_hidden_states is None
            and past_key_values is None
            and head_mask is None
            and not (output_attentions or self.training or self.is_decoder)
            and self.position_embedding_type == "absolute"
            and (attention_mask is None or hides_nothing(attention_mask))
            and can_run(hidden_states)
        ):
            q, k, v = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
            heads = self.num_attention_heads
            out = attend_plainly(q, k, v, heads)
            return (run_joined(q, k, v, heads, query_offset=0) if out is None else out), None
        crosses = encoder_hidden_states is not None
        scheme = SCHEMES[self.position_embedding_type]
        queries = hidden_states.shape[1]
        # With a cache the original gives every query the position of the last key, which is right for one query.
        blurred = scheme != "none" and past_key_values is not None and queries > 1
        if output_attentions or blurred or not head_mask_fits(head_mask) or not can_run(hidden_states):
            return super().forward(
                hidden_states,
                attention_mask,
                head_mask,
                encoder_hidden_states,
                past_key_values,
                output_attentions,
                cache_position,
            )
        states = encoder_hidden_states if crosses else hidden_states
        heads = self.num_attention_heads
        q, (k, v) = self.query(hidden_states), cached(self, past_key_values, states, crosses, cache_position, heads)
        keys = k.shape[-2]
        offset = 0 if crosses or past_key_values is None else keys - queries
        call = {}
        if attention_mask is not None:
            call = from_additive(attention_mask, queries, keys, offset).arguments()
        elif self._causal_without_mask(crosses, queries):
            call["causal"], offset = True, 0
        if scheme != "none":
            call["rel_k"] = self.distance_embedding.weight
        p = dropout_of(self, self.dropout.p)
        out = run_joined(q, k, v, heads, scheme=scheme, head_mask=head_mask, query_offset=offset, dropout=p, **call)
        return out, None

    def _project(self, states):
        return self.key(states), self.value(states)

    def _causal_without_mask(self, crosses: bool, queries: int) -> bool:
        """The SDPA classes leave the causal mask to SDPA where there is no padding; it counts from the first key."""
        return hasattr(self, "dropout_prob") and self.is_decoder and not crosses and queries > 1
