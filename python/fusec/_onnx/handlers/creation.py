"""Ops that make tensors of nothing but sizes and numbers."""

from __future__ import annotations

import numpy as np
import onnx

from ..._tensors import numpy_dtype
from ..errors import Refused
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim
from ..values import Value, dtype_of, is_float


@handles("ConstantOfShape")
def constant_of_shape(n: OnnxNode) -> Value:
    e = n.emitter
    shape = n.dims(0)
    if not n.has("value"):
        return e.full(shape, 0, "float32")
    fill = onnx.numpy_helper.to_array(n.attributes["value"]).reshape(-1)[0]
    made = e.full(shape, _number(fill), dtype_of(n.attributes["value"].data_type))
    made.kind = n.attributes["value"].data_type
    return made


def _number(value: np.generic) -> float | int | bool:
    if value.dtype.kind == "b":
        return bool(value)
    return int(value) if value.dtype.kind in "iu" else float(value)


@handles("EyeLike")
def eye_like(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    dtype = dtype_of(n.integer("dtype", x.kind))
    columns = e.op("sub", e.iota(x.shape, 1), n.integer("k"))
    return e.cast(e.op("eq", e.iota(x.shape, 0), columns), dtype)


@handles("Range")
def range_(n: OnnxNode) -> Value:
    """With start or step computed at run time: start + i * step, where the graph says how many there are."""
    e = n.emitter
    start, limit, step = n.tensors()
    if start.is_known and step.is_known and limit.is_known:
        if start.is_symbolic or limit.is_symbolic or step.is_symbolic:
            first, end, by = n.dims(0)[0], n.dims(1)[0], n.dims(2)[0]
            return e.op(
                "arange", start=first if first != 0 else None, end=end, step=by if by != 1 else None, dtype=start.dtype
            )
        a, b, c = (x.elements.item() for x in (start, limit, step))
        count: Dim = max(int(np.ceil((b - a) / c)), 0)
    else:
        declared = n.declared_shape()
        if declared is None or not isinstance(declared[0], int):
            a, b, c = (n.known(i).item() for i in range(3))
            count = max(int(np.ceil((b - a) / c)), 0)
        else:
            count = declared[0]
    wide = "float32" if start.dtype in ("float16", "bfloat16") else start.dtype
    line = e.op("mul", e.arange(count, wide if not is_float(wide) else wide), e.cast(step, wide))
    return e.cast(e.op("add", e.cast(start, wide), line), start.dtype)


@handles("HannWindow", "HammingWindow", "BlackmanWindow")
def window(n: OnnxNode) -> Value:
    """Cosine windows: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N)."""
    from ..values import known

    size = n.single(0)
    count = size if n.integer("periodic", 1) else size - 1
    angle = np.arange(size) * 2 * np.pi / max(count, 1)
    if n.op == "HannWindow":
        made = 0.5 - 0.5 * np.cos(angle)
    elif n.op == "HammingWindow":
        made = 25 / 46 - 21 / 46 * np.cos(angle)
    else:
        made = 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)
    dtype = dtype_of(n.integer("output_datatype", 1))
    return known(made.astype(numpy_dtype(dtype)), kind=n.integer("output_datatype", 1))


@handles("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
def random(n: OnnxNode) -> Value:
    raise Refused("random numbers")


def whole(value: Dim) -> int:
    require(isinstance(value, int), "a symbolic size")
    return int(str(value))
