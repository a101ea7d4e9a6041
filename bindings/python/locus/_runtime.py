# SPDX-License-Identifier: Apache-2.0
"""The machine: threads and instruction sets."""

from . import _native

_threads = 0  # 0: what OpenMP offers


def set_threads(threads):
    """Threads of the calls to come; 0 leaves it to OpenMP. Results have the same bits for any number.

    The child of a fork computes on one thread whatever this says, because the OpenMP runtime's
    workers do not survive a fork.
    """
    global _threads
    if isinstance(threads, bool) or not hasattr(type(threads), "__index__"):
        raise TypeError(f"threads: found {type(threads)}, expected an integer")
    threads = threads.__index__()
    if not 0 <= threads <= 1024:
        raise ValueError(f"threads: found {threads}, expected 0..1024")
    _threads = threads


def get_threads():
    """Threads of the calls to come."""
    return _threads or _native.cpu_info()["threads"]


def threads_for(asked):
    """The number to put in a configuration when the caller asked for `asked` (None: nothing)."""
    return _threads if asked is None else asked


def cpu_info():
    """Kernel tables of this build, those this CPU can run, the one in use, OpenMP and its threads."""
    return _native.cpu_info()
