"""Ops that read or write by index. ONNX counts negative indices from the end, the format does not."""

from __future__ import annotations

import numpy as np

from ..errors import Invalid, Refused
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim, Shape, product
from ..values import Array, Value, is_float, known


def from_start(n: OnnxNode, index: Value, size: Dim, may_miss: bool = False) -> Value:
    """Indices that count from the start. Known ones are checked, unless they may name no element."""
    e = n.emitter
    if index.is_known and not index.is_symbolic:
        at = index.elements.astype(np.int64)
        if not may_miss:
            _check(at, size)
        if not (at < 0).any():
            return known(at)
        if isinstance(size, int):
            return known(np.where(at < 0, at + size, at))
    if index.dtype not in ("int32", "int64"):
        return e.cast(index, "int64")
    return e.op("where", e.op("lt", index, 0), e.op("add", index, size), index)


def _check(index: Array, size: Dim) -> None:
    if isinstance(size, int) and ((index < -size) | (index >= size)).any():
        outside = index[(index < -size) | (index >= size)].reshape(-1)[0]
        raise Invalid(f"the index {outside} of a dimension of {size}")


@handles("Gather")
def gather(n: OnnxNode) -> Value:
    """x [a.., size, b..] at index [i..] of the axis: [a.., i.., b..]"""
    e, x, index = n.emitter, n.tensor(0), n.tensor(1)
    axis = n.axis(x.rank)
    size = x.shape[axis]
    if index.is_known and not index.is_symbolic and index.rank == 0:
        _check(index.elements, size)
        at = int(index.elements)
        at = at + size if at < 0 and isinstance(size, int) else at
        return e.op("select", x, kind=x.kind, dim=axis, index=at)
    at_ = from_start(n, index, size)
    if axis == 0 and x.rank == 2 and index.rank >= 1:
        return e.op("embedding", x, at_, kind=x.kind)
    chosen = e.op("index_select", x, e.reshape(at_, [product(index.shape)]), kind=x.kind, dim=axis)
    return e.reshape(chosen, [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@handles("GatherElements")
def gather_elements(n: OnnxNode) -> Value:
    """y[i, j] = x[index[i, j], j] for axis 0: the shape of the index."""
    x, index = n.tensor(0), n.tensor(1)
    axis = n.axis(x.rank)
    return n.emitter.op("gather", x, from_start(n, index, x.shape[axis]), kind=x.kind, dim=axis)


@handles("GatherND")
def gather_nd(n: OnnxNode) -> Value:
    """The tuples of indices become positions in the flattened dimensions that they index."""
    e, x, index = n.emitter, n.tensor(0), n.tensor(1)
    batch = n.integer("batch_dims")
    depth = index.shape[-1]
    require(isinstance(depth, int), "a symbolic number of indices")
    parts = _parts(n, index, x.shape[batch:])
    flat = _linear(n, parts, x.shape[batch : batch + len(parts)])  # [batch.., m..]
    rest = x.shape[batch + len(parts) :]
    rows = product(x.shape[:batch])
    inner = product(x.shape[batch : batch + len(parts)])
    if batch:
        flat = e.reshape(flat, [rows, product(flat.shape[batch:])])
        flat = e.op("add", flat, e.op("mul", e.reshape(e.arange(rows), [rows, 1]), inner))
    table = e.reshape(x, [rows * inner, product(rest)])
    chosen = e.op("index_select", table, e.reshape(flat, [product(flat.shape)]), kind=x.kind, dim=0)
    return e.reshape(chosen, [*index.shape[:-1], *rest])


def _parts(n: OnnxNode, index: Value, sizes: Shape) -> list[Value]:
    """The last dimension's entries one by one, each counted from the start."""
    e = n.emitter
    last = index.rank - 1
    count = int(str(index.shape[-1]))
    if count > len(sizes):
        raise Invalid(f"tuples of {count} indices of {len(sizes)} dimensions")
    if index.is_known and not index.is_symbolic:
        columns = [known(index.elements[..., i]) for i in range(count)]
    else:
        columns = [e.op("select", e.lifted(index), dim=last, index=i) for i in range(count)]
    return [from_start(n, column, size) for column, size in zip(columns, sizes)]


def _linear(n: OnnxNode, parts: list[Value], sizes: Shape) -> Value:
    """Positions i, j, k, all [m..], in dimensions [I, J, K]: (i * J + j) * K + k, [m..]."""
    e = n.emitter
    flat = e.cast(parts[0], "int64")
    for part, size in zip(parts[1:], sizes[1:]):
        flat = e.op("add", e.op("mul", flat, size), part)
    return flat


@handles("Scatter", "ScatterElements")
def scatter_elements(n: OnnxNode) -> Value:
    """x with updates; with a reduction, x's element and all updates of one place are joined."""
    e, x, index, updates = n.emitter, n.tensor(0), n.tensor(1), n.tensor(2)
    axis = n.axis(x.rank)
    at = from_start(n, index, x.shape[axis])
    how = n.text("reduction", "none")
    if how == "none":
        return e.op("scatter", x, e.cast(at, "int64"), updates, kind=x.kind, dim=axis)
    places = [at if i == axis else e.iota(index.shape, i) for i in range(x.rank)]
    places = [e.expand(e.cast(p, "int64"), index.shape) for p in places]
    if how == "add":
        return e.op("index_put", x, updates, *places, accumulate=True)
    return _joined(n, x, _linear(n, places, x.shape), updates, how)


@handles("ScatterND")
def scatter_nd(n: OnnxNode) -> Value:
    """x [sizes.., rest..] with updates [m.., rest..] at the tuples of index [m.., len(sizes)]."""
    e, x, index, updates = n.emitter, n.tensor(0), n.tensor(1), n.tensor(2)
    how = n.text("reduction", "none")
    parts = _parts(n, index, x.shape)
    if how in ("none", "add"):
        return e.op("index_put", x, updates, *parts, kind=x.kind, accumulate=True if how == "add" else None)
    inner = x.shape[len(parts) :]
    rows = e.reshape(_linear(n, parts, x.shape[: len(parts)]), [product(index.shape[:-1]), 1])
    flat = e.op("add", e.op("mul", rows, product(inner)), e.reshape(e.arange(product(inner)), [1, product(inner)]))
    return _joined(n, x, flat, updates, how)


def _joined(n: OnnxNode, x: Value, places: Value, updates: Value, how: str) -> Value:
    """max, min or mul over the updates of each place: a mask [elements of x, updates] chooses them."""
    e = n.emitter
    total, count = product(x.shape), product(places.shape)
    require(
        not (isinstance(total, int) and isinstance(count, int)) or total * count <= 2**24,
        f"a scatter with {how} of so many elements",
    )
    hit = e.op("eq", e.reshape(e.arange(total), [total, 1]), e.reshape(places, [1, count]))
    flat = e.reshape(updates, [1, count])
    op, neutral = {"max": ("amax", "low"), "min": ("amin", "high"), "mul": ("prod", "one")}[how]
    from .reduction import _extreme

    idle = 1 if neutral == "one" else _extreme(x.dtype, lowest=neutral == "low")
    chosen = e.op("where", hit, flat, e.scalar(idle, x.dtype))
    joined = e.cast(e.op(op, chosen, dim=[1]), x.dtype)
    both = {"max": "maximum", "min": "minimum", "mul": "mul"}[how]
    return e.op(both, x, e.reshape(joined, x.shape))


@handles("TensorScatter")
def tensor_scatter(n: OnnxNode) -> Value:
    """A cache with a run of new entries written from write_indices[b] on along the axis."""
    e, cache, update, start = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    axis = n.axis(cache.rank, -2)
    step = e.iota(update.shape, axis)
    if start is not None:
        step = e.op(
            "add",
            step,
            e.reshape(start, [d if i == 0 else 1 for i, d in enumerate([update.shape[0], *[1] * (cache.rank - 1)])]),
        )
    if n.text("mode", "linear") == "circular":
        step = e.op("remainder", step, cache.shape[axis])
    return e.op("scatter", cache, e.expand(step, update.shape), update, kind=cache.kind, dim=axis)


@handles("OneHot")
def one_hot(n: OnnxNode) -> Value:
    """index [i..] -> [i.., depth, ..] with the depth at `axis`: on where the index is the position, else off."""
    e, index, values = n.emitter, n.tensor(0), n.tensor(2)
    depth = n.single(1)
    rank = index.rank + 1
    axis = n.axis(rank, -1)
    whole = index if not is_float(index.dtype) else e.cast(index, "int64")
    at = from_start(n, e.cast(whole, "int64"), depth, may_miss=True)
    spread = e.reshape(at, [*index.shape[:axis], 1, *index.shape[axis:]])
    places = e.reshape(e.arange(depth), [depth if i == axis else 1 for i in range(rank)])
    off, on = (e.op("select", values, dim=0, index=i) for i in (0, 1))
    return e.op("where", e.op("eq", spread, places), on, off)


@handles("TopK")
def top_k(n: OnnxNode) -> list[Value]:
    """x [.., size, ..] -> elements and int64 positions, both [.., k, ..]."""
    x = n.tensor(0)
    k = n.dims(1)[0] if n.version >= 10 else n.integer("k")
    return n.emitter.op_several(
        "topk",
        2,
        x,
        k=k,
        dim=n.axis(x.rank, -1),
        largest=bool(n.integer("largest", 1)),
        sorted=bool(n.integer("sorted", 1)),
    )


@handles("Compress")
def compress(n: OnnxNode) -> Value:
    """The condition decides the result's shape, and so must be known."""
    e, x = n.emitter, n.tensor(0)
    kept = np.nonzero(n.known(1))[0]
    if n.has("axis"):
        return e.select_positions(x, n.axis(x.rank), kept)
    flat = e.reshape(x, [product(x.shape)])
    return e.select_positions(flat, 0, kept)


def as_positions(array: Array) -> Value:
    if array.dtype == object:
        raise Refused("symbolic positions")
    return known(array.astype(np.int64))
