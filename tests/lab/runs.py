# SPDX-License-Identifier: Apache-2.0
"""runs.py LOCUS FOLDER [full]: runs that are stopped, killed, damaged, shared: the same bits.

Prints "RESULT NAME DETAIL" lines. Python's own library alone."""

import json
import os
import platform
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

LOCUS, ROOT, FULL = sys.argv[1], Path(sys.argv[2]), "full" in sys.argv[3:]
SMALL = "--width 16 --heads 2 --batch 4 --length 5 --layers 2 --rate 2e-3".split()  # a profile may have a rate of its own
RUN = ["train", "--task", "copy", "--scheme", "t5", *SMALL, "--steps", "60", "--save-every", "7"]


def lab(*words, check=True, **more):
    done = subprocess.run([LOCUS, "lab", *map(str, words)], capture_output=True, text=True, **more)
    if check and done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    return done


def log_of(folder):
    """Every line without its seconds."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def same(a, b):
    for name in ("checkpoint.safetensors", "metrics.csv"):
        if (a / name).read_bytes() != (b / name).read_bytes():
            return f"{name} differs"
    return "the log differs" if log_of(a) != log_of(b) else ""


def refused(words, text, code):
    done = lab(*words, check=False)
    lines = done.stderr.strip().splitlines()
    if done.returncode != code or len(lines) != 1 or text not in lines[0]:
        return f"exit {done.returncode}, expected {code} and one line with {text!r}: {done.stderr.strip()[:300]}"
    return ""


# ---- cases: each returns what is wrong, or nothing ----

def case_contract(whole):
    """Names of files, keys of the log, the sum, the names of tensors."""
    data = (whole / "checkpoint.safetensors").read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    metadata = header.pop("__metadata__")
    zeroed = data.replace(metadata["sum"].encode(), b"00000000", 1)
    if f"{zlib.crc32(zeroed):08x}" != metadata["sum"] or metadata["step"] != "60":
        return f"sum or step: {metadata}"
    weights = {name for name in header if not name.startswith("adam.")}
    if {"embed.weight", "shared.bias", "blocks.1.attn.w_o", "blocks.0.ff.w_1", "norm.bias"} - weights:
        return f"names: {sorted(weights)}"
    if set(header) - weights != {f"adam.{m}.{name}" for m in "mv" for name in weights}:
        return "moments"
    lines = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    if [set(line) for line in steps] != [{"step", "loss", "rate", "grad_norm", "tokens", "seconds"}] * 60:
        return "keys of the log"
    if [line["step"] for line in steps] != list(range(1, 61)):
        return "steps of the log"
    settings = json.loads((whole / "run.json").read_text())
    missing = {"task", "scheme", "seed", "steps", "save-every", "commit", "cpu", "isa"} - set(settings)
    return f"run.json lacks {missing}" if missing else ""


def case_threads(whole):
    folder = ROOT / "threads"
    lab(*RUN, "--threads", 2, "-o", folder)
    return same(whole, folder)


def case_isas(whole):
    """Training has the same bits on every instruction set with fused multiply-add."""
    if platform.machine() != "x86_64":
        return ""
    folder = ROOT / "isas"
    lab(*RUN, "-o", folder, env={**os.environ, "LOCUS_ISA": "avx2"})
    return same(whole, folder)


def case_stop(whole):
    folder = ROOT / "stop"
    for stop in (1, 20, 21, 45):
        lab(*RUN, "--stop", stop, "-o", folder, "--resume")
    lab(*RUN, "-o", folder, "--resume")
    before = sorted((p.name, p.stat().st_mtime_ns) for p in folder.iterdir() if p.name != "log.jsonl")
    lab(*RUN, "-o", folder, "--resume")
    after = sorted((p.name, p.stat().st_mtime_ns) for p in folder.iterdir() if p.name != "log.jsonl")
    return same(whole, folder) or ("a finished run was touched" if before != after else "")


def case_interrupt(whole):
    folder = ROOT / "interrupt"
    for _ in range(200):
        process = subprocess.Popen([LOCUS, "lab", *RUN, "-o", folder, "--resume"], stderr=subprocess.PIPE, text=True)
        time.sleep(random.uniform(0.0, 0.15))
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
        if process.returncode == 130 and "--resume goes on" not in error:
            return f"no word on how to go on: {error}"
        if process.returncode not in (0, 130, -2):
            return f"exit {process.returncode}: {error}"
        if (folder / "metrics.csv").exists():
            break
    lab(*RUN, "-o", folder, "--resume")
    return same(whole, folder)


def case_kill(whole):
    """-9 at random moments, begun again each time."""
    kills, folder, rounds = 0, ROOT / "kill", 0
    wanted = 200 if FULL else 30
    while kills < wanted:
        process = subprocess.Popen([LOCUS, "lab", *RUN, "-o", folder, "--resume"], stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.0, 0.12))
        process.kill()
        kills += process.wait() == -9
        if (folder / "metrics.csv").exists():
            problem = same(whole, folder)
            if problem:
                return f"{problem} after {kills} kills"
            shutil.rmtree(folder)
            rounds += 1
    lab(*RUN, "-o", folder, "--resume")
    return same(whole, folder)


def case_damage(whole):
    """A checkpoint cut short or with a flipped bit: the one before it, then the same bits."""
    for kind in ("cut", "flip", "both"):
        folder = ROOT / f"damage-{kind}"
        lab(*RUN, "--stop", 33, "-o", folder)
        path = folder / "checkpoint.safetensors"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 16
        path.write_bytes(bytes(data if kind != "cut" else data[: len(data) // 3]))
        if kind == "both":
            (folder / "checkpoint.previous.safetensors").write_bytes(b"nothing")
        done = lab(*RUN, "-o", folder, "--resume")
        if "checkpoint.safetensors" not in done.stderr:
            return f"{kind}: no word about it: {done.stderr!r}"
        problem = same(whole, folder)
        if problem:
            return f"{kind}: {problem}"
    return ""


def case_every_bit(whole):
    """One flipped bit in each of many bytes of a checkpoint: never taken for whole."""
    folder = ROOT / "bits"
    lab(*RUN, "--stop", 1, "-o", folder)
    path = folder / "checkpoint.safetensors"
    data = path.read_bytes()
    (folder / "checkpoint.previous.safetensors").unlink(missing_ok=True)
    for at in random.sample(range(len(data)), 60 if FULL else 12):
        wrong = bytearray(data)
        wrong[at] ^= 1 << random.randrange(8)
        path.write_bytes(bytes(wrong))
        done = lab(*RUN, "--stop", 1, "-o", folder, "--resume")
        if "checkpoint.safetensors" not in done.stderr or path.read_bytes() != data:
            return f"a flipped bit in byte {at} was not noticed"
    return ""


def case_comparison(whole):
    """The same run alone and inside a comparison; a second call finds everything done."""
    folder = ROOT / "comparison"
    words = ["run", "--profile", "quick", "--tasks", "copy", "--schemes", "t5,rope", *SMALL,
             "--steps", "60", "--save-every", "7", "-o", folder]
    lab(*words)
    problem = same(whole, folder / "runs/copy/t5/seed1")
    if problem:
        return problem
    before = (folder / "runs/copy/rope/seed1/metrics.csv").stat().st_mtime_ns
    lab(*words)
    if before != (folder / "runs/copy/rope/seed1/metrics.csv").stat().st_mtime_ns:
        return "a finished run was made again"
    other = [*words[:-1], folder, "--seeds", "2"]
    return refused(other, "other settings than now", 2)


def case_comparison_killed(whole):
    folder = ROOT / "comparison-killed"
    words = [LOCUS, "lab", "run", "--profile", "quick", "--tasks", "copy", "--schemes", "t5,none", *SMALL,
             "--steps", "60", "--save-every", "7", "-o", folder]
    for signal_number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGTERM) * (5 if FULL else 1):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.02, 0.2))
        process.send_signal(signal_number)
        process.wait()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return same(whole, folder / "runs/copy/t5/seed1")


def case_no_settings(whole):
    """A checkpoint without run.json is nobody's: it is left alone. No steps: nothing is written again."""
    folder = ROOT / "no-settings"
    lab(*RUN, "--stop", 3, "-o", folder)
    before = (folder / "checkpoint.safetensors").read_bytes()
    (folder / "run.json").unlink()
    for more in ([], ["--resume"]):
        problem = refused([*RUN, "-o", folder, *more], "no run.json", 2)
        if problem or (folder / "checkpoint.safetensors").read_bytes() != before:
            return problem or "another checkpoint"
    start = [*RUN[:-2], "--steps", "0", "-o", ROOT / "no-steps", "--resume"]
    lab(*start)
    before = (ROOT / "no-steps/checkpoint.safetensors").stat().st_mtime_ns
    lab(*start)
    return "" if before == (ROOT / "no-steps/checkpoint.safetensors").stat().st_mtime_ns else "written again"


def case_refused(whole):
    short, binary = ROOT / "short.txt", ROOT / "binary.txt"
    short.write_text("ten bytes.")
    binary.write_bytes(bytes(range(256)) * 40)
    here = ["-o", ROOT / "refused"]
    text = ["train", "--task", "text", "--scheme", "rope", *here]
    return (refused([*RUN, "-o", whole], "holds a run", 2)
            or refused([*RUN[:-2], "--steps", "61", "-o", whole, "--resume"], 'steps: 60', 2)
            or refused([*text, "--text", short], "short.txt", 3)
            or refused([*text, "--text", binary], "binary.txt", 3)
            or refused([*RUN, "--batch", "0", *here], "batch", 2)
            or refused([*RUN, "--width", "15", *here], "width: found 15", 2)
            or refused(["train", "--task", "copy", "--scheme", "rope", "--width", "12", *here], "head width of 3", 2)
            or ("a refused run left a folder" if (ROOT / "refused").exists() else ""))


def case_undefined(whole):
    folder = ROOT / "undefined"
    lab("train", "--task", "copy", "--scheme", "learned", *SMALL, "--steps", "3", "-o", folder)
    lines = (folder / "metrics.csv").read_text().splitlines()
    beyond = [line for line in lines if line.startswith(("6,", "7,", "10,", "15,"))]
    inside = [line for line in lines if line.startswith("5,em")]
    if not beyond or any(not line.endswith(",undefined") for line in beyond) or not inside:
        return f"{lines}"
    return ""


def case_full_disk(whole):
    """A file size limit stands for a full disk: one line, and the run goes on later."""
    folder = ROOT / "full"
    lab(*RUN, "--stop", 5, "-o", folder)
    words = " ".join(map(str, [LOCUS, "lab", *RUN, "-o", folder, "--resume"]))
    done = subprocess.run(["sh", "-c", f"trap '' XFSZ; ulimit -f 4; exec {words}"], capture_output=True, text=True)
    if done.returncode not in (4,) or len(done.stderr.strip().splitlines()) > 3:
        return f"exit {done.returncode}: {done.stderr}"
    lab(*RUN, "-o", folder, "--resume")
    return same(whole, folder)


def main():
    whole = ROOT / "whole"
    random.seed(int(os.environ.get("LOCUS_TEST_SEED", "1")))
    lab(*RUN, "-o", whole)
    for name, case in sorted(globals().items()):
        if not name.startswith("case_"):
            continue
        try:
            problem = case(whole)
        except Exception as error:  # whatever it is, the case failed
            problem = f"{type(error).__name__}: {error}"
        print("FAILED" if problem else "PASSED", name[5:], " ".join(problem.split()), flush=True)


main()
