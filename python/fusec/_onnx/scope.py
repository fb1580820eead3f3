"""Names of values in a graph, a subgraph or a function body."""

from __future__ import annotations

from typing import Any

from .errors import Invalid, Missing
from .values import Item


class Scope:
    """``parent``: of a subgraph, the graph around it, whose values it sees. A function body has none."""

    def __init__(
        self,
        opsets: dict[str, int],
        *,
        parent: Scope | None = None,
        attributes: dict[str, Any] | None = None,
        prefix: str = "",
        is_main: bool = False,
    ) -> None:
        self.values: dict[str, Item] = {}
        self.missing: set[str] = set()
        self.opsets = opsets
        self.parent = parent
        inherited: dict[str, Any] = parent.attributes if parent else {}
        self.attributes: dict[str, Any] = inherited if attributes is None else attributes
        self.prefix = prefix  # of names of values in it
        self.is_main = is_main

    def opset(self, domain: str) -> int:
        found = self.opsets.get(domain)
        if found is None and domain == "":
            found = self.opsets.get("ai.onnx")
        return 1 if found is None else found

    def find(self, name: str) -> Item:
        if name in self.values:
            return self.values[name]
        if name in self.missing:
            raise Missing(name)
        if self.parent is None:
            raise Invalid(f"no value of the name {name!r}")
        return self.parent.find(name)
