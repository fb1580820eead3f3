"""A compiled model: what was made of it, and running it."""

from __future__ import annotations

import functools
import html
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._calls import Calls, CudaGraph, Tensor
from ._imported import Signature
from ._saved import Saved, write_saved
from .errors import PlatformError, UsageError, python_spelling


class Page:
    """A page that :meth:`Module.view` wrote."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._text = text

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return self.path

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self._text)}" width="100%" height="700" style="border:0"></iframe>'


class Module:
    """A model that :func:`fusec.compile` compiled, or :func:`fusec.load` loaded.

    Called with its inputs, in order or by name, it returns its output, or a tuple of its outputs. Tensors on a GPU run
    there, on the current stream of their package, and the call returns before the GPU is done. NumPy arrays and CPU
    tensors run on the PTX emulator, or op by op on the reference.

    Calls are safe from several threads.
    """

    def __init__(
        self,
        made: _core.Compilation | Saved,
        model: _core.Model | None = None,
        *,
        weights: Mapping[str, Tensor] | None = None,
        device: str | None = None,
        signature: Signature | None = None,
    ) -> None:
        self._made = made
        self._signature = signature
        self._model = model if isinstance(made, _core.Compilation) else made.model
        self._device = device
        self._calls = Calls(made.manifest, made.images, self._model)
        if weights:
            self.bind(weights)

    # --- what was made

    @property
    def source(self) -> str:
        """The CUDA source: kernels and the host code that launches them."""
        return self._made.source

    @property
    def ptx(self) -> str:
        """The PTX of all kernels as one module; compiled anew where they were compiled in several pieces.

        Of a module that was loaded it raises UsageError then: :attr:`images` has the pieces.
        """
        return self._image.ptx

    @property
    def cubin(self) -> bytes:
        """The machine code of all kernels as one module; as :attr:`ptx`."""
        return self._image.cubin

    @functools.cached_property
    def _image(self) -> _core.KernelImage:
        if not self._made.images:
            raise UsageError(what="nothing was compiled", hint="compile without no_nvrtc")
        return self._made.whole_image()

    @property
    def images(self) -> list[_core.KernelImage]:
        """PTX and machine code in the pieces that were compiled side by side; none under ``no_nvrtc``."""
        return self._made.images

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        """All that a front end needs to launch the kernels (docs/schemas/manifest.schema.json)."""
        return _parsed(self._made.manifest)

    @functools.cached_property
    def partition(self) -> dict[str, Any]:
        """Which nodes are one kernel (docs/schemas/partition.schema.json)."""
        return _parsed(self._made.partition)

    @property
    def plan(self) -> dict[str, Any]:
        """A copy of the plan: edited, it goes back as ``fusec.compile(model, plan=...)`` (docs/schemas/plan.schema.json)."""
        return _parsed(self._made.plan)

    @functools.cached_property
    def ledger(self) -> dict[str, Any]:
        """Every edge that was not fused, and why (docs/schemas/ledger.schema.json)."""
        return _parsed(self._made.ledger())

    @functools.cached_property
    def report(self) -> dict[str, Any]:
        """What the cost model predicts, in microseconds, bytes and FLOPs (docs/schemas/report.schema.json)."""
        return _parsed(self._made.report())

    @property
    def groups(self) -> list[_core.Group]:
        """The groups of nodes, in execution order."""
        return self._compilation.groups

    @property
    def kernels(self) -> list[_core.Kernel]:
        """The ``__global__`` functions."""
        return self._compilation.kernels

    @property
    def diagnostics(self) -> list[str]:
        """Warnings."""
        return self._compilation.diagnostics

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Wall time of each stage of the compilation, in seconds."""
        return dict(self._compilation.stage_seconds())

    @property
    def model(self) -> _core.Model:
        """The model that was compiled."""
        if self._model is None:
            error = self._made.model_error if isinstance(self._made, Saved) else None
            found = f"an error as it is read again: {error}" if error else ""
            raise UsageError(what="the model is not in the file that was loaded", found=found)
        return self._model

    def explain(self, *nodes: str) -> str:
        """Why these nodes are, or are not, in one kernel; without names, of all groups. Raises InputError."""
        return python_spelling(self._compilation.explain(_names(nodes)))

    def require_one_kernel(self, *nodes: str) -> None:
        """Raises InputError, with the reasons, unless these nodes are in one kernel."""
        self._compilation.require_one_kernel(_names(nodes))

    @property
    def ir(self) -> str:
        """The graph after the passes, as text."""
        return self._compilation.ir()

    @property
    def _compilation(self) -> _core.Compilation:
        if isinstance(self._made, Saved):
            raise UsageError(what="a module that was loaded keeps none of this", hint="compile the model again")
        return self._made

    # --- calls

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs in the order of a call."""
        return self._calls.input_names

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The constants that :meth:`bind` or a call must give."""
        return self._calls.weight_names

    @functools.cached_property
    def output_names(self) -> tuple[str, ...]:
        """The outputs in the order in which a call returns them, each once."""
        return tuple(r["name"] for r in self.manifest["results"])

    def bind(self, weights: Mapping[str, Tensor] | None = None, /, **named: Tensor) -> Module:
        """Gives constants their values for all calls from now on, by reference; returns the module.

        Call it again after weights were changed in place: what is computed from them once is then computed anew.
        Raises TypeError for a name that is no constant of the model.
        """
        self._calls.bind({**(weights or {}), **named})
        return self

    def use_groups(self, groups: Mapping[str, Any]) -> Module:
        """Gives the groups of the model's collectives process groups of torch.distributed; returns the module.

        Names that are not given are those of process groups, as :func:`fusec.from_torch` writes them.
        """
        self._calls.groups.update(groups)
        return self

    def __call__(self, /, *tensors: Any, out: Any = None, device: str | None = None, **named: Any) -> Any:
        """Runs the model.

        ``tensors``: the inputs in order, then any weights that are not bound. ``named``: the same by name. ``out``: where
        the outputs go (a tensor, or a sequence or mapping of them); else they are allocated by the package of the first
        input. An output that the model writes into an input's memory (an alias) is that input. ``device``: ``cuda``,
        ``emulator`` or ``reference``; by default CUDA tensors run on their GPU, others on the emulator, or on the reference
        where nothing was compiled (``no_nvrtc``).

        A model with an input (a traced call with an argument) named ``out`` or ``device`` gets that keyword itself, but for
        a text, sequence or mapping where the input is a tensor; ``fusec.compile(..., device=)`` then says where calls run.

        No gradient flows through a call, which warns where an argument requires one; ``torch.compile`` with
        ``backend="fusec"`` trains.

        A model that :func:`fusec.from_torch` imported is called as its module is, and returns what that returns; one of
        :func:`fusec.from_onnx` takes the inputs of the ONNX graph in order, and returns its outputs in order.

        Raises TypeError where tensors are missing or unexpected, InputError where one has another dtype, shape or
        device than it must have, PlatformError without what the device needs.
        """
        out, device = self._own_keywords(named, out, device)
        if self._signature is None:
            return self._calls.run(tensors, named, out, device or self._device)
        given = self._signature.arguments(tensors, named)
        made = self._calls.run((), given, out, device or self._device)
        outputs = dict(zip(self.output_names, made if isinstance(made, tuple) else (made,)))
        return self._signature.results(outputs, given)

    def _own_keywords(self, named: dict[str, Any], out: Any, device: Any) -> tuple[Any, Any]:
        """``out`` and ``device`` as far as they are the call's own; those that the model has go into ``named``."""
        names = (*self.input_names, *self.weight_names) if self._signature is None else self._signature.names

        def own(name: str, value: Any) -> Any:
            no_tensor = self._signature is None and isinstance(value, (str, Sequence, Mapping))
            if value is None or name not in names or no_tensor:
                return value
            named[name] = value
            return None

        return own("out", out), own("device", device)

    def capture(
        self,
        /,
        *tensors: Tensor,
        out: Tensor | Sequence[Tensor] | Mapping[str, Tensor] | None = None,
        **named: Tensor,
    ) -> CudaGraph:
        """A call on a GPU as a CUDA graph, which reads and writes the same tensors at each replay.

        Nothing is run yet. The inputs must be dense; after :meth:`bind`, capture again. Raises as a call does, and UsageError
        for tensors in host memory.
        """
        out, _ = self._own_keywords(named, out, None)
        return self._calls.capture(tensors, named, out)

    # --- keeping and showing

    def view(self, path: str | os.PathLike[str] | None = None) -> Page:
        """Writes the model as one page for a browser (docs/view.md), into a temporary file where no path is given.

        A notebook shows what is returned; elsewhere it is the page's path: ``webbrowser.open(module.view().path)``.
        """
        text = self._compilation.html()
        if path is None:
            handle, path = tempfile.mkstemp(prefix="fusec.", suffix=".html")
            os.close(handle)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return Page(os.fspath(path), text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what was compiled into one file, for :func:`fusec.load`. Weights are not in it.

        Raises PlatformError where the file cannot be written.
        """
        write_saved(path, self._made, self._model)

    def __repr__(self) -> str:
        what = self._made.summary()
        return f"<fusec.Module {what} ({self.partition['strategy']}, {self.partition['arch']})>"

    def _repr_svg_(self) -> str | None:
        """The groups as a picture, where Graphviz is installed."""
        try:
            return self._compilation.svg()
        except (PlatformError, UsageError):
            return None

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(g['name'])}</td><td>{html.escape(g['pattern'])}</td><td>{g['launches']}</td>"
            f"<td>{html.escape(', '.join(g['nodes']))}</td></tr>"
            for g in self.partition["groups"]
        )
        return (
            f"<p>{html.escape(self._made.summary())}</p><table><tr><th>group</th><th>kind</th><th>launches</th>"
            f"<th>nodes</th></tr>{rows}</table>{self._repr_svg_() or ''}"
        )


def _names(nodes: tuple[str, ...]) -> list[str]:
    for node in nodes:
        if not isinstance(node, str):
            raise TypeError(f"a node is given by its name, a str, not {node!r}")
    return list(nodes)


def _parsed(text: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(text)
    return result
