"""Operators that run outside the graphs of TorchDynamo, and the graph breaks that put them there."""

from __future__ import annotations

import re
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import private
from .backend import EagerNode
from .partition import returns_view
from .shared_state import SharedChange, Undo, patch
from .source_lines import models_frames, own_line


class Break(NamedTuple):
    """A graph break: the model's frames, and the reason."""

    stack: traceback.StackSummary
    reason: str


class OutsideGraphs(TorchDispatchMode):
    """While it is in force, notes the operators that eager runs, except in calls of what `backend` compiled."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # TorchDynamo compiles nothing under other modes

    def __init__(self, backend: Callable[..., Callable[..., Any]]) -> None:
        super().__init__()
        self.nodes: list[EagerNode] = []
        self._compile, self._in_graph = backend, False
        self._breaks: list[Break] = []
        self._outer: OutsideGraphs | None = None

    def __enter__(self) -> Self:
        NOTING_BREAKS.__enter__()
        self._outer, _thread.mode = getattr(_thread, "mode", None), self
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        _thread.mode = self._outer
        NOTING_BREAKS.__exit__()

    def backend(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        compiled = self._within(self._compile, graph, inputs)
        return lambda *args: self._within(compiled, *args)

    def _within(self, function: Callable[..., Any], *args: Any) -> Any:
        before, self._in_graph = self._in_graph, True
        try:
            return function(*args)
        finally:
            self._in_graph = before

    @property
    def breaks(self) -> list[EagerNode]:
        """The graph breaks, in the order of the run: the source line and the reason of each."""
        return [EagerNode("", _line(b.stack), b.reason) for b in self._breaks]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self._in_graph and not returns_view(func):
            frames = traceback.walk_stack(sys._getframe(1))
            stack = models_frames(reversed(traceback.StackSummary.extract(frames, lookup_lines=False)))
            self.nodes.append(EagerNode(str(func), _line(stack), self._why(stack)))
        return func(*args, **(kwargs or {}))

    def _why(self, stack: traceback.StackSummary) -> str:
        """The reason of the break at this line, else of one in this function, else of the latest."""
        lines, functions = {(f.filename, f.lineno) for f in stack}, {(f.filename, f.name) for f in stack}

        def nearness(place: int) -> tuple[bool, bool, int]:
            at = self._breaks[place].stack[-1:]
            return any((f.filename, f.lineno) in lines for f in at), any((f.filename, f.name) in functions for f in at), place

        if not self._breaks:
            return "TorchDynamo did not trace it"
        nearest = self._breaks[max(range(len(self._breaks)), key=nearness)]
        return f"outside TorchDynamo's graphs: {nearest.reason}"


_thread = threading.local()  # mode: the OutsideGraphs that is in force in this thread


def _note_breaks() -> Undo:
    """Lets TorchDynamo tell the thread's OutsideGraphs of each graph break."""
    log = private.log_graph_break

    def noted(translator: Any, *args: Any, **kwargs: Any) -> None:
        mode, error = getattr(_thread, "mode", None), kwargs.get("exc")
        stack = getattr(error, "real_stack", None)
        if mode is not None and stack is not None and not getattr(error, "logged", False):
            mode._breaks.append(Break(models_frames(stack), _explanation(str(kwargs.get("reason", "")))))
        log(translator, *args, **kwargs)

    return patch(private.InstructionTranslatorBase, "log_graph_break", noted)


NOTING_BREAKS = SharedChange(_note_breaks)


def _line(stack: traceback.StackSummary) -> str:
    return own_line([(f.filename, f.lineno or 0) for f in stack])


def _explanation(reason: str) -> str:
    found = re.search(r"Explanation: (.*)", reason)
    return (found[1] if found else reason.split("\n")[0]).strip()
