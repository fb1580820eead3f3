"""Reductions, running sums, and the positions of extremes."""

from __future__ import annotations

import numpy as np

from ..._tensors import numpy_dtype
from ..node import OnnxNode, from_front
from ..registry import handles
from ..sizes import Dim
from ..values import Value, is_float


@handles(
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
)
def reduce(n: OnnxNode) -> Value:
    """x [d0, d1, ..] over `axes`: these become 1 with keepdims, else they go."""
    x = n.tensor(0)
    axes = n.axes()
    if not axes:
        if n.integer("noop_with_empty_axes"):
            return _of_single_elements(n, x)
        axes = list(range(x.rank))
    dims = sorted({from_front(a, x.rank) for a in axes}) if x.rank else []
    return reduced(n, n.op.removeprefix("Reduce"), x, dims, bool(n.integer("keepdims", 1)))


def _of_single_elements(n: OnnxNode, x: Value) -> Value:
    """A reduction over no axis: each element by itself."""
    e = n.emitter
    op = n.op.removeprefix("Reduce")
    if op in ("L1", "L2"):
        return e.op("abs", x)
    if op == "LogSum":
        return e.op("log", x)
    return e.op("square", x) if op == "SumSquare" else x


def reduced(n: OnnxNode, op: str, x: Value, dims: list[int], keep: bool) -> Value:
    """x [d0, d1, ..] over `dims`, as x has its dtype; each of `dims` is 1 in the result if `keep`, else gone."""
    e = n.emitter
    if any(isinstance(x.shape[d], int) and x.shape[d] == 0 for d in dims):
        return _of_nothing(n, op, x, dims, keep)
    if not dims:
        return _of_single_elements(n, x) if n.op.startswith("Reduce") else x
    exact = not is_float(x.dtype)

    def run(name: str, value: Value) -> Value:
        return e.cast(e.op(name, value, dim=dims, keepdim=keep), x.dtype)

    if op == "Sum":
        return run("sum", x)
    if op == "Mean":
        return run("mean", e.float_of(x))
    if op in ("Max", "Min"):
        return run("amax" if op == "Max" else "amin", x)
    if op == "Prod":
        return run("prod", x)
    if op == "L1":
        return run("sum", e.op("abs", x))
    if op == "SumSquare":
        return run("sum", e.op("square", x))
    if op == "L2":
        if exact:
            total = e.op("sum", e.op("square", e.cast(x, "float64")), dim=dims, keepdim=keep)
            return e.cast(e.op("sqrt", total), x.dtype)
        return e.op("vector_norm", x, dim=dims, keepdim=keep)
    if op == "LogSum":
        return e.cast(e.op("log", e.float_of(e.op("sum", x, dim=dims, keepdim=keep))), x.dtype)
    return run("logsumexp", e.float_of(x))


def _of_nothing(n: OnnxNode, op: str, x: Value, dims: list[int], keep: bool) -> Value:
    """Over dimensions of size 0: the neutral element, in the shape of the reduction."""
    shape: list[Dim] = [1 if i in dims else d for i, d in enumerate(x.shape) if keep or i not in dims]
    value: float | int | bool = 1 if op == "Prod" else 0
    if op in ("LogSum", "LogSumExp"):
        value = float("-inf")
    elif op == "Mean":
        value = float("nan")
    elif op in ("Max", "Min"):
        value = _extreme(x.dtype, lowest=op == "Max")
    return n.emitter.full(shape, value, x.dtype)


def _extreme(dtype: str, lowest: bool) -> float | int | bool:
    if dtype == "bool":
        return not lowest
    if is_float(dtype):
        return float("-inf" if lowest else "inf")
    info = np.iinfo(numpy_dtype(dtype))
    return int(info.min if lowest else info.max)


@handles("ArgMax", "ArgMin")
def arg_extreme(n: OnnxNode) -> Value:
    """x [.., size, ..] -> int64 [.., 1, ..] with keepdims, else [.., ..]."""
    e, x = n.emitter, n.tensor(0)
    axis, keep = n.axis(x.rank), bool(n.integer("keepdims", 1))
    op = n.op.lower()
    if not n.integer("select_last_index"):
        return e.op(op, x, dim=axis, keepdim=keep)
    found = e.op(op, e.op("flip", x, dims=[axis]), dim=axis, keepdim=keep)
    return e.op("sub", x.shape[axis] - 1, found)


@handles("CumSum", "CumProd")
def cumulate(n: OnnxNode) -> Value:
    """x [.., size, ..] -> the same shape; y[i] = x[0] + .. + x[i], up to x[i - 1] where exclusive."""
    e, x = n.emitter, n.tensor(0)
    axis = from_front(n.single(1), x.rank)
    backwards = bool(n.integer("reverse"))
    y = e.op("flip", x, dims=[axis]) if backwards else x
    y = e.cast(e.op(n.op.lower(), y, dim=axis), x.dtype)
    if n.integer("exclusive"):
        start = e.full([1 if i == axis else d for i, d in enumerate(x.shape)], int(n.op == "CumProd"), x.dtype)
        y = e.concat([start, e.slice(y, axis, 0, x.shape[axis] - 1)], axis)
    return e.op("flip", y, dims=[axis]) if backwards else y
