# SPDX-License-Identifier: Apache-2.0
"""Modules for models of one's own: ``Attention`` and ``EncoderLayer`` with any scheme, and ``Cache`` for decoding."""

from .attention import Attention, Cache
from .encoder import EncoderLayer
from .positions import ByDistance, Position

__all__ = ["Attention", "ByDistance", "Cache", "EncoderLayer", "Position"]
