"""A graph that turns int8 weights into float32 before it multiplies, made into one that multiplies by them as they are.

A short query is bound by reading the weights, and as float32 they are four times as many bytes. MatMulNBits, an
operator of onnxruntime, takes 8-bit weights in blocks that have a scale each. int8 weights with a scale a column are a
case of that, so no weight is rounded again. What differs are the activations, which are rounded to 8 bits block by
block: a text's vector does not depend on its batch, as it does when one scale is taken from the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_opsetid
from onnx.numpy_helper import from_array, to_array

BLOCK = 32
"""Rows of a weight that share a scale. 128 would be faster, but two threads then give other bits than one."""
ACCURACY = 4
"""The operator's `accuracy_level` at which activations too are 8 bits wide."""


def repack(model: bytes) -> bytes:
    """The ONNX `model` with its int8 weights multiplied as such and its embeddings turned into float32 row by row.

    Deterministic. Raises ValueError when no MatMul of it is by int8 weights [rows, columns] with a scale a column.
    """
    proto = ModelProto.FromString(model)
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    weights = _int8_weights(proto.graph.node, tensors)
    nodes: list[NodeProto] = []
    made: list[TensorProto] = []
    for node in proto.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights:
            values, scale = (to_array(tensors[name]) for name in weights[node.input[1]])
            packed = _packed(node.input[1], values, scale)
            made.extend(packed)
            nodes.append(_product(node, packed, values.shape))
        elif node.op_type == "Gather" and node.input[0] in weights:
            nodes.extend(_rows(node, *weights[node.input[0]]))
        else:
            nodes.append(node)
    if not made:
        raise ValueError("expected a MatMul by int8 weights with a scale a column, found none")
    nodes = _read(nodes, [output.name for output in proto.graph.output])
    names = {name for node in nodes for name in node.input}
    _replace(proto.graph.node, nodes)
    _replace(proto.graph.initializer, [each for each in [*tensors.values(), *made] if each.name in names])
    _replace(proto.graph.value_info, [])  # they name tensors that are gone, and nothing needs them
    proto.opset_import.append(make_opsetid("com.microsoft", 1))
    return proto.SerializeToString(deterministic=True)


def _int8_weights(nodes: Iterable[NodeProto], tensors: Mapping[str, TensorProto]) -> dict[str, tuple[str, str]]:
    """Initializers (values, scale) by the name of `Mul(Cast(values), scale)`."""
    casts = {node.output[0]: node.input[0] for node in nodes if node.op_type == "Cast" and node.input[0] in tensors}
    return {
        node.output[0]: (casts[node.input[0]], node.input[1])
        for node in nodes
        if node.op_type == "Mul" and node.input[0] in casts and node.input[1] in tensors
    }


def _packed(name: str, values: NDArray[Any], scale: NDArray[Any]) -> tuple[TensorProto, TensorProto]:
    """Weights uint8 [columns, blocks, BLOCK], 128 for zero, and scales float32 [columns x blocks]."""
    rows, columns = values.shape
    if values.dtype != np.int8 or scale.shape != (1, columns) or rows % BLOCK:
        raise ValueError(f"{name}: expected int8 with a scale a column and rows in blocks of {BLOCK}")
    blocks = rows // BLOCK
    unsigned = (values.astype(np.int16) + 128).astype(np.uint8).T.reshape(columns, blocks, BLOCK)
    return (
        from_array(np.ascontiguousarray(unsigned), f"{name}_blocks"),
        from_array(np.repeat(scale[0], blocks), f"{name}_scales"),
    )


def _product(node: NodeProto, packed: tuple[TensorProto, TensorProto], shape: tuple[int, ...]) -> NodeProto:
    return make_node(
        "MatMulNBits",
        [node.input[0], *(tensor.name for tensor in packed)],
        list(node.output),
        name=node.name,
        domain="com.microsoft",
        K=shape[0],
        N=shape[1],
        bits=8,
        block_size=BLOCK,
        accuracy_level=ACCURACY,
    )


def _rows(node: NodeProto, values: str, scale: str) -> list[NodeProto]:
    """Gather first, then turn into float32: the same products, of the rows that are needed only."""
    output = node.output[0]
    return [
        make_node("Gather", [values, node.input[1]], [f"{output}_int8"], axis=0),
        make_node("Cast", [f"{output}_int8"], [f"{output}_float"], to=TensorProto.FLOAT),
        make_node("Gather", [scale, node.input[1]], [f"{output}_scale"], axis=0),
        make_node("Mul", [f"{output}_float", f"{output}_scale"], [output]),
    ]


def _read(nodes: Iterable[NodeProto], outputs: Iterable[str]) -> list[NodeProto]:
    """The nodes whose results are read, of `nodes` in topological order."""
    wanted = set(outputs)
    kept: list[NodeProto] = []
    for node in reversed(list(nodes)):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]


def _replace(field: Any, values: Iterable[Any]) -> None:
    del field[:]
    field.extend(values)
