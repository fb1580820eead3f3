"""Walks an ONNX graph and makes nodes of the format: folds what is known, maps ops, takes functions apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import TensorProto

from ..errors import InputError
from . import handlers as _handlers  # noqa: F401 (fills HANDLERS)
from .custom_ops import UNTYPED, custom_op
from .emitter import Emitter
from .errors import Invalid, Missing, Problem, Refused, ValueNeeded, elements_needed
from .fold import ALWAYS as FOLDED
from .fold import fold
from .function_body import function_body
from .initializers import Initializers
from .node import OnnxNode, schema_of
from .registry import HANDLERS, Results
from .rows import ROWS, row_results
from .scope import Scope
from .sizes import Shape, Sizes
from .type_inference import infer
from .values import PACKED, Item, Value, dtype_of, kind_name, known

NO_OPERATOR = "no such operator in the format"


class RestartWithKnownInputs(Exception):
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
        self._calls: list[tuple[str, str, str]] = []  # the model's functions that are being inlined, outermost first
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
                outputs.append(self._output(scope, info))
            except Missing:
                pass
            except Refused as refused:
                self._note(scope, onnx.helper.make_node("output", [], [info.name]), refused)
        return outputs

    @staticmethod
    def _output(scope: Scope, info: onnx.ValueInfoProto) -> Item:
        item = scope.find(info.name)
        declared = info.type.tensor_type.elem_type
        if isinstance(item, Value) and declared not in (item.kind, TensorProto.UNDEFINED):
            raise Invalid(f"its type is declared as {kind_name(declared)}, and computed as {kind_name(item.kind)}")
        return item

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
            return self.shape(name, declared.shape)
        found = tuple(given.shape) if isinstance(given, (np.ndarray, np.generic)) else tuple(given)
        if has_rank and len(found) != len(declared.shape.dim):
            raise InputError(
                what=f"inputs[{name!r}]",
                found=f"the shape {list(found)}",
                expected=f"{len(declared.shape.dim)} dimensions, as the model has",
            )
        return tuple(d if isinstance(d, int) else self.sizes.named(d) for d in found)

    def shape(self, name: str, shape: onnx.TensorShapeProto) -> Shape:
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
        return self.shape(name, declared.tensor_type.shape)

    def declared_kind(self, scope: Scope, name: str) -> int | None:
        declared = self._declared.get(name) if scope.is_main else None
        return declared.tensor_type.elem_type if declared is not None else None

    def need(self, value: Value, name: str) -> NoReturn:
        """Raises RestartWithKnownInputs where the caller gave the arrays that it comes from, else ValueNeeded."""
        sources = {x.wanted for x in self.emitter.sources(value)}
        if sources and all(isinstance(self.example(s), (np.ndarray, np.generic)) for s in sources):
            raise RestartWithKnownInputs(sources)
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
            self._note_downstream(scope, proto)
            scope.missing.update(o for o in proto.output if o)
        except Refused as refused:
            self._note(scope, proto, refused)
            scope.missing.update(o for o in proto.output if o)
        finally:
            self.emitter.scope = outer

    def _note(self, scope: Scope, proto: onnx.NodeProto, refused: Refused, is_downstream: bool = False) -> None:
        needed = refused.needed if isinstance(refused, ValueNeeded) else frozenset()
        self.problems.append(
            Problem(
                proto.op_type,
                proto.domain or "ai.onnx",
                _version(proto, scope),
                scope.prefix + _label(proto),
                str(refused),
                needed,
                isinstance(refused, Invalid),
                is_downstream,
            )
        )

    def _note_downstream(self, scope: Scope, proto: onnx.NodeProto) -> None:
        """Of a node whose operands are not known, and of its subgraphs: ops that no operands make importable."""
        reason = self._why_never(scope, proto)
        if reason:
            self._note(scope, proto, Refused(reason), is_downstream=True)
        for node in (node for graph in _graphs(proto) for node in graph.node):
            self._note_downstream(scope, node)

    def _why_never(self, scope: Scope, proto: onnx.NodeProto) -> str:
        """Why no operands of the node make it importable, or nothing."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if (domain, proto.op_type) in HANDLERS or (domain == "" and proto.op_type in {*ROWS, *FOLDED}):
            return ""
        schema: Any = schema_of(proto.op_type, scope.opset(domain), domain)
        has_body = schema is not None and (schema.has_function or schema.has_context_dependent_function)
        if has_body or _function_key(proto) in self.functions:
            return ""
        if not self.allow_custom:
            return NO_OPERATOR
        outputs = [o for o in proto.output if o]
        is_typed = schema is not None or all(self.declared_shape(scope, o) is not None for o in outputs)
        return "" if is_typed else UNTYPED

    def _results(self, node: OnnxNode) -> Sequence[Item]:
        local = self.functions.get(_function_key(node.proto))
        inferred = infer(node) if local is None and node.op != "Constant" else {}
        folded = fold(node, inferred)
        if folded is not None:
            return folded
        if local is not None:
            return self.run_function(node, local)
        reason = Refused(NO_OPERATOR)
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
        except Invalid:
            raise
        except Refused as refused:
            reason = refused
        body = function_body(node)
        problems = len(self.problems)
        if body is not None:
            try:
                return self.run_function(node, body)
            except Missing:
                inner = self.rolled_back(problems)
                needed_ = elements_needed(inner)
                if needed_:
                    raise ValueNeeded(inner[0].reason, needed_) from None
                reason = (
                    Refused(f"{reason}; in its function body, {inner[0].op}: {inner[0].reason}") if inner else reason
                )
        if self.allow_custom:
            return custom_op(node)
        raise reason

    def rolled_back(self, count: int) -> list[Problem]:
        """Forgets all problems but the first ones: those of an attempt that is given up, which it returns."""
        given_up = self.problems[count:]
        del self.problems[count:]
        return given_up

    def _mapped(self, node: OnnxNode) -> Results | None:
        key = node.domain, node.op
        if key in HANDLERS:
            return HANDLERS[key](node)
        return row_results(node, ROWS[node.op]) if node.domain == "" and node.op in ROWS else None

    def run_function(self, node: OnnxNode, body: onnx.FunctionProto) -> list[Item]:
        """The results of a function's body, whose attributes are the node's."""
        key = _function_key(node.proto)
        if key in self._calls:
            raise Invalid("the function calls itself")
        attributes: dict[str, Any] = {a.name: onnx.helper.get_attribute_value(a) for a in body.attribute_proto}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
        opsets = {**node.scope.opsets, **{o.domain: o.version for o in body.opset_import}}
        prefix = f"{node.scope.prefix}{_label(node.proto)}/"
        inner = Scope(opsets, attributes={**attributes, **node.attributes}, prefix=prefix)
        given = [*node.inputs, *[None] * len(body.input)]
        inner.values.update(zip(body.input, given))
        used = [name if node.uses(i) else "" for i, name in enumerate(body.output)]
        self._calls.append(key)
        try:
            self.run_nodes(inner, body.node, [name for name in used if name])
        finally:
            self._calls.pop()
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
    for graph in _graphs(node):
        found.update(o.name for o in graph.output)
        for inner in graph.node:
            found |= _read_by(inner)
    return found


def _graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Its subgraphs."""
    return [g for a in node.attribute for g in [*([a.g] if a.HasField("g") else []), *a.graphs]]


def _function_key(proto: onnx.NodeProto) -> tuple[str, str, str]:
    return proto.domain, proto.op_type, getattr(proto, "overload", "")


def _label(proto: onnx.NodeProto) -> str:
    return proto.name or next((o for o in proto.output if o), proto.op_type)


def _version(proto: onnx.NodeProto, scope: Scope) -> int:
    opset = scope.opset("" if proto.domain == "ai.onnx" else proto.domain)
    schema = schema_of(proto.op_type, opset, proto.domain)
    return int(schema.since_version) if schema is not None else opset
