# SPDX-License-Identifier: Apache-2.0
"""``attn_implementation="locus"``: any model of transformers that goes through its AttentionInterface.

    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="locus")

Two functions are registered with transformers when it is imported: one makes masks, one attends. Masks are made as for
"sdpa", booleans [B,1,Tq,Tk], true = take part; those of causal, window, padding and packed texts alone are kept as
words (``_locus_words``) and written out only where somebody reads them. RoPE stays the model's own.

Families that choose a class by the name of the implementation (BERT, RoBERTa, ...) get the adapter of ``patch`` as one
more class; ModernBERT's table of functions gets ``modernbert_forward``.

What falls back to the model's own ``eager_attention_forward``: asked-for attention weights, tensors that are not
floating and on the CPU.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_map_only

from . import direct
from .adapter import can_run, head_mask_fits, runs_original_code
from .direct import attend_by_token
from .functional import attend
from .imports import when_each_imported, when_imported
from .masks import contents_unknown, from_additive, from_seen
from .patch import KNOWN, swapped_class

NAME = "locus"

# Masks in words of attend: all keys are seen; those up to the place of the query, counted from the first.
_EVERYTHING: dict = {}
_THE_PAST = {"causal": True, "query_offset": 0}

# Arguments of attention functions that change the result and that Locus does not compute.
_OTHERS = ("position_bias", "output_attentions")


# ---- masks ----


def _parts(function) -> Optional[list]:
    """A mask function of transformers as [(kind, value), ...], all of which must hold; None: not made of known parts."""
    name = getattr(function, "__qualname__", "")
    if getattr(function, "__module__", "") != "transformers.masking_utils":
        return None
    held = dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__ or ())))
    if name == "causal_mask_function":
        return [("causal", True)]
    if name == "sliding_window_overlay.<locals>.inner_mask":
        return [("window", held["sliding_window"])]
    if name == "packed_sequence_mask_function.<locals>.inner_mask":
        return [("text", held["packed_sequence_mask"])]
    if name == "remap_positions_for_packed_sequence.<locals>.inner_mask":  # positions ascend by 1 in each text, as places do
        return _parts(held["mask_function"])
    if name == "and_masks.<locals>.and_mask":
        parts = [_parts(part) for part in held["mask_functions"]]
        return None if None in parts else sum(parts, [])
    return None


def _offsets(texts: Tensor) -> Tensor:
    """Where the texts of packed rows [B,T] begin, row after row, and the end of the last: [S+1]."""
    begins = torch.ones_like(texts, dtype=torch.bool)
    begins[:, 1:] = texts[:, 1:] != texts[:, :-1]
    return functional.pad(begins.flatten().nonzero()[:, 0], (0, 1), value=texts.numel())


class _Words(NamedTuple):
    """A causal mask in words: those of attend, and which text of a packed row each token belongs to."""

    offset: int  # position of query 0, counted from key 0
    window: Optional[int]  # keys that a query sees, itself included
    by_key: Optional[Tensor]  # [B,Tk]
    texts: Optional[Tensor]  # [B,T]

    def keywords(self) -> dict:
        words = {"causal": True, "query_offset": self.offset}
        if self.texts is not None:
            words = {"causal": True, "texts": _offsets(self.texts)}
        if self.window is not None:
            words["window_left"] = self.window - 1
        if self.by_key is not None:
            words["key_mask"] = self.by_key
        return words

    def hides_only_the_future(self, queries: int, keys: int) -> bool:
        near = self.window is None or self.window >= keys
        plain = self.by_key is None and self.texts is None and near
        return plain and self.offset + queries == keys and (queries == 1 or queries == keys)

    def written_out(self, batch: int, queries: int, keys: int) -> Tensor:
        distance = self.offset + torch.arange(queries)[:, None] - torch.arange(keys)
        seen = distance >= 0 if self.window is None else (distance >= 0) & (distance < self.window)
        seen = seen[None, None]
        if self.by_key is not None:
            seen = seen & self.by_key[:, None, None]
        if self.texts is not None:
            seen = seen & (self.texts[:, None, :, None] == self.texts[:, None, None, :])
        return seen.expand(batch, -1, -1, -1)


class _WordedMask(Tensor):
    """Booleans [B,1,Tq,Tk] that are written out only where an operation reads them; attend takes the words."""

    @staticmethod
    def __new__(cls, words: _Words, shape: tuple):
        return Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool)

    def __init__(self, words: _Words, shape: tuple):
        self._words = words
        self._locus_words = words.keywords()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def read(mask):
            batch, _, queries, keys = mask.shape
            return mask._words.written_out(batch, queries, keys)

        args, kwargs = tree_map_only(cls, read, (args, kwargs or {}))
        return func(*args, **kwargs)


class _Span(NamedTuple):
    """Where queries stand: transformers 4 and 5.0 give their positions, later ones how many there are and the first."""

    positions: Optional[Tensor]  # cache_position
    queries: int
    first: object  # an integer, or a tensor of a static cache

    def ends(self) -> tuple:
        if self.positions is None:
            return int(self.first), int(self.first) + self.queries - 1
        return int(self.positions[0]), int(self.positions[-1])

    def keywords(self) -> dict:
        """As the installed sdpa_mask takes them."""
        if self.positions is not None:
            return {"cache_position": self.positions}
        return {"q_length": self.queries, "q_offset": self.first}

    def is_plain(self) -> bool:
        """Numbers that may be looked at."""
        given = self.first if self.positions is None else self.positions
        return not isinstance(given, Tensor) or (type(given) is Tensor and given.device.type == "cpu")


def _words(function, span: _Span, kv_length: int, kv_offset: int, padding: Optional[Tensor], traced: bool):
    """None: this mask can not be put in words. `traced`: what padding and texts are this time must not be looked at."""
    parts = _parts(function)
    if parts is None or ("causal", True) not in parts or span.queries == 0:
        return None
    first, last = span.ends()
    if last - first != span.queries - 1:
        return None
    kv_offset, by_key = int(kv_offset), None
    if padding is not None:
        by_key = padding[:, kv_offset : kv_offset + kv_length].bool()
        by_key = functional.pad(by_key, (0, kv_length - by_key.shape[1]))  # keys that it does not speak of are hidden
        by_key = None if not traced and bool(by_key.all()) else by_key
    windows = [value for kind, value in parts if kind == "window"]
    texts = [value for kind, value in parts if kind == "text" and (traced or bool((value != value[:, :1]).any()))]
    return _Words(first - kv_offset, min(windows) if windows else None, by_key, texts[0] if texts else None)


def _only_the_future(queries: int, keys: int, padding: Optional[Tensor], local: Optional[int]) -> bool:
    """What transformers asks before it leaves "sdpa" without a mask."""
    if (queries != 1 and queries != keys) or (local is not None and keys >= local):
        return False
    return padding is None or (padding.shape[-1] == keys and bool(padding.all()))


def locus_mask(
    batch_size,
    cache_position=None,
    kv_length=None,
    kv_offset=0,
    mask_function=None,
    attention_mask=None,
    local_size=None,
    allow_is_causal_skip=False,
    q_length=None,
    q_offset=0,
    **more,
) -> Optional[Tensor]:
    """For AttentionMaskInterface: None where only the future is hidden, else booleans, with their words if they have any.

    ``cache_position`` is what transformers 4 gives, ``q_length`` and ``q_offset`` what 5 gives.
    """
    span = _Span(cache_position, q_length if cache_position is None else cache_position.shape[0], q_offset)
    if allow_is_causal_skip and span.is_plain() and not contents_unknown():
        if _only_the_future(span.queries, kv_length, attention_mask, local_size):
            return None
    from transformers import masking_utils

    more.update(local_size=local_size, allow_is_causal_skip=allow_is_causal_skip)
    function = masking_utils.causal_mask_function if mask_function is None else mask_function
    traced = torch.jit.is_tracing()
    simple = not torch.compiler.is_compiling() and span.is_plain()
    words = _words(function, span, kv_length, kv_offset, attention_mask, traced) if simple else None
    if words is None:
        return masking_utils.sdpa_mask(
            batch_size=batch_size,
            kv_length=kv_length,
            kv_offset=kv_offset,
            mask_function=function,
            attention_mask=attention_mask,
            **span.keywords(),
            **more,
        )
    if traced:
        return words.written_out(batch_size, span.queries, kv_length)
    if words.hides_only_the_future(span.queries, kv_length):
        return None
    return _WordedMask(words, (batch_size, 1, span.queries, kv_length))


def _seen(mask: Tensor, queries: int, keys: int) -> dict:
    words = getattr(mask, "_locus_words", None)
    if words is not None and mask.shape[-1] == keys:
        return words
    if mask.dtype is not torch.bool:
        return from_additive(mask, queries, keys, keys - queries).arguments()
    mask = mask[..., :keys]
    return from_seen(mask.expand(-1, -1, queries, -1), keys - queries).arguments()


# ---- attention ----


def locus_attention_forward(
    module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Optional[Tensor],
    dropout: float = 0.0,
    scaling: Optional[float] = None,
    is_causal: Optional[bool] = None,
    head_mask: Optional[Tensor] = None,
    softcap: Optional[float] = None,
    s_aux: Optional[Tensor] = None,
    position_bias: Optional[Tensor] = None,
    output_attentions: Optional[bool] = None,
    **more,
):
    """For AttentionInterface: (out [B,T,H,D], None); weights are not kept."""
    plain = head_mask is None and s_aux is None and position_bias is None
    plain = plain and not (output_attentions or dropout or runs_original_code())
    if attention_mask is not None:
        call = _seen(attention_mask, query.shape[2], key.shape[2])
    elif is_causal is False or (is_causal is None and (query.shape[2] == 1 or not getattr(module, "is_causal", True))):
        call = _EVERYTHING
    else:
        call = _THE_PAST
    if plain:
        out = attend_by_token(query, key, value, call is _THE_PAST, scaling, softcap) if attention_mask is None else None
        if out is not None:
            return out, None
        out = _directly(query, key, value, call, scaling, softcap)
        if out is not None:
            return out, None
    computes = can_run(query) or (_is_double(query) and not runs_original_code())
    call_bias = _with_bias(call, position_bias)
    if call_bias is None or output_attentions or not computes or not head_mask_fits(head_mask):
        asked = dict(softcap=softcap, s_aux=s_aux, position_bias=position_bias, output_attentions=output_attentions)
        more.update((name, given) for name, given in asked.items() if given is not None)
        causal = call is _THE_PAST
        return _eagerly(module, query, key, value, attention_mask, dropout, scaling, causal, head_mask, more)
    call = call_bias
    if "key_mask" in call:
        call = dict(call, key_mask=call["key_mask"].expand(query.shape[0], -1))
    if s_aux is not None:
        call = dict(call, sink=s_aux)
    if _is_double(query) and "bias_dense" in call:
        call = dict(call, bias_dense=call["bias_dense"].double())
    call = dict(call, dropout=dropout, scale=scaling, softcap=softcap)
    if "texts" in call:
        out = _by_texts(query, key, value, **call)
    else:
        out = attend(query, key, value, **call).transpose(1, 2)
    if head_mask is not None:
        out = out * head_mask.transpose(1, 2)
    return out.contiguous(), None


def _with_bias(call: dict, position_bias: Optional[Tensor]) -> Optional[dict]:
    """`call` with a bias [1 or B, H, Tq, Tk] that is added to the logits (T5 of transformers 5); None: not said in these words."""
    if position_bias is None:
        return call
    if "texts" in call or not isinstance(position_bias, Tensor) or position_bias.dim() != 4:
        return None
    added = call.get("bias_dense")
    return dict(call, bias_dense=position_bias if added is None else position_bias + added)


def _is_double(states: Tensor) -> bool:
    """Exact and slow in torch operations; eager code rounds softmax to float32, where a double's lowest number is -inf."""
    return states.is_cpu and states.dtype is torch.float64


def _directly(query, key, value, call: dict, scaling, softcap) -> Optional[Tensor]:
    """The short way, [B,T,H,D]; None: not for it."""
    if "texts" in call:
        return None
    key_mask = call.get("key_mask")
    if key_mask is not None and key_mask.shape[0] != query.shape[0]:
        key_mask = key_mask.expand(query.shape[0], -1)
    bias = call.get("bias_dense")
    more = {} if bias is None else {"bias_dense": bias}
    settings = (
        "none", call.get("causal", False), call.get("window_left", -1), -1, call.get("query_offset"), scaling, softcap, 0.0
    )  # fmt: skip
    return direct.attend(query, key, value, call.get("mask"), key_mask, settings, more, False, True)


def _by_texts(query, key, value, texts: Tensor, **call) -> Tensor:
    """Packed rows: one ragged call, so that the work is the sum of the squares of their lengths; [B,T,H,D]."""
    batch, tokens = query.shape[0], query.shape[2]
    rows = [x.transpose(1, 2).flatten(0, 1)[None].transpose(1, 2) for x in (query, key, value)]
    if "key_mask" in call:
        call["key_mask"] = call["key_mask"].reshape(1, -1)
    return attend(*rows, q_offsets=texts, k_offsets=texts, **call)[0].transpose(0, 1).unflatten(0, (batch, tokens))


def _eagerly(module, query, key, value, mask, dropout, scaling, is_causal, head_mask, more):
    """The model's own formula, with the mask as it wants it: added to the logits."""
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        asked = [name for name in _OTHERS if more.get(name) is not None]
        raise NotImplementedError(
            f"{type(module).__name__}: found {', '.join(asked) or query.dtype}, which Locus does not compute, and no eager_attention_forward"
        )
    queries, keys = query.shape[2], key.shape[2]
    if mask is None and is_causal:
        mask = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril()[None, None]
    if mask is not None and mask.dtype is torch.bool:
        lowest = torch.finfo(query.dtype).min
        mask = torch.zeros(mask.shape, dtype=query.dtype, device=query.device).masked_fill(~mask, lowest)
    if head_mask is not None:
        more = dict(more, head_mask=head_mask)
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    return eager(module, query, key, value, mask, dropout=dropout, scaling=scaling, **more)


def modernbert_forward(
    module, qkv, attention_mask, sliding_window_mask, position_ids, local_attention, bs, dim, output_attentions=False, **more
):
    """For ModernBERT's own table of functions."""
    source = sys.modules[type(module).__module__]
    if output_attentions or not can_run(qkv):
        places = (attention_mask, sliding_window_mask, position_ids, local_attention, bs, dim)
        return source.eager_attention_forward(module, qkv, *places, output_attentions=output_attentions, **more)
    turns = more.get("position_embeddings")  # given by transformers 5.0
    cos, sin = module.rotary_emb(qkv, position_ids=position_ids) if turns is None else turns
    query, key, value = qkv.transpose(3, 1).unbind(dim=2)
    query, key = source.apply_rotary_pos_emb(query, key, cos, sin)
    tokens = query.shape[2]
    call = from_additive(attention_mask, tokens, tokens, 0).arguments()
    if local_attention != (-1, -1):
        call.update(window_left=local_attention[0], window_right=local_attention[1])
    if "key_mask" in call:
        call["key_mask"] = call["key_mask"].expand(bs, -1)
    p = module.attention_dropout if module.training else 0.0
    out = attend(query, key, value, dropout=p, query_offset=0, **call)
    return (out.transpose(1, 2).reshape(bs, -1, dim),)


# ---- registration ----


def _register_attention(modeling_utils) -> None:
    if hasattr(modeling_utils, "AttentionInterface"):
        modeling_utils.AttentionInterface.register(NAME, locus_attention_forward)
        _watch_choices(modeling_utils)


def _register_masks(masking_utils) -> None:
    if hasattr(masking_utils, "AttentionMaskInterface"):
        masking_utils.AttentionMaskInterface.register(NAME, locus_mask)


def _watch_choices(modeling_utils) -> None:
    """Models whose attention does not ask the interface take any name and go their own way: said once per class."""
    checked = getattr(modeling_utils.PreTrainedModel, "_check_and_adjust_attn_implementation", None)
    if checked is None or hasattr(checked, "__wrapped__"):
        return

    @functools.wraps(checked)
    def check(self, *args, **kwargs):
        chosen = checked(self, *args, **kwargs)
        if chosen == NAME:
            _warn_if_deaf(type(self))
        return chosen

    modeling_utils.PreTrainedModel._check_and_adjust_attn_implementation = check


@functools.lru_cache(maxsize=None)
def _warn_if_deaf(kind: type) -> None:
    names = vars(sys.modules.get(kind.__module__, types.ModuleType("")))
    asks = "ALL_ATTENTION_FUNCTIONS" in names or any(name.endswith(_TABLES) for name in names)
    own = [name for name, found in names.items() if name.endswith("Attention") and isinstance(found, type)]
    if own and not asks:
        warnings.warn(
            f"attn_implementation={NAME!r}: {kind.__name__} does not go through transformers' AttentionInterface, Locus is not "
            "called; use locus.torch.patch(model), or see docs/python-models.md",
            stacklevel=2,
        )


_TABLES = ("ATTENTION_CLASSES", "ATTENTION_FUNCTION")


def _register_class(module) -> None:
    """One more entry in tables such as BERT_SELF_ATTENTION_CLASSES = {"eager": ..., "sdpa": ...} of transformers.models.bert."""
    *_, file = parts = module.__name__.split(".")[2:]
    folder = ".".join(parts[:-1])
    for name, table in list(vars(module).items()):
        if not name.endswith("ATTENTION_CLASSES") or not isinstance(table, dict) or "eager" not in table:
            continue
        original = table["eager"].__name__
        new = swapped_class(f"{folder.split('.')[-1]}_{original}") if (folder, file, original) in KNOWN else None
        if new is not None and new.locus_adapter.by_implementation:
            table[NAME] = new
        else:
            table[NAME] = _Refusal(folder, sorted(set(table) - {NAME}))


class _Refusal(NamedTuple):
    """What a family gives whose classes are chosen by name and of which Locus knows none."""

    folder: str
    others: list

    def __call__(self, *args, **kwargs):
        raise ValueError(
            f"attn_implementation: found {NAME!r} for {self.folder}, a family that does not go through transformers' "
            f"AttentionInterface, expected one of {', '.join(self.others)}"
        )


def _register_modernbert(module) -> None:
    table = getattr(module, "MODERNBERT_ATTENTION_FUNCTION", None)  # transformers 5 has none: ModernBERT asks the interface
    if isinstance(table, dict):
        table[NAME] = modernbert_forward


def register() -> None:
    """Called by the import of locus.torch; does nothing until transformers is imported."""
    when_imported("transformers.modeling_utils", _register_attention)
    when_imported("transformers.masking_utils", _register_masks)
    when_imported("transformers.models.modernbert.modeling_modernbert", _register_modernbert)
    when_each_imported("transformers.models", _register_class)
