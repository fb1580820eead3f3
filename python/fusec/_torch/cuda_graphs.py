"""Calls of a module as CUDA graphs: one launch of the driver in place of one for each kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import UsageError

Results = tuple[torch.Tensor, ...]
Sizes = tuple[torch.Size, ...]
MOST_GRAPHS = 8  # each keeps a workspace and results; inputs of further sizes are launched kernel by kernel
ALIGNMENT = 16  # bytes, of what kernels read and write on a GPU


@dataclasses.dataclass
class _Graph:
    """What one graph reads and writes: the memory of `inputs`, of which those in `copied` are the graph's own."""

    inputs: list[torch.Tensor]
    copied: set[int]
    replay: Callable[[], Any] | None = None  # None until the second call with these sizes


class GraphedCalls:
    """Calls `module`, which has the methods of :class:`fusec.Module`, through CUDA graphs: one for each set of sizes.

    A graph reads and writes the addresses that it was captured with. The first call with a set of sizes runs without a
    graph. The second one captures: an input at the same address as before (a weight, a cache) is read in place, each
    other one is copied into memory of the graph's own before a replay, and back where the module writes it. An input that
    moves later is copied from then on, by a graph that is captured anew. Results are copies: they outlive the next call.
    """

    def __init__(self, module: Any, written: set[int]) -> None:
        """`written`: the places of the inputs that the module writes."""
        self._module = module
        self._written = written
        self._graphs: dict[Sizes, _Graph] = {}

    def __call__(self, *inputs: torch.Tensor) -> Results:
        sizes = tuple(t.shape for t in inputs)
        graph = self._graphs.get(sizes)
        if _is_capturing() or (graph is None and len(self._graphs) == MOST_GRAPHS):
            return _as_tuple(self._module(*inputs))
        if graph is None:
            self._graphs[sizes] = _Graph([t.detach() for t in inputs], set())
            return _as_tuple(self._module(*inputs))
        moved = {i for i, t in enumerate(inputs) if i not in graph.copied and not _is_in_place(t, graph.inputs[i])}
        if moved or graph.replay is None:
            graph = self._graphs[sizes] = self._captured(inputs, graph.copied | moved)
        return self._replayed(graph, inputs)

    def _captured(self, inputs: tuple[torch.Tensor, ...], copied: set[int]) -> _Graph:
        kept = [
            torch.empty_like(t, memory_format=torch.contiguous_format) if i in copied else t.detach()
            for i, t in enumerate(inputs)
        ]
        return _Graph(kept, copied, self._module.capture(*kept).replay)

    def _replayed(self, graph: _Graph, inputs: tuple[torch.Tensor, ...]) -> Results:
        assert graph.replay is not None
        for i in graph.copied:
            graph.inputs[i].copy_(inputs[i])
        made = _as_tuple(graph.replay())
        for i in graph.copied & self._written:
            inputs[i].copy_(graph.inputs[i])
        written = {id(graph.inputs[i]): inputs[i] for i in self._written}  # a result that is an input stays that input
        return tuple(written[id(r)] if id(r) in written else r.clone() for r in made)


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The options of a compilation among those of the backend, and ``cuda_graphs``. Raises UsageError."""
    rest = dict(options)
    wanted = rest.pop("cuda_graphs", False)
    if not isinstance(wanted, bool):
        raise UsageError(what="option cuda_graphs", found=repr(wanted), expected="True or False")
    return rest, wanted


def _is_in_place(tensor: torch.Tensor, seen: torch.Tensor) -> bool:
    """Whether a graph that read `seen` can read `tensor` where it is."""
    address = tensor.data_ptr()
    return tensor.is_contiguous() and address % ALIGNMENT == 0 and address == seen.data_ptr()


def _is_capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _as_tuple(made: Any) -> Results:
    return made if isinstance(made, tuple) else (made,)
