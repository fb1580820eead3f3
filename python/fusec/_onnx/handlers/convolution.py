"""Convolutions and their transposes."""

from __future__ import annotations

import numpy as np

from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Dim, constant_shape
from ..values import Value
from .movement import pad_constant


def padding(n: OnnxNode, x: Value, kernel: list[int], strides: list[int], dilations: list[int]) -> list[int]:
    """pads: those at the beginnings, then those at the ends."""
    spatial = len(kernel)
    mode = n.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return n.integers("pads", [0] * (2 * spatial))
    if mode == "VALID":
        return [0] * (2 * spatial)
    begins, ends = [], []
    sizes = constant_shape(x.shape[2:], "padding of auto_pad") if any(s != 1 for s in strides) else None
    for i in range(spatial):
        reach = (kernel[i] - 1) * dilations[i] + 1
        if sizes is None:
            total = reach - 1
        else:
            out = -(-sizes[i] // strides[i])
            total = max((out - 1) * strides[i] + reach - sizes[i], 0)
        less, more = total // 2, total - total // 2
        begins.append(less if mode == "SAME_UPPER" else more)
        ends.append(more if mode == "SAME_UPPER" else less)
    return begins + ends


@handles("Conv")
def convolution(n: OnnxNode) -> Value:
    return convolve(n, n.tensor(0), n.tensor(1), n.get(2))


def convolve(n: OnnxNode, x: Value, w: Value, bias: Value | None) -> Value:
    """x [N, C, sizes..], w [M, C / group, kernel..], bias [M] -> [N, M, windows..]"""
    e = n.emitter
    spatial = x.rank - 2
    kernel = n.integers("kernel_shape", list(constant_shape(w.shape[2:], "a kernel")))
    strides, dilations = n.integers("strides", [1] * spatial), n.integers("dilations", [1] * spatial)
    pads = padding(n, x, kernel, strides, dilations)
    if spatial > 3 or spatial < 1:
        require(False, f"a convolution over {spatial} dimensions")
    begins, ends = pads[:spatial], pads[spatial:]
    if begins != ends or min(pads, default=0) < 0:
        x = pad_constant(n, x, dict(enumerate(begins, 2)), dict(enumerate(ends, 2)), 0)
        begins = [0] * spatial
    return e.op(
        f"conv{spatial}d", x, w, bias, stride=strides, padding=begins, dilation=dilations, groups=n.integer("group", 1)
    )


@handles("ConvTranspose")
def transposed_convolution(n: OnnxNode) -> Value:
    """The whole transpose, with `output_padding` zeros at the ends, cropped by `pads`."""
    e, x, w, bias = n.emitter, n.tensor(0), n.tensor(1), n.get(2)
    spatial = x.rank - 2
    kernel = n.integers("kernel_shape", list(constant_shape(w.shape[2:], "a kernel")))
    strides, dilations = n.integers("strides", [1] * spatial), n.integers("dilations", [1] * spatial)
    extra = n.integers("output_padding", [0] * spatial)
    groups = n.integer("group", 1)
    whole = [(x.shape[i + 2] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i] for i in range(spatial)]
    mode = n.text("auto_pad", "NOTSET")
    if n.has("output_shape") or mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted: list[Dim] = [x.shape[i + 2] * strides[i] for i in range(spatial)]
        if n.has("output_shape"):
            wanted = [*n.integers("output_shape")[-spatial:]]
        totals = constant_shape([a - b for a, b in zip(whole, wanted)], "output_shape")
        less = [t // 2 for t in totals]
        more = [t - t // 2 for t in totals]
        begins, ends = (less, more) if mode == "SAME_UPPER" else (more, less)
        if mode not in ("SAME_UPPER", "SAME_LOWER"):
            begins, ends = more, less
    else:
        pads = [0] * (2 * spatial) if mode == "VALID" else n.integers("pads", [0] * (2 * spatial))
        begins, ends = pads[:spatial], pads[spatial:]
    same = begins == ends and min(begins) >= 0
    if same and all(o < max(s, d) for o, s, d in zip(extra, strides, dilations)):
        return e.op(
            f"conv_transpose{spatial}d",
            x,
            w,
            bias,
            stride=strides,
            padding=begins,
            dilation=dilations,
            groups=groups,
            output_padding=extra if any(extra) else None,
        )
    y = e.op(
        f"conv_transpose{spatial}d", x, w, stride=strides, padding=[0] * spatial, dilation=dilations, groups=groups
    )
    before: dict[int, Dim] = {i + 2: -b for i, b in enumerate(begins) if b < 0}
    after: dict[int, Dim] = {i + 2: extra[i] + max(-b, 0) for i, b in enumerate(ends)}
    y = pad_constant(n, y, before, after, 0)
    for i in range(spatial):
        first = max(begins[i], 0)
        y = e.slice(y, i + 2, first, y.shape[i + 2] - max(ends[i], 0))
    return y if bias is None else e.op("add", y, e.reshape(bias, [bias.shape[0], *[1] * spatial]))


@handles("Col2Im")
def columns_to_image(n: OnnxNode) -> Value:
    """Blocks are added where they lie: a transposed convolution with a kernel of ones, a channel a group."""
    e, x = n.emitter, n.tensor(0)
    image, block = n.whole(1), n.whole(2)
    spatial = len(image)
    strides, dilations = n.integers("strides", [1] * spatial), n.integers("dilations", [1] * spatial)
    pads = n.integers("pads", [0] * (2 * spatial))
    counts = [
        (image[i] + pads[i] + pads[i + spatial] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
        for i in range(spatial)
    ]
    size = int(np.prod(block))
    channels = x.shape[1] // size
    require(spatial <= 3 and isinstance(channels, int), "blocks of more than 3 dimensions, or symbolic channels")
    from ..values import known

    kernel = np.zeros((int(str(channels)), size, 1, *block), np.float32)
    for i in range(size):
        kernel.reshape(int(str(channels)), size, size)[:, i, i] = 1
    weight = known(kernel.reshape(int(str(channels)) * size, 1, *block))
    y = e.op(
        f"conv_transpose{spatial}d",
        e.reshape(x, [x.shape[0], x.shape[1], *counts]),
        e.cast(weight, x.dtype),
        stride=strides,
        dilation=dilations,
        groups=int(str(channels)),
    )
    missing = [image[i] + pads[i] + pads[i + spatial] - int(str(y.shape[i + 2])) for i in range(spatial)]
    y = pad_constant(n, y, {}, {i + 2: max(m, 0) for i, m in enumerate(missing)}, 0)
    for i in range(spatial):
        y = e.slice(y, i + 2, pads[i], pads[i] + image[i])
    return y
