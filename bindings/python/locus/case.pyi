# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "Difference", "Result", "load", "run", "save"]

_Path = str | PathLike[str]

@dataclass
class Case:
    kind: str
    scheme: str
    tensors: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    dout: Any = None
    want: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    dlse: Any = None
    tolerances: dict[str, float] = field(default_factory=dict)

@dataclass(frozen=True)
class Difference:
    name: str
    worst: float
    tolerance: float
    passed: bool

@dataclass(frozen=True)
class Result:
    out: NDArray[np.floating[Any]]
    lse: NDArray[np.floating[Any]]
    grads: dict[str, NDArray[np.floating[Any]]]
    differences: tuple[Difference, ...]
    @property
    def passed(self) -> bool: ...

def load(path: _Path) -> Case: ...
def save(path: _Path, case: Case) -> None: ...
def run(case: Case | _Path, oracle: bool = False, threads: int | None = None, isa: str | None = None) -> Result: ...
