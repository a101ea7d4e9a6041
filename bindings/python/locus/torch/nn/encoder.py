# SPDX-License-Identifier: Apache-2.0
"""A layer of an encoder (or, if causal, of a decoder): attention and feed-forward, each with norm and residual."""

from __future__ import annotations

from typing import Optional

from torch import Tensor, nn

from .attention import Attention, Cache


class EncoderLayer(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)); ``norm_first=False`` has the norms behind the sums.

    >>> layers = nn.ModuleList(EncoderLayer(256, 8, scheme=name, causal=True) for _ in range(4))

    state_dict: ``attention.*`` (see Attention), norm1, up, down, norm2 (weight, bias).
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        feedforward: Optional[int] = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        activation: Optional[nn.Module] = None,
        **attention,
    ):
        super().__init__()
        feedforward = 4 * dim if feedforward is None else feedforward
        self.norm_first = norm_first
        self.attention = Attention(dim, heads, dropout=dropout, **attention)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, feedforward), nn.Linear(feedforward, dim)
        self.activation = nn.GELU() if activation is None else activation
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Optional[Tensor] = None,
        key_mask: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
    ) -> Tensor:
        def attend(x):
            return self.drop(self.attention(x, mask=mask, key_mask=key_mask, cache=cache))

        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + self._feedforward(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + self._feedforward(x))

    def _feedforward(self, x: Tensor) -> Tensor:
        return self.drop(self.down(self.drop(self.activation(self.up(x)))))
