"""A module or a program of torch.export becomes a graph of the format: its file, and how calls of it go."""

import sys

import torch

from ..errors import InputError
from .convert import Converter
from .custom_ops import CustomOps
from .errors import TraceError, unmapped_message
from .program import capture, lower
from .signature import Signature


def trace(module, args, kwargs, dynamic_shapes, strict, **options):
    """(file, signature) of a module, put into eval mode, or of a torch.export.ExportedProgram, which has its arguments.

    strict: None tries the plain way of tracing first, then TorchDynamo. Options: those of `convert`."""
    if isinstance(module, torch.export.ExportedProgram):
        return convert(module, None, None, **options)

    def attempt(strict):
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
        print("note: traced with TorchDynamo (strict=True), since the plain way of tracing failed", file=sys.stderr)
        return found


def convert(program, declared, module, *, name=None, decompose=False, types=False, custom_ops=False):
    """(file, signature) of a program. Raises InputError, with everything that has no counterpart at once."""
    name = name or (type(module).__name__ if module is not None else "model")
    custom = CustomOps.of(custom_ops)

    def convert_lowered(lowered):
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
