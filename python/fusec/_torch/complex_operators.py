"""Operators that take or return complex tensors: views, parts and conversions. The rest is in complex_arithmetic.py.

Operators that only move elements act on each part. view_as_complex makes a Pair and view_as_real stacks its parts.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import torch

from .complex_arithmetic import arithmetic
from .complex_pairs import PART, Pair, Result
from .model_file import Value

if TYPE_CHECKING:
    from .convert import Arguments, Converter

MOVES = set(
    """view reshape _unsafe_view unsqueeze squeeze expand expand_as slice select permute transpose t flatten unflatten
clone detach alias contiguous cat stack split split_with_sizes chunk unbind index_select repeat roll flip
lift_fresh_copy broadcast_to view_as reshape_as neg""".split()
)


def is_complex(node: torch.fx.Node, arguments: Arguments) -> bool:
    """Whether a call takes or returns complex tensors."""
    results = node.meta.get("val")
    results = results if isinstance(results, (list, tuple)) else [results]
    given = [x for a in arguments.values() for x in (a if isinstance(a, list) else [a])]
    return any(isinstance(x, Pair) for x in given) or any(getattr(r, "dtype", None) in PART for r in results)


def call(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """Writes one operator that takes or returns complex tensors."""
    name, part = str(node.target).split(".")[1], _part_of(node)

    def emit(op: str, *operands: Any, **attributes: Any) -> Value:
        return c.emit(part, op, list(operands), attributes)

    if name in MOVES:
        return _of_both_parts(c, part, a)
    if name in ("_to_copy", "to"):
        return _converted(c, node, part, a["self"])
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
    return arithmetic(c, part, a)


def _converted(c: Converter, node: torch.fx.Node, part: torch.fx.Node, given: Value | Pair) -> Result:
    """Writes a conversion to another dtype. A complex tensor as a real one loses its imaginary part."""
    dtype = part.meta["val"].dtype
    if isinstance(given, Pair):
        pair = Pair(*(c.cast(x, dtype, part) for x in given))
        return pair if node.meta["val"].dtype in PART else pair.real
    return Pair(c.cast(given, dtype, part), c.full(given.shape, 0.0, dtype, part))


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


def _of_both_parts(c: Converter, part: torch.fx.Node, a: Arguments) -> Result:
    """Writes an operator that only moves elements once for each part."""

    def pick(value: Any, index: int) -> Any:
        if isinstance(value, Pair):
            return value[index]
        return [pick(v, index) for v in value] if isinstance(value, list) else value

    real: Any
    imag: Any
    real, imag = (c.mapped(part, {name: pick(value, i) for name, value in a.items()}) for i in (0, 1))
    return [Pair(r, i) for r, i in zip(real, imag)] if isinstance(real, list) else Pair(real, imag)
