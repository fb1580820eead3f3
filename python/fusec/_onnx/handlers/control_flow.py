"""If, Loop and Scan. Loops are unrolled; a condition that is computed at run time chooses between results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from ..errors import Missing, Refused, ValueNeeded, elements_needed
from ..node import OnnxNode, from_front
from ..registry import handles, require
from ..sizes import constant_shape
from ..values import Item, Value, known

MOST = 10000  # iterations


def _body(n: OnnxNode, name: str, inputs: Sequence[Item], label: str = "") -> list[Item]:
    graph: onnx.GraphProto = n.attributes[name]
    return n.converter.run_graph(graph, n.scope, inputs, f"{n.scope.prefix}{n.name}{label}/")


@handles("If")
def if_(n: OnnxNode) -> list[Item]:
    condition = n.tensor(0)
    if condition.is_known:
        return _body(n, "then_branch" if bool(condition.elements.reshape(-1)[0]) else "else_branch", [])
    try:
        return _both(n, condition)
    except Refused as refused:
        reason = refused
    try:  # the branch that the caller's example chooses
        n.converter.need(condition, n.operand_name(0))
    except ValueNeeded as needed:
        if isinstance(reason, ValueNeeded):
            raise reason from None
        raise ValueNeeded(f"{reason}; {needed}", needed.needed) from None


def _both(n: OnnxNode, condition: Value) -> list[Item]:
    """Both branches are computed, and the condition chooses."""
    problems = len(n.converter.problems)
    try:
        then, other = _body(n, "then_branch", [], ".then"), _body(n, "else_branch", [], ".else")
    except Missing:
        inner = n.converter.rolled_back(problems)
        if not inner:
            raise
        reason = f"in a branch, {inner[0].op}: {inner[0].reason}"
        needed = elements_needed(inner)
        raise (ValueNeeded(reason, needed) if needed else Refused(reason)) from None
    return [_chosen(n, condition, a, b) for a, b in zip(then, other)]


def _chosen(n: OnnxNode, condition: Value, a: Item, b: Item) -> Item:
    e = n.emitter
    if a is b:
        return a
    if not isinstance(a, Value) or not isinstance(b, Value) or a.kind != b.kind or not e.sizes.same(a.shape, b.shape):
        raise Refused("a condition that is computed at run time chooses between results of different types")
    return e.op("where", e.reshape(condition, []), a, b, kind=a.kind)


@handles("Loop")
def loop(n: OnnxNode) -> list[Item]:
    """Final values of what is carried, then the results of each iteration [shape..] stacked: [iterations, shape..]."""
    trips, condition = n.get(0), n.get(1)
    count = n.single(0) if trips is not None else MOST
    carried: list[Item] = list(n.inputs[2:])
    active: Value = known(np.array(True)) if condition is None else condition
    each = len(n.proto.output) > len(carried)
    if not active.is_known and (trips is None or each or any(isinstance(x, list) for x in carried)):
        active = known(n.known(1))
    scanned: list[list[Value]] = [[] for _ in range(len(n.proto.output) - len(carried))]
    for i in range(count):
        if active.is_known and not bool(active.elements.reshape(-1)[0]):
            break
        require(i < MOST - 1, f"a loop of {MOST} or more iterations")
        made = _body(n, "body", [known(np.array(i, np.int64)), active, *carried], f".{i}")
        going, new = made[0], made[1 : 1 + len(carried)]
        if active.is_known:
            carried = list(new)
        else:
            require(not each, "a loop whose condition is computed at run time, with results of each iteration")
            carried = [_chosen(n, active, b, a) for a, b in zip(carried, new)]
        for kept, value in zip(scanned, made[1 + len(carried) :]):
            kept.append(_tensor(value))
        assert isinstance(going, Value)
        if not going.is_known:
            require(trips is not None, "a loop whose end is computed at run time")
            going = n.emitter.reshape(going, [])
        active = _and(n, active, going)
    return [*carried, *(_stacked(n, kept, j + len(carried)) for j, kept in enumerate(scanned))]


def _and(n: OnnxNode, a: Value, b: Value) -> Value:
    if a.is_known and b.is_known:
        return known(np.array(bool(a.elements.reshape(-1)[0]) and bool(b.elements.reshape(-1)[0])))
    return b if a.is_known else n.emitter.op("logical_and", a, b)


def _tensor(item: Item) -> Value:
    if not isinstance(item, Value):
        raise Refused("a result of each iteration that is no tensor")
    return item


def _stacked(n: OnnxNode, values: list[Value], output: int) -> Value:
    if values:
        return stack(n, values, 0)
    declared = n.declared_shape(output)
    require(declared is not None, "a loop without an iteration, whose results have no declared shape")
    body: onnx.GraphProto = n.attributes["body"]
    kind = body.output[output + 1].type.tensor_type.elem_type
    assert declared is not None
    return known(np.empty(constant_shape((0, *declared[1:]), "a result"), onnx.helper.tensor_dtype_to_np_dtype(kind)))


def stack(n: OnnxNode, values: Sequence[Value], axis: int) -> Value:
    """Values of one shape [a.., b..] -> [a.., len(values), b..], with the new dimension at `axis`."""
    e = n.emitter
    if all(v.is_known and not v.is_weight for v in values):
        return known(np.stack([v.elements for v in values], axis), kind=values[0].kind)
    shape = list(values[0].shape)
    shape.insert(axis, 1)
    return e.concat([e.reshape(v, shape) for v in values], axis)


@handles("Scan")
def scan(n: OnnxNode) -> list[Item]:
    if n.version < 9:
        return _batched_scan(n)
    scans = n.integer("num_scan_inputs")
    states = len(n.inputs) - scans
    return _scan(n, n.tensors()[:states], n.tensors()[states:])


def _scan(n: OnnxNode, state: list[Value], sequences: list[Value], label: str = "") -> list[Item]:
    """Sequences [.., length, ..] -> final states, and the results of each step [shape..] stacked: [.., length, ..]."""
    e, states, scans = n.emitter, len(state), len(sequences)
    results = len(n.proto.output) - states
    axes = n.integers("scan_input_axes", [0] * scans)
    backwards = n.integers("scan_input_directions", n.attributes.get("directions", [0] * scans))
    out_axes = n.integers("scan_output_axes", [0] * results)
    out_backwards = n.integers("scan_output_directions", [0] * results)
    axes = [from_front(a, v.rank) for a, v in zip(axes, sequences)]
    length = constant_shape([sequences[0].shape[axes[0]]], "a Scan")[0]
    require(length <= MOST, f"a Scan over more than {MOST} elements")
    current: list[Item] = list(state)
    scanned: list[list[Value]] = [[] for _ in range(results)]
    for i in range(length):
        parts = [
            e.op("select", v, kind=v.kind, dim=a, index=length - 1 - i if b else i)
            for v, a, b in zip(sequences, axes, backwards)
        ]
        made = _body(n, "body", [*current, *parts], f"{label}.{i}")
        current = made[:states]
        for kept, value in zip(scanned, made[states:]):
            kept.append(_tensor(value))
    stacks: list[Any] = []
    for kept, axis, back in zip(scanned, out_axes, out_backwards):
        rank = kept[0].rank + 1
        stacks.append(stack(n, kept[::-1] if back else kept, from_front(axis, rank)))
    return [*current, *stacks]


def _batched_scan(n: OnnxNode) -> list[Item]:
    """Until opset 8 a Scan had a batch dimension, and lengths of its rows."""
    e = n.emitter
    require(n.get(0) is None, "a Scan with lengths of its sequences")
    scans = n.integer("num_scan_inputs")
    values = n.tensors()[1:] if n.inputs[0] is not None else [n.tensor(i) for i in range(1, len(n.inputs))]
    states = len(values) - scans
    rows = constant_shape([values[0].shape[0]], "a Scan")[0]
    made = []
    for row in range(rows):
        parts = [e.op("select", v, dim=0, index=row) for v in values]
        made.append(_scan(n, parts[:states], parts[states:], f".row{row}"))
    return [stack(n, [_tensor(m[i]) for m in made], 0) for i in range(len(made[0]))]
