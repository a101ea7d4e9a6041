# SPDX-License-Identifier: Apache-2.0
"""XLNet: scheme ``transformer_xl``. Token types add a term that is no function of the distance: the original does those."""

from __future__ import annotations

import torch
from torch import Tensor

from .adapter import Adapter, can_run, dropout_of, run
from .masks import from_hidden


class RelativeAttention(Adapter):
    scheme = "transformer_xl"
    knows = (
        "h",
        "g",
        "attn_mask_h",
        "attn_mask_g",
        "r",
        "seg_mat",
        "mems",
        "target_mapping",
        "head_mask",
        "output_attentions",
    )
    needs = ("h", "g", "attn_mask_h", "attn_mask_g", "r", "seg_mat", "mems", "target_mapping", "output_attentions")

    def forward(self, h, g, attn_mask_h, attn_mask_g, r, *args, **kwargs):
        # Rows of positions that the whole batch shares are projected once; without dropout all are.
        return super().forward(h, g, attn_mask_h, attn_mask_g, r[:, :1] if r.stride(1) == 0 else r, *args, **kwargs)

    def rel_attn_core(self, q_head, k_head_h, v_head_h, k_head_r, seg_mat=None, attn_mask=None, **more):
        queries, keys, rows = q_head.shape[0], k_head_h.shape[0], k_head_r.shape[0]
        # Row i of k_head_r is distance keys - i; nothing reads row 0. One-sided tables ("uni") serve causal calls only.
        lowest = keys - rows + 1
        asked = more.get("output_attentions") or more.get("head_mask") is not None
        given_up = asked or seg_mat is not None or not can_run(q_head)
        if given_up or (lowest > 1 - queries and not self._hides_future(attn_mask, queries, keys)):
            return super().rel_attn_core(q_head, k_head_h, v_head_h, k_head_r, seg_mat=seg_mat, attn_mask=attn_mask, **more)
        call = {
            "scheme": "transformer_xl",
            "u": self.r_w_bias,
            "w": self.r_r_bias,
            "delta_min": lowest,
            "scale": self.scale,
            "dropout": dropout_of(self, self.dropout.p),
        }
        hidden = None if attn_mask is None else attn_mask.permute(2, 3, 0, 1)
        seen = from_hidden(hidden, keys - queries)
        if lowest > 1 - queries:
            seen = seen._replace(causal=True)
        q, k, v, tables = (t.permute(1, 2, 0, 3) for t in (q_head, k_head_h, v_head_h, k_head_r.flip(0)))
        if tables.shape[0] == 1:
            out = run(q, k, v, rel_k=tables[0], **seen.arguments(), **call)
        else:  # positions differ within the batch: their dropout, or bi_data
            out = torch.cat(
                [
                    run(q[b : b + 1], k[b : b + 1], v[b : b + 1], rel_k=tables[b], **_one(seen, b), **call)
                    for b in range(q.shape[0])
                ]
            )
        return out.permute(2, 0, 1, 3)

    @staticmethod
    def _hides_future(attn_mask, queries: int, keys: int) -> bool:
        if attn_mask is None:
            return queries == 1
        future = torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
        return bool((attn_mask.bool() | ~future[:, :, None, None]).all())


def _one(seen, b: int) -> dict:
    """The masks of batch item b."""
    return {
        name: value[b : b + 1] if isinstance(value, Tensor) and value.shape[0] > 1 else value
        for name, value in seen.arguments().items()
    }
