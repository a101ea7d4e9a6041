# SPDX-License-Identifier: Apache-2.0
"""What this installation is: ``print(locus.__config__.show())``."""

from . import _native
from ._runtime import get_threads


def show():
    """Version, instruction sets and threads, a line each."""
    info = _native.cpu_info()
    return "\n".join(
        [
            f"locus {_native.version()}",
            f"instruction set: {info['isa']} (this CPU: {', '.join(info['available'])}; built: {', '.join(info['built'])})",
            f"threads: {get_threads()} ({'OpenMP' if info['openmp'] else 'built without OpenMP'})",
        ]
    )
