"""Gives regions real tensors at their ends: eager's views between complex and real tensors cost nothing.

    a placeholder, or a result of an operator that stays with eager:  x -> view_as_complex(view_as_real(x))
    an operand of the output, or of an operator that stays:           likewise

No views between two operators that both stay: no region lies between them, and wait_tensor must read the collective's own
result.
A region takes what lies between the outer views. It holds a complex tensor as two real ones (complex_pairs.py)."""

from __future__ import annotations

import operator
from collections.abc import Collection

import torch

from .complex_pairs import PART

aten = torch.ops.aten


def make_ends_real(graph: torch.fx.Graph, refused: Collection[str]) -> None:
    """Adds the views. refused: names of the nodes that stay with eager."""

    def is_eager(node: torch.fx.Node) -> bool:
        producer: torch.fx.Node = node.args[0] if node.target is operator.getitem else node  # type: ignore[assignment]
        ends = node.op in ("placeholder", "output")
        return ends or producer.name in refused or node.target is aten.copy_.default

    for node in filter(is_eager, list(graph.nodes)):
        for source in node.all_input_nodes:
            if _is_complex(source) and not is_eager(source):
                with graph.inserting_before(node):
                    node.replace_input_with(source, _there_and_back(graph, source))
    last = next(n for n in graph.nodes if n.op != "placeholder")
    for node in filter(is_eager, list(graph.nodes)):
        users = [u for u in node.users if not is_eager(u)]
        if not users or not _is_complex(node):
            continue
        with graph.inserting_before(last if node.op == "placeholder" else node.next):
            seen = _there_and_back(graph, node)
        for user in users:
            user.replace_input_with(node, seen)


def _there_and_back(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    if node.meta["val"].is_conj():
        node = _call(graph, aten.resolve_conj.default, node)
    return _call(graph, aten.view_as_complex.default, _call(graph, aten.view_as_real.default, node))


def _call(graph: torch.fx.Graph, overload: torch._ops.OpOverload, node: torch.fx.Node) -> torch.fx.Node:
    made = graph.call_function(overload, (node,))
    made.meta = {**node.meta, "val": overload(node.meta["val"])}
    return made


def _is_complex(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in PART and value.layout is torch.strided
