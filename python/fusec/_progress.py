"""A line on the terminal that says how far a compilation is."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from . import _core

_PATIENCE = 0.5  # seconds: what takes less is not worth a line


class ProgressLine:
    """Shown on standard error, where that is a terminal, after half a second; gone when the compilation is done."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._shown = False

    @staticmethod
    def is_wanted() -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, progress: _core.Progress) -> None:
        seconds = time.monotonic() - self._begin
        if seconds < _PATIENCE:
            return
        filled = 20 * progress.done // progress.total if progress.total else 0
        pieces = f" [{'#' * filled}{'.' * (20 - filled)}] {progress.done} of {progress.total}" if progress.total else ""
        sys.stderr.write(f"\r\x1b[Kfusec: {progress.stage}{pieces}, {seconds:.1f} s")
        sys.stderr.flush()
        self._shown = True

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
