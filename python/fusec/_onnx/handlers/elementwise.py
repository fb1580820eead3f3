"""Elementwise ops whose counterpart needs more than a row."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from ..._tensors import numpy_dtype
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import product
from ..values import Item, Value, is_float, known


@handles("Identity")
def identity(n: OnnxNode) -> list[Item]:
    return [n.inputs[0]]


@handles("Div")
def divide(n: OnnxNode) -> Value:
    a, b = n.tensor(0), n.tensor(1)
    return n.emitter.op("div", a, b, rounding_mode=None if is_float(a.dtype) else "trunc")


@handles("Mod")
def modulo(n: OnnxNode) -> Value:
    op = "fmod" if n.integer("fmod") else "remainder"
    return n.emitter.op(op, n.tensor(0), n.tensor(1))


@handles("Pow")
def power(n: OnnxNode) -> Value:
    """The result has the base's type."""
    e, base, exponent = n.emitter, n.tensor(0), n.tensor(1)
    if base.dtype == exponent.dtype or (is_float(base.dtype) and not is_float(exponent.dtype)):
        return e.cast(e.op("pow", base, e.cast(exponent, base.dtype)), base.dtype)
    if is_float(exponent.dtype) and not is_float(base.dtype):
        return e.cast(e.op("pow", e.cast(base, "float64"), e.cast(exponent, "float64")), base.dtype)
    return e.op("pow", base, e.cast(exponent, base.dtype))


@handles("Sum")
def add_all(n: OnnxNode) -> Value:
    return _joined(n, "add")


@handles("Max")
def maximum(n: OnnxNode) -> Value:
    return _joined(n, "maximum")


@handles("Min")
def minimum(n: OnnxNode) -> Value:
    return _joined(n, "minimum")


@handles("Mean")
def mean(n: OnnxNode) -> Value:
    total = _joined(n, "add")
    return n.emitter.op("div", total, float(len(n))) if len(n) > 1 else total


def _joined(n: OnnxNode, op: str) -> Value:
    return reduce(lambda a, b: n.emitter.op(op, a, b), n.tensors())


@handles("Clip")
def clip(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    if n.version < 11:
        return e.op("clamp", x, min=n.attributes.get("min"), max=n.attributes.get("max"))
    low, high = n.get(1), n.get(2)
    bounds = [b for b in (low, high) if b is not None]
    if all(b.is_known and not b.is_symbolic and np.all(np.isfinite(b.elements.astype(np.float64))) for b in bounds):
        return e.op("clamp", x, min=low and low.elements.item(), max=high and high.elements.item()) if bounds else x
    x = x if low is None else e.op("maximum", x, low)
    return x if high is None else e.op("minimum", x, high)


@handles("HardSigmoid")
def hard_sigmoid(n: OnnxNode) -> Value:
    e = n.emitter
    line = e.op("add", e.op("mul", n.tensor(0), n.number("alpha")), n.number("beta"))
    return e.op("clamp", line, min=0.0, max=1.0)


@handles("Selu")
def selu(n: OnnxNode) -> Value:
    e, x, alpha, gamma = n.emitter, n.tensor(0), n.number("alpha"), n.number("gamma")
    if abs(alpha - 1.6732632423543772) < 1e-6 and abs(gamma - 1.0507009873554805) < 1e-6:
        return e.op("selu", x)
    return e.op("mul", e.op("elu", x, alpha=alpha), gamma)


@handles("Celu")
def celu(n: OnnxNode) -> Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    e, x, alpha = n.emitter, n.tensor(0), n.number("alpha")
    below = e.op("mul", e.op("expm1", e.op("div", e.op("minimum", x, 0.0), alpha)), alpha)
    return e.op("add", e.op("relu", x), below)


@handles("Gelu")
def gelu(n: OnnxNode) -> Value:
    return n.emitter.op("gelu", n.tensor(0), approximate=n.text("approximate", "none"))


@handles("PRelu")
def prelu(n: OnnxNode) -> Value:
    x, slope = n.tensor(0), n.tensor(1)
    if n.version < 7 and slope.rank == 1 and x.rank > 2:  # a slope for each channel
        slope = n.emitter.reshape(slope, [slope.shape[0], *[1] * (x.rank - 2)])
    return n.emitter.op("prelu", x, slope)


@handles("Swish")
def swish(n: OnnxNode) -> Value:
    e, x, alpha = n.emitter, n.tensor(0), n.number("alpha", 1.0)
    if alpha == 1.0:
        return e.op("silu", x)
    return e.op("mul", x, e.op("sigmoid", e.op("mul", x, alpha)))


@handles("ThresholdedRelu")
def thresholded_relu(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    return e.op("where", e.op("gt", x, n.number("alpha")), x, e.scalar(0, x.dtype))


@handles("Softsign")
def softsign(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    return e.op("div", x, e.op("add", e.op("abs", x), 1.0))


@handles("IsInf")
def is_infinite(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    negative, positive = n.integer("detect_negative", 1), n.integer("detect_positive", 1)
    infinite = e.op("isinf", e.float_of(x))
    if negative and positive:
        return infinite
    if not negative and not positive:
        return e.full(x.shape, False, "bool")
    return e.op("logical_and", infinite, e.op("gt" if positive else "lt", e.float_of(x), 0.0))


@handles("IsNaN")
def is_nan(n: OnnxNode) -> Value:
    return n.emitter.op("isnan", n.emitter.float_of(n.tensor(0)))


@handles("BitShift")
def bit_shift(n: OnnxNode) -> Value:
    """A shift by s is a product with 2^s, or a quotient by it rounded down; the powers stand in a table.

    Bits that leave are lost. A shift by as many bits as there are, or by a negative number, leaves 0, or -1 of a
    negative number to the right.
    """
    e, x, shift = n.emitter, n.tensor(0), n.emitter.cast(n.tensor(1), "int64")
    bits = numpy_dtype(x.dtype).itemsize * 8
    signed = x.dtype.startswith("int")
    powers = np.array([1 << i for i in range(bits)], np.uint64).astype(numpy_dtype(x.dtype))
    usual = e.op("logical_and", e.op("ge", shift, 0), e.op("lt", shift, bits - 1 if signed else bits))
    places = e.op("where", usual, shift, e.scalar(0, "int64"))
    factor = e.op("index_select", known(powers), e.reshape(places, [product(shift.shape)]), dim=0)
    factor = e.reshape(factor, shift.shape)
    if n.text("direction") == "LEFT":
        moved = e.op("mul", x, factor)
        gone: Value = e.scalar(0, x.dtype)
        if signed:  # a shift by bits - 1 leaves the lowest bit as the sign
            top = e.op(
                "where", e.op("eq", e.op("bitwise_and", x, 1), 0), gone, e.scalar(np.iinfo(x.dtype).min, x.dtype)
            )
            moved = e.op("where", e.op("eq", shift, bits - 1), top, moved)
            usual = e.op("logical_or", usual, e.op("eq", shift, bits - 1))
    else:
        moved = e.op("div", x, factor, rounding_mode="floor" if signed else "trunc")
        gone = (
            e.op("where", e.op("lt", x, 0), e.scalar(-1, x.dtype), e.scalar(0, x.dtype))
            if signed
            else e.scalar(0, x.dtype)
        )
    return e.op("where", usual, moved, gone)


@handles("Dropout")
def dropout(n: OnnxNode) -> list[Item]:
    x, ratio, training = n.tensor(0), n.get(1), n.get(2)
    if training is not None and n.version >= 12 and bool(n.known(2)):
        rate = 0.5 if ratio is None else float(n.known(1))
        require(rate == 0, "dropout in training mode draws random numbers")
    mask = n.emitter.full(x.shape, True, "bool") if n.uses(1) else None
    return [x, mask]


@handles("Hardmax")
def hardmax(n: OnnxNode) -> Value:
    """1 at the first greatest element along the axis, else 0."""
    x = n.tensor(0)
    if n.version < 13:
        return _as_matrix(n, lambda m: _hardmax(n, m, 1))
    return _hardmax(n, x, n.axis(x.rank, -1))


def _hardmax(n: OnnxNode, x: Value, axis: int) -> Value:
    """x [.., size, ..] -> the same shape."""
    e = n.emitter
    best = e.op("argmax", x, dim=axis, keepdim=True)
    return e.cast(e.op("eq", e.iota(x.shape, axis), best), x.dtype)


@handles("Softmax", "LogSoftmax")
def softmax(n: OnnxNode) -> Value:
    op = "softmax" if n.op == "Softmax" else "log_softmax"
    if n.version < 13:
        return _as_matrix(n, lambda m: n.emitter.op(op, m, dim=1))
    return n.emitter.op(op, n.tensor(0), dim=n.axis(n.tensor(0).rank, -1))


def _as_matrix(n: OnnxNode, function: Callable[[Value], Value]) -> Value:
    """Before opset 13, `axis` divided the dimensions into those of rows and those of columns."""
    x = n.tensor(0)
    axis = n.axis(x.rank, 1)
    matrix = n.emitter.reshape(x, [product(x.shape[:axis]), product(x.shape[axis:])])
    return n.emitter.reshape(function(matrix), x.shape)
