# SPDX-License-Identifier: Apache-2.0
"""The contests as graphs of ONNX Runtime, an optional peer that says why where it can not run.

Inputs and output are bound to memory of torch's, so nothing is copied; all optimisations are on, and tables that all heads
share are constants, which the session packs when it starts. Forward only.
"""

from __future__ import annotations

import torch

from .contest import Contest
from .distance import by_distance

CONTRIBUTED = "com.microsoft"


def version() -> str:
    """Of ONNX Runtime; empty where it is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return ""
    return onnxruntime.__version__


class Graph:
    """Nodes as expressions: every method returns the name of its result."""

    def __init__(self):
        self.nodes, self.inputs, self.constants = [], {}, []

    def node(self, op: str, *inputs: str, **attributes) -> str:
        from onnx import helper

        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def input(self, tensor: torch.Tensor) -> str:
        name = f"in{len(self.inputs)}"
        self.inputs[name] = tensor.detach().contiguous()
        return name

    def constant(self, tensor: torch.Tensor) -> str:
        from onnx import numpy_helper

        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(tensor.detach().contiguous().numpy(), name))
        return name

    def numbers(self, *values: int) -> str:
        return self.constant(torch.tensor(values))

    def number(self, value: float) -> str:
        return self.constant(torch.tensor(value, dtype=torch.float32))

    # ---- what contests share ----

    def products(self, x: str, y: str) -> str:
        """x yᵀ over the last two of four axes; the session fuses the two nodes."""
        return self.node("MatMul", x, self.node("Transpose", y, perm=[0, 1, 3, 2]))

    def weights(self, scores: str, scale: float) -> str:
        return self.node("Softmax", self.node("Mul", scores, self.number(scale)), axis=-1)

    def skew(self, strip: str, shape) -> str:
        """[B,H,T,2T] by distance as [B,H,T,T] by key, as distance.skew does it."""
        rows = (shape.batch, shape.heads)
        flat = self.node("Reshape", strip, self.numbers(*rows, 2 * shape.tokens**2))
        inner = self.node(
            "Slice", flat, self.numbers(shape.tokens - 1), self.numbers(2 * shape.tokens**2 - 1), self.numbers(2)
        )
        slanted = self.node("Reshape", inner, self.numbers(*rows, shape.tokens, 2 * shape.tokens - 1))
        return self.node("Slice", slanted, self.numbers(0), self.numbers(shape.tokens), self.numbers(3))

    def unskew(self, weights: str, shape) -> str:
        """The way back: [B,H,T,T] by key as [B,H,T,2T] by distance, zero where there is no key."""
        rows, tokens = (shape.batch, shape.heads), shape.tokens
        wide = self.node("Pad", weights, self.numbers(*[0] * 7, tokens - 1))
        flat = self.node("Reshape", wide, self.numbers(*rows, tokens * (2 * tokens - 1)))
        strip = self.node("Pad", flat, self.numbers(0, 0, tokens - 1, 0, 0, 1))
        return self.node("Reshape", strip, self.numbers(*rows, tokens, 2 * tokens))


def _model(graph: Graph, result: str) -> bytes:
    from onnx import TensorProto, helper

    kinds = {torch.float32: TensorProto.FLOAT, torch.int32: TensorProto.INT32}
    inputs = [helper.make_tensor_value_info(name, kinds[x.dtype], x.shape) for name, x in graph.inputs.items()]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    described = helper.make_graph(graph.nodes, "attention", inputs, outputs, graph.constants)
    domains = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIBUTED, 1)]
    return helper.make_model(described, opset_imports=domains, ir_version=9).SerializeToString()


def _session(model: bytes):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    settings.intra_op_num_threads = torch.get_num_threads()
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])


class _Run:
    """A session on the tensors of a contest; like everybody it gives its output in new memory."""

    def __init__(self, graph: Graph, result: str, sizes: tuple):
        self.inputs = graph.inputs  # bound by address: they have to live as long as the binding
        self.result, self.sizes = result, sizes
        self.session = _session(_model(graph, result))
        self.binding = self.session.io_binding()
        for name, x in graph.inputs.items():
            self.binding.bind_input(name, "cpu", 0, x.numpy().dtype, list(x.shape), x.data_ptr())
        self()

    def __call__(self) -> torch.Tensor:
        out = torch.empty(self.sizes)
        self.binding.bind_output(self.result, "cpu", 0, out.numpy().dtype, self.sizes, out.data_ptr())
        self.session.run_with_iobinding(self.binding)
        return out


def add_onnx(contest: Contest, label: str, shape, build, *, by_token: bool = False) -> None:
    """`build` takes a Graph and returns the name of the output, [B,H,T,D], or [B,T,H·D] with `by_token`."""
    label = f"ONNX Runtime, {label}"
    if not version():
        contest.absent[label] = "onnxruntime or onnx is not installed (pip install locus-attention[bench])"
        return
    by_head = (shape.batch, shape.heads, shape.tokens, shape.width)
    graph = Graph()
    try:
        run = _Run(graph, build(graph), (shape.batch, shape.tokens, shape.hidden) if by_token else by_head)
        contest.runs[label] = run
        if by_token:
            contest.runs[label] = lambda: run().unflatten(-1, by_head[1::2]).transpose(1, 2)
        contest.forward_only.add(label)
    except Exception as error:  # whatever the runtime raises, it is the peer's reason
        contest.absent[label] = str(error).strip().splitlines()[0][:120]


# ---- plain attention and biases ----


def add_plain(contest: Contest, shape, q, k, v, bias=None, scale=None) -> None:
    """Its own fused operator on [B,T,H·D], and products with softmax between."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale

    def fused(graph):
        inputs = [graph.input(x.transpose(1, 2).flatten(2)) for x in (q, k, v)]
        if bias is not None:
            inputs += ["", "", graph.input(bias)]
        return graph.node("MultiHeadAttention", *inputs, domain=CONTRIBUTED, num_heads=shape.heads, scale=scale)

    def products(graph):
        scores = graph.node("Mul", graph.products(graph.input(q), graph.input(k)), graph.number(scale))
        if bias is not None:
            scores = graph.node("Add", scores, graph.input(bias))
        return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), graph.input(v))

    add_onnx(contest, "MultiHeadAttention", shape, fused, by_token=True)
    add_onnx(contest, "products", shape, products)


# ---- tables by distance ----


def add_shaw(contest: Contest, shape, q, k, v, rel_k, rel_v, row) -> None:
    """A row per distance, slanted into place; weights slanted back."""
    rows = by_distance(row)

    def build(graph):
        queries = graph.input(q)
        strip = graph.node("MatMul", queries, graph.constant(rel_k[rows].T))
        scores = graph.node("Add", graph.products(queries, graph.input(k)), graph.skew(strip, shape))
        weights = graph.weights(scores, q.shape[-1] ** -0.5)
        values = graph.node("MatMul", graph.unskew(weights, shape), graph.constant(rel_v[rows]))
        return graph.node("Add", graph.node("MatMul", weights, graph.input(v)), values)

    add_onnx(contest, "skewed", shape, build)


def add_transformer_xl(contest: Contest, shape, q, k, v, table, u, w) -> None:
    """`table` [H,2T,D] ascends with the key: its first row is that of the farthest key before the query."""

    def build(graph):
        queries = graph.input(q)
        content = graph.node("Add", queries, graph.constant(u[:, None]))
        position = graph.node("Add", queries, graph.constant(w[:, None]))
        strip = graph.node("MatMul", position, graph.input(table.transpose(-1, -2)))
        scores = graph.node("Add", graph.products(content, graph.input(k)), graph.skew(strip, shape))
        return graph.node("MatMul", graph.weights(scores, q.shape[-1] ** -0.5), graph.input(v))

    add_onnx(contest, "skewed", shape, build)


def add_deberta(contest: Contest, shape, q, k, v, rel_k, rel_q, row) -> None:
    """As an exported model has it, every row of the tables looked up by pair; and with a row per distance, slanted."""
    scale = (3 * q.shape[-1]) ** -0.5

    def look_up(graph, x, table, index):
        strip = graph.node("MatMul", x, graph.input(table.transpose(-1, -2)))
        pairs = graph.input(index.int().expand(shape.batch, shape.heads, -1, -1))
        return graph.node("GatherElements", strip, pairs, axis=-1)

    def slant(graph, x, table, index):
        rows = table[:, by_distance(index)]
        return graph.skew(graph.node("MatMul", x, graph.input(rows.transpose(-1, -2))), shape)

    def build(look):
        def graph_of(graph):
            queries, keys = graph.input(q), graph.input(k)
            to_position, to_content = (
                look(graph, *term) for term in ((queries, rel_k, row), (keys, rel_q, row.T))
            )
            position = graph.node("Add", to_position, graph.node("Transpose", to_content, perm=[0, 1, 3, 2]))
            scores = graph.node("Add", graph.products(queries, keys), position)
            return graph.node("MatMul", graph.weights(scores, scale), graph.input(v))

        return graph_of

    add_onnx(contest, "looked up", shape, build(look_up))
    add_onnx(contest, "skewed", shape, build(slant))
