"""Compiling models, and the steps of it one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from . import _core
from ._formula import Scalar, traced
from ._imported import ImportedModel
from ._module import Module
from ._options import CompileOptions, Path, core_options
from ._progress import ProgressLine
from ._saved import read_saved
from ._shape_tensors import DeferredModel, ShapeTensorModule

Tensor = Any


def read(path: Path, *, registry: _core.Registry | None = None) -> _core.Model:
    """Reads a model file (docs/graph_format.md). Raises InputError with the JSON pointer of what is wrong."""
    return _read(path, registry, _core.ResourceLimits())


def _read(path: Path, registry: _core.Registry | None, resources: _core.ResourceLimits) -> _core.Model:
    if not isinstance(path, (str, os.PathLike)):
        kind = type(path).__name__
        raise TypeError(
            f"a {kind} is neither a fusec.Model nor the path of one; fusec.from_torch(module, example_args) imports a "
            "PyTorch module, fusec.from_onnx(model) an ONNX model"
        )
    return _core.Model.read(os.fspath(path), _core.Registry() if registry is None else _checked(registry), resources)


def _checked(registry: Any) -> _core.Registry:
    if not isinstance(registry, _core.Registry):
        raise TypeError(f"registry is a fusec.Registry, not {registry!r}")
    return registry


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
    if registry is not None:
        _checked(registry)
    wanted = core_options(options, ptx=True)
    if isinstance(model, DeferredModel):
        return ShapeTensorModule(
            model, lambda made: compile(made, weights=weights, device=device, registry=registry, **options)
        )
    if isinstance(model, ImportedModel):
        weights = {**model.weights, **(weights or {})}
        signature, model = model.signature, model.model
    elif not isinstance(model, _core.Model):
        model = _read(model, registry, wanted.resources)
    if "progress" in options or not ProgressLine.is_wanted():
        made = _core.compile(model, wanted)
    else:
        with ProgressLine() as line:
            wanted.progress = line
            made = _core.compile(model, wanted)
    return Module(made, model, weights=weights, device=device, signature=signature)


def load(path: Path, *, weights: Mapping[str, Tensor] | None = None, device: str | None = None) -> Module:
    """What :meth:`Module.save` wrote. Needs neither NVRTC nor the model's file. Raises InputError."""
    return Module(read_saved(path), weights=weights, device=device)


def partition(model: _core.Model | Path, **options: Unpack[CompileOptions]) -> list[_core.Group]:
    """The groups alone, in execution order: no code is generated. Raises as :func:`compile` does."""
    wanted = core_options(options)
    return _core.partition(model if isinstance(model, _core.Model) else _read(model, None, wanted.resources), wanted)


def run_pass(model: _core.Model | Path, name: str, **options: Unpack[CompileOptions]) -> _core.Model:
    """One rewriting pass alone ("simplify-algebra"). Raises UsageError, which lists the passes, for any other name."""
    wanted = core_options(options)
    return _core.run_pass(model if isinstance(model, _core.Model) else _read(model, None, wanted.resources), name, wanted)


def passes() -> list[_core.PassInfo]:
    """What a compilation does, in order."""
    return _core.passes()


def patterns(**options: Unpack[CompileOptions]) -> list[_core.PatternInfo]:
    """The fusion patterns, in the order in which they are tried."""
    return _core.patterns(core_options(options))


def annotate(model: _core.Model, strategy: str = "full") -> dict[str, str]:
    """The pattern kind of every node, by name."""
    return dict(zip(model.node_names, _core.annotate(model, strategy)))


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
