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
    from torch.types import IntLikeType, Number

    from .convert import Arguments, Converter

PART = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}

MOVES = set(
    """view reshape _unsafe_view unsqueeze squeeze expand expand_as slice select permute transpose t flatten unflatten
clone detach alias contiguous cat stack split split_with_sizes chunk unbind index_select repeat roll flip
lift_fresh_copy broadcast_to view_as reshape_as neg""".split()
)

ARITHMETIC = {"add", "sub", "rsub", "mul", "div", "mm", "bmm", "matmul"}


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

    def sum_of(op: str, x: Number | Value, y: Number | Value) -> Value:
        """A zero is the imaginary part of a real operand, which may have a greater shape than the other."""
        value = part.meta["val"]
        if isinstance(x, Value) and isinstance(y, Value):
            return emit(op, x, y)
        if not isinstance(x, Value) and not isinstance(y, Value):
            return c.full(value.shape, x + y if op == "add" else x - y, value.dtype, part)
        x, y = (emit("expand", v, shape=list(value.shape)) if isinstance(v, Value) else v for v in (x, y))
        return emit(op, x, y)

    def product(x: Any, y: Any, op: str = "mul") -> Pair:
        (a_real, a_imag), (b_real, b_imag) = _parts(x), _parts(y)
        if not isinstance(x, (Pair, complex)):
            return Pair(emit(op, a_real, b_real), emit(op, a_real, b_imag))
        if not isinstance(y, (Pair, complex)):
            return Pair(emit(op, a_real, b_real), emit(op, a_imag, b_real))
        real = emit("sub", emit(op, a_real, b_real), emit(op, a_imag, b_imag))
        return Pair(real, emit("add", emit(op, a_real, b_imag), emit(op, a_imag, b_real)))

    def quotient(x: Any, y: Any) -> Pair:
        """x / y = x conj(y / m) / (|y / m|^2 m) with m the greater part of y, so that squares stay finite."""
        if isinstance(y, complex):
            return product(x, 1 / y)
        if not isinstance(y, Pair):
            return Pair(*(emit("div", v, y) for v in x))

        def of_y(op: str, *operands: Value) -> Value:
            return c.emit(part, op, operands, like=y.real)

        greater = of_y("maximum", *(of_y("abs", v) for v in y))
        real, imag = (of_y("div", v, greater) for v in y)
        scale = of_y("mul", of_y("add", of_y("mul", real, real), of_y("mul", imag, imag)), greater)
        return Pair(*(emit("div", v, scale) for v in product(x, Pair(real, of_y("neg", imag)))))

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
    if name in ARITHMETIC:  # the parts of an integer tensor are floating-point
        value = part.meta["val"]
        a = {k: c.cast(v, value.dtype, part) if _is_integer(v) else v for k, v in a.items()}
    if name in ("mul", "mm", "bmm", "matmul"):
        return product(a["self"], a["mat2" if "mat2" in a else "other"], "mul" if name == "mul" else "matmul")
    if name == "reciprocal" or (name == "div" and a.get("rounding_mode") is None):
        return quotient(1.0 if name == "reciprocal" else a["self"], a["self" if name == "reciprocal" else "other"])
    if name in ("add", "sub", "rsub") and a.get("alpha", 1) == 1:
        x, y = (a["other"], a["self"]) if name == "rsub" else (a["self"], a["other"])
        return Pair(*(sum_of("add" if name == "add" else "sub", u, v) for u, v in zip(_parts(x), _parts(y))))
    raise Refused("no such operator on complex tensors")


def _parts(x: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of a Pair, a number or a real tensor."""
    return (x.real, x.imag) if isinstance(x, (Pair, complex)) else (x, 0.0)


def _is_integer(x: Any) -> bool:
    return isinstance(x, Value) and not x.dtype.is_floating_point


def constant(name: str, tensor: torch.Tensor, add: Callable[[str, torch.Tensor], Value]) -> Pair:
    """Writes a complex weight as two real views of it. `add(name, tensor)` makes a constant and returns its Value."""
    return Pair(add(name + ".real", tensor.real), add(name + ".imag", tensor.imag))


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
