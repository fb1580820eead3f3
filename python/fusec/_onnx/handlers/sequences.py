"""Sequences and optionals, which are lists while the model is imported: no node is left of them."""

from __future__ import annotations

import numpy as np

from ..errors import Refused
from ..node import OnnxNode
from ..registry import handles
from ..sizes import constant_shape
from ..values import Item, Value, known
from .control_flow import stack
from .movement import split_into


def _sequence(n: OnnxNode, index: int = 0) -> list[Item]:
    item = n.inputs[index]
    if not isinstance(item, list):
        raise Refused("a sequence that is not known")
    return item


def _position(n: OnnxNode, index: int, default: int) -> int:
    return n.single(index) if n.get(index) is not None else default


@handles("SequenceEmpty")
def empty(n: OnnxNode) -> list[Item]:
    return [[]]


@handles("SequenceConstruct")
def construct(n: OnnxNode) -> list[Item]:
    return [list(n.inputs)]


@handles("SequenceAt")
def at(n: OnnxNode) -> list[Item]:
    return [_sequence(n)[_position(n, 1, 0)]]


@handles("SequenceLength")
def length(n: OnnxNode) -> Value:
    return known(np.array(len(_sequence(n)), np.int64))


@handles("SequenceInsert")
def insert(n: OnnxNode) -> list[Item]:
    made = list(_sequence(n))
    made.insert(_position(n, 2, len(made)), n.tensor(1))
    return [made]


@handles("SequenceErase")
def erase(n: OnnxNode) -> list[Item]:
    made = list(_sequence(n))
    del made[_position(n, 1, len(made) - 1)]
    return [made]


@handles("ConcatFromSequence")
def concat(n: OnnxNode) -> Value:
    values = [v for v in _sequence(n) if isinstance(v, Value)]
    if n.integer("new_axis"):
        return stack(n, values, n.axis(values[0].rank + 1))
    return n.emitter.concat(values, n.axis(values[0].rank))


@handles("SplitToSequence")
def split(n: OnnxNode) -> list[Item]:
    e, x = n.emitter, n.tensor(0)
    axis = n.axis(x.rank)
    size = constant_shape([x.shape[axis]], "a dimension that is split")[0]
    if n.get(1) is None:
        pieces: list[Value] = split_into(n, x, axis, [1] * size)
        if not n.integer("keepdims", 1):
            pieces = [e.reshape(p, [d for i, d in enumerate(p.shape) if i != axis]) for p in pieces]
        return [list(pieces)]
    given = n.known(1)
    if given.ndim == 0:
        piece = int(given)
        sizes = [min(piece, size - start) for start in range(0, size, piece)]
    else:
        sizes = [int(s) for s in given]
    return [list(split_into(n, x, axis, list(sizes)))]


@handles("Optional")
def optional(n: OnnxNode) -> list[Item]:
    return [n.inputs[0] if n.inputs else None]


@handles("OptionalHasElement")
def has_element(n: OnnxNode) -> Value:
    return known(np.array(bool(n.inputs) and n.inputs[0] is not None))


@handles("OptionalGetElement")
def get_element(n: OnnxNode) -> list[Item]:
    if n.inputs[0] is None:
        raise Refused("the element of an empty optional")
    return [n.inputs[0]]
