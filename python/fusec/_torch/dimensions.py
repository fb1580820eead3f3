"""Prints torch.export's symbolic sizes as the format's dimension strings, and collects its `symbols` table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv

from .._importer import symbol_name
from .errors import SizeRefused

if TYPE_CHECKING:
    from torch.types import IntLikeType
    from torch.utils._sympy.value_ranges import ValueRanges

    Ranges: TypeAlias = Mapping[sympy.Symbol, ValueRanges[Any]]

# What dynamic_shapes says of one tensor: for each axis a torch.export.Dim, an int, Dim.AUTO, ... or None.
LeafDims: TypeAlias = list[Any] | None

LARGEST = 2**31 - 1


def expression_of(value: IntLikeType) -> sympy.Expr:
    """The sympy expression of an int or SymInt."""
    if isinstance(value, torch.SymInt):
        return value.node.expr
    return sympy.Integer(value)


class Dimensions:
    """Names the symbols that the inputs' shapes determine and prints expressions of them."""

    def __init__(self) -> None:
        self.names: dict[sympy.Symbol, str] = {}  # symbol -> name in the file
        self.bounds: dict[str, dict[str, int]] = {}  # name -> {"min": .., "max": ..}

    def collect(
        self, inputs: Iterable[tuple[str, torch.Tensor]], ranges: Ranges, declared: Iterable[LeafDims]
    ) -> None:
        """Names the symbols of the inputs' sizes. inputs: (name, fake tensor) in order. declared: the Dims of each."""
        for (name, tensor), dims in zip(inputs, declared):
            for axis, size in enumerate(tensor.shape):
                if not isinstance(size, torch.SymInt):
                    continue
                free = sorted(size.node.expr.free_symbols, key=str)
                dim = dims[axis] if dims and axis < len(dims) else None
                root = getattr(dim, "root", dim)
                for symbol in free:
                    if symbol in self.names:
                        continue
                    given = getattr(root, "__name__", None) if len(free) == 1 else None
                    self._add(symbol, given or f"{name}_dim{axis}", ranges.get(symbol), root if given else None)

    def collect_integer(self, name: str, value: torch.SymInt, ranges: Ranges) -> None:
        """An integer argument that may vary. A size cannot be negative, so neither can the integer."""
        for symbol in value.node.expr.free_symbols - set(self.names):
            self._add(symbol, name, ranges.get(symbol), None, least=0)

    def _add(
        self, symbol: sympy.Symbol, wanted: str, found_range: ValueRanges[Any] | None, dim: Any, least: int = 1
    ) -> None:
        name = symbol_name(wanted, set(self.names.values()))
        low = getattr(dim, "min", None)
        high = getattr(dim, "max", None)
        if found_range is not None:
            # torch.export assumes sizes of at least 2. The bounds that the user declared come first.
            low = found_range.lower if low is None else low
            high = found_range.upper if high is None else high
        bounds = {"min": _bounded(low, 0, least)}
        if _bounded(high, bounds["min"], LARGEST) < LARGEST:
            bounds["max"] = _bounded(high, bounds["min"], LARGEST)
        self.names[symbol] = name
        self.bounds[name] = bounds

    def text(self, value: IntLikeType | sympy.Expr) -> int | str:
        """The size as an int, or as an expression in the format's syntax."""
        expression = value if isinstance(value, sympy.Basic) else expression_of(value)
        if expression.is_Integer:
            return int(expression)
        return self._print(expression, tight=False)

    def shape(self, sizes: Iterable[IntLikeType | sympy.Expr]) -> list[int | str]:
        """The sizes of one tensor, as `text` writes each."""
        return [self.text(size) for size in sizes]

    def _print(self, e: sympy.Expr, tight: bool) -> str:
        """The expression in the format's syntax. tight: the text becomes an operand of *, // or %."""
        kind = type(e).__name__
        if e.is_Integer:
            return str(int(e)) if int(e) >= 0 or not tight else f"({int(e)})"
        if e.is_Symbol:
            if e not in self.names:
                raise SizeRefused(f"a size ({e}) that depends on the values of tensors, not on the inputs' shapes")
            return self.names[e]
        if e.is_Add:
            text = ""
            for term in e.as_ordered_terms():
                negative = term.could_extract_minus_sign()
                piece = self._print(-term if negative else term, tight=negative)
                text += (" - " if negative else " + ") + piece if text else ("-" + piece if negative else piece)
            return f"({text})" if tight else text
        if e.is_Mul:
            factors = e.as_ordered_factors()
            if all(f.is_Integer or not f.is_Rational for f in factors):
                text = "*".join(self._print(f, tight=True) for f in factors)
                return f"({text})" if tight and text.startswith("(-") else text
        if e.is_Pow and e.exp.is_Integer and 0 < int(e.exp) <= 8:
            return "*".join([self._print(e.base, tight=True)] * int(e.exp))
        if kind in ("FloorDiv", "CleanDiv", "IntTrueDiv"):
            return f"({self._print(e.args[0], True)} // {self._print(e.args[1], True)})"
        if kind in ("Mod", "PythonMod"):
            return f"({self._print(e.args[0], True)} % {self._print(e.args[1], True)})"
        if kind == "ModularIndexing":
            base, divisor, modulus = (self._print(a, True) for a in e.args)
            return f"(({base} // {divisor}) % {modulus})"
        if kind in ("TruncToInt", "FloorToInt"):
            return self._print(_whole_part(e), tight)
        if kind in ("Max", "Min"):
            text = self._print(e.args[0], False)
            for argument in e.args[1:]:
                text = f"{kind.lower()}({text}, {self._print(argument, False)})"
            return text
        raise SizeRefused(f"the size {e} is no integer polynomial of the symbols")


def _whole_part(e: sympy.Expr) -> sympy.Expr:
    """Writes floor(1.5 * h), the size that scale_factor=1.5 gives, as 3*h // 2.

    The two are equal for a factor whose denominator is at most 2**16; others raise SizeRefused.
    """
    factors = [f.args[0] if type(f).__name__ == "ToFloat" else f for f in sympy.Mul.make_args(e.args[0])]
    factors = [sympy.Rational(f) if f.is_Float else f for f in factors]
    numerator, denominator = sympy.fraction(sympy.Mul(*factors))
    whole = all(f.is_integer for f in factors if f.free_symbols)
    if not (whole and denominator.is_Integer and denominator <= 2**16):
        raise SizeRefused(f"the size {e} is no integer polynomial of the symbols")
    return numerator if denominator == 1 else FloorDiv(numerator, denominator)


def _bounded(value: Any, least: int, otherwise: int) -> int:
    try:
        return min(max(int(value), least), LARGEST)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return otherwise


def declared_dims(arguments: Mapping[str, Any], dynamic_shapes: Any) -> list[LeafDims]:
    """For each leaf of `arguments` (name -> example value, in order) the list of its Dims, or None."""
    by_leaf: dict[int, list[Any]] = {}

    def walk(value: Any, spec: Any) -> None:
        if isinstance(value, torch.Tensor):
            if isinstance(spec, dict):
                by_leaf[id(value)] = [spec.get(axis) for axis in range(value.dim())]
            elif isinstance(spec, (list, tuple)):
                by_leaf[id(value)] = list(spec)
        elif spec is None:
            return
        elif isinstance(value, dict) and isinstance(spec, dict):
            for key in value:
                walk(value[key], spec.get(key))
        elif isinstance(value, (list, tuple)) and isinstance(spec, (list, tuple)):
            for one, its in zip(value, spec):
                walk(one, its)

    if dynamic_shapes:
        values = list(arguments.values())
        if isinstance(dynamic_shapes, dict):
            for key, value in arguments.items():
                walk(value, dynamic_shapes.get(key))
        else:
            walk(values, list(dynamic_shapes))
    return [by_leaf.get(id(leaf)) for leaf in pytree.tree_leaves(list(arguments.values()))]
