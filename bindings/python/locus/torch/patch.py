# SPDX-License-Identifier: Apache-2.0
"""``patch(model)``: the attention of Hugging Face models on Locus, in place.

    report = locus.torch.patch(model)     # swaps what it knows, tells what it left and why
    locus.torch.unpatch(model)

    with locus.torch.patched(model) as report:
        ...
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from dataclasses import dataclass, field
from typing import Optional

from torch import nn

from .adapter import watch_capturing

_BERT_LIKE = {
    "bert": ("BertSelfAttention", "BertSdpaSelfAttention"),
    "roberta": ("RobertaSelfAttention", "RobertaSdpaSelfAttention"),
    "camembert": ("CamembertSelfAttention", "CamembertSdpaSelfAttention"),
    "xlm_roberta": ("XLMRobertaSelfAttention", "XLMRobertaSdpaSelfAttention"),
    "xlm_roberta_xl": ("XLMRobertaXLSelfAttention", "XLMRobertaXLSdpaSelfAttention"),
    "roberta_prelayernorm": ("RobertaPreLayerNormSelfAttention",),
    "electra": ("ElectraSelfAttention",),
    "ernie": ("ErnieSelfAttention",),
    "megatron_bert": ("MegatronBertSelfAttention",),
    "bert_generation": ("BertGenerationSelfAttention",),
    "roc_bert": ("RoCBertSelfAttention",),
    "xmod": ("XmodSelfAttention",),
}

# (folder under transformers.models, modeling file, class) -> (adapter file, adapter)
KNOWN = {
    ("deberta", "modeling_deberta", "DisentangledSelfAttention"): ("deberta", "V1Attention"),
    ("deberta", "modeling_deberta", "DebertaEncoder"): ("deberta", "Encoder"),
    ("deberta_v2", "modeling_deberta_v2", "DisentangledSelfAttention"): ("deberta", "V2Attention"),
    ("deberta_v2", "modeling_deberta_v2", "DebertaV2Encoder"): ("deberta", "Encoder"),
    ("t5", "modeling_t5", "T5Attention"): ("t5", "T5Attention"),
    ("mt5", "modeling_mt5", "MT5Attention"): ("t5", "T5Attention"),
    ("longt5", "modeling_longt5", "LongT5Attention"): ("t5", "T5Attention"),
    ("pop2piano", "modeling_pop2piano", "Pop2PianoAttention"): ("t5", "T5Attention"),
    ("switch_transformers", "modeling_switch_transformers", "SwitchTransformersAttention"): ("t5", "T5Attention"),
    ("udop", "modeling_udop", "UdopAttention"): ("t5", "UdopAttention"),
    ("umt5", "modeling_umt5", "UMT5Attention"): ("t5", "UMT5Attention"),
    ("umt5", "modeling_umt5", "UMT5Block"): ("t5", "UMT5Block"),
    ("data2vec", "modeling_data2vec_text", "Data2VecTextSelfAttention"): ("bert", "SelfAttention"),
    ("data2vec", "modeling_data2vec_text", "Data2VecTextCrossAttention"): ("bert", "SelfAttention"),
    ("albert", "modeling_albert", "AlbertAttention"): ("albert", "Attention"),
    ("albert", "modeling_albert", "AlbertSdpaAttention"): ("albert", "Attention"),
    ("mpnet", "modeling_mpnet", "MPNetSelfAttention"): ("mpnet", "SelfAttention"),
    ("mpnet", "modeling_mpnet", "MPNetEncoder"): ("mpnet", "Encoder"),
    ("deprecated.transfo_xl", "modeling_transfo_xl", "RelPartialLearnableMultiHeadAttn"): (
        "transformer_xl",
        "Attention",
    ),
    ("xlnet", "modeling_xlnet", "XLNetRelativeAttention"): ("xlnet", "RelativeAttention"),
    ("wav2vec2_conformer", "modeling_wav2vec2_conformer", "Wav2Vec2ConformerSelfAttention"): (
        "wav2vec2_conformer",
        "SelfAttention",
    ),
    ("wav2vec2_bert", "modeling_wav2vec2_bert", "Wav2Vec2BertSelfAttention"): ("wav2vec2_bert", "SelfAttention"),
    ("seamless_m4t", "modeling_seamless_m4t", "SeamlessM4TConformerSelfAttention"): ("wav2vec2_conformer", "SelfAttention"),
    ("seamless_m4t_v2", "modeling_seamless_m4t_v2", "SeamlessM4Tv2ConformerSelfAttention"): (
        "seamless_m4t_v2",
        "SelfAttention",
    ),
    ("vits", "modeling_vits", "VitsAttention"): ("vits", "Attention"),
    ("wavlm", "modeling_wavlm", "WavLMAttention"): ("wavlm", "Attention"),
    ("sam", "modeling_sam", "SamVisionAttention"): ("sam", "VisionAttention"),
    ("sam", "modeling_sam", "SamVisionSdpaAttention"): ("sam", "VisionAttention"),
    ("sam_hq", "modeling_sam_hq", "SamHQVisionAttention"): ("sam", "VisionAttention"),
    ("sam_hq", "modeling_sam_hq", "SamHQVisionSdpaAttention"): ("sam", "VisionAttention"),
    ("got_ocr2", "modeling_got_ocr2", "GotOcr2VisionAttention"): ("sam", "VisionAttention"),
    ("seggpt", "modeling_seggpt", "SegGptAttention"): ("sam", "VisionAttention"),
    ("vitdet", "modeling_vitdet", "VitDetAttention"): ("sam", "VitDetAttention"),
    ("swin", "modeling_swin", "SwinSelfAttention"): ("swin", "SelfAttention"),
    ("swin", "modeling_swin", "SwinAttention"): ("swin", "Attention"),
    ("swinv2", "modeling_swinv2", "Swinv2SelfAttention"): ("swin", "CosineAttention"),
    ("swin2sr", "modeling_swin2sr", "Swin2SRSelfAttention"): ("swin", "CosineAttention"),
    ("donut", "modeling_donut_swin", "DonutSwinSelfAttention"): ("swin", "SelfAttention"),
    ("maskformer", "modeling_maskformer_swin", "MaskFormerSwinSelfAttention"): ("swin", "SelfAttention"),
    ("clap", "modeling_clap", "ClapAudioSelfAttention"): ("swin", "SelfAttention"),
    ("beit", "modeling_beit", "BeitSelfAttention"): ("beit", "SelfAttention"),
    ("beit", "modeling_beit", "BeitSdpaSelfAttention"): ("beit", "SelfAttention"),
    ("data2vec", "modeling_data2vec_vision", "Data2VecVisionSelfAttention"): ("beit", "SelfAttention"),
    ("data2vec", "modeling_data2vec_vision", "Data2VecVisionSdpaSelfAttention"): ("beit", "SelfAttention"),
    ("sew_d", "modeling_sew_d", "DisentangledSelfAttention"): ("deberta", "SewDAttention"),
    ("sew_d", "modeling_sew_d", "SEWDTransformerEncoder"): ("deberta", "Encoder"),
    ("speecht5", "modeling_speecht5", "SpeechT5Attention"): ("speecht5", "Attention"),
    ("speecht5", "modeling_speecht5", "SpeechT5RelativePositionalEncoding"): ("speecht5", "Encoding"),
    ("levit", "modeling_levit", "LevitAttention"): ("levit", "Attention"),
    ("levit", "modeling_levit", "LevitAttentionSubsample"): ("levit", "Subsample"),
    ("fastspeech2_conformer", "modeling_fastspeech2_conformer", "FastSpeech2ConformerAttention"): (
        "fastspeech2_conformer",
        "Attention",
    ),
    ("falcon", "modeling_falcon", "FalconAttention"): ("key_bias", "FalconAttention"),
    ("bloom", "modeling_bloom", "BloomAttention"): ("key_bias", "BloomAttention"),
    ("mpt", "modeling_mpt", "MptAttention"): ("key_bias", "MptAttention"),
}
KNOWN.update(
    {
        (folder, f"modeling_{folder}", name): ("bert", "SelfAttention")
        for folder, names in _BERT_LIKE.items()
        for name in (*names, names[0].replace("SelfAttention", "CrossAttention"))  # of transformers 5
    }
)


# ---- classes ----


def _module_name(folder: str, file: str) -> str:
    return f"transformers.models.{folder}.{file}"


_BY_CLASS = {(_module_name(folder, file), name): (folder, file, name) for folder, file, name in KNOWN}
_BY_NAME = {f"{folder.split('.')[-1]}_{name}": (folder, file, name) for folder, file, name in KNOWN}


@functools.lru_cache(maxsize=None)
def swapped_class(name: str) -> type:
    """The class `name` of locus.torch.swapped: an adapter in front of the class it stands for."""
    folder, file, original = _BY_NAME[name]
    adapter_file, adapter = KNOWN[folder, file, original]
    base = getattr(importlib.import_module(_module_name(folder, file)), original)
    mixin = getattr(importlib.import_module(f"{__package__}.{adapter_file}"), adapter)
    # Module and qualified name make pickle find the class again: see swapped.py.
    names = {"__module__": f"{__package__}.swapped", "__qualname__": name, "locus_original": base, "locus_adapter": mixin}
    watch_capturing()
    return type(f"Locus{original}", (mixin, base), dict(names, locus_names=_parameters(base.forward)))


def _parameters(forward) -> tuple:
    """Names of the parameters that a call may give by place, self left out."""
    found = list(inspect.signature(forward).parameters.values())[1:]
    return tuple(one.name for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))


def _candidate(module: nn.Module) -> Optional[type]:
    """The class to put in place of this module's own; None: not one we know."""
    key = _BY_CLASS.get((type(module).__module__, type(module).__qualname__))
    return None if key is None else swapped_class(f"{key[0].split('.')[-1]}_{key[2]}")


def is_patched(module: nn.Module) -> bool:
    return hasattr(type(module), "locus_original")


def _unfit(module: nn.Module, new: type) -> Optional[str]:
    reason = new.locus_adapter.unfit(_parameters(new.locus_original.forward))
    return new.locus_adapter.refuse(module) if reason is None else f"{reason}: another version of transformers"


def _looks_like_attention(module: nn.Module) -> bool:
    """Attention that we do not know. Wrappers around attention that we do know are not meant."""
    if not type(module).__name__.lower().endswith(("attention", "attn")):
        return False
    return not any(is_patched(child) or _candidate(child) or _looks_like_attention(child) for child in module.children())


# ---- reports ----


@dataclass(frozen=True)
class Entry:
    name: str  # of the module in the model
    kind: str  # its original class
    note: str  # the scheme it runs, or why it was left alone


@dataclass
class Report:
    """What patch did: ``swapped`` and ``left``."""

    model: str
    swapped: list = field(default_factory=list)
    left: list = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.model}: {len(self.swapped)} modules swapped, {len(self.left)} left as they are"]
        for title, entries in (("swapped", self.swapped), ("left", self.left)):
            groups: dict = {}
            for entry in entries:
                groups.setdefault((entry.kind, entry.note), []).append(entry.name)
            for (kind, note), names in groups.items():
                lines.append(f"  {title}: {len(names)} x {kind}: {note} ({names[0]}{', ...' if len(names) > 1 else ''})")
        return "\n".join(lines)


# ---- what users call ----


def patch(model: nn.Module, strict: bool = False) -> Report:
    """Swap the attention of `model` in place. ValueError: nothing in it is known, or, if strict, anything was left."""
    report = Report(type(model).__name__)
    planned, left = _sorted_out(model, report)
    # The parts of some families speak of masks and positions among themselves: all of them are swapped, or none.
    broken = {_family(new) for _, _, new, reason in left} & {_family(new) for _, _, new in planned if new.locus_adapter.together}
    for name, module, new, reason in left:
        report.left.append(Entry(name, type(module).__name__, reason))
    for name, module, new in planned:
        if _family(new) in broken:
            report.left.append(Entry(name, type(module).__name__, "another part of its family is left as it is"))
        else:
            report.swapped.append(Entry(name, type(module).__name__, new.locus_adapter.used_scheme(module)))
    if not report.swapped or (strict and report.left):
        families = ", ".join(sorted({folder.split(".")[-1] for folder, _, _ in KNOWN}))
        raise ValueError(f"{report}\nknown families: {families}")
    for _, module, new in planned:
        if _family(new) not in broken:
            module.__class__ = new
    return report


def _family(new: type) -> str:
    return new.locus_original.__module__


def _sorted_out(model: nn.Module, report: Report) -> tuple:
    """(name, module, class to come) of what can be swapped, the same and why not of what can not; the rest is reported."""
    planned, left = [], []
    for name, module in model.named_modules():
        if is_patched(module):
            adapter = type(module).locus_adapter
            report.swapped.append(Entry(name, type(module).locus_original.__name__, adapter.used_scheme(module)))
            continue
        new = _candidate(module)
        if new is None:
            if _looks_like_attention(module):
                report.left.append(Entry(name, type(module).__name__, "no adapter for this class"))
            continue
        reason = _unfit(module, new)
        if reason is not None and any(is_patched(child) or _candidate(child) for child in module.children()):
            continue  # a wrapper of transformers 4 whose name is that of attention itself in 5 (Swin)
        if reason is not None:
            left.append((name, module, new, reason))
        else:
            planned.append((name, module, new))
    return planned, left


def unpatch(model: nn.Module) -> int:
    """Put the original classes back. Returns how many modules had been swapped."""
    count = 0
    for module in model.modules():
        if is_patched(module):
            module.__class__ = type(module).locus_original
            count += 1
    return count


@contextlib.contextmanager
def patched(model: nn.Module, strict: bool = False):
    """Swapped inside the block; afterwards every module has the class that it had before."""
    before = {id(module) for module in model.modules() if is_patched(module)}
    report = patch(model, strict)
    try:
        yield report
    finally:
        for module in model.modules():
            if is_patched(module) and id(module) not in before:
                module.__class__ = type(module).locus_original
