"""What goes wrong, and how it is told."""

from __future__ import annotations

import re

# Options that the library's messages name, with their values: --max-args=9, --limit=rank=9, --gemm=builtin, --no-cache.
_OPTION = re.compile(r"--([a-z][a-z-]*)(?:=([^\s,;:)]*[^\s,;:).]))?")


class FusecError(Exception):
    """The base class of the errors that fusec raises: a sentence, and its parts as attributes, each of which may be empty.

    ``what`` went wrong, what was ``found`` and ``expected``, and a ``hint``. Of an error in a file also the ``file``, the
    JSON ``pointer`` (RFC 6901) of the element, and its ``line`` and ``column`` from 1, or 0. ``on_command_line``: the
    sentence with options as the command line spells them.
    """

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
        # The message with options as the command line spells them, which the library does.
        self.on_command_line = message or _sentence(file, what, found, expected, hint)
        super().__init__(python_spelling(self.on_command_line))
        self.what = python_spelling(what)
        self.found = found
        self.expected = python_spelling(expected)
        self.hint = python_spelling(hint)
        self.file = file
        self.pointer = pointer
        self.line = line
        self.column = column


class InputError(FusecError, ValueError):
    """The model, a plan, a pattern or a tensor is wrong."""


class TraceError(InputError):
    """PyTorch cannot trace the module, or cannot bring its program into functional form."""


class UsageError(FusecError, ValueError):
    """An option or an argument is wrong."""


class PlatformError(FusecError, RuntimeError):
    """NVRTC, the CUDA driver or a GPU is missing, or emitted source did not compile."""


def python_spelling(text: str) -> str:
    """A text of the library with options as keyword arguments: ``--timeout=SECONDS`` becomes ``timeout=SECONDS``."""
    from ._options import OPTIONS  # which imports this file

    def spelled(match: re.Match[str]) -> str:
        name, value = match[1].replace("-", "_"), match[2]
        if name not in OPTIONS:
            return match[0]
        kind = OPTIONS[name].type_text
        if value is None:
            return f"{name}=True" if kind == "bool" else name
        if kind == "Mapping[str, int]":
            key, _, value = value.partition("=")
            return f'{name}={{"{key}": {value}}}'
        if value.isupper() or value.isdigit():  # a placeholder or a number
            return f"{name}={value}"
        return f'{name}=["{value}"]' if kind.startswith("Sequence") else f'{name}="{value}"'

    return _OPTION.sub(spelled, re.sub(r" \(ResourceLimits::\w+ in the library\)", "", text))


def _sentence(file: str, what: str, found: str, expected: str, hint: str) -> str:
    if not what.startswith(file):
        what = f"{file}: {what}"
    parts = [f"found {found}"] if found else []
    parts += [f"expected {expected}"] if expected else []
    text = what + (": " + ", ".join(parts) if parts else "")
    return text + (f" (hint: {hint})" if hint else "")
