# SPDX-License-Identifier: Apache-2.0
"""``--only training``: steps of ``locus lab train`` beside PyTorch loops of the same model on the same batches.

The model is that of the lab with scheme ``none``; PyTorch has it eager and with scaled_dot_product_attention, and its fused AdamW.
Turn by turn, so that a busy machine slows all alike."""

from __future__ import annotations

import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# name, steps of a round, options of the lab
SIZES = (
    ("2 x 64, copy", 60, {"task": "copy", "layers": 2, "width": 64, "heads": 4, "batch": 64, "length": 16}),
    ("4 x 128, text", 12, {"task": "text", "layers": 4, "width": 128, "heads": 4, "batch": 16, "length": 128}),
    ("4 x 256, text", 4, {"task": "text", "layers": 4, "width": 256, "heads": 4, "batch": 16, "length": 128}),
)


def program() -> str | None:
    """The program `locus`: $LOCUS, or the one on the path."""
    return os.environ.get("LOCUS") or shutil.which("locus")


def _lab(locus: str, *words) -> None:
    subprocess.run([locus, "lab", *map(str, words)], check=True, stderr=subprocess.PIPE)


def _model(torch, settings, vocabulary, fused):
    functional = torch.nn.functional
    E, H = settings["width"], settings["heads"]

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(E), torch.nn.LayerNorm(E)
            self.qkv, self.out = torch.nn.Linear(E, 3 * E, bias=False), torch.nn.Linear(E, E, bias=False)
            self.up, self.down = torch.nn.Linear(E, 4 * E, bias=False), torch.nn.Linear(4 * E, E, bias=False)

        def forward(self, h):
            B, T, _ = h.shape
            q, k, v = (x.view(B, T, H, E // H).transpose(1, 2) for x in self.qkv(self.norm1(h)).chunk(3, dim=-1))
            if fused:
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = q @ k.transpose(-1, -2) / math.sqrt(E // H)
                hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
                y = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
            h = h + self.out(y.transpose(1, 2).reshape(B, T, E))
            return h + self.down(functional.gelu(self.up(self.norm2(h))))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Parameter(0.02 * torch.randn(vocabulary, E))
            self.blocks = torch.nn.Sequential(*[Block() for _ in range(settings["layers"])])
            self.norm = torch.nn.LayerNorm(E)

        def forward(self, tokens, targets, weight):
            h = self.norm(self.blocks(functional.embedding(tokens, self.embed) * math.sqrt(E)))
            kept = weight.flatten() > 0  # only rows that count, as in the lab
            return functional.cross_entropy(h.flatten(0, 1)[kept] @ self.embed.T, targets.flatten()[kept])

    return Model()


def _torch_seconds(torch, model, optimizer, batches) -> float:
    begin = time.perf_counter()
    for tokens, targets, weight in batches:
        loss = model(tokens, targets, weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return time.perf_counter() - begin


def _measure(torch, locus, folder, name, steps, settings, options) -> dict:
    from safetensors.torch import load_file

    words = [f"--{key}={value}" for key, value in settings.items()]
    file = folder / "batches.safetensors"
    shared = [f"--{key}={settings[key]}" for key in ("task", "batch", "length")]
    _lab(locus, "batches", *shared, "--count", steps, "-o", file)
    data = load_file(file)
    batches = [tuple(data[f"{what}.{s}"].long() for what in ("tokens", "targets")) + (data[f"weight.{s}"],)
               for s in range(1, steps + 1)]
    vocabulary = 257 if settings["task"] == "text" else 36
    peers = {}
    for label, fused in (("torch eager", False), ("torch SDPA", True)):
        model = _model(torch, settings, vocabulary, fused)
        peers[label] = (model, torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True))
        _torch_seconds(torch, *peers[label], batches[:2])
    seconds = {label: [] for label in ("locus", *peers)}
    for turn in range(options.rounds):
        run = folder / f"{settings['width']}-{turn}"
        _lab(locus, "train", "--scheme", "none", *words, "--steps", 10000, "--stop", steps, "--threads",
             torch.get_num_threads(), "-o", run)
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        seconds["locus"].append(sum(line.get("seconds", 0.0) for line in lines) / steps)
        for label, (model, optimizer) in peers.items():
            seconds[label].append(_torch_seconds(torch, model, optimizer, batches) / steps)
    ratio = {label: statistics.median(a / b for a, b in zip(seconds[label], seconds["locus"])) for label in peers}
    return {"model": name, "steps_per_second": {k: 1.0 / statistics.median(v) for k, v in seconds.items()}, "ratio": ratio}


def main(torch, options) -> int:
    locus = program()
    if locus is None:
        print("--only training needs the program locus: on the path, or named by LOCUS", file=sys.stderr)
        return 4
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, steps, settings in SIZES:
            print(f"training, {name} ...", file=sys.stderr)
            results.append(_measure(torch, locus, pathlib.Path(scratch), name, steps, settings, options))
    print(f"Training, {torch.get_num_threads()} threads; steps per second, and Locus as a multiple of each peer\n")
    print("| model | locus | torch eager | torch SDPA |\n|---|---|---|---|")
    for r in results:
        cells = [f"{r['steps_per_second']['locus']:.1f}"]
        cells += [f"{r['steps_per_second'][label]:.1f} ({r['ratio'][label]:.2f} x)" for label in r["ratio"]]
        print(f"| {r['model']} | " + " | ".join(cells) + " |")
    pathlib.Path(options.output).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(options.output) / "training.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0
