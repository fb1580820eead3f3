"""One region of a graph, compiled by fusec: a module that eager calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .. import _core
from .._compile import compile as compile_model
from .._module import Module
from .aten_program import AtenProgram, write_backs
from .convert import Converter
from .cuda_graphs import GraphedCalls, as_tuple, split_options
from .dimensions import LARGEST
from .errors import unmapped_error
from .model_file import ModelFile
from .partition import is_size, is_view, tensors_of
from .strides import Order, has_gaps, inverse, memory_order, overlaps

aten = torch.ops.aten
PLACE = "place"  # the empty input of a region without tensor inputs: results are allocated on its device


class Region(torch.nn.Module):
    """A compiled region. Takes and returns tensors with the strides that eager's have.

    The kernels read integer arguments as sizes of tensors. `eager`, the same graph, runs the calls in which one is negative
    or above LARGEST."""

    def __init__(
        self, eager: torch.nn.Module, graph: torch.fx.GraphModule, name: str, options: Mapping[str, Any]
    ) -> None:
        super().__init__()
        rest, cuda_graphs = split_options(options)
        nodes = [n for n in graph.graph.nodes if n.op == "call_function" and n.target is not operator.getitem]
        self.operators = sum(not is_view(n) for n in nodes)
        self.strided = strided_results(graph.graph)
        self.input_orders, self.output_orders = dense_ends(graph.graph)
        placeholders = graph.graph.find_nodes(op="placeholder")
        hidden = [n for n in placeholders if is_size(n) and not n.meta.get("given")]
        self.sizes = sum(n.meta.get("given", False) for n in placeholders)
        places = [i for i, n in enumerate(placeholders) if n not in hidden]
        written = write_backs_as_results(graph.graph)
        file = converted(AtenProgram(graph, hidden, written), name)
        self.device = next(t.device for n in nodes for t in tensors_of(n))
        if not file.leaves:
            file.inputs.append({"name": file.unique(PLACE), "dtype": "uint8", "shape": [0]})
        self.module: Module = compile_model(_core.Model.parse(file.text()), weights=file.tensors, **rest)
        self.leaves = {n: places[leaf] for n, leaf in file.leaves.items()}
        self.integers = {n: places[leaf] for n, leaf in file.integers.items()}
        self.results = [file.outputs[place] for place in file.returned if isinstance(place, int)]
        self.written = set(file.aliases.values())
        self.call: Callable[..., Any] = self.module
        if cuda_graphs and self.device.type == "cuda":
            self.call = GraphedCalls(self.module, {self.module.input_names.index(n) for n in self.written})
        # Results to clone: a value returned twice, or returned and written into an input.
        self.copied = {i for i, n in enumerate(self.results) if n in self.results[:i] or n in file.aliases}
        self.eager = eager

    def forward(self, *arguments: Any) -> tuple[torch.Tensor, ...]:
        if any(not 0 <= arguments[place] <= LARGEST for place in self.integers.values()):
            given: tuple[torch.Tensor, ...] = self.eager(*arguments[: len(arguments) - self.sizes])
            return given
        inputs = {name: self._input(name, arguments) for name in self.module.input_names}
        written = {n: t for n, t in inputs.items() if n in self.written and t.is_cuda}
        unaligned = {n: t for n, t in written.items() if t.data_ptr() % _core.DEVICE_ALIGNMENT}
        inputs |= {name: tensor.clone() for name, tensor in unaligned.items()}
        made = self.call(*inputs.values())
        for name, tensor in unaligned.items():
            tensor.copy_(inputs[name])
        outputs = dict(zip(self.module.output_names, as_tuple(made)))
        results = (outputs[n].clone() if i in self.copied else outputs[n] for i, n in enumerate(self.results))
        made = tuple(r if o is None else r.permute(o) for r, o in zip(results, self.output_orders))
        return tuple(self._with_strides(place, r) for place, r in enumerate(made)) if self.strided else made

    def _with_strides(self, place: int, result: torch.Tensor) -> torch.Tensor:
        if place not in self.strided:
            return result
        return result.new_empty_strided(result.shape, self.strided[place]).copy_(result)

    def _input(self, name: str, arguments: tuple[Any, ...]) -> torch.Tensor:
        if name not in self.leaves:
            size = (arguments[self.integers[name]], 0) if name in self.integers else (0,)
            return torch.empty(size, dtype=torch.uint8, device=self.device)
        tensor: torch.Tensor = arguments[self.leaves[name]]
        order = self.input_orders.get(self.leaves[name])
        return tensor if order is None else tensor.permute(order)


def converted(program: AtenProgram, name: str) -> ModelFile:
    """Raises InputError for what has no counterpart."""
    made = Converter(program, None, name).run()
    if made.problems:
        raise unmapped_error(made.problems)
    file: ModelFile = made.file
    return file


def strided_results(graph: torch.fx.Graph) -> dict[int, Order]:
    """By place, the strides of results whose memory has gaps, as empty_strided makes them."""
    found = {}
    for place, result in enumerate(graph.output_node().args[0]):  # type: ignore[arg-type]
        value = result.meta["val"]
        fixed = all(isinstance(n, int) for n in [*value.shape, *value.stride()])
        if fixed and value.numel() and has_gaps(value) and not overlaps(value):
            found[place] = tuple(value.stride())
    return found


def dense_ends(graph: torch.fx.Graph) -> tuple[dict[int, Order], list[Order | None]]:
    """Lets the region read and write memory in its order. Returns, by place, the orders of permuted inputs and outputs.

    An input with strides (1, 4) is read as its transpose, which is dense, and transposed in the region's graph."""
    inputs: dict[int, Order] = {}
    for place, node in enumerate(graph.find_nodes(op="placeholder")):
        value = node.meta.get("val")
        order = memory_order(value) if isinstance(value, torch.Tensor) else None
        if order is None:
            continue
        inputs[place] = order
        users = list(node.users)
        with graph.inserting_after(node):
            seen = graph.call_function(aten.permute.default, (node, list(inverse(order))))
        seen.meta = dict(node.meta)
        for user in users:
            user.replace_input_with(node, seen)
        node.meta = {**node.meta, "val": value.permute(order)}
    output = graph.output_node()
    results: list[torch.fx.Node] = list(output.args[0])  # type: ignore[arg-type]
    orders: list[Order | None] = []
    with graph.inserting_before(output):
        for i, result in enumerate(results):
            order = memory_order(result.meta["val"])
            orders.append(None if order is None else inverse(order))
            if order is not None:
                results[i] = graph.call_function(aten.permute.default, (result, list(order)))
                results[i].meta = {"val": result.meta["val"].permute(order)}
    output.args = (tuple(results),)
    return inputs, orders


def write_backs_as_results(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The inputs that the region writes; their new values become its last results."""
    output = graph.output_node()
    written = []
    for copy in write_backs(graph):
        written.append(copy.args[0])
        output.args = ((*output.args[0], copy.args[1]),)  # type: ignore[misc]
        graph.erase_node(copy)
    return written  # type: ignore[return-value]


def add_sizes(region: torch.fx.Graph, outer: torch.fx.Graph, call: torch.fx.Node) -> list[torch.fx.Node]:
    """Adds inputs for the symbols that the region uses but no input shape determines. Returns their nodes in `outer`."""
    told: set[Any] = set()
    needed: set[Any] = set()
    for node in region.nodes:
        for size in sizes_of(node):
            needed |= size.node.expr.free_symbols
            if node.op == "placeholder" and not is_size(node) and size.node.expr.is_Symbol:
                told.add(size.node.expr)
    found = []
    for node in outer.nodes:
        if node is call:
            break
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr in needed - told:
            told.add(value.node.expr)
            add_input(region, f"size_{value.node.expr}").meta = {"val": value, "given": True}
            found.append(node)
    return found


def add_input(graph: torch.fx.Graph, name: str) -> torch.fx.Node:
    """A placeholder after those that there are."""
    last = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(last):
        return graph.placeholder(name)


def sizes_of(node: torch.fx.Node) -> Iterator[torch.SymInt]:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        yield value
    for tensor in tensors_of(node):
        for size in tensor.shape:
            if isinstance(size, torch.SymInt):
                yield size
