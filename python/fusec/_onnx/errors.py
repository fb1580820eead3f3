"""What an ONNX model has that cannot be imported, with all of it said at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._importer import Missing as Missing  # handlers and Scope read these here
from .._importer import Refused as Refused  # a node's function body is tried next, where ONNX defines one
from .._importer import Section, Unmapped, error_listing, kinds
from ..errors import InputError


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
    """The inputs whose elements must be known to import every refused node; None if another problem remains."""
    first = [p for p in problems if not p.is_downstream]  # others may be gone once these are
    if not first or not all(p.needed for p in first):
        return None
    return frozenset().union(*(p.needed for p in first))


def import_error(problems: Sequence[Problem], allow_custom: bool, shapes_given: bool) -> InputError:
    """One error for all of them: op, domain, version, count, and one node as an example."""
    found = [(p.is_invalid, Unmapped(f"{p.domain}.{p.op} (version {p.version})", p.reason, p.node)) for p in problems]
    invalid, unmapped = ([u for is_invalid, u in found if is_invalid == wanted] for wanted in (True, False))
    errors, operators = kinds(invalid), kinds(unmapped)
    custom = "allow_custom=True writes these nodes as opaque custom ops, to look at the partition"
    fixed = "inputs={name: array} fixes an input whose elements decide a shape"
    return error_listing(
        [
            Section(
                f"{errors} error{'s' if errors > 1 else ''} in the ONNX model",
                invalid,
                "nodes as ONNX defines their ops",
                "shapes follow from inputs= and dims=, which may be wrong" if shapes_given else "",
            ),
            Section(
                f"{operators} operator{'s' if operators > 1 else ''} of the ONNX model without a counterpart",
                unmapped,
                "ops of the graph format, or of ONNX with a function body",
                fixed if allow_custom else f"{custom}; {fixed}",
            ),
        ]
    )
