"""Norms."""

from __future__ import annotations

import numpy as np

from ..errors import Refused
from ..node import OnnxNode, from_front
from ..registry import handles
from ..sizes import Dim, texts
from ..values import Value


@handles("BatchNormalization")
def batch_norm(n: OnnxNode) -> list[Value]:
    """x [N, C, sizes..]; scale, bias, mean and variance [C]."""
    e = n.emitter
    x, scale, bias, mean, var = n.tensors()
    # Before version 14 a node with one result is that of inference.
    if not n.integer("training_mode") and (n.version >= 14 or not any(n.uses(i) for i in range(1, 5))):
        same = all(v.dtype == x.dtype for v in (scale, bias, mean, var))
        if same:
            return [e.op("batch_norm", x, scale, bias, mean, var, eps=n.number("epsilon"))]
        return [e.cast(_normalized(n, x, scale, bias, mean, var), x.dtype)]
    dims = [i for i in range(x.rank) if i != 1]
    current_mean, current_var = e.op("mean", x, dim=dims), e.op("var", x, dim=dims, correction=0)
    momentum = n.number("momentum", 0.9)

    def updated(old: Value, new: Value) -> Value:
        return e.op("add", e.op("mul", old, momentum), e.op("mul", new, 1 - momentum))

    y = e.cast(_normalized(n, x, scale, bias, current_mean, current_var), x.dtype)
    return [y, updated(mean, current_mean), updated(var, current_var)]


def _normalized(n: OnnxNode, x: Value, scale: Value, bias: Value, mean: Value, var: Value) -> Value:
    """(x - mean) / sqrt(var + epsilon) * scale + bias; x [N, C, sizes..], the others [C]."""
    e = n.emitter
    shape: list[Dim] = [x.shape[1] if i == 1 else 1 for i in range(max(x.rank, 2))]
    scale, bias, mean, var = (e.reshape(v, shape) for v in (scale, bias, mean, var))
    root = e.op("sqrt", e.op("add", var, n.number("epsilon")))
    return e.op("add", e.op("mul", e.op("div", e.op("sub", x, mean), root), scale), bias)


@handles("LayerNormalization")
def layer_norm(n: OnnxNode) -> list[Value | None]:
    """x [rows.., sizes..] over its dimensions from `axis` on; scale and bias [sizes..]; mean [rows.., 1..]."""
    e, x, scale, bias = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    axis = n.axis(x.rank, -1)
    shape = x.shape[axis:]
    plain = e.sizes.same(scale.shape, shape) and (bias is None or e.sizes.same(bias.shape, shape))
    results: list[Value | None] = [None, None, None]
    if plain:
        results[0] = e.op("layer_norm", x, scale, bias, normalized_shape=texts(shape), eps=n.number("epsilon"))
    if n.uses(1) or n.uses(2) or not plain:
        dims = list(range(axis, x.rank))
        wide = e.cast(x, "float32") if n.integer("stash_type", 1) == 1 else x
        mean = e.op("mean", wide, dim=dims, keepdim=True)
        spread = e.op("add", e.op("var", wide, dim=dims, keepdim=True, correction=0), n.number("epsilon"))
        results[1:] = [mean, e.op("rsqrt", spread)]
        if not plain:
            y = e.cast(e.op("mul", e.op("sub", wide, mean), results[2]), x.dtype)
            y = e.op("mul", y, scale)
            results[0] = y if bias is None else e.op("add", y, bias)
    return results


@handles("RMSNormalization")
def rms_norm(n: OnnxNode) -> Value:
    """x [rows.., sizes..] over its dimensions from `axis` on; scale [sizes..]."""
    e, x, scale = n.emitter, n.tensor(0), n.tensor(1)
    shape = x.shape[n.axis(x.rank, -1) :]
    if not e.sizes.same(scale.shape, shape):
        raise Refused("a weight of another shape than the normalized one")
    return e.op("rms_norm", x, scale, normalized_shape=texts(shape), eps=n.number("epsilon"))


@handles("InstanceNormalization")
def instance_norm(n: OnnxNode) -> Value:
    return n.emitter.op("instance_norm", *n.tensors(), eps=n.number("epsilon"))


@handles("GroupNormalization")
def group_norm(n: OnnxNode) -> Value:
    """x [N, C, sizes..] over groups of channels; scale and bias [C]."""
    e, x, scale, bias = n.emitter, *n.tensors()
    groups = n.integer("num_groups")
    if n.version < 21:  # one weight a group
        channels = x.shape[1]
        each = channels // groups
        scale, bias = (e.op("repeat_interleave", v, repeats=each, dim=0) for v in (scale, bias))
    return e.op("group_norm", x, scale, bias, num_groups=groups, eps=n.number("epsilon"))


@handles("MeanVarianceNormalization")
def mean_variance_norm(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    dims = [from_front(a, x.rank) for a in n.integers("axes", [0, 2, 3])]
    centered = e.op("sub", x, e.op("mean", x, dim=dims, keepdim=True))
    return e.op("div", centered, e.op("add", e.op("std", x, dim=dims, keepdim=True, correction=0), 1e-9))


@handles("LpNormalization")
def lp_norm(n: OnnxNode) -> Value:
    """x over its norm along the axis; 0 where the norm is 0."""
    e, x = n.emitter, n.tensor(0)
    size = e.op("vector_norm", x, dim=[n.axis(x.rank, -1)], keepdim=True, ord=float(n.integer("p", 2)))
    zero = e.op("eq", size, 0.0)
    return e.op("where", zero, e.scalar(np.float32(0).item(), x.dtype), e.op("div", x, size))
