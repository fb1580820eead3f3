"""The format's structural rules on a written file: what can be said without type inference (fusec says the rest).

Operand counts and attribute names are not repeated here: `export_torch.py --check` asks fusec itself where it is built.
"""

import json
import os
import re
import struct

from .model_file import DTYPES, SAFETENSORS

KEYS = {
    "": ({"fusec", "inputs", "nodes", "outputs"}, {"name", "symbols", "constants", "aliases", "metadata"}),
    "inputs": ({"name", "dtype", "shape"}, set()),
    "constants": ({"name", "dtype", "shape"}, {"data", "safetensors"}),
    "nodes": ({"name", "op", "inputs"}, {"outputs", "attrs", "pattern", "fuse"}),
}
DIMENSION = re.compile(r"[\w\s+\-*/%(),]+\Z")


def check(path):
    """A list of `/json/pointer: message`; empty when the file keeps the rules."""
    with open(path, encoding="utf-8") as f:
        graph = json.load(f)
    errors = []

    def say(pointer, message):
        errors.append(f"{pointer}: {message}")

    def keys(row, pointer, kind):
        required, optional = KEYS[kind]
        for key in required - set(row):
            say(pointer, f"the key {key} is missing")
        for key in set(row) - required - optional:
            say(f"{pointer}/{key}", "unknown key")
        return required <= set(row)

    def dimension(value, pointer):
        if isinstance(value, str):
            unknown = [s for s in re.findall(r"[A-Za-z_]\w*", value) if s not in symbols and s not in ("min", "max")]
            if unknown or not DIMENSION.match(value):
                say(pointer, f"{value!r} has an undeclared symbol or is no expression")
        elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
            say(pointer, f"the dimension is {value!r}")

    def tensor_type(row, pointer):
        if row["dtype"] not in DTYPES.values():
            say(pointer + "/dtype", f"unknown dtype {row['dtype']!r}")
        for i, size in enumerate(row["shape"]):
            dimension(size, f"{pointer}/shape/{i}")

    if not keys(graph, "", ""):
        return errors
    symbols, defined = graph.get("symbols", {}), {}
    for name, bounds in symbols.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or bounds.get("min", 1) > bounds.get("max", 2**31 - 1):
            say(f"/symbols/{name}", "no identifier, or bounds that leave no value")

    def define(name, pointer):
        if name in defined:
            say(pointer, f"{name!r} is already defined at {defined[name]}")
        defined[name] = pointer

    for kind in ("inputs", "constants"):
        for i, row in enumerate(graph.get(kind, [])):
            pointer = f"/{kind}/{i}"
            if not keys(row, pointer, kind):
                continue
            define(row["name"], pointer)
            tensor_type(row, pointer)
            if "data" in row and len(row["data"]) != _elements(row["shape"]):
                say(pointer + "/data", f"{len(row['data'])} elements for the shape {row['shape']}")
            if "safetensors" in row:
                _weights(path, row, pointer, say)
    for i, node in enumerate(graph["nodes"]):
        pointer = f"/nodes/{i}"
        if not keys(node, pointer, "nodes"):
            continue
        for name in results(node):
            define(name, pointer)
        for j, output in enumerate(node.get("outputs", [])):
            if isinstance(output, dict) and "shape" in output:
                tensor_type(output, f"{pointer}/outputs/{j}")
        for key in ("shape", "split_sizes", "size"):
            for j, size in enumerate(node.get("attrs", {}).get(key, [])):
                if size != -1:
                    dimension(size, f"{pointer}/attrs/{key}/{j}")
    for i, node in enumerate(graph["nodes"]):  # the exporter writes nodes in an order of execution
        for j, operand in enumerate(node["inputs"]):
            pointer = f"/nodes/{i}/inputs/{j}"
            if isinstance(operand, dict):
                dimension(operand.get("dim"), pointer)
            elif isinstance(operand, str) and operand not in defined:
                say(pointer, f"{operand!r} is not defined")
            elif isinstance(operand, str) and _position(defined[operand]) >= i:
                say(pointer, f"{operand!r} is used before it is made")
    if not graph["outputs"]:
        say("/outputs", "there is none")
    for i, name in enumerate(graph["outputs"]):
        if name not in defined:
            say(f"/outputs/{i}", f"{name!r} is not defined")
    inputs = {row["name"] for row in graph["inputs"]}
    for output, source in graph.get("aliases", {}).items():
        if output not in graph["outputs"] or source not in inputs:
            say(f"/aliases/{output}", "not from an output to an input")
    return errors


def results(node):
    """The names of a node's values."""
    if "outputs" in node:
        return [o["name"] if isinstance(o, dict) else o for o in node["outputs"]]
    attributes = node.get("attrs", {})
    count = {
        "split": len(attributes.get("split_sizes", [])),
        "chunk": attributes.get("chunks", 0),
        "topk": 2,
        "sort": 2,
    }
    if node["op"] in count:
        return [f"{node['name']}.{i}" for i in range(count[node["op"]])]
    return [node["name"]]


def _position(pointer):
    return int(pointer.split("/")[2]) if pointer.startswith("/nodes/") else -1


def _elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def _weights(path, row, pointer, say):
    file = os.path.join(os.path.dirname(os.path.abspath(path)), row["safetensors"]["file"])
    if not os.path.isfile(file):
        say(pointer + "/safetensors/file", f"{file} is missing")
        return
    with open(file, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        entry = json.loads(f.read(length)).get(row["safetensors"]["tensor"])
    if entry is None or entry["dtype"] != SAFETENSORS[row["dtype"]] or entry["shape"] != row["shape"]:
        say(pointer + "/safetensors/tensor", f"the file has {entry}, the graph {row['dtype']} {row['shape']}")
