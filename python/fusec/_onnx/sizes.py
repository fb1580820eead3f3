"""Symbolic sizes: integer polynomials of the model's symbols, simplified by the library's own rules."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Union

from .. import _core
from .._importer import symbol_name
from ..errors import InputError
from .errors import Refused

LARGEST = 2**31 - 1


class Size:
    """An expression with a symbol in it. Arithmetic gives an int where the symbols cancel."""

    __slots__ = ("sizes", "text")

    def __init__(self, sizes: Sizes, text: str) -> None:
        self.sizes = sizes
        self.text = text

    def _with(self, form: str, other: Dim) -> Dim:
        return self.sizes.simplified(form.format(f"({self.text})", f"({other})"))

    def __add__(self, other: Dim) -> Dim:
        return self._with("{0}+{1}", other)

    def __radd__(self, other: int) -> Dim:
        return self._with("{1}+{0}", other)

    def __sub__(self, other: Dim) -> Dim:
        return self._with("{0}-{1}", other)

    def __rsub__(self, other: int) -> Dim:
        return self._with("{1}-{0}", other)

    def __mul__(self, other: Dim) -> Dim:
        return self._with("{0}*{1}", other)

    def __rmul__(self, other: int) -> Dim:
        return self._with("{1}*{0}", other)

    def __floordiv__(self, other: Dim) -> Dim:
        return self._with("{0}//{1}", other)

    def __rfloordiv__(self, other: int) -> Dim:
        return self._with("{1}//{0}", other)

    def __mod__(self, other: Dim) -> Dim:
        return self._with("{0}%{1}", other)

    def __neg__(self) -> Dim:
        return self._with("{1}-{0}", 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


Dim = Union[int, Size]
Shape = tuple[Dim, ...]


class Sizes:
    """The symbols of one model."""

    def __init__(self, fixed: dict[str, int | tuple[int, int]]) -> None:
        self.fixed = fixed  # names of the ONNX model -> a size, or bounds
        self.symbols: dict[str, dict[str, int]] = {}
        self._known: dict[str, Dim] = {}
        self._names: dict[str, str] = {}  # dim_param -> symbol

    def named(self, name: str) -> Dim:
        """What a dim_param stands for: a size that the caller fixed, a symbol, or an expression of symbols."""
        given = self.fixed.get(name)
        if isinstance(given, int):
            return given
        if not re.fullmatch(r"\w+", name) and re.fullmatch(r"[\w\s+*()\-/%]+", name) and re.search(r"[A-Za-z_]", name):
            try:
                return self._expression(name)
            except Refused:
                pass
        return self._symbol(name, given)

    def _expression(self, text: str) -> Dim:
        """As exporters write it: `past_sequence_length + 1`."""
        names = re.findall(r"[A-Za-z_]\w*", text)
        if len(names) != len(re.findall(r"\w*[A-Za-z_]\w*", text)):
            raise Refused("no expression")
        parts = {name: self.named(name) for name in names}
        return self.simplified(
            re.sub(r"[A-Za-z_]\w*", lambda m: f"({parts[m[0]]})", text.replace("//", "/").replace("/", "//"))
        )

    def _symbol(self, name: str, bounds: tuple[int, int] | None) -> Dim:
        if name not in self._names:
            symbol = symbol_name(name, self.symbols)
            self._names[name] = symbol
            self.symbols[symbol] = {"min": bounds[0], "max": bounds[1]} if bounds else {"min": 1}
            self._known.clear()
        return Size(self, self._names[name])

    def parsed(self, dim: int | str) -> Dim:
        """A dimension as the library prints it, which is in its simplest form."""
        return dim if isinstance(dim, int) else Size(self, dim)

    def simplified(self, text: str) -> Dim:
        if text not in self._known:
            node = {"name": "o", "op": "mul", "inputs": ["s", {"dim": text}]}
            try:
                model = _core.Model.parse(json.dumps({**self.declarations(), "nodes": [node], "outputs": ["o"]}))
            except InputError as error:
                raise Refused(f"the size {text}: {error}") from None
            written = json.loads(model.to_json())["nodes"][0]["inputs"][1]
            self._known[text] = self.parsed(written["dim"] if isinstance(written, dict) else written)
        return self._known[text]

    def declarations(self) -> dict[str, object]:
        """The head of a model that has all symbols; its input `s` determines them."""
        given = {"name": "s", "dtype": "uint8", "shape": list(self.symbols)}
        return {"fusec": 1, "symbols": self.symbols, "inputs": [given]}

    def minimum(self, a: Dim, b: Dim) -> Dim:
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self.simplified(f"min({a}, {b})")

    def maximum(self, a: Dim, b: Dim) -> Dim:
        return max(a, b) if isinstance(a, int) and isinstance(b, int) else self.simplified(f"max({a}, {b})")

    def less(self, a: Dim, b: Dim) -> bool:
        """a < b, where the symbols' bounds decide it."""
        if isinstance(a, int) and isinstance(b, int):
            return a < b
        if self._least(b, a) > 0:
            return True
        if self._least(a, b) >= 0:
            return False
        raise Refused(f"whether {a} is less than {b} depends on the symbols")

    def equal(self, a: Dim, b: Dim) -> bool:
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        over, under = self._least(a, b), self._least(b, a)
        if over >= 0 and under >= 0:
            return True
        if over > 0 or under > 0:
            return False
        raise Refused(f"whether {a} equals {b} depends on the symbols")

    def same(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        """Whether two shapes are written alike."""
        return len(a) == len(b) and all(x == y for x, y in zip(a, b))

    def _least(self, a: Dim, b: Dim) -> float:
        """A lower bound of a - b, or -inf.

        Replaces each symbol by its minimum plus a rest of at least 0. If nothing is then subtracted, the value where all
        rests are 0 is the bound.
        """

        def substituted(text: str, form: str) -> Dim:
            known = self.symbols
            return self.simplified(
                re.sub(r"\w+", lambda m: form.format(m[0], known[m[0]]["min"]) if m[0] in known else m[0], text)
            )

        shifted = substituted(f"({a})-({b})", "({0}+{1})")
        if isinstance(shifted, Size) and not re.search("[-/%]", shifted.text):
            shifted = substituted(shifted.text, "0")
        return -math.inf if isinstance(shifted, Size) else shifted


def product(dims: Iterable[Dim]) -> Dim:
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def quotient(dims: Iterable[Dim], divisors: Iterable[Dim]) -> Dim:
    """The product of `dims` over that of `divisors`, which divides it: factors that both have are cancelled."""
    above = [factor for d in dims for factor in _factors(d)]
    below: list[Dim] = []
    for factor in (f for d in divisors for f in _factors(d)):
        if isinstance(factor, Size) and factor in above:
            above.remove(factor)
        else:
            below.append(factor)
    return product(above) // product(below)


def _factors(dim: Dim) -> list[Dim]:
    """Of `4*b*t` 4, b and t; a sum is one factor."""
    if isinstance(dim, int) or not re.fullmatch(r"\w+(\*\w+)*", dim.text):
        return [dim]
    return [int(x) if x.isdigit() else Size(dim.sizes, x) for x in dim.text.split("*")]


def texts(dims: Iterable[Dim]) -> list[int | str]:
    return [d if isinstance(d, int) else d.text for d in dims]


def constant_shape(dims: Sequence[Dim], what: str) -> tuple[int, ...]:
    """The sizes as numbers. Raises Refused for symbols."""
    if any(not isinstance(d, int) for d in dims):
        raise Refused(f"{what} has symbolic sizes {texts(dims)}: fix them with dims=")
    return tuple(d for d in dims if isinstance(d, int))
