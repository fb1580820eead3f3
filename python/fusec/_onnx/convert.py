"""Walks an ONNX graph and makes nodes of the format: folds what is known, maps ops, takes functions apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from . import handlers as _handlers  # noqa: F401 (fills HANDLERS)
from .custom_ops import custom_op
from .emitter import Emitter
from .errors import Problem, Refused, ValueNeeded
from .fold import fold
from .function_body import function_body
from .initializers import Initializers
from .node import OnnxNode
from .registry import HANDLERS, Results
from .rows import ROWS, row_results
from .scope import Missing, Scope
from .sizes import Shape, Sizes
from .values import PACKED, Item, Value, dtype_of, known


class Fix(Exception):
    """Elements of these graph inputs decide a shape: start again with the caller's arrays in their place."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)


class Converter:
    """One conversion of one model.

    ``given``: the caller's shapes and arrays, by input; ``fixed``: inputs whose array stands in their place.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        initializers: Initializers,
        sizes: Sizes,
        given: Mapping[str, Any],
        fixed: set[str],
        allow_custom: bool,
    ) -> None:
        self.model = model
        self.initializers = initializers
        self.sizes = sizes
        self.given = given
        self.fixed = fixed
        self.allow_custom = allow_custom
        self.emitter = Emitter(sizes)
        self.problems: list[Problem] = []
        self.functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        self.inputs: list[Value] = []
        self._declared: dict[str, onnx.TypeProto] = {}

    def run(self) -> list[Item]:
        """The graph's outputs. Inputs are in ``inputs``, what could not be mapped is in ``problems``."""
        graph = self.model.graph
        scope = Scope({o.domain: o.version for o in self.model.opset_import}, is_main=True)
        for info in [*graph.value_info, *graph.output]:
            self._declared[info.name] = info.type
        self.add_initializers(scope, graph)
        for info in graph.input:
            if info.name not in scope.values:
                try:
                    scope.values[info.name] = self._input(info)
                except Missing:
                    scope.missing.add(info.name)
        self.run_nodes(scope, graph.node, [o.name for o in graph.output])
        outputs: list[Item] = []
        for info in graph.output:
            try:
                outputs.append(scope.find(info.name))
            except Missing:
                pass
            except Refused as refused:
                self.problems.append(Problem("output", "ai.onnx", scope.opset(""), info.name, str(refused)))
        return outputs

    # --- inputs and initializers

    def example(self, name: str) -> Any:
        """What the caller gave for an input, or for an element of a sequence: ``name.0``, ``name.1``, ..."""
        if name in self.given:
            return self.given[name]
        of, _, place = name.rpartition(".")
        given = self.given.get(of)
        return given[int(place)] if isinstance(given, (list, tuple)) and place.isdigit() else None

    def _input(self, info: onnx.ValueInfoProto) -> Item:
        kind = info.type
        given = self.given.get(info.name)
        try:
            if kind.HasField("optional_type"):
                if given is None and info.name in self.given:
                    return None
                if given is None:
                    raise ValueNeeded("an optional: give an example of it, inputs={name: array}", {info.name})
                kind = kind.optional_type.elem_type
            if kind.HasField("sequence_type"):
                if not isinstance(given, (list, tuple)):
                    raise ValueNeeded("a sequence: give an example of it, inputs={name: [array, ...]}", {info.name})
                element = kind.sequence_type.elem_type
                return [self._tensor_input(f"{info.name}.{i}", element, x) for i, x in enumerate(given)]
            return self._tensor_input(info.name, kind, given)
        except Refused as refused:
            needed = refused.needed if isinstance(refused, ValueNeeded) else frozenset()
            self.problems.append(Problem("input", "ai.onnx", 1, info.name, str(refused), needed))
            raise Missing(info.name) from None

    def _tensor_input(self, name: str, declared: onnx.TypeProto, given: Any) -> Value:
        if not declared.HasField("tensor_type"):
            raise Refused(f"an input that is no tensor but a {declared.WhichOneof('value')}")
        kind = declared.tensor_type.elem_type
        if name in self.fixed:
            return known(np.asarray(given), kind=kind, wanted=name)
        shape = self._input_shape(name, declared.tensor_type, given)
        value = Value(dtype_of(kind), shape, kind=kind, wanted=name)
        self.inputs.append(value)
        return value

    def _input_shape(self, name: str, declared: onnx.TypeProto.Tensor, given: Any) -> Shape:
        has_rank = declared.HasField("shape")
        if given is None:
            if not has_rank:
                raise ValueNeeded("an input of unknown rank: give its shape with inputs={name: shape}", {name})
            return self._shape(name, declared.shape)
        found = tuple(given.shape) if isinstance(given, (np.ndarray, np.generic)) else tuple(given)
        if has_rank and len(found) != len(declared.shape.dim):
            raise Refused(f"inputs= gives {list(found)}, the model has {len(declared.shape.dim)} dimensions")
        return tuple(d if isinstance(d, int) else self.sizes.named(d) for d in found)

    def _shape(self, name: str, shape: onnx.TensorShapeProto) -> Shape:
        return tuple(
            d.dim_value if d.HasField("dim_value") else self.sizes.named(d.dim_param or f"{name}_dim{axis}")
            for axis, d in enumerate(shape.dim)
        )

    def add_initializers(self, scope: Scope, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            scope.values[tensor.name] = self._initializer(tensor, scope)
        for sparse in graph.sparse_initializer:
            dense = self.initializers.dense(sparse)
            scope.values[sparse.values.name] = known(dense, wanted=sparse.values.name)

    def _initializer(self, tensor: TensorProto, scope: Scope) -> Item:
        kind, shape = tensor.data_type, tuple(tensor.dims)
        try:
            dtype = dtype_of(kind)
        except Refused:
            return known(self.initializers.array(tensor)) if kind != TensorProto.STRING else None
        if kind in PACKED and shape and shape[-1] % 2 == 0 and int(np.prod(shape)) > 64:
            return Value(
                PACKED[kind],
                shape,
                kind=kind,
                elements=lambda: self.initializers.packed(tensor),
                wanted=scope.prefix + tensor.name,
                is_weight=True,
            )
        return Value(
            dtype,
            shape,
            kind=kind,
            elements=lambda: self.initializers.array(tensor),
            wanted=scope.prefix + tensor.name,
            is_weight=True,
        )

    def declared_shape(self, scope: Scope, name: str) -> Shape | None:
        declared = self._declared.get(name) if scope.is_main else None
        if declared is None or not declared.tensor_type.HasField("shape"):
            return None
        dims = declared.tensor_type.shape.dim
        if any(not d.HasField("dim_value") and not d.dim_param for d in dims):
            return None
        return self._shape(name, declared.tensor_type.shape)

    def declared_kind(self, scope: Scope, name: str) -> int | None:
        declared = self._declared.get(name) if scope.is_main else None
        return declared.tensor_type.elem_type if declared is not None else None

    def need(self, value: Value, name: str) -> None:
        """Raises: Fix where the caller gave the arrays that the value is computed from, else ValueNeeded."""
        sources = {x.wanted for x in self.emitter.sources(value)}
        if sources and all(isinstance(self.example(s), (np.ndarray, np.generic)) for s in sources):
            raise Fix(sources)
        listed = ", ".join(sorted(sources)) or name
        names = {i.name for i in self.model.graph.input}
        needed = {s if s in names else s.rpartition(".")[0] for s in sources}
        raise ValueNeeded(f"the elements of {listed} decide a shape: give them, inputs={{name: array}}", needed)

    # --- nodes

    def run_graph(self, graph: onnx.GraphProto, scope: Scope, inputs: Sequence[Item], prefix: str) -> list[Item]:
        """The results of a subgraph in its scope."""
        inner = Scope(scope.opsets, parent=scope, prefix=prefix)
        self.add_initializers(inner, graph)
        inner.values.update(zip([i.name for i in graph.input], inputs))
        self.run_nodes(inner, graph.node, [o.name for o in graph.output])
        return [inner.find(o.name) for o in graph.output]

    def run_nodes(self, scope: Scope, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> None:
        for node in _live(nodes, outputs):
            self._node(scope, node)

    def _node(self, scope: Scope, proto: onnx.NodeProto) -> None:
        outer = self.emitter.scope
        self.emitter.scope = scope.prefix + (proto.name or next((o for o in proto.output if o), proto.op_type))
        try:
            node = OnnxNode(self, scope, proto)
            results = self._results(node)
            for name, item in zip(proto.output, results):
                if name:
                    scope.values[name] = item
                    if isinstance(item, Value):
                        self.emitter.name(item, scope.prefix + name)
        except Missing:
            scope.missing.update(o for o in proto.output if o)
        except Refused as refused:
            domain = proto.domain or "ai.onnx"
            version = _version(proto, scope)
            needed = refused.needed if isinstance(refused, ValueNeeded) else frozenset()
            label = scope.prefix + _label(proto)
            self.problems.append(Problem(proto.op_type, domain, version, label, str(refused), needed))
            scope.missing.update(o for o in proto.output if o)
        finally:
            self.emitter.scope = outer

    def _results(self, node: OnnxNode) -> Sequence[Item]:
        folded = fold(node)
        if folded is not None:
            return folded
        local = self.functions.get((node.proto.domain, node.op, getattr(node.proto, "overload", "")))
        if local is not None:
            return self.run_function(node, local)
        reason = Refused("no such operator in the format")
        try:
            mapped = self._mapped(node)
            if mapped is not None:
                return [mapped] if isinstance(mapped, Value) else mapped
        except ValueNeeded as needed:
            if not self.allow_custom:
                raise
            try:
                return custom_op(node)
            except Refused:
                raise needed from None
        except Refused as refused:
            reason = refused
        body = function_body(node)
        problems = len(self.problems)
        if body is not None:
            try:
                return self.run_function(node, body)
            except Missing:
                inner = self.problems[problems:]
                del self.problems[problems:]
                if inner and all(p.needed for p in inner):
                    raise ValueNeeded(inner[0].reason, frozenset().union(*(p.needed for p in inner))) from None
                reason = (
                    Refused(f"{reason}; in its function body, {inner[0].op}: {inner[0].reason}") if inner else reason
                )
        if self.allow_custom:
            return custom_op(node)
        raise reason

    def _mapped(self, node: OnnxNode) -> Results | None:
        key = node.domain, node.op
        if key in HANDLERS:
            return HANDLERS[key](node)
        return row_results(node, ROWS[node.op]) if node.domain == "" and node.op in ROWS else None

    def run_function(self, node: OnnxNode, body: onnx.FunctionProto) -> list[Item]:
        """The results of a function's body, whose attributes are the node's."""
        attributes: dict[str, Any] = {a.name: onnx.helper.get_attribute_value(a) for a in body.attribute_proto}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
        opsets = {**node.scope.opsets, **{o.domain: o.version for o in body.opset_import}}
        prefix = f"{node.scope.prefix}{_label(node.proto)}/"
        inner = Scope(opsets, attributes={**attributes, **node.attributes}, prefix=prefix)
        given = [*node.inputs, *[None] * len(body.input)]
        inner.values.update(zip(body.input, given))
        used = [name if node.uses(i) else "" for i, name in enumerate(body.output)]
        self.run_nodes(inner, body.node, [name for name in used if name])
        return [inner.find(name) if name else None for name in used]


def _live(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[onnx.NodeProto]:
    """Nodes that an output needs, in order."""
    needed, live = set(outputs), []
    for node in reversed(nodes):
        if any(o in needed for o in node.output if o):
            live.append(node)
            needed.update(_read_by(node))
    return live[::-1]


def _read_by(node: onnx.NodeProto) -> set[str]:
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            found.update(o.name for o in graph.output)
            for inner in graph.node:
                found |= _read_by(inner)
    return found


def _label(proto: onnx.NodeProto) -> str:
    return proto.name or next((o for o in proto.output if o), proto.op_type)


def _version(proto: onnx.NodeProto, scope: Scope) -> int:
    opset = scope.opset("" if proto.domain == "ai.onnx" else proto.domain)
    try:
        return int(onnx.defs.get_schema(proto.op_type, opset, proto.domain).since_version)
    except onnx.defs.SchemaError:
        return opset
