# SPDX-License-Identifier: Apache-2.0
"""What `attend` and `layer` share: keywords become a configuration and a dict of tensors."""

import numpy as np

from ._runtime import threads_for
from ._schemes import DIFFERENTIABLE, TENSORS

_SETTINGS = ("window_left", "window_right", "query_offset", "softcap", "dropout_seed", "isa", "path")


def split(scheme, tensors, settings, more):
    """(config, tensors) for the extension module. `more`: tensors, settings and options by name."""
    config = {name: value for name, value in settings.items() if value is not None}
    config["scheme"] = scheme
    config["threads"] = threads_for(more.pop("threads", None))
    options = {}
    for name, value in more.items():
        if name in TENSORS:
            tensors[name] = value
        elif name in _SETTINGS:
            config[name] = value
        else:
            options[name] = value
    if options:
        config["options"] = options
    return config, tensors


def shape_of(array):
    """The shape of anything that a call takes; () where it has none, for the library to refuse."""
    shape = getattr(array, "shape", None)
    if shape is None and array is not None:
        try:
            shape = memoryview(array).shape
        except TypeError:
            shape = ()
    return tuple(shape) if shape is not None else ()


def half_of(array):
    """The type of a NumPy array of half precision (bfloat16 is that of ml_dtypes), else float32."""
    dtype = getattr(array, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.name in ("float16", "bfloat16") else np.float32


def empty(shape, dtype=np.float32):
    """An array for a result. Extents that do not make sense are refused by the library."""
    return np.empty(shape if all(extent >= 0 for extent in shape) else (0,), dtype)


def gradients_for(tensors, wrt):
    """Arrays for the gradients of the tensors named in `wrt`; None: of all that have one."""
    if wrt is None:
        wrt = [name for name, array in tensors.items() if array is not None and name in DIFFERENTIABLE]
    missing = [name for name in wrt if tensors.get(name) is None]
    if missing:
        raise ValueError(f"wrt: found {missing[0]!r}, expected a tensor of the call")
    return {name: empty(shape_of(tensors[name]), half_of(tensors[name])) for name in wrt}
