# SPDX-License-Identifier: Apache-2.0
"""lab.py LOCUS FOLDER MPIRUN...: the lab over ranks. The same bits as one process, also killed and resumed with another
number of ranks; one line where something is wrong, and nobody hangs.

Prints "RESULT NAME DETAIL" lines. Python's own library alone."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LOCUS, ROOT, MPIRUN = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
# Parts of 16 rows: three of them, so that no number of ranks divides the tree evenly.
SMALL = "--width 16 --heads 2 --batch 40 --length 16 --layers 2 --rate 2e-3".split()
TRAIN = ["train", "--task", "copy", "--scheme", "t5", *SMALL, "--steps", "24", "--save-every", "5"]
MEMORY = ["train", "--task", "text", "--scheme", "transformer_xl", "--memory", "24", "--length", "128", "--batch", "11",
          "--width", "8", "--heads", "2", "--layers", "2", "--steps", "7", "--save-every", "2"]
RUN = ["run", "--profile", "quick", "--tasks", "copy", "--schemes", "t5,rope,none", *SMALL, "--steps", "24", "--save-every", "5"]
SECONDS = 240  # a job that takes longer hangs


def command(ranks, *words):
    """Without ranks: one process that knows no mpirun."""
    return [*(MPIRUN + ["-n", str(ranks)] if ranks else []), LOCUS, "lab", *map(str, words)]


def lab(ranks, *words):
    done = subprocess.run(command(ranks, *words), capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    return done


def log_of(folder):
    """Every line without its seconds."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def same(a, b):
    for name in ("checkpoint.safetensors", "metrics.csv"):
        if (a / name).read_bytes() != (b / name).read_bytes():
            return f"{b.name}: {name} differs"
    return f"{b.name}: the log differs" if log_of(a) != log_of(b) else ""


def ours(text):
    """What the program says, among the words of mpirun."""
    return [line for line in text.splitlines() if line.startswith("locus")]


def refused(call, text, folder=None):
    done = subprocess.run(call, capture_output=True, text=True, timeout=SECONDS)
    lines = ours(done.stderr)
    if done.returncode == 0 or len(lines) != 1 or text not in lines[0]:
        return f"exit {done.returncode}, expected one line with {text!r}: {done.stderr.strip()[:400]}"
    return f"{folder} was made" if folder is not None and folder.exists() else ""


def ranks_of(job):
    """Processes of a job: children of mpirun that run our program."""
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(job.pid)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if line.split()[1].startswith("locus")]


def alive(process):
    """Also not one that has ended and waits to be counted."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# ---- cases: each returns what is wrong, or nothing ----

def case_ranks():
    """1 to 4 ranks, and threads, give the log and the checkpoint of one process."""
    for name, words in (("copy", TRAIN), ("memory", MEMORY)):
        whole = ROOT / name
        lab(0, *words, "-o", whole)
        for ranks in (1, 2, 3, 4):
            folder = ROOT / f"{name}-{ranks}"
            lab(ranks, *words, *(["--threads", 2] if ranks == 2 else []), "-o", folder)
            problem = same(whole, folder)
            if problem:
                return problem
    return ""


def case_long_messages():
    """Gradients of more than a PIECE_BYTES of cli/mpi/crew.c (1 MiB), all others have less."""
    words = [*TRAIN, "--width", "128", "--steps", "2", "--batch", "32"]
    lab(0, *words, "-o", ROOT / "wide")
    lab(2, *words, "-o", ROOT / "wide-2")
    if (ROOT / "wide/checkpoint.safetensors").stat().st_size < 3 * (1 << 20):
        return "a message is no longer than 1 MiB"
    return same(ROOT / "wide", ROOT / "wide-2")


def case_resume():
    """Stopped and gone on with another number of ranks each time."""
    for name, words in (("copy", TRAIN), ("memory", MEMORY)):
        folder = ROOT / f"resume-{name}"
        for ranks, stop in ((2, 1), (0, 3), (4, 4), (1, 6)):
            lab(ranks, *words, "--stop", stop, "--resume", "-o", folder)
        lab(3, *words, "--resume", "-o", folder)
        problem = same(ROOT / name, folder)
        if problem:
            return problem
    return ""


def begin(folder, ranks, words):
    """A job that has made some steps more than the folder had, and its ranks; none: it is through already."""
    log = folder / "log.jsonl"
    had = log.stat().st_size if log.exists() else 0
    job = subprocess.Popen(command(ranks, *words, "--resume", "-o", folder), stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + SECONDS
    while job.poll() is None and time.monotonic() < limit:
        if log.exists() and log.stat().st_size > had + 800:
            processes = ranks_of(job)
            if len(processes) == ranks:
                return job, processes
        time.sleep(0.005)
    return job, []


def end_by_force(folder, ranks, words, victim):
    """-9 to one process of a job in the middle of its steps; what is wrong then, or nothing. On a busy machine the job may
    be through before it is hit: then it begins anew, from nothing."""
    for _ in range(20):
        job, processes = begin(folder, ranks, words)
        target = processes and {"mpirun": job.pid, "rank": processes[-1], "rank 0": processes[0]}[victim]
        if target and alive(target):
            os.kill(target, signal.SIGKILL)
        killed = time.monotonic()
        said = job.communicate(timeout=SECONDS)[1]
        while any(alive(process) for process in processes):
            if time.monotonic() - killed > 60:
                return f"{victim} was killed, but its ranks go on"
            time.sleep(0.05)
        if not (folder / "metrics.csv").exists():
            return f"{victim} was killed: {said.strip()[:300]}" if ours(said) or not target else ""
        shutil.rmtree(folder)
    return f"{ranks} ranks: through before they could be killed, 20 times"


def case_killed():
    """-9 to a rank, or to mpirun: all end within seconds; another number of ranks goes on to the same bits."""
    folder, words = ROOT / "killed", [*TRAIN[:-4], "--steps", "600", "--save-every", "5"]
    lab(0, *words, "-o", ROOT / "long")
    for ranks, victim in ((3, "rank"), (2, "mpirun"), (4, "rank 0")):
        problem = end_by_force(folder, ranks, words, victim)
        if problem:
            return problem
    lab(2, *words, "--resume", "-o", folder)
    return same(ROOT / "long", folder)


def case_comparison():
    """Runs over ranks are the runs of one process; so are the files around them. Progress is for terminals."""
    alone, spread = ROOT / "alone", ROOT / "spread"
    lab(0, *RUN, "-o", alone)
    said = lab(2, *RUN, "-o", spread)
    if ": done; " in said.stderr or said.stdout.count("report: ") != 1:
        return f"progress: {said.stderr.strip()[:300]} {said.stdout.strip()[:300]}"
    for scheme in ("t5", "rope", "none"):
        problem = same(alone / f"runs/copy/{scheme}/seed1", spread / f"runs/copy/{scheme}/seed1")
        if problem:
            return f"{scheme}: {problem}"
    names = lambda folder: sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))  # noqa: E731
    if names(alone) != names(spread):
        return f"other files: {set(names(alone)) ^ set(names(spread))}"
    if (alone / "lab.json").read_bytes() != (spread / "lab.json").read_bytes():
        return "lab.json differs"
    before = (spread / "runs/copy/rope/seed1/metrics.csv").stat().st_mtime_ns
    lab(3, *RUN, "-o", spread)
    return "" if before == (spread / "runs/copy/rope/seed1/metrics.csv").stat().st_mtime_ns else "made again"


def case_comparison_killed():
    folder = ROOT / "spread-killed"
    for ranks, number in ((2, signal.SIGKILL), (3, signal.SIGTERM)):
        job = subprocess.Popen(command(ranks, *RUN, "-o", folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0.5, 1.5))
        processes = ranks_of(job)
        job.send_signal(number)
        job.wait(timeout=SECONDS)
        limit = time.monotonic() + 60
        while any(alive(process) for process in processes):
            if time.monotonic() > limit:
                return f"mpirun got signal {number}, but its ranks go on"
            time.sleep(0.05)
    lab(2, *RUN, "-o", folder)
    return same(ROOT / "alone/runs/copy/t5/seed1", folder / "runs/copy/t5/seed1")


def case_refused():
    """On all ranks or on one of them: one line, no folder, no hang."""
    folder, bare = ROOT / "refused", ROOT / "locus"
    shutil.copy(LOCUS, bare)
    good, other = [LOCUS, "lab", *TRAIN, "-o", str(folder)], [LOCUS, "lab", *TRAIN, "--seed", "2", "-o", str(folder)]
    wrong = [LOCUS, "lab", *TRAIN, "--width", "15", "-o", str(folder)]
    both = lambda first, second: [*MPIRUN, "-n", "1", *first, ":", "-n", "1", *second]  # noqa: E731
    text = ["train", "--task", "text", "--scheme", "rope", "--text", ROOT / "missing.txt", "-o", folder]
    isa = both(good, ["env", "LOCUS_ISA=generic", *good])
    return (refused(command(2, *TRAIN, "--width", "15", "-o", folder), "width: found 15", folder)
            or refused(command(3, *text), "missing.txt", folder)
            or refused(command(2, *RUN, "--jobs", "2", "-o", folder), "jobs: found 2 with 2 ranks", folder)
            or refused(both(good, other), "other arguments", folder)
            or refused(both(good, wrong), "other arguments", folder)
            or refused(isa, "rank 1: settings: found isa: generic", folder)
            or refused(command(2, *TRAIN, "-o", ROOT / "copy"), "holds a run")
            or refused([*MPIRUN, "-n", "2", str(bare), "lab", *TRAIN, "-o", str(folder)], "no program", folder)
            or refused([*MPIRUN, "-n", "2", str(bare), "lab", *RUN, "-o", str(folder)], "no program", folder))


def case_unknown_launcher():
    """Two processes that know nothing of each other: the second is refused, the first goes on."""
    for words in ([*TRAIN[:-4], "--steps", "1000000"], [*RUN[:-4], "--steps", "1000000", "--jobs", "1"]):
        folder = ROOT / f"twice-{words[0]}"
        lock = folder / ("log.jsonl" if words[0] == "train" else "lab.json")
        first = subprocess.Popen(command(0, *words, "-o", folder), stderr=subprocess.DEVNULL)
        while not lock.exists():
            time.sleep(0.01)
        resume = ["--resume"] if words[0] == "train" else []
        problem = refused(command(0, *words, *resume, "-o", folder), "another process is at work here")
        still = first.poll() is None
        first.send_signal(signal.SIGTERM)
        first.wait(timeout=SECONDS)
        if problem or not still:
            return problem or "the first ended"
    return ""


def main():
    random.seed(int(os.environ.get("LOCUS_TEST_SEED", "1")))
    for name in ("ranks", "long_messages", "resume", "killed", "comparison", "comparison_killed", "refused", "unknown_launcher"):
        try:
            problem = globals()[f"case_{name}"]()
        except Exception as error:  # whatever it is, the case failed
            problem = f"{type(error).__name__}: {error}"
        print("FAILED" if problem else "PASSED", name, " ".join(problem.split()), flush=True)


main()
