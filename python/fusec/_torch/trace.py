"""Imports a module or a program of torch.export: its model file, and the signature of its calls."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..errors import InputError
from .convert import Converter
from .custom_ops import CustomOps
from .dimensions import LeafDims
from .errors import TraceError, unmapped_message
from .model_file import ModelFile
from .program import capture, lower
from .signature import Signature


def trace(
    module: torch.nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    strict: bool | None,
    **options: Any,
) -> tuple[ModelFile, Signature]:
    """The model file and the signature of a module, which is put into eval mode, or of an exported program.

    An exported program needs no arguments. strict: None traces by running the Python code, and with TorchDynamo where
    that fails. options: those of `convert`.
    """
    if isinstance(module, torch.export.ExportedProgram):
        return convert(module, None, None, **options)

    def attempt(strict: bool) -> tuple[ModelFile, Signature]:
        program, declared = capture(module, args, kwargs, dynamic_shapes, strict)
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
        raise InputError(unmapped_message(problems))
    converted = convert_lowered(lowered)
    if not converted.file.outputs:
        raise InputError(what="the module returns no tensor and writes to no buffer: there is nothing to import")
    for note in converted.notes:
        print(f"note: {note}", file=sys.stderr)
    return converted.file, Signature(lowered, converted.file, module)
