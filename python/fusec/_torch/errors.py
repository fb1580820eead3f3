"""Errors of the importer, and the message that lists every problem of a program at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from .convert import Problem


class TraceError(InputError):
    """PyTorch itself cannot trace the module or make the program functional."""


class Refused(Exception):
    """A handler declines one call of an operator, for example because the format lacks one of its arguments."""


class SizeRefused(Refused):
    """The format cannot express a size. Decomposing the operator would not help."""


SIZE = "a size"  # the target of a problem that is about a size and not about an operator


def unmapped_message(problems: Sequence[Problem]) -> str:
    """Lists everything that has no counterpart: for each operator its count, one node, and that node's source."""
    sizes = [p for p in problems if p.target == SIZE]
    operators = [p for p in problems if p.target != SIZE]
    parts: list[str] = []
    if operators:
        kinds = len({(p.target, p.reason) for p in operators})
        parts.append(f"{kinds} operator{'s' if kinds > 1 else ''} without a counterpart in the graph format:")
        parts += _listed(operators)
        parts.append(
            'hint: replace them in the module, or make an operator a custom op: custom_ops={"NAME": "SYMBOL"} '
            "(--custom-op NAME=SYMBOL) where a launcher of your own computes it, "
            'custom_ops={"NAME": "EXPRESSION"} (--custom-op NAME=EXPRESSION) where an expression does; '
            "custom_ops=True (--custom-ops) makes all operators outside aten custom ops, to look at the graph"
        )
    if sizes:
        parts.append("sizes that the graph format cannot express:")
        parts += _listed(sizes)
        parts.append(
            "hint: keep sizes that follow from the inputs' shapes: torch.where and a mask in place of x[x > 0], an "
            "integer argument with torch.export.Dim.DYNAMIC in place of tensor.item()"
        )
    return "\n".join(parts)


def _listed(problems: Sequence[Problem]) -> Iterator[str]:
    by_target: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        by_target.setdefault((problem.target, problem.reason), []).append(problem)
    width = max(len(target) for target, _ in by_target)
    for (target, reason), found in sorted(by_target.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        where = f", from {found[0].source}" if found[0].source else ""
        yield f'  {target:<{width}}  {count}, for example "{found[0].node}"{where}: {reason}'
