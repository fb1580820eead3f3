"""What the importers of PyTorch and ONNX share: refusals, the error that lists all of them, names of symbols."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from .errors import InputError


class Refused(Exception):
    """A handler declines one node, for the reason given, for example because the format lacks one of its arguments."""


class Missing(Exception):
    """An operand that could not be written, since a problem before it was noted."""


def require(condition: object, reason: str) -> None:
    """Refuses the node, with a reason, where the condition is false."""
    if not condition:
        raise Refused(reason)


class Unmapped(NamedTuple):
    """One node without a counterpart. operator: what it is listed under; source: the line that calls it, or empty."""

    operator: str
    reason: str
    node: str
    source: str = ""


class Section(NamedTuple):
    """A part of the list: its heading, what it lists, what there should be, and what to do, or ""."""

    what: str
    unmapped: Sequence[Unmapped]
    expected: str
    hint: str


def error_listing(sections: Iterable[Section]) -> InputError:
    """Lists everything that has no counterpart: for each operator its count, one node, and that node's source."""
    sections = [s for s in sections if s.unmapped]
    lists = ["\n".join(_listed(s.unmapped)) for s in sections]
    return InputError(
        "\n".join(f"{s.what}:\n{listed}" + (f"\nhint: {s.hint}" if s.hint else "") for s, listed in zip(sections, lists)),
        what="; ".join(s.what for s in sections),
        found="\n".join(lists),
        expected="; ".join(s.expected for s in sections),
        hint="\n".join(s.hint for s in sections if s.hint),
    )


def kinds(unmapped: Iterable[Unmapped]) -> int:
    """How many lines the list has."""
    return len({u[:2] for u in unmapped})


def _listed(unmapped: Sequence[Unmapped]) -> Iterator[str]:
    by_kind: dict[tuple[str, str], list[Unmapped]] = {}
    for one in unmapped:
        by_kind.setdefault((one.operator, one.reason), []).append(one)
    width = max(len(operator) for operator, _ in by_kind)
    for (operator, reason), found in sorted(by_kind.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        where = f", from {found[0].source}" if found[0].source else ""
        yield f'  {operator:<{width}}  {count}, for example "{found[0].node}"{where}: {reason}'


def symbol_name(wanted: str, taken: Container[str]) -> str:
    """A name in the format's syntax that no symbol has yet."""
    base = re.sub(r"\W", "_", wanted)
    base = base if re.match(r"[A-Za-z_]", base) else "_" + base
    name, count = base, 1
    while name in taken or name in ("min", "max"):
        name, count = f"{base}_{count}", count + 1
    return name
