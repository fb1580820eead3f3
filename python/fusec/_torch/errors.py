"""Errors of the importer, and the one that lists every problem of a program at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._importer import Refused as Refused  # the handlers read it here
from .._importer import Section, Unmapped, error_listing, kinds
from ..errors import InputError
from ..errors import TraceError as TraceError

if TYPE_CHECKING:
    from .convert import Problem


class SizeRefused(Refused):
    """The format cannot express a size. Decomposing the operator would not help."""


SIZE = "a size"  # the target of a problem that is about a size and not about an operator


def unmapped_error(problems: Sequence[Problem]) -> InputError:
    """Everything of a program that has no counterpart."""
    found = [Unmapped(p.target, p.reason, p.node, p.source) for p in problems]
    sizes, operators = ([u for u in found if (u.operator == SIZE) == is_size] for is_size in (True, False))
    count = kinds(operators)
    return error_listing(
        [
            Section(
                f"{count} operator{'s' if count > 1 else ''} without a counterpart in the graph format",
                operators,
                "operators of the format, or of PyTorch that decompose into them",
                'replace them in the module, or make an operator a custom op: custom_ops={"NAME": "SYMBOL"} '
                "(--custom-op NAME=SYMBOL) where a launcher of your own computes it, "
                'custom_ops={"NAME": "EXPRESSION"} (--custom-op NAME=EXPRESSION) where an expression does; '
                "custom_ops=True (--custom-ops) makes all operators outside aten custom ops, to look at the graph",
            ),
            Section(
                "sizes that the graph format cannot express",
                sizes,
                "sizes that follow from the inputs' shapes",
                "keep sizes that follow from the inputs' shapes: torch.where and a mask in place of x[x > 0], an "
                "integer argument with torch.export.Dim.DYNAMIC in place of tensor.item()",
            ),
        ]
    )
