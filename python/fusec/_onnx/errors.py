"""What an ONNX model has that cannot be imported, with all of it said at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Refused(Exception):
    """One node has no counterpart, for the reason given. Its function body is tried next, where ONNX defines one."""


class Invalid(Refused):
    """One node is wrong, whatever the format has: by its op's schema, or with these shapes."""


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
    """One node that cannot be imported."""

    op: str
    domain: str
    version: int
    node: str
    reason: str
    needed: frozenset[str] = frozenset()  # inputs whose elements would help
    is_invalid: bool = False  # the model is wrong, else it has no counterpart
    is_downstream: bool = False  # of another problem: its own operands are not known


def elements_needed(problems: Sequence[Problem]) -> frozenset[str] | None:
    """The inputs whose elements would mend all problems; None where something else is wrong too."""
    first = [p for p in problems if not p.is_downstream]  # others may be gone once these are
    if not first or not all(p.needed for p in first):
        return None
    return frozenset().union(*(p.needed for p in first))


def message(problems: Sequence[Problem], allow_custom: bool, shapes_given: bool) -> str:
    """One text for all of it: op, domain, version, count, and one node as an example."""
    invalid, unmapped = (_kinds(p for p in problems if p.is_invalid == wrong) for wrong in (True, False))
    lines: list[str] = []
    if invalid:
        lines += [f"{len(invalid)} error{'s' if len(invalid) > 1 else ''} in the ONNX model:", *_listed(invalid)]
        lines += ["hint: shapes follow from inputs= and dims=, which may be wrong"] if shapes_given else []
    if unmapped:
        operators = f"{len(unmapped)} operator{'s' if len(unmapped) > 1 else ''}"
        lines += [f"{operators} of the ONNX model without a counterpart:", *_listed(unmapped)]
        custom = "allow_custom=True writes these nodes as opaque custom ops, to look at the partition"
        fixed = "inputs={name: array} fixes an input whose elements decide a shape"
        lines.append("hint: " + (fixed if allow_custom else f"{custom}; {fixed}"))
    return "\n".join(lines)


Kinds = dict[tuple[str, str, int, str], list[Problem]]


def _kinds(problems: Iterable[Problem]) -> Kinds:
    kinds: Kinds = {}
    for problem in problems:
        kinds.setdefault((problem.domain, problem.op, problem.version, problem.reason), []).append(problem)
    return kinds


def _listed(kinds: Kinds) -> Iterator[str]:
    for (domain, op, version, reason), found in sorted(kinds.items()):
        count = f"{len(found)} node{'s' if len(found) > 1 else ''}"
        yield f'  {domain}.{op} (version {version})  {count}, for example "{found[0].node}": {reason}'
