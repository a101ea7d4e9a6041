# SPDX-License-Identifier: Apache-2.0
"""Checked outputs, medians of interleaved rounds, peaks of memory."""

from __future__ import annotations

import ctypes
import gc
import resource
import statistics
import time

import torch

TOLERANCE = 1e-4  # against double, of the largest element: a contestant that computes something else is not timed


def _forward(run):
    def call():
        with torch.no_grad():
            return run()

    return call


def _training(run, inputs):
    gradient = torch.randn_like(_forward(run)())  # in the memory order of the output

    def call():
        for x in inputs:
            x.grad = None
        run().backward(gradient)

    return call


def errors(contest) -> dict:
    want = contest.exact()
    largest = float(want.abs().max())
    return {
        name: float((_forward(run)().double() - want).abs().max()) / largest for name, run in contest.runs.items()
    }


def _calls(contest, training: bool) -> dict:
    if not training:
        return {name: _forward(run) for name, run in contest.runs.items()}
    return {
        name: _training(run, contest.inputs)
        for name, run in contest.runs.items()
        if name not in contest.forward_only
    }


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _seconds(call, enough: float) -> tuple:
    """Wall time and CPU time (of all threads and programs started): the means of as many calls as take `enough` seconds."""
    count, begin, cpu_begin = 0, time.perf_counter(), _processor_seconds()
    while True:
        call()
        count += 1
        spent = time.perf_counter() - begin
        if spent >= enough:
            return spent / count, (_processor_seconds() - cpu_begin) / count


def times(contest, training: bool, rounds: int, enough: float) -> dict:
    """contestant -> medians over the rounds; ratios are to Locus within a round, so that slow minutes cancel."""
    calls = _calls(contest, training)
    for call in calls.values():
        call()
    wall, cpu = ({name: [] for name in calls} for _ in range(2))
    for number in range(rounds):
        for name in list(calls)[:: -1 if number % 2 else 1]:  # nobody is always the first, nor always behind the same
            seconds, cpu_seconds = _seconds(calls[name], enough)
            wall[name].append(seconds)
            cpu[name].append(cpu_seconds)
    for x in contest.inputs:
        x.grad = None
    return {
        name: {
            "ms_median": 1e3 * statistics.median(wall[name]),
            "cpu_ms_median": 1e3 * statistics.median(cpu[name]),
            **_ratios("ratio", wall[name], wall["locus"]),
            **_ratios("cpu_ratio", cpu[name], cpu["locus"]),
        }
        for name in calls
    }


def _ratios(key: str, theirs: list, ours: list) -> dict:
    """The median of the rounds, and their range."""
    ratios = [a / b if b > 0 else 1.0 for a, b in zip(theirs, ours)]
    return {key: statistics.median(ratios), f"{key}_low": min(ratios), f"{key}_high": max(ratios)}


# What mallopt calls them.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4


def keep_memory() -> None:
    """From here on freed tensors stay in the process. By default large ones are unmapped and their pages cleared anew in the
    next call, which makes peers with n x n tensors slower."""
    libc = ctypes.CDLL("libc.so.6")
    libc.mallopt(_MMAP_MAX, 0)
    libc.mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def peaks(contest, training: bool) -> dict:
    """contestant -> bytes beyond what was there before the call; empty where the system does not tell."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(_MMAP_MAX, 1 << 16)
        libc.mallopt(_MMAP_THRESHOLD, 1 << 17)  # tensors come from and go back to the system
        gc.freeze()  # what the libraries hold need not be walked for every contestant
        return {name: _peak(libc, call) for name, call in _calls(contest, training).items()}
    except (OSError, AttributeError):
        return {}
    finally:
        gc.unfreeze()


def _peak(libc, call) -> int:
    call()
    gc.collect()
    libc.malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM counts from here
    before = _kilobytes("VmRSS")
    call()
    return max(_kilobytes("VmHWM") - before, 0) * 1024


def _kilobytes(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))
