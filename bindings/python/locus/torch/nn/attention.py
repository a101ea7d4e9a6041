# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention with any scheme: projections around ``locus.torch.attend``."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn

from locus._errors import LocusTypeError, LocusValueError

from ..adapter import by_heads, joined
from ..functional import attend, check_tensor
from .positions import Call, Deberta, Shape, position_of

# Where a source says how projections begin; the others are normal with deviation 0.02, biases 0 (BERT, GPT-2).
_GLOROT = {"none", "sinusoidal", "shaw"}  # Vaswani et al. 2017 and tensor2tensor


class Cache:
    """Keys and values of earlier calls, [B,H,T,D]; give the same one to every call of one Attention."""

    def __init__(self):
        self.k: Optional[Tensor] = None
        self.v: Optional[Tensor] = None

    @property
    def tokens(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def append(self, k: Tensor, v: Tensor):
        """All keys and values so far."""
        if self.k is not None:
            k, v = torch.cat([self.k, k], 2), torch.cat([self.v, v], 2)
        self.k, self.v = k, v
        return k, v


class Attention(nn.Module):
    """softmax(scale q k^T + positions) v between projections; one flag per scheme, all else equal.

    >>> attention = Attention(256, 8, scheme="deberta", span=128)
    >>> y = attention(x)                                # [B,T,dim] -> [B,T,dim]
    >>> y = attention(x, key_mask=lengths[:, None] > torch.arange(T))
    >>> y = attention(x, context=memory)                # cross-attention: keys and values from [B,Tk,context_dim]

    scheme      a name of docs/schemes.md, or a module or function that gives a bias by distance: f(distance [R]) -> [R,heads].
    options     of the scheme, by name; ``max_tokens`` for those with a row per position or distance.
    causal      token m sees tokens up to m; with a cache, m counts from its first token.
    window      tokens that a query sees on each side (before it only, if causal), itself not counted.

    state_dict: q, k, v, o (weight [out,in], bias), and ``position.*`` named as the scheme's tensors in docs/schemes.md.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        scheme="none",
        kv_heads: Optional[int] = None,
        head_dim: Optional[int] = None,
        context_dim: Optional[int] = None,
        causal: bool = False,
        window: Optional[int] = None,
        dropout: float = 0.0,
        bias: Optional[bool] = None,
        scale: Optional[float] = None,
        max_tokens: Optional[int] = None,
        **options,
    ):
        super().__init__()
        if heads < 1 or (head_dim is None and dim % heads != 0):
            raise LocusValueError(f"heads: found {heads}, expected a divisor of dim = {dim}, or head_dim")
        self.dim, self.heads, self.kv_heads = dim, heads, heads if kv_heads is None else kv_heads
        if self.kv_heads < 1 or heads % self.kv_heads != 0:
            raise LocusValueError(f"kv_heads: found {self.kv_heads}, expected a divisor of heads = {heads}")
        self.head_dim = dim // heads if head_dim is None else head_dim
        self.causal, self.window, self.dropout, self.scale = causal, window, dropout, scale
        self.scheme = scheme if isinstance(scheme, str) else "by distance"
        bias = self.scheme != "t5" if bias is None else bias
        context_dim = dim if context_dim is None else context_dim
        self.q = nn.Linear(dim, heads * self.head_dim, bias=bias)
        self.k = nn.Linear(context_dim, self.kv_heads * self.head_dim, bias=bias)
        self.v = nn.Linear(context_dim, self.kv_heads * self.head_dim, bias=bias)
        self.o = nn.Linear(heads * self.head_dim, dim, bias=bias)
        self.position = position_of(scheme, Shape(dim, heads, self.head_dim, max_tokens, causal), options)
        self.reset_projections()

    def reset_projections(self) -> None:
        """q, k, v, o as the scheme's source begins."""
        for name in "qkvo":
            linear = getattr(self, name)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
            if self.scheme in _GLOROT:
                nn.init.xavier_uniform_(linear.weight)
            elif self.scheme == "t5":  # the scale 1/sqrt(D) is in the weights of q
                width = linear.in_features * (self.head_dim if name == "q" else 1)
                nn.init.normal_(linear.weight, std=width**-0.5)
            else:
                nn.init.normal_(linear.weight, std=0.02)

    def forward(
        self,
        x: Tensor,
        context: Optional[Tensor] = None,
        *,
        mask: Optional[Tensor] = None,
        key_mask: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
    ) -> Tensor:
        """[B,T,dim]. ``mask`` [B or 1, H or 1, T, Tk] and ``key_mask`` [B,Tk]: true = take part."""
        self._check_input("x", x, self.q)
        if context is not None:
            self._check_input("context", context, self.k)
        if context is not None and cache is not None:
            raise LocusTypeError("cache: found one beside context, expected one of the two")
        first = 0 if cache is None else cache.tokens
        x = self.position.embed(x, first)
        source = x if context is None else self.position.embed(context, 0)
        q = by_heads(self.q(x), self.heads)
        k, v = by_heads(self.k(source), self.kv_heads), by_heads(self.v(source), self.kv_heads)
        if cache is not None:
            k, v = cache.append(k, v)
        call = self._keywords(Call(q.shape[2], k.shape[2], first), crosses=context is not None)
        p = self.dropout if self.training else 0.0
        return self.o(joined(attend(q, k, v, mask, p, key_mask=key_mask, **call)))

    def _check_input(self, name: str, x, linear: nn.Linear) -> None:
        check_tensor(name, x)
        if x.dim() != 3 or x.shape[2] != linear.in_features:
            raise LocusValueError(f"tensor {name}: found {list(x.shape)}, expected shape [B,T,{linear.in_features}]")
        if x.dtype is not linear.weight.dtype and not torch.is_autocast_enabled("cpu"):
            raise LocusTypeError(f"tensor {name}: found {x.dtype}, expected {linear.weight.dtype} as the parameters")

    def _keywords(self, call: Call, crosses: bool) -> dict:
        keywords = self.position.keywords(call)
        if isinstance(self.position, Deberta):
            keywords.update(self.position.projected(self))
        if self.scale is not None:
            keywords["scale"] = self.scale
        if self.window is not None:
            keywords["window_left"] = self.window
            keywords["window_right"] = -1 if self.causal else self.window
        return {**keywords, "causal": self.causal and not crosses, "query_offset": call.offset}

    def extra_repr(self) -> str:
        return f"dim={self.dim}, heads={self.heads}, scheme={self.scheme}, causal={self.causal}"
