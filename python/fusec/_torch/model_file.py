"""Holds an imported graph and writes its model file, one node a line, and the weights as safetensors."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import torch

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

SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}

SMALL = 64  # the most elements of a lifted constant that is written into the graph itself


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


class ModelFile:
    """Collects a graph and writes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.symbols: dict[str, dict[str, int]] = {}  # name -> {"min": .., "max": ..}
        self.inputs: list[Json] = []
        self.constants: list[Json] = []
        self.nodes: list[Json] = []
        self.outputs: list[str] = []
        self.aliases: dict[str, str] = {}  # output -> the input that it overwrites
        self.tensors: dict[str, torch.Tensor] = {}  # name of a constant -> its value, for the weight file
        self.taken: set[str] = set()
        self.renamed: dict[str, str] = {}  # name of an input or constant -> PyTorch's name, where the two differ
        self.integers: dict[str, int] = {}  # name of an input of shape [n, 0] -> position of the argument n
        self.leaves: dict[str, int] = {}  # name of an input -> position of its tensor among the arguments
        self.state: dict[str, str] = {}  # name of an input -> PyTorch's name of a buffer that the model writes
        self.returned: list[int | Plain | Size] = []  # for each leaf of the module's result: int: place in `outputs`

    def unique(self, wanted: str, results: int = 1) -> str:
        """Takes a name that no value has yet. With several results, its numbered names are free as well."""
        name, count = wanted, 1
        while name in self.taken or (results > 1 and any(f"{name}.{i}" in self.taken for i in range(results))):
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        if results > 1:
            self.taken.update(f"{name}.{i}" for i in range(results))
        return name

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

    def write(self, path: str, weights: str = "file") -> None:
        """Writes the model file and, with weights == "file", the values of constants beside it as .safetensors."""
        weight_path = os.path.splitext(path)[0] + ".safetensors"
        stored: dict[str, torch.Tensor] = {}  # name in the weight file -> tensor; tied parameters are stored once
        same: dict[tuple[Any, ...], str] = {}  # (address, dtype, shape, strides) -> name in the weight file
        places: dict[str, dict[str, str]] = {}  # name of a constant -> its place in the weight file
        if weights == "file":
            for constant in self.constants:
                tensor = self.tensors.get(constant["name"])
                if tensor is None:
                    continue
                key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
                tensor_name = same.setdefault(key, constant["name"]) if tensor.numel() else constant["name"]
                stored.setdefault(tensor_name, tensor)
                places[constant["name"]] = {"file": os.path.basename(weight_path), "tensor": tensor_name}
        if stored:
            write_safetensors(weight_path, stored)
        _replace(path, lambda f: f.write(self.text(places).encode("utf-8")))

    def text(self, places: Mapping[str, dict[str, str]] | None = None) -> str:
        """The file's text. places: the place of each constant in the weight file; others are given at run time."""
        constants = [{**c, "safetensors": places[c["name"]]} if places and c["name"] in places else c
                     for c in self.constants]
        metadata: Json = {"about": f"imported from PyTorch {torch.__version__}"}
        if self.renamed:
            metadata["pytorch_names"] = self.renamed
        if self.integers:
            metadata["integer_arguments"] = self.integers
        top: Json = {"fusec": 1, "name": self.name, "metadata": metadata}
        if self.symbols:
            top["symbols"] = self.symbols
        lists = {"inputs": self.inputs, "constants": constants, "nodes": self.nodes}
        text = "{\n" + "".join(f"  {_line(k)}: {_line(v)},\n" for k, v in top.items())
        for key, rows in lists.items():
            if rows or key != "constants":
                body = ",\n".join("    " + _line(row) for row in rows)
                text += f'  "{key}": [\n{body}\n  ],\n' if rows else f'  "{key}": [],\n'
        if self.aliases:
            text += f'  "aliases": {_line(self.aliases)},\n'
        return text + f'  "outputs": {_line(self.outputs)}\n}}\n'


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _replace(path: str, fill: Callable[[BinaryIO], object]) -> None:
    """Writes to a temporary file first. A failed run then leaves no half-written model."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            fill(f)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def write_safetensors(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a safetensors file tensor by tensor. Memory holds a copy of at most one tensor."""
    header: Json = {}
    offset = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": SAFETENSORS[DTYPES[tensor.dtype]],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    head = json.dumps(header, separators=(",", ":")).encode("utf-8")
    head += b" " * (-len(head) % 8)

    def fill(f: BinaryIO) -> None:
        f.write(struct.pack("<Q", len(head)))
        f.write(head)
        for tensor in tensors.values():
            flat = tensor.detach().to("cpu").contiguous()
            size = flat.numel() * flat.element_size()
            if size:
                f.write((ctypes.c_char * size).from_address(flat.data_ptr()))

    _replace(path, fill)


def literal(tensor: torch.Tensor) -> list[Any]:
    """A small tensor's values as the format's `data` list."""
    values = tensor.detach().to("cpu")
    if values.dtype.is_floating_point:
        values = values.to(torch.float64)
    return [number(v) for v in values.reshape(-1).tolist()]


def number(value: Any) -> Any:
    """A JSON number, or a text for a number that JSON lacks: "inf", "-inf", "nan"."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "nan" if value != value else ("inf" if value > 0 else "-inf")
    return value
