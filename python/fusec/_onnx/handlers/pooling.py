"""Pooling. What the format's ops have no attributes for is made of windows, whose elements are read by position."""

from __future__ import annotations

import numpy as np

from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim, constant_shape, product
from ..values import Value, is_float, known
from .movement import pad_constant
from .reduction import _extreme


class Windows:
    """Where the windows of a pooling op lie."""

    def __init__(self, n: OnnxNode, x: Value) -> None:
        spatial = x.rank - 2
        self.spatial = spatial
        self.kernel = n.integers("kernel_shape")
        self.strides = n.integers("strides", [1] * spatial)
        self.dilations = n.integers("dilations", [1] * spatial)
        self.ceil = bool(n.integer("ceil_mode"))
        mode = n.text("auto_pad", "NOTSET")
        self.begins, self.ends = self._pads(n, x, mode)
        self.fits = (
            self.begins == self.ends and not self.ceil and all(2 * p <= k for p, k in zip(self.begins, self.kernel))
        )

    def _pads(self, n: OnnxNode, x: Value, mode: str) -> tuple[list[int], list[int]]:
        from .convolution import padding

        pads = padding(n, x, self.kernel, self.strides, self.dilations)
        return pads[: self.spatial], pads[self.spatial :]

    def counts(self, sizes: tuple[int, ...]) -> list[int]:
        """The number of windows along each dimension. None begins in the padding behind the end."""
        found = []
        for i, size in enumerate(sizes):
            span = size + self.begins[i] + self.ends[i] - (self.dilations[i] * (self.kernel[i] - 1) + 1)
            count = (-(-span // self.strides[i]) if self.ceil else span // self.strides[i]) + 1
            if self.ceil and (count - 1) * self.strides[i] >= size + self.begins[i]:
                count -= 1
            found.append(count)
        return found

    def padded(self, n: OnnxNode, x: Value, counts: list[int], fill: float | int | bool) -> Value:
        """x [N, C, sizes..], padded at both ends to all that the windows touch."""
        sizes = constant_shape(x.shape[2:], "pooling with uneven padding")
        after: dict[int, Dim] = {}
        for i, size in enumerate(sizes):
            reach = (counts[i] - 1) * self.strides[i] + (self.kernel[i] - 1) * self.dilations[i] + 1
            after[i + 2] = max(reach - size - self.begins[i], 0)
        return pad_constant(n, x, dict(enumerate(self.begins, 2)), after, fill)

    def of(self, n: OnnxNode, x: Value, counts: list[int]) -> Value:
        """[N, C, windows.., positions in a window..] of a padded x."""
        e = n.emitter
        for i in range(self.spatial):
            at = np.arange(counts[i])[:, None] * self.strides[i] + np.arange(self.kernel[i]) * self.dilations[i]
            axis = 2 + i
            x = e.op("index_select", x, known(at.reshape(-1).astype(np.int64)), kind=x.kind, dim=axis)
        shape: list[Dim] = [*x.shape[:2]]
        for i in range(self.spatial):
            shape += [counts[i], self.kernel[i]]
        x = e.reshape(x, shape)
        windows = [2 + 2 * i for i in range(self.spatial)]
        return e.permute(x, [0, 1, *windows, *[w + 1 for w in windows]])


@handles("MaxPool")
def max_pool(n: OnnxNode) -> list[Value | None]:
    """x [N, C, sizes..] -> maxima and their positions, [N, C, windows..]."""
    e, x = n.emitter, n.tensor(0)
    w = Windows(n, x)
    if w.fits and w.spatial <= 3 and not n.uses(1):
        y = e.op(
            f"max_pool{w.spatial}d", x, kernel_size=w.kernel, stride=w.strides, padding=w.begins, dilation=w.dilations
        )
        return [y]
    sizes = constant_shape(x.shape[2:], "max pooling with uneven padding")
    counts = w.counts(sizes)
    windows = w.of(n, w.padded(n, x, counts, _extreme(x.dtype, lowest=True)), counts)
    dims = list(range(2 + w.spatial, 2 + 2 * w.spatial))
    y = e.op("amax", windows, dim=dims)
    return [y, _positions(n, w, windows, sizes, counts) if n.uses(1) else None]


def _positions(n: OnnxNode, w: Windows, windows: Value, sizes: tuple[int, ...], counts: list[int]) -> Value:
    """The greatest elements' places in the flattened tensor, counted over all dimensions."""
    e = n.emitter
    flat = e.reshape(windows, [*windows.shape[: 2 + w.spatial], product(w.kernel)])
    best = e.op("argmax", flat, dim=flat.rank - 1)
    place: Value | None = None
    order = list(range(w.spatial))
    column = n.integer("storage_order") == 1
    stride = {}
    total = 1
    for i in order if column else reversed(order):
        stride[i], total = total, total * sizes[i]
    below = 1
    for i in reversed(order):
        inside = e.op("remainder", e.op("div", best, below, rounding_mode="floor"), w.kernel[i])
        below *= w.kernel[i]
        start = known(np.arange(counts[i]) * w.strides[i] - w.begins[i])
        start = e.reshape(start, [counts[i] if j == 2 + i else 1 for j in range(best.rank)])
        at = e.op("mul", e.op("add", e.op("mul", inside, w.dilations[i]), start), stride[i])
        place = at if place is None else e.op("add", place, at)
    assert place is not None
    batch, channels = windows.shape[:2]
    image = e.reshape(e.arange(batch * channels), [batch, channels, *[1] * w.spatial])
    return e.op("add", e.op("mul", image, total), place)


@handles("AveragePool")
def average_pool(n: OnnxNode) -> Value:
    """x [N, C, sizes..] -> [N, C, windows..]; the mean counts padding where count_include_pad says so."""
    e, x = n.emitter, n.tensor(0)
    w = Windows(n, x)
    counts_pad = bool(n.integer("count_include_pad"))
    if w.fits and w.spatial <= 3 and all(d == 1 for d in w.dilations):
        return e.op(
            f"avg_pool{w.spatial}d",
            x,
            kernel_size=w.kernel,
            stride=w.strides,
            padding=w.begins,
            count_include_pad=counts_pad,
        )
    total = _window_sums(n, w, x)
    sizes = constant_shape(x.shape[2:], "average pooling with uneven padding")
    counted = np.ones(1, np.float64)
    for i, (size, count) in enumerate(zip(sizes, w.counts(sizes))):
        at = np.arange(count)[:, None] * w.strides[i] + np.arange(w.kernel[i]) * w.dilations[i] - w.begins[i]
        low, high = (-w.begins[i], size + w.ends[i]) if counts_pad else (0, size)
        inside = ((at >= low) & (at < high)).sum(1)
        counted = counted[..., None] * inside
    return e.op("div", total, e.cast(known(counted.reshape(counted.shape[1:])), x.dtype))


def _window_sums(n: OnnxNode, w: Windows, x: Value) -> Value:
    """x [N, C, sizes..] -> [N, C, windows..]"""
    e = n.emitter
    counts = w.counts(constant_shape(x.shape[2:], "pooling with uneven padding"))
    windows = w.of(n, w.padded(n, x, counts, 0.0), counts)
    return e.op("sum", windows, dim=list(range(2 + w.spatial, 2 + 2 * w.spatial)))


@handles("LpPool")
def lp_pool(n: OnnxNode) -> Value:
    e, x, p = n.emitter, n.tensor(0), n.number("p", 2)
    powers = e.op("pow", e.op("abs", x), float(p))
    return e.op("pow", _window_sums(n, Windows(n, x), powers), 1.0 / p)


@handles("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n: OnnxNode) -> Value:
    """x [N, C, sizes..] -> [N, C, 1..]"""
    e, x = n.emitter, n.tensor(0)
    dims = list(range(2, x.rank))
    if n.op == "GlobalLpPool":
        return e.op("vector_norm", x, dim=dims, keepdim=True, ord=float(n.number("p", 2)))
    return e.op("mean" if n.op == "GlobalAveragePool" else "amax", x, dim=dims, keepdim=True)


@handles("MaxUnpool")
def max_unpool(n: OnnxNode) -> Value:
    """Zeros, with x's elements at the places that `indices` name in the flattened output."""
    e, x, indices = n.emitter, n.tensor(0), n.tensor(1)
    kernel = n.integers("kernel_shape")
    spatial = len(kernel)
    strides, pads = n.integers("strides", [1] * spatial), n.integers("pads", [0] * (2 * spatial))
    shape: list[Dim] = [
        *x.shape[:2],
        *((x.shape[i + 2] - 1) * strides[i] - pads[i] - pads[i + spatial] + kernel[i] for i in range(spatial)),
    ]
    places = e.reshape(indices, [product(x.shape)])
    made = e.op("index_put", e.full([product(shape)], 0, x.dtype), e.reshape(x, [product(x.shape)]), places)
    y = e.reshape(made, shape)
    if n.get(2) is None:
        return y
    wanted = n.dims(2)  # a larger output has the elements at its beginnings
    return pad_constant(n, y, {}, {i: wanted[i] - shape[i] for i in range(2, x.rank)}, 0)


@handles("LRN")
def local_response(n: OnnxNode) -> Value:
    """x / (bias + alpha / size * the sum of squares over `size` neighbouring channels) ^ beta"""
    e, x, size = n.emitter, n.tensor(0), n.integer("size")
    require(is_float(x.dtype), "integers")
    squares = e.op("square", x)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    padded = pad_constant(n, squares, {1: before}, {1: after}, 0.0)
    total: Value | None = None
    for i in range(size):
        part = e.slice(padded, 1, i, x.shape[1] + i)
        total = part if total is None else e.op("add", total, part)
    assert total is not None
    base = e.op("add", e.op("mul", total, n.number("alpha", 1e-4) / size), n.number("bias", 1.0))
    return e.op("div", x, e.op("pow", base, n.number("beta", 0.75)))
