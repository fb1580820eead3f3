"""Nodes without a counterpart as opaque custom ops, so that the partition can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from .errors import Refused
from .node import OnnxNode
from .sizes import Shape, texts
from .values import Item, Value, dtype_of


def custom_op(node: OnnxNode) -> Sequence[Item]:
    """One node; its results' types are those that ONNX infers, or that the model declares."""
    operands = [x for x in node.inputs if isinstance(x, Value)]
    results: list[Item] = []
    inferred = _inferred(node)
    for i, name in enumerate(node.proto.output):
        kind, shape = inferred.get(name) or _declared(node, i)
        results.append(Value(dtype_of(kind), shape, kind=kind))
    attributes = {k: v for k, v in node.attributes.items() if _is_plain(v) and k not in ("symbol", "expr")}
    name = f"{node.domain or 'onnx'}.{node.op}"
    node.emitter.custom(name, list(operands), attributes, [r for r in results if isinstance(r, Value)])
    return results


def _declared(node: OnnxNode, i: int) -> tuple[int, Shape]:
    shape, kind = node.declared_shape(i), node.converter.declared_kind(node.scope, node.proto.output[i])
    if shape is None or kind is None:
        raise Refused("no counterpart, and the type of its result is unknown: declare it in the graph's value_info")
    return kind, shape


def _inferred(node: OnnxNode) -> dict[str, tuple[int, Shape]]:
    if node.schema is None:
        return {}
    types = {
        name: onnx.helper.make_tensor_type_proto(x.kind, texts(x.shape))
        for name, x in zip(node.proto.input, node.inputs)
        if isinstance(x, Value)
    }
    data = {
        name: onnx.numpy_helper.from_array(x.elements)
        for name, x in zip(node.proto.input, node.inputs)
        if isinstance(x, Value) and x.is_known and not x.is_symbolic and x.count < 64
    }
    try:
        made = onnx.shape_inference.infer_node_outputs(
            node.schema, node.proto, types, data, opset_imports=[onnx.helper.make_opsetid("", node.opset)]
        )
    except Exception:  # noqa: BLE001 (inference that fails says nothing)
        return {}
    found = {}
    for name, kind in made.items():
        tensor = kind.tensor_type
        if tensor.HasField("shape") and all(d.HasField("dim_value") or d.dim_param for d in tensor.shape.dim):
            sizes = node.emitter.sizes
            dims = [d.dim_value if d.HasField("dim_value") else sizes.named(d.dim_param) for d in tensor.shape.dim]
            found[name] = tensor.elem_type, tuple(dims)
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(x, (int, float, str)) for x in value)
    return isinstance(value, (int, float, str))
