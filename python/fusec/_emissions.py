"""What ``python -m fusec compile`` writes, and where: -o FILE and --emit=KIND[=FILE], as the program fusec takes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from .errors import UsageError

KINDS = (
    *("cu", "ptx", "cubin", "manifest", "partition", "plan", "ir", "report", "ledger"),
    *("dot", "svg", "html", "module"),
)
_OF_EXTENSION: dict[str, tuple[str, ...]] = {
    **{f".{kind}": (kind,) for kind in ("cu", "ptx", "cubin", "dot", "svg", "html")},
    ".json": ("manifest", "partition", "plan", "report", "ledger"),  # the first without --emit
    ".txt": ("ir",),
    ".fusec": ("module",),
}
_HEADERS = "the program fusec writes C headers"


class Emission(NamedTuple):
    kind: str
    path: str  # "-": standard output


def emissions(output: str, emits: Sequence[str], read: Sequence[str]) -> list[Emission]:
    """What is written for these values of -o and --emit. `read`: files that must not be overwritten. Raises UsageError."""
    made = [_of_emit(text) for text in emits]
    if output:
        extension = os.path.splitext(output)[1] if output != "-" else ""
        kinds = _OF_EXTENSION.get(extension, KINDS)
        taker = next((i for i, e in enumerate(made) if not e.path and e.kind in kinds), None)
        if taker is not None:
            made[taker] = Emission(made[taker].kind, output)
        elif output == "-" or extension in _OF_EXTENSION:
            made.append(Emission(kinds[0], output))
        else:
            raise UsageError(
                what=f"the extension of {output} names no kind of output",
                found=repr(extension),
                expected=", ".join(_OF_EXTENSION),
                hint=_HEADERS if extension == ".h" else "",
            )
    made = [Emission(kind, path or "-") for kind, path in made]
    _check_paths(made, read)
    return made


def _of_emit(text: str) -> Emission:
    kind, equals, path = text.partition("=")
    if kind not in KINDS:
        hint = _HEADERS if kind == "header" else ""
        raise UsageError(what="--emit", found=repr(kind), expected=f"one of {', '.join(KINDS)}", hint=hint)
    if equals and not path:
        raise UsageError(what=f"--emit={kind}= has no file")
    return Emission(kind, path)


def _check_paths(made: list[Emission], read: Sequence[str]) -> None:
    if Emission("module", "-") in made:
        raise UsageError(what="--emit=module", expected="a file: -o model.fusec")
    if sum(e.path == "-" for e in made) > 1:
        raise UsageError(what="more than one result would go to standard output", hint="give files: --emit=KIND=FILE")
    taken = {os.path.realpath(path): "is read, and would be overwritten" for path in read}
    for _, path in made:
        file = os.path.realpath(path)
        if path == "-" or (os.path.exists(file) and not os.path.isfile(file)):
            continue
        if file in taken:
            raise UsageError(what=f"{path} {taken[file]}")
        taken[file] = "would be written twice"
