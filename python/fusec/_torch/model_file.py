"""The graph as the file has it: unique names, typed values, one node a line; weights in safetensors beside it."""

import ctypes
import json
import os
import struct
from typing import NamedTuple

import torch

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

SMALL = 64  # elements: a lifted constant up to here is written into the graph itself


class Value(NamedTuple):
    """A tensor of the graph: its name in the file, torch dtype, and sizes (int or SymInt)."""

    name: str
    dtype: torch.dtype
    shape: tuple


class Plain(NamedTuple):
    """A leaf of the module's result that is no tensor: a number, None, ..."""

    value: object


class Size(NamedTuple):
    """A leaf of the module's result that is a size of an input."""

    input: str
    dim: int


class ModelFile:
    """Collects a graph and writes it."""

    def __init__(self, name):
        self.name = name
        self.symbols = {}
        self.inputs, self.constants, self.nodes, self.outputs = [], [], [], []
        self.aliases = {}
        self.tensors = {}  # constant name -> torch tensor that belongs in the weight file
        self.taken = set()
        self.renamed = {}  # name of an input or a constant -> PyTorch's name for it, where they differ
        self.integers = {}  # name of an input of shape [n, 0] -> the place of the integer n among the arguments
        self.leaves = {}  # name of an input -> the place of its tensor among the arguments
        self.state = {}  # name of an input -> PyTorch's name of the buffer that it is, which the model writes
        self.returned = []  # of each leaf that the module returns: its place in `outputs`, or Plain

    def unique(self, wanted, results=1):
        """A name that no value has yet; with several results its numbered names are free as well."""
        name, count = wanted, 1
        while name in self.taken or (results > 1 and any(f"{name}.{i}" in self.taken for i in range(results))):
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        if results > 1:
            self.taken.update(f"{name}.{i}" for i in range(results))
        return name

    def unique_for(self, name):
        """A name for the argument, buffer or parameter that PyTorch calls `name`."""
        given = self.unique(name)
        if given != name:
            self.renamed[given] = name
        return given

    def rename(self, old, new):
        """Gives the single result of a node a better name (an output's)."""
        for node in self.nodes:
            if node["name"] == old:
                node["name"] = new
                for output in node.get("outputs", []):
                    output["name"] = new
            node["inputs"] = [new if x == old else x for x in node["inputs"]]
        self.outputs = [new if x == old else x for x in self.outputs]
        self.aliases = {new if out == old else out: source for out, source in self.aliases.items()}

    def drop_unused(self):
        """Constants that no node reads (batch counters, a head that is not called) stay out of the file."""
        used = {x for node in self.nodes for x in node["inputs"] if isinstance(x, str)} | set(self.outputs)
        self.constants = [c for c in self.constants if c["name"] in used]
        self.tensors = {name: t for name, t in self.tensors.items() if name in used}
        used |= {row["name"] for row in self.inputs}
        self.renamed = {name: given for name, given in self.renamed.items() if name in used}

    def write(self, path, weights="file"):
        """Writes `path` and, where there are weights and weights == "file", `path` with .safetensors beside it."""
        weight_path = os.path.splitext(path)[0] + ".safetensors"
        stored = {}  # name in the weight file -> tensor; parameters tied to one another are stored once
        same, places = {}, {}
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

    def text(self, places=None):
        """The file's text. `places`: of constants that a weight file has, where; the others are given at run time."""
        constants = [{**c, "safetensors": places[c["name"]]} if places and c["name"] in places else c
                     for c in self.constants]
        metadata = {"about": f"imported from PyTorch {torch.__version__}"}
        if self.renamed:
            metadata["pytorch_names"] = self.renamed
        if self.integers:
            metadata["integer_arguments"] = self.integers
        top = {"fusec": 1, "name": self.name, "metadata": metadata}
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


def _line(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _replace(path, fill):
    """Writes to a temporary file first: a failed run leaves no half-written model."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as f:
            fill(f)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def write_safetensors(path, tensors):
    """The safetensors format, written tensor by tensor, so that one copy of one tensor is the most memory it takes."""
    header, offset = {}, 0
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

    def fill(f):
        f.write(struct.pack("<Q", len(head)))
        f.write(head)
        for tensor in tensors.values():
            flat = tensor.detach().to("cpu").contiguous()
            size = flat.numel() * flat.element_size()
            if size:
                f.write((ctypes.c_char * size).from_address(flat.data_ptr()))

    _replace(path, fill)


def literal(tensor):
    """A small tensor's values as the format's `data` list."""
    values = tensor.detach().to("cpu")
    if values.dtype.is_floating_point:
        values = values.to(torch.float64)
    return [number(v) for v in values.reshape(-1).tolist()]


def number(value):
    """A JSON number, or the text that stands for one JSON does not have."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "nan" if value != value else ("inf" if value > 0 else "-inf")
    return value
