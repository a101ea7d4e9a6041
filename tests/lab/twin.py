# SPDX-License-Identifier: Apache-2.0
"""twin.py LOCUS FOLDER [full]: the lab's runs against PyTorch in float64.

Each run starts from the lab's own initial checkpoint and reads `locus lab batches`; model, schemes,
clipping, AdamW and schedule are written again here, from the papers and docs/lab.md. Losses of the
first steps must agree within 1e-5 relative (where training is so unstable that PyTorch's own float32
does not, as well as that does), gradients of a whole model (as the first moments after one step show
them) within 1e-4 of the largest of their tensor."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

torch.set_num_threads(1)
LOSS_TOLERANCE = 1e-5      # float32 sums of a few thousand terms against double
GRADIENT_TOLERANCE = 1e-4  # of the largest entry of the tensor
STEPS = 50
PART_TOKENS = int(re.search(r"PART_TOKENS = (\d+)", Path("lab/parts.c").read_text()).group(1))  # of a part of a batch
SCHEMES = ("none sinusoidal learned shaw relative_key relative_key_query transformer_xl t5 tupe "
           "deberta alibi kerple rope xpos").split()


# ---- rules of the schemes, written from their papers ----

def t5_bucket(distance, bidirectional, buckets=32, far=128):
    """distance = key - query, as in the T5 code."""
    n, first = -distance, 0
    if bidirectional:
        buckets //= 2
        first = buckets if n < 0 else 0
        n = abs(n)
    else:
        n = max(n, 0)
    exact = buckets // 2
    if n < exact:
        return first + n
    large = exact + int(math.log(n / exact) / math.log(far / exact) * (buckets - exact) + 1e-9)
    return first + min(large, buckets - 1)


def deberta_row(delta, span=32, buckets=32, far=128):
    mid = buckets // 2
    beta = delta
    if abs(delta) > mid:
        steps = math.log(abs(delta) / mid) / math.log((far - 1) / mid) * (mid - 1)
        beta = int(math.copysign(mid + math.ceil(steps - 1e-9), delta))
    return min(max(beta + span, 0), 2 * span - 1)


def sinusoid(position, width, half):
    table = torch.zeros(len(position), width, dtype=torch.float64)
    frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.tensor(position, dtype=torch.float64)[:, None] * frequency
    if half:
        return torch.cat([angle.sin(), angle.cos()], dim=1)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def turn(x, positions, sign, decay):
    """Interleaved rotation of [B, H, T, D]; with decay, xPos."""
    width = x.shape[-1]
    pair = torch.arange(0, width, 2, dtype=torch.float64)
    angle = positions[:, None] * 10000.0 ** (-pair / width)
    gain = torch.ones_like(angle)
    if decay:
        gain = ((pair + 0.4 * width) / (1.4 * width)) ** (sign * positions[:, None] / 512.0)
    cos, sin = (angle.cos() * gain).to(x.dtype), (angle.sin() * gain).to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


# ---- the model ----

class Twin:
    def __init__(self, weights, settings, dtype):
        self.p = {k: v.to(dtype).requires_grad_() for k, v in weights.items()}
        self.set = settings
        self.causal = settings["task"] != "masked"

    def own(self, block, name):
        key = f"shared.{name}"
        return self.p[key] if key in self.p else self.p[f"blocks.{block}.attn.{name}"]

    def heads(self, x, weight):
        H = self.set["heads"]
        y = x @ weight.T
        return y.view(y.shape[0], y.shape[1], H, -1).transpose(1, 2)

    def table(self, rows, weight):
        return (rows @ weight.T).view(rows.shape[0], self.set["heads"], -1).transpose(0, 1)

    def attention(self, block, x, memory):
        s, scheme = self.set, self.set["scheme"]
        w = {n: self.p[f"blocks.{block}.attn.{n}"] for n in ("w_q", "w_k", "w_v", "w_o")}
        context = x if memory is None else torch.cat([memory, x], dim=1)
        q, k, v = self.heads(x, w["w_q"]), self.heads(context, w["w_k"]), self.heads(context, w["w_v"])
        H, D, Tq, Tk = s["heads"], q.shape[-1], x.shape[1], context.shape[1]
        m = torch.arange(Tk - Tq, Tk)[:, None]
        n = torch.arange(Tk)[None, :]
        delta = m - n
        scale = 1 / math.sqrt(D)
        bias, content = 0.0, None
        if scheme in ("rope", "xpos"):
            q = turn(q, m[:, 0].double(), 1.0, scheme == "xpos")
            k = turn(k, n[0].double(), -1.0, scheme == "xpos")
        elif scheme == "alibi":
            slope = 2.0 ** (-8.0 * (torch.arange(H, dtype=torch.float64) + 1) / H)
            bias = (-slope[:, None, None] * delta.abs()).to(q.dtype)
        elif scheme == "kerple":
            a, p = self.own(block, "a"), self.own(block, "p")
            bias = -p[:, None, None] * torch.log1p(a[:, None, None] * delta.abs())
        elif scheme == "t5":
            bucket = torch.tensor([[t5_bucket(-int(d), not self.causal) for d in row] for row in delta])
            bias = self.own(block, "bias")[bucket].permute(2, 0, 1)
        scores = q @ k.transpose(-1, -2)
        if scheme == "shaw":
            row = (-delta).clamp(-s["clip"], s["clip"]) + s["clip"]
            scores = scores + torch.einsum("bhmd,mnd->bhmn", q, self.own(block, "rel_k")[row])
        elif scheme in ("relative_key", "relative_key_query"):
            table = self.own(block, "rel_k")
            rows = table[delta + (table.shape[0] - 1) // 2]
            scores = scores + torch.einsum("bhmd,mnd->bhmn", q, rows)
            if scheme == "relative_key_query":
                scores = scores + torch.einsum("bhnd,mnd->bhmn", k, rows)
        elif scheme == "transformer_xl":
            distances = list(range(int(delta.min()), int(delta.max()) + 1))
            r = self.table(sinusoid(distances, s["width"], True).to(q.dtype), self.own(block, "w_r"))
            r = r[:, delta - distances[0]]
            u, b = self.own(block, "u"), self.own(block, "w")
            scores = (q + u[:, None]) @ k.transpose(-1, -2)
            scores = scores + torch.einsum("bhmd,hmnd->bhmn", q + b[:, None], r)
        elif scheme == "tupe":
            scale = 1 / math.sqrt(2 * D)
            pos = self.own(block, "pos")[:Tk]
            pq, pk = self.table(pos, self.own(block, "w_pq")), self.table(pos, self.own(block, "w_pk"))
            scores = scores + pq @ pk.transpose(-1, -2)
        elif scheme == "deberta":
            c2p, p2c = "c2p" in s["terms"], "p2c" in s["terms"]
            scale = 1 / math.sqrt((1 + c2p + p2c) * D)
            row = torch.tensor([[deberta_row(int(d)) for d in line] for line in delta])
            rel = self.own(block, "rel")
            if c2p:
                scores = scores + torch.einsum("bhmd,hmnd->bhmn", q, self.table(rel, w["w_k"])[:, row])
            if p2c:
                scores = scores + torch.einsum("bhnd,hmnd->bhmn", k, self.table(rel, w["w_q"])[:, row])
        elif scheme == "distance":
            bias = self.own(block, "bias")[:, delta + s["longest"] - 1]
        elif scheme == "fire":
            c, reach = self.own(block, "c"), self.own(block, "threshold").abs()
            psi = lambda x: torch.log1p((c * x).abs())
            z = psi(delta.clamp(min=0)) / (psi(torch.maximum(m.to(c.dtype), reach)) + 1e-6)
            hidden = torch.relu(z[..., None] * self.own(block, "w_1") + self.own(block, "b_1"))
            bias = torch.einsum("mnf,hf->hmn", hidden, self.own(block, "w_2"))
            bias = bias + self.own(block, "b_2")[:, None, None]
        scores = scores * scale + bias
        if self.causal:
            scores = scores.masked_fill(delta < 0, -math.inf)
        weights = scores.softmax(-1)
        out = weights @ v
        if scheme == "shaw":
            out = out + torch.einsum("bhmn,mnd->bhmd", weights, self.own(block, "rel_v")[row])
        return out.transpose(1, 2).flatten(2) @ w["w_o"].T

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"], 1e-5)

    def loss(self, tokens, targets, weight, memory=None):
        s, E = self.set, self.set["width"]
        h = self.p["embed.weight"][tokens] * math.sqrt(E)
        if s["scheme"] == "sinusoidal":
            h = h + sinusoid(list(range(tokens.shape[1])), E, False).to(h.dtype)
        if s["scheme"] == "learned":
            h = h + self.p["shared.pos"][: tokens.shape[1]]
        self.inputs = []
        for block in range(s["layers"]):
            self.inputs.append(h.detach())
            past = None
            if memory is not None:
                past = self.norm(memory[block], f"blocks.{block}.norm1")
            h = h + self.attention(block, self.norm(h, f"blocks.{block}.norm1"), past)
            x = self.norm(h, f"blocks.{block}.norm2")
            wide = torch.nn.functional.gelu(x @ self.p[f"blocks.{block}.ff.w_1"].T)
            h = h + wide @ self.p[f"blocks.{block}.ff.w_2"].T
        logits = self.norm(h, "norm") @ self.p["embed.weight"].T
        nll = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return (nll * weight.flatten()).sum() / weight.sum()


# ---- training ----

def rate_at(step, steps, peak):
    warm = max(1, steps // 20)
    if step <= warm:
        return peak * step / warm
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))))


def adam(p, m, v, step, rate, decay):
    norm = math.sqrt(sum(float((x.grad ** 2).sum()) for x in p.values() if x.grad is not None))
    clip = min(1.0, 1.0 / norm)
    with torch.no_grad():
        for name, x in p.items():
            g = clip * (x.grad if x.grad is not None else torch.zeros_like(x))
            last = name.rsplit(".", 1)[1]
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.98 * v[name] + 0.02 * g * g
            update = m[name] / (1 - 0.9 ** step) / ((v[name] / (1 - 0.98 ** step)).sqrt() + 1e-8)
            if last.startswith("w_"):
                update = update + decay * x
            x -= rate * update
            if last in ("a", "p"):
                x.clamp_(min=0.01)
            x.grad = None
    return norm


def compare(locus, folder, case):
    name = "_".join(str(v) for v in case.values()).replace(",", "-").replace("/", "-")
    options = [f"--{k.replace('_', '-')}={v}" for k, v in case.items()]
    start, run, file = folder / f"{name}.start", folder / f"{name}.run", folder / f"{name}.batches"
    call = lambda *words: subprocess.run([locus, "lab", *words], check=True, stderr=subprocess.PIPE)
    call("train", *options, "--steps", "0", "-o", start)
    call("train", *options, "--steps", "200", "--stop", str(STEPS), "-o", run)
    shared = [f"--{k}={case[k]}" for k in ("task", "seed", "batch", "length", "memory", "text") if k in case]
    call("batches", *shared, "--from", "1", "--count", str(STEPS), "-o", file)
    settings = json.loads((run / "run.json").read_text())
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    log = [line for line in log if "loss" in line]
    weights = load_file(start / "checkpoint.safetensors")
    weights = {k: v for k, v in weights.items() if not k.startswith(("adam.", "memory."))}
    batches = load_file(file)
    settings["longest"] = {"copy": 2 * settings["length"] + 2}.get(settings["task"], settings["length"])
    reach = lambda dtype, look: train(Twin(weights, settings, dtype), settings, batches, look)
    faults = []
    exact = reach(torch.float64, lambda twin: faults.extend(compare_gradients(call, options, folder / f"{name}.one", twin)))
    off = lambda losses: max(abs(a / b[0] - 1.0) for a, b in zip(losses, exact))
    worst = off([line["loss"] for line in log])
    for line, (_, norm, rate) in zip(log, exact):
        if worst <= LOSS_TOLERANCE and abs(line["grad_norm"] / norm - 1.0) > 1e-3:
            faults.append(f"step {line['step']}: gradient norm {line['grad_norm']}, twin {norm}")
        if abs(line["rate"] / rate - 1.0) > 1e-7:
            faults.append(f"step {line['step']}: rate {line['rate']}")
    if len(log) != STEPS:
        faults.append(f"{len(log)} steps")
    if not worst <= LOSS_TOLERANCE:
        # Where training itself is unstable, any float32 leaves the path: PyTorch's must, too.
        single = off([float(loss) for loss, _, _ in reach(torch.float32, lambda twin: None)])
        if not worst <= 3 * single:
            faults.append(f"worst loss off by {worst:.2e} relative, float32 in PyTorch by {single:.2e}")
    return worst, faults


def train(twin, settings, batches, look):
    """Loss, norm and rate of the first steps; `look` sees the first gradients."""
    m = {k: torch.zeros_like(x) for k, x in twin.p.items()}
    v = {k: torch.zeros_like(x) for k, x in twin.p.items()}
    decay = 0.1 if settings["task"] in ("text", "masked") else 0.01
    memory, path = None, []
    for s in range(1, STEPS + 1):
        tokens, targets = batches[f"tokens.{s}"].long(), batches[f"targets.{s}"].long()
        loss = twin.loss(tokens, targets, batches[f"weight.{s}"].to(twin.p["embed.weight"].dtype), memory)
        loss.backward()
        if s == 1:
            look(twin)
        rate = rate_at(s, 200, settings["rate"])
        path.append((float(loss.detach()), adam(twin.p, m, v, s, rate, decay), rate))
        if settings["memory"] > 0:
            memory = [h[:, -settings["memory"]:] for h in twin.inputs]
    return path


def compare_gradients(call, options, folder, twin):
    """After one step m = 0.1 clip g: the whole gradient, up to the clipping that is known."""
    call("train", *options, "--steps", "200", "--stop", "1", "-o", folder)
    saved = load_file(folder / "checkpoint.safetensors")
    norm = math.sqrt(sum(float((x.grad ** 2).sum()) for x in twin.p.values() if x.grad is not None))
    faults = []
    floor = 1e-2 * max(float(x.grad.abs().max()) for x in twin.p.values() if x.grad is not None)
    for name, x in twin.p.items():
        mine = saved["adam.m." + name].double() / (0.1 * min(1.0, 1.0 / norm))
        grad = x.grad if x.grad is not None else torch.zeros_like(x)
        error = float((mine - grad).abs().max()) / max(float(grad.abs().max()), floor)
        if not error <= GRADIENT_TOLERANCE:
            faults.append(f"gradient of {name}: off by {error:.2e} of the largest")
    return faults


def cases(full):
    small = {"layers": 2, "width": 32, "heads": 2, "batch": 8}
    for scheme in SCHEMES:
        yield {"task": "copy", "scheme": scheme, "seed": 1, "length": 6, **small}
    # gradients of fewer floats than one NORM_BLOCK (4096) of the norm; all others have more
    yield {"task": "parity", "scheme": "alibi", "seed": 9, "length": 5, "layers": 1, "width": 8,
           "heads": 2, "batch": 4}
    yield {"task": "masked", "scheme": "t5", "seed": 3, "length": 24, **small}
    yield {"task": "masked", "scheme": "deberta", "seed": 3, "length": 24, "terms": "c2p", **small}
    yield {"task": "text", "scheme": "transformer_xl", "seed": 2, "length": 16, "memory": 12, **small}
    yield {"task": "text", "scheme": "learned", "seed": 2, "length": 20, **small}
    # batches of one part, two and three, and a row less or more; a memory that is cut with them
    tiny = {"layers": 1, "width": 8, "heads": 2}
    for rows in range(1, 6):
        yield {"task": "text", "scheme": "t5", "seed": 4, "length": PART_TOKENS // 2, "batch": rows, **tiny}
    yield {"task": "text", "scheme": "transformer_xl", "seed": 4, "length": PART_TOKENS // 4, "memory": 20, "batch": 9, **tiny}
    if not full:
        return
    for scheme in [*SCHEMES, "distance"]:
        yield {"task": "masked", "scheme": scheme, "seed": 5, "length": 48, **small, "heads": 4}
    for scheme in [*SCHEMES, "distance", "fire"]:
        yield {"task": "text", "scheme": scheme, "seed": 6, "length": 40, **small, "layers": 3}
        yield {"task": "copy", "scheme": scheme, "seed": 7, "length": 16, "layers": 2, "width": 64,
               "heads": 4, "batch": 64}
    for task in ("copy_unique", "reverse", "recall", "addition", "parity", "mod5", "lookback"):
        yield {"task": task, "scheme": "rope", "seed": 8, "length": 8, **small}
    for clip in (0, 1, 4):
        yield {"task": "masked", "scheme": "shaw", "seed": 4, "length": 24, "clip": clip, **small}


def main():
    locus, folder, full = sys.argv[1], Path(sys.argv[2]), "full" in sys.argv[3:]
    only = [w for w in sys.argv[3:] if w != "full"]
    passed = failed = 0
    for case in cases(full):
        if only and not any(w in case.values() for w in only):
            continue
        worst, faults = compare(locus, folder, case)
        passed, failed = passed + (not faults), failed + bool(faults)
        print(f"{'not ok' if faults else 'ok'}: {' '.join(map(str, case.values()))}: {worst:.1e}")
        for fault in faults[:6]:
            print("    " + fault)
    print(f"twin: {passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
