"""Casts, also to types that the graph holds in wider ones."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..errors import Refused
from ..node import OnnxNode
from ..registry import handles
from ..values import DTYPES, Value, dtype_of, is_float, kind_name

INTEGERS = {"INT4": (-8, 15), "UINT4": (0, 15), "INT2": (-2, 3), "UINT2": (0, 3)}
FINITE = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


@handles("Cast")
def cast(n: OnnxNode) -> Value:
    return cast_to(n, n.tensor(0), n.integer("to"))


@handles("CastLike")
def cast_like(n: OnnxNode) -> Value:
    return cast_to(n, n.tensor(0), n.tensor(1).kind)


def cast_to(n: OnnxNode, x: Value, kind: int) -> Value:
    e = n.emitter
    if x.kind == kind:
        return x
    dtype_of(kind)
    name = kind_name(kind)
    if name in INTEGERS:
        return _to_few_bits(n, x, kind)
    if name == "FLOAT4E2M1":
        return to_float4(n, x)
    if name.endswith("FNUZ"):
        return to_fnuz(n, x, kind)
    dtype = DTYPES[kind]
    if dtype == "float8_e8m0fnu":
        return _to_scale(n, x)
    if dtype in FINITE:
        return _to_float8(n, x, dtype)
    if not is_float(x.dtype) and not x.dtype.startswith("float") or is_float(dtype) or dtype == "bool":
        return e.cast(x, dtype)
    return e.cast(e.float_of(x), dtype)


def _to_float8(n: OnnxNode, x: Value, dtype: str) -> Value:
    """With `saturate` what is too large becomes the largest number, else NaN or infinity."""
    e = n.emitter
    x = e.float_of(x)
    if not n.integer("saturate", 1):
        # Beyond the middle between the largest number and the next step, which rounds to the even neighbour.
        size = e.cast(e.op("abs", x), "float32")
        if dtype == "float8_e4m3fn":
            return e.cast(e.op("where", e.op("gt", size, 464.0), e.scalar(float("nan"), x.dtype), x), dtype)
        return e.cast(
            e.op("where", e.op("ge", size, 61440.0), e.op("mul", x, e.scalar(float("inf"), x.dtype)), x), dtype
        )
    return e.cast(e.op("clamp", x, min=-FINITE[dtype], max=FINITE[dtype]), dtype)


def _to_few_bits(n: OnnxNode, x: Value, kind: int) -> Value:
    """Truncated towards 0, then the low bits: as int8 or uint8."""
    e = n.emitter
    low, mask = INTEGERS[kind_name(kind)]
    whole = e.cast(e.float_of(x) if not x.dtype.startswith(("int", "uint")) else x, "int32")
    if low:
        bits = e.op("sub", e.op("bitwise_and", e.op("sub", whole, low), mask), -low)
    else:
        bits = e.op("bitwise_and", whole, mask)
    made = e.op("cast", bits, dtype=dtype_of(kind), kind=kind)
    return made


def to_float4(n: OnnxNode, x: Value) -> Value:
    """Rounded half to even to 0, 0.5, 1, 1.5, 2, 3, 4, 6, as float8_e4m3fn. Steps: 0.5 below 2, 1 below 4, else 2."""
    e = n.emitter
    x = e.float_of(x)
    size = e.op("clamp", e.op("abs", x), max=6.0)
    step = e.op("where", e.op("lt", size, 2.0), 0.5, e.op("where", e.op("lt", size, 4.0), 1.0, 2.0))
    rounded = e.op("mul", e.op("round", e.op("div", size, step)), step)
    signed = e.op("where", e.op("lt", x, 0.0), e.op("neg", rounded), rounded)
    return e.op("cast", signed, dtype="float8_e4m3fn", kind=TensorProto.FLOAT4E2M1)


def to_fnuz(n: OnnxNode, x: Value, kind: int) -> Value:
    """The floats without infinities and negative zero, as float16, which has all their values.

    Their exponents are one less than those of float8_e4m3fn and float8_e5m2: twice x is rounded to these and halved.
    Above what these have, float8_e4m3fnuz has 240, and float8_e5m2fnuz has the steps of float8_e5m2 itself.
    """
    e = n.emitter
    x = e.cast(e.float_of(x), "float32")
    size = e.op("abs", x)
    if kind_name(kind) == "FLOAT8E4M3FNUZ":
        largest, beyond, base = 240.0, 248.0, "float8_e4m3fn"
        small = e.op(
            "mul", e.cast(e.cast(e.op("clamp", e.op("mul", x, 2.0), min=-448.0, max=448.0), base), "float32"), 0.5
        )
        top = e.op("mul", e.op("sign", x), largest)
        rounded = e.op("where", e.op("gt", size, 232.0), top, small)
    else:
        largest, beyond, base = 57344.0, 61440.0, "float8_e5m2"
        small = e.op("mul", e.cast(e.cast(e.op("clamp", e.op("mul", x, 2.0), min=-4.0, max=4.0), base), "float32"), 0.5)
        large = e.cast(e.cast(e.op("clamp", x, min=-largest, max=largest), base), "float32")
        rounded = e.op("where", e.op("gt", size, 1.0), large, small)
    rounded = e.op("where", e.op("eq", rounded, 0.0), e.scalar(0.0, "float32"), rounded)
    if not n.integer("saturate", 1):
        rounded = e.op("where", e.op("ge", size, beyond), e.scalar(float("nan"), "float32"), rounded)
    return e.op("cast", rounded, dtype="float16", kind=kind)


def _to_scale(n: OnnxNode, x: Value) -> Value:
    """Powers of two: `round_mode` says which of the two neighbours is taken."""
    e = n.emitter
    x = e.cast(e.float_of(x), "float32")
    mode = n.text("round_mode", "up")
    near = e.cast(e.cast(x, "float8_e8m0fnu"), "float32")
    if mode == "nearest":
        return e.cast(x, "float8_e8m0fnu")
    if mode == "up":
        chosen = e.op("where", e.op("lt", near, x), e.op("mul", near, 2.0), near)
    else:
        chosen = e.op("where", e.op("gt", near, x), e.op("mul", near, 0.5), near)
    top = float(np.float32(2.0) ** 127)
    return e.cast(e.op("minimum", chosen, top) if n.integer("saturate", 1) else chosen, "float8_e8m0fnu")


@handles("BitCast")
def bit_cast(n: OnnxNode) -> Value:
    x = n.tensor(0)
    kind = n.integer("to")
    if dtype_of(kind) == x.dtype:
        return x
    same_bits = {
        ("int8", "uint8"),
        ("int16", "uint16"),
        ("int32", "uint32"),
        ("int64", "uint64"),
        ("bool", "uint8"),
        ("bool", "int8"),
    }
    if (x.dtype, dtype_of(kind)) in same_bits or (dtype_of(kind), x.dtype) in same_bits:
        return n.emitter.cast(x, dtype_of(kind))
    raise Refused("the format has no cast that keeps the bits of a float")
