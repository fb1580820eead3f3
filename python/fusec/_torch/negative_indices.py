"""Drops the correction of indices that count from the end where none can be negative.

    where(i < 0, i + size, i)  ->  i        where i is a range, a view of one, a literal without negative elements, ...

index_rewrites.py emits the correction for every index. A weight's values are no proof: bind() may change them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from .literals import literals

if TYPE_CHECKING:
    from .program import Program

aten = torch.ops.aten

KEEPS_SIGN = {
    aten.view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.expand.default,
    aten.permute.default,
    aten.transpose.int,
    aten.t.default,
    aten.clone.default,
    aten.slice.Tensor,
    aten.select.int,
    aten._to_copy.default,
    aten.squeeze.dim,
    aten.flatten.using_ints,
    aten.add.Tensor,
    aten.mul.Tensor,
    aten.index_select.default,
    aten.cat.default,
    aten.stack.default,
    aten.repeat.default,
    aten.lift_fresh_copy.default,
    aten.detach.default,
    aten._unsafe_view.default,
    aten.maximum.default,
    aten.minimum.default,
    aten.alias.default,
}
STARTS_AT_ZERO = {aten.argmax.default, aten.argmin.default, aten.abs.default}
GIVE_POSITIONS = {aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim}

# Integers that become negative where they overflow: 200 as int8 is -56. An int64 is taken not to overflow.
WRAPS = {torch.int8, torch.int16, torch.int32, torch.uint64}


def drop_sign_corrections(program: Program) -> None:
    known = literals(program)
    never_negative: dict[torch.fx.Node, bool] = {}
    for node in program.graph.nodes:
        if node.name in known:
            tensor = known[node.name]
            is_index = not (tensor.is_floating_point() or tensor.is_complex())
            never_negative[node] = is_index and bool((tensor >= 0).all())
        elif node.op == "call_function":
            never_negative[node] = _never_negative(node, never_negative)
            index = _corrected_index(node)
            if index is not None and never_negative.get(index):
                node.replace_all_uses_with(index)


def _never_negative(node: torch.fx.Node, known: Mapping[torch.fx.Node, bool]) -> bool:
    """Whether the node's values cannot be negative. known: the same of the nodes before it."""
    args: tuple[Any, ...] = node.args
    if getattr(node.meta.get("val"), "dtype", None) in WRAPS:
        return False
    if node.target in (aten.arange.default, aten.arange.start, aten.arange.start_step):
        start = 0 if node.target is aten.arange.default else args[0]
        step = args[2] if len(args) > 2 else 1
        return isinstance(start, int) and start >= 0 and isinstance(step, int) and step > 0
    if node.target is aten.clamp.default:  # its result is the upper bound where that is the smaller one
        low, high = (*args[1:3], None, None)[:2]
        return isinstance(low, int) and low >= 0 and not (isinstance(high, int) and high < 0)
    if node.target in STARTS_AT_ZERO:
        return True
    if node.target is operator.getitem:
        return args[1] == 1 and args[0].target in GIVE_POSITIONS
    if node.target in KEEPS_SIGN:
        numbers = args[1:2] if node.target in (aten.add.Tensor, aten.mul.Tensor) else ()
        return all(known.get(n) for n in node.all_input_nodes) and all(
            n >= 0 for n in numbers if isinstance(n, (int, float))
        )
    return False


def _corrected_index(node: torch.fx.Node) -> torch.fx.Node | None:
    """i, where the node is where(i < 0, i + size, i), else None."""
    if node.target is not aten.where.self:
        return None
    operands: tuple[Any, ...] = node.args
    below, moved = operands[:2]
    index: torch.fx.Node = operands[2]
    if (
        isinstance(below, torch.fx.Node)
        and below.target is aten.lt.Scalar
        and below.args == (index, 0)
        and isinstance(moved, torch.fx.Node)
        and moved.target is aten.add.Tensor
        and moved.args[0] is index
    ):
        return index
    return None
