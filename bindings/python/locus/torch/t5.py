# SPDX-License-Identifier: Apache-2.0
"""T5, mT5, FLAN-T5 and UMT5: scheme ``t5``; cross-attention: scheme ``none`` with scale 1.

T5 hands its bias from the first layer to the others as [1,H,n,n] with the mask added. Here a ``Position`` travels that
road: the learned table and the mask, from which each layer's call is made. The table stays the parameter itself, so
its gradient is a sum over the layers, as in the original.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from torch import Tensor

from .adapter import Adapter, cached, can_run, dropout_of, head_mask_fits, original_code, run_joined
from .masks import contents_unknown, from_additive, remembered


_SCATTERED = -1  # positions of queries that do not follow one another


class Position(NamedTuple):
    table: Optional[Tensor]  # [buckets,H]; None: no bias
    mask: Optional[Tensor]  # additive, as the stack made it
    first: Optional[int]  # as _first has it


def _first(cache_position, queries: int) -> Optional[int]:
    """Position of the first query, or _SCATTERED; None: the last query stands at the last key."""
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
    if table is not None and module.pruned_heads:
        table = table[:, [head for head in range(table.shape[1]) if head not in module.pruned_heads]]
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
    signature = (
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

    def forward(
        self,
        hidden_states,
        mask=None,
        key_value_states=None,
        position_bias=None,
        past_key_values=None,
        layer_head_mask=None,
        query_length=None,
        use_cache=False,
        output_attentions=False,
        cache_position=None,
    ):
        crosses = key_value_states is not None
        queries = hidden_states.shape[1]
        known = position_bias is None or isinstance(position_bias, Position)
        first = 0
        if not crosses:
            first = position_bias.first if isinstance(position_bias, Position) else _first(cache_position, queries)
        if output_attentions or not known or first == _SCATTERED or not head_mask_fits(layer_head_mask) or not can_run(hidden_states):
            if isinstance(position_bias, Position):
                raise RuntimeError(
                    f"{type(self).__name__}: the first layer ran on Locus and this one can not "
                    "(its inputs differ in device, type or head mask); use locus.torch.unpatch"
                )
            return super().forward(
                hidden_states,
                mask,
                key_value_states,
                position_bias,
                past_key_values,
                layer_head_mask,
                query_length,
                use_cache,
                output_attentions,
                cache_position,
            )
        states = key_value_states if crosses else hidden_states
        keys, values = cached(self, past_key_values, states, crosses, cache_position, self.n_heads)
        if position_bias is None:
            table = self.relative_attention_bias.weight if self.has_relative_attention_bias else None
            position_bias = Position(table, mask, first)
        offset = _offset(first, past_key_values, queries, keys)
        table, mask, _ = position_bias
        out = _attention(self, hidden_states, keys, values, table, mask, offset, layer_head_mask)
        return out, position_bias


class UMT5Attention(_Shared):
    signature = (
        "hidden_states",
        "encoder_hidden_states",
        "past_key_values",
        "attention_mask",
        "layer_head_mask",
        "cache_position",
    )

    def forward(
        self,
        hidden_states,
        encoder_hidden_states=None,
        past_key_values=None,
        attention_mask=None,
        layer_head_mask=None,
        cache_position=None,
    ):
        crosses = encoder_hidden_states is not None
        queries = hidden_states.shape[1]
        first = 0 if crosses else _first(cache_position, queries)
        if first == _SCATTERED or not head_mask_fits(layer_head_mask) or not can_run(hidden_states):
            return super().forward(
                hidden_states, encoder_hidden_states, past_key_values, attention_mask, layer_head_mask, cache_position
            )
        states = encoder_hidden_states if crosses else hidden_states
        keys, values = cached(self, past_key_values, states, crosses, cache_position, self.n_heads)
        table = self.relative_attention_bias.weight if self.has_relative_attention_bias else None
        offset = _offset(first, past_key_values, queries, keys)
        out = _attention(self, hidden_states, keys, values, table, attention_mask, offset, layer_head_mask)
        return out, None


class UMT5Block(Adapter):
    """UMT5's attention always returns its weights and is not told whether they are wanted; its block is."""

    scheme = "watches output_attentions"

    def forward(self, *args, output_attentions=False, **kwargs):
        if not output_attentions:
            return super().forward(*args, output_attentions=False, **kwargs)
        with original_code():
            return super().forward(*args, output_attentions=output_attentions, **kwargs)
