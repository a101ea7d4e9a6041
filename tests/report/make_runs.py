# SPDX-License-Identifier: Apache-2.0
"""Folders as `locus lab run` leaves them, with outcomes that are planted.

    make_runs.py OUTCOME DIR [--seeds N]

OUTCOME: reproduced, contradicted, open: what every published claim is to come out as; partial: runs
that have not finished, and tasks that are missing.
"""
import argparse
import json
import math
import os
import pathlib
import random
import struct
import zlib

SCHEMES = ["none", "sinusoidal", "learned", "shaw", "relative_key", "relative_key_query",
           "transformer_xl", "t5", "tupe", "deberta", "alibi", "kerple", "rope", "xpos"]
TABLES = {"learned", "relative_key", "relative_key_query", "tupe"}  # end with the trained length
VARIANTS = {
    "copy": ["sinusoidal+positions-subset"],
    "text": ["transformer_xl+memory128"],
    "masked": ["shaw+clip0", "shaw+clip1", "shaw+clip2", "shaw+clip4", "shaw+clip64",
               "deberta+terms-c2p", "deberta+terms-p2c", "deberta+terms-none"],
}
SEQUENCES = {"copy": 16, "copy_unique": 16, "reverse": 16, "recall": 16, "addition": 10}
CONTROLS = {"parity": 20, "mod5": 20}
CONTEXT = 128
FACTORS = (1, 1.125, 1.25, 1.5, 2, 3)

# How exact match falls beyond L: the factor of L at which it is a half.
REACH = {"alibi": 2.2, "kerple": 2.0, "t5": 1.6, "none": 1.5, "fire": 1.8, "transformer_xl": 1.45,
         "shaw": 1.35, "deberta": 1.3, "xpos": 1.2, "rope": 1.12, "sinusoidal": 1.08}
# bpc at 1x, and its growth per doubling of the context.
TEXT = {"none": (2.62, .03), "sinusoidal": (2.60, .10), "learned": (2.63, 0), "shaw": (2.49, .012),
        "relative_key": (2.51, 0), "relative_key_query": (2.50, 0), "transformer_xl": (2.46, .008),
        "t5": (2.43, .004), "tupe": (2.55, 0), "deberta": (2.47, .011), "alibi": (2.42, -.004),
        "kerple": (2.44, -.012), "rope": (2.47, .04), "xpos": (2.465, .02)}
MASKED = {"none": 2.9, "sinusoidal": 1.95, "learned": 2.0, "shaw": 1.72, "relative_key": 1.74,
          "relative_key_query": 1.73, "transformer_xl": 1.75, "t5": 1.78, "tupe": 1.85,
          "deberta": 1.68, "alibi": 1.9, "kerple": 1.88, "rope": 1.76, "xpos": 1.77,
          "shaw+clip0": 2.85, "shaw+clip1": 1.80, "shaw+clip2": 1.725, "shaw+clip4": 1.722,
          "shaw+clip64": 1.721, "deberta+terms-c2p": 1.74, "deberta+terms-p2c": 1.76,
          "deberta+terms-none": 2.4}


def base(scheme):
    return scheme.split("+")[0]


class Outcome:
    """The planted truth of one run, and its noise."""

    def __init__(self, name, seed, run):
        self.sign = {"contradicted": -1}.get(name, 1)
        self.name = name
        self.random = random.Random(f"{name} {seed} {run}")
        self.seed = seed

    def shake(self, value, size):
        return value + size * self.random.gauss(0, 1)


def exact_match(outcome, task, scheme, factor):
    if factor > 1 and base(scheme) in TABLES:
        return None
    reach = REACH.get(base(scheme), 1.3)
    if scheme.endswith("+positions-subset"):
        reach = 2.6
    if outcome.name == "contradicted":
        reach = 2.7 - reach if "+" not in scheme else 0.6
        if scheme == "sinusoidal":
            reach = 2.3
    if outcome.name == "open":
        reach = 1.5 if outcome.seed % 2 else {"alibi": 1.2, "t5": 1.2, "none": 1.2}.get(scheme, 1.5)
        if "+" in scheme:
            reach = 1.4 if outcome.seed % 2 else 1.6
    if factor == 1:
        return 0.62 if task == "reverse" and scheme == "none" else 0.985
    return min(1, max(0, outcome.shake(1 / (1 + math.exp(14 * (factor - reach))), 0.004)))


def sequence_rows(outcome, task, scheme):
    length, rows = SEQUENCES[task], []
    for factor in FACTORS:
        n = round(length * factor)
        em = exact_match(outcome, task, scheme, factor)
        if em is None:
            rows += [(n, m, "undefined") for m in ("em", "token_accuracy", "first_wrong")]
            continue
        rows += [(n, "em", em), (n, "token_accuracy", em ** (1 / 12) if em > 0 else 0.3),
                 (n, "first_wrong", n * em ** 0.5)]
    rows.append(("", "steps_to_99", round(900 + 400 * (2.4 - REACH.get(base(scheme), 1.3)))))
    return rows + [("", "chance", 0.03125)]


def control_rows(outcome, task, scheme):
    chance = {"parity": 0.5, "mod5": 0.2}[task]
    length = CONTROLS[task]
    rows = [(length, "accuracy", 0.71 if task == "parity" else 0.4)]
    far = outcome.shake(chance, 0.01)
    if outcome.name == "contradicted" and scheme == "none":
        far = 0.93
    if outcome.name == "open" and scheme == "none" and outcome.seed == 1:
        far = 0.7
    if base(scheme) in TABLES:
        far = "undefined"
    return rows + [(2 * length, "accuracy", far), ("", "chance", chance)]


def lookback_rows(outcome, scheme):
    rows = []
    reach = {"alibi": 3, "kerple": 3.5, "none": 2, "shaw": 16, "t5": 14, "deberta": 30}
    for n in (64, 128, 256):
        for k in (1, 2, 4, 8, 16, 32):
            far = n > 64 and base(scheme) in TABLES
            value = 1 / (1 + (k / reach.get(base(scheme), 60)) ** 3)
            rows.append((n, f"accuracy_k{k}", "undefined" if far else
                         max(0.03, outcome.shake(value * (64 / n) ** 0.3, 0.005))))
    return rows + [("", "chance", 1 / 32)]


def text_rows(outcome, scheme):
    near, growth = TEXT[base(scheme)]
    if "+memory" in scheme:
        near -= 0.06 * outcome.sign
    if outcome.name == "contradicted":
        near = {"alibi": 2.62, "kerple": 2.75, "t5": 2.63, "none": 2.45, "sinusoidal": 2.46}.get(scheme, near)
        growth = {"alibi": .10, "kerple": .12, "sinusoidal": -.01, "xpos": .06}.get(scheme, growth)
    if outcome.name == "open":
        flip = 1 if outcome.seed % 2 else -1
        near = {"alibi": 2.5, "t5": 2.5, "none": 2.5, "sinusoidal": 2.5}.get(scheme, near)
        near += flip * {"alibi": .02, "none": -.02, "xpos": .02}.get(scheme, 0)
        growth = {"alibi": flip * .02, "kerple": -flip * .02, "sinusoidal": -flip * .02,
                  "xpos": flip * .03, "rope": .0}.get(scheme, growth)
        if "+memory" in scheme:
            near = TEXT["transformer_xl"][0] + flip * 0.05
    near = outcome.shake(near, 0.001)
    rows = []
    for k in (1, 2, 4, 8):
        far = k > 1 and base(scheme) in TABLES
        value = near * (1 + growth * math.log2(k) ** 1.3) if k > 1 else near
        rows.append((CONTEXT * k, "bpc", "undefined" if far else value))
        rows.append((CONTEXT * k, "bpc_windowed", near - 0.02))
    for i in range(0, 8 * CONTEXT, 16):
        if i >= CONTEXT and base(scheme) in TABLES:
            rows.append((8 * CONTEXT, f"bpc_index_{i}", "undefined"))
            continue
        early = 1.6 * math.exp(-i / 14)
        late = growth * near * math.log2(max(1, i / CONTEXT)) ** 1.3
        rows.append((8 * CONTEXT, f"bpc_index_{i}", outcome.shake(near + early + late, 0.01)))
    return rows


def masked_rows(outcome, scheme):
    loss = MASKED[scheme]
    if outcome.name == "contradicted":
        loss = {"none": 1.5, "shaw+clip0": 1.6, "tupe": 2.1, "deberta+terms-none": 1.5,
                "deberta": 2.5}.get(scheme, loss)
    if outcome.name == "open":
        flip = 1 if outcome.seed % 2 else -1
        loss = {"none": 1.97 + flip * .05, "shaw+clip0": 1.75 + flip * .05,
                "deberta": 1.74 + flip * .1, "tupe": 1.99}.get(scheme, loss)
    loss = outcome.shake(loss, 0.0005)
    rows = []
    for k in (1, 2):
        far = k > 1 and base(scheme) in TABLES
        value = loss * (1 + 0.05 * (k - 1))
        rows.append((CONTEXT * k, "loss", "undefined" if far else value))
        rows.append((CONTEXT * k, "perplexity", "undefined" if far else math.exp(value)))
    return rows, loss


def position_parameters(scheme):
    return {"learned": 2176, "shaw": 2112, "t5": 128, "tupe": 10368, "deberta": 4096, "kerple": 16,
            "transformer_xl": 8448, "relative_key": 2144, "relative_key_query": 2144
            }.get(base(scheme), 0)


def write_checkpoint(folder, scheme, heads=4, layers=2, width=64):
    """Tensors that a report draws, small and made up."""
    rng = random.Random(scheme)
    tensors = {"embed.weight": (257, width)}
    for layer in range(layers):
        block = f"blocks.{layer}."
        for name in ("w_q", "w_k", "w_v", "w_o"):
            tensors[f"{block}attn.{name}"] = (width, width)
        for norm in ("norm1", "norm2"):
            tensors[f"{block}{norm}.weight"] = tensors[f"{block}{norm}.bias"] = (width,)
        own = {"shaw": {"rel_k": (33, 16), "rel_v": (33, 16)}, "kerple": {"a": (4,), "p": (4,)},
               "transformer_xl": {"w_r": (width, width), "u": (4, 16), "w": (4, 16)},
               "relative_key": {"rel_k": (67, 16)}, "relative_key_query": {"rel_k": (67, 16)}}
        for name, shape in own.get(base(scheme), {}).items():
            tensors[f"{block}attn.{name}"] = shape
    shared = {"t5": {"bias": (32, heads)}, "deberta": {"rel": (64, width)},
              "learned": {"pos": (34, width)},
              "tupe": {"pos": (34, width), "w_pq": (width, width), "w_pk": (width, width)}}
    for name, shape in shared.get(base(scheme), {}).items():
        tensors[f"shared.{name}"] = shape
    header, data = {"__metadata__": {"step": "3000", "sum": "00000000"}}, b""
    for name in sorted(tensors):
        count = math.prod(tensors[name])
        values = [abs(rng.gauss(0.5, 0.3)) + 0.01 if name.endswith((".a", ".p"))
                  else 1.0 if "norm" in name and name.endswith("weight") else rng.gauss(0, 0.2)
                  for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": list(tensors[name]),
                        "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + data
    total = f'"sum": "{zlib.crc32(whole):08x}"'.encode()
    (folder / "checkpoint.safetensors").write_bytes(whole.replace(b'"sum": "00000000"', total, 1))


def write_log(folder, outcome, task, scheme, steps, final, stop=None):
    with open(folder / "log.jsonl", "w", encoding="ascii") as log:
        for step in range(1, (stop or steps) + 1):
            falls = math.exp(-6 * step / steps * (0.6 + 0.4 * REACH.get(base(scheme), 1.3)))
            loss = final + (3.4 - final) * falls + 0.02 * outcome.random.random()
            log.write(json.dumps({"step": step, "loss": round(loss, 6), "rate": 1e-3,
                                  "grad_norm": 1.0, "tokens": 2176,
                                  "seconds": round(0.011 * step, 4)}) + "\n")
            if step % 10 == 0 or step == steps:
                log.write(json.dumps({"step": step, "validation": round(loss, 6)}) + "\n")


def write_run(root, outcome, task, scheme, seed, finished=True):
    folder = root / "runs" / task / scheme / f"seed{seed}"
    folder.mkdir(parents=True)
    steps, final = 120, 0.05
    length = SEQUENCES.get(task) or CONTROLS.get(task) or (64 if task == "lookback" else CONTEXT)
    if task in SEQUENCES:
        rows = sequence_rows(outcome, task, scheme)
    elif task in CONTROLS:
        rows = control_rows(outcome, task, scheme)
    elif task == "lookback":
        rows = lookback_rows(outcome, scheme)
    elif task == "text":
        rows, final = text_rows(outcome, scheme), TEXT[base(scheme)][0] * math.log(2)
    else:
        rows, final = masked_rows(outcome, scheme)
    rows += [("", "parameters", 100000 + position_parameters(scheme)),
             ("", "position_parameters", position_parameters(scheme))]
    (folder / "run.json").write_text(json.dumps({
        "task": task, "scheme": base(scheme), "seed": seed, "length": length, "steps": steps,
        "layers": 2, "width": 64, "heads": 4, "batch": 64, "rate": 0.002,
        "commit": "0123abc", "cpu": "a made-up CPU", "isa": "avx2"}, indent=1))
    write_log(folder, outcome, task, scheme, steps, final, None if finished else 40)
    if not finished:
        return
    if seed == 1 and task in ("text", "masked", "copy"):
        write_checkpoint(folder, scheme)
    with open(folder / "metrics.csv", "w", encoding="ascii") as table:
        table.write("length,metric,value\n")
        for n, metric, value in rows:
            table.write(f"{n},{metric},{value if isinstance(value, str) else repr(value)}\n")
    slow = {"deberta": 1.5, "transformer_xl": 1.45, "shaw": 1.3}.get(base(scheme), 1.0)
    (folder / "cost.csv").write_text(
        f"metric,value\nms_per_step,{11.3 * slow}\nseconds,{4.5 * slow}\n"
        f"read_8x_ms,{38.0 * slow ** 2}\npeak_bytes,{int(2e7 * slow)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outcome", choices=["reproduced", "contradicted", "open", "partial"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    tasks = [*SEQUENCES, *CONTROLS, "lookback", "text", "masked"]
    if arguments.outcome == "partial":
        tasks = ["copy", "text"]
    os.makedirs(arguments.folder)
    (arguments.folder / "lab.json").write_text(json.dumps({
        "profile": "standard", "tasks": tasks, "schemes": SCHEMES, "seeds": arguments.seeds,
        "command": "locus lab run --profile standard -o DIR"}))
    for task in tasks:
        for scheme in SCHEMES + VARIANTS.get(task, []):
            for seed in range(1, arguments.seeds + 1):
                finished = arguments.outcome != "partial" or (scheme != "rope" and seed == 1)
                outcome = Outcome(arguments.outcome, seed, f"{task} {scheme}")
                write_run(arguments.folder, outcome, task, scheme, seed, finished)


if __name__ == "__main__":
    main()
