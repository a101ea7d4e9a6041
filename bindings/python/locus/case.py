# SPDX-License-Identifier: Apache-2.0
"""Case files: one call in one safetensors file, as docs/formats.md describes them.

>>> result = locus.case.run("tests/golden/t5/encoder.safetensors")
>>> result.passed                                        # near what the file expects?
True
>>> case = locus.case.Case("attend", "alibi", {"q": q, "k": k, "v": v}, {"causal": True})
>>> locus.case.save("mine.safetensors", case)
"""

import os
import tempfile
from dataclasses import dataclass, field

import numpy as np

from . import _native
from ._runtime import threads_for

__all__ = ["Case", "Difference", "Result", "load", "run", "save"]

_DTYPES = {"F32": np.float32, "F64": np.float64, "U8": np.uint8, "I64": np.int64, "F16": np.float16}
_TOLERANCES = ("tolerance", "tolerance_grad")
_NAMES = {"float32": "F32", "float64": "F64", "uint8": "U8", "bool": "U8", "int64": "I64", "float16": "F16",
          "bfloat16": "BF16"}  # of ml_dtypes


@dataclass
class Case:
    """One call: `kind` is "attend" or "layer"; `settings` holds the other metadata (causal, heads, options)."""

    kind: str
    scheme: str
    tensors: dict
    settings: dict = field(default_factory=dict)
    dout: object = None  # with it, gradients are computed
    want: dict = field(default_factory=dict)  # expected results: "out", "lse", "grad.q", ...
    note: str = ""
    dlse: object = None  # beside dout: the gradient of lse
    tolerances: dict = field(default_factory=dict)  # "tolerance", "tolerance_grad", where a file has its own


@dataclass(frozen=True)
class Difference:
    """How far a result is from the expected one: largest |got - want| / max(1, max |want|)."""

    name: str
    worst: float
    tolerance: float
    passed: bool


@dataclass(frozen=True)
class Result:
    """What a run gave."""

    out: np.ndarray
    lse: np.ndarray
    grads: dict
    differences: tuple  # one per expected result of the file

    @property
    def passed(self):
        """True when every result is near what the file expects."""
        return all(difference.passed for difference in self.differences)


def _array(packed):
    name, dtype, shape, data = packed
    if dtype == "BF16":  # NumPy has no such type; float32 holds the same numbers
        return name, (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return name, np.frombuffer(data, _DTYPES[dtype]).reshape(shape)


def load(path):
    """Read a case file; it is refused with one line when it breaks a rule. BF16 tensors become float32."""
    _native.case_load(path)  # judges the whole file
    metadata, packed = _native.file_read(path)
    tensors = dict(_array(tensor) for tensor in packed)
    want = {name.removeprefix("want."): tensors.pop(name) for name in list(tensors) if name.startswith("want.")}
    tolerances = {name: float(metadata.pop(name)) for name in _TOLERANCES if name in metadata}
    return Case(
        kind=metadata.pop("kind"),
        scheme=metadata.pop("scheme"),
        note=metadata.pop("note", ""),
        settings={name: text for name, text in metadata.items() if name not in ("format", "grad")},
        dout=tensors.pop("dout", None),
        dlse=tensors.pop("dlse", None),
        tensors=tensors,
        want=want,
        tolerances=tolerances,
    )


def _text(value):
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _pack(name, array):
    array = np.ascontiguousarray(np.from_dlpack(array) if not isinstance(array, np.ndarray) else array)
    dtype = _NAMES.get(array.dtype.name)
    if dtype is None:
        raise ValueError(f"tensor {name}: found {array.dtype}, expected float32, float16, bfloat16, int64, uint8 or bool")
    return name, dtype, array.shape, array.reshape(-1).view(np.uint8) if array.size else b""


def save(path, case):
    """Write a case file, atomically: the old file or the new one, never a part."""
    metadata = {"format": "locus.case/1", "kind": case.kind, "scheme": case.scheme}
    metadata.update((name, _text(value)) for name, value in {**case.settings, **case.tolerances}.items() if value is not None)
    if case.note:
        metadata["note"] = case.note
    tensors = {name: array for name, array in case.tensors.items() if array is not None}
    if case.dout is not None:
        metadata["grad"] = "1"
        tensors["dout"] = case.dout
    if case.dlse is not None:
        metadata["grad"] = "1"
        tensors["dlse"] = case.dlse
    tensors.update((f"want.{name}", array) for name, array in case.want.items())
    _native.file_write(path, metadata, [_pack(name, array) for name, array in tensors.items()])


def _run_file(path, oracle, threads, isa):
    handle = _native.case_load(path)
    results = dict(_array(packed) for packed in _native.case_run(handle, oracle, threads_for(threads), isa))
    differences = tuple(
        Difference(d["name"], d["worst"], d["tolerance"], d["passed"])
        for d in _native.case_compare(handle)
        if d["expected"]
    )
    return Result(
        out=results["out"],
        lse=results["lse"],
        grads={name.removeprefix("grad."): array for name, array in results.items() if name.startswith("grad.")},
        differences=differences,
    )


def run(case, oracle=False, threads=None, isa=None):
    """Run a case: a path or a Case. `oracle` computes in double precision, straight from the definition."""
    if not isinstance(case, Case):
        return _run_file(case, oracle, threads, isa)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.safetensors")
        save(path, case)
        return _run_file(path, oracle, threads, isa)
