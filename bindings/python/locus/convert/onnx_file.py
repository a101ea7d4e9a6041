# SPDX-License-Identifier: Apache-2.0
"""Nodes and initializers of an ONNX file, from the protobuf wire format: nothing else need be installed."""

from dataclasses import dataclass, field

import numpy

from .folder import ConvertError

MOST_BYTES = 2**31  # protobuf's own limit
TYPES = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}
LISTS = {4: (1, "f4"), 5: (0, "i4"), 7: (0, "i8"), 10: (1, "f8"), 11: (0, "u8")}  # field: wire kind, numbers


@dataclass
class Node:
    name: str = ""
    kind: str = ""
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


@dataclass
class Graph:
    path: str
    nodes: list = field(default_factory=list)
    tensors: dict = field(default_factory=dict)


class _Reader:
    """Fields of one message: (number, wire type, value)."""

    def __init__(self, path, data):
        self.path, self.data = path, data

    def refuse(self, what):
        raise ConvertError(f"{self.path}: {what}, expected an ONNX file")

    def varint(self, at):
        value = shift = 0
        while True:
            if at >= len(self.data) or shift > 63:
                self.refuse("found a number that does not end")
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7

    def fields(self):
        at = 0
        while at < len(self.data):
            key, at = self.varint(at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = self.varint(at)
            else:
                if wire == 2:
                    size, at = self.varint(at)
                elif wire in (1, 5):
                    size = 8 if wire == 1 else 4
                else:
                    self.refuse(f"found wire type {wire}")
                if size > len(self.data) - at:
                    self.refuse("found a field that ends beyond its message")
                value, at = self.data[at : at + size], at + size
            yield number, wire, value

    def inner(self, value):
        if isinstance(value, int):
            self.refuse("found a number in place of a message")
        return _Reader(self.path, value)

    def text(self, value):
        if isinstance(value, int):
            self.refuse("found a number in place of a name")
        return bytes(value).decode("utf-8", "replace")


def _numbers(reader, wire, value):
    """Of a repeated integer field, packed or not."""
    if wire == 0:
        return [value]
    inner, found, at = reader.inner(value), [], 0
    while at < len(inner.data):
        number, at = inner.varint(at)
        found.append(number)
    return found


def _tensor(reader):
    name, kind, shape, raw, lists = "", 0, [], None, {}
    for number, wire, value in reader.fields():
        if number == 1:
            shape += _numbers(reader, wire, value)
        elif number == 2:
            kind = value
        elif number == 8:
            name = reader.text(value)
        elif number == 9:
            raw = reader.inner(value).data
        elif number == 14 and value == 1:
            raise ConvertError(f"{reader.path}: tensor {name}: found data in another file, expected it inside")
        elif number in LISTS:
            lists.setdefault(number, []).append((wire, value))
    if kind not in TYPES:
        return name, None  # strings and other things that are no weights
    count = 1
    for extent in shape:
        count *= extent
    if count > MOST_BYTES:
        reader.refuse(f"tensor {name}: found {count} numbers")
    if raw is not None:
        flat = numpy.frombuffer(raw, dtype="<" + TYPES[kind])
    else:
        flat = _listed(reader, kind, lists)
    if flat.size != count:
        reader.refuse(f"tensor {name}: found {flat.size} numbers for {count} places")
    return name, flat.reshape(shape)


def _listed(reader, kind, lists):
    parts = []
    for number, values in lists.items():
        for wire, value in values:
            if LISTS[number][0] == 1:
                parts.append(numpy.frombuffer(reader.inner(value).data, dtype="<" + LISTS[number][1]))
            else:
                numbers = numpy.array(_numbers(reader, wire, value), dtype="u8")
                parts.append(numbers.astype("u2").view("f2") if kind == 10 else numbers.view("i8"))
    return numpy.concatenate(parts).astype(TYPES[kind]) if parts else numpy.zeros(0, TYPES[kind])


def _node(reader):
    node, constant = Node(), None
    for number, _, value in reader.fields():
        if number == 1:
            node.inputs.append(reader.text(value))
        elif number == 2:
            node.outputs.append(reader.text(value))
        elif number == 3:
            node.name = reader.text(value)
        elif number == 4:
            node.kind = reader.text(value)
        elif number == 5:
            for inner, _, content in reader.inner(value).fields():
                if inner == 5:  # a tensor as attribute
                    constant = _tensor(reader.inner(content))[1]
    return node, constant


def read_graph(path):
    """The Graph of a file."""
    with open(path, "rb") as file:
        data = memoryview(file.read(MOST_BYTES + 1))
    if len(data) > MOST_BYTES:
        raise ConvertError(f"{path}: found more than {MOST_BYTES} bytes, expected an ONNX file")
    graph = Graph(str(path))
    for number, _, value in _Reader(path, data).fields():
        if number == 7:
            _read_parts(_Reader(path, data).inner(value), graph)
    if not graph.nodes:
        raise ConvertError(f"{path}: found no graph, expected an ONNX file")
    return graph


def _read_parts(reader, graph):
    for number, _, value in reader.fields():
        if number == 1:
            node, constant = _node(reader.inner(value))
            graph.nodes.append(node)
            if node.kind == "Constant" and constant is not None and node.outputs:
                graph.tensors[node.outputs[0]] = constant
        elif number == 5:
            name, tensor = _tensor(reader.inner(value))
            if tensor is not None:
                graph.tensors[name] = tensor
