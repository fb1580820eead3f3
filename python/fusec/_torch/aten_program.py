"""A graph of ATen operators, as AOTAutograd makes it, in the form in which the importer reads exported programs."""

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

Argument = TensorArgument | SymIntArgument


class CallSpec:
    """The structures of arguments and results: flat tuples."""

    def __init__(self, arguments: int, results: int) -> None:
        self.in_spec = pytree.tree_structure(((0,) * arguments, {}))
        self.out_spec = pytree.tree_structure((0,) * results)


class AtenProgram:
    """What `torch.export.ExportedProgram` has, of a functional graph whose parameters are inputs.

    Inputs in `given_by_shape` are sizes that the shapes of other inputs tell; they are no arguments of the model. The
    last results are the new values of the inputs in `written`."""

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
        """The same program decomposed by `table`.

        Leaves out decompositions that write in place, and those that fail."""
        while True:
            try:
                module = retraced(self.module, table)
            except DecompositionFailed as failed:
                unfit = {str(failed.overload)}
            else:
                unfit = {str(n.meta.get("original_aten")) for n in module.graph.nodes if writes_in_place(n)}
                if not unfit & {str(overload) for overload in table}:
                    return_inputs_themselves(module.graph)
                    return AtenProgram(module)
            table = {overload: function for overload, function in table.items() if str(overload) not in unfit}


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
    into: torch.fx.Node = node.args[0]  # type: ignore[assignment]
    return node.target is not torch.ops.aten.copy_.default or into.op != "placeholder"


def return_inputs_themselves(graph: torch.fx.Graph) -> None:
    """Returns an input that is written in place of the copy into it, so that no operator reads a write-back."""
    for node in write_backs(graph):
        node.replace_all_uses_with(node.args[0], lambda user: user.op == "output")  # type: ignore[arg-type]


def ranges(placeholders: Iterable[torch.fx.Node]) -> dict[Any, Any]:
    """The range of every symbol that an input's shape has."""
    for node in placeholders:
        value = node.meta.get("val")
        sizes = [value] if isinstance(value, torch.SymInt) else getattr(value, "shape", ())
        for size in sizes:
            if isinstance(size, torch.SymInt) and size.node.shape_env is not None:
                return dict(size.node.shape_env.var_to_range)
    return {}


class DecompositionFailed(Exception):
    """The decomposition of `overload` raised an error."""

    def __init__(self, overload: Any) -> None:
        super().__init__(str(overload))
        self.overload = overload


class Retracing(torch.fx.Interpreter):
    """Runs a graph with a table of decompositions in force."""

    def __init__(self, module: torch.fx.GraphModule, table: dict[Any, Callable[..., Any]]) -> None:
        super().__init__(module)
        self.table = table
        self.extra_traceback = False

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.aten.view.default:  # what it views may have other strides, decomposed
            target = torch.ops.aten.reshape.default
        try:
            return super().call_function(target, args, kwargs)
        except Exception as error:
            if target in self.table:
                raise DecompositionFailed(target) from error
            raise


def retraced(module: torch.fx.GraphModule, table: dict[Any, Callable[..., Any]]) -> torch.fx.GraphModule:
    """The graph traced again, on its fake tensors, with the decompositions of `table`."""
    inputs = [n.meta["val"] for n in module.graph.find_nodes(op="placeholder")]
    mode = torch._guards.detect_fake_mode(inputs)
    if mode is None:
        mode = torch._subclasses.FakeTensorMode()
    allowed, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    try:
        with mode, preserve_node_meta():
            return make_fx(Retracing(module, table).run, decomposition_table=table)(*inputs)
    finally:
        mode.allow_non_fake_inputs = allowed
