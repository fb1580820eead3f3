"""Operators of other libraries, written as custom ops: which operators, and what computes each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..errors import InputError, UsageError
from .errors import Refused
from .model_file import Value

if TYPE_CHECKING:
    from .convert import Arguments, Converter


class CustomOps(NamedTuple):
    """Which operators become custom ops.

    every: all operators outside aten. sources: operator name -> symbol of a launcher, or an expression.
    """

    every: bool = False
    sources: Mapping[str, str] = {}

    @staticmethod
    def of(option: CustomOps | bool | Mapping[str, str]) -> CustomOps:
        """Reads the argument `custom_ops` of fusec.from_torch: True, False, or a dictionary of sources."""
        if isinstance(option, CustomOps):
            return option
        if not isinstance(option, Mapping):
            return CustomOps(bool(option))
        return CustomOps(sources={name.replace("::", "."): source for name, source in option.items()})

    def named(self, target: str) -> str | None:
        """The name in `sources` that means this overload (lib.op.default, lib.op or lib::op), or None."""
        return next((n for n in (target, target.rpartition(".")[0]) if n in self.sources), None)

    def take(self, target: str) -> bool:
        """Whether this overload becomes a custom op."""
        return self.named(target) is not None or (self.every and not target.startswith("aten."))

    def source_of(self, target: str) -> str | None:
        """The symbol or expression that computes this overload, or None."""
        name = self.named(target)
        return None if name is None else self.sources[name]

    def check_names(self, targets: Iterable[str]) -> None:
        """Raises InputError for a name in `sources` that no operator of the program has."""
        unknown = set(self.sources) - {self.named(target) for target in targets}
        if unknown:
            known = ", ".join(sorted(t for t in targets if not t.startswith("aten.")))
            raise InputError(
                what="custom_ops (--custom-op)",
                found=f"{sorted(unknown)[0]}, which the program does not call",
                expected=f"one of its operators: {known}" if known else "an operator of it: those of aten alone",
            )


def parse_sources(options: Iterable[str]) -> dict[str, str]:
    """Reads the options --custom-op NAME=SOURCE of the command line."""
    sources: dict[str, str] = {}
    for option in options:
        name, equals, source = option.partition("=")
        if not (name.strip() and equals and source.strip()):
            raise UsageError(what="--custom-op", found=repr(option), expected="NAME=SYMBOL or NAME=EXPRESSION")
        sources[name.strip()] = source.strip()
    return sources


def write_custom_op(
    c: Converter, node: torch.fx.Node, arguments: Arguments, source: str | None
) -> Value | list[Value]:
    """Writes one node and declares the types of its results.

    Tensors become operands, in their order. Numbers become operands where `source` is an expression, else attributes.
    """
    expression = source is not None and not re.fullmatch(r"[A-Za-z_]\w*", source)
    operands: list[Any] = []
    attributes: dict[str, Any] = {}
    for name, value in arguments.items():
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(x, Value) for x in items):
            operands.extend(items)
        elif expression and isinstance(value, (bool, int, float)):
            operands.append(value)
        elif value is not None and not isinstance(value, (torch.device, torch.layout)):
            attributes[name + "_" if name in ("symbol", "expr") else name] = value  # the format reserves those two
    results = node.meta["val"]
    several = not isinstance(results, torch.Tensor)
    pattern = None
    if expression:
        if several:
            raise Refused("an expression gives one result; this operator needs a launcher's symbol")
        attributes = {"expr": source}
        same = all(tuple(x.shape) == tuple(results.shape) for x in operands if isinstance(x, Value))
        pattern = "elemwise" if same else "broadcast"
    elif source is not None:
        attributes["symbol"] = source
    else:
        c.note(
            f"no source for the custom op {node.target}: the graph can be looked at (fusec.partition, fusec "
            f'--emit=partition) but not compiled; custom_ops={{"{node.target}": "SYMBOL"}} '
            f'(--custom-op {node.target}=SYMBOL) names a launcher, "EXPRESSION" in its place says what it computes'
        )
    values = c.emit_several(
        node, str(node.target), operands, attributes, results if several else [results], declare=True, pattern=pattern
    )
    return values if several else values[0]
