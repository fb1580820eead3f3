"""Compiled models in files: a zip archive of what the command line would write.

Modules that `import fusec` itself does not need are imported where they are used: zipfile alone takes 10 ms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _core
from ._replace_file import replace_file
from .errors import InputError, UsageError

if TYPE_CHECKING:
    import zipfile

_VERSION = 1
_TEXTS = ("out.cu", "manifest.json", "partition.json", "plan.json", "ledger.json", "report.json")


class Saved:
    """What a file keeps of a compilation.

    Has the same attributes as ``_core.Compilation``, except those that need the compiler. ``model`` is None where it
    cannot be read again: it names weight files that are not there any more, or has registered ops. ``model_error`` then
    says why.
    """

    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        import json

        files = {name: archive.read(name) for name in archive.namelist()}  # compares the archive's checksums
        head = json.loads(files["fusec.json"])
        if head.get("fusec_module") != _VERSION:
            raise InputError(file=path, what="a module of another version of fusec", found=str(head))
        self._summary: str = head["summary"]
        self.source, self.manifest, self.partition, self.plan, self._ledger, self._report = (
            files[name].decode() for name in _TEXTS
        )
        self.images = [
            _core.KernelImage(files[f"{i}.ptx"].decode(), files[f"{i}.cubin"]) for i in range(head["images"])
        ]
        self.model: _core.Model | None = None
        self.model_error: InputError | None = None
        if "model.json" in files:
            try:
                self.model = _core.Model.parse(files["model.json"].decode(), head["directory"])
            except InputError as error:
                self.model_error = error

    def ledger(self) -> str:
        return self._ledger

    def report(self) -> str:
        return self._report

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


def write_saved(path: str | os.PathLike[str], made: _core.Compilation | Saved, model: _core.Model | None) -> None:
    import io
    import json
    import zipfile

    products = (made.source, made.manifest, made.partition, made.plan, made.ledger(), made.report())
    texts: dict[str, str | bytes] = dict(zip(_TEXTS, products))
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
    replace_file(path, lambda file: file.write(buffer.getbuffer()))


def read_saved(path: str | os.PathLike[str]) -> Saved:
    import zipfile

    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            return Saved(name, archive)
    except OSError as error:
        raise InputError(file=name, what="the module cannot be read", found=error.strerror or str(error)) from None
    except InputError:
        raise
    except Exception as error:  # zipfile and zlib raise a dozen types for damaged archives
        raise InputError(file=name, what="this is no module that Module.save wrote", found=str(error)) from None
