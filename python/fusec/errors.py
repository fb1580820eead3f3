"""What goes wrong, and how it is told.

Every error is one sentence and has its parts as attributes: ``what`` went wrong, what was ``found`` and ``expected``,
a ``hint``, and, where it is about a file, the ``file``, the JSON ``pointer`` (RFC 6901) of the element, and its ``line``
and ``column`` from 1 (0 where they are not known).
"""

from __future__ import annotations


class FusecError(Exception):
    """The base class of the errors that fusec raises; each part may be empty."""

    def __init__(
        self,
        message: str = "",
        *,
        what: str = "",
        found: str = "",
        expected: str = "",
        hint: str = "",
        file: str = "",
        pointer: str = "",
        line: int = 0,
        column: int = 0,
    ) -> None:
        super().__init__(message or _sentence(what, found, expected, hint))
        self.what = what
        self.found = found
        self.expected = expected
        self.hint = hint
        self.file = file
        self.pointer = pointer
        self.line = line
        self.column = column


class InputError(FusecError, ValueError):
    """The model, a plan, a pattern or a tensor is wrong."""


class UsageError(FusecError, ValueError):
    """An option or an argument is wrong."""


class PlatformError(FusecError, RuntimeError):
    """NVRTC, the CUDA driver or a GPU is missing, or emitted source did not compile."""


def _sentence(what: str, found: str, expected: str, hint: str) -> str:
    parts = [f"found {found}"] if found else []
    parts += [f"expected {expected}"] if expected else []
    text = what + (": " + ", ".join(parts) if parts else "")
    return text + (f" (hint: {hint})" if hint else "")
