"""Calls of a module as CUDA graphs: one launch of the driver in place of one for each kernel."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .._core import DEVICE_ALIGNMENT
from ..errors import UsageError

Results = tuple[torch.Tensor, ...]
Sizes = tuple[torch.Size, ...]
MOST_GRAPHS = 8  # each keeps a workspace and results; inputs of further sizes are launched kernel by kernel


@dataclasses.dataclass
class _Graph:
    """What one graph reads and writes: the memory of `inputs`, of which those in `copied` are the graph's own."""

    inputs: list[torch.Tensor]
    copied: set[int]
    replay: Callable[[], Any]


class GraphedCalls:
    """Calls `module`, which has the methods of :class:`fusec.Module`, through CUDA graphs: one for each set of sizes.

    A graph reads and writes the addresses that it was captured with. The first call with a set of sizes runs without a
    graph. The second one captures: an input at the same address as before (a weight, a cache) is read in place, each
    other one is copied into memory of the graph's own before a replay, and back where the module writes it. An input that
    moves later is copied from then on, by a graph that is captured anew. Results are copies: they outlive the next call.
    Calls from several threads, and on several streams, take turns.
    """

    def __init__(self, module: Any, written: set[int]) -> None:
        """`written`: the places of the inputs that the module writes."""
        self._module = module
        self._written = written
        self._first: dict[Sizes, list[tuple[int, StorageWeakRef]]] = {}  # where the inputs of the first call lay
        self._graphs: dict[Sizes, _Graph] = {}
        self._lock = threading.Lock()
        self._replayed: torch.cuda.Event | None = None

    def __call__(self, *inputs: torch.Tensor) -> Results:
        if _is_capturing():
            return as_tuple(self._module(*inputs))
        sizes = tuple(t.shape for t in inputs)
        with self._lock:
            if sizes in self._first:
                return self._on_graph(sizes, inputs)
            if len(self._first) < MOST_GRAPHS:
                self._first[sizes] = [(t.data_ptr(), StorageWeakRef(t.untyped_storage())) for t in inputs]
        return as_tuple(self._module(*inputs))

    def _on_graph(self, sizes: Sizes, inputs: tuple[torch.Tensor, ...]) -> Results:
        graph = self._graphs.get(sizes)
        if graph is None:  # memory of an input that was freed may have come to another by chance
            copied, places = set(), [None if kept.expired() else place for place, kept in self._first[sizes]]
        else:
            copied, places = graph.copied, [t.data_ptr() for t in graph.inputs]
        moved = {i for i, t in enumerate(inputs) if i not in copied and not _is_in_place(t, places[i])}
        if moved or graph is None:
            graph = self._graphs[sizes] = self._captured(inputs, copied | moved)
        stream = torch.cuda.current_stream(inputs[0].device) if inputs[0].is_cuda else None
        if stream is not None and self._replayed is not None:
            stream.wait_event(self._replayed)  # the call before may be under way on another stream
        made = self._replay(graph, inputs)
        if stream is not None:
            self._replayed = stream.record_event()
        return made

    def _captured(self, inputs: tuple[torch.Tensor, ...], copied: set[int]) -> _Graph:
        with torch.inference_mode(False):  # later calls outside inference mode write this memory too
            kept = [
                torch.empty_like(t, memory_format=torch.contiguous_format) if i in copied else t.detach()
                for i, t in enumerate(inputs)
            ]
            return _Graph(kept, copied, self._module.capture(*kept).replay)

    def _replay(self, graph: _Graph, inputs: tuple[torch.Tensor, ...]) -> Results:
        for i in graph.copied:
            graph.inputs[i].copy_(inputs[i])
        made = as_tuple(graph.replay())
        for i in graph.copied & self._written:
            inputs[i].copy_(graph.inputs[i])
        written = {id(graph.inputs[i]): inputs[i] for i in self._written}  # a result that is an input stays that input
        return tuple(written[id(r)] if id(r) in written else r.clone() for r in made)


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The options of a compilation among those of the backend, and ``cuda_graphs``. Raises UsageError and TypeError."""
    if strange := [name for name in options if not isinstance(name, str)]:
        raise TypeError(f"unexpected option {strange[0]!r}")
    rest = dict(options)
    wanted = rest.pop("cuda_graphs", False)
    if not isinstance(wanted, bool):
        raise UsageError(what="option cuda_graphs", found=repr(wanted), expected="True or False")
    return rest, wanted


def _is_in_place(tensor: torch.Tensor, known: int | None) -> bool:
    """Whether a graph that reads the address `known`, where there is one, can read `tensor` where it is."""
    address = tensor.data_ptr()
    return tensor.is_contiguous() and address % DEVICE_ALIGNMENT == 0 and address == known


def _is_capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def as_tuple(made: Any) -> Results:
    return made if isinstance(made, tuple) else (made,)
