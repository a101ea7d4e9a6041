# SPDX-License-Identifier: Apache-2.0
"""Attention written out in torch operations, in double: slow (n x n memory), exact, differentiable in every way.

Used where the fused kernels do not go: forward-mode derivatives, second derivatives, float64 tensors. The formula is the
one of docs/architecture.md, term by term. Which row serves a distance, the frequencies of rotations, the scale and the
offset come from the library's declarations (``_native.rules``); so do its refusals.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

from locus import _native
from locus._errors import LocusValueError


_NUMBERS = ("rows", "frequencies")  # what a plan reads
_AS_THEY_ARE = ("mask", "key_mask", *_NUMBERS)


class Call(NamedTuple):
    tensors: dict  # by name, in double; masks as booleans
    scheme: str
    options: dict
    scale: float
    softcap: Optional[float]
    offset: int
    rows: Tensor  # [Tq,Tk]: of the relative tables, -1: none
    bias_rows: Tensor  # [Tq,Tk]: of the tensor `bias`
    frequency: Tensor  # of every turned pair
    log_gain: Tensor
    slopes: Tensor  # ALiBi's published ones
    delta: Tensor  # [Tq,Tk]: m - n


def _numbers(packed, dtype) -> Tensor:
    return torch.frombuffer(packed, dtype=dtype) if len(packed) else torch.empty(0, dtype=dtype)


# Schemes whose formula stands here; one that the library learns later is refused by name until it does, too.
SCHEMES = frozenset(
    "none sinusoidal learned shaw relative_key relative_key_query transformer_xl t5 tupe deberta alibi kerple rope xpos "
    "distance table fire".split()
)


TENSORS = frozenset(
    "q k v mask key_mask bias_dense sink rel_k rel_q rel_v u w bias pos_q pos_k cls slopes a p rows frequencies "
    "w_1 b_1 w_2 b_2 c threshold".split()
)


def _prepared(tensors: dict, config: dict) -> Call:
    if config["scheme"] not in SCHEMES and config["scheme"] in (declared["name"] for declared in _native.schemes()):
        raise LocusValueError(
            f"scheme: found {config['scheme']!r}, expected one that is written in torch operations (float64, forward mode, "
            f"second derivatives): {', '.join(sorted(SCHEMES))}"
        )
    for name in tensors:
        if name not in TENSORS:
            raise LocusValueError(f"tensor {name}: found, but not in torch operations (float64, forward mode, second derivatives)")
    shapes = {name: t.numpy() if name in _NUMBERS else tuple(t.shape) for name, t in tensors.items()}
    rules = _native.rules(config, shapes)
    queries, keys = tensors["q"].shape[2], tensors["k"].shape[2]
    offset = rules["query_offset"]
    delta = offset + torch.arange(queries)[:, None] - torch.arange(keys)
    rows, bias_rows = (_numbers(packed, torch.int64) for packed in rules["rows"])
    place = delta - (offset - keys + 1)
    frequency, log_gain = (_numbers(packed, torch.float64) for packed in rules["turns"])
    return Call(
        {name: t if name in _AS_THEY_ARE else t.double() for name, t in tensors.items()},
        config["scheme"],
        config["options"],
        rules["scale"],
        config.get("softcap"),
        offset,
        rows[place],
        bias_rows[place],
        frequency,
        log_gain,
        torch.tensor(rules["slopes"], dtype=torch.float64),
        delta,
    )


# ---- terms of the score ----


def _turned(x: Tensor, first: int, call: Call, sign: float) -> Tensor:
    """Pair t of the row at position p turns by p frequency[t] and is multiplied by exp(sign p log_gain[t])."""
    pairs = call.frequency.numel()
    position = torch.arange(first, first + x.shape[2], dtype=torch.float64)[:, None]
    angle, gain = position * call.frequency, torch.exp(sign * position * call.log_gain)
    cos, sin = angle.cos() * gain, angle.sin() * gain
    body, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    if call.options.get("pairing") == "half":
        a, b = body[..., :pairs], body[..., pairs:]
        turned = [a * cos - b * sin, b * cos + a * sin]
    else:
        a, b = body[..., 0::2], body[..., 1::2]
        turned = [torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)]
    return torch.cat([*turned, rest], -1)


def _row(t: Optional[Tensor]):
    """[H,D] beside [B,H,T,D]."""
    return 0.0 if t is None else t[:, None]


def _looked_up(x: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    """x_i . table[rows_ij]: products with the whole table first, then a look-up."""
    strip = x @ table.mT
    return strip.gather(-1, rows.clamp(min=0).expand(*strip.shape[:3], -1))


def _content(call: Call, q: Tensor, k: Tensor) -> Tensor:
    if call.frequency.numel():
        q, k = _turned(q, call.offset, call, 1.0), _turned(k, 0, call, -1.0)
    return (q + _row(call.tensors.get("u"))) @ k.mT


def _relative(call: Call, q: Tensor, k: Tensor):
    """The terms content-position and position-content."""
    t = call.tensors
    rel_q = t.get("rel_k" if call.scheme == "relative_key_query" else "rel_q")
    score = 0.0
    if "rel_k" in t:
        score = score + _looked_up(q + _row(t.get("w")), t["rel_k"], call.rows)
    if rel_q is not None:
        score = score + _looked_up(k, rel_q, call.rows.mT).mT
    return score


def _absolute(call: Call):
    """The term position-position, [H,Tq,Tk]."""
    t = call.tensors
    if "pos_q" not in t:
        return 0.0
    m, n = (call.offset + torch.arange(call.delta.shape[0])), torch.arange(call.delta.shape[1])
    pos_q = t["pos_q"][:, m.clamp(0, t["pos_q"].shape[1] - 1)]
    pos_k = t["pos_k"][:, n.clamp(0, t["pos_k"].shape[1] - 1)]
    return pos_q @ pos_k.mT


def _bias(call: Call):
    """The term bias, [H,Tq,Tk]."""
    t, r = call.tensors, call.delta.abs().double()
    if call.scheme == "alibi":
        return -t.get("slopes", call.slopes)[:, None, None] * r
    if call.scheme == "kerple":
        a, p = t["a"][:, None, None], t["p"][:, None, None]
        if call.options["form"] == "log":
            return -p * torch.log1p(a * r)
        return torch.where(r > 0, -a * torch.where(r > 0, r, 1.0) ** p, 0.0)
    if call.scheme == "fire":
        return _fire(call)
    if call.scheme == "distance":
        entry = call.delta - call.options["delta_min"]
        return t["bias"][:, entry.clamp(0, t["bias"].shape[1] - 1)]
    if "bias" in t:
        return t["bias"][call.bias_rows.clamp(min=0)].permute(2, 0, 1)
    return 0.0


def _fire(call: Call):
    """f_h(z), z = psi(m - n) / (psi(max(m, |threshold|)) + 1e-6), psi(x) = ln(|c x| + 1), f_h: one hidden layer."""
    t = call.tensors
    m = (call.offset + torch.arange(call.delta.shape[0], dtype=torch.float64))[:, None]
    reach = torch.log1p((t["c"] * torch.maximum(m, t["threshold"].abs())).abs())
    z = torch.log1p((t["c"] * call.delta).abs()) / (reach + 1e-6)
    hidden = torch.relu(z[..., None] * t["w_1"] + t["b_1"])
    return (hidden @ t["w_2"].mT + t["b_2"]).permute(2, 0, 1)


def _scores(call: Call, q: Tensor, k: Tensor) -> Tensor:
    position = call.scale * _absolute(call) + _bias(call)
    if "cls" in call.tensors:  # replaces the whole position part of m = 0, then of n = 0
        cls = call.tensors["cls"][:, :, None, None]
        m, n = (call.offset + torch.arange(call.delta.shape[0]))[:, None], torch.arange(call.delta.shape[1])
        position = torch.where(m == 0, cls[0], torch.where(n == 0, cls[1], position))
    score = call.scale * (_content(call, q, k) + _relative(call, q, k)) + position
    if call.softcap is not None:
        score = call.softcap * torch.tanh(score / call.softcap)
    return score + call.tensors["bias_dense"] if "bias_dense" in call.tensors else score


# ---- who sees whom, and who is dropped ----


def _seen(call: Call, config: dict) -> Tensor:
    """Booleans that broadcast to [B,H,Tq,Tk]."""
    t, delta = call.tensors, call.delta
    seen = torch.ones_like(delta, dtype=torch.bool)
    if config["causal"]:
        seen = seen & (delta >= 0)
    if config["window_left"] >= 0:
        seen = seen & (delta <= config["window_left"])
    if config["window_right"] >= 0:
        seen = seen & (-delta <= config["window_right"])
    seen = seen[None, None]
    if "mask" in t:
        seen = seen & t["mask"].bool()
    if "key_mask" in t:
        seen = seen & t["key_mask"].bool()[:, None, None]
    if "bias_dense" in t:
        seen = seen & (t["bias_dense"].detach() != -math.inf)
    return seen


def _kept(shape, config: dict) -> Tensor:
    """1 / (1 - p) where the library keeps a weight, else 0: plain attention over equal logits shows which.

    On NumPy arrays, because new tensors belong to whatever transform of torch.func is at work.
    """
    batch, heads, queries, keys = shape
    plain = {name: config[name] for name in ("dropout", "dropout_seed", "threads")}
    zeros = np.zeros((batch, heads, max(queries, keys), 1), np.float32)
    out, lse = np.empty(shape, np.float32), np.empty(shape[:3], np.float32)
    ones = np.broadcast_to(np.eye(keys, dtype=np.float32), (batch, heads, keys, keys))
    tensors = {"q": zeros[:, :, :queries], "k": zeros[:, :, :keys], "v": ones}
    _native.forward({"scheme": "none", **plain}, tensors, out, lse)
    return torch.from_numpy((out != 0) / (1.0 - config["dropout"]))


# ---- the call ----


def attend(tensors: dict, config: dict):
    """(out, lse) in double of tensors by name; rows that see no key give 0 and -inf."""
    call = _prepared(tensors, config)
    t = call.tensors
    q = t["q"]
    group = q.shape[1] // max(t["k"].shape[1], 1)
    k, v = (x.repeat_interleave(group, 1) if group != 1 else x for x in (t["k"], t["v"]))
    if "key_mask" in t:  # what a hidden key holds, NaN included, must not reach a product
        by_key = t["key_mask"].bool()[:, None, :, None]
        k, v = torch.where(by_key, k, 0.0), torch.where(by_key, v, 0.0)
    seen = _seen(call, config)
    score = _scores(call, q, k).masked_fill(~seen, -math.inf)
    blind = ~seen.any(-1, keepdim=True)
    score = score.masked_fill(blind, 0.0)
    weights = score.softmax(-1).masked_fill(blind, 0.0)
    lse = score.logsumexp(-1).masked_fill(blind[..., 0], -math.inf)
    if "sink" in t:  # one more logit, whose weight falls on nothing
        below = torch.logaddexp(lse, t["sink"][:, None])
        weights = weights * torch.exp(lse - below)[..., None]
        lse = below
    if config["dropout"] > 0:
        weights = weights * _kept(tuple(weights.shape), config)
    out = weights @ v
    if "rel_v" in t:
        by_row = weights.new_zeros(*weights.shape[:3], t["rel_v"].shape[0])
        out = out + by_row.scatter_add(-1, call.rows.clamp(min=0).expand_as(weights), weights) @ t["rel_v"]
    return out, lse
