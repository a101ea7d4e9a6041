# SPDX-License-Identifier: Apache-2.0
"""What a Locus status becomes in Python."""

from enum import IntEnum


class Status(IntEnum):
    """The statuses of <locus/status.h>."""

    OK = 0
    ARGUMENT = 1
    SCHEME = 2
    OPTION = 3
    TENSOR = 4
    RANGE = 5
    OVERLAP = 6
    WORKSPACE = 7
    MEMORY = 8
    FORMAT = 9
    IO = 10
    ISA = 11
    UNSUPPORTED = 12


class LocusError(Exception):
    """The library refused a call. The text is the library's own line; `status` says which kind."""

    status: Status

    def __init__(self, message, status=Status.ARGUMENT):
        super().__init__(message)
        self.status = Status(status)

    def __reduce__(self):
        return type(self), (str(self), self.status)


class LocusValueError(LocusError, ValueError):
    """A scheme, option, tensor, position or file that breaks a rule."""


class LocusTypeError(LocusError, TypeError):
    """An argument that is not of the kind expected: no tensor, a tensor of another type, a name nobody knows."""


class LocusMemoryError(LocusError, MemoryError):
    """No memory, or a size that does not fit."""


class LocusIOError(LocusError, OSError):
    """The system refused to open, read, write or sync a file."""

    def __str__(self):
        return str(self.args[0])


_KINDS = {Status.MEMORY: LocusMemoryError, Status.IO: LocusIOError}


def error_of(status, message):
    """The exception for a status; called by the extension module."""
    return _KINDS.get(Status(status), LocusValueError)(message, status)
