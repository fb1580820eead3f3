"""Nodes without a counterpart as opaque custom ops, so that the partition can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from .errors import Refused
from .node import OnnxNode
from .sizes import Shape
from .type_inference import infer
from .values import Item, Value, dtype_of

UNTYPED = (
    "no counterpart, and the type of its result is unknown: declare it in the graph's value_info "
    "(onnx.helper.make_tensor_value_info)"
)


def custom_op(node: OnnxNode) -> Sequence[Item]:
    """One node; its results' types are those that ONNX infers, or that the model declares."""
    operands = [x for x in node.inputs if isinstance(x, Value)]
    results: list[Item] = []
    inferred = infer(node)
    for i, name in enumerate(node.proto.output):
        if name:
            kind, shape = _type(node, i, inferred.get(name))
            results.append(Value(dtype_of(kind), shape, kind=kind))
        else:
            results.append(None)
    attributes = {k: v for k, v in node.attributes.items() if _is_plain(v) and k not in ("symbol", "expr")}
    name = f"{node.domain or 'onnx'}.{node.op}"
    node.emitter.custom(name, list(operands), attributes, [r for r in results if isinstance(r, Value)])
    return results


def _type(node: OnnxNode, i: int, inferred: onnx.TypeProto | None) -> tuple[int, Shape]:
    """Inferred, else declared; a size that neither says is a symbol, where the rank is inferred."""
    tensor = inferred.tensor_type if inferred is not None else onnx.TypeProto.Tensor()
    dims = tensor.shape.dim
    complete = tensor.HasField("shape") and all(d.HasField("dim_value") or d.dim_param for d in dims)
    if not complete:
        shape, kind = node.declared_shape(i), node.converter.declared_kind(node.scope, node.proto.output[i])
        if shape is not None and kind is not None:
            return kind, shape
    if not tensor.HasField("shape"):
        raise Refused(UNTYPED)
    return tensor.elem_type, node.converter.shape(node.scope.prefix + node.proto.output[i], tensor.shape)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(x, (int, float, str)) for x in value)
    return isinstance(value, (int, float, str))
