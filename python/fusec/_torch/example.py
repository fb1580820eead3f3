"""Example inputs for an exported file, and PyTorch's own results for them."""

import json
import os

import torch
from torch.utils import _pytree as pytree

from ..errors import InputError
from .model_file import write_safetensors


def save_example(module, args, path, kwargs=None):
    """Writes example inputs and PyTorch's own results under the names that the exported file uses.

    Returns the two paths, model.in.safetensors and model.out.safetensors."""
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
        except Exception as error:  # what PyTorch traces it need not be able to run on this machine
            raise InputError(f"--example: PyTorch cannot run the module: {error}") from error
        results = [x.detach().clone() for x in returned if isinstance(x, torch.Tensor)]
    after = _state(module)
    outputs = dict(zip(graph["outputs"], results))
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


def _state(module):
    """Every parameter and buffer, those that are one tensor under each of their names."""
    return dict(
        [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    )


def _pytorch_name(graph, name):
    return graph["metadata"].get("pytorch_names", {}).get(name, name)


def _arguments(graph, leaves):
    """The inputs that stand for arguments: tensors, and for an integer n a tensor of shape [n, 0]."""
    tensors = iter([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    integers = graph["metadata"].get("integer_arguments", {})
    arguments = {}
    for row in graph["inputs"]:
        if row["name"] in integers:
            arguments[row["name"]] = torch.empty(leaves[integers[row["name"]]], 0, dtype=torch.uint8)
        elif (tensor := next(tensors, None)) is not None:
            arguments[row["name"]] = tensor
    return arguments


def _buffers(graph, arguments):
    """The inputs that stand for buffers that the module writes."""
    return [row["name"] for row in graph["inputs"] if row["name"] not in arguments]


def _constants(graph, module, state):
    """The values of constants that the file leaves to run time."""
    found = {}
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
                    f"--example: the module has no tensor {name}, which the file leaves to run time; --weights=file "
                    "writes its value into the weight file"
                ) from None
        found[row["name"]] = value.detach().clone()
    return found


def _attribute(module, path):
    value = module
    for part in path.split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor):
        raise AttributeError(path)
    return value
