"""Walks a lowered torch.export program and writes it into a ModelFile."""

import math
import operator
import re
from typing import NamedTuple

import sympy
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

from . import complex_pairs, layer_handlers  # noqa: F401 (layer_handlers adds to HANDLERS)
from .custom_ops import CustomOps, write_custom_op
from .dimensions import Dimensions, expression_of
from .errors import SIZE, Refused, SizeRefused
from .model_file import DTYPES, SMALL, ModelFile, Plain, Size, Value, literal, number
from .op_handlers import HANDLERS
from .op_rows import IGNORED, rows
from .output_names import output_names

ROWS = rows()
NUMBER_OPS = {
    operator.mul: "mul",
    operator.add: "add",
    operator.sub: "sub",
    operator.truediv: "div",
    operator.pow: "pow",
}


class Problem(NamedTuple):
    """One node that has no counterpart."""

    overload: object
    target: str
    node: str
    source: str
    reason: str


class Missing(Exception):
    """An operand that could not be written."""


class Converter:
    """One conversion of one program; `file` and `problems` are its results."""

    def __init__(self, program, declared, name, types=False, custom_ops=CustomOps()):
        self.program, self.types, self.custom_ops = program, types, custom_ops
        self.file, self.dims = ModelFile(name), Dimensions()
        self.env, self.problems, self.notes = {}, [], []
        self.single = set()  # values that bear the name of the one node that makes them
        self.declared = declared

    def run(self):
        graph = self.program.graph
        self.live = self._live(graph)
        self._inputs(graph)
        wanted = output_names(self.program.call_spec.out_spec)
        self.output_names = {n: self.file.unique(n) for n in wanted}  # before a node takes one of them
        for node in graph.nodes:
            if node.op == "call_function" and node in self.live:
                self._node(node)
        if not self.problems:
            self._outputs(graph)
            self.file.symbols = self.dims.bounds
            self.file.drop_unused()
        return self

    # --- the graph's ends -----------------------------------------------------------------------------------------

    def _inputs(self, graph):
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        signature = self.program.graph_signature
        mutated = set(signature.buffers_to_mutate.values())
        inputs, later = [], []
        for node, spec in zip(placeholders, signature.input_specs):
            if spec.kind == InputKind.USER_INPUT:
                inputs.append((node, spec.arg.name if not isinstance(spec.arg, ConstantArgument) else None))
            elif spec.kind == InputKind.BUFFER and spec.target in mutated:
                later.append((node, spec.target))  # state that the model writes: an input that an output aliases
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

    def _tensor_input(self, node, name, value):
        try:
            row = {"name": self.file.unique_for(name), **self._type(value)}
        except Refused as refused:
            self.problems.append(Problem(None, "input", name, "", str(refused)))
            return name
        self.file.inputs.append(row)
        self.env[node] = Value(row["name"], value.dtype, tuple(value.shape))
        return row["name"]

    def _integer_input(self, name, value, leaf):
        """An integer that varies is a symbol, and a symbol is solved from shapes: an input of shape [n, 0], no data."""
        self.dims.collect_integer(name, value, self.program.range_constraints)
        row = {"name": self.file.unique_for(name), "dtype": "uint8", "shape": [self.dims.text(value), 0]}
        self.file.inputs.append(row)
        self.file.integers[row["name"]] = leaf
        self.notes.append(f"the integer argument {name} is the first size of the input {row['name']} of shape [.., 0]")

    def _constant(self, node, spec):
        tensor = self.program.constants.get(spec.target)
        tensor = self.program.state_dict.get(spec.target) if tensor is None else tensor
        tensor = node.meta["val"] if tensor is None else tensor
        lifted = spec.kind == InputKind.CONSTANT_TENSOR
        try:
            if tensor.dtype in complex_pairs.PART:
                self.env[node] = complex_pairs.constant(
                    spec.target, tensor, lambda n, t: self._add_constant(n, t, lifted)
                )
            else:
                self.env[node] = self._add_constant(spec.target, tensor, lifted)
        except Refused as refused:
            self.problems.append(Problem(None, "constant", spec.target, "", str(refused)))

    def _add_constant(self, name, tensor, lifted):
        """Small values stand in the graph, the others in the weight file; a fake or meta tensor has none."""
        row = {"name": self.file.unique_for(name), **self._type(tensor)}
        if tensor.device.type != "meta" and not isinstance(tensor, torch._subclasses.FakeTensor):
            if tensor.dim() == 0 or (lifted and tensor.numel() <= SMALL):
                row["data"] = literal(tensor)
            else:
                self.file.tensors[row["name"]] = tensor
        self.file.constants.append(row)
        return Value(row["name"], tensor.dtype, tuple(tensor.shape))

    def _outputs(self, graph):
        signature = self.program.graph_signature
        results = next(n for n in graph.nodes if n.op == "output").args[0]
        made = set(self.single)
        names = output_names(self.program.call_spec.out_spec)
        user, state = [], []
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
                buffers = {t: n for n, t in signature.inputs_to_buffers.items()}
                source = next(
                    n for n in graph.nodes if n.op == "placeholder" and n.name == buffers.get(spec.target, spec.target)
                )
                state.append((self.env[result], f"{self.env[source].name}.updated", self.env[source]))
        renamed = {}
        for value, wanted, source in user + state:
            name = renamed.get(value.name, value.name)
            if source is not None and (name not in made or name in self.file.aliases):
                name = self._append("identity", [name], {}, wanted, value).name
            elif name in made and value.name not in renamed:
                renamed[value.name] = self.output_names.pop(wanted, None) or self.file.unique(wanted)
                self.file.rename(name, renamed[value.name])
                made.add(renamed[value.name])
                name = renamed[value.name]
            self.file.outputs.append(name)
            if source is not None:
                self.file.aliases[name] = source.name

    def _plain(self, result, spec, wanted):
        """A result that is no tensor: what it was when it was traced, or a size that an input has."""
        size = result.meta.get("val") if isinstance(result, torch.fx.Node) else None
        if not isinstance(size, torch.SymInt):
            return Plain(getattr(spec.arg, "value", None))
        text = self.dims.text(size)
        for row in self.file.inputs:
            if text in row["shape"]:
                return Size(row["name"], row["shape"].index(text))
        self.problems.append(Problem(None, SIZE, wanted, "", f"the result {wanted} is a size that no input has: {text}"))
        return Plain(None)

    # --- one node -------------------------------------------------------------------------------------------------

    def _live(self, graph):
        """Nodes that a result needs; what computes only a size is read from the size's expression instead."""
        live, work = set(), [next(n for n in graph.nodes if n.op == "output")]
        while work:
            node = work.pop()
            if node in live:
                continue
            live.add(node)
            if not isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, int)) or self._reads_tensor(node):
                work.extend(node.all_input_nodes)
        return live

    @staticmethod
    def _reads_tensor(node):
        return str(node.target) in ("aten.item.default", "aten._local_scalar_dense.default")

    def used_results(self, node):
        return {user.args[1] for user in node.users if user.target is operator.getitem and user in self.live}

    def _node(self, node):
        value = node.meta.get("val")
        try:
            if node.target is operator.getitem and node.args[0] in self.env:
                result = self.env[node.args[0]][node.args[1]]
                if result is None:
                    raise Refused(f"result {node.args[1]} of {node.args[0].target} is used")
                self.env[node] = result
            elif self._reads_tensor(node):
                source = self.env[node.args[0]]
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
            node = node.args[0] if node.target is operator.getitem else node
            source, reason = _source_line(node), _reason(node, refused)
            if isinstance(refused, SizeRefused):  # whatever is made from a tensor of that size has it as well
                self.problems.append(Problem(None, SIZE, node.name, source, str(refused)))
            else:
                self.problems.append(Problem(node.target, str(node.target), node.name, source, reason))
            self.env[node] = self._placeholder(node)
        except Missing:
            if not self.problems:
                raise
            self.env[node] = self._placeholder(node)  # follows from a problem already noted

    def _placeholder(self, node):
        """Stands for the results of a node that could not be written, so that all problems are found in one run."""
        value = node.meta.get("val")

        def stand_in(v):
            if not isinstance(v, torch.Tensor):
                return None
            parts = [
                Value(self.file.unique("?"), complex_pairs.PART.get(v.dtype, v.dtype), tuple(v.shape)) for _ in range(2)
            ]
            return complex_pairs.Pair(*parts) if v.dtype in complex_pairs.PART else parts[0]

        blank = [stand_in(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
        return blank if isinstance(value, (list, tuple)) else blank[0]

    def _call(self, node):
        target = str(node.target)
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused("a Python function or higher-order operator")
        arguments = self._arguments(node)
        if complex_pairs.is_complex(node, arguments):
            return complex_pairs.call(self, node, arguments)
        if self.custom_ops.take(target) and (self.custom_ops.named(target) or not self._has_counterpart(target)):
            return write_custom_op(self, node, arguments, self.custom_ops.sources.get(self.custom_ops.named(target)))
        if self._has_counterpart(target):
            return self.mapped(node, arguments)
        raise Refused("no such operator in the format")

    @staticmethod
    def _has_counterpart(target):
        return target in HANDLERS or target in ROWS

    def mapped(self, node, arguments):
        """By the operator's handler or row."""
        target = str(node.target)
        return (
            HANDLERS[target](self, node, arguments) if target in HANDLERS else self._row(node, ROWS[target], arguments)
        )

    def _arguments(self, node):
        """The node's arguments by schema name, defaults included, values in place of nodes."""
        schema = node.target._schema.arguments
        found = {a.name: a.default_value for a in schema if a.has_default_value()}
        found.update(zip([a.name for a in schema if not a.kwarg_only], node.args))
        found.update(node.kwargs)
        return {name: self._resolve(value) for name, value in found.items()}

    def _resolve(self, argument):
        if isinstance(argument, torch.fx.Node):
            if argument in self.env:
                return self.env[argument]
            value = argument.meta.get("val")
            if isinstance(value, (torch.SymInt, int)):
                expression = expression_of(value)
                return int(expression) if expression.is_Integer else expression
            raise Missing(argument.name)
        if isinstance(argument, (list, tuple)):
            return [self._resolve(x) for x in argument]
        return argument

    def _row(self, node, row, arguments):
        for a in node.target._schema.arguments:
            if a.name in row.mentioned or a.name in IGNORED:
                continue
            if not a.has_default_value() or arguments[a.name] != a.default_value:
                raise Refused(f"{a.name}={_brief(arguments.get(a.name))} has no counterpart")
        defaults = {a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}
        attributes = {}
        for key, argument, fixed in row.attributes:
            value = fixed if fixed is not None else arguments[argument]
            if value is None or (argument in defaults and _same(value, defaults[argument])):
                continue
            if key == "dims" and value == []:
                continue
            attributes[key] = value
        operands = []
        for name in row.operands:
            value = arguments[name]
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

    def _computed_number(self, node):
        """A float that depends on sizes (1 / sqrt(tokens)): a 0-d float64 tensor, which promotes as the number does."""
        scalar = Value("", torch.float64, ())

        def tensor_of(argument):
            value = self._resolve(argument)
            if isinstance(value, sympy.Basic):
                return self.emit(node, "mul", [self.full((), 1.0, torch.float64, node), value], like=scalar)
            return value

        name = getattr(node.target, "__name__", "")
        if name == "sym_float":
            return tensor_of(node.args[0])
        if node.target in NUMBER_OPS:
            return self.emit(node, NUMBER_OPS[node.target], [tensor_of(a) for a in node.args], like=scalar)
        unary = re.fullmatch(r"_?sym_(sqrt|exp|log|sin|cos|tan|tanh|abs)", name)
        if unary:
            return self.emit(node, unary[1], [tensor_of(node.args[0])], like=scalar)
        raise Refused("a computation with sizes that is no arithmetic")

    def note(self, text):
        """Said once of a file that was written."""
        if text not in self.notes:
            self.notes.append(text)

    # --- what handlers call ---------------------------------------------------------------------------------------

    def emit(self, node, op, operands, attributes=None, like=None):
        """One node of the file. Its type is `like`'s (a fake tensor or a Value), or the ATen node's."""
        return self._append(
            op, operands, attributes or {}, self._name(node, op), node.meta["val"] if like is None else like
        )

    def emit_several(self, node, op, operands, attributes, results=None, declare=False, pattern=None):
        results = node.meta["val"] if results is None else results
        name = self.file.unique(self._name(node, op), max(len(results), 2))
        row = {"name": name, "op": op, "inputs": self._operands(operands)}
        if attributes:
            row["attrs"] = {k: self._attribute(v) for k, v in attributes.items()}
        if pattern:
            row["pattern"] = pattern
        values = [Value(f"{name}.{i}", r.dtype, tuple(r.shape)) for i, r in enumerate(results)]
        if declare or self.types:
            row["outputs"] = [{"name": v.name, **self._type(v)} for v in values]
        self.file.nodes.append(row)
        return values

    def _append(self, op, operands, attributes, wanted, like):
        declared = self._type(like)
        row = {"name": self.file.unique(wanted), "op": op, "inputs": self._operands(operands)}
        if attributes:
            row["attrs"] = {k: self._attribute(v) for k, v in attributes.items()}
        if self.types:
            row["outputs"] = [{"name": row["name"], **declared}]
        self.file.nodes.append(row)
        self.single.add(row["name"])
        return Value(row["name"], like.dtype, tuple(like.shape))

    def cast(self, value, dtype, node):
        if value.dtype == dtype:
            return value
        return self.emit(node, "cast", [value], {"dtype": dtype}, like=value._replace(dtype=dtype))

    def full(self, shape, value, dtype, node):
        return self.emit(
            node,
            "full",
            [],
            {"shape": list(shape), "value": value, "dtype": dtype},
            like=Value("", dtype, tuple(shape)),
        )

    def _operands(self, operands):
        floats = [v.dtype for v in operands if isinstance(v, Value) and v.dtype.is_floating_point]
        return [self._operand(v, floats[0] if floats else torch.float32) for v in operands]

    def _operand(self, value, dtype):
        if isinstance(value, Value):
            return value.name
        if isinstance(value, sympy.Basic):
            return {"dim": str(self.dims.text(value))}
        if isinstance(value, float) and not math.isfinite(value):  # JSON has no infinity: a 0-d constant
            name = self.file.unique({"inf": "infinity", "-inf": "minus_infinity"}.get(number(value), "not_a_number"))
            self.file.constants.append({"name": name, "dtype": DTYPES[dtype], "shape": [], "data": [number(value)]})
            return name
        return value

    def _attribute(self, value):
        if isinstance(value, torch.dtype):
            return self._dtype(value)
        if isinstance(value, (list, tuple)):
            return [self._attribute(v) for v in value]
        if isinstance(value, torch.SymInt) or isinstance(value, sympy.Basic):
            return self.dims.text(value)
        if isinstance(value, Value):
            raise Refused(f'an attribute that is computed at run time (from "{value.name}")')
        if value is None or isinstance(value, (bool, int, str)):
            return value
        return number(float(value))

    def _type(self, tensor):
        return {"dtype": self._dtype(tensor.dtype), "shape": self.dims.shape(tensor.shape)}

    @staticmethod
    def _dtype(dtype):
        if dtype not in DTYPES:
            raise Refused(f"the format has no {str(dtype).removeprefix('torch.')}")
        return DTYPES[dtype]

    @staticmethod
    def _name(node, op):
        """`layers.0.mlp.gate.linear`: the submodule that computes it, and the operator."""
        stack = list(node.meta.get("nn_module_stack", {}).values())
        path = re.sub(r"@\d+", "", str(stack[-1][0])) if stack else ""
        path = re.sub(r"^L\['self'\]\.?|^L__self___?", "", path)
        return f"{path}.{op}" if path else op


def _same(value, default):
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _brief(value):
    text = value.name if isinstance(value, Value) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _reason(node, refused):
    """What is wrong, and the operator that the user called where another stands for it."""
    called = node.meta.get("original_aten")
    same = called is None or str(called) == str(node.target)
    return str(refused) if same else f"{refused} (PyTorch made it from {called})"


def _source_line(node):
    """`model.py:31`, from the stack trace that export keeps."""
    trace = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return f"{trace[-1][0].rsplit('/', 1)[-1]}:{trace[-1][1]}" if trace else ""
