"""Example inputs for an exported file, and PyTorch's own results for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import InputError
from .model_file import write_safetensors


def save_example(
    module: torch.nn.Module, args: Sequence[Any], path: str, kwargs: Mapping[str, Any] | None = None
) -> tuple[str, str]:
    """Writes example inputs and PyTorch's own results under the names that the exported file uses.

    Returns the two paths, model.in.safetensors and model.out.safetensors.
    """
    with open(path, encoding="utf-8") as f:
        graph = json.load(f)
    module.eval()
    with torch.no_grad():
        before = {name: tensor.detach().clone() for name, tensor in _state(module).items()}
        leaves = pytree.tree_leaves((args, kwargs or {}))
        arguments = _arguments(graph, leaves)
        inputs = {name: tensor.clone() for name, tensor in arguments.items()}
        inputs |= {name: before[_pytorch_name(graph, name)] for name in _buffers(graph, arguments)}
        inputs |= _constants(graph, module, before)
        try:
            returned = pytree.tree_leaves(module(*args, **(kwargs or {})))
        except Exception as error:  # PyTorch can trace modules that this machine cannot run
            raise InputError(f"--example: PyTorch cannot run the module: {error}") from error
        results = [x.detach().clone() for x in returned if isinstance(x, torch.Tensor)]
    after = _state(module)
    outputs: dict[str, torch.Tensor] = dict(zip(graph["outputs"], results))
    for output, source in graph.get("aliases", {}).items():
        written = arguments[source] if source in arguments else after[_pytorch_name(graph, source)]
        outputs[output] = written.detach().clone()
    for name, tensor in before.items():  # leave the module as it was found
        after[name].data.copy_(tensor)
    base = os.path.splitext(path)[0]
    files = base + ".in.safetensors", base + ".out.safetensors"
    write_safetensors(files[0], inputs)
    write_safetensors(files[1], outputs)
    return files


def _state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter and buffer by name. A tensor with several names appears under each."""
    return dict(
        [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    )


def _pytorch_name(graph: dict[str, Any], name: str) -> str:
    return str(graph["metadata"].get("pytorch_names", {}).get(name, name))


def _arguments(graph: dict[str, Any], leaves: Sequence[Any]) -> dict[str, torch.Tensor]:
    """The inputs that stand for arguments: tensors, and for an integer n a tensor of shape [n, 0]."""
    tensors = iter([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    integers = graph["metadata"].get("integer_arguments", {})
    arguments: dict[str, torch.Tensor] = {}
    for row in graph["inputs"]:
        if row["name"] in integers:
            arguments[row["name"]] = torch.empty(leaves[integers[row["name"]]], 0, dtype=torch.uint8)
        elif (tensor := next(tensors, None)) is not None:
            arguments[row["name"]] = tensor
    return arguments


def _buffers(graph: dict[str, Any], arguments: Mapping[str, torch.Tensor]) -> list[str]:
    """The inputs that stand for buffers that the module writes."""
    return [row["name"] for row in graph["inputs"] if row["name"] not in arguments]


def _constants(
    graph: dict[str, Any], module: torch.nn.Module, state: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The values of the constants that are given at run time."""
    found: dict[str, torch.Tensor] = {}
    for row in graph.get("constants", []):
        if {"data", "safetensors"} & set(row):
            continue
        name = _pytorch_name(graph, row["name"])
        value = state.get(name)
        if value is None:
            try:
                value = _attribute(module, name)
            except AttributeError:
                raise InputError(
                    f"--example: the module has no tensor {name}, a constant that is given at run time; "
                    "save(weights=True) (--weights=file) writes its value into the weight file"
                ) from None
        found[row["name"]] = value.detach().clone()
    return found


def _attribute(module: torch.nn.Module, path: str) -> torch.Tensor:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor):
        raise AttributeError(path)
    return value
