"""A graph of ATen operators, as AOTAutograd makes it, in the form that the importer reads torch.export's programs in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from .dimensions import expression_of

Argument = TensorArgument | SymIntArgument


class CallSpec:
    """The structures of arguments and results: flat tuples."""

    def __init__(self, arguments: int, results: int) -> None:
        self.in_spec = pytree.tree_structure(((0,) * arguments, {}))
        self.out_spec = pytree.tree_structure((0,) * results)


class AtenProgram:
    """What `torch.export.ExportedProgram` has, of a functional graph whose parameters are inputs.

    Inputs in `given_by_shape` are sizes that the shapes of other inputs tell; they are no arguments of the model. The last
    results are the new values of the inputs in `written`."""

    state_dict: dict[str, torch.Tensor] = {}

    def __init__(
        self,
        module: torch.fx.GraphModule,
        given_by_shape: Iterable[torch.fx.Node] = (),
        written: Sequence[torch.fx.Node] = (),
    ) -> None:
        self.module = module
        self.graph = module.graph
        self.constants = {str(n.target): attribute(module, n) for n in self.graph.nodes if n.op == "get_attr"}
        placeholders = self.graph.find_nodes(op="placeholder")
        results = list(self.graph.output_node().args[0])  # type: ignore[arg-type]
        returned = len(results) - len(written)
        self.call_spec = CallSpec(len(placeholders), returned)
        self.range_constraints = ranges(placeholders)
        hidden = set(given_by_shape)
        self.graph_signature = ExportGraphSignature(
            [
                InputSpec(InputKind.TOKEN if n in hidden else InputKind.USER_INPUT, as_argument(n), None)
                for n in placeholders
            ],
            [
                *(OutputSpec(OutputKind.USER_OUTPUT, as_argument(n), None) for n in results[:returned]),
                *(
                    OutputSpec(OutputKind.USER_INPUT_MUTATION, as_argument(n), w.name)
                    for n, w in zip(results[returned:], written)
                ),
            ],
        )

    def run_decompositions(self, table: dict[Any, Callable[..., Any]]) -> AtenProgram:
        """The same program with the operators of `table` said in others. Leaves out decompositions that write in place."""
        while True:
            module = retraced(self.module, table)
            writers = {n.meta.get("original_aten") for n in module.graph.nodes if writes_in_place(n)} & set(table)
            if not writers:
                return AtenProgram(module)
            table = {overload: function for overload, function in table.items() if overload not in writers}


def attribute(module: torch.nn.Module, node: torch.fx.Node) -> Any:
    """The tensor that a get_attr node reads."""
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value


def as_argument(node: Any) -> Argument:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if isinstance(value, torch.SymInt):
        return SymIntArgument(node.name)
    return TensorArgument(getattr(node, "name", ""))


def write_backs(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The copies of new values into inputs, which AOTAutograd leaves at the end of an inference graph."""
    found = graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    return [n for n in found if n.args[0].op == "placeholder"]


def writes_in_place(node: torch.fx.Node) -> bool:
    """Whether the node changes the memory of a tensor that the graph computes."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return False
    return node.target is not torch.ops.aten.copy_.default or node.args[0].op != "placeholder"  # type: ignore[union-attr]


def ranges(placeholders: Iterable[torch.fx.Node]) -> dict[Any, Any]:
    """The range of every symbol that an input's shape has."""
    for node in placeholders:
        value = node.meta.get("val")
        sizes = [value] if isinstance(value, torch.SymInt) else getattr(value, "shape", ())
        for size in sizes:
            if isinstance(size, torch.SymInt) and size.node.shape_env is not None:
                return dict(size.node.shape_env.var_to_range)
    return {}


class Retracing(torch.fx.Interpreter):
    """Copies where a view cannot be one: the decomposition of what it views may have other strides."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.aten.view.default:
            target = torch.ops.aten.reshape.default
        return super().call_function(target, args, kwargs)


def keep_output_strides(before: torch.fx.GraphModule, after: torch.fx.GraphModule) -> None:
    """Adds copies, so that the results of a graph have the strides that they had before it was decomposed."""
    output = after.graph.output_node()
    wanted: list[Any] = list(before.graph.output_node().args[0])  # type: ignore[arg-type]
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    for place, (old, new) in enumerate(zip(wanted, results)):
        value = old.meta.get("val") if isinstance(old, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        if same_strides(value, new.meta["val"]):
            continue
        with after.graph.inserting_before(output):
            results[place] = after.graph.call_function(torch.ops.aten.clone.default, (new,))
        results[place].meta = {**new.meta, "val": value}
    output.args = (tuple(results),)


def same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Of dimensions that are not 1; symbolic ones are compared as expressions."""
    strides = [(x, y) for n, x, y in zip(a.shape, a.stride(), b.stride()) if expression_of(n) != 1]
    return all(expression_of(x) == expression_of(y) for x, y in strides)


def retraced(module: torch.fx.GraphModule, table: dict[Any, Callable[..., Any]]) -> torch.fx.GraphModule:
    """The graph traced again, on its fake tensors, with the decompositions of `table`."""
    inputs = [n.meta["val"] for n in module.graph.find_nodes(op="placeholder")]
    mode = torch._guards.detect_fake_mode(inputs)
    if mode is None:
        mode = torch._subclasses.FakeTensorMode()
    allowed, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    try:
        with mode, preserve_node_meta():
            return make_fx(Retracing(module).run, decomposition_table=table)(*inputs)
    finally:
        mode.allow_non_fake_inputs = allowed
