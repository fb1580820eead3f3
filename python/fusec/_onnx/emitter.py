"""Nodes of the format, as handlers make them. The library infers their types; names are given when all are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from .. import _core
from .._graph_file import SMALL, number
from .._tensors import numpy_dtype
from ..errors import InputError
from .errors import Refused
from .file import OnnxFile
from .sizes import Dim, Size, Sizes, texts
from .values import KINDS, PACKED, SMALL_FLOATS, Array, Value, is_float, known, wide_array

Operand = Union[Value, Size, int, float, bool, None]


class Node:
    """A node of the format whose name is still to be given."""

    def __init__(self, op: str, operands: list[Operand], attributes: dict[str, Any], results: list[Value]) -> None:
        self.op = op
        self.operands = operands
        self.attributes = attributes
        self.results = results
        self.several = False
        self.is_custom = False
        self.scope = ""  # the name of the ONNX node it comes from


class Emitter:
    """Collects nodes; a method for each thing that handlers make over and over."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.nodes: list[Node] = []
        self.scope = ""
        self._inferred: dict[str, list[tuple[str, list[int | str]]]] = {}
        self._producers: dict[Value, Node] = {}
        self.named: dict[Value, str] = {}  # once the file is written

    # --- nodes

    def op(self, op: str, *operands: Operand, kind: int | None = None, **attributes: Any) -> Value:
        """A node with one result. ``kind``: its ONNX type, where the dtype does not say it."""
        return self._add(op, list(operands), attributes, 0, kind)[0]

    def op_several(self, op: str, count: int, *operands: Operand, **attributes: Any) -> list[Value]:
        """A node with several results (split, topk)."""
        return self._add(op, list(operands), attributes, count, None)

    def _add(
        self, op: str, operands: list[Operand], attributes: dict[str, Any], count: int, kind: int | None
    ) -> list[Value]:
        while operands and operands[-1] is None:
            operands.pop()
        operands = [self.lifted(x) if isinstance(x, Value) and x.is_symbolic else x for x in operands]
        attributes = {k: _attribute(v) for k, v in attributes.items() if v is not None}
        types = self._infer(op, operands, attributes, count)
        results = [
            Value(dtype, tuple(self.sizes.parsed(d) for d in shape), kind=KINDS.get(dtype) if kind is None else kind)
            for dtype, shape in types
        ]
        node = Node(op, operands, attributes, results)
        node.several = count > 0
        return self._append(node).results

    def custom(self, op: str, operands: list[Operand], attributes: dict[str, Any], results: list[Value]) -> list[Value]:
        """A custom op, whose results' types are declared."""
        node = Node(op, operands, attributes, results)
        node.several, node.is_custom = len(results) > 1, True
        return self._append(node).results

    def _append(self, node: Node) -> Node:
        node.scope = self.scope
        self.nodes.append(node)
        self._producers.update((result, node) for result in node.results)
        return node

    def _infer(
        self, op: str, operands: list[Operand], attributes: dict[str, Any], count: int
    ) -> list[tuple[str, list[int | str]]]:
        model: dict[str, Any] = self.sizes.declarations()
        names: list[Any] = []
        for i, operand in enumerate(operands):
            if isinstance(operand, Value):
                names.append(f"x{i}")
                model["inputs"].append({"name": f"x{i}", "dtype": operand.dtype, "shape": texts(operand.shape)})
            else:
                names.append(_scalar(operand))
        outputs = [f"o.{i}" for i in range(count)] if count else ["o"]
        node = {"name": "o", "op": op, "inputs": names, "attrs": attributes}
        text = json.dumps({**model, "nodes": [node], "outputs": outputs})
        if text not in self._inferred:
            try:
                made = _core.Model.parse(text).outputs
            except InputError as error:
                raise Refused(_reason(op, error)) from None
            self._inferred[text] = [(o.dtype, list(o.shape)) for o in made]
        return self._inferred[text]

    # --- what handlers need over and over

    def cast(self, value: Value, dtype: str) -> Value:
        """To a dtype of the format; the ONNX type is the one of that name."""
        if value.dtype == dtype and value.kind == KINDS.get(dtype):
            return value
        if value.is_known and not value.is_weight and not value.is_symbolic:
            return known(value.elements.astype(numpy_dtype(dtype)), kind=KINDS.get(dtype))
        if value.dtype == dtype:
            return self.op("identity", value)
        return self.op("cast", value, dtype=dtype)

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        if self.sizes.same(value.shape, shape):
            return value
        if value.is_known and not value.is_weight and all(isinstance(d, int) for d in shape):
            array = value.elements.reshape(tuple(int(str(d)) for d in shape))
            return known(array, kind=value.kind)
        return self.op("reshape", value, kind=value.kind, shape=texts(shape))

    def expand(self, value: Value, shape: Sequence[Dim]) -> Value:
        if self.sizes.same(value.shape, shape):
            return value
        return self.op("expand", value, kind=value.kind, shape=texts(shape))

    def permute(self, value: Value, dims: Sequence[int]) -> Value:
        if list(dims) == list(range(value.rank)):
            return value
        return self.op("permute", value, kind=value.kind, dims=list(dims))

    def slice(self, value: Value, dim: int, start: Dim, end: Dim, step: int = 1) -> Value:
        if step == 1 and start == 0 and end == value.shape[dim]:
            return value
        return self.op("slice", value, kind=value.kind, dim=dim, start=start, end=end, step=None if step == 1 else step)

    def concat(self, values: Sequence[Value], dim: int) -> Value:
        return values[0] if len(values) == 1 else self.op("concat", *values, kind=values[0].kind, dim=dim)

    def full(self, shape: Sequence[Dim], value: float | int | bool, dtype: str) -> Value:
        return self.op("full", shape=texts(shape), value=number(value), dtype=dtype)

    def scalar(self, value: float | int | bool, dtype: str) -> Value:
        """A 0-d constant, which promotes nothing of its own category."""
        return known(np.array(value).astype(numpy_dtype(dtype)), kind=KINDS[dtype])

    def arange(self, count: Dim, dtype: str = "int64") -> Value:
        return self.op("arange", end=count, dtype=dtype)

    def iota(self, shape: Sequence[Dim], dim: int, dtype: str = "int64") -> Value:
        """The position along `dim`, with the rank of the shape; the other dimensions are 1."""
        return self.reshape(self.arange(shape[dim], dtype), [d if i == dim else 1 for i, d in enumerate(shape)])

    def select_positions(self, value: Value, dim: int, positions: Array | Sequence[int]) -> Value:
        """Known positions of a dimension, as the plainest node that gives them."""
        at = [int(p) for p in np.asarray(positions).reshape(-1)]
        steps = {b - a for a, b in zip(at, at[1:])}
        if at and len(steps) <= 1 and (not steps or min(steps) > 0):
            step = steps.pop() if steps else 1
            return self.slice(value, dim, at[0], at[-1] + 1, step)
        if at and len(steps) == 1 and at[-1] == 0 and steps == {-1} and at[0] + 1 == value.shape[dim]:
            return self.op("flip", value, kind=value.kind, dims=[dim])
        return self.op("index_select", value, known(np.array(at, np.int64)), kind=value.kind, dim=dim)

    def float_of(self, value: Value) -> Value:
        """Casts 8-bit and 4-bit floats and integers to float32; other floats stay."""
        return self.cast(value, "float32") if value.dtype in SMALL_FLOATS or not is_float(value.dtype) else value

    def where(self, condition: Value, a: Operand, b: Operand) -> Value:
        return self.op("where", condition, a, b)

    def lifted(self, value: Value) -> Value:
        """Known elements as a value that nodes compute, where some are sizes."""
        if not value.is_symbolic:
            return value
        one = self.full([1], 1, "int64")
        pieces = [
            self.op("mul", one, x) if isinstance(x, Size) else known(np.array([x], np.int64))
            for x in value.elements.reshape(-1).tolist()
        ]
        return self.cast(self.reshape(self.concat(pieces, 0), value.shape), value.dtype)

    # --- the file

    def name(self, item: Value, wanted: str) -> None:
        """The name that a result of the ONNX graph has."""
        if not item.wanted:
            item.wanted = wanted

    def write(
        self, file: OnnxFile, inputs: Sequence[Value], outputs: Sequence[Value], output_names: Sequence[str]
    ) -> None:
        """Writes what the outputs need. Each output has its ONNX name, through an `identity` where it must."""
        outputs = [self.lifted(value) for value in outputs]
        named = self.named = {value: file.unique(value.wanted) for value in inputs}
        reserved = [file.unique(name) for name in output_names]
        for name, value in zip(reserved, outputs):
            if value in self._producers and value not in named and not self._producers[value].several:
                named[value] = name
        finals = [
            value if named.get(value) == name else self._append(_identity(value)).results[0]
            for name, value in zip(reserved, outputs)
        ]
        named.update(zip(finals, reserved))
        live = self._live(finals)
        for node in self.nodes:
            if node in live:
                for operand in node.operands:
                    if isinstance(operand, Value) and operand not in named:
                        named[operand] = self._constant(file, operand)
                file.nodes.append(_row(file, node, named))
        file.outputs = [named[value] for value in finals]

    def sources(self, value: Value) -> set[Value]:
        """The inputs that a value is computed from."""
        seen: set[Value] = set()
        work = [value]
        while work:
            at = work.pop()
            if at not in seen:
                seen.add(at)
                node = self._producers.get(at)
                work += [x for x in node.operands if isinstance(x, Value)] if node else []
        return {x for x in seen if x not in self._producers and not x.is_known}

    def _live(self, outputs: Sequence[Value]) -> set[Node]:
        live: set[Node] = set()
        work = [self._producers[value] for value in outputs if value in self._producers]
        while work:
            node = work.pop()
            if node not in live:
                live.add(node)
                for operand in node.operands:
                    if isinstance(operand, Value) and operand in self._producers:
                        work.append(self._producers[operand])
        return live

    def _constant(self, file: OnnxFile, value: Value) -> str:
        """Small known elements stand in the graph, weights in the weight file."""
        name = file.unique(value.wanted or "constant")
        row = {"name": name, "dtype": value.dtype, "shape": texts(value.shape)}
        if value.count <= (1 if value.is_weight else SMALL) and value.dtype not in PACKED.values():
            row["data"] = _literal(wide_array(value.elements, value.kind))
        else:
            array = value.elements
            file.tensors[name] = array if value.dtype in PACKED.values() else wide_array(array, value.kind)
            file.dtypes[name] = value.dtype
            file.shapes[name] = tuple(d for d in value.shape if isinstance(d, int))
        file.constants.append(row)
        return name


def _identity(value: Value) -> Node:
    return Node("identity", [value], {}, [Value(value.dtype, value.shape, kind=value.kind)])


def _row(file: OnnxFile, node: Node, named: dict[Value, str]) -> dict[str, Any]:
    first = node.results[0]
    if node.several:
        name = file.unique(node.scope or node.op, max(len(node.results), 2))
        for i, result in enumerate(node.results):
            named[result] = f"{name}.{i}"
    else:
        name = named[first] if first in named else file.unique(first.wanted or f"{node.scope}.{node.op}".lstrip("."))
        named[first] = name
    row: dict[str, Any] = {"name": name, "op": node.op}
    row["inputs"] = [named[x] if isinstance(x, Value) else _scalar(x) for x in node.operands]
    if node.attributes:
        row["attrs"] = node.attributes
    if node.is_custom or file.declares_types:
        row["outputs"] = [{"name": named[r], "dtype": r.dtype, "shape": texts(r.shape)} for r in node.results]
    return row


def _scalar(value: Operand) -> Any:
    return {"dim": value.text} if isinstance(value, Size) else value


def _attribute(value: Any) -> Any:
    if isinstance(value, Size):
        return value.text
    if isinstance(value, (list, tuple)):
        return [_attribute(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return number(value)


def _literal(array: Array) -> list[Any]:
    flat = array.reshape(-1)
    if flat.dtype.kind not in "biuf":
        flat = flat.astype(np.float32)  # of ml_dtypes
    return [number(x) for x in flat.tolist()]


def _reason(op: str, error: InputError) -> str:
    if not error.what:
        return f"{op}: {error}"
    text = f"{op}: {error.what}"
    return (
        text
        + (f": found {error.found}" if error.found else "")
        + (f", expected {error.expected}" if error.expected else "")
    )
