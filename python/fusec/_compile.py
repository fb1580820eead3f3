"""Compiling models, and the steps of it one by one."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

from . import _core, _nvrtc
from ._formula import Scalar, traced
from ._imported import ImportedModel
from ._module import Module
from ._options import CompileOptions, Path, core_options, plan_file, require_device
from ._progress import ProgressLine
from ._saved import read_saved
from ._shape_tensors import DeferredModel, ShapeTensorModule
from .errors import FusecError, InputError, PlatformError, UsageError

Tensor = Any


def read(path: Path, *, registry: _core.Registry | None = None) -> _core.Model:
    """Reads a model file (docs/graph_format.md). Raises InputError with the JSON pointer of what is wrong."""
    return _read(path, registry, _core.ResourceLimits())


def _read(path: Path, registry: _core.Registry | None, resources: _core.ResourceLimits) -> _core.Model:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"{type(path).__name__} is neither a fusec.Model nor the path of a model file; fusec.from_torch(module, "
            "example_args) imports a PyTorch module, fusec.from_onnx(model) an ONNX model"
        )
    return _core.Model.read(os.fspath(path), _core.Registry() if registry is None else _checked(registry), resources)


def _checked(registry: Any) -> _core.Registry:
    if not isinstance(registry, _core.Registry):
        raise TypeError(f"registry is a fusec.Registry, not {registry!r}")
    return registry


def graph_of(
    model: _core.Model | ImportedModel | Path,
    options: CompileOptions,
    resources: _core.ResourceLimits,
    registry: _core.Registry | None = None,
) -> _core.Model:
    """The graph of what functions take as a model, under the name that the options give it."""
    if isinstance(model, ImportedModel):
        model = model.model
    graph = model if isinstance(model, _core.Model) else _read(model, registry, resources)
    if "name" not in options:
        return graph
    named = {**json.loads(graph.to_json()), "name": options["name"]}
    return _core.Model.parse(json.dumps(named), graph.directory, registry or _core.Registry(), resources)


@contextmanager
def _explained(options: CompileOptions, wanted: _core.Options) -> Iterator[None]:
    """Errors of the library about a plan name its file; those about NVRTC say how a Python package gets it."""
    try:
        yield
    except InputError as error:
        file = plan_file(options["plan"]) if error.file == "plan" and "plan" in options else None
        if file is None:
            raise
        raise InputError(error.on_command_line.replace("plan", file, 1), **{**_parts(error), "file": file}) from None
    except PlatformError as error:
        advice = _nvrtc.advice(wanted) if wanted.ptx else ""
        if not advice:
            raise
        hints = [error.hint, f"{advice}; --no-nvrtc emits source alone"]
        raise PlatformError(**{**_parts(error), "hint": "; ".join(filter(None, hints))}) from None


def _parts(error: FusecError) -> dict[str, Any]:
    return {n: getattr(error, n) for n in ("what", "found", "expected", "hint", "file", "pointer", "line", "column")}


def compile(
    model: _core.Model | ImportedModel | Path,
    *,
    weights: Mapping[str, Tensor] | None = None,
    device: str | None = None,
    registry: _core.Registry | None = None,
    **options: Unpack[CompileOptions],
) -> Module:
    """Fuses a model, emits CUDA source and compiles it.

    ``model``: a model, the path of a model file, or what :func:`from_torch` or :func:`from_onnx` made: the result is then
    called as the module, or the ONNX graph, is. ``weights``: values of constants, as :meth:`Module.bind` takes them; an
    imported model has its own.
    ``device``: where calls run by default: ``cuda``, ``emulator`` or ``reference``. ``registry``: the ops that a model
    file may use. Options: :class:`fusec.CompileOptions`.

    Other Python threads run meanwhile. Raises InputError for a wrong model or plan, UsageError for a wrong option,
    TypeError for an unknown one, PlatformError where NVRTC is missing (``no_nvrtc=True`` does without).
    """
    signature = None
    require_device(device)
    if registry is not None:
        _checked(registry)
    wanted = core_options(options, ptx=True)
    if isinstance(model, DeferredModel):
        made_later = ShapeTensorModule(model, lambda made: compile(made, device=device, registry=registry, **options))
        return made_later.bind(weights)
    if isinstance(model, ImportedModel):
        weights = {**model.weights, **(weights or {})}
        signature = model.signature
    graph = graph_of(model, options, wanted.resources, registry)
    with _explained(options, wanted):
        if "progress" in options or not ProgressLine.is_wanted():
            made = _core.compile(graph, wanted)
        else:
            with ProgressLine() as line:
                wanted.progress = line
                made = _core.compile(graph, wanted)
    return Module(made, graph, weights=weights, device=device, signature=signature)


def load(path: Path, *, weights: Mapping[str, Tensor] | None = None, device: str | None = None) -> Module:
    """What :meth:`Module.save` wrote. Needs neither NVRTC nor the model's file, but the weight files that the model names.

    A model that cannot be read again (a weight file was moved, an op is one's own) gives a warning where it leaves weights
    that ``weights``, :meth:`Module.bind` or each call must give. Raises InputError for another or a damaged file.
    """
    require_device(device)
    saved = read_saved(path)
    module = Module(saved, weights=weights, device=device)
    missing = [name for name in module.weight_names if name not in (weights or {})]
    if saved.model_error and missing:
        names = ", ".join(map(repr, missing))
        warnings.warn(f"{os.fspath(path)}: {saved.model_error}; bind() must give weights: {names}", stacklevel=2)
    return module


def partition(model: _core.Model | ImportedModel | Path, **options: Unpack[CompileOptions]) -> list[_core.Group]:
    """The groups alone, in execution order: no code is generated. Raises as :func:`compile` does."""
    wanted = core_options(options)
    graph = graph_of(model, options, wanted.resources)
    with _explained(options, wanted):
        return _core.partition(graph, wanted)


def run_pass(
    model: _core.Model | ImportedModel | Path, name: str, /, **options: Unpack[CompileOptions]
) -> _core.Model:
    """One rewriting pass alone ("simplify-algebra"). Raises UsageError, which lists the passes, for any other name."""
    known = [p.name for p in passes() if p.rewrites]
    if name not in known:
        raise UsageError(what="no such pass from graph to graph", found=repr(name), expected="one of " + ", ".join(known))
    wanted = core_options(options)
    return _core.run_pass(graph_of(model, options, wanted.resources), name, wanted)


def passes() -> list[_core.PassInfo]:
    """What a compilation does, in order."""
    return _core.passes()


def patterns(**options: Unpack[CompileOptions]) -> list[_core.PatternInfo]:
    """The fusion patterns, in the order in which they are tried."""
    return _core.patterns(core_options(options))


def annotate(model: _core.Model | ImportedModel | Path, strategy: str = "full") -> dict[str, str]:
    """The pattern kind of every node, by name."""
    options: Any = {"strategy": strategy}
    graph = graph_of(model, options, core_options(options).resources)
    return dict(zip(graph.node_names, _core.annotate(graph, strategy)))


def register(
    registry: _core.Registry,
    name: str,
    operands: Sequence[str],
    formula: str | Callable[..., Scalar] | None = None,
    *,
    pattern: str = "opaque",
    launcher: str = "",
    infer: Callable[[Sequence[_core.TensorInfo]], _core.TensorInfo] | None = None,
) -> _core.Registry:
    """The registry with one op more.

    ``operands``: their names, ``"bias?"`` for an optional one. ``formula``: what an element of the result is, as text
    (``"$0 * sigmoid($1)"``) or as a function of the operands' elements (``lambda x, gate: x * fusec.function.sigmoid(gate)``);
    the op is then ``elemwise``, or ``broadcast`` where ``pattern`` says so. ``launcher``: without a formula, the C
    function that the emitted host code calls. ``infer``: the result's dtype and shape from the operands'; else the
    operands' shapes are broadcast and the first one's dtype is taken.

    Raises UsageError where the name is taken, InputError where the formula cannot be right.
    """
    text = "" if formula is None else formula if isinstance(formula, str) else traced(formula, len(operands))
    if text and pattern == "opaque":
        pattern = "elemwise"
    return _checked(registry).with_op(name, list(operands), text, pattern, launcher, infer)


def examine(**options: Unpack[CompileOptions]) -> list[_core.Finding]:
    """What this machine offers: NVRTC, CUDA driver, GPUs, compile cache, Graphviz; and what to do about what is missing."""
    return _core.examine(core_options(options))
