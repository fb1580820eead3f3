"""The handlers of ONNX ops, by domain and name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from .._importer import require as require  # handlers read it here
from .node import OnnxNode
from .values import Item, Value

Results = Union[Value, Sequence[Item]]
Handler = Callable[[OnnxNode], Results]
HANDLERS: dict[tuple[str, str], Handler] = {}


def handles(*names: str, domain: str = "") -> Callable[[Handler], Handler]:
    """A handler returns its one result, or a list of them. It raises Refused for what the format has no word for."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[domain, name] = function
        return function

    return register
