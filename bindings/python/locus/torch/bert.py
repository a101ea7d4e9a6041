# SPDX-License-Identifier: Apache-2.0
"""BERT, RoBERTa and the models that share their attention: schemes ``none``, ``relative_key``, ``relative_key_query``."""

from __future__ import annotations

from typing import Optional

from .adapter import (
    Adapter,
    attend_plainly,
    cached,
    can_run,
    dropout_of,
    head_mask_fits,
    only_the_past,
    run_joined,
    weights_wanted,
)
from .masks import from_additive, hides_nothing

SCHEMES = {"absolute": "none", "relative_key": "relative_key", "relative_key_query": "relative_key_query"}


def _kind(module) -> str:
    """transformers 5 has nothing but absolute positions here."""
    return getattr(module, "position_embedding_type", None) or "absolute"


class SelfAttention(Adapter):
    """Self-attention, and cross-attention, which is the same class in transformers 4 and one of its own in 5."""

    knows = (
        "hidden_states",
        "attention_mask",
        "head_mask",
        "encoder_hidden_states",
        "past_key_values",
        "output_attentions",
        "cache_position",
    )
    needs = ("hidden_states", "attention_mask", "past_key_values")

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        kind = _kind(module)
        return None if kind in SCHEMES else f"position_embedding_type {kind!r}, expected one of {', '.join(SCHEMES)}"

    @classmethod
    def used_scheme(cls, module) -> str:
        return SCHEMES[_kind(module)]

    def _scheme(self) -> str:
        return SCHEMES[_kind(self)]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, attention_mask, head_mask = given["hidden_states"], given.get("attention_mask"), given.get("head_mask")
        encoder_hidden_states, past_key_values = given.get("encoder_hidden_states"), given.get("past_key_values")
        scheme, wanted = self._scheme(), weights_wanted(self, given)
        if (
            encoder_hidden_states is None
            and past_key_values is None
            and head_mask is None
            and not (wanted or self.training or getattr(self, "is_decoder", True))
            and scheme == "none"
            and (attention_mask is None or hides_nothing(attention_mask))
            and can_run(hidden_states)
        ):
            q, k, v = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
            heads = self.num_attention_heads
            out = attend_plainly(q, k, v, heads)
            return (run_joined(q, k, v, heads, query_offset=0) if out is None else out), None
        crosses = encoder_hidden_states is not None
        queries = hidden_states.shape[1]
        # With a cache the original gives every query the position of the last key, which is right for one query.
        blurred = scheme != "none" and past_key_values is not None and queries > 1
        if wanted or blurred or not head_mask_fits(head_mask) or not can_run(hidden_states):
            return super().forward(*args, **kwargs)
        states = encoder_hidden_states if crosses else hidden_states
        heads = self.num_attention_heads
        position = given.get("cache_position")
        q, (k, v) = self.query(hidden_states), cached(self, past_key_values, states, crosses, position, heads)
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
        by_class = hasattr(self, "dropout_prob") and self.is_decoder and queries > 1
        return not crosses and (by_class or only_the_past(self, queries))
