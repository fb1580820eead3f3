"""What ONNX says of a node: its results' types, or what is wrong with it (operand counts, attributes, axes, shapes)."""

from __future__ import annotations

import re

import onnx

from .errors import Invalid
from .function_body import resolved
from .node import OnnxNode
from .sizes import texts
from .values import Value

TOLERANT = ("Range",)  # inference refuses lists of one as its operands, which runtimes and ONNX's own functions take
SMALL = 64  # elements: operands up to here may decide a shape


def infer(node: OnnxNode) -> dict[str, onnx.TypeProto]:
    """Types of results by name; empty where ONNX infers none. Raises Invalid for a node against its op's schema."""
    schema = node.schema
    fits = schema is not None and not schema.deprecated and not node.has_graphs and node.op not in TOLERANT
    if schema is None or not fits or not all(isinstance(x, Value) or x is None for x in node.inputs):
        return {}
    operands = [(name, x) for name, x in zip(node.proto.input, node.inputs) if isinstance(x, Value)]
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in node.scope.opsets.items()]
    try:
        types = {name: onnx.helper.make_tensor_type_proto(x.kind, texts(x.shape)) for name, x in operands}
        data = {
            name: onnx.numpy_helper.from_array(x.elements)
            for name, x in operands
            if x.is_known and not x.is_symbolic and x.count <= SMALL
        }
        return onnx.shape_inference.infer_node_outputs(schema, resolved(node), types, data, opset_imports=opsets)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise Invalid(_said(str(error))) from None
    except Exception:  # noqa: BLE001 (inference that fails otherwise says nothing)
        return {}


def _said(text: str) -> str:
    """The first line, without `[ShapeInferenceError]`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^\[\w+\]\s*", "", lines[0]).rstrip(".") if lines else "ONNX refuses it"
