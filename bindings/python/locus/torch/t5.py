# SPDX-License-Identifier: Apache-2.0
"""T5, mT5, FLAN-T5, UMT5, Switch, Pop2Piano, LongT5's and UDOP's decoders: scheme ``t5``; cross-attention: scheme ``none`` with scale 1.

T5 hands its bias from the first layer to the others as [1,H,n,n] with the mask added. Here a ``Position`` travels that
road: the learned table and the mask, from which each layer's call is made. The table stays the parameter itself, so
its gradient is a sum over the layers, as in the original.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from torch import Tensor

from .adapter import (
    Adapter,
    cached,
    can_run,
    dropout_of,
    head_mask_fits,
    only_the_past,
    original_code,
    run_joined,
    weights_wanted,
)
from .masks import contents_unknown, from_additive, remembered


_SCATTERED = -1  # positions of queries that do not follow one another


class Position(NamedTuple):
    table: Optional[Tensor]  # [buckets,H]; None: no bias
    mask: Optional[Tensor]  # additive, as the stack made it
    first: Optional[int]  # as _first has it


def _first(module, past, cache_position, queries: int) -> Optional[int]:
    """Position of the first query, or _SCATTERED; None: the last query stands at the last key.

    transformers 4 says where queries stand, 5 counts the tokens in the cache.
    """
    if cache_position is None and past is not None:
        seen = past.get_seq_length(module.layer_idx)
        return seen if isinstance(seen, int) else _SCATTERED if contents_unknown() else int(seen)
    if cache_position is None or contents_unknown():
        return None
    first, last = remembered(cache_position, _ends)
    return first if last - first == queries - 1 else _SCATTERED


def _offset(first: Optional[int], past, queries: int, keys: Tensor) -> int:
    """Position of the first query, counted from the first key."""
    if first is not None:
        return first
    return 0 if past is None else keys.shape[-2] - queries


def _ends(positions: Tensor) -> tuple:
    return int(positions[0]), int(positions[-1])


def _attention(module, hidden_states, keys, values, table, mask, offset, head_mask) -> Tensor:
    call = from_additive(mask, hidden_states.shape[1], keys.shape[-2], offset).arguments()
    if mask is None and only_the_past(module, hidden_states.shape[1]):
        call, offset = {"causal": True}, 0
    pruned = getattr(module, "pruned_heads", ())
    if table is not None and pruned:
        table = table[:, [head for head in range(table.shape[1]) if head not in pruned]]
    if table is not None:
        call.update(
            scheme="t5",
            bias=table,
            buckets=module.relative_attention_num_buckets,
            max_distance=module.relative_attention_max_distance,
            bidirectional=0 if module.is_decoder else 1,
        )
    p = dropout_of(module, module.dropout)
    q = module.q(hidden_states)
    out = run_joined(
        q, keys, values, module.n_heads, scale=1.0, head_mask=head_mask, query_offset=offset, dropout=p, **call
    )
    return module.o(out)


class _Shared(Adapter):
    @classmethod
    def used_scheme(cls, module) -> str:
        return "t5" if module.has_relative_attention_bias else "none, or t5 with the table of layer 0"

    def _project(self, states: Tensor):
        return self.k(states), self.v(states)


class T5Attention(_Shared):
    knows = (
        "hidden_states",
        "mask",
        "key_value_states",
        "position_bias",
        "past_key_values",
        "layer_head_mask",
        "query_length",
        "use_cache",
        "output_attentions",
        "cache_position",
    )
    needs = knows[:5]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, past_key_values, head_mask = (given.get(n) for n in ("hidden_states", "past_key_values", "layer_head_mask"))
        key_value_states, position_bias = given.get("key_value_states"), given.get("position_bias")
        crosses, queries = key_value_states is not None, hidden_states.shape[1]
        known = position_bias is None or isinstance(position_bias, Position)
        first, position = 0, given.get("cache_position")
        if not crosses:
            carried = isinstance(position_bias, Position)
            first = position_bias.first if carried else _first(self, past_key_values, position, queries)
        given_up = weights_wanted(self, given) or first == _SCATTERED or not head_mask_fits(head_mask)
        if given_up or not known or not can_run(hidden_states):
            if isinstance(position_bias, Position):
                raise RuntimeError(
                    f"{type(self).__name__}: the first layer ran on Locus and this one can not "
                    "(its inputs differ in device, type or head mask); use locus.torch.unpatch"
                )
            return super().forward(*args, **kwargs)
        states = key_value_states if crosses else hidden_states
        keys, values = cached(self, past_key_values, states, crosses, position, self.n_heads)
        if position_bias is None:
            table = self.relative_attention_bias.weight if self.has_relative_attention_bias else None
            position_bias = Position(table, given.get("mask"), first)
        offset = _offset(first, past_key_values, queries, keys)
        table, mask, _ = position_bias
        out = _attention(self, hidden_states, keys, values, table, mask, offset, head_mask)
        weights = () if "output_attentions" in self.locus_names else (None,)  # they have a place of their own since 5.15
        return out, position_bias, *weights


class UdopAttention(T5Attention):
    @classmethod
    def refuse(cls, module) -> Optional[str]:
        return None if module.is_decoder else "the encoder adds biases made of boxes, expected one made of distances"


class UMT5Attention(_Shared):
    knows = (
        "hidden_states",
        "encoder_hidden_states",
        "past_key_values",
        "attention_mask",
        "layer_head_mask",
        "cache_position",
    )
    needs = knows[:4]

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        hidden_states, past_key_values, head_mask = (given.get(n) for n in ("hidden_states", "past_key_values", "layer_head_mask"))
        encoder_hidden_states, position = given.get("encoder_hidden_states"), given.get("cache_position")
        crosses, queries = encoder_hidden_states is not None, hidden_states.shape[1]
        first = 0 if crosses else _first(self, past_key_values, position, queries)
        given_up = weights_wanted(self, given) or first == _SCATTERED or not head_mask_fits(head_mask)
        if given_up or not can_run(hidden_states):
            return super().forward(*args, **kwargs)
        states = encoder_hidden_states if crosses else hidden_states
        keys, values = cached(self, past_key_values, states, crosses, position, self.n_heads)
        table = self.relative_attention_bias.weight if self.has_relative_attention_bias else None
        offset = _offset(first, past_key_values, queries, keys)
        out = _attention(self, hidden_states, keys, values, table, given.get("attention_mask"), offset, head_mask)
        return out, None


class UMT5Block(Adapter):
    """UMT5's attention is not told whether its weights are wanted in transformers 4; its block is."""

    scheme = "watches output_attentions"
    together = True

    def forward(self, *args, **kwargs):
        if not kwargs.get("output_attentions"):
            return super().forward(*args, **kwargs)
        with original_code():
            return super().forward(*args, **kwargs)
