# SPDX-License-Identifier: Apache-2.0
"""DeBERTa (v1), DeBERTa-v2/v3 and SEW-D: scheme ``deberta``.

The encoders are swapped beside the attention, because they make [B,1,n,n] masks and [1,n,n] distances that Locus does
not need: the swapped ones keep the mask as [B,n] and say ``BY_INDEX`` for "distance = query index - key index".
"""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from .adapter import Adapter, by_heads, can_run, dropout_of, joined, run, run_joined, weights_wanted
from .masks import from_seen, hides_nothing

BY_INDEX = "distance = query index - key index"


def _is_by_index(relative_pos) -> bool:
    return isinstance(relative_pos, str) and relative_pos == BY_INDEX


class Encoder(Adapter):
    """Leaves masks by key as they are, and distances unwritten."""

    scheme = "masks and distances"
    together = True

    def get_attention_mask(self, attention_mask):
        if attention_mask.dim() <= 2 and attention_mask.device.type == "cpu":
            return attention_mask.bool()
        return super().get_attention_mask(attention_mask)

    def get_rel_pos(self, hidden_states, query_states=None, relative_pos=None):
        if self.relative_attention and relative_pos is None and query_states is None:
            return BY_INDEX
        return super().get_rel_pos(hidden_states, query_states, relative_pos)


def _masks(attention_mask: Tensor) -> dict:
    """[B,n] by key, or [B,1,n,n] as the unswapped encoder makes it: 0 = hidden."""
    seen = attention_mask.bool()  # of booleans the same tensor, which remembers how it was read
    if seen.dim() != 2:
        return from_seen(seen, 0).arguments()
    return {} if hides_nothing(seen) else {"key_mask": seen}


def _outer(attention_mask: Tensor) -> Tensor:
    if attention_mask.dim() != 2:
        return attention_mask
    return attention_mask[:, None, None, :] * attention_mask[:, None, :, None]


def _reach(tokens: int, buckets: int, max_distance: int, span: int) -> int:
    """How many rows on either side of row `span` the distances below `tokens` can meet (an upper bound)."""
    middle = buckets // 2
    if buckets <= 0 or tokens - 1 <= middle:
        return min(tokens, span)
    steps = math.log((tokens - 1) / middle) / math.log((max_distance - 1) / middle) * (middle - 1)
    return min(middle + math.ceil(steps) + 1, span)


def _tables(rel: Tensor, tokens: int, span: int, buckets: int, max_distance: int, heads: int, projections: dict):
    """Projected tables of the reachable rows, and the options that go with them.

    While every distance has a row of its own the middle of the table is a table of its own (buckets 0, a smaller
    span). Beyond that rows out of reach are 0, since buckets fix the height.
    """
    reach = _reach(tokens, buckets, max_distance, span)
    linear = buckets <= 0 or tokens - 1 <= buckets // 2
    rows = rel[span - reach : span + reach]
    outside = 0 if linear else span - reach
    tables = {}
    for name, projection in projections.items():
        table = projection(rows)
        if outside > 0:
            table = functional.pad(table, (0, 0, outside, outside))
        tables[name] = by_heads(table, heads)
    if linear:
        return tables, {"span": reach, "buckets": 0}
    return tables, {"span": span, "buckets": buckets, "max_distance": max_distance}


class V2Attention(Adapter):
    scheme = "deberta"
    knows = needs = (
        "hidden_states",
        "attention_mask",
        "output_attentions",
        "query_states",
        "relative_pos",
        "rel_embeddings",
    )

    @classmethod
    def used_scheme(cls, module) -> str:
        return "deberta" if _projections_v2(module) else "none"

    def forward(
        self,
        hidden_states,
        attention_mask,
        output_attentions=False,
        query_states=None,
        relative_pos=None,
        rel_embeddings=None,
    ):
        by_index = relative_pos is None or _is_by_index(relative_pos)
        same_length = query_states is None or query_states.shape[1] == hidden_states.shape[1]
        if output_attentions or not by_index or not same_length or not can_run(hidden_states):
            relative_pos = None if by_index else relative_pos  # None: the original works it out
            return super().forward(
                hidden_states, _outer(attention_mask), output_attentions, query_states, relative_pos, rel_embeddings
            )
        return self._run(hidden_states, attention_mask, query_states, rel_embeddings, self.dropout.p), None

    def _run(self, hidden_states, attention_mask, query_states, rel_embeddings, p: float) -> Tensor:
        heads = self.num_attention_heads
        q = self.query_proj(hidden_states if query_states is None else query_states)
        k, v = self.key_proj(hidden_states), self.value_proj(hidden_states)
        scale = _scale(q.shape[-1] // heads, sum(term in self.pos_att_type for term in ("c2p", "p2c")))
        call = _masks(attention_mask)
        projections = _projections_v2(self)
        if projections:
            rel = self.pos_dropout(rel_embeddings)
            buckets = max(self.position_buckets, 0)
            tables, options = _tables(
                rel, q.shape[1], self.pos_ebd_size, buckets, self.max_relative_positions, heads, projections
            )
            call.update(scheme="deberta", **tables, **options)
        return run_joined(q, k, v, heads, scale=scale, dropout=dropout_of(self, p), **call)


class SewDAttention(V2Attention):
    """SEW-D has DeBERTa-v2's attention of old: weights on demand only in transformers 4, dropout of its own."""

    needs = tuple(name for name in V2Attention.knows if name != "output_attentions")

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, mask, queries = given["hidden_states"], given["attention_mask"], given.get("query_states")
        relative_pos = given.get("relative_pos")
        by_index = relative_pos is None or _is_by_index(relative_pos)
        same_length = queries is None or queries.shape[1] == hidden_states.shape[1]
        if weights_wanted(self, given) or not by_index or not same_length or not can_run(hidden_states):
            given = dict(given, attention_mask=_outer(mask), relative_pos=None if by_index else relative_pos)
            return super(V2Attention, self).forward(**given)
        out = self._run(hidden_states, mask, queries, given.get("rel_embeddings"), self.dropout.drop_prob)
        return out if "output_attentions" in self.locus_names else (out, None)


def _projections_v2(module) -> dict:
    if not module.relative_attention:
        return {}
    shared = module.share_att_key
    projections = {}
    if "c2p" in module.pos_att_type:
        projections["rel_k"] = module.key_proj if shared else module.pos_key_proj
    if "p2c" in module.pos_att_type:
        projections["rel_q"] = module.query_proj if shared else module.pos_query_proj
    return projections


def _scale(width: int, terms: int) -> float:
    return 1.0 / math.sqrt(width * (1 + terms))


class V1Attention(Adapter):
    scheme = "deberta"
    knows = needs = V2Attention.knows

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        return "talking_head mixes the heads of logits and weights" if module.talking_head else None

    def forward(
        self,
        hidden_states,
        attention_mask,
        output_attentions=False,
        query_states=None,
        relative_pos=None,
        rel_embeddings=None,
    ):
        by_index = relative_pos is None or _is_by_index(relative_pos)
        if output_attentions or not by_index or query_states is not None or not can_run(hidden_states):
            if _is_by_index(relative_pos):
                index = torch.arange(hidden_states.shape[1])
                relative_pos = (index[:, None] - index[None, :])[None]
            return super().forward(
                hidden_states, _outer(attention_mask), output_attentions, query_states, relative_pos, rel_embeddings
            )
        heads = self.num_attention_heads
        # in_proj keeps q, k and v of a head side by side.
        q, k, v = by_heads(self.in_proj(hidden_states), heads).chunk(3, dim=-1)
        q = q + self.q_bias.view(heads, 1, -1)
        v = v + self.v_bias.view(heads, 1, -1)
        call = {"scale": _scale(q.shape[-1], len(self.pos_att_type))}
        projections = {}
        if self.relative_attention and rel_embeddings is not None and relative_pos is not None:
            projections = {
                name: getattr(self, attribute)
                for term, name, attribute in (("c2p", "rel_k", "pos_proj"), ("p2c", "rel_q", "pos_q_proj"))
                if term in self.pos_att_type
            }
        if projections:
            rel = self.pos_dropout(rel_embeddings)
            tables, options = _tables(rel, q.shape[2], self.max_relative_positions, 0, 0, heads, projections)
            call.update(scheme="deberta", **tables, **options)
        out = run(q, k, v, dropout=dropout_of(self, self.dropout.p), **_masks(attention_mask), **call)
        return joined(out), None
