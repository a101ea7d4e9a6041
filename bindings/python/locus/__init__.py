# SPDX-License-Identifier: Apache-2.0
"""Position-aware attention."""
from . import _native
from ._errors import LocusError, LocusIOError, LocusMemoryError, LocusValueError, Status
