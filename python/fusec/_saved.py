"""Compiled models in files: a zip archive of what the command line would write.

Modules that `import fusec` itself does not need are imported where they are used: zipfile alone takes 10 ms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _core
from .errors import InputError, UsageError

if TYPE_CHECKING:
    import zipfile

_VERSION = 1


class Saved:
    """What a file keeps of a compilation. Has the names of ``_core.Compilation`` that it can answer."""

    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        import json

        self._texts = {name: archive.read(name) for name in archive.namelist()}
        head = json.loads(self._texts["fusec.json"])
        if head.get("fusec_module") != _VERSION:
            raise InputError(file=path, what="a module of another version of fusec", found=str(head))
        self._summary: str = head["summary"]
        self._directory: str = head["directory"]
        self.images = [
            _core.KernelImage(self._text(f"{i}.ptx"), self._texts[f"{i}.cubin"]) for i in range(head["images"])
        ]

    def _text(self, name: str) -> str:
        return self._texts[name].decode()

    @property
    def source(self) -> str:
        return self._text("out.cu")

    @property
    def manifest(self) -> str:
        return self._text("manifest.json")

    @property
    def partition(self) -> str:
        return self._text("partition.json")

    @property
    def plan(self) -> str:
        return self._text("plan.json")

    def ledger(self) -> str:
        return self._text("ledger.json")

    def report(self) -> str:
        return self._text("report.json")

    def summary(self) -> str:
        return self._summary

    def whole_image(self) -> _core.KernelImage:
        if len(self.images) != 1:
            raise UsageError(
                what="the module was saved in several pieces, or none",
                found=f"{len(self.images)} images",
                hint="Module.images has them",
            )
        return self.images[0]

    @property
    def model(self) -> _core.Model | None:
        """None where it names weight files that are not there any more, or ops of one's own."""
        try:
            return _core.Model.parse(self._text("model.json"), self._directory)
        except InputError:
            return None


def write_saved(path: str | os.PathLike[str], made: _core.Compilation | Saved, model: _core.Model | None) -> None:
    import io
    import json
    import zipfile

    texts: dict[str, str | bytes] = {
        "out.cu": made.source,
        "manifest.json": made.manifest,
        "partition.json": made.partition,
        "plan.json": made.plan,
        "ledger.json": made.ledger(),
        "report.json": made.report(),
    }
    if model is not None:
        texts["model.json"] = model.to_json()
    for i, image in enumerate(made.images):
        texts[f"{i}.ptx"] = image.ptx
        texts[f"{i}.cubin"] = image.cubin
    texts["fusec.json"] = json.dumps(
        {
            "fusec_module": _VERSION,
            "images": len(made.images),
            "summary": made.summary(),
            "directory": os.path.abspath(model.directory) if model is not None else "",
        }
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    # Whole or not at all.
    partial = f"{os.fspath(path)}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(buffer.getbuffer())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def read_saved(path: str | os.PathLike[str]) -> Saved:
    import zipfile

    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            return Saved(name, archive)
    except OSError as error:
        raise InputError(file=name, what="the module cannot be read", found=str(error)) from None
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(file=name, what="this is no module that Module.save wrote", found=str(error)) from None
