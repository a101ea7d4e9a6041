# SPDX-License-Identifier: Apache-2.0
"""Locus in PyTorch: ``attend`` with gradients; ``patch`` and ``attn_implementation="locus"`` for Hugging Face models."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError("locus.torch needs PyTorch: pip install 'locus-attention[torch]'", name="torch") from None

from . import hub
from .adapter import original_code
from .functional import attend
from .model import Model
from .ring import ring_attend, ring_rows
from .patch import Entry, Report, is_patched, patch, patched, unpatch
from .sdpa import scaled_dot_product_attention

__all__ = [
    "Entry",
    "Model",
    "Report",
    "attend",
    "is_patched",
    "original_code",
    "patch",
    "patched",
    "ring_attend",
    "ring_rows",
    "scaled_dot_product_attention",
    "unpatch",
]

hub.register()
