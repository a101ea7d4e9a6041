# SPDX-License-Identifier: Apache-2.0
"""Attention alone, on q, k, v and tables that are given: no projections."""

from __future__ import annotations

import copy
import math

import torch
from torch.nn import functional

import locus.torch

from . import onnx
from .contest import Contest, Shape
from .distance import by_distance, skew
from .peers import add_flex


def _leaf(tensor):
    return tensor.detach().contiguous().requires_grad_()


def _qkv(shape: Shape, options):
    """Views of [B,T,H,D], as a model has them, or [B,H,T,D] as it lies."""
    sizes = (shape.batch, shape.tokens, shape.heads, shape.width)
    views = [torch.randn(sizes).transpose(1, 2) for _ in range(3)]
    return [_leaf(x) if options.layout == "heads" else x.requires_grad_() for x in views]


def _per_head(rows: int, shape: Shape, options):
    """A table for every head: a view of [R,H,D], as a projection gives it, or [H,R,D] as it lies."""
    view = torch.randn(rows, shape.heads, shape.width).transpose(0, 1)
    return _leaf(view) if options.layout == "heads" else view.requires_grad_()


def _double(q, k, v, bias=None, scale=None):
    with torch.no_grad():
        mask = None if bias is None else bias.double()
        return functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask, scale=scale)


def _sdpa(q, k, v, bias=None, scale=None):
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)


def _exactly(formula, *tensors):
    """The formula of an eager peer in double."""

    def exact():
        with torch.no_grad():
            return formula(*[x.double() for x in tensors])

    return exact


def plain(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape, options)
    contest = Contest("plain", [q, k, v], lambda: _double(q, k, v))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v)
    onnx.add_plain(contest, shape, q, k, v)
    return contest


def dense_bias(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape, options)
    bias = torch.randn(1, shape.heads, shape.tokens, shape.tokens)
    contest = Contest("dense bias", [q, k, v], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, bias_dense=bias)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v, bias)
    onnx.add_plain(contest, shape, q, k, v, bias)
    return contest


def learned_bias(shape: Shape, options) -> Contest:
    """A dense bias with a gradient: torch leaves its fused kernel."""
    q, k, v = _qkv(shape, options)
    bias = torch.randn(1, shape.heads, shape.tokens, shape.tokens, requires_grad=True)
    contest = Contest("dense bias, learned", [q, k, v, bias], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, bias_dense=bias)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v, bias)
    return contest


def t5(shape: Shape, options) -> Contest:
    from transformers.models.t5.modeling_t5 import T5Attention

    q, k, v = _qkv(shape, options)
    table = torch.randn(32, shape.heads, requires_grad=True)
    index = torch.arange(shape.tokens)
    bucket = T5Attention._relative_position_bucket(index[None] - index[:, None])

    def bias():
        return table[bucket].permute(2, 0, 1)[None]

    given = bias().detach().contiguous()

    contest = Contest("T5 table", [q, k, v, table], lambda: _double(q, k, v, bias().detach(), 1.0))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, scheme="t5", bias=table)
    contest.runs["torch SDPA, table gathered"] = lambda: _sdpa(q, k, v, bias(), 1.0)
    contest.runs["torch SDPA, bias given"] = lambda: _sdpa(q, k, v, given, 1.0)
    contest.forward_only.add("torch SDPA, bias given")  # it has no gradient of the table
    onnx.add_plain(contest, shape, q, k, v, given, 1.0)

    def score(logit, b, h, m, n):
        return logit + table[bucket[m, n], h]

    add_flex(contest, options, q, k, v, score, 1.0)
    return contest


def alibi(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape, options)
    slopes = torch.exp2(-8 * (torch.arange(shape.heads) + 1) / shape.heads)
    index = torch.arange(shape.tokens)
    bias = (-slopes[:, None, None] * (index[:, None] - index[None]).abs())[None]
    contest = Contest("ALiBi", [q, k, v], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, scheme="alibi", slopes=slopes)
    contest.runs["torch SDPA, dense"] = lambda: _sdpa(q, k, v, bias)
    add_flex(contest, options, q, k, v, lambda logit, b, h, m, n: logit - slopes[h] * (m - n).abs())
    return contest


# ---- Shaw: tables rel_k, rel_v [R,D] by clipped distance ----

SHAW_CLIP = 128
GATHER_LIMIT = 1 << 29  # bytes of one array [T,T,D]: two of them and their gradients are alive at once


def _shaw_gathered(q, k, v, rel_k, rel_v, row):
    """As the paper writes it: a vector for every pair of positions."""
    scores = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, rel_k[row])
    weights = (scores * q.shape[-1] ** -0.5).softmax(-1)
    return weights @ v + torch.einsum("bhij,ijd->bhid", weights, rel_v[row])


def _shaw_buckets(q, k, v, rel_k, rel_v, row):
    """Products with every row of the tables, looked up by pair; weights summed by row."""
    index = row.expand(*q.shape[:2], -1, -1)
    scores = q @ k.transpose(-1, -2) + (q @ rel_k.T).gather(-1, index)
    weights = (scores * q.shape[-1] ** -0.5).softmax(-1)
    by_row = weights.new_zeros(*q.shape[:3], rel_k.shape[0]).scatter_add(-1, index, weights)
    return weights @ v + by_row @ rel_v


def _shaw_skewed(q, k, v, rel_k, rel_v, row):
    """A row per distance, slanted into place by reshaping, weights slanted back."""
    rows = by_distance(row)
    scores = q @ k.transpose(-1, -2) + skew(q @ rel_k[rows].T)
    weights = (scores * q.shape[-1] ** -0.5).softmax(-1)
    strip = weights.new_zeros(*weights.shape[:-1], len(rows))
    skew(strip).copy_(weights)
    return weights @ v + strip @ rel_v[rows]


def shaw(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape, options)
    rel_k, rel_v = (torch.randn(2 * SHAW_CLIP + 1, shape.width, requires_grad=True) for _ in range(2))
    tensors = [q, k, v, rel_k, rel_v]
    index = torch.arange(shape.tokens)
    row = (index[None] - index[:, None]).clamp(-SHAW_CLIP, SHAW_CLIP) + SHAW_CLIP
    contest = Contest("Shaw", tensors, _exactly(lambda *wide: _shaw_buckets(*wide, row), *tensors))
    contest.runs["locus"] = lambda: locus.torch.attend(
        q, k, v, scheme="shaw", rel_k=rel_k, rel_v=rel_v, clip_left=SHAW_CLIP, clip_right=SHAW_CLIP
    )
    contest.runs["eager, looked up"] = lambda: _shaw_buckets(*tensors, row)
    contest.runs["eager, skewed"] = lambda: _shaw_skewed(*tensors, row)
    gathered = 4 * shape.tokens**2 * shape.width
    if gathered < GATHER_LIMIT:
        contest.runs["eager, gathered"] = lambda: _shaw_gathered(*tensors, row)
    else:
        contest.absent["eager, gathered"] = f"two arrays of {gathered / 2**20:.0f} MB and their gradients"
    onnx.add_shaw(contest, shape, *tensors, row)
    return contest


# ---- Transformer-XL, as XLNet has it ----


def transformer_xl(shape: Shape, options) -> Contest:
    """XLNet's own rel_attn_core beside Locus. Everybody has the table in the order of his own, as a leaf."""
    from transformers import XLNetConfig
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    core = XLNetRelativeAttention(XLNetConfig(d_model=shape.hidden, n_head=shape.heads, dropout=0.0)).eval()
    biases = [core.r_w_bias, core.r_r_bias]
    for bias in biases:
        torch.nn.init.normal_(bias)
    q, k, v = _qkv(shape, options)
    table = _per_head(2 * shape.tokens, shape, options)  # distances 1-T up to T
    by_key = _leaf(table.flip(1).roll(-1, 1))  # T-1 down to 1-T, as keys ascend, and one more for the reshaping
    r = _leaf(table.flip(1).transpose(0, 1)[:, None])  # T down to 1-T

    def theirs(module, *tensors):
        *heads, rows = tensors
        by_token = [x.permute(2, 0, 1, 3) for x in heads]
        return module.rel_attn_core(*by_token, rows.expand(-1, shape.batch, -1, -1)).permute(1, 2, 0, 3)

    def exact():
        with torch.no_grad():
            return theirs(copy.deepcopy(core).double(), *[x.double() for x in (q, k, v, r)])

    contest = Contest("Transformer-XL core", [q, k, v, table, by_key, r, *biases], exact)
    contest.runs["locus"] = lambda: locus.torch.attend(
        q, k, v, scheme="transformer_xl", rel_k=table, u=biases[0], w=biases[1], delta_min=1 - shape.tokens
    )
    contest.runs["transformers, rel_attn_core"] = lambda: theirs(core, q, k, v, r)
    contest.runs["eager, skewed"] = lambda: _transformer_xl_skewed(q, k, v, by_key, *biases)
    onnx.add_transformer_xl(contest, shape, q, k, v, by_key, *biases)
    return contest


def _transformer_xl_skewed(q, k, v, table, u, w):
    scores = (q + u[:, None]) @ k.transpose(-1, -2) + skew((q + w[:, None]) @ table.transpose(-1, -2))
    return (scores * q.shape[-1] ** -0.5).softmax(-1) @ v


# ---- DeBERTa-v3: content to position and position to content, tables given ----

DEBERTA_SPAN, DEBERTA_FAR = 256, 512  # buckets on either side, and the distance from which all share the last


def _deberta_eager(q, k, v, rel_k, rel_q, row, row_by_key):
    """As DisentangledSelfAttention does it, behind its projections."""
    scale = math.sqrt(3 * q.shape[-1])
    scores = q @ (k.transpose(-1, -2) / scale)
    c2p = (q @ rel_k.transpose(-1, -2)).gather(-1, row.expand_as(scores))
    p2c = (k @ rel_q.transpose(-1, -2)).gather(-1, row_by_key.expand_as(scores)).transpose(-1, -2)
    return (scores + (c2p / scale + p2c / scale)).softmax(-1) @ v


def _deberta_skewed(q, k, v, rel_k, rel_q, row, row_by_key):
    """A row per distance on either side, slanted into place."""
    scale = math.sqrt(3 * q.shape[-1])
    c2p = skew(q @ rel_k[:, by_distance(row)].transpose(-1, -2))
    p2c = skew(k @ rel_q[:, by_distance(row_by_key)].transpose(-1, -2)).transpose(-1, -2)
    return ((q @ k.transpose(-1, -2) + c2p + p2c) / scale).softmax(-1) @ v


def deberta(shape: Shape, options) -> Contest:
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    q, k, v = _qkv(shape, options)
    rel_k, rel_q = (_per_head(2 * DEBERTA_SPAN, shape, options) for _ in range(2))
    tensors = [q, k, v, rel_k, rel_q]
    index = torch.arange(shape.tokens)
    bucket = make_log_bucket_position(index[:, None] - index[None], DEBERTA_SPAN, DEBERTA_FAR).long()
    row = (bucket + DEBERTA_SPAN).clamp(0, 2 * DEBERTA_SPAN - 1)
    rows = (row, row.T.contiguous())
    contest = Contest("DeBERTa-v3 core", tensors, _exactly(lambda *wide: _deberta_eager(*wide, *rows), *tensors))
    contest.runs["locus"] = lambda: locus.torch.attend(
        *(q, k, v),
        scheme="deberta",
        rel_k=rel_k,
        rel_q=rel_q,
        span=DEBERTA_SPAN,
        buckets=DEBERTA_SPAN,
        max_distance=DEBERTA_FAR,
    )
    contest.runs["eager, as transformers"] = lambda: _deberta_eager(*tensors, *rows)
    contest.runs["eager, skewed"] = lambda: _deberta_skewed(*tensors, *rows)
    onnx.add_deberta(contest, shape, *tensors, row)
    return contest
