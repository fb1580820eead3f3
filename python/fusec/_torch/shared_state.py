"""Changes of PyTorch's process-wide state. Overlapping imports share one; the last to end undoes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Undo = Callable[[], object]


class SharedChange:
    """A context manager. The first to enter calls `change`, which returns how to undo it; the last to leave does."""

    def __init__(self, change: Callable[[], Undo]) -> None:
        self._change, self._lock, self._inside = change, threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._undo = self._change()
            self._inside += 1

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._undo()


def patch(owner: type, name: str, value: Any) -> Undo:
    """Replaces an attribute of a class."""
    inherited, before = name not in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    return lambda: delattr(owner, name) if inherited else setattr(owner, name, before)
