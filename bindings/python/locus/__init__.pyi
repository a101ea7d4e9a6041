# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from os import PathLike
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import __config__ as __config__
from . import case as case

__version__: str
__all__ = [
    "Encoding",
    "Explanation",
    "Figure",
    "LocusError",
    "LocusIOError",
    "LocusMemoryError",
    "LocusTypeError",
    "LocusValueError",
    "Model",
    "Option",
    "Scheme",
    "Status",
    "Tensor",
    "Tokenizer",
    "attend",
    "attend_backward",
    "case",
    "cpu_info",
    "explain",
    "get_threads",
    "layer",
    "layer_backward",
    "plot",
    "schemes",
    "set_threads",
]

_Array = Any  # the buffer protocol or __dlpack__, on the CPU
_Float32 = NDArray[np.float32]

class Status(IntEnum):
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
    status: Status
    def __init__(self, message: str, status: int = ...) -> None: ...

class LocusTypeError(LocusError, TypeError): ...
class LocusValueError(LocusError, ValueError): ...
class LocusMemoryError(LocusError, MemoryError): ...
class LocusIOError(LocusError, OSError): ...

@dataclass(frozen=True)
class Option:
    name: str
    help: str
    kind: Literal["integer", "real", "choice"]
    levels: tuple[str, ...]
    required: bool
    beside: str | None
    minimum: float
    maximum: float
    default: int | float | str | None
    choices: tuple[str, ...]

@dataclass(frozen=True)
class Tensor:
    name: str
    help: str
    shape: str
    levels: tuple[str, ...]
    required: bool
    dtypes: tuple[str, ...]
    gradient: bool
    planned: bool

@dataclass(frozen=True)
class Scheme:
    name: str
    title: str
    formula: str
    citation: str
    rule: str
    scale: str
    terms: tuple[str, ...]
    traits: tuple[str, ...]
    options: tuple[Option, ...]
    tensors: tuple[Tensor, ...]

@dataclass(frozen=True)
class Encoding:
    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    types: list[int]
    segments: list[int]

class Tokenizer:
    kind: str
    source: str
    rules: str
    has_types: bool
    special: dict[str, int | None]
    def __init__(self, folder: str | PathLike[str]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __call__(
        self, text: str | bytes, pair: str | bytes | None = None, *, special: bool = True, truncate: int = 0
    ) -> Encoding: ...
    @overload
    def __call__(
        self,
        text: Sequence[str | bytes],
        pair: str | bytes | Sequence[str | bytes | None] | None = None,
        *,
        special: bool = True,
        truncate: int = 0,
    ) -> list[Encoding]: ...
    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str: ...
    def token(self, id: int) -> str | None: ...
    def find(self, token: str) -> int | None: ...

class Model:
    info: dict[str, Any]
    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        threads: int = 0,
        tokenizer: str | PathLike[str] | None = None,
        precision: Literal["exact", "i16", "int8"] = "exact",
    ) -> None: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def tasks(self) -> list[str]: ...
    def __call__(
        self,
        texts: str | bytes | Sequence[str | bytes],
        pair: str | bytes | Sequence[str | bytes | None] | None = None,
        *,
        task: Literal["embed", "classify", "tokens", "fill", "generate"] | None = None,
        truncate: int = 0,
        **settings: Any,
    ) -> Any: ...
    def stream(
        self, text: str | bytes, pair: str | bytes | None = None, *, truncate: int = 0, **settings: Any
    ) -> Iterator[str]: ...
    def zero_shot(
        self,
        texts: str | bytes | Sequence[str | bytes],
        labels: Sequence[str],
        *,
        hypothesis: str = "This example is {}.",
        multi_label: bool = False,
        truncate: int = 0,
    ) -> Any: ...
    def rank(self, query: str | bytes, texts: Sequence[str | bytes], *, truncate: int = 0) -> list[tuple[int, float]]: ...
    def hidden(
        self, text: str | bytes, pair: str | bytes | None = None, *, truncate: int = 0
    ) -> NDArray[np.float32]: ...
    def logits(
        self, text: str | bytes, pair: str | bytes | None = None, *, truncate: int = 0
    ) -> NDArray[np.float32]: ...
    def attention(
        self,
        text: str | bytes,
        layer: int,
        pair: str | bytes | None = None,
        *,
        truncate: int = 0,
        stack: Literal["encoder", "decoder", "cross"] = "encoder",
        decoder_ids: Sequence[int] | None = None,
    ) -> dict[str, Any]: ...
    def explain(
        self,
        text: str | bytes,
        layer: int,
        head: int,
        *,
        stack: Literal["encoder", "decoder", "cross"] = "encoder",
        decoder_ids: Sequence[int] | None = None,
        **more: Any,
    ) -> Explanation: ...

def schemes() -> list[Scheme]: ...
def set_threads(threads: int) -> None: ...
def get_threads() -> int: ...
def cpu_info() -> dict[str, Any]: ...
def attend(
    q: _Array,
    k: _Array,
    v: _Array,
    mask: _Array | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
    *,
    scheme: str = "none",
    return_lse: bool = False,
    out: _Array | None = None,
    lse: _Array | None = None,
    bias_dense: _Array | None = None,
    key_mask: _Array | None = None,
    sink: _Array | None = None,
    # declared by schemes (tools/write-stubs.py)
    rel_k: _Array | None = None,
    rel_v: _Array | None = None,
    q_positions: _Array | None = None,
    k_positions: _Array | None = None,
    u: _Array | None = None,
    w: _Array | None = None,
    bias: _Array | None = None,
    pos_q: _Array | None = None,
    pos_k: _Array | None = None,
    cls: _Array | None = None,
    rel_q: _Array | None = None,
    slopes: _Array | None = None,
    a: _Array | None = None,
    p: _Array | None = None,
    frequencies: _Array | None = None,
    rows: _Array | None = None,
    pos_query: _Array | None = None,
    w_1: _Array | None = None,
    b_1: _Array | None = None,
    w_2: _Array | None = None,
    b_2: _Array | None = None,
    c: _Array | None = None,
    threshold: _Array | None = None,
    rel_h: _Array | None = None,
    rel_w: _Array | None = None,
    gate: _Array | None = None,
    log_decay: _Array | None = None,
    clip_left: int = ...,
    clip_right: int = ...,
    delta_min: int = ...,
    clamp: int = ...,
    buckets: int = ...,
    max_distance: int = ...,
    bidirectional: int = ...,
    span: int = ...,
    form: Literal["log", "power"] = ...,
    base: float = ...,
    width: int = ...,
    pairing: Literal["half", "interleaved"] = ...,
    theta_scale: float = ...,
    axes: int = ...,
    scale_base: float = ...,
    # end of what schemes declare
    q_offsets: _Array | None = None,
    k_offsets: _Array | None = None,
    window_left: int = -1,
    window_right: int = -1,
    query_offset: int | None = None,
    softcap: float | None = None,
    dropout_seed: int = 0,
    threads: int | None = None,
    isa: str | None = None,
    path: Literal["tiles", "rows"] | None = None,
) -> _Float32 | tuple[_Float32, _Float32]: ...
def attend_backward(
    dout: _Array,
    q: _Array,
    k: _Array,
    v: _Array,
    mask: _Array | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
    *,
    scheme: str = "none",
    out: _Array | None = None,
    lse: _Array | None = None,
    wrt: list[str] | None = None,
    grads: dict[str, _Array] | None = None,
    accumulate: bool = False,
    dlse: _Array | None = None,
    bias_dense: _Array | None = None,
    key_mask: _Array | None = None,
    sink: _Array | None = None,
    # declared by schemes (tools/write-stubs.py)
    rel_k: _Array | None = None,
    rel_v: _Array | None = None,
    q_positions: _Array | None = None,
    k_positions: _Array | None = None,
    u: _Array | None = None,
    w: _Array | None = None,
    bias: _Array | None = None,
    pos_q: _Array | None = None,
    pos_k: _Array | None = None,
    cls: _Array | None = None,
    rel_q: _Array | None = None,
    slopes: _Array | None = None,
    a: _Array | None = None,
    p: _Array | None = None,
    frequencies: _Array | None = None,
    rows: _Array | None = None,
    pos_query: _Array | None = None,
    w_1: _Array | None = None,
    b_1: _Array | None = None,
    w_2: _Array | None = None,
    b_2: _Array | None = None,
    c: _Array | None = None,
    threshold: _Array | None = None,
    rel_h: _Array | None = None,
    rel_w: _Array | None = None,
    gate: _Array | None = None,
    log_decay: _Array | None = None,
    clip_left: int = ...,
    clip_right: int = ...,
    delta_min: int = ...,
    clamp: int = ...,
    buckets: int = ...,
    max_distance: int = ...,
    bidirectional: int = ...,
    span: int = ...,
    form: Literal["log", "power"] = ...,
    base: float = ...,
    width: int = ...,
    pairing: Literal["half", "interleaved"] = ...,
    theta_scale: float = ...,
    axes: int = ...,
    scale_base: float = ...,
    # end of what schemes declare
    q_offsets: _Array | None = None,
    k_offsets: _Array | None = None,
    window_left: int = -1,
    window_right: int = -1,
    query_offset: int | None = None,
    softcap: float | None = None,
    dropout_seed: int = 0,
    threads: int | None = None,
    isa: str | None = None,
    path: Literal["tiles", "rows"] | None = None,
) -> dict[str, _Float32]: ...
def layer(
    x: _Array,
    w_q: _Array,
    w_k: _Array,
    w_v: _Array,
    w_o: _Array | None = None,
    *,
    heads: int,
    scheme: str = "none",
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    return_lse: bool = False,
    out: _Array | None = None,
    lse: _Array | None = None,
    bias_dense: _Array | None = None,
    key_mask: _Array | None = None,
    sink: _Array | None = None,
    mask: _Array | None = None,
    memory: _Array | None = None,
    b_q: _Array | None = None,
    b_k: _Array | None = None,
    b_v: _Array | None = None,
    b_o: _Array | None = None,
    # declared by schemes (tools/write-stubs.py)
    pos: _Array | None = None,
    rel_k: _Array | None = None,
    rel_v: _Array | None = None,
    q_positions: _Array | None = None,
    k_positions: _Array | None = None,
    u: _Array | None = None,
    w: _Array | None = None,
    w_r: _Array | None = None,
    bias: _Array | None = None,
    cls: _Array | None = None,
    w_pq: _Array | None = None,
    w_pk: _Array | None = None,
    b_pq: _Array | None = None,
    b_pk: _Array | None = None,
    rel: _Array | None = None,
    w_rk: _Array | None = None,
    w_rq: _Array | None = None,
    b_rk: _Array | None = None,
    b_rq: _Array | None = None,
    slopes: _Array | None = None,
    a: _Array | None = None,
    p: _Array | None = None,
    frequencies: _Array | None = None,
    rows: _Array | None = None,
    b_r: _Array | None = None,
    rel_q: _Array | None = None,
    w_1: _Array | None = None,
    b_1: _Array | None = None,
    w_2: _Array | None = None,
    b_2: _Array | None = None,
    c: _Array | None = None,
    threshold: _Array | None = None,
    rel_h: _Array | None = None,
    rel_w: _Array | None = None,
    w_g: _Array | None = None,
    b_g: _Array | None = None,
    g_scale: _Array | None = None,
    w_d: _Array | None = None,
    b_d: _Array | None = None,
    table: Literal["paper", "t2t", "half"] = ...,
    first_position: int = ...,
    x_scale: float = ...,
    clip_left: int = ...,
    clip_right: int = ...,
    clamp: int = ...,
    buckets: int = ...,
    max_distance: int = ...,
    bidirectional: int = ...,
    span: int = ...,
    c2p: int = ...,
    p2c: int = ...,
    form: Literal["log", "power"] = ...,
    base: float = ...,
    width: int = ...,
    pairing: Literal["half", "interleaved"] = ...,
    theta_scale: float = ...,
    axes: int = ...,
    scale_base: float = ...,
    delta_min: int = ...,
    # end of what schemes declare
    window_left: int = -1,
    window_right: int = -1,
    query_offset: int | None = None,
    softcap: float | None = None,
    dropout_seed: int = 0,
    threads: int | None = None,
    isa: str | None = None,
    path: Literal["tiles", "rows"] | None = None,
) -> _Float32 | tuple[_Float32, _Float32]: ...
def layer_backward(
    dout: _Array,
    x: _Array,
    w_q: _Array,
    w_k: _Array,
    w_v: _Array,
    w_o: _Array | None = None,
    *,
    heads: int,
    scheme: str = "none",
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    wrt: list[str] | None = None,
    dlse: _Array | None = None,
    bias_dense: _Array | None = None,
    key_mask: _Array | None = None,
    sink: _Array | None = None,
    mask: _Array | None = None,
    memory: _Array | None = None,
    b_q: _Array | None = None,
    b_k: _Array | None = None,
    b_v: _Array | None = None,
    b_o: _Array | None = None,
    # declared by schemes (tools/write-stubs.py)
    pos: _Array | None = None,
    rel_k: _Array | None = None,
    rel_v: _Array | None = None,
    q_positions: _Array | None = None,
    k_positions: _Array | None = None,
    u: _Array | None = None,
    w: _Array | None = None,
    w_r: _Array | None = None,
    bias: _Array | None = None,
    cls: _Array | None = None,
    w_pq: _Array | None = None,
    w_pk: _Array | None = None,
    b_pq: _Array | None = None,
    b_pk: _Array | None = None,
    rel: _Array | None = None,
    w_rk: _Array | None = None,
    w_rq: _Array | None = None,
    b_rk: _Array | None = None,
    b_rq: _Array | None = None,
    slopes: _Array | None = None,
    a: _Array | None = None,
    p: _Array | None = None,
    frequencies: _Array | None = None,
    rows: _Array | None = None,
    b_r: _Array | None = None,
    rel_q: _Array | None = None,
    w_1: _Array | None = None,
    b_1: _Array | None = None,
    w_2: _Array | None = None,
    b_2: _Array | None = None,
    c: _Array | None = None,
    threshold: _Array | None = None,
    rel_h: _Array | None = None,
    rel_w: _Array | None = None,
    w_g: _Array | None = None,
    b_g: _Array | None = None,
    g_scale: _Array | None = None,
    w_d: _Array | None = None,
    b_d: _Array | None = None,
    table: Literal["paper", "t2t", "half"] = ...,
    first_position: int = ...,
    x_scale: float = ...,
    clip_left: int = ...,
    clip_right: int = ...,
    clamp: int = ...,
    buckets: int = ...,
    max_distance: int = ...,
    bidirectional: int = ...,
    span: int = ...,
    c2p: int = ...,
    p2c: int = ...,
    form: Literal["log", "power"] = ...,
    base: float = ...,
    width: int = ...,
    pairing: Literal["half", "interleaved"] = ...,
    theta_scale: float = ...,
    axes: int = ...,
    scale_base: float = ...,
    delta_min: int = ...,
    # end of what schemes declare
    window_left: int = -1,
    window_right: int = -1,
    query_offset: int | None = None,
    softcap: float | None = None,
    dropout_seed: int = 0,
    threads: int | None = None,
    isa: str | None = None,
    path: Literal["tiles", "rows"] | None = None,
) -> dict[str, _Float32]: ...

class Figure:
    svg: str
    def __init__(
        self, description: object, theme: Literal["auto", "light", "dark"] = "auto", width: int = 960
    ) -> None: ...
    def text(self, columns: int = 80) -> str: ...
    def save(self, path: Any) -> None: ...
    def _repr_svg_(self) -> str: ...

@dataclass(frozen=True)
class Explanation:
    scheme: str
    batch: int
    head: int
    rows: range | tuple[int, ...]
    keys: range | tuple[int, ...]
    query_offset: int
    scale: float
    terms: dict[str, NDArray[np.float64]]
    formulas: dict[str, str]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]
    visible: NDArray[np.bool_]
    lse: NDArray[np.float64]
    @property
    def title(self) -> str: ...
    def panels(self, **about: Any) -> list[dict[str, Any]]: ...
    def plot(self, **keywords: Any) -> Figure: ...
    def _repr_svg_(self) -> str: ...

def explain(
    q: _Array | None = None,
    k: _Array | None = None,
    v: _Array | None = None,
    mask: _Array | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
    *,
    scheme: str = "none",
    heads: int | None = None,
    batch: int = 0,
    head: int = 0,
    rows: int | range | slice | Sequence[int] | None = None,
    keys: int | range | slice | Sequence[int] | None = None,
    bias_dense: _Array | None = None,
    key_mask: _Array | None = None,
    sink: _Array | None = None,
    rel_k: _Array | None = None,
    rel_v: _Array | None = None,
    u: _Array | None = None,
    w: _Array | None = None,
    bias: _Array | None = None,
    q_offsets: _Array | None = None,
    k_offsets: _Array | None = None,
    pos_q: _Array | None = None,
    pos_k: _Array | None = None,
    cls: _Array | None = None,
    rel_q: _Array | None = None,
    slopes: _Array | None = None,
    a: _Array | None = None,
    p: _Array | None = None,
    frequencies: _Array | None = None,
    q_positions: _Array | None = None,
    k_positions: _Array | None = None,
    clip_left: int = ...,
    clip_right: int = ...,
    delta_min: int = ...,
    clamp: int = ...,
    buckets: int = ...,
    max_distance: int = ...,
    bidirectional: int = ...,
    span: int = ...,
    form: Literal["log", "power"] = ...,
    base: float = ...,
    width: int = ...,
    pairing: Literal["half", "interleaved"] = ...,
    theta_scale: float = ...,
    axes: int = ...,
    scale_base: float = ...,
    window_left: int = -1,
    window_right: int = -1,
    query_offset: int | None = None,
    softcap: float | None = None,
    dropout_seed: int = 0,
    threads: int | None = None,
    isa: str | None = None,
    path: Literal["tiles", "rows"] | None = None,
    x: _Array | None = None,
    w_q: _Array | None = None,
    w_k: _Array | None = None,
    w_v: _Array | None = None,
    w_o: _Array | None = None,
    memory: _Array | None = None,
    b_q: _Array | None = None,
    b_k: _Array | None = None,
    b_v: _Array | None = None,
    b_o: _Array | None = None,
    pos: _Array | None = None,
    w_r: _Array | None = None,
    w_pq: _Array | None = None,
    w_pk: _Array | None = None,
    b_pq: _Array | None = None,
    b_pk: _Array | None = None,
    rel: _Array | None = None,
    w_rk: _Array | None = None,
    w_rq: _Array | None = None,
    b_rk: _Array | None = None,
    b_rq: _Array | None = None,
    table: Literal["paper", "t2t", "half"] = ...,
    first_position: int = ...,
    x_scale: float = ...,
    c2p: int = ...,
    p2c: int = ...,
) -> Explanation: ...
@overload
def plot(
    data: str,
    *,
    theme: Literal["auto", "light", "dark"] = "auto",
    width: int | None = None,
    what: str | None = None,
    tokens: str | Iterable[str] | None = None,
    length: int | None = None,
    heads: int | None = None,
    dim: int | None = None,
    head: int | None = None,
    window: int | None = None,
    causal: bool = False,
    seed: int = 2017,
    case: str | PathLike[str] | None = None,
    **options: Any,
) -> Figure: ...
@overload
def plot(
    data: Explanation | dict[str, Any] | _Array,
    *,
    title: str | None = None,
    caption: str | None = None,
    description: str | None = None,
    theme: Literal["auto", "light", "dark"] = "auto",
    width: int | None = None,
    **about: Any,
) -> Figure: ...
