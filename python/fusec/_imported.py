"""Models imported from PyTorch or ONNX: the graph, the weights by reference, and the calling convention."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from . import _core
from .errors import FusecError, InputError, PlatformError

if TYPE_CHECKING:
    import onnx
    import torch

    from ._graph_file import GraphFile

Tensor = Any


class Signature(Protocol):
    """How calls of an imported model go: arguments to inputs by name, and outputs by name to what a call returns."""

    @property
    def names(self) -> Collection[str]:
        """Of the arguments that a call takes by keyword."""

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Tensor]: ...

    def results(self, tensors: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Any: ...


class ImportedModel:
    """What :func:`fusec.from_torch` or :func:`fusec.from_onnx` made. :func:`fusec.compile` takes it; calls then go as
    those of the module, or of the ONNX graph.

    ``model``: the graph. ``weights``: parameters and buffers by name, the module's own tensors; of an ONNX model its
    initializers as NumPy arrays, mapped into memory where they are external data.
    """

    def __init__(self, file: GraphFile, signature: Signature | None) -> None:
        self._file = file
        self.signature = signature
        self.weights: dict[str, Tensor] = dict(file.tensors)
        try:
            self.model = _core.Model.parse(file.text())
        except InputError as error:
            raise FusecError(f"the importer made an invalid graph (please report it): {error}") from error

    def save(self, path: str | os.PathLike[str], *, weights: bool = True) -> None:
        """Writes the model file (docs/graph_format.md) and, with ``weights``, a .safetensors file beside it.

        Raises PlatformError where a file cannot be written.
        """
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

    Buffers that the module writes (KV caches) become inputs and aliased outputs. Calls pass them by reference. Notes on
    what was imported go to standard error.

    Raises one InputError for all operators that have no counterpart, TraceError for a module that PyTorch cannot trace,
    UsageError for what is no module or no tuple of arguments, and PlatformError where PyTorch is not installed.
    """
    try:
        from ._torch.trace import trace
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise PlatformError(what="PyTorch is not installed", hint="pip install fusec[torch]") from None
    file, signature = trace(
        module,
        example_args,
        kwargs or {},
        dynamic_shapes,
        strict,
        name=name,
        decompose=decompose,
        types=types,
        custom_ops=custom_ops,
    )
    return ImportedModel(file, signature)


def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    name: str | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    inputs: Mapping[str, Any] | None = None,
    allow_custom: bool = False,
    types: bool = False,
) -> ImportedModel:
    """An ONNX model, or the path of one, as a model. Calls take the graph's inputs in order, as NumPy arrays.

    ``dims``: sizes of symbolic dimensions by name, or their bounds ``(least, greatest)``; one without a name is called
    ``INPUT_dimAXIS``. ``inputs``: of an input its shape, or an example array, which gives its shape. Where the elements
    of an input decide a shape (the ``shape`` of a Reshape, ``axes``), those of the array hold for every call; without an
    array the compiled module is compiled anew at the first call with other elements.
    ``allow_custom``: nodes without a counterpart become opaque custom ops, to look at the partition. ``types``: declare
    the dtype and shape of every value.

    Shapes that follow from inputs' shapes stay symbolic. Functions are inlined; ops without a counterpart are replaced
    by the function body that ONNX defines for them. Raises InputError: one text with every node that has no
    counterpart; PlatformError where the package onnx is not installed.
    """
    try:
        from ._onnx.errors import Deferred
        from ._onnx.load import load, read
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise PlatformError(what="the package onnx is not installed", hint="pip install fusec[onnx]") from None
    from ._shape_tensors import DeferredModel

    opened = read(model)

    def imported(elements: dict[str, Any]) -> ImportedModel:
        given = {**(inputs or {}), **elements}
        try:
            return ImportedModel(
                *load(opened, name=name, dims=dims, inputs=given, allow_custom=allow_custom, types=types)
            )
        except Deferred as deferred:
            return DeferredModel(str(deferred), deferred.needed, opened.input_names(), opened.weight_names(), imported)

    return imported({})
