"""Models that were imported from PyTorch: the graph, the weights by reference, and how calls go."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import FusecError, InputError, PlatformError

if TYPE_CHECKING:
    import torch

Tensor = Any


class ImportedModel:
    """What :func:`fusec.from_torch` made. :func:`fusec.compile` takes it; calls then go as those of the module.

    ``model``: the graph. ``weights``: parameters and buffers by name, the module's own tensors.
    """

    def __init__(self, file: Any, signature: Any) -> None:
        self._file = file
        self.signature = signature
        self.weights: dict[str, Tensor] = dict(file.tensors)
        try:
            self.model = _core.Model.parse(file.text())
        except InputError as error:
            raise FusecError(f"the importer made a graph that is none (please report it): {error}") from error

    def save(self, path: str | os.PathLike[str], *, weights: bool = True) -> None:
        """Writes the model file (docs/graph_format.md) and, with ``weights``, a .safetensors file beside it."""
        self._file.write(os.fspath(path), "file" if weights else "none")

    def __repr__(self) -> str:
        return f"<fusec.ImportedModel {self.model.name}: {len(self.model.node_names)} nodes, {len(self.weights)} weights>"


def from_torch(
    module: torch.nn.Module | torch.export.ExportedProgram,
    example_args: Sequence[Any] | Mapping[str, Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    name: str | None = None,
    decompose: bool = False,
    types: bool = False,
    custom_ops: bool | Mapping[str, str] = False,
    strict: bool | None = None,
) -> ImportedModel:
    """A PyTorch module, traced by torch.export in eval mode, or an exported program, as a model.

    ``example_args``, ``kwargs``: what ``forward`` is called with (a mapping alone is keyword arguments).
    ``dynamic_shapes``: as torch.export.export takes them; the names of Dims become symbols. ``decompose``: core ATen
    operators only. ``types``: declare the dtype and shape of every value. ``custom_ops``: True takes operators outside
    aten as custom ops; a mapping, operator's name -> launcher's symbol or expression (``"$0 * sigmoid($1)"``), those it
    names. ``strict``: trace with TorchDynamo (True), by running the Python code (False), or that where this fails.

    Buffers that the module writes (KV caches) become inputs and aliased outputs; calls pass them by reference. Raises
    InputError: one text with every operator that has no counterpart; PlatformError where PyTorch is not installed.
    """
    try:
        from ._torch.trace import trace
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise PlatformError(what="PyTorch is not installed", hint="pip install fusec[torch]") from None
    if isinstance(example_args, Mapping):
        example_args, kwargs = (), {**example_args, **(kwargs or {})}
    file, signature = trace(
        module,
        tuple(example_args),
        dict(kwargs or {}),
        dynamic_shapes,
        strict,
        name=name,
        decompose=decompose,
        types=types,
        custom_ops=custom_ops,
    )
    return ImportedModel(file, signature)
