"""What torch.compile(backend="fusec") makes of a PyTorch model."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import PlatformError, UsageError

if TYPE_CHECKING:
    from ._torch.backend import EagerNode, GraphReport


class Explanation:
    """Of one call of a model: the graphs that TorchDynamo made, what fusec compiles of them, and what stays with eager.

    ``breaks``: where TorchDynamo ended a graph, each with the line of the model and the reason. ``outside``: the operators
    that eager ran between the graphs, or without one; like those in :attr:`eager`.
    """

    def __init__(self, graphs: list[GraphReport], outside: list[EagerNode], breaks: list[EagerNode]) -> None:
        self.graphs, self.outside, self.breaks = graphs, outside, breaks

    @property
    def eager(self) -> list[EagerNode]:
        """The operators that stay with eager, each with its name, the line of the model that calls it, and the reason."""
        return [node for graph in self.graphs for node in graph.eager] + self.outside

    @property
    def launches(self) -> int:
        """Kernel launches of all regions that fusec compiles."""
        return sum(graph.launches for graph in self.graphs)

    def __str__(self) -> str:
        regions = sum(len(g.regions) for g in self.graphs)
        lines = [
            f"graphs: {len(self.graphs)}",
            f"compiled by fusec: {sum(g.operators for g in self.graphs)} operators in {regions} regions, "
            f"{self.launches} launches",
            f"left to eager: {len(self.eager)} operators",
        ]
        kinds = Counter((n.operator, n.source, n.reason) for n in self.eager)
        for (operator, source, reason), count in sorted(kinds.items()):
            times = f" ({count} times)" if count > 1 else ""
            lines.append(f"  {operator}{times}{', from ' + source if source else ''}: {reason}")
        if self.breaks:
            lines.append(f"graph breaks: {len(self.breaks)}")
            lines += [f"  {b.source + ': ' if b.source else ''}{b.reason}" for b in self.breaks]
        return "\n".join(lines)

    __repr__ = __str__


def explain(
    model: Callable[..., Any], *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any
) -> Explanation:
    """Runs ``model(*args, **kwargs)`` under ``torch.compile(backend="fusec")`` and says what became of it.

    ``options``: those of the backend. Call it under ``torch.no_grad()`` for the graphs of inference. Backward graphs are
    compiled at the first backward call, and are not seen here. What was compiled before is neither used nor dropped.
    Raises UsageError for a model that cannot be called, PlatformError where PyTorch is not installed.
    """
    if not callable(model):
        raise UsageError(what="the model of explain", found=repr(model), expected="a module or a function")
    try:
        import torch

        from ._torch.backend import backend, recorded
        from ._torch.outside import OutsideGraphs
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise PlatformError(what="PyTorch is not installed", hint="pip install fusec[torch]") from None
    given = dict(options or {})
    outside = OutsideGraphs(lambda graph, inputs: backend(graph, inputs, options=given))
    # PyTorch 2.11 cannot isolate: there each explanation adds to what TorchDynamo keeps of the model's code.
    can_isolate = "isolate_recompiles" in inspect.signature(torch.compile).parameters
    isolated: dict[str, Any] = {"isolate_recompiles": True} if can_isolate else {}
    compiled = torch.compile(model, backend=outside.backend, **isolated)
    with recorded() as graphs, outside:
        compiled(*args, **kwargs)
    return Explanation(graphs, outside.nodes, outside.breaks)
