"""Which parts of a graph of ATen operators fusec compiles; the rest stays with eager."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from .aten_program import attribute, write_backs
from .complex_ends import make_ends_real
from .complex_pairs import PART
from .model_file import DTYPES
from .strides import has_gaps

Nodes = dict[torch.fx.Node, int | None]
PREFIX = "fusec_region_"
aten = torch.ops.aten
# Their results share the operand's memory, which their schemas do not say.
UNSAFE_VIEWS = {
    aten.unsafe_split.Tensor,
    aten.unsafe_split_with_sizes.default,
    aten.unsafe_chunk.default,
    aten._unsafe_view.default,
}
COMPLEX_END = "it takes or gives a complex tensor that eager makes or reads"
WRITTEN_EARLY = "it overwrites an input before an operator that stays with eager reads the old value"
COLLECTIVE_OUTSIDE = "it waits for a collective outside the region"
WAIT = "_c10d_functional.wait_tensor.default"
BEFORE = "fusec_before"  # the keyword argument that orders operators with effects
WITH_STRIDES = {aten.empty_strided.default, aten.new_empty_strided.default}


class Support(OperatorSupportBase):
    """What can be part of a region, where the nodes in `refused`, each with a reason, have no counterpart."""

    def __init__(self, refused: Mapping[str, str]) -> None:
        self.refused = refused

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        return why_eager(node, self.refused) is None


def why_eager(node: torch.fx.Node, refused: Mapping[str, str]) -> str | None:
    """Why no region can have this node; None for an operator with a counterpart on dense tensors on one device."""
    if node.op == "get_attr":
        return None if isinstance(held(node), torch.Tensor) else "it is a graph"
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return "a higher-order operator" if called(node) is node.target else "an operator with effects"
    if node.name in refused:
        return refused[node.name]
    if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        return why_eager(node.args[0], refused)
    if not isinstance(node.target, torch._ops.OpOverload):
        return "it is no ATen operator"
    results = list(tensors_of(node))
    if not results:
        return "it returns no tensor"
    if any(isinstance(n.meta.get("val"), (torch.SymFloat, torch.SymBool)) for n in node.all_input_nodes):
        return "it reads a number that eager computes"
    tensors = [*results, *(t for source in node.all_input_nodes for t in tensors_of(source))]
    unknown = sorted(str(d).removeprefix("torch.") for d in {t.dtype for t in tensors} - DTYPES.keys() - PART.keys())
    if unknown:
        return f"the format has no {unknown[0]}"
    if len({t.device for t in tensors}) != 1:
        return "its tensors are on several devices"
    if results[0].device.type not in ("cpu", "cuda"):
        return f"its tensors are on {results[0].device}"
    if any(t.layout is not torch.strided for t in tensors):
        return "its tensors are not strided"
    if node.target in WITH_STRIDES and has_gaps(results[0]):
        return "the memory of its result has gaps"
    if node.target is aten.copy_.default:
        written = node.args[0]
        if written.op != "placeholder" or not results[0].is_contiguous():  # type: ignore[union-attr]
            return "it writes a tensor that is no contiguous input"
    return None


def held(node: torch.fx.Node) -> Any:
    """The attribute of the module that a get_attr node reads: a tensor, or a graph that torch.cond takes."""
    module = node.graph.owning_module
    assert module is not None
    return attribute(module, node)


def called(node: torch.fx.Node) -> Any:
    """The operator; of a higher-order operator that calls one given to it (auto_functionalized), that one."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return node.target
    return next((a for a in node.args if isinstance(a, torch._ops.OpOverload)), node.target)


def tensors_of(node: torch.fx.Node) -> Iterator[torch.Tensor]:
    value = node.meta.get("val")
    for v in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(v, torch.Tensor):
            yield v


def is_size(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymInt)


def is_view(node: torch.fx.Node) -> bool:
    """Whether eager runs no kernel for this node: its result shares the memory of its operand."""
    if node.op == "get_attr":
        return True
    if node.target is operator.getitem:
        return isinstance(node.args[0], torch.fx.Node) and is_view(node.args[0])
    return returns_view(node.target)


def returns_view(target: object) -> bool:
    """Whether the results of an operator share the memory of its operand."""
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    return target in UNSAFE_VIEWS or any(r.alias_info is not None for r in target._schema.returns)


def split_into_regions(module: torch.fx.GraphModule, refused: dict[str, str]) -> torch.fx.GraphModule:
    """The module with each supported region as a submodule fusec_region_N, which returns a tuple.

    A region begins with the views of its inputs, so that they need no dense copies. It does not end with views, which
    cost nothing in eager. A write-back is part of a region that has all other readers of the input that it changes, and
    the wait for a collective part of one that has the collective. Adds to `refused`."""
    give_each_user_its_constant(module.graph)
    make_ends_real(module.graph, refused)
    with effects_in_order(module, refused):
        regions: list[Nodes] = []
        for nodes in proposed(module, refused):
            drop_early_write_backs(nodes, refused)
            drop_early_waits(nodes, refused)
            drop_last_views(nodes)
            if nodes:
                regions.append(nodes)
        fuse_by_partitions(module, regions, prefix=PREFIX, always_return_tuple=True)
    move_write_backs_to_the_end(module.graph)
    module.recompile()
    return module


@contextlib.contextmanager
def effects_in_order(module: torch.fx.GraphModule, refused: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile each of eager's operators with effects reads the one before it, so that sorting keeps their order."""
    stay = [n for n in module.graph.nodes if has_effects(n.target) and why_eager(n, refused)]
    for before, node in zip(stay, stay[1:]):
        node.kwargs = {**node.kwargs, BEFORE: before}
    try:
        yield
    finally:
        for node in module.graph.nodes:  # sorting has made others of those above
            node.kwargs = {name: value for name, value in node.kwargs.items() if name != BEFORE}


def has_effects(target: object) -> bool:
    """Whether an operator may draw random numbers, write, communicate or print. Of aten's the schemas and tags tell."""
    if not isinstance(target, torch._ops.OpOverload):
        return isinstance(target, torch._ops.HigherOrderOperator)
    random = torch.Tag.nondeterministic_seeded in target.tags
    return random or target._schema.is_mutable or target.namespace not in ("aten", "prims")


def proposed(module: torch.fx.GraphModule, refused: dict[str, str]) -> list[Nodes]:
    """Regions at whose ends there is no complex tensor: a region holds a complex tensor as two real ones."""
    while True:
        partitioner = CapabilityBasedPartitioner(module, Support(refused), allows_single_node_partition=True)
        regions = [dict.fromkeys(partition.nodes) for partition in partitioner.propose_partitions()]
        outside = {name for nodes in regions for name in at_complex_ends(nodes)}
        if not outside:
            return regions
        refused.update(dict.fromkeys(outside, COMPLEX_END))


def at_complex_ends(nodes: Nodes) -> Iterator[str]:
    """Nodes that take a complex tensor from outside, or give one away."""
    for node in nodes:
        taken = [source for source in node.all_input_nodes if source not in nodes]
        given = [node] if any(user not in nodes for user in node.users) else []
        if any_complex([*taken, *given]):
            yield node.name


def any_complex(nodes: Iterable[torch.fx.Node]) -> bool:
    return any(t.dtype in PART for node in nodes for t in tensors_of(node))


def give_each_user_its_constant(graph: torch.fx.Graph) -> None:
    """A constant lies in the region that reads it; regions do not hand it to one another."""
    for node in graph.find_nodes(op="get_attr"):
        for user in list(node.users)[1:]:
            with graph.inserting_before(user):
                copied = graph.node_copy(node)
            user.replace_input_with(node, copied)


def drop_last_views(nodes: Nodes) -> None:
    """Views of complex tensors stay: at the ends of a region there is no complex tensor."""
    found = True
    while found:
        found = False
        for node in list(nodes):
            pieces = [u for u in node.users if u.target is operator.getitem]
            users = [u for piece in pieces for u in piece.users] if pieces else node.users
            if node.target is operator.getitem or not is_view(node) or any(user in nodes for user in users):
                continue  # pieces of a split go with it, since no region returns a list
            if any_complex(node.all_input_nodes):
                continue
            for dropped in (node, *pieces):
                nodes.pop(dropped, None)
            found = True


def drop_early_write_backs(nodes: Nodes, refused: dict[str, str]) -> None:
    for node in [n for n in nodes if n.target is aten.copy_.default]:
        written, value = node.args[:2]
        readers = {u for u in written.users if u is not node and u.op != "output"}  # type: ignore[union-attr]
        kept, new = next(tensors_of(written)), next(tensors_of(value))  # type: ignore[arg-type]
        same_type = kept.dtype == new.dtype and kept.shape == new.shape
        if not same_type or value not in nodes or is_view(value) or not readers <= set(nodes):  # type: ignore[arg-type]
            del nodes[node]
            refused[node.name] = WRITTEN_EARLY


def drop_early_waits(nodes: Nodes, refused: dict[str, str]) -> None:
    """A region waits for its own collectives alone: one of eager returns before its result is there."""
    for node in [n for n in nodes if str(n.target) == WAIT]:
        path: list[Any] = [node, node.args[0]]
        while path[-1].op == "call_function" and is_view(path[-1]):  # the wait may be for a view of the result
            path.append(path[-1].args[0])
        if path[-1] not in nodes:
            refused[node.name] = COLLECTIVE_OUTSIDE
            for dropped in path:
                nodes.pop(dropped, None)


def move_write_backs_to_the_end(graph: torch.fx.Graph) -> None:
    """Sorting by operands alone may have put one before a reader of the old value."""
    for node in write_backs(graph):
        graph.output_node().prepend(node)
