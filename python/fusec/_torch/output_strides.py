"""Keeps the strides of a graph's results where its operators were decomposed."""

from __future__ import annotations

import torch

from .partition import is_view
from .strides import same_strides

Copies = dict[torch.fx.Node, torch.fx.Node]


def keep_output_strides(before: torch.fx.GraphModule, after: torch.fx.GraphModule) -> None:
    """Adds copies, so that the results of `after` have the strides that those of `before` have."""
    output = after.graph.output_node()
    copies: Copies = {}
    wanted: list[object] = list(before.graph.output_node().args[0])  # type: ignore[arg-type]
    results: list[object] = list(output.args[0])  # type: ignore[arg-type]
    for place, (old, new) in enumerate(zip(wanted, results)):
        if isinstance(old, torch.fx.Node) and isinstance(new, torch.fx.Node):
            results[place] = with_strides(old, new, copies)
    output.args = (tuple(results),)  # type: ignore[assignment]


def with_strides(old: torch.fx.Node, new: torch.fx.Node, copies: Copies) -> torch.fx.Node:
    """The value of `new` with the strides of `old`. A view becomes a view of a copy, which results may share."""
    if new in copies:
        return copies[new]
    value = old.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return new
    graph, base = new.graph, new
    if is_view(old) and old.target is new.target and len(old.args) == len(new.args) and new.op == "call_function":
        base = with_strides(old.args[0], new.args[0], copies)  # type: ignore[arg-type]
        if base is not new.args[0]:
            with graph.inserting_before(graph.output_node()):
                copies[new] = graph.node_copy(new, lambda n: base if n is new.args[0] else n)
            copies[new].meta = {**new.meta, "val": value}
            return copies[new]
    if same_strides(value, new.meta["val"]):
        return new
    with graph.inserting_before(graph.output_node()):
        copies[new] = graph.call_function(torch.ops.aten.clone.default, (new,))
    copies[new].meta = {**new.meta, "val": value}
    return copies[new]
