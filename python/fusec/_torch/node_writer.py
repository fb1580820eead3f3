"""Writes nodes into a ModelFile: names, operands, attributes and types. The importer's handlers call it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy
import torch

from .dimensions import Dimensions
from .errors import Refused
from .model_file import DTYPES, Json, ModelFile, Value, number

if TYPE_CHECKING:
    from torch.types import IntLikeType


class NodeWriter:
    """Writes the nodes of one `file`. types: write the types of all results, not only where they are needed."""

    def __init__(self, name: str, types: bool) -> None:
        self.file, self.dims = ModelFile(name), Dimensions()
        self.types = types
        self.notes: list[str] = []
        self.single: set[str] = set()  # names of nodes that are the names of their only result

    def note(self, text: str) -> None:
        """Adds a note, which is printed once when the conversion succeeds."""
        if text not in self.notes:
            self.notes.append(text)

    def emit(
        self,
        node: torch.fx.Node,
        op: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any] | None = None,
        like: torch.Tensor | Value | None = None,
    ) -> Value:
        """Writes one node. Its result has the dtype and shape of `like`, by default of the ATen node's result."""
        return self._append(
            op, operands, attributes or {}, self._name(node, op), node.meta["val"] if like is None else like
        )

    def emit_several(
        self,
        node: torch.fx.Node,
        op: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        results: Sequence[Any] | None = None,
        declare: bool = False,
        pattern: str | None = None,
    ) -> list[Value]:
        """Writes one node with several results, by default the ATen node's. declare: write their types in any case."""
        results = node.meta["val"] if results is None else results
        name = self.file.unique(self._name(node, op), max(len(results), 2))
        row: Json = {"name": name, "op": op, "inputs": self._operands(operands)}
        if attributes:
            row["attrs"] = {k: self._attribute(v) for k, v in attributes.items()}
        if pattern:
            row["pattern"] = pattern
        values = [Value(f"{name}.{i}", r.dtype, tuple(r.shape)) for i, r in enumerate(results)]
        if declare or self.types:
            row["outputs"] = [{"name": v.name, **self._type(v)} for v in values]
        self.file.nodes.append(row)
        return values

    def emit_declared(
        self, node: torch.fx.Node, op: str, operands: Sequence[Any], attributes: Mapping[str, Any], like: torch.Tensor
    ) -> Value:
        """Writes one node and, in any case, its result's type."""
        return self._append(op, operands, attributes, self._name(node, op), like, declare=True)

    def _append(
        self,
        op: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        wanted: str,
        like: torch.Tensor | Value,
        declare: bool = False,
    ) -> Value:
        declared = self._type(like)
        row: Json = {"name": self.file.unique(wanted), "op": op, "inputs": self._operands(operands)}
        if attributes:
            row["attrs"] = {k: self._attribute(v) for k, v in attributes.items()}
        if declare or self.types:
            row["outputs"] = [{"name": row["name"], **declared}]
        self.file.nodes.append(row)
        self.single.add(row["name"])
        return Value(row["name"], like.dtype, tuple(like.shape))

    def cast(self, value: Value, dtype: torch.dtype, node: torch.fx.Node) -> Value:
        """The value in `dtype`."""
        if value.dtype == dtype:
            return value
        return self.emit(node, "cast", [value], {"dtype": dtype}, like=value._replace(dtype=dtype))

    def full(
        self, shape: Iterable[IntLikeType], value: float, dtype: torch.dtype, node: torch.fx.Node
    ) -> Value:
        """A tensor of one number."""
        like = Value("", dtype, tuple(shape))
        return self.emit(node, "full", [], {"shape": list(like.shape), "value": value, "dtype": dtype}, like=like)

    def _operands(self, operands: Sequence[Any]) -> list[Any]:
        floats = [v.dtype for v in operands if isinstance(v, Value) and v.dtype.is_floating_point]
        return [self._operand(v, floats[0] if floats else torch.float32) for v in operands]

    def _operand(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, Value):
            return value.name
        if isinstance(value, sympy.Basic):
            return {"dim": str(self.dims.text(value))}
        if isinstance(value, float) and not math.isfinite(value):  # JSON has no infinity: a 0-d constant
            name = self.file.unique({"inf": "infinity", "-inf": "minus_infinity"}.get(number(value), "not_a_number"))
            self.file.constants.append({"name": name, "dtype": DTYPES[dtype], "shape": [], "data": [number(value)]})
            return name
        return value

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return self._dtype(value)
        if isinstance(value, Value):  # which is a tuple
            raise Refused(f'an attribute that is computed at run time (from "{value.name}")')
        if isinstance(value, (list, tuple)):
            return [self._attribute(v) for v in value]
        if isinstance(value, torch.SymInt) or isinstance(value, sympy.Basic):
            return self.dims.text(value)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        return number(float(value))

    def _type(self, tensor: torch.Tensor | Value) -> Json:
        return {"dtype": self._dtype(tensor.dtype), "shape": self.dims.shape(tensor.shape)}

    @staticmethod
    def _dtype(dtype: torch.dtype) -> str:
        if dtype not in DTYPES:
            raise Refused(f"the format has no {str(dtype).removeprefix('torch.')}")
        return DTYPES[dtype]

    @staticmethod
    def _name(node: torch.fx.Node, op: str) -> str:
        """A name for the node, from the submodule that computes it and the operator: `layers.0.mlp.gate.linear`."""
        stack = list(node.meta.get("nn_module_stack", {}).values())
        path = re.sub(r"@\d+", "", str(stack[-1][0])) if stack else ""
        path = re.sub(r"^L\['self'\]\.?|^L__self___?", "", path)
        return f"{path}.{op}" if path else op
