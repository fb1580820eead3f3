"""Arithmetic of complex tensors, on their real and imaginary parts: sums, products, quotients.

An operand is a Pair, a real tensor (a Value), or a real or complex number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .complex_pairs import Pair, Result
from .errors import Refused
from .model_file import Value

if TYPE_CHECKING:
    from torch.types import Number

    from .convert import Arguments, Converter

PRODUCTS = {"mul": "mul", "mm": "matmul", "bmm": "matmul", "matmul": "matmul"}  # ATen's name -> the format's
SUMS = {"add": "add", "sub": "sub", "rsub": "sub"}


def arithmetic(c: Converter, part: torch.fx.Node, a: Arguments) -> Result:
    """Writes one operator. part: its node, with real dtypes."""
    name = str(part.target).split(".")[1]
    writer = Arithmetic(c, part)
    if name == "reciprocal":
        return writer.quotient(1.0, a["self"])
    if name == "abs":
        return writer.emit("sqrt", writer.emit("add", *(writer.emit("mul", x, x) for x in a["self"])))
    if name in PRODUCTS or name in SUMS or name == "div":
        a = {k: writer.floating(v) for k, v in a.items()}
    if name in PRODUCTS:
        return writer.product(a["self"], a["mat2" if "mat2" in a else "other"], PRODUCTS[name])
    if name == "div" and a.get("rounding_mode") is None:
        return writer.quotient(a["self"], a["other"])
    if name in SUMS and a.get("alpha", 1) == 1:
        x, y = (a["other"], a["self"]) if name == "rsub" else (a["self"], a["other"])
        return Pair(*(writer.sum_of(SUMS[name], u, v) for u, v in zip(_parts(x), _parts(y))))
    raise Refused("no such operator on complex tensors")


class Arithmetic:
    """Writes the nodes of one operator."""

    def __init__(self, c: Converter, part: torch.fx.Node) -> None:
        self.c, self.part = c, part

    def emit(self, op: str, *operands: Any, **attributes: Any) -> Value:
        return self.c.emit(self.part, op, list(operands), attributes)

    def floating(self, x: Any) -> Any:
        """The parts of an integer tensor are floating-point."""
        is_integer = isinstance(x, Value) and not x.dtype.is_floating_point
        return self.c.cast(x, self.part.meta["val"].dtype, self.part) if is_integer else x

    def sum_of(self, op: str, x: Number | Value, y: Number | Value) -> Value:
        """A zero is the imaginary part of a real operand, which may have a greater shape than the other."""
        value = self.part.meta["val"]
        if isinstance(x, Value) and isinstance(y, Value):
            return self.emit(op, x, y)
        if not isinstance(x, Value) and not isinstance(y, Value):
            return self.c.full(value.shape, x + y if op == "add" else x - y, value.dtype, self.part)
        shape = list(value.shape)
        x, y = (self.emit("expand", v, shape=shape) if isinstance(v, Value) else v for v in (x, y))
        return self.emit(op, x, y)

    def product(self, x: Any, y: Any, op: str = "mul") -> Pair:
        (a_real, a_imag), (b_real, b_imag) = _parts(x), _parts(y)
        if not isinstance(x, (Pair, complex)):
            return Pair(self.emit(op, a_real, b_real), self.emit(op, a_real, b_imag))
        if not isinstance(y, (Pair, complex)):
            return Pair(self.emit(op, a_real, b_real), self.emit(op, a_imag, b_real))
        real = self.emit("sub", self.emit(op, a_real, b_real), self.emit(op, a_imag, b_imag))
        return Pair(real, self.emit("add", self.emit(op, a_real, b_imag), self.emit(op, a_imag, b_real)))

    def quotient(self, x: Any, y: Any) -> Pair:
        """x / y = x conj(y / m) / (|y / m|^2 m) with m the greater part of y, so that squares stay finite."""
        if isinstance(y, complex):
            return self.product(x, 1 / y)
        if not isinstance(y, Pair):
            return Pair(*(self.emit("div", v, y) for v in x))

        def of_y(op: str, *operands: Value) -> Value:
            return self.c.emit(self.part, op, operands, like=y.real)

        greater = of_y("maximum", *(of_y("abs", v) for v in y))
        real, imag = (of_y("div", v, greater) for v in y)
        scale = of_y("mul", of_y("add", of_y("mul", real, real), of_y("mul", imag, imag)), greater)
        return Pair(*(self.emit("div", v, scale) for v in self.product(x, Pair(real, of_y("neg", imag)))))


def _parts(x: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of a Pair, a number or a real tensor."""
    return (x.real, x.imag) if isinstance(x, (Pair, complex)) else (x, 0.0)
