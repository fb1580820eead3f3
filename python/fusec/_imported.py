"""Models imported from PyTorch: the graph, the weights by reference, and the signature of the module's calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import FusecError, InputError, PlatformError

if TYPE_CHECKING:
    import torch

    from ._torch.model_file import ModelFile
    from ._torch.signature import Signature


class ImportedModel:
    """A model that :func:`fusec.from_torch` imported. :func:`fusec.compile` makes it callable like the PyTorch module.

    ``model``: the graph. ``weights``: parameters and buffers by name, the module's own tensors.
    """

    def __init__(self, file: ModelFile, signature: Signature) -> None:
        self._file = file
        self.signature = signature
        self.weights: dict[str, torch.Tensor] = dict(file.tensors)
        try:
            self.model = _core.Model.parse(file.text())
        except InputError as error:
            raise FusecError(f"the importer made an invalid graph (please report it): {error}") from error

    def save(self, path: str | os.PathLike[str], *, weights: bool = True) -> None:
        """Writes the model file (docs/graph_format.md) and, with ``weights``, a .safetensors file beside it."""
        self._file.write(os.fspath(path), "file" if weights else "none")

    def __repr__(self) -> str:
        nodes = len(self.model.node_names)
        return f"<fusec.ImportedModel {self.model.name}: {nodes} nodes, {len(self.weights)} weights>"


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
    """Imports a PyTorch module, which torch.export traces in eval mode, or an exported program.

    ``example_args``, ``kwargs``: example arguments of ``forward``. A mapping as ``example_args`` is keyword arguments.
    ``dynamic_shapes``: as torch.export.export takes them. The names of Dims become symbols.
    ``name``: the model's name. Default: the module's class.
    ``decompose``: use core ATen operators only.
    ``types``: declare the dtype and shape of every value.
    ``custom_ops``: True makes every operator outside aten a custom op. A dictionary makes those that it names custom
    ops, and gives what computes each: the symbol of a launcher, or an expression (``"$0 * sigmoid($1)"``).
    ``strict``: True traces with TorchDynamo, False by running the Python code. None tries False, then True.

    Buffers that the module writes (KV caches) become inputs and aliased outputs. Calls pass them by reference.

    Raises one InputError for all operators that have no counterpart, and PlatformError where PyTorch is not installed.
    """
    try:
        from ._torch.trace import trace
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise PlatformError(what="PyTorch is not installed", hint="pip install fusec[torch]") from None
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = dict(kwargs or {})
    if isinstance(example_args, Mapping):
        keywords = {**example_args, **keywords}
    else:
        args = tuple(example_args)
    file, signature = trace(
        module,
        args,
        keywords,
        dynamic_shapes,
        strict,
        name=name,
        decompose=decompose,
        types=types,
        custom_ops=custom_ops,
    )
    return ImportedModel(file, signature)
