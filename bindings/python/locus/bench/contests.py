# SPDX-License-Identifier: Apache-2.0
"""What is measured. A contest is one function, computed by Locus and by its peers from the same tensors.

A contestant is a callable without arguments that returns the output; `inputs` are the tensors whose gradients a training
step wants. Peers that can not run say why instead of being left out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Callable, Optional

import torch
from torch.nn import functional

import locus.torch


@dataclass
class Contest:
    name: str
    inputs: list  # tensors with gradients
    exact: Callable  # the output in double
    runs: dict = field(default_factory=dict)  # contestant -> callable; "locus" is one of them
    forward_only: set = field(default_factory=set)
    absent: dict = field(default_factory=dict)  # contestant -> why


@dataclass(frozen=True)
class Shape:
    batch: int
    heads: int
    tokens: int
    width: int


def _qkv(shape: Shape):
    """Views of [B,T,H,D], as a model has them."""
    sizes = (shape.batch, shape.tokens, shape.heads, shape.width)
    return [torch.randn(sizes).transpose(1, 2).requires_grad_() for _ in range(3)]


def _double(q, k, v, bias=None, scale=None):
    with torch.no_grad():
        mask = None if bias is None else bias.double()
        return functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask, scale=scale)


def _sdpa(q, k, v, bias=None, scale=None):
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)


def plain(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape)
    contest = Contest("plain", [q, k, v], lambda: _double(q, k, v))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v)
    return contest


def dense_bias(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape)
    bias = torch.randn(1, shape.heads, shape.tokens, shape.tokens)
    contest = Contest("dense bias", [q, k, v], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, bias_dense=bias)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v, bias)
    _add_onnx(contest, q, k, v, bias)
    return contest


def learned_bias(shape: Shape, options) -> Contest:
    """A dense bias with a gradient: torch leaves its fused kernel."""
    q, k, v = _qkv(shape)
    bias = torch.randn(1, shape.heads, shape.tokens, shape.tokens, requires_grad=True)
    contest = Contest("dense bias, learned", [q, k, v, bias], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, bias_dense=bias)
    contest.runs["torch SDPA"] = lambda: _sdpa(q, k, v, bias)
    return contest


def t5(shape: Shape, options) -> Contest:
    from transformers.models.t5.modeling_t5 import T5Attention

    q, k, v = _qkv(shape)
    table = torch.randn(32, shape.heads, requires_grad=True)
    index = torch.arange(shape.tokens)
    bucket = T5Attention._relative_position_bucket(index[None] - index[:, None])

    def bias():
        return table[bucket].permute(2, 0, 1)[None]

    contest = Contest("T5 table", [q, k, v, table], lambda: _double(q, k, v, bias().detach(), 1.0))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, scheme="t5", bias=table)
    contest.runs["torch SDPA, table gathered"] = lambda: _sdpa(q, k, v, bias(), 1.0)

    def score(logit, b, h, m, n):
        return logit + table[bucket[m, n], h]

    _add_flex(contest, options, q, k, v, score, 1.0)
    return contest


def alibi(shape: Shape, options) -> Contest:
    q, k, v = _qkv(shape)
    slopes = torch.exp2(-8 * (torch.arange(shape.heads) + 1) / shape.heads)
    index = torch.arange(shape.tokens)
    bias = (-slopes[:, None, None] * (index[:, None] - index[None]).abs())[None]
    contest = Contest("ALiBi", [q, k, v], lambda: _double(q, k, v, bias))
    contest.runs["locus"] = lambda: locus.torch.attend(q, k, v, scheme="alibi", slopes=slopes)
    contest.runs["torch SDPA, dense"] = lambda: _sdpa(q, k, v, bias)
    _add_flex(contest, options, q, k, v, lambda logit, b, h, m, n: logit - slopes[h] * (m - n).abs())
    return contest


# ---- whole modules of transformers, projections included ----


def _module(name: str, module, call) -> Contest:
    """The same module unpatched and patched."""
    double = copy.deepcopy(module).double()
    swapped = copy.deepcopy(module)
    locus.torch.patch(swapped, strict=True)
    for mine, theirs in zip(swapped.parameters(), module.parameters()):
        mine.data = theirs.data
    states = call["hidden_states"].requires_grad_()

    def exact():
        with torch.no_grad(), locus.torch.original_code():
            wide = {key: x.double() if torch.is_tensor(x) and x.is_floating_point() else x for key, x in call.items()}
            return double(**wide)[0]

    inputs = [states, *swapped.parameters(), *module.parameters()]
    contest = Contest(name, inputs, exact)
    contest.runs["locus"] = lambda: swapped(**call)[0]
    contest.runs["transformers, eager"] = lambda: module(**call)[0]
    return contest


def deberta(shape: Shape, options) -> Contest:
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

    config = DebertaV2Config(
        hidden_size=shape.heads * shape.width,
        num_attention_heads=shape.heads,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        share_att_key=True,
        max_position_embeddings=512,
    )
    module = DisentangledSelfAttention(config).eval()
    call = dict(
        hidden_states=torch.randn(shape.batch, shape.tokens, config.hidden_size),
        attention_mask=torch.ones(shape.batch, 1, shape.tokens, shape.tokens, dtype=torch.bool),
        rel_embeddings=torch.randn(512, config.hidden_size),
    )
    return _module("DeBERTa-v3 module", module, call)


def bert(shape: Shape, options) -> Contest:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertSelfAttention

    config = BertConfig(
        hidden_size=shape.heads * shape.width,
        num_attention_heads=shape.heads,
        position_embedding_type="relative_key_query",
        max_position_embeddings=max(512, shape.tokens),
    )
    call = dict(hidden_states=torch.randn(shape.batch, shape.tokens, config.hidden_size))
    return _module("BERT relative_key_query module", BertSelfAttention(config).eval(), call)


def conformer(shape: Shape, options) -> Contest:
    from transformers import Wav2Vec2ConformerConfig
    from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerSelfAttention

    width = shape.heads * shape.width
    config = Wav2Vec2ConformerConfig(
        hidden_size=width, num_attention_heads=shape.heads, position_embeddings_type="relative"
    )
    call = dict(
        hidden_states=torch.randn(shape.batch, shape.tokens, width),
        relative_position_embeddings=torch.randn(1, 2 * shape.tokens - 1, width),
    )
    return _module("Conformer module", Wav2Vec2ConformerSelfAttention(config).eval(), call)


CONTESTS = {
    "plain": plain,
    "dense": dense_bias,
    "learned": learned_bias,
    "t5": t5,
    "alibi": alibi,
    "deberta": deberta,
    "bert": bert,
    "conformer": conformer,
}


# ---- peers that may be missing ----


def _add_flex(contest: Contest, options, q, k, v, score, scale: Optional[float] = None) -> None:
    """FlexAttention has no backward pass on CPUs."""
    if not options.flex:
        contest.absent["compiled FlexAttention"] = "not wanted (--no-flex)"
        return
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.reset()
    compiled = torch.compile(flex_attention)
    inputs = [x.detach() for x in (q, k, v)]

    def run():
        with torch.no_grad():
            return compiled(*inputs, score_mod=score, scale=scale)

    try:
        run()
    except Exception as error:  # whatever its compiler raises, it is the peer's reason
        contest.absent["compiled FlexAttention"] = str(error).strip().splitlines()[0][:120]
        return
    contest.runs["compiled FlexAttention"] = run
    contest.forward_only.add("compiled FlexAttention")


def _add_onnx(contest: Contest, q, k, v, bias) -> None:
    try:
        import onnxruntime
        from onnx import TensorProto, checker, helper
    except ImportError as error:
        contest.absent["ONNX Runtime"] = str(error)
        return

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4)

    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["product"]),
        helper.make_node("Mul", ["product", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["out"]),
    ]
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [q.shape[-1] ** -0.5])
    names = ("q", "k", "v", "bias")
    graph = helper.make_graph(nodes, "attention", [value(name) for name in names], [value("out")], [scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    feed = {name: x.detach().contiguous().numpy() for name, x in zip(names, (q, k, v, bias))}
    contest.runs["ONNX Runtime"] = lambda: torch.from_numpy(session.run(["out"], feed)[0])
    contest.forward_only.add("ONNX Runtime")
