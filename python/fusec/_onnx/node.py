"""A node of an ONNX graph as handlers see it: operands resolved, attributes with their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto

from .emitter import Emitter
from .errors import Invalid, Refused
from .sizes import Dim, Shape, Size
from .values import Array, Item, Value

if TYPE_CHECKING:
    from .convert import Converter
    from .scope import Scope


class OnnxNode:
    """One node in its scope."""

    def __init__(self, converter: Converter, scope: Scope, proto: onnx.NodeProto) -> None:
        self.converter = converter
        self.scope = scope
        self.proto = proto
        self.op = proto.op_type
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.opset = scope.opset(self.domain)
        self.schema = schema_of(self.op, self.opset, self.domain)
        self.version = self.schema.since_version if self.schema else self.opset
        self.has_graphs = any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in proto.attribute)
        self.inputs: list[Item] = [scope.find(name) if name else None for name in proto.input]
        self.attributes = self._attributes()

    @property
    def emitter(self) -> Emitter:
        return self.converter.emitter

    @property
    def name(self) -> str:
        return self.proto.name or next((o for o in self.proto.output if o), self.op)

    def _attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, attribute in (self.schema.attributes if self.schema else {}).items():
            if attribute.default_value.type != AttributeProto.UNDEFINED:
                found[name] = _plain(attribute.default_value)
        for proto in self.proto.attribute:
            if proto.ref_attr_name:
                given = self.scope.attributes.get(proto.ref_attr_name)
                if given is not None:
                    found[proto.name] = given
            else:
                found[proto.name] = _plain(proto)
        return found

    # --- attributes

    def has(self, name: str) -> bool:
        return name in self.attributes

    def integer(self, name: str, default: int = 0) -> int:
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str = "") -> str:
        return str(self.attributes.get(name, default))

    def integers(self, name: str, default: list[int] | None = None) -> list[int]:
        found = self.attributes.get(name, default)
        if found is None:
            raise Refused(f"the attribute {name} is missing")
        return [int(x) for x in found]

    def axis(self, rank: int, default: int = 0, name: str = "axis") -> int:
        return from_front(self.integer(name, default), rank)

    # --- operands and results

    def __len__(self) -> int:
        return len(self.inputs)

    def get(self, index: int) -> Value | None:
        item = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(item, list):
            raise Refused("a sequence, where a tensor is expected")
        return item

    def tensor(self, index: int) -> Value:
        value = self.get(index)
        if value is None:
            raise Refused(f"operand {index} is absent")
        return value

    def tensors(self) -> list[Value]:
        return [self.tensor(i) for i in range(len(self.inputs))]

    def known(self, index: int) -> Array:
        """The elements of an operand that must be known while the model is imported."""
        value = self.tensor(index)
        if not value.is_known:
            self.converter.need(value, self.operand_name(index))
        return value.elements

    def operand_name(self, index: int) -> str:
        return str(self.proto.input[index])

    def dims(self, index: int) -> list[Dim]:
        """A list of sizes, perhaps symbolic."""
        return [x if isinstance(x, Size) else int(x) for x in self.known(index).reshape(-1).tolist()]

    def whole(self, index: int) -> list[int]:
        """A list of integers."""
        found = self.dims(index)
        if any(isinstance(x, Size) for x in found):
            raise Refused(f"the operand {self.operand_name(index)} has symbolic sizes {found}: fix them with dims=")
        return [x for x in found if isinstance(x, int)]

    def single(self, index: int) -> int:
        """An integer, as a scalar or as a list of one."""
        found = self.whole(index)
        if len(found) != 1:
            raise Invalid(f"the operand {self.operand_name(index)} has {len(found)} elements, where one is expected")
        return found[0]

    def axes(self, index: int = 1, name: str = "axes") -> list[int] | None:
        """Axes as the model has them: an attribute of older versions, an operand of newer ones. None: absent."""
        if self.has(name):
            return self.integers(name)
        return self.whole(index) if self.get(index) is not None else None

    def uses(self, output: int) -> bool:
        return output < len(self.proto.output) and self.proto.output[output] != ""

    def declared_shape(self, output: int = 0) -> Shape | None:
        """The shape that the model itself gives a result."""
        return self.converter.declared_shape(self.scope, self.proto.output[output])


def from_front(axis: int, rank: int) -> int:
    """The axis counted from the first one. A scalar has the axes 0 and -1."""
    count = max(rank, 1)
    if not -count <= axis < count:
        raise Invalid(f"the axis {axis} of a tensor of rank {rank}")
    return axis % count


def schema_of(op: str, opset: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def _plain(attribute: AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return [x.decode("utf-8", "replace") for x in value]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value
