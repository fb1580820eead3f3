"""Takes the views that a graph returns off its end, before its operators are decomposed, and puts them back afterwards.

    before                      decomposed            after
    y = x + 1                   y = x + 1             y = x + 1
    d = diagonal(y)                                   d = diagonal(y)
    return d, y                 return y              return d, y

So d shares the memory of y, as it does in eager, also where a region would compute the two apart. What the views are of
has the strides that it had before it was decomposed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .partition import is_size, is_view
from .strides import same_strides


Nodes = dict[torch.fx.Node, torch.fx.Node]


class Returned(NamedTuple):
    """One result: the views, the last one first, of `root`, which the decomposed graph returns at `place`."""

    views: tuple[torch.fx.Node, ...]
    root: torch.fx.Node
    place: int


def without_last_views(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[Returned | Any]]:
    """Returns the base of each result's view chain, without duplicates; constants are left out."""
    graph = torch.fx.Graph()
    copies: Nodes = {}
    graph.graph_copy(module.graph, copies)
    places: dict[torch.fx.Node, int] = {}
    returned: list[Returned | Any] = []
    for result in module.graph.output_node().args[0]:  # type: ignore[union-attr]
        if not isinstance(result, torch.fx.Node):
            returned.append(result)
            continue
        views, root = views_of(result)
        returned.append(Returned(views, root, places.setdefault(root, len(places))))
    graph.output(tuple(copies[root] for root in places)).meta = dict(module.graph.output_node().meta)
    for node in reversed(list(graph.nodes)):
        if not node.users and is_view(node):
            graph.erase_node(node)
    return torch.fx.GraphModule(module, graph), returned


def views_of(result: torch.fx.Node) -> tuple[tuple[torch.fx.Node, ...], torch.fx.Node]:
    """The views that lead to the result, the last one first, and what they are views of."""
    views: list[torch.fx.Node] = []
    node = result
    while node.op == "call_function" and is_view(node) and all(known_size(n) for n in node.all_input_nodes[1:]):
        views.append(node)
        node = node.args[0]  # type: ignore[assignment]
    return tuple(views), node


def known_size(node: torch.fx.Node) -> bool:
    """Whether the node is computed of the sizes of inputs alone."""
    return is_size(node) and all(n.op == "placeholder" or known_size(n) for n in node.all_input_nodes)


def reattach_output_views(
    before: torch.fx.GraphModule, after: torch.fx.GraphModule, returned: list[Returned | Any]
) -> None:
    """Makes the graph `after`, which was made of `before`, return what `returned` says."""
    output = after.graph.output_node()
    sizes: Nodes = dict(zip(before.graph.find_nodes(op="placeholder"), after.graph.find_nodes(op="placeholder")))

    def size(node: torch.fx.Node) -> torch.fx.Node:
        if node not in sizes:
            sizes[node] = after.graph.node_copy(node, size)
        return sizes[node]

    roots: list[torch.fx.Node] = list(output.args[0])  # type: ignore[arg-type]
    made: Nodes = {}
    results = []
    with after.graph.inserting_before(output):
        for result in returned:
            if not isinstance(result, Returned):
                results.append(result)
                continue
            if result.root not in made:
                made[result.root] = with_strides(result.root, roots[result.place])
            node = made[result.root]
            for view in reversed(result.views):
                if view not in made:
                    base, *others = view.all_input_nodes
                    known = {base: node, **{n: size(n) for n in others}}
                    made[view] = after.graph.node_copy(view, known.__getitem__)
                node = made[view]
            results.append(node)
    output.args = (tuple(results),)


def with_strides(old: torch.fx.Node, new: torch.fx.Node) -> torch.fx.Node:
    """`new`, or a copy of it that has the strides of `old`."""
    value = old.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return new
    if same_strides(value, new.meta["val"]):
        return new
    copied = new.graph.call_function(torch.ops.aten.clone.default, (new,))
    copied.meta = {**new.meta, "val": value}
    return copied
