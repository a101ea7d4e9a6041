# SPDX-License-Identifier: Apache-2.0
"""The declarations of the schemes, as the library makes them."""

from dataclasses import dataclass

from . import _native

_LEVELS = {1: "attend", 2: "layer"}
_TRAITS = {1: "relative", 2: "symmetric", 4: "learned", 8: "causal", 16: "counted"}


def _names(bits, table):
    return tuple(name for bit, name in table.items() if bits & bit)


@dataclass(frozen=True)
class Option:
    """An option: a keyword of `attend` or `layer`."""

    name: str
    help: str
    kind: str  # "integer", "real" or "choice"
    levels: tuple  # of "attend", "layer"
    required: bool
    beside: str | None  # only beside this tensor; None: always
    minimum: float
    maximum: float
    default: object
    choices: tuple


@dataclass(frozen=True)
class Tensor:
    """A tensor: a keyword of `attend` or `layer`. `shape` names the axes, such as "H R D"."""

    name: str
    help: str
    shape: str
    levels: tuple
    required: bool
    dtypes: tuple  # of "F32", "F16", "BF16", "U8", "I64"
    gradient: bool  # a call gives its gradient
    planned: bool  # its numbers are read when a plan is made


@dataclass(frozen=True)
class Scheme:
    """A way of telling attention where a token is."""

    name: str
    title: str
    formula: str
    citation: str
    rule: str
    scale: str
    terms: tuple
    traits: tuple
    options: tuple
    tensors: tuple

    def __str__(self):
        return f"{self.name}: {self.formula}"


def _option(declared):
    declared = dict(declared, levels=_names(declared["levels"], _LEVELS))
    declared["beside"] = declared.pop("with")
    declared["choices"] = tuple(declared["choices"])
    return Option(**declared)


def _tensor(declared):
    return Tensor(
        **dict(
            declared,
            help=declared["help"] or "",
            levels=_names(declared["levels"], _LEVELS),
            dtypes=tuple(declared["dtypes"]),
        )
    )


def _scheme(declared):
    return Scheme(
        **dict(
            declared,
            terms=tuple(declared["terms"]),
            traits=_names(declared["traits"], _TRAITS),
            options=tuple(_option(option) for option in declared["options"]),
            tensors=tuple(_tensor(tensor) for tensor in declared["tensors"]),
        )
    )


def schemes():
    """All schemes, in the library's order. Each has its formula, options, tensors and citation."""
    return [_scheme(declared) for declared in _native.schemes()]


_DECLARED = [
    tensor
    for declared in [{"tensors": _native.common_tensors()}, *_native.schemes()]
    for tensor in declared["tensors"]
]

# Names that `attend` and `layer` take for tensors; every other keyword is an option.
TENSORS = frozenset(tensor["name"] for tensor in _DECLARED)

# Those that have a gradient.
DIFFERENTIABLE = frozenset(tensor["name"] for tensor in _DECLARED if tensor["gradient"])
