"""Writes operators on complex tensors as operators on their real and imaginary parts.

The format has no complex dtype, so that a complex value becomes a Pair of real ones. view_as_complex makes a Pair and
view_as_real stacks its parts. Operators that only move elements act on each part. Products and sums follow the rules of
complex arithmetic. This covers rotary embeddings written with view_as_complex and polar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import torch

from .errors import Refused
from .model_file import Value

if TYPE_CHECKING:
    from torch.types import IntLikeType

    from .convert import Arguments, Converter

PART = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}

MOVES = set(
    """view reshape _unsafe_view unsqueeze squeeze expand expand_as slice select permute transpose t flatten unflatten
clone detach alias contiguous cat stack split split_with_sizes chunk unbind index_select repeat roll flip
lift_fresh_copy broadcast_to view_as reshape_as neg""".split()
)


class Pair(NamedTuple):
    """The parts of a complex tensor."""

    real: Value
    imag: Value

    @property
    def shape(self) -> tuple[IntLikeType, ...]:
        return self.real.shape


# What one call of an operator becomes: a value, or one for each result and None for a result that is not written.
Result: TypeAlias = Value | Pair | Sequence[Value | Pair | None] | None


def is_complex(node: torch.fx.Node, arguments: Arguments) -> bool:
    """Whether a call takes or returns complex tensors."""
    results = node.meta.get("val")
    results = results if isinstance(results, (list, tuple)) else [results]
    given = [x for a in arguments.values() for x in (a if isinstance(a, list) else [a])]
    return any(isinstance(x, Pair) for x in given) or any(getattr(r, "dtype", None) in PART for r in results)


def call(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """Writes one operator that takes or returns complex tensors."""
    name = str(node.target).split(".")[1]
    if name in MOVES:
        return _of_both_parts(c, node, a)
    part = _part_of(node)
    if name in ("_to_copy", "to"):
        dtype, given = part.meta["val"].dtype, a["self"]
        if isinstance(given, Pair):
            whole_part = Pair(*(c.cast(x, dtype, part) for x in given))
            return whole_part if node.meta["val"].dtype in PART else whole_part.real
        return Pair(c.cast(given, dtype, part), c.full(given.shape, 0.0, dtype, part))

    def emit(op: str, *operands: Any, **attributes: Any) -> Value:
        return c.emit(part, op, list(operands), attributes)

    if name == "view_as_complex":
        return Pair(*(emit("select", a["self"], dim=-1, index=i) for i in (0, 1)))
    if name == "view_as_real":
        return c.emit(node, "stack", list(a["self"]), {"dim": -1})
    if name in ("real", "imag"):
        whole: Pair = a["self"]
        return whole.real if name == "real" else whole.imag
    if name in ("conj", "_conj", "conj_physical", "_conj_physical"):
        return Pair(a["self"].real, emit("neg", a["self"].imag))
    if name in ("resolve_conj", "resolve_neg"):
        unchanged: Pair = a["self"]
        return unchanged
    if name == "complex":
        return Pair(a["real"], a["imag"])
    if name == "polar":
        return Pair(emit("mul", a["abs"], emit("cos", a["angle"])), emit("mul", a["abs"], emit("sin", a["angle"])))
    if name == "abs":
        squares = [emit("mul", part_value, part_value) for part_value in a["self"]]
        return emit("sqrt", emit("add", *squares))
    if name in ("mul", "mm", "bmm", "matmul"):
        x, y = a["self"], a["mat2" if "mat2" in a else "other"]
        op = "mul" if name == "mul" else "matmul"
        if isinstance(x, complex) or isinstance(y, complex):
            raise Refused("a complex number")
        if not isinstance(x, Pair):
            return Pair(emit(op, x, y.real), emit(op, x, y.imag))
        if not isinstance(y, Pair):
            return Pair(emit(op, x.real, y), emit(op, x.imag, y))
        real = emit("sub", emit(op, x.real, y.real), emit(op, x.imag, y.imag))
        return Pair(real, emit("add", emit(op, x.real, y.imag), emit(op, x.imag, y.real)))
    if (
        name in ("add", "sub")
        and a.get("alpha", 1) == 1
        and isinstance(a["self"], Pair)
        and isinstance(a["other"], Pair)
    ):
        return Pair(emit(name, a["self"].real, a["other"].real), emit(name, a["self"].imag, a["other"].imag))
    raise Refused("no such operator on complex tensors")


def constant(name: str, tensor: torch.Tensor, add: Callable[[str, torch.Tensor], Value]) -> Pair:
    """Writes a complex weight as two real ones. `add(name, tensor)` makes a constant and returns its Value."""
    return Pair(add(name + ".real", tensor.real.contiguous()), add(name + ".imag", tensor.imag.contiguous()))


def _part_of(node: torch.fx.Node) -> torch.fx.Node:
    """The node with real dtypes in place of complex ones, in so far as handlers and Converter.emit look at a node."""

    def real(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [real(v) for v in value]
        return Value("", PART.get(value.dtype, value.dtype), tuple(value.shape))

    part = SimpleNamespace(
        target=node.target, name=node.name, users=node.users, meta={**node.meta, "val": real(node.meta["val"])}
    )
    return cast("torch.fx.Node", part)


def _of_both_parts(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """Writes an operator that only moves elements once for each part."""

    def pick(value: Any, index: int) -> Any:
        if isinstance(value, Pair):
            return value[index]
        return [pick(v, index) for v in value] if isinstance(value, list) else value

    part = _part_of(node)
    real: Any
    imag: Any
    real, imag = (c.mapped(part, {name: pick(value, i) for name, value in a.items()}) for i in (0, 1))
    return [Pair(r, i) for r, i in zip(real, imag)] if isinstance(real, list) else Pair(real, imag)
