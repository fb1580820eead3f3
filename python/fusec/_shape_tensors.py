"""Models with shape tensors, inputs whose values determine shapes: compiled for each set of these values."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._calls import Calls, CudaGraph, Tensor
from ._imported import ImportedModel
from ._module import Module
from ._saved import Saved
from .errors import InputError, UsageError


class DeferredModel(ImportedModel):
    """What :func:`fusec.from_onnx` makes where it must know the elements of inputs (a Reshape's ``shape``) first.

    :func:`fusec.compile` takes it; the module compiles at the first call with other elements. ``needed``: the names of
    these inputs.
    """

    def __init__(
        self, message: str, needed: set[str], names: Sequence[str], load: Callable[[dict[str, Any]], ImportedModel]
    ) -> None:
        self.message = message
        self.needed = set(needed)
        self.names = list(names)
        self.load = load
        self.weights: dict[str, Tensor] = {}
        self.signature = None

    @property
    def model(self) -> _core.Model:  # type: ignore[override]
        raise InputError(self.message)

    def save(self, path: str | os.PathLike[str], *, weights: bool = True) -> None:
        """Raises InputError: there is no one graph."""
        raise InputError(self.message)

    def for_values(self, given: Mapping[str, Any]) -> ImportedModel:
        """The model for these values of its shape tensors. Raises InputError."""
        while True:
            made = self.load({name: host_elements(given[name]) for name in self.needed if name in given})
            if not isinstance(made, DeferredModel):
                return made
            missing = made.needed - self.needed
            if not missing:
                raise InputError(made.message)
            self.needed |= missing

    def __repr__(self) -> str:
        return f"<fusec.ImportedModel: the elements of {sorted(self.needed)} decide shapes>"


REPORTS = [name for name, value in vars(Module).items() if isinstance(value, functools.cached_property)]


class ShapeTensorModule(Module):
    """Compiles at the first call with other values of its shape tensors. Source and reports are those of the last call."""

    def __init__(self, imported: DeferredModel, compile: Callable[[ImportedModel], Module]) -> None:
        self._imported = imported
        self._compile = compile
        self._modules: dict[object, Module] = {}
        self._last: Module | None = None
        self._bound: dict[str, Tensor] = {}
        self._groups: dict[str, Any] = {}
        self._lock = threading.RLock()

    def __call__(self, /, *tensors: Any, out: Any = None, device: str | None = None, **named: Any) -> Any:
        return self._for(tensors, named)(*tensors, out=out, device=device, **named)

    def capture(self, /, *tensors: Tensor, out: Any = None, **named: Tensor) -> CudaGraph:
        return self._for(tensors, named).capture(*tensors, out=out, **named)

    def bind(self, weights: Mapping[str, Tensor] | None = None, /, **named: Tensor) -> Module:
        with self._lock:
            self._bound.update({**(weights or {}), **named})
            for module in self._modules.values():
                module.bind(self._bound)
        return self

    def use_groups(self, groups: Mapping[str, Any]) -> Module:
        with self._lock:
            self._groups.update(groups)
            for module in self._modules.values():
                module.use_groups(groups)
        return self

    def _for(self, tensors: Sequence[Any], named: Mapping[str, Any]) -> Module:
        given = {**dict(zip(self._imported.names, tensors)), **named}
        with self._lock:
            key = self._key(given)
            if key not in self._modules:
                imported = self._imported.for_values(given)
                key = self._key(given)  # more inputs may have turned out to be needed
                if key not in self._modules:
                    self._modules[key] = self._compile(imported)
                    self._modules[key].bind(self._bound).use_groups(self._groups)
            if self._last is not self._modules[key]:
                for name in REPORTS:
                    self.__dict__.pop(name, None)
            self._last = self._modules[key]
            return self._last

    def _key(self, given: Mapping[str, Any]) -> object:
        return tuple((name, _frozen(host_elements(given.get(name)))) for name in sorted(self._imported.needed))

    @property
    def _chosen(self) -> Module:
        if self._last is None:
            raise UsageError(
                what="nothing has been compiled",
                found=f"a model in which the elements of {sorted(self._imported.needed)} decide shapes",
                hint="call the module first, or import the model with inputs={name: array}",
            )
        return self._last

    @property
    def _made(self) -> _core.Compilation | Saved:  # type: ignore[override]
        return self._chosen._made

    @property
    def _model(self) -> _core.Model | None:  # type: ignore[override]
        return self._chosen._model

    @property
    def _calls(self) -> Calls:  # type: ignore[override]
        return self._chosen._calls

    def __repr__(self) -> str:
        return repr(self._imported) if self._last is None else repr(self._last)


def host_elements(tensor: Any) -> Any:
    """A tensor, or a sequence of them, in host memory."""
    if isinstance(tensor, (list, tuple)):
        return [host_elements(x) for x in tensor]
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
    elif hasattr(tensor, "get"):  # of CuPy
        tensor = tensor.get()
    return tensor if tensor is None or isinstance(tensor, np.ndarray) else np.asarray(tensor)


def _frozen(value: Any) -> object:
    if isinstance(value, list):
        return tuple(_frozen(x) for x in value)
    return None if value is None else (value.dtype.str, value.shape, value.tobytes())
