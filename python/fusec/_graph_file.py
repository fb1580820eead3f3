"""The file of an imported graph: unique names, one node a line; weights in safetensors beside it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Hashable, Mapping
from typing import Any, BinaryIO, NamedTuple

from ._replace_file import replace_file

SAFETENSORS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float4_e2m1fn": "F4",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "int4": "U8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "uint4": "U8",
    "bool": "BOOL",
}

SMALL = 64  # elements: a lifted constant up to here is written into the graph itself

Row = dict[str, Any]


class Stored(NamedTuple):
    """A tensor as a weight file has it. ``key``: the same for tensors that share their memory, which is stored once."""

    dtype: str
    shape: tuple[int, ...]
    size: int  # bytes
    key: Hashable
    write: Callable[[BinaryIO], object]


class GraphFile:
    """Collects a graph and writes it. A front end says, in :meth:`stored`, how its tensors lie in memory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.symbols: dict[str, dict[str, int]] = {}
        self.inputs: list[Row] = []
        self.constants: list[Row] = []
        self.nodes: list[Row] = []
        self.outputs: list[str] = []
        self.aliases: dict[str, str] = {}
        self.tensors: dict[str, Any] = {}  # constant name -> tensor that belongs in the weight file
        self.taken: set[str] = set()

    def stored(self, name: str, tensor: Any) -> Stored:
        raise NotImplementedError

    def metadata(self) -> Row:
        raise NotImplementedError

    def unique(self, wanted: str, results: int = 1) -> str:
        """A name that no value has yet; with several results its numbered names are free as well."""
        name, count = wanted, 1
        while name in self.taken or (results > 1 and any(f"{name}.{i}" in self.taken for i in range(results))):
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        if results > 1:
            self.taken.update(f"{name}.{i}" for i in range(results))
        return name

    def write(self, path: str, weights: str = "file") -> None:
        """Writes `path` and, where there are weights and weights == "file", `path` with .safetensors beside it."""
        weight_path = os.path.splitext(path)[0] + ".safetensors"
        tensors: dict[str, Stored] = {}  # name in the weight file -> tensor; tied parameters are stored once
        same: dict[Hashable, str] = {}
        places: dict[str, Row] = {}
        for constant in self.constants if weights == "file" else []:
            name = constant["name"]
            if name in self.tensors:
                stored = self.stored(name, self.tensors[name])
                tensor_name = same.setdefault(stored.key, name) if stored.size else name
                tensors.setdefault(tensor_name, stored)
                places[name] = {"file": os.path.basename(weight_path), "tensor": tensor_name}
        if tensors:
            write_stored(weight_path, tensors)
        replace_file(path, lambda f: f.write(self.text(places).encode("utf-8")))

    def text(self, places: Mapping[str, Row] | None = None) -> str:
        """The file's text. `places`: of constants that a weight file has, where; the others are given at run time."""
        places = places or {}
        constants = [{**c, "safetensors": places[c["name"]]} if c["name"] in places else c for c in self.constants]
        top: Row = {"fusec": 1, "name": self.name, "metadata": self.metadata()}
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


def write_stored(path: str, tensors: Mapping[str, Stored]) -> None:
    """The safetensors format, written tensor by tensor, so that one copy of one tensor is the most memory it takes."""
    header: Row = {}
    offset = 0
    for name, tensor in tensors.items():
        shape = list(tensor.shape)
        if tensor.dtype in ("int4", "uint4"):
            shape[-1] //= 2
        header[name] = {
            "dtype": SAFETENSORS[tensor.dtype],
            "shape": shape,
            "data_offsets": [offset, offset + tensor.size],
        }
        offset += tensor.size
    head = json.dumps(header, separators=(",", ":")).encode("utf-8")
    head += b" " * (-len(head) % 8)

    def fill(f: BinaryIO) -> None:
        f.write(struct.pack("<Q", len(head)))
        f.write(head)
        for tensor in tensors.values():
            tensor.write(f)

    replace_file(path, fill)


def number(value: Any) -> Any:
    """A JSON number, or the text that stands for one JSON does not have."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "nan" if value != value else ("inf" if value > 0 else "-inf")
    return value
