"""What an ONNX model has that cannot be imported, with all of it said at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Refused(Exception):
    """One node has no counterpart, for the reason given. Its function body is tried next, where ONNX defines one."""


class ValueNeeded(Refused):
    """A result's shape depends on the elements of these graph inputs."""

    def __init__(self, message: str, needed: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.needed = frozenset(needed)


class Deferred(Exception):
    """Nothing else is wrong than that the elements of inputs are not known yet."""

    def __init__(self, message: str, needed: Iterable[str]) -> None:
        super().__init__(message)
        self.needed = set(needed)


class Problem(NamedTuple):
    """One node that has no counterpart."""

    op: str
    domain: str
    version: int
    node: str
    reason: str
    needed: frozenset[str] = frozenset()  # inputs whose elements would help


def unmapped_message(problems: Iterable[Problem]) -> str:
    """One text for everything that has no counterpart: op, domain, version, count, and one node as an example."""
    kinds: dict[tuple[str, str, int, str], list[Problem]] = {}
    for problem in problems:
        kinds.setdefault((problem.domain, problem.op, problem.version, problem.reason), []).append(problem)
    head = f"{len(kinds)} operator{'s' if len(kinds) > 1 else ''} of the ONNX model without a counterpart:"
    hint = (
        "hint: allow_custom=True writes these nodes as opaque custom ops, to look at the partition; "
        "inputs={name: array} fixes an input whose elements decide a shape"
    )
    return "\n".join([head, *_listed(kinds), hint])


def _listed(kinds: dict[tuple[str, str, int, str], list[Problem]]) -> Iterator[str]:
    for (domain, op, version, reason), found in sorted(kinds.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        yield f'  {domain}.{op} (version {version})  {count}, for example "{found[0].node}": {reason}'
