"""Formulas of elements, written as Python expressions.

    def gated(x, gate):
        return x * fusec.function.sigmoid(1.702 * gate)

becomes the text ``($0 * sigmoid((1.702 * $1)))``, in the grammar of docs/graph_format.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Number = int | float


class Scalar:
    """An element of an operand, or what is computed from some."""

    __array_ufunc__ = None  # NumPy's scalars leave operators to this class

    def __init__(self, text: str) -> None:
        self.text = text

    def _with(self, operator: str, other: Scalar | Number, swapped: bool = False) -> Scalar:
        a, b = (_text(other), self.text) if swapped else (self.text, _text(other))
        return Scalar(f"({a} {operator} {b})")

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self._with("+", other)

    def __radd__(self, other: Number) -> Scalar:
        return self._with("+", other, True)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self._with("-", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self._with("-", other, True)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self._with("*", other)

    def __rmul__(self, other: Number) -> Scalar:
        return self._with("*", other, True)

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return self._with("/", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._with("/", other, True)

    def __mod__(self, other: Scalar | Number) -> Scalar:
        return self._with("%", other)

    def __pow__(self, other: Scalar | Number) -> Scalar:
        return Scalar(f"pow({self.text}, {_text(other)})")

    def __neg__(self) -> Scalar:
        return Scalar(f"(-{self.text})")

    def __abs__(self) -> Scalar:
        return Scalar(f"abs({self.text})")

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self._with("<", other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self._with("<=", other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self._with(">", other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self._with(">=", other)

    def __eq__(self, other: Scalar | Number) -> Scalar:  # type: ignore[override]
        return self._with("==", other)

    def __ne__(self, other: Scalar | Number) -> Scalar:  # type: ignore[override]
        return self._with("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Scalar) -> Scalar:
        return self._with("&&", other)

    def __or__(self, other: Scalar) -> Scalar:
        return self._with("||", other)

    def __bool__(self) -> bool:
        raise TypeError("a formula has no branches: fusec.function.select(condition, then, otherwise) chooses")

    def __repr__(self) -> str:
        return f"<fusec.Scalar {self.text}>"


class _Functions:
    """The functions that formulas may call, by name: ``function.sigmoid(x)``, ``function.select(x < 0, 0, x)``."""

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *operands: Scalar(f"{name}({', '.join(_text(o) for o in operands)})")


function = _Functions()


def _text(value: Scalar | Number) -> str:
    if isinstance(value, Scalar):
        return value.text
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value) if value >= 0 else f"({value!r})"
    raise TypeError(f"a formula is made of its operands and numbers, not of a {type(value).__name__}")


def traced(formula: Callable[..., Scalar], operands: int) -> str:
    """The formula's text. Raises TypeError where it is made of something else than its operands and numbers."""
    return _text(formula(*(Scalar(f"${i}") for i in range(operands))))
