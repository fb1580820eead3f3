"""`python -m fusec import`: reads MODULE.py:FACTORY, MODEL.pt2 and --inputs, and writes the model file."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from typing import Any

import torch

from ..errors import InputError, UsageError
from .model_file import TORCH_DTYPES


def parse_inputs(text: str) -> tuple[tuple[torch.Tensor, ...], tuple[dict[int, Any] | None, ...] | None]:
    """Reads --inputs: example tensors, and their dynamic_shapes or None."""
    sizes: dict[str, int] = {}
    dims: dict[str, Any] = {}
    tensors: list[torch.Tensor] = []
    shapes: list[dict[int, Any] | None] = []
    tensor = r"(\w+)\s*\[([^\]]*)\]"
    if not re.fullmatch(rf"\s*{tensor}(\s*,\s*{tensor})*\s*", text):
        raise UsageError(what="--inputs", found=repr(text), expected="dtype[sizes] of each argument: float32[4,8], int64[4]")
    for dtype, body in re.findall(tensor, text):
        if dtype not in TORCH_DTYPES:
            raise UsageError(f"--inputs: {dtype!r} is no dtype; known are {', '.join(TORCH_DTYPES)}")
        shape: list[int] = []
        dynamic: dict[int, Any] = {}
        for axis, size in enumerate(filter(None, (s.strip() for s in body.split(",")))):
            found = re.fullmatch(r"(?:(\d+)|([A-Za-z_]\w*)(?:=(\d+)(?::(\d+)\.\.(\d+))?)?)", size)
            if not found or (found[2] and not found[3] and found[2] not in sizes):
                raise UsageError(f"--inputs: {size!r} is no size: a number, name=example or name=example:min..max")
            if found[2]:
                if found[3]:
                    sizes[found[2]] = int(found[3])
                    bounds = {"min": int(found[4]), "max": int(found[5])} if found[4] else {}
                    dims[found[2]] = torch.export.Dim(found[2], **bounds)
                dynamic[axis] = dims[found[2]]
            shape.append(int(found[1]) if found[1] else sizes[found[2]])
        kind = TORCH_DTYPES[dtype]
        tensors.append(torch.randn(shape).to(kind) if kind.is_floating_point else torch.zeros(shape, dtype=kind))
        shapes.append(dynamic or None)
    return tuple(tensors), tuple(shapes) if any(shapes) else None


def load_factory(text: str) -> Any:
    """Calls what MODULE.py:FACTORY names and returns its result."""
    file, _, attribute = text.rpartition(":")
    if not file or not attribute:
        raise UsageError(f"{text!r} is neither MODULE.py:FACTORY, MODEL.pt2 nor MODEL.onnx")
    if file.endswith(".py"):
        if not os.path.isfile(file):
            raise InputError(f"{file} does not exist")
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
        assert spec is not None and spec.loader is not None, file  # a .py file has both
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(file)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{file}.".startswith(f"{error.name}."):
                raise
            raise InputError(f"there is no module {error.name!r}") from None
    if not hasattr(module, attribute):
        raise InputError(f"{file} has no {attribute!r}")
    return getattr(module, attribute)()


def parts_of(made: Any) -> tuple[Any, Any, Any]:
    """What a factory returned as the module, its example arguments and dynamic_shapes; None for what it left out."""
    parts = made if isinstance(made, tuple) else (made,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], (torch.nn.Module, torch.export.ExportedProgram)):
        raise InputError(
            what="the factory",
            found=f"a result of type {type(made).__name__}",
            expected="a torch.nn.Module, or a tuple of it, example_args and dynamic_shapes",
        )
    module, args, dynamic_shapes = (*parts, None, None)[:3]
    return module, args, dynamic_shapes


def load_program(path: str) -> torch.export.ExportedProgram:
    """Loads the program in a .pt2 file."""
    try:
        return torch.export.load(path)
    except Exception as error:  # for example: no such file, another format, a class that is not registered
        raise InputError(f"{path} cannot be read as a program of torch.export.save: {error}") from error


def run(given: argparse.Namespace) -> None:
    """Runs `python -m fusec import` with parsed arguments."""
    from .. import from_torch
    from .custom_ops import CustomOps, parse_sources
    from .example import save_example

    options: dict[str, Any] = dict(
        name=given.name,
        decompose=given.decompose,
        types=given.types,
        custom_ops=CustomOps.of(parse_sources(given.custom_op))._replace(every=given.custom_ops),
    )
    if given.model.endswith(".pt2"):
        if given.example:
            raise UsageError("--example needs the module itself, not a .pt2 file")
        options["name"] = given.name or os.path.splitext(os.path.basename(given.model))[0]
        from_torch(load_program(given.model), **options).save(given.output, weights=given.weights == "file")
        return
    module, args, dynamic_shapes = parts_of(load_factory(given.model))
    if given.inputs:
        args, dynamic_shapes = parse_inputs(given.inputs)
    if args is None:
        raise InputError("the factory gives a module alone: say what forward() takes with --inputs")
    args, kwargs = ((), args) if isinstance(args, dict) else (tuple(args), {})
    imported = from_torch(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=given.strict, **options)
    imported.save(given.output, weights=given.weights == "file")
    if given.example:
        save_example(module, args, given.output, kwargs)
