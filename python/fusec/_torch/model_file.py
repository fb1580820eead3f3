"""Holds an imported graph and writes its model file, one node a line, and the weights as safetensors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import torch

from .._graph_file import SMALL as SMALL  # convert.py reads these two here
from .._graph_file import GraphFile, Stored, write_stored
from .._graph_file import number as number

if TYPE_CHECKING:
    from torch.types import IntLikeType

Json: TypeAlias = dict[str, Any]  # one JSON object of the file: a row of its inputs, constants or nodes

DTYPES = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.float8_e5m2: "float8_e5m2",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint64: "uint64",
    torch.uint32: "uint32",
    torch.uint16: "uint16",
    torch.uint8: "uint8",
    torch.bool: "bool",
}
if hasattr(torch, "float8_e8m0fnu"):
    DTYPES[torch.float8_e8m0fnu] = "float8_e8m0fnu"
TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}


class Value(NamedTuple):
    """A tensor of the graph: its name in the file, its dtype and its sizes."""

    name: str
    dtype: torch.dtype
    shape: tuple[IntLikeType, ...]


class Plain(NamedTuple):
    """A leaf of the module's result that is not a tensor: a number, None, ..."""

    value: object


class Size(NamedTuple):
    """A leaf of the module's result that is a size of an input."""

    input: str
    dim: int


class ModelFile(GraphFile):
    """Collects the graph of a PyTorch module and writes it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.renamed: dict[str, str] = {}  # name of an input or constant -> PyTorch's name, where the two differ
        self.integers: dict[str, int] = {}  # name of an input of shape [n, 0] -> position of the argument n
        self.leaves: dict[str, int] = {}  # name of an input -> position of its tensor among the arguments
        self.state: dict[str, str] = {}  # name of an input -> PyTorch's name of a buffer that the model writes
        self.returned: list[int | Plain | Size] = []  # for each leaf of the module's result: int: place in `outputs`

    def unique_for(self, name: str) -> str:
        """Takes a name for the argument, buffer or parameter that PyTorch calls `name`."""
        given = self.unique(name)
        if given != name:
            self.renamed[given] = name
        return given

    def rename(self, old: str, new: str) -> None:
        """Renames the single result of a node, for example to an output's name."""
        for node in self.nodes:
            if node["name"] == old:
                node["name"] = new
                for output in node.get("outputs", []):
                    output["name"] = new
            node["inputs"] = [new if x == old else x for x in node["inputs"]]
        self.outputs = [new if x == old else x for x in self.outputs]
        self.aliases = {new if out == old else out: source for out, source in self.aliases.items()}

    def drop_unused(self) -> None:
        """Drops constants that no node reads: batch counters, a head that is not called."""
        used = {x for node in self.nodes for x in node["inputs"] if isinstance(x, str)} | set(self.outputs)
        self.constants = [c for c in self.constants if c["name"] in used]
        self.tensors = {name: t for name, t in self.tensors.items() if name in used}
        used |= {row["name"] for row in self.inputs}
        self.renamed = {name: given for name, given in self.renamed.items() if name in used}

    def metadata(self) -> Json:
        metadata: Json = {"about": f"imported from PyTorch {torch.__version__}"}
        if self.renamed:
            metadata["pytorch_names"] = self.renamed
        if self.integers:
            metadata["integer_arguments"] = self.integers
        return metadata

    def stored(self, name: str, tensor: torch.Tensor) -> Stored:
        return _stored(tensor)


def _stored(tensor: torch.Tensor) -> Stored:
    size = tensor.numel() * tensor.element_size()

    def write(f: BinaryIO) -> None:
        flat = tensor.detach().to("cpu").contiguous()
        if size:
            f.write((ctypes.c_char * size).from_address(flat.data_ptr()))

    key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
    return Stored(DTYPES[tensor.dtype], tuple(tensor.shape), size, key, write)


def write_safetensors(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a safetensors file tensor by tensor. Memory holds a copy of at most one tensor."""
    write_stored(path, {name: _stored(tensor) for name, tensor in tensors.items()})


def literal(tensor: torch.Tensor) -> list[Any]:
    """A small tensor's values as the format's `data` list."""
    values = tensor.detach().to("cpu")
    if values.dtype.is_floating_point:
        values = values.to(torch.float64)
    return [number(v) for v in values.reshape(-1).tolist()]
