# SPDX-License-Identifier: Apache-2.0
"""The calls of <locus/model.h> on build/liblocus.so, for comparisons."""

import ctypes
import os

import numpy

LIBRARY = ctypes.CDLL(os.path.join(os.path.dirname(os.environ["LOCUS"]), "liblocus.so"))
for name in ("locus_model_workspace",):
    getattr(LIBRARY, name).restype = ctypes.c_size_t
LIBRARY.locus_model_top.restype = ctypes.c_int64


class Error(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 512)]


class Info(ctypes.Structure):
    _fields_ = (
        [("size", ctypes.c_uint32), ("threads", ctypes.c_uint32)]
        + [(name, ctypes.c_char_p) for name in ("family", "positions", "scheme", "isa")]
        + [(name, ctypes.c_int64) for name in ("width", "layers", "heads", "head_dim", "feed_forward", "vocabulary")]
    )


class Batch(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("ids", ctypes.c_void_p),
        ("types", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("row_count", ctypes.c_int64),
        ("memory", ctypes.c_void_p),
        ("features", ctypes.c_void_p),
    ]


class Results(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("hidden", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
        ("embedding", ctypes.c_void_p),
    ]


def pointer(array):
    return array.ctypes.data if array is not None else None


class Model:
    """A model of the library."""

    def __init__(self, folder):
        self.handle = ctypes.c_void_p()
        self.error = Error()
        self.call("locus_model_open", ctypes.byref(self.handle), os.fspath(folder).encode(), None)
        info = Info(size=ctypes.sizeof(Info))
        LIBRARY.locus_model_describe(self.handle, ctypes.byref(info))
        self.info = info

    def __del__(self):
        if self.handle:
            LIBRARY.locus_model_free(self.handle)

    def call(self, name, *arguments):
        if getattr(LIBRARY, name)(*arguments, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.text.decode("utf-8", "replace"))

    def states(self, ids, types=None, memory=None):
        """hidden.0 to hidden.L of one sequence: ids, or rows of features [tokens, width]."""
        arrays = [numpy.empty((len(ids), self.info.width), "f4") for _ in range(self.info.layers + 1)]
        places = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        self._run(ids, types, Results(hidden=ctypes.addressof(places)), memory=memory)
        return arrays

    def fill(self, ids, rows=None, types=None):
        """Logits over the vocabulary, of all tokens or of `rows`."""
        logits = numpy.empty((len(ids if rows is None else rows), self.info.vocabulary), "f4")
        self._run(ids, types, Results(logits=pointer(logits)), rows)
        return logits

    def labels(self, ids, count):
        """Logits of a head that gives `count` numbers for every token."""
        logits = numpy.empty((len(ids), count), "f4")
        self._run(ids, None, Results(logits=pointer(logits)))
        return logits

    def _run(self, ids, types, results, rows=None, memory=None):
        features = numpy.ascontiguousarray(ids, "f4") if numpy.ndim(ids) == 2 else None
        arrays = [None if a is None else numpy.ascontiguousarray(a, "i4") for a in (ids, types, rows)]
        offsets = numpy.array([0, len(ids)], "i8")
        handle = ctypes.c_void_p()
        call = ("locus_model_pass_new", ctypes.byref(handle), self.handle, ctypes.c_void_p(pointer(offsets)))
        self.call(*call, ctypes.c_int64(1))
        try:
            bytes_needed = LIBRARY.locus_model_workspace(handle)
            room = ctypes.create_string_buffer(bytes_needed + 8)
            start = (ctypes.addressof(room) + 7) // 8 * 8
            batch = Batch(ctypes.sizeof(Batch), 0, *map(pointer, arrays), 0 if rows is None else len(rows))
            if memory is not None:
                kept = [numpy.ascontiguousarray(array, "f4") for array in memory]
                pointers = (ctypes.c_void_p * len(kept))(*(array.ctypes.data for array in kept))
                batch.memory = ctypes.addressof(pointers)
            if features is not None:
                batch.ids, batch.features = None, pointer(features)
            results.size = ctypes.sizeof(Results)
            call = ("locus_model_forward", handle, ctypes.byref(batch), ctypes.byref(results))
            self.call(*call, ctypes.c_void_p(start), ctypes.c_size_t(bytes_needed))
        finally:
            LIBRARY.locus_model_pass_free(handle)


def top(logits, count=5):
    """Places and probabilities of the greatest."""
    best, share = numpy.empty(count, "i8"), numpy.empty(count, "f8")
    sizes = (ctypes.c_int64(len(logits)), ctypes.c_int64(count))
    found = LIBRARY.locus_model_top(
        *(ctypes.c_void_p(pointer(logits)), *sizes, *(ctypes.c_void_p(pointer(a)) for a in (best, share)))
    )
    return best[:found], share[:found]
