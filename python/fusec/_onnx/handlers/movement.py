"""Ops that move elements: shapes, slices, joins, padding."""

from __future__ import annotations

import numpy as np

from ..errors import Invalid, Refused
from ..node import OnnxNode, from_front
from ..registry import handles, require
from ..sizes import Dim, Size, product, quotient, texts
from ..values import Value, known


@handles("Reshape")
def reshape(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    wanted = n.dims(1) if n.version >= 5 else list(n.integers("shape"))
    zero = bool(n.integer("allowzero"))
    shape: list[Dim] = [x.shape[i] if d == 0 and not zero else d for i, d in enumerate(wanted)]
    if -1 in shape:
        others = [d for d in shape if not (isinstance(d, int) and d == -1)]
        require(0 not in others, "a -1 beside a dimension of 0")
        shape[shape.index(-1)] = quotient(x.shape, others)
    before, after = product(x.shape), product(shape)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise Invalid(f"the shape {texts(x.shape)} has {before} elements, {texts(wanted)} has not")
    return e.reshape(x, shape)


@handles("Flatten")
def flatten(n: OnnxNode) -> Value:
    x = n.tensor(0)
    axis = x.rank if n.integer("axis", 1) == x.rank else n.axis(x.rank, 1)
    return n.emitter.reshape(x, [product(x.shape[:axis]), product(x.shape[axis:])])


@handles("Squeeze")
def squeeze(n: OnnxNode) -> Value:
    x, axes = n.tensor(0), n.axes()
    if axes is None:
        require(all(isinstance(d, int) for d in x.shape), "which symbolic sizes are 1")
        return n.emitter.reshape(x, [d for d in x.shape if d != 1])
    dropped = {from_front(a, x.rank) for a in axes}
    return n.emitter.reshape(x, [d for i, d in enumerate(x.shape) if i not in dropped])


@handles("Unsqueeze")
def unsqueeze(n: OnnxNode) -> Value:
    x, axes = n.tensor(0), n.axes() or []
    shape: list[Dim] = list(x.shape)
    for axis in sorted(from_front(a, x.rank + len(axes)) for a in axes):
        shape.insert(axis, 1)
    return n.emitter.reshape(x, shape)


@handles("Transpose")
def transpose(n: OnnxNode) -> Value:
    x = n.tensor(0)
    return n.emitter.permute(x, n.integers("perm", list(range(x.rank))[::-1]))


def broadcast_shape(a: list[Dim], b: list[Dim]) -> list[Dim]:
    """NumPy's broadcasting; a symbolic size beside another one is taken to be equal, and checked at a launch."""
    rank = max(len(a), len(b))
    ones: list[Dim] = [1] * rank
    left, right = ones[len(a) :] + a, ones[len(b) :] + b
    if any(isinstance(x, int) and isinstance(y, int) and x != y and 1 not in (x, y) for x, y in zip(left, right)):
        raise Invalid(f"the shapes {a} and {b} do not broadcast")
    return [y if isinstance(x, int) and x == 1 else x for x, y in zip(left, right)]


@handles("Expand")
def expand(n: OnnxNode) -> Value:
    """x broadcast against the given shape: [3, 1] and [2, 1, 4] make [2, 3, 4]."""
    x = n.tensor(0)
    shape = broadcast_shape(list(x.shape), n.dims(1))
    return n.emitter.expand(x, shape)


@handles("Tile")
def tile(n: OnnxNode) -> Value:
    """x [a, b] repeated [r, s] times: [r * a, s * b]."""
    e, x = n.emitter, n.tensor(0)
    repeats = n.dims(1)
    if all(isinstance(r, int) for r in repeats):
        return e.op("repeat", x, kind=x.kind, repeats=repeats)
    spread: list[Dim] = [d for r, s in zip(repeats, x.shape) for d in (r, s)]
    ones: list[Dim] = [d for s in x.shape for d in (1, s)]
    return e.reshape(e.expand(e.reshape(x, ones), spread), [r * s for r, s in zip(repeats, x.shape)])


@handles("Concat")
def concat(n: OnnxNode) -> Value:
    values = n.tensors()
    return n.emitter.concat(values, n.axis(values[0].rank, 1))


@handles("Split")
def split(n: OnnxNode) -> list[Value]:
    x, axis = n.tensor(0), n.axis(n.tensor(0).rank)
    count = len(n.proto.output)
    sizes = n.axes(1, "split")
    if sizes is None:
        total = x.shape[axis]
        count = n.integer("num_outputs", count)
        piece = (total + (count - 1)) // count
        pieces = [piece] * (count - 1)
        return split_into(n, x, axis, [*pieces, total - piece * (count - 1)])
    return split_into(n, x, axis, list(sizes))


def split_into(n: OnnxNode, x: Value, axis: int, sizes: list[Dim]) -> list[Value]:
    """x [.., sum of sizes, ..] -> one [.., size, ..] for each size."""
    if len(sizes) == 1:
        return [x]
    made = n.emitter.op_several("split", len(sizes), x, split_sizes=list(sizes), dim=axis)
    for value in made:
        value.kind = x.kind
    return made


@handles("Slice")
def slice_(n: OnnxNode) -> Value:
    x = n.tensor(0)
    if n.version < 10:
        starts: list[Dim] = list(n.integers("starts"))
        ends: list[Dim] = list(n.integers("ends"))
        axes, steps = n.integers("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        steps = n.whole(4) if n.get(4) is not None else []
        axes = n.whole(3) if n.get(3) is not None else []
        starts, ends = n.dims(1), n.dims(2)
        axes = axes or list(range(len(starts)))
        steps = steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        x = _slice_axis(n, x, from_front(axis, x.rank), start, end, step)
    return x


def _slice_axis(n: OnnxNode, x: Value, axis: int, start: Dim, end: Dim, step: int) -> Value:
    e, size = n.emitter, x.shape[axis]
    if step == 1 and isinstance(size, Size) or isinstance(start, Size) or isinstance(end, Size):
        require(step > 0, "a slice with a negative step of a symbolic dimension")
        if isinstance(end, int) and end >= 2**31 - 1:
            end = size
        return e.slice(x, axis, start, end, step)
    if isinstance(size, Size):
        if step < 0 and isinstance(start, int) and isinstance(end, int) and start in (-1, 2**63 - 1) and end < -(2**31):
            flipped = e.op("flip", x, kind=x.kind, dims=[axis])
            return e.slice(flipped, axis, 0, size, -step)
        require(step > 0, "a slice with a negative step of a symbolic dimension")
        return e.slice(x, axis, start, size if end >= 2**31 - 1 else end, step)
    at = range(size)[start:end:step]
    if step > 0:
        return e.slice(x, axis, at.start if len(at) else 0, at.stop if len(at) else 0, step)
    if len(at) == 0:
        return e.slice(x, axis, 0, 0)
    flipped = e.op("flip", x, kind=x.kind, dims=[axis])
    first = size - 1 - at[0]
    return e.slice(flipped, axis, first, first + (len(at) - 1) * -step + 1, -step)


@handles("Pad")
def pad(n: OnnxNode) -> Value:
    e, x = n.emitter, n.tensor(0)
    pads: list[Dim] = list(n.integers("pads")) if n.has("pads") else n.dims(1)
    axes = [from_front(a, x.rank) for a in n.whole(3)] if n.get(3) is not None else list(range(x.rank))
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        n.text("mode", "constant")
    ]
    before = {a: pads[i] for i, a in enumerate(axes)}
    after = {a: pads[i + len(axes)] for i, a in enumerate(axes)}
    if mode == "constant":
        value = n.get(2) if n.version >= 11 else None
        if value is not None and not value.is_known:
            return _pad_with(n, x, before, after, value)
        fill = value.elements.item() if value is not None else n.number("value")
        return pad_constant(n, x, before, after, fill if value is not None else _plain(x, fill))
    if mode == "circular":
        for axis in range(x.rank):
            if before.get(axis, 0) != 0 or after.get(axis, 0) != 0:
                size, first, last = x.shape[axis], before[axis], after[axis]
                require(
                    isinstance(size, int) and isinstance(first, int) and isinstance(last, int),
                    "wrapping a symbolic dimension",
                )
                positions = np.arange(-int(str(first)), int(str(size)) + int(str(last))) % int(str(size))
                x = e.op("index_select", x, known(positions.astype(np.int64)), kind=x.kind, dim=axis)
        return x
    for axis in range(x.rank):
        first, last = before.get(axis, 0), after.get(axis, 0)
        if (isinstance(first, int) and first < 0) or (isinstance(last, int) and last < 0):
            require(isinstance(first, int) and isinstance(last, int), "symbolic padding beside cropping")
            low, high = min(int(str(first)), 0), min(int(str(last)), 0)
            x = e.slice(x, axis, -low, x.shape[axis] + high)
            before[axis], after[axis] = max(int(str(first)), 0), max(int(str(last)), 0)
    for axis in range(x.rank):
        if before.get(axis, 0) != 0 or after.get(axis, 0) != 0:
            x = _pad_axis(n, x, axis, before[axis], after[axis], mode)
    return x


def _plain(x: Value, fill: float) -> float | int | bool:
    return fill if x.dtype.startswith(("float", "bfloat")) else int(fill)


def pad_constant(
    n: OnnxNode, x: Value, before: dict[int, Dim], after: dict[int, Dim], fill: float | int | bool
) -> Value:
    flat: list[Dim] = []
    for axis in reversed(range(x.rank)):
        flat += [before.get(axis, 0), after.get(axis, 0)]
    while flat and all(isinstance(d, int) and d == 0 for d in flat[-2:]):
        flat = flat[:-2]
    return n.emitter.op("pad", x, kind=x.kind, pad=flat, value=fill) if flat else x


def _pad_with(n: OnnxNode, x: Value, before: dict[int, Dim], after: dict[int, Dim], fill: Value) -> Value:
    """A fill that is computed at run time: chosen where a padded mask says so."""
    e = n.emitter
    padded = pad_constant(n, x, before, after, 0 if x.dtype != "bool" else False)
    inside = pad_constant(n, e.full(x.shape, True, "bool"), before, after, False)
    return e.op("where", inside, padded, e.reshape(fill, []), kind=x.kind)


def _pad_axis(n: OnnxNode, x: Value, axis: int, first: Dim, last: Dim, mode: str) -> Value:
    """The format pads with its own elements in the last dimensions: other ones are read by position."""
    e, size = n.emitter, x.shape[axis]
    if isinstance(size, int) and isinstance(first, int) and isinstance(last, int):
        at = np.arange(-first, size + last)
        if mode == "replicate":
            at = np.clip(at, 0, size - 1)
        else:
            period = max(2 * (size - 1), 1)
            at = np.abs(at) % period
            at = np.where(at >= size, period - at, at)
        return e.op("index_select", x, known(at.astype(np.int64)), kind=x.kind, dim=axis)
    moved = [i for i in range(x.rank) if i != axis] + [axis]
    padded = e.op("pad", e.permute(x, moved), kind=x.kind, pad=[first, last], mode=mode)
    return e.permute(padded, [moved.index(i) for i in range(x.rank)])


@handles("DepthToSpace")
def depth_to_space(n: OnnxNode) -> Value:
    """[N, C * b * b, H, W] -> [N, C, H * b, W * b]"""
    e, x, b = n.emitter, n.tensor(0), n.integer("blocksize")
    batch, depth, height, width = x.shape
    c = depth // (b * b)
    if n.text("mode", "DCR") == "DCR":
        y = e.permute(e.reshape(x, [batch, b, b, c, height, width]), [0, 3, 4, 1, 5, 2])
    else:
        y = e.permute(e.reshape(x, [batch, c, b, b, height, width]), [0, 1, 4, 2, 5, 3])
    return e.reshape(y, [batch, c, height * b, width * b])


@handles("SpaceToDepth")
def space_to_depth(n: OnnxNode) -> Value:
    """[N, C, H * b, W * b] -> [N, C * b * b, H, W]"""
    e, x, b = n.emitter, n.tensor(0), n.integer("blocksize")
    batch, depth, height, width = x.shape
    y = e.reshape(x, [batch, depth, height // b, b, width // b, b])
    order = [0, 3, 5, 1, 2, 4] if n.text("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return e.reshape(e.permute(y, order), [batch, depth * b * b, height // b, width // b])


@handles("Trilu")
def trilu(n: OnnxNode) -> Value:
    e, x, k = n.emitter, n.tensor(0), n.get(1)
    upper = bool(n.integer("upper", 1))
    if k is None or k.is_known:
        return e.op("triu" if upper else "tril", x, kind=x.kind, diagonal=0 if k is None else n.single(1))
    rows, columns = e.iota(x.shape[-2:], 0), e.iota(x.shape[-2:], 1)
    edge = e.op("add", rows, e.reshape(k, []))
    kept = e.op("ge" if upper else "le", columns, edge)
    return e.op("where", kept, x, e.scalar(False if x.dtype == "bool" else 0, x.dtype))


@handles("CenterCropPad")
def center_crop_pad(n: OnnxNode) -> Value:
    """x cropped or padded with 0 on both sides, to the given sizes of `axes`."""
    x, sizes = n.tensor(0), n.dims(1)
    axes = [from_front(a, x.rank) for a in n.integers("axes", list(range(x.rank)))]
    before: dict[int, Dim] = {}
    after: dict[int, Dim] = {}
    for axis, size in zip(axes, sizes):
        have = x.shape[axis]
        if not isinstance(have, int) or not isinstance(size, int):
            raise Refused("a symbolic size")
        if size < have:
            start = (have - size) // 2
            x = n.emitter.slice(x, axis, start, start + size)
        elif size > have:
            before[axis] = (size - have) // 2
            after[axis] = size - have - (size - have) // 2
    return pad_constant(n, x, before, after, False if x.dtype == "bool" else 0)


@handles("ReverseSequence")
def reverse_sequence(n: OnnxNode) -> Value:
    """Each batch row's first length[b] steps backwards: out[t] = x[len - 1 - t] for t < len, else x[t]."""
    e, x, lengths = n.emitter, n.tensor(0), n.tensor(1)
    time, batch = n.axis(x.rank, 0, "time_axis"), n.axis(x.rank, 1, "batch_axis")
    shape: list[Dim] = [1] * x.rank
    shape[batch] = x.shape[batch]
    length = e.reshape(e.cast(lengths, "int64"), shape)
    step = e.iota(x.shape, time)
    turned = e.op("sub", e.op("sub", length, 1), step)
    source = e.op("where", e.op("lt", step, length), turned, step)
    return e.op("gather", x, e.expand(source, x.shape), kind=x.kind, dim=time)
