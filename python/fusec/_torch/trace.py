"""Imports a module or a program of torch.export: its model file, and the signature of its calls."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import InputError, UsageError
from .convert import Converter
from .custom_ops import CustomOps
from .dimensions import LeafDims
from .errors import TraceError, unmapped_error
from .model_file import ModelFile
from .program import capture, lower
from .signature import Signature


def trace(
    module: torch.nn.Module | torch.export.ExportedProgram,
    args: Sequence[Any] | Mapping[str, Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    strict: bool | None,
    **options: Any,
) -> tuple[ModelFile, Signature]:
    """The model file and the signature of a module, which is traced in eval mode, or of an exported program.

    An exported program needs no arguments; a mapping as `args` is keyword arguments. strict: None traces by running the
    Python code, and with TorchDynamo where that fails. options: those of `convert`.
    """
    if isinstance(module, torch.export.ExportedProgram):
        return convert(module, None, None, **options)
    if not isinstance(module, torch.nn.Module):
        hint = "give an instance of the class" if isinstance(module, type) else "make a function the forward of a module"
        raise UsageError(
            what="module",
            found=f"an object of the class {type(module).__name__}",
            expected="a torch.nn.Module or a torch.export.ExportedProgram",
            hint=hint if callable(module) else "",
        )
    positional, keywords = arguments_of(args, kwargs)

    def attempt(strict: bool) -> tuple[ModelFile, Signature]:
        program, declared = capture(module, positional, keywords, dynamic_shapes, strict)
        return convert(program, declared, module, **options)

    if strict is not None:
        return attempt(strict)
    try:
        return attempt(False)
    except TraceError as error:
        try:
            found = attempt(True)
        except InputError:
            raise error from None
        print("note: traced with TorchDynamo, as by strict=True (--strict), since strict=False failed", file=sys.stderr)
        return found


def arguments_of(
    given: Sequence[Any] | Mapping[str, Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example arguments by position and by name. A tensor is a sequence of its rows, but none of arguments."""
    if isinstance(given, Mapping):
        return (), {**given, **kwargs}
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise UsageError(
            what="example_args",
            found=f"a {type(given).__name__}",
            expected="a tuple of forward()'s arguments, or a mapping of them by name",
            hint="fusec.from_torch(module, (x,))",
        )
    return tuple(given), dict(kwargs)


def convert(
    program: torch.export.ExportedProgram,
    declared: Sequence[LeafDims] | None,
    module: torch.nn.Module | None,
    *,
    name: str | None = None,
    decompose: bool = False,
    types: bool = False,
    custom_ops: CustomOps | bool | Mapping[str, str] = False,
) -> tuple[ModelFile, Signature]:
    """The model file and the signature of a program. Raises one InputError for everything that has no counterpart."""
    name = name or (type(module).__name__ if module is not None else "model")
    custom = CustomOps.of(custom_ops)

    def convert_lowered(lowered: torch.export.ExportedProgram) -> Converter:
        return Converter(lowered, declared, name, types, custom).run()

    lowered, problems = lower(
        program,
        lambda p: convert_lowered(p).problems,
        decompose,
        lambda target: custom.named(target) is not None,
    )
    custom.check_names({str(n.target) for n in lowered.graph.nodes if n.op == "call_function"})
    if problems:
        raise unmapped_error(problems)
    converted = convert_lowered(lowered)
    if not converted.file.outputs:
        raise InputError(what="the module returns no tensor and writes to no buffer: there is nothing to import")
    for note in converted.notes:
        print(f"note: {note}", file=sys.stderr)
    return converted.file, Signature(lowered, converted.file, module)
