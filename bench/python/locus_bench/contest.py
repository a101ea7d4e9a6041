# SPDX-License-Identifier: Apache-2.0
"""A contest is one function, computed by Locus and by its peers from the same tensors.

A contestant is a callable without arguments that returns the output; `inputs` are the tensors whose gradients a training
step wants. Peers that can not run say why instead of being left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Contest:
    name: str
    inputs: list  # tensors with gradients
    exact: Callable  # the output in double
    runs: dict = field(default_factory=dict)  # contestant -> callable; "locus" is one of them
    forward_only: set = field(default_factory=set)
    absent: dict = field(default_factory=dict)  # contestant -> why
    holder: object = None  # what must live as long as the contest


@dataclass(frozen=True)
class Shape:
    batch: int
    heads: int
    tokens: int
    width: int

    @property
    def hidden(self) -> int:
        return self.heads * self.width
