# SPDX-License-Identifier: Apache-2.0
"""Peers that may be missing; then they say why."""

from __future__ import annotations

from typing import Optional

import torch

from .contest import Contest


def add_flex(contest: Contest, options, q, k, v, score, scale: Optional[float] = None) -> None:
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


def add_onnx(contest: Contest, q, k, v, bias) -> None:
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
