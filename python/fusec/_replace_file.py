"""Writing a file completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO

from .errors import PlatformError


def replace_file(path: str | os.PathLike[str], fill: Callable[[BinaryIO], object]) -> None:
    """Has `fill` write a temporary file beside `path`, and renames it to `path`. A failed `fill` leaves nothing.

    A link is followed; a device or pipe is written to directly. Raises PlatformError where the system refuses.
    """
    try:
        target = os.path.realpath(path)
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            with open(target, "wb") as file:
                fill(file)
        else:
            _rename_when_filled(target, fill)
    except OSError as error:
        what = f"the output cannot be written: {error.strerror or error}"
        raise PlatformError(file=os.fspath(path), what=what) from error


def _rename_when_filled(target: str, fill: Callable[[BinaryIO], object]) -> None:
    temporary = os.path.join(os.path.dirname(target), f".fusec.{os.urandom(8).hex()}.partial")
    try:
        with open(temporary, "xb") as file:
            fill(file)
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
