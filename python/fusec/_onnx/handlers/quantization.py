"""QuantizeLinear, DequantizeLinear and products of quantized tensors."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..._tensors import numpy_dtype
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim
from ..values import DTYPES, WIDE, Value, dtype_of, is_float, kind_name
from .types import INTEGERS, cast_to, to_float4


def _layout(n: OnnxNode, x: Value, scale: Value) -> dict[str, int]:
    """The format's `axis` and `block`."""
    block = n.integer("block_size")
    if block:
        return {"axis": n.axis(x.rank, 1), "block": block}
    if scale.rank == 0 or (scale.rank == 1 and scale.shape[0] == 1):
        return {}
    return {"axis": n.axis(x.rank, 1)}


def _aligned(n: OnnxNode, x: Value, operand: Value) -> Value:
    """A scale or zero point that broadcasts against x: [C] -> [.., C, ..], blocks -> the shape of x, [1] -> []."""
    e, block = n.emitter, n.integer("block_size")
    if operand.rank == 0 or (operand.rank == 1 and operand.shape[0] == 1):
        return e.reshape(operand, [])
    axis = n.axis(x.rank, 1)
    if block:
        spread = e.op("repeat_interleave", operand, repeats=block, dim=axis, kind=operand.kind)
        return e.slice(spread, axis, 0, x.shape[axis])
    shape: list[Dim] = [1] * x.rank
    shape[axis] = operand.shape[0]
    return e.reshape(operand, shape)


@handles("QuantizeLinear")
def quantize(n: OnnxNode) -> Value:
    e, x, scale, zero = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    kind = zero.kind if zero is not None else n.integer("output_dtype") or TensorProto.UINT8
    dtype = dtype_of(kind)
    unsaturated = dtype.startswith("float8") and not n.integer("saturate", 1)
    if kind in WIDE or not is_float(x.dtype) or unsaturated:
        return _quantize_by_steps(n, x, scale, zero, kind)
    if dtype.startswith("float"):
        zero = None  # of float8 it is 0
    return e.op("quantize", x, scale, zero, dtype=dtype, **_layout(n, x, scale))


def _quantize_by_steps(n: OnnxNode, x: Value, scale: Value, zero: Value | None, kind: int) -> Value:
    e = n.emitter
    quotient = e.op("div", e.cast(x, "float32"), e.cast(_aligned(n, x, scale), "float32"))
    name = kind_name(kind)
    if name == "FLOAT4E2M1":
        return to_float4(n, quotient)
    if name.startswith("FLOAT8"):
        return cast_to(n, quotient, kind)
    rounded = e.op("round", quotient)
    if zero is not None:
        rounded = e.op("add", rounded, e.cast(_aligned(n, x, zero), "float32"))
    low, mask = INTEGERS.get(name, (0, 0))
    if name not in INTEGERS:
        info = np.iinfo(numpy_dtype(DTYPES[kind]))
        return e.cast(e.op("clamp", rounded, min=float(info.min), max=float(info.max)), DTYPES[kind])
    return e.op("cast", e.op("clamp", rounded, min=float(low), max=float(low + mask)), dtype=dtype_of(kind), kind=kind)


@handles("DequantizeLinear")
def dequantize(n: OnnxNode) -> Value:
    e, x, scale, zero = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    given = n.integer("output_dtype")
    dtype = dtype_of(given) if given else scale.dtype
    if x.dtype.startswith("float"):  # of small floats it is 0
        zero = None
    return e.op("dequantize", x, scale, zero, dtype=dtype, **_layout(n, x, scale))


@handles("QLinearMatMul")
def quantized_matmul(n: OnnxNode) -> Value:
    """The product of integers, scaled and rounded. Integer products are exact."""
    e = n.emitter
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = n.tensors()
    product = e.op("matmul", _centered(n, a, a_zero, -2), _centered(n, b, b_zero, -1))
    scale = e.op("mul", _along(n, e.cast(a_scale, "float32"), -2), _along(n, e.cast(b_scale, "float32"), -1))
    real = e.op("mul", e.cast(product, "float32"), scale)
    return e.op("quantize", real, e.cast(y_scale, "float32"), y_zero, dtype=y_zero.dtype)


def _along(n: OnnxNode, operand: Value, axis: int) -> Value:
    """Of a matrix [M, N] a value for each row, [M] -> [M, 1] (axis -2), or column, [N] (axis -1); a single one: []."""
    if operand.rank == 0 or (operand.rank == 1 and operand.shape[0] == 1):
        return n.emitter.reshape(operand, [])
    if operand.rank == 1 and axis == -2:
        return n.emitter.reshape(operand, [operand.shape[0], 1])
    return operand


def _centered(n: OnnxNode, x: Value, zero: Value | None, axis: int) -> Value:
    """x [.., M, N] in int32, less its zero points: one, [M] (axis -2) or [N] (axis -1)."""
    e = n.emitter
    wide = e.cast(x, "int32")
    return wide if zero is None else e.op("sub", wide, e.cast(_along(n, zero, axis), "int32"))


@handles("MatMulInteger")
def integer_matmul(n: OnnxNode) -> Value:
    return n.emitter.op("matmul", _centered(n, n.tensor(0), n.get(2), -2), _centered(n, n.tensor(1), n.get(3), -1))


@handles("ConvInteger")
def integer_convolution(n: OnnxNode) -> Value:
    """In float64, which has every sum of 32 bits."""
    from .convolution import convolve

    e = n.emitter
    x = e.cast(_centered(n, n.tensor(0), n.get(2), 0), "float64")
    w = n.tensor(1)
    zero = n.get(3)
    if zero is not None and zero.rank == 1:
        zero = e.reshape(zero, [zero.shape[0], *[1] * (w.rank - 1)])
    w = e.cast(w, "int32") if zero is None else e.op("sub", e.cast(w, "int32"), e.cast(zero, "int32"))
    return e.cast(convolve(n, x, e.cast(w, "float64"), None), "int32")


@handles("QLinearConv")
def quantized_convolution(n: OnnxNode) -> Value:
    from .convolution import convolve

    e = n.emitter
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (n.tensor(i) for i in range(8))
    bias = n.get(8)
    column: list[Dim] = [w.shape[0], *[1] * (w.rank - 1)]

    def channelwise(value: Value, shape: list[Dim]) -> Value:
        single = value.rank == 0 or (isinstance(value.shape[0], int) and value.shape[0] == 1)
        return e.reshape(value, [] if single else shape)

    centered = e.op("sub", e.cast(w, "int32"), e.cast(channelwise(w_zero, column), "int32"))
    whole = convolve(n, e.cast(_centered(n, x, x_zero, 0), "float64"), e.cast(centered, "float64"), None)
    row: list[Dim] = [w.shape[0], *[1] * (w.rank - 2)]
    if bias is not None:
        whole = e.op("add", whole, e.cast(e.reshape(bias, row), "float64"))
    scale = e.op("mul", e.reshape(e.cast(x_scale, "float32"), []), channelwise(e.cast(w_scale, "float32"), row))
    real = e.op("mul", e.cast(whole, "float32"), scale)
    require(y_zero.count == 1 if y_zero.is_known else True, "an output zero point for each channel")
    return e.op("quantize", real, e.cast(y_scale, "float32"), y_zero, dtype=y_zero.dtype)
