# SPDX-License-Identifier: Apache-2.0
"""Transformer-XL (transformers keeps it under models/deprecated): scheme ``transformer_xl``, causal.

The original's shift leaves garbage above the diagonal, so only calls whose mask hides all of it are taken.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .adapter import Adapter, can_run, dropout_of, run
from .masks import Seen, from_hidden


def _seen(attn_mask, queries: int, keys: int):
    """What the mask [Tq,Tk] or [Tq,Tk,1] lets be seen; None: it shows pairs of the future."""
    if attn_mask is None:
        return Seen(causal=True) if queries == 1 else None
    hidden = attn_mask if attn_mask.dim() == 2 else attn_mask[..., 0]
    future = torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
    if not bool((hidden.bool() | ~future).all()):
        return None
    return from_hidden(hidden[None, None], keys - queries)._replace(causal=True)


class Attention(Adapter):
    scheme = "transformer_xl"
    knows = needs = ("w", "r", "attn_mask", "mems", "head_mask", "output_attentions")

    def forward(self, w, r, attn_mask=None, mems=None, head_mask=None, output_attentions=False):
        queries = w.shape[0]
        keys = queries + (0 if mems is None else mems.shape[0])
        odd = attn_mask is not None and (attn_mask.dim() == 3 and attn_mask.shape[2] != 1)
        seen = None
        if not (output_attentions or odd or head_mask is not None or r.shape[1] != 1) and can_run(w):
            seen = _seen(attn_mask, queries, keys)
        if seen is None:
            return super().forward(w, r, attn_mask, mems, head_mask, output_attentions)
        states = w if mems is None else torch.cat([mems, w], 0)
        heads = self.qkv_net(self.layer_norm(states) if self.pre_lnorm else states)
        q, k, v = (self._by_heads(part) for part in heads.chunk(3, dim=-1))
        # r [Tk,1,E] goes from distance Tk-1 down to 0; Locus counts upwards.
        table = self.r_net(r[:, 0].flip(0)).view(keys, self.n_head, self.d_head).transpose(0, 1)
        out = run(
            q[:, :, keys - queries :],
            k,
            v,
            scheme="transformer_xl",
            rel_k=table,
            u=self.r_w_bias,
            w=self.r_r_bias,
            delta_min=0,
            scale=self.scale,
            dropout=dropout_of(self, self.dropatt.p),
            **seen.arguments(),
        )
        attended = self.drop(self.o_net(out.permute(2, 0, 1, 3).flatten(2)))
        return [w + attended if self.pre_lnorm else self.layer_norm(w + attended)]

    def _by_heads(self, states: Tensor) -> Tensor:
        """[T,B,H*D] as [B,H,T,D]."""
        return states.unflatten(-1, (self.n_head, self.d_head)).permute(1, 2, 0, 3)
