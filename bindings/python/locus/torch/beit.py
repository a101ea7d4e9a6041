# SPDX-License-Identifier: Apache-2.0
"""BEiT and Data2VecVision, transformers 4 and what is left of it in 5: scheme ``swin`` with the biases of the first token (``cls``)."""

from __future__ import annotations

from typing import Optional

from torch import Tensor
from torch.nn import functional as F

from .adapter import Adapter, can_run, dropout_of, head_mask_fits, run_joined, weights_wanted
from .sam import grid


def _places(window: tuple) -> Tensor:
    """Those of the patches behind one for the first token, which counts for nothing."""
    return F.pad(grid(*window), (0, 0, 1, 0))


def _tables(positions, window: tuple) -> dict:
    """The biases by distance for `window`, made between the learned ones as the original does, and those of the first token."""
    table, old = positions.relative_position_bias_table, positions.window_size
    by_distance = table[:-3].view(2 * old[1] - 1, 2 * old[0] - 1, -1)  # in this order, whatever the picture's form
    size = (2 * window[0] - 1, 2 * window[1] - 1)
    if by_distance.shape[:2] != size:
        by_distance = F.interpolate(by_distance.permute(2, 0, 1)[None], size=size, mode="bilinear")[0].permute(1, 2, 0)
    return {"scheme": "swin", "bias": by_distance, "cls": table[-3:]}


class SelfAttention(Adapter):
    knows = (
        "hidden_states",
        "head_mask",
        "output_attentions",
        "relative_position_bias",
        "interpolate_pos_encoding",
        "resolution",
    )
    needs = ("hidden_states", "relative_position_bias", "interpolate_pos_encoding", "resolution")

    @classmethod
    def refuse(cls, module) -> Optional[str]:
        shared = getattr(module.config, "use_shared_relative_position_bias", False)
        return "use_shared_relative_position_bias makes its biases in the encoder, expected a table by layer" if shared else None

    @classmethod
    def used_scheme(cls, module) -> str:
        return "swin" if module.has_relative_position_bias else "none"

    def forward(self, *args, **kwargs):
        given = self.given(args, kwargs)
        states, head_mask = given["hidden_states"], given.get("head_mask")
        other = given.get("relative_position_bias") is not None or given.get("interpolate_pos_encoding")
        if weights_wanted(self, given) or other or not head_mask_fits(head_mask) or not can_run(states):
            return super().forward(*args, **kwargs)
        call = self._positions(given["resolution"]) if self.has_relative_position_bias else {}
        q, k, v = self.query(states), self.key(states), self.value(states)
        p = dropout_of(self, self.dropout.p)
        out = run_joined(q, k, v, self.num_attention_heads, head_mask=head_mask, dropout=p, **call)
        return out, None

    def _positions(self, resolution: tuple) -> dict:
        window = tuple(pixels // self.config.patch_size for pixels in resolution)
        places = _places(window)
        return dict(_tables(self.relative_position_bias, window), q_positions=places, k_positions=places)
