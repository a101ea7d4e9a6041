# SPDX-License-Identifier: Apache-2.0
"""Attention written out in torch, in double: what locus.torch.attend must agree with, gradients included.

Index by index from the formulas of docs/schemes.md; shares nothing with the library.
"""

import math

import torch


def distance(queries, keys, offset):
    return offset + torch.arange(queries)[:, None] - torch.arange(keys)[None, :]


def t5_bucket(delta, buckets, max_distance, bidirectional):
    rho = -delta
    base = torch.zeros_like(rho)
    if bidirectional:
        buckets //= 2
        base = (rho > 0) * buckets
        x = rho.abs()
    else:
        x = (-rho).clamp(min=0)
    exact = buckets // 2
    far = exact + (torch.log(x.clamp(min=1) / exact) / math.log(max_distance / exact) * (buckets - exact)).long()
    return base + torch.where(x < exact, x, far.clamp(max=buckets - 1))


def deberta_row(delta, span, buckets, max_distance):
    beta = delta
    if buckets > 0:
        mid = buckets // 2
        far = mid + torch.ceil(
            torch.log(delta.abs().clamp(min=1) / mid) / math.log((max_distance - 1) / mid) * (mid - 1)
        )
        beta = torch.where(delta.abs() <= mid, delta, (far * delta.sign()).long())
    return (beta + span).clamp(0, 2 * span - 1)


def _by_row(x, table, rows, sides="ij"):
    """x_i . table[rows_ij] (or x_j): [B,H,Tq,Tk]. Tables are [R,D] or [H,R,D]."""
    picked = table[..., rows, :]
    if picked.dim() == 3:
        picked = picked[None]
    side = "bhid" if sides == "ij" else "bhjd"
    return torch.einsum(f"{side},hijd->bhij", x, picked.expand(x.shape[1], -1, -1, -1))


def _turned(x, positions, base, width):
    half = width // 2
    angle = positions[:, None] * base ** (-2.0 * torch.arange(half, dtype=torch.float64) / width)
    cos, sin = angle.cos(), angle.sin()
    first, second, rest = x[..., :half], x[..., half:width], x[..., width:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def position_terms(scheme, q, k, t, o, delta, scale):
    """What is added to scale q.k."""
    if scheme == "shaw":
        rows = (-delta).clamp(-o["clip_left"], o["clip_right"]) + o["clip_left"]
        return scale * _by_row(q, t["rel_k"], rows)
    if scheme in ("relative_key", "relative_key_query"):
        rows = delta + (t["rel_k"].shape[0] + 1) // 2 - 1
        terms = _by_row(q, t["rel_k"], rows)
        if scheme == "relative_key_query":
            terms = terms + _by_row(k, t["rel_k"], rows, "ji")
        return scale * terms
    if scheme == "transformer_xl":
        u, w = t["u"][None, :, None], t["w"][None, :, None]
        rows = delta - o["delta_min"]
        return scale * (torch.einsum("bhid,bhjd->bhij", u.expand_as(q), k) + _by_row(q + w, t["rel_k"], rows))
    if scheme == "t5":
        bucket = t5_bucket(delta, o["buckets"], o["max_distance"], o["bidirectional"])
        return t["bias"][bucket].permute(2, 0, 1)[None]
    if scheme == "tupe":
        m = (delta[:, 0]).long()
        return scale * torch.einsum("hid,hjd->hij", t["pos_q"][:, m], t["pos_k"][:, : k.shape[2]])[None]
    if scheme == "deberta":
        rows = deberta_row(delta, o["span"], o["buckets"], o["max_distance"])
        return scale * (_by_row(q, t["rel_k"], rows) + _by_row(k, t["rel_q"], rows, "ji"))
    if scheme == "alibi":
        return -t["slopes"][None, :, None, None] * delta.abs()
    if scheme == "kerple":
        a, p = t["a"][None, :, None, None], t["p"][None, :, None, None]
        return -p * torch.log(1 + a * delta.abs())
    return 0.0


def attend(q, k, v, scheme, tables, options, scale, seen=None, offset=None, keep=None):
    """out and lse in double. `seen` [B,1,Tq,Tk] true = take part; `keep` multiplies the weights (dropout)."""
    q, k, v, t = q.double(), k.double(), v.double(), {name: x.double() for name, x in tables.items()}
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    offset = k.shape[2] - q.shape[2] if offset is None else offset
    delta = distance(q.shape[2], k.shape[2], offset)
    content_q, content_k = q, k
    if scheme == "rope":
        content_q = _turned(q, offset + torch.arange(q.shape[2]), options.get("base", 1e4), q.shape[3])
        content_k = _turned(k, torch.arange(k.shape[2]), options.get("base", 1e4), q.shape[3])
    logits = scale * torch.einsum("bhid,bhjd->bhij", content_q, content_k)
    logits = logits + position_terms(scheme, q, k, t, options, delta, scale)
    if "bias_dense" in t:
        logits = logits + t["bias_dense"]
    if seen is not None:
        logits = logits.masked_fill(~seen, -math.inf)
    weights = logits.softmax(-1)
    if keep is not None:
        weights = weights * keep
    out = torch.einsum("bhij,bhjd->bhid", weights, v)
    if "rel_v" in t:
        rows = (-delta).clamp(-options["clip_left"], options["clip_right"]) + options["clip_left"]
        out = out + torch.einsum("bhij,ijd->bhid", weights, t["rel_v"][rows])
    return out, logits.logsumexp(-1)
