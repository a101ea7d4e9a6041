# SPDX-License-Identifier: Apache-2.0
"""Checked outputs, medians of interleaved rounds, peaks of memory."""

from __future__ import annotations

import ctypes
import gc
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
    def call():
        for x in inputs:
            x.grad = None
        run().sum().backward()

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


def _seconds(call, enough: float) -> float:
    """The mean of as many calls as take `enough` seconds."""
    count, begin = 0, time.perf_counter()
    while True:
        call()
        count += 1
        spent = time.perf_counter() - begin
        if spent >= enough:
            return spent / count


def times(contest, training: bool, rounds: int, enough: float) -> dict:
    """contestant -> (median seconds, median over the rounds of its time over that of Locus)."""
    calls = _calls(contest, training)
    for call in calls.values():
        call()
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(_seconds(call, enough))
    return {
        name: (
            statistics.median(seconds),
            statistics.median(mine / ours for mine, ours in zip(seconds, taken["locus"])),
        )
        for name, seconds in taken.items()
    }


def peaks(contest, training: bool) -> dict:
    """contestant -> bytes beyond what was there before the call; empty where the system does not tell."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-3, 1 << 17)  # M_MMAP_THRESHOLD: tensors come from and go back to the system
        return {name: _peak(libc, call) for name, call in _calls(contest, training).items()}
    except (OSError, AttributeError):
        return {}


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
