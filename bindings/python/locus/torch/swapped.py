# SPDX-License-Identifier: Apache-2.0
"""Where pickle finds the classes of patched modules; they are made when first asked for."""

from .patch import _BY_NAME, swapped_class


def __getattr__(name: str):
    if name in _BY_NAME:
        return swapped_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
