# SPDX-License-Identifier: Apache-2.0
"""Position-aware attention on the CPU: every classic scheme, exact, fused, forward and backward.

>>> import numpy as np, locus
>>> q = k = v = np.ones((1, 2, 4, 8), np.float32)      # batch, heads, tokens, width
>>> locus.attend(q, k, v, scheme="alibi", causal=True).shape
(1, 2, 4, 8)

`locus.schemes()` lists what there is; docs/python.md has the walk-through.
"""

from . import __config__, _abi, _native, case
from ._attend import attend, attend_backward
from ._errors import LocusError, LocusIOError, LocusMemoryError, LocusTypeError, LocusValueError, Status
from ._explain import Explanation, explain
from ._layer import layer, layer_backward
from ._model import Model
from ._plot import Figure, plot
from ._runtime import cpu_info, get_threads, set_threads
from ._schemes import Option, Scheme, Tensor, schemes
from ._tokenizer import Encoding, Tokenizer

_abi.check(_native.abi(), _abi.installed_version())

__version__ = _native.version()

__all__ = [
    "Encoding",
    "Explanation",
    "Figure",
    "LocusError",
    "LocusIOError",
    "LocusMemoryError",
    "LocusTypeError",
    "LocusValueError",
    "Model",
    "Option",
    "Scheme",
    "Status",
    "Tensor",
    "Tokenizer",
    "attend",
    "attend_backward",
    "case",
    "cpu_info",
    "explain",
    "get_threads",
    "layer",
    "layer_backward",
    "plot",
    "schemes",
    "set_threads",
]
