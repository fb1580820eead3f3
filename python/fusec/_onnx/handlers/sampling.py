"""Ops that read an image between its elements, at places computed at run time: GridSample, RoiAlign."""

from __future__ import annotations

import itertools

import numpy as np

from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim, constant_shape, product
from ..values import Value, known


@handles("GridSample")
def grid_sample(n: OnnxNode) -> Value:
    """x [N, C, sizes..] at grid [N, out.., rank], whose coordinates -1 to 1 span each dimension, the last one first."""
    e, x, grid = n.emitter, n.tensor(0), n.tensor(1)
    sizes = constant_shape(x.shape[2:], "an image")
    out = grid.shape[1:-1]
    corners = bool(n.integer("align_corners"))
    places = []
    for i, size in enumerate(sizes):
        at = e.op("select", grid, dim=grid.rank - 1, index=len(sizes) - 1 - i)
        at = e.reshape(at, [x.shape[0], product(out)])
        if corners:
            at = e.op("mul", e.op("add", at, 1.0), (size - 1) / 2)
        else:
            at = e.op("sub", e.op("mul", e.op("add", at, 1.0), size / 2), 0.5)
        places.append(at)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.text("mode", "linear"), n.text("mode", "linear"))
    padding = n.text("padding_mode", "zeros")
    if padding != "zeros" and mode != "cubic":
        places = [_inside(n, p, s, padding, corners) for p, s in zip(places, sizes)]
    taps = [_taps(n, p, mode) for p in places]
    total: Value | None = None
    for chosen in itertools.product(*taps):
        part = _element(n, x, [i for i, _ in chosen], sizes, padding, corners)
        for _, weight in chosen:
            if weight is not None:
                part = e.op("mul", part, e.cast(e.op("unsqueeze", weight, dim=1), x.dtype))
        total = part if total is None else e.op("add", total, part)
    assert total is not None
    return e.reshape(total, [*x.shape[:2], *out])


def _taps(n: OnnxNode, at: Value, mode: str) -> list[tuple[Value, Value | None]]:
    """The neighbours of a place along one dimension (whole numbers, as floats), and what each counts."""
    e = n.emitter
    if mode == "nearest":
        return [(e.op("round", at), None)]
    low = e.op("floor", at)
    t = e.op("sub", at, low)
    if mode == "linear":
        return [(low, e.op("sub", 1.0, t)), (e.op("add", low, 1.0), t)]
    found: list[tuple[Value, Value | None]] = []
    for step in (-1, 0, 1, 2):
        d = e.op("abs", e.op("sub", t, float(step)))
        a = -0.75
        near = e.op("add", e.op("mul", e.op("mul", e.op("sub", e.op("mul", d, a + 2), a + 3), d), d), 1.0)
        far = e.op(
            "sub", e.op("mul", e.op("add", e.op("mul", e.op("sub", e.op("mul", d, a), 5 * a), d), 8 * a), d), 4 * a
        )
        found.append((e.op("add", low, float(step)), near if step in (0, 1) else far))
    return found


def _inside(n: OnnxNode, at: Value, size: int, padding: str, corners: bool) -> Value:
    e = n.emitter
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        span = max(high - low, 1e-9)
        beyond = e.op("remainder", e.op("sub", at, low), 2 * span)
        at = e.op("add", e.op("minimum", beyond, e.op("sub", 2 * span, beyond)), low)
        if size == 1 and corners:
            at = e.op("mul", at, 0.0)
    return e.op("clamp", at, min=0.0, max=float(size - 1))


def _element(n: OnnxNode, x: Value, places: list[Value], sizes: tuple[int, ...], padding: str, corners: bool) -> Value:
    """x [N, C, sizes..] at whole places [N, P] of each dimension: [N, C, P]; outside as `padding` says."""
    e = n.emitter
    inside: Value | None = None
    flat: Value | None = None
    for place, size in zip(places, sizes):
        if padding == "zeros":
            fits = e.op("logical_and", e.op("ge", place, 0.0), e.op("le", place, float(size - 1)))
            inside = fits if inside is None else e.op("logical_and", inside, fits)
            place = e.op("clamp", place, min=0.0, max=float(size - 1))
        else:
            place = _inside(n, place, size, padding, corners)
        whole = e.cast(place, "int64")
        flat = whole if flat is None else e.op("add", e.op("mul", flat, size), whole)
    assert flat is not None
    count = flat.shape[1]
    table = e.reshape(x, [*x.shape[:2], product(sizes)])
    index = e.expand(e.op("unsqueeze", flat, dim=1), [*x.shape[:2], count])
    found = e.op("gather", table, index, dim=2)
    return found if inside is None else e.op("where", e.op("unsqueeze", inside, dim=1), found, e.scalar(0, x.dtype))


@handles("RoiAlign")
def roi_align(n: OnnxNode) -> Value:
    """For each region an output of fixed size: the mean (or maximum) of samples in each of its bins."""
    e, x, rois, batch = n.emitter, n.tensor(0), n.tensor(1), n.tensor(2)
    height, width = n.integer("output_height", 1), n.integer("output_width", 1)
    samples = n.integer("sampling_ratio")
    require(samples > 0, "a number of samples that depends on the sizes of the regions")
    mode = n.text("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel")
    half = 0.5 if mode == "half_pixel" else 0.0
    count = rois.shape[0]
    sizes = constant_shape(x.shape[2:], "an image")
    axes = []
    for bins, low, high in ((height, 1, 3), (width, 0, 2)):
        start, end = (
            e.op("sub", e.op("mul", e.op("select", rois, dim=1, index=i), n.number("spatial_scale", 1.0)), half)
            for i in (low, high)
        )
        length = e.op("sub", end, start)
        length = length if half else e.op("maximum", length, 1.0)
        steps = (np.arange(bins * samples) + 0.5) / (bins * samples)
        at = e.op("mul", e.reshape(length, [count, 1]), e.cast(known(steps.astype(np.float32)), x.dtype))
        axes.append(e.op("add", at, e.reshape(start, [count, 1])))
    shape: list[Dim] = [count, height * samples, width * samples]
    places = [
        e.reshape(
            e.expand(e.reshape(p, [count, p.shape[1], 1] if i == 0 else [count, 1, p.shape[1]]), shape),
            [count, product(shape[1:])],
        )
        for i, p in enumerate(axes)
    ]
    images = e.op("index_select", x, batch if batch.dtype in ("int32", "int64") else e.cast(batch, "int64"), dim=0)
    outside: Value | None = None
    for place, size in zip(places, sizes):
        off = e.op("logical_or", e.op("lt", place, -1.0), e.op("gt", place, float(size)))
        outside = off if outside is None else e.op("logical_or", outside, off)
    assert outside is not None
    places = [e.op("clamp", p, min=0.0, max=float(s - 1)) for p, s in zip(places, sizes)]
    parts = []
    for chosen in itertools.product(*(_taps(n, p, "linear") for p in places)):
        part = _element(n, images, [i for i, _ in chosen], sizes, "border", True)
        for _, weight in chosen:
            assert weight is not None
            part = e.op("mul", part, e.op("unsqueeze", weight, dim=1))
        parts.append(e.op("where", e.op("unsqueeze", outside, dim=1), e.scalar(0, x.dtype), part))
    grid: list[Dim] = [count, x.shape[1], height, samples, width, samples]
    if n.text("mode", "avg") == "max":  # of the weighted corners, as ONNX defines it
        joined = parts[0]
        for part in parts[1:]:
            joined = e.op("maximum", joined, part)
        return e.op("amax", e.reshape(joined, grid), dim=[3, 5])
    joined = parts[0]
    for part in parts[1:]:
        joined = e.op("add", joined, part)
    return e.op("mean", e.reshape(joined, grid), dim=[3, 5])


@handles("DeformConv")
def deformable_convolution(n: OnnxNode) -> Value:
    """A convolution that reads each tap of its window at an offset: the windows are gathered, then multiplied."""
    e, x, w, offset = n.emitter, n.tensor(0), n.tensor(1), n.tensor(2)
    bias, mask = n.get(3), n.get(4)
    sizes = constant_shape(x.shape, "a deformable convolution")
    kernel = list(constant_shape(w.shape[2:], "a kernel"))
    rank, taps = len(kernel), int(np.prod(kernel))
    strides, dilations = n.integers("strides", [1] * rank), n.integers("dilations", [1] * rank)
    pads = n.integers("pads", [0] * (2 * rank))
    groups, shares = n.integer("group", 1), n.integer("offset_group", 1)
    out = constant_shape(offset.shape[2:], "offsets")
    count, batch, channels = int(np.prod(out)), sizes[0], sizes[1]
    rows = batch * shares
    # Offsets are [batch, share, tap, dimension, out..]; the places without them are known.
    moved = e.reshape(offset, [rows, taps, rank, count])
    grid = np.meshgrid(*(np.arange(k) for k in kernel), indexing="ij")
    start = np.meshgrid(*(np.arange(o) for o in out), indexing="ij")
    places = []
    for i in range(rank):
        base = grid[i].reshape(-1, 1) * dilations[i] + start[i].reshape(1, -1) * strides[i] - pads[i]
        at = e.op("add", e.op("select", moved, dim=2, index=i), e.cast(known(base.astype(np.float32)), x.dtype))
        places.append(e.reshape(at, [rows, taps * count]))
    images = e.reshape(x, [rows, channels // shares, *sizes[2:]])
    total: Value | None = None
    for chosen in itertools.product(*(_taps(n, p, "linear") for p in places)):
        part = _element(n, images, [i for i, _ in chosen], sizes[2:], "zeros", True)
        for _, weight in chosen:
            assert weight is not None
            part = e.op("mul", part, e.op("unsqueeze", weight, dim=1))
        total = part if total is None else e.op("add", total, part)
    assert total is not None
    if mask is not None:
        total = e.op("mul", total, e.reshape(mask, [rows, 1, taps * count]))
    columns = e.reshape(total, [batch, groups, channels // groups * taps, count])
    filters = e.reshape(w, [1, groups, w.shape[0] // groups, channels // groups * taps])
    y = e.reshape(e.op("matmul", filters, columns), [batch, w.shape[0], *out])
    return y if bias is None else e.op("add", y, e.reshape(bias, [w.shape[0], *[1] * rank]))
