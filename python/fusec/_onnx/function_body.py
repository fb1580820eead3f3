"""Function bodies that ONNX defines for its own ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from .node import OnnxNode
from .sizes import texts
from .values import Item, Value


def function_body(node: OnnxNode) -> onnx.FunctionProto | None:
    """What ONNX says that an op of its own is made of, in ops of the same opset where it can."""
    schema: Any = node.schema  # whose stubs lack what is used here
    if schema is None:
        return None
    if schema.has_function:
        version = _fitting(schema.function_opset_versions, node)
        return _parsed(schema.get_function_with_opset_version(version))
    if schema.has_context_dependent_function:
        version = _fitting(schema.context_dependent_function_opset_versions, node)
        types = [_type_proto(x).SerializeToString() for x in node.inputs]
        try:
            made = schema.get_context_dependent_function_with_opset_version(
                version, resolved(node).SerializeToString(), types
            )
        except Exception:  # noqa: BLE001 (the package's own checks of the node)
            return None
        return _parsed(made) if made else None
    return None


def _parsed(text: bytes) -> onnx.FunctionProto:
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    return body


def _fitting(versions: Sequence[int], node: OnnxNode) -> int:
    """The body for the node's opset; one that is said for a later opset alone means the same."""
    return max([v for v in versions if v <= node.opset], default=min(versions))


def resolved(node: OnnxNode) -> onnx.NodeProto:
    """The node with attributes in place of references to those of a function."""
    if not any(a.ref_attr_name for a in node.proto.attribute):
        return node.proto
    made = onnx.NodeProto()
    made.CopyFrom(node.proto)
    for i in reversed(range(len(made.attribute))):
        if made.attribute[i].ref_attr_name:
            name = made.attribute[i].name
            del made.attribute[i]
            if name in node.attributes:
                made.attribute.append(onnx.helper.make_attribute(name, node.attributes[name]))
    return made


def _type_proto(item: Item) -> onnx.TypeProto:
    if isinstance(item, Value):
        return onnx.helper.make_tensor_type_proto(item.kind, texts(item.shape))
    if isinstance(item, list) and item:
        return onnx.helper.make_sequence_type_proto(_type_proto(item[0]))
    return onnx.TypeProto()
