"""Models with shape tensors, inputs whose values determine shapes: compiled for each set of these values."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        self,
        message: str,
        needed: set[str],
        names: Sequence[str],
        weight_names: Iterable[str],
        load: Callable[[dict[str, Any]], ImportedModel],
    ) -> None:
        self.message = message
        self.needed = set(needed)
        self.names = list(names)
        self.weight_names = set(weight_names)  # of the file: one model may fold some away, or have no use for those of a branch
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


MOST_MODULES = 16  # that one ShapeTensorModule keeps; the least recently used goes, and is compiled anew when called
REPORTS = [name for name, value in vars(Module).items() if isinstance(value, functools.cached_property)]


class ShapeTensorModule(Module):
    """Compiles at the first call with other values of its shape tensors. Source and reports are those of the last call."""

    def __init__(self, imported: DeferredModel, compile: Callable[[ImportedModel], Module]) -> None:
        self._imported = imported
        self._compile = compile
        self._modules: dict[object, Module] = {}  # the most recently used is last
        self._known = set(imported.weight_names)  # and of each compiled model
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
            given = {**(weights or {}), **named}
            self._require_known(given)
            self._bound.update(given)
            for module in self._modules.values():
                _bind(module, given)
        return self

    def _require_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._known:
                raise TypeError(f"the model has no constant {name!r} without a value; it has {sorted(self._known)}")

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
            module = self._modules.pop(key, None)
            if module is None:
                key, module = self._compiled(given)
            self._modules[key] = module
            if len(self._modules) > MOST_MODULES:
                del self._modules[next(iter(self._modules))]
            if self._last is not module:
                for name in REPORTS:
                    self.__dict__.pop(name, None)
            self._last = module
            return module

    def _compiled(self, given: Mapping[str, Any]) -> tuple[object, Module]:
        """A module for these values, with weights and groups, and its key."""
        imported = self._imported.for_values(given)
        key = self._key(given)  # more inputs may have turned out to be needed
        if key in self._modules:
            return key, self._modules.pop(key)
        module = self._compile(imported)
        self._known.update(module.weight_names)
        _bind(module, self._bound)
        return key, module.use_groups(self._groups)

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


def _bind(module: Module, weights: Mapping[str, Tensor]) -> None:
    module.bind({name: weights[name] for name in module.weight_names if name in weights})


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
