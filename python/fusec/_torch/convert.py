"""Walks a lowered torch.export program and writes it into a ModelFile."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import sympy
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

from .._importer import Missing
from . import collective_handlers, complex_operators, complex_pairs, layer_handlers  # noqa: F401 (they add to HANDLERS)
from .aten_program import write_backs
from .custom_ops import CustomOps, write_custom_op
from .dimensions import LeafDims, expression_of
from .errors import SIZE, Refused, SizeRefused
from .literals import has_values, literals
from .model_file import SMALL, Json, Plain, Size, Value, literal
from .node_writer import NodeWriter
from .op_handlers import HANDLERS
from .op_rows import IGNORED, ROWS, Row
from .output_names import output_names
from .source_lines import source_line

if TYPE_CHECKING:
    from .complex_pairs import Result
    from .program import Program

# Arguments of one call, by the names in ATen's schema. Tensors are Values or Pairs, symbolic sizes sympy expressions.
Arguments: TypeAlias = dict[str, Any]

NUMBER_OPS: dict[Any, str] = {
    operator.mul: "mul",
    operator.add: "add",
    operator.sub: "sub",
    operator.truediv: "div",
    operator.pow: "pow",
}


class Problem(NamedTuple):
    """One node that has no counterpart."""

    overload: object  # the operator, or None where the problem is of no operator
    target: str
    node: str
    source: str
    reason: str


class Converter(NodeWriter):
    """One conversion of one program; `file` and `problems` are its results."""

    def __init__(
        self,
        program: Program,
        declared: Sequence[LeafDims] | None,
        name: str,
        types: bool = False,
        custom_ops: CustomOps = CustomOps(),
    ) -> None:
        super().__init__(name, types)
        self.program, self.custom_ops = program, custom_ops
        self.env: dict[torch.fx.Node, Any] = {}  # node -> its Result
        self.problems: list[Problem] = []
        self.declared = declared

    def run(self) -> Converter:
        graph = self.program.graph
        self.literals = literals(self.program)
        self.live = self._live(graph)
        self._inputs(graph)
        wanted = output_names(self.program.call_spec.out_spec)
        self.output_names = {n: self.file.unique(n) for n in wanted}  # reserved, so that no node takes one
        for node in graph.nodes:
            if node.op == "call_function" and node in self.live:
                self._node(node)
            elif node.op == "get_attr" and node in self.live:
                self._attribute_of_module(node)
        if not self.problems:
            self._outputs(graph)
            self.file.symbols = self.dims.bounds
            self.file.drop_unused()
        return self

    # --- the graph's ends -----------------------------------------------------------------------------------------

    def _inputs(self, graph: torch.fx.Graph) -> None:
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        signature = self.program.graph_signature
        mutated = set(signature.buffers_to_mutate.values())
        inputs: list[tuple[torch.fx.Node, Any]] = []
        later: list[tuple[torch.fx.Node, Any]] = []  # buffers that the model writes: each is an input and an output
        for node, spec in zip(placeholders, signature.input_specs):
            if spec.kind == InputKind.USER_INPUT:
                inputs.append((node, spec.arg.name if not isinstance(spec.arg, ConstantArgument) else None))
            elif spec.kind == InputKind.BUFFER and spec.target in mutated:
                later.append((node, spec.target))
        declared = list(self.declared or []) + [None] * len(inputs)
        tensors = [
            (name, node.meta["val"], dims)
            for (node, name), dims in zip(inputs, declared)
            if isinstance(node.meta.get("val"), torch.Tensor)
        ]
        self.dims.collect([(n, t) for n, t, _ in tensors], self.program.range_constraints, [d for _, _, d in tensors])
        for leaf, (node, name) in enumerate(inputs + later):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                self._integer_input(name, value, leaf)
            elif isinstance(value, torch.Tensor):
                given = self._tensor_input(node, name, value)
                if leaf < len(inputs):
                    self.file.leaves[given] = leaf
                else:
                    self.file.state[given] = name
        for node, spec in zip(placeholders, signature.input_specs):
            if (
                node not in self.env
                and node in self.live
                and spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
            ):
                self._constant(node, spec)

    def _tensor_input(self, node: torch.fx.Node, name: str, value: torch.Tensor) -> str:
        try:
            row: Json = {"name": self.file.unique_for(name), **self._type(value)}
        except Refused as refused:
            self.problems.append(Problem(None, "input", name, "", str(refused)))
            return name
        self.file.inputs.append(row)
        made = Value(row["name"], value.dtype, tuple(value.shape))
        self.env[node] = made
        return made.name

    def _integer_input(self, name: str, value: torch.SymInt, leaf: int) -> None:
        """Writes an integer argument that varies: a symbol n, and an input of shape [n, 0] that gives its value."""
        self.dims.collect_integer(name, value, self.program.range_constraints)
        row: Json = {"name": self.file.unique_for(name), "dtype": "uint8", "shape": [self.dims.text(value), 0]}
        self.file.inputs.append(row)
        self.file.integers[row["name"]] = leaf
        self.notes.append(f"the integer argument {name} is the first size of the input {row['name']} of shape [.., 0]")

    def _constant(self, node: torch.fx.Node, spec: InputSpec) -> None:
        assert spec.target is not None
        target = spec.target
        tensor = self.program.constants.get(target)
        tensor = self.program.state_dict.get(target) if tensor is None else tensor
        tensor = node.meta["val"] if tensor is None else tensor
        self._add_constant(node, target, tensor)

    def _attribute_of_module(self, node: torch.fx.Node) -> None:
        """A tensor that the graph holds. A subgraph, as torch.cond takes it, gets no value: its operator is refused."""
        tensor = self.program.constants.get(str(node.target))
        if isinstance(tensor, torch.Tensor):
            self._add_constant(node, str(node.target), tensor)

    def _add_constant(self, node: torch.fx.Node, name: str, tensor: torch.Tensor) -> None:
        """Adds a constant. A small literal has its values in the graph, others in the weight file, meta tensors none."""

        def add(name: str, tensor: torch.Tensor) -> Value:
            row: Json = {"name": self.file.unique_for(name), **self._type(tensor)}
            if node.name in self.literals and tensor.numel() <= SMALL:
                row["data"] = literal(tensor)
            elif has_values(tensor):
                self.file.tensors[row["name"]] = tensor
            self.file.constants.append(row)
            return Value(row["name"], tensor.dtype, tuple(tensor.shape))

        try:
            is_complex = tensor.dtype in complex_pairs.PART
            self.env[node] = complex_pairs.constant(name, tensor, add) if is_complex else add(name, tensor)
        except Refused as refused:
            self.problems.append(Problem(None, "constant", name, "", str(refused)))

    def _outputs(self, graph: torch.fx.Graph) -> None:
        signature = self.program.graph_signature
        results: Sequence[Any] = next(n for n in graph.nodes if n.op == "output").args[0]
        made = set(self.single)
        names = output_names(self.program.call_spec.out_spec)
        user: list[tuple[Value, str, Value | None]] = []
        state: list[tuple[Value, str, Value | None]] = []
        for spec, result in zip(signature.output_specs, results):
            if spec.kind == OutputKind.USER_OUTPUT:
                wanted = next(names, "output")
                if isinstance(self.env.get(result), complex_pairs.Pair):
                    self.problems.append(
                        Problem(None, "output", wanted, "", "a complex result (return torch.view_as_real of it)")
                    )
                elif isinstance(spec.arg, TensorArgument) and isinstance(result, torch.fx.Node) and result in self.env:
                    self.file.returned.append(len(user))
                    user.append((self.env[result], wanted, None))
                else:
                    self.file.returned.append(self._plain(result, spec, wanted))
            elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                buffers: dict[Any, str] = {t: n for n, t in signature.inputs_to_buffers.items()}
                source = next(
                    n for n in graph.nodes if n.op == "placeholder" and n.name == buffers.get(spec.target, spec.target)
                )
                state.append((self.env[result], f"{self.env[source].name}.updated", self.env[source]))
        renamed: dict[str, str] = {}
        for value, wanted, source in user + state:
            name = renamed.get(value.name, value.name)
            if source is not None and (name not in made or name in self.file.aliases):
                name = self._append("identity", [name], {}, wanted, value).name
            elif name in made and value.name not in renamed:
                renamed[value.name] = self.output_names.pop(wanted, "") or self.file.unique(wanted)
                self.file.rename(name, renamed[value.name])
                made.add(renamed[value.name])
                name = renamed[value.name]
            self.file.outputs.append(name)
            if source is not None:
                self.file.aliases[name] = source.name

    def _plain(self, result: object, spec: OutputSpec, wanted: str) -> Plain | Size:
        """A result that is not a tensor: its value in the traced call, or a size of an input."""
        size = result.meta.get("val") if isinstance(result, torch.fx.Node) else None
        if not isinstance(size, torch.SymInt):
            return Plain(getattr(spec.arg, "value", None))
        text = self.dims.text(size)
        for row in self.file.inputs:
            if text in row["shape"]:
                return Size(row["name"], row["shape"].index(text))
        reason = f"the result {wanted} is a size that no input has: {text}"
        self.problems.append(Problem(None, SIZE, wanted, "", reason))
        return Plain(None)

    # --- one node -------------------------------------------------------------------------------------------------

    def _live(self, graph: torch.fx.Graph) -> set[torch.fx.Node]:
        """Nodes that a result or a written input needs, without those that compute sizes, which are expressions."""
        live: set[torch.fx.Node] = set()
        work: list[torch.fx.Node] = [next(n for n in graph.nodes if n.op == "output")]
        work += (source for copy in write_backs(graph) for source in copy.all_input_nodes)
        while work:
            node = work.pop()
            if node in live:
                continue
            live.add(node)
            if not isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, int)) or self._reads_tensor(node):
                work.extend(node.all_input_nodes)
        return live

    @staticmethod
    def _reads_tensor(node: torch.fx.Node) -> bool:
        return str(node.target) in ("aten.item.default", "aten._local_scalar_dense.default")

    def used_results(self, node: torch.fx.Node) -> set[Any]:
        """Positions of the results that other nodes use."""
        return {user.args[1] for user in node.users if user.target is operator.getitem and user in self.live}

    def _node(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        args: tuple[Any, ...] = node.args
        try:
            if node.target is operator.getitem and args[0] in self.env:
                result = self.env[args[0]][args[1]]
                if result is None:
                    raise Refused(f"result {args[1]} of {args[0].target} is used")
                self.env[node] = result
            elif self._reads_tensor(node):
                source = self.env[args[0]]
                self.env[node] = (
                    source
                    if not source.shape
                    else self.emit(node, "reshape", [source], {"shape": []}, like=source._replace(shape=()))
                )
            elif isinstance(value, torch.SymFloat):
                self.env[node] = self._computed_number(node)
            elif not isinstance(value, (torch.SymInt, torch.SymBool, int, bool)):
                self.env[node] = self._call(node)
        except Refused as refused:
            node = args[0] if node.target is operator.getitem else node
            source, reason = source_line(node), _reason(node, refused)
            if isinstance(refused, SizeRefused):  # all operators on a tensor of that size have this problem
                self.problems.append(Problem(None, SIZE, node.name, source, str(refused)))
            else:
                self.problems.append(Problem(node.target, str(node.target), node.name, source, reason))
            self.env[node] = self._placeholder(node)
        except Missing:
            if not self.problems:
                raise
            self.env[node] = self._placeholder(node)  # follows from a problem already noted

    def _placeholder(self, node: torch.fx.Node) -> Result:
        """Stands for the results of a node that could not be written, so that one run finds all problems."""
        value = node.meta.get("val")

        def stand_in(v: object) -> Value | complex_pairs.Pair | None:
            if not isinstance(v, torch.Tensor):
                return None
            parts = [
                Value(self.file.unique("?"), complex_pairs.PART.get(v.dtype, v.dtype), tuple(v.shape)) for _ in range(2)
            ]
            return complex_pairs.Pair(*parts) if v.dtype in complex_pairs.PART else parts[0]

        blank = [stand_in(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
        return blank if isinstance(value, (list, tuple)) else blank[0]

    def _call(self, node: torch.fx.Node) -> Result:
        target = str(node.target)
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused("a Python function or higher-order operator")
        arguments = self._arguments(node)
        if complex_operators.is_complex(node, arguments):
            return complex_operators.call(self, node, arguments)
        if self.custom_ops.take(target) and (self.custom_ops.named(target) or not self._has_counterpart(target)):
            return write_custom_op(self, node, arguments, self.custom_ops.source_of(target))
        if self._has_counterpart(target):
            return self.mapped(node, arguments)
        raise Refused("no such operator in the format")

    @staticmethod
    def _has_counterpart(target: str) -> bool:
        return target in HANDLERS or target in ROWS

    def mapped(self, node: torch.fx.Node, arguments: Arguments) -> Result:
        """Writes one call by its operator's handler or row."""
        target = str(node.target)
        return (
            HANDLERS[target](self, node, arguments) if target in HANDLERS else self._row(node, ROWS[target], arguments)
        )

    def _arguments(self, node: torch.fx.Node) -> Arguments:
        """The node's arguments by schema name, defaults included, values in place of nodes."""
        schema = _schema(node)
        found: Arguments = {a.name: a.default_value for a in schema if a.has_default_value()}
        found.update(zip([a.name for a in schema if not a.kwarg_only], node.args))
        found.update(node.kwargs)
        return {name: self._resolve(value) for name, value in found.items()}

    def _resolve(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            if argument in self.env:
                return self.env[argument]
            value = argument.meta.get("val")
            if isinstance(value, (torch.SymInt, int)):
                expression = expression_of(value)
                return int(expression) if expression.is_Integer else expression
            if isinstance(value, torch.SymBool):
                raise Refused("a comparison of sizes")
            raise Missing(argument.name)
        if isinstance(argument, (list, tuple)):
            return [self._resolve(x) for x in argument]
        return argument

    def _row(self, node: torch.fx.Node, row: Row, arguments: Arguments) -> Result:
        schema = _schema(node)
        for a in schema:
            if a.name in row.mentioned or a.name in IGNORED:
                continue
            if not a.has_default_value() or arguments[a.name] != a.default_value:
                raise Refused(f"{a.name}={_brief(arguments.get(a.name))} has no counterpart")
        defaults = {a.name: a.default_value for a in schema if a.has_default_value()}
        attributes: dict[str, Any] = {}
        for key, argument, fixed in row.attributes:
            value = fixed if argument is None else arguments[argument]
            if value is None or (argument in defaults and _same(value, defaults[argument])):
                continue
            if key == "dims" and value == []:
                continue
            attributes[key] = value
        if row.op in ("permute", "flip") and arguments["dims"] == []:
            return arguments["self"]  # type: ignore[no-any-return]
        operands: list[Any] = []
        for name in row.operands:
            value = arguments[name]
            if name in ("index", "indices") and value.dtype not in (torch.int64, torch.int32):
                value = self.cast(value, torch.int64, node)
            operands.extend(value if isinstance(value, list) else [value])
        while operands and operands[-1] is None:
            operands.pop()
        if row.results == "several":
            return self.emit_several(node, row.op, operands, attributes)
        value = node.meta["val"]
        if row.results == "first":
            if self.used_results(node) - {0}:
                raise Refused("a result other than the first is used")
            return [self.emit(node, row.op, operands, attributes, like=value[0])] + [None] * (len(value) - 1)
        return self.emit(node, row.op, operands, attributes)

    def _computed_number(self, node: torch.fx.Node) -> Any:
        """Writes a float that depends on sizes (1 / sqrt(tokens)) as a 0-d tensor: it promotes as the float does."""
        scalar = Value("", torch.float64, ())

        def tensor_of(argument: Any) -> Any:
            value = self._resolve(argument)
            if isinstance(value, sympy.Basic):
                return self.emit(node, "mul", [self.full((), 1.0, torch.float64, node), value], like=scalar)
            return value

        name = getattr(node.target, "__name__", "")
        if name == "sym_float":
            return tensor_of(node.args[0])
        if (op := NUMBER_OPS.get(node.target)) is not None:
            return self.emit(node, op, [tensor_of(a) for a in node.args], like=scalar)
        unary = re.fullmatch(r"_?sym_(sqrt|exp|log|sin|cos|tan|tanh|abs)", name)
        if unary:
            return self.emit(node, unary[1], [tensor_of(node.args[0])], like=scalar)
        raise Refused("a computation with sizes that is no arithmetic")


def _schema(node: torch.fx.Node) -> list[torch._C.Argument]:
    """The arguments in the schema of the node's ATen operator."""
    target: Any = node.target
    arguments: list[torch._C.Argument] = target._schema.arguments
    return arguments


def _same(value: object, default: object) -> bool:
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _brief(value: object) -> str:
    text = value.name if isinstance(value, Value) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _reason(node: torch.fx.Node, refused: Refused) -> str:
    """The reason of the refusal, and the operator that the user called where it was decomposed."""
    called = node.meta.get("original_aten")
    same = called is None or str(called) == str(node.target)
    return str(refused) if same else f"{refused} (PyTorch made it from {called})"
