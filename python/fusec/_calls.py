"""Calls of a compiled model: which tensors they take, where they run, what they give."""

from __future__ import annotations

import functools
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _core, _tensors
from ._options import require_device
from ._tensors import Stream, View
from .errors import InputError, PlatformError, UsageError

Tensor = Any  # of NumPy, PyTorch, CuPy, JAX, ...


class Calls:
    """What a module keeps for its calls: weights, and the kernels loaded on each GPU."""

    def __init__(self, manifest: str, images: list[_core.KernelImage], model: _core.Model | None) -> None:
        self._manifest = manifest
        self._images = images
        self._model = model
        self._lock = threading.RLock()
        self._weights: dict[str, Tensor] = {}
        self._bindings = 0  # how often weights were bound
        self._uploaded: dict[tuple[int, str], View] = {}
        self._loaded: dict[int, _core.DeviceModule] = {}
        self.groups: dict[str, Any] = {}

    @functools.cached_property
    def _executable(self) -> _core.Executable:
        return _core.Executable(self._manifest, self._images)

    @functools.cached_property
    def input_names(self) -> tuple[str, ...]:
        if self._model is not None:
            return tuple(i.name for i in self._model.inputs)
        return tuple(a["name"] for a in json.loads(self._manifest)["arguments"] if not a.get("constant"))

    @functools.cached_property
    def weight_names(self) -> tuple[str, ...]:
        """The constants that a call must give."""
        if self._model is not None:
            return tuple(c.name for c in self._model.constants if not c.is_known)
        return tuple(a["name"] for a in json.loads(self._manifest)["arguments"] if a.get("constant"))

    def bind(self, given: Mapping[str, Tensor]) -> None:
        for name in given:
            if name not in self.weight_names:
                found = f"the model has no constant {name!r} without a value"
                raise TypeError(f"{found}; it has {_listed(self.weight_names)}")
        with self._lock:
            self._weights.update(given)
            self._bindings += 1
            self._uploaded = {k: v for k, v in self._uploaded.items() if k[1] not in given}
            for loaded in self._loaded.values():
                loaded.constants_changed()

    def run(self, tensors: tuple[Tensor, ...], named: Mapping[str, Tensor], out: Any, device: str | None) -> Any:
        bindings = self._bindings  # read before the weights: a later bind() is noticed
        given = self._given(tensors, named)
        where = self._backend_of(given, device)
        if where == "reference":
            return self._on_reference(given, out)
        if where == "emulator":
            return self._on_emulator(given, out)
        return self._on_gpu(given, out, bindings)

    def capture(self, tensors: tuple[Tensor, ...], named: Mapping[str, Tensor], out: Any) -> CudaGraph:
        given = self._given(tensors, named)
        if self._backend_of(given, None) != "cuda":
            raise UsageError(what="capture", found="tensors in host memory", expected="tensors on a GPU")
        stream = _tensors.current_stream(_on_a_gpu(given.values())[0])
        device, arguments = self._device_arguments(given, stream)
        for a, seen in zip(self._executable.arguments, arguments):
            if seen.copied and not a.is_constant:
                expected = f"a dense tensor, aligned to {_core.DEVICE_ALIGNMENT} bytes: a graph reads it in place"
                raise InputError(what=f"tensor {a.name!r}", found="a view that is copied", expected=expected)
        results, outputs = self._results(given, arguments, out, stream)
        communicator = self._communicator(device)
        _core.synchronize(device, stream.handle)  # weights may be under way on it; they are prepared on another stream
        captured = self._loaded_on(device).capture(_arguments(arguments), _arguments(results), communicator)
        keep = [arguments, results, *self._weights.values()]
        return CudaGraph(captured, device, _on_a_gpu([*given.values(), *outputs]), _one_or_all(outputs), keep)

    def _given(self, tensors: tuple[Tensor, ...], named: Mapping[str, Tensor]) -> dict[str, Tensor]:
        _tensors.warn_of_gradients([*tensors, *named.values()])
        names = self.input_names + self.weight_names
        if len(tensors) > len(names):
            raise TypeError(f"{len(tensors)} tensors are given; the model takes {len(names)}: {_listed(names)}")
        given = {**self._weights, **dict(zip(names, tensors))}
        for name, tensor in named.items():
            if name not in names:
                raise TypeError(f"unexpected tensor {name!r}; the model takes {_listed(names)}")
            if name in names[: len(tensors)]:
                raise TypeError(f"tensor {name!r} is given twice")
            given[name] = tensor
        missing = [name for name in names if name not in given]
        if missing:
            hint = "; bind() gives weights once for all calls" if set(missing) & set(self.weight_names) else ""
            raise TypeError(f"no tensor is given for {_listed(missing)}{hint}")
        return {name: given[name] for name in names}

    def _backend_of(self, given: Mapping[str, Tensor], wanted: str | None) -> str:
        require_device(wanted)
        deciding = [given[name] for name in self.input_names or self.weight_names]
        on_gpu = bool(_on_a_gpu(deciding))
        if on_gpu and wanted not in (None, "cuda"):
            raise InputError(what=f"device {wanted!r}", found="CUDA tensors", expected="NumPy arrays or CPU tensors")
        if wanted == "cuda" and not on_gpu:
            raise InputError(
                what="device 'cuda'",
                found="tensors in host memory",
                expected="CUDA tensors",
                hint="move them first: tensor.cuda(); or device='emulator' or 'reference'",
            )
        if on_gpu:
            return "cuda"
        if wanted == "reference":
            return "reference"
        if not self._images and self._has_kernels:
            if wanted == "emulator":
                raise PlatformError(what="nothing was compiled (no_nvrtc)", hint="device='reference' needs no kernels")
            return "reference"
        return "emulator"

    @functools.cached_property
    def _has_kernels(self) -> bool:
        """False if every output is an input or a constant."""
        return bool(json.loads(self._manifest)["kernels"])

    @property
    def _known_model(self) -> _core.Model:
        if self._model is None:
            raise UsageError(what="the model, which this needs, is not in the file that was loaded")
        return self._model

    def _host_view(self, name: str, tensor: Tensor, declared: str) -> View:
        seen = _tensors.view(tensor, name).unpacked_as(declared)
        if seen.device is not None:
            raise InputError(
                what=f"tensor {name!r}", found=f"device cuda:{seen.device}", expected="host memory, as the others"
            )
        return seen

    def _on_reference(self, given: Mapping[str, Tensor], out: Any) -> Any:
        dtypes = {t.name: t.dtype for t in [*self._known_model.inputs, *self._known_model.constants]}
        arguments = {name: self._host_view(name, tensor, dtypes[name]) for name, tensor in given.items()}
        results, outputs = self._results(given, self._host_arguments(given), out)
        named = [(name, *v.as_argument()) for name, v in arguments.items()]
        targets = [(name, *v.as_argument()) for name, v in zip((r.name for r in self._executable.results), results)]
        _core.run_reference(self._known_model, named, targets)
        return _one_or_all(outputs)

    def _on_emulator(self, given: Mapping[str, Tensor], out: Any) -> Any:
        arguments = self._host_arguments(given)
        results, outputs = self._results(given, arguments, out)
        self._executable.run_on_emulator(_arguments(arguments), _arguments(results), 0, self._communicator(None))
        return _one_or_all(outputs)

    def _on_gpu(self, given: Mapping[str, Tensor], out: Any, bindings: int) -> Any:
        tensors = _on_a_gpu(given.values())
        stream = _tensors.current_stream(tensors[0])
        device, arguments = self._device_arguments(given, stream)
        results, outputs = self._results(given, arguments, out, stream)
        communicator = self._communicator(device)
        loaded = self._loaded_on(device)
        weights = [(a.name, v) for a, v in zip(self._executable.arguments, arguments) if a.is_constant]
        per_call = any(v.copied or not self._is_bound(name, given.get(name)) for name, v in weights)
        if per_call:
            # A per-call weight may reuse an earlier one's address, so an equal address does not prove that the prepared
            # values are current.
            loaded.constants_changed()
        try:
            loaded.launch(_arguments(arguments), _arguments(results), stream.handle, communicator)
        finally:
            # The weights of this call may be freed now, and a bound one uploaded to their address.
            if per_call or bindings != self._bindings:
                loaded.constants_changed()
        if not stream.orders([*tensors, *outputs]) or any(
            v.copied and isinstance(v.owner, _core.DeviceMemory) for _, v in weights
        ):
            # The package neither orders its later work after this stream nor keeps the tensors alive: wait here.
            _core.synchronize(device, stream.handle)
        return _one_or_all(outputs)

    def _is_bound(self, name: str, weight: Tensor | None) -> bool:
        """Whether it is the weight of all calls: bound, or known to the model (None)."""
        return weight is None or self._weights.get(name) is weight

    @functools.cached_property
    def _communicates(self) -> bool:
        manifest = json.loads(self._manifest)
        return any("collective" in step for step in [*manifest["prepare"], *manifest["launches"]])

    def _communicator(self, device: int | None) -> Callable[[_core.Collective, int], None] | None:
        """What does the model's collectives, where the process has initialized torch.distributed."""
        if not self._communicates or "torch" not in sys.modules:
            return None
        from torch import distributed

        if not distributed.is_available() or not distributed.is_initialized():
            return None
        from ._torch.communication import Communicator

        return Communicator(self.groups, device)

    def _host_arguments(self, given: Mapping[str, Tensor]) -> list[View]:
        return [
            self._host_view(a.name, given[a.name], a.dtype) if a.name in given else self._embedded_constant(a)
            for a in self._executable.arguments
        ]

    def _embedded_constant(self, argument: _core.TensorDeclaration) -> View:
        """A constant whose elements the model has, in host memory."""
        with self._lock:
            key = (-1, argument.name)
            if key not in self._uploaded:
                data = np.frombuffer(self._known_model.constant_bytes(argument.name), np.uint8)
                shape = tuple(int(d) for d in argument.shape)
                self._uploaded[key] = View(data.ctypes.data, argument.dtype, shape, None, data)
            return self._uploaded[key]

    def _device_arguments(self, given: Mapping[str, Tensor], stream: Stream) -> tuple[int, list[View]]:
        views: dict[str, View] = {}
        for a in self._executable.arguments:
            tensor = given.get(a.name)
            views[a.name] = (
                self._embedded_constant(a)
                if tensor is None
                else _tensors.view(tensor, a.name, stream=stream).unpacked_as(a.dtype)
            )
        device = next(v.device for v in views.values() if v.device is not None)
        arguments = []
        for a in self._executable.arguments:
            seen = views[a.name]
            if seen.device is None and a.is_constant:
                seen = self._on_device(device, a.name, given.get(a.name), seen)
            if seen.device != device:
                place = "host memory" if seen.device is None else f"device cuda:{seen.device}"
                raise InputError(what=f"tensor {a.name!r}", found=place, expected=f"device cuda:{device}, as the others")
            arguments.append(seen)
        return device, arguments

    def _on_device(self, device: int, name: str, weight: Tensor | None, host: View) -> View:
        """A weight in host memory, copied to the GPU: once if it is that of all calls."""
        with self._lock:
            kept, key = self._is_bound(name, weight), (device, name)
            if kept and key in self._uploaded:
                return self._uploaded[key]
            count = _bytes_of(host)
            memory = _core.DeviceMemory(device, count)
            memory.copy_from_host(host.address, count)
            seen = View(memory.address, host.dtype, host.shape, device, memory, copied=not kept)
            if kept:
                self._uploaded[key] = seen
            return seen

    def _loaded_on(self, device: int) -> _core.DeviceModule:
        with self._lock:
            if device not in self._loaded:
                if not self._images and self._has_kernels:
                    raise PlatformError(what="nothing was compiled (no_nvrtc)", hint="compile without no_nvrtc")
                self._loaded[device] = _core.DeviceModule(self._executable, device)
            return self._loaded[device]

    def _results(
        self, given: Mapping[str, Tensor], arguments: list[View], out: Any, stream: Stream = Stream()
    ) -> tuple[list[View], list[Tensor]]:
        shapes = self._executable.result_shapes(_arguments(arguments))
        wanted = self._targets(out)
        example = next((given[name] for name in self.input_names), next(iter(given.values()), np.empty(0)))
        device = next((v.device for v in arguments if v.device is not None), None)
        views, outputs = [], []
        for result, shape in zip(self._executable.results, shapes):
            if result.alias_of:
                tensor = given[result.alias_of]
            else:
                tensor = wanted.get(result.name)
                if tensor is None:
                    tensor = _tensors.empty_like(example, result.dtype, tuple(shape))
            name = result.alias_of or result.name
            seen = _tensors.view(tensor, name, written=True, stream=stream).unpacked_as(result.dtype)
            if seen.device != device:
                raise InputError(what=f"the tensor for output {result.name!r}", found="another device than the inputs'")
            views.append(seen)
            outputs.append(tensor)
        if wanted:
            self._refuse_overlaps(arguments, views)
        return views, outputs

    def _refuse_overlaps(self, arguments: list[View], results: list[View]) -> None:
        """Refuses memory that is written while something else is read or written there."""
        declared = [*self._executable.arguments, *self._executable.results]
        spans = [(v.address, v.address + _bytes_of(v)) for v in (*arguments, *results)]
        for i in range(len(arguments), len(spans)):
            for j in range(i):
                shared = max(spans[i][0], spans[j][0]) < min(spans[i][1], spans[j][1])
                if shared and not declared[i].alias_of and not getattr(declared[j], "alias_of", ""):
                    found = f"memory that {declared[j].name!r} has as well"
                    raise InputError(what=f"the tensor for output {declared[i].name!r}", found=found)

    def _targets(self, out: Any) -> dict[str, Tensor]:
        names = [r.name for r in self._executable.results if not r.alias_of]
        if out is None:
            return {}
        if isinstance(out, Mapping):
            unknown = [name for name in out if name not in names]
            if unknown:
                raise TypeError(f"out names {_listed(unknown)}; the model writes {_listed(names)}")
            return dict(out)
        tensors = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(tensors) != len(names):
            raise TypeError(f"out has {len(tensors)} tensors; the model writes {len(names)}: {_listed(names)}")
        return dict(zip(names, tensors))


class CudaGraph:
    """A captured call: :meth:`replay` enqueues it with the tensors it was captured with."""

    def __init__(
        self, captured: _core.CapturedLaunch, device: int, tensors: list[Tensor], outputs: Any, keep: list[object]
    ) -> None:
        self._captured = captured
        self._device = device
        self._tensors = tensors
        self._keep = keep
        self.outputs = outputs

    def replay(self) -> Any:
        """Enqueues the call on the current stream of the tensors' package; returns the outputs, the same each time."""
        stream = _tensors.current_stream(self._tensors[0])
        in_order = stream.orders(self._tensors)
        if not in_order:
            for tensor in self._tensors:
                _tensors.view(tensor, "of a graph", stream=stream)  # orders earlier work on it before the stream
        self._captured.launch(stream.handle)
        if not in_order:
            _core.synchronize(self._device, stream.handle)
        return self.outputs

    __call__ = replay

    def __repr__(self) -> str:
        return f"<fusec.CudaGraph on cuda:{self._device}>"


def _on_a_gpu(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [t for t in tensors if _tensors.gpu_of(t) is not None]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def _arguments(views: list[View]) -> list[tuple[int, str, tuple[int, ...]]]:
    return [v.as_argument() for v in views]


def _one_or_all(outputs: list[Tensor]) -> Any:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _bytes_of(host: View) -> int:
    count = 1
    for extent in host.shape:
        count *= extent
    if host.dtype in _tensors.FOUR_BITS:
        return count // 2
    return count * _tensors.numpy_dtype(host.dtype).itemsize
