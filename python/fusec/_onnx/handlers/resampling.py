"""Resize and its kin: a dimension at a time, by position (nearest) or as a product with interpolation weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import Refused
from ..node import OnnxNode, from_front
from ..registry import handles, require
from ..sizes import Dim, constant_shape
from ..values import Array, Value, is_float, known


class Axis:
    """How one dimension is resized: ``size`` to ``out`` positions."""

    def __init__(self, size: int, out: int, scale: float, roi: tuple[float, float]) -> None:
        self.size = size
        self.out = out
        self.scale = scale
        self.roi = roi


@handles("Upsample")
def upsample(n: OnnxNode) -> Value:
    """Resize as it was until opset 9, with positions that are divided by the scale."""
    x = n.tensor(0)
    scales = n.attributes["scales"] if n.has("scales") else n.known(1).tolist()
    sizes = constant_shape(x.shape, "an Upsample")
    axes = [Axis(s, int(math.floor(s * f)), f, (0, 1)) for s, f in zip(sizes, scales)]
    mode = n.text("mode", "nearest")
    return _resized(
        n, x, dict(enumerate(axes)), "linear" if mode in ("linear", "bilinear") else mode, "asymmetric", "floor"
    )


@handles("Resize")
def resize(n: OnnxNode) -> Value:
    x = n.tensor(0)
    plain = _interpolated(n, x)
    if plain is not None:
        return plain
    sizes = constant_shape(x.shape, "a Resize")
    if n.version < 11:
        scales_ = n.known(1).tolist()
        axes_ = [Axis(s, int(math.floor(s * f)), f, (0, 1)) for s, f in zip(sizes, scales_)]
        return _resized(n, x, dict(enumerate(axes_)), n.text("mode", "nearest"), "asymmetric", "floor")
    chosen = [from_front(a, x.rank) for a in n.integers("axes", list(range(x.rank)))]
    coordinates = n.text("coordinate_transformation_mode", "half_pixel")
    roi = n.known(1).astype(np.float64).tolist() if coordinates == "tf_crop_and_resize" else []
    axes = {}
    for place, (axis, (out, scale)) in enumerate(zip(chosen, _targets(n, [sizes[a] for a in chosen]))):
        span = (roi[place], roi[place + len(chosen)]) if roi else (0.0, 1.0)
        axes[axis] = Axis(sizes[axis], out, scale, span)
    return _resized(n, x, axes, n.text("mode", "nearest"), coordinates, n.text("nearest_mode", "round_prefer_floor"))


def _interpolated(n: OnnxNode, x: Value) -> Value | None:
    """The format's own op, which takes symbolic sizes: images made larger by whole factors, or to given sizes."""
    mode, coordinates = n.text("mode", "nearest"), n.text("coordinate_transformation_mode", "half_pixel")
    if x.rank != 4 or n.version < 11 or n.has("axes") or n.integer("antialias") or not is_float(x.dtype):
        return None
    scales = n.get(2)
    if scales is None or scales.shape == (0,):
        if mode != "linear" or n.text("keep_aspect_ratio_policy", "stretch") != "stretch":
            return None
        wanted = n.dims(3)
    else:
        factors = n.known(2).tolist()
        if any(f != int(f) or f < 1 for f in factors):
            return None
        wanted = [d * int(f) for d, f in zip(x.shape, factors)]
    if not n.emitter.sizes.same(wanted[:2], x.shape[:2]) or n.integer("exclude_outside"):
        return None
    if mode == "nearest":
        rounding = n.text("nearest_mode", "round_prefer_floor")
        fits = (
            rounding == "floor" if coordinates == "asymmetric" else coordinates == "half_pixel" and "round" in rounding
        )
        return n.emitter.op("interpolate", x, size=list(wanted[2:]), mode="nearest") if fits else None
    if mode != "linear" or coordinates not in ("half_pixel", "align_corners"):
        return None
    corners = True if coordinates == "align_corners" else None
    return n.emitter.op("interpolate", x, size=list(wanted[2:]), mode="bilinear", align_corners=corners)


def _targets(n: OnnxNode, sizes: list[int]) -> list[tuple[int, float]]:
    """For each dimension its new size, and the scale."""
    given = n.get(2)
    if given is not None and given.shape != (0,):
        scales = [float(f) for f in n.known(2).tolist()]
        return [(int(math.floor(s * f)), f) for s, f in zip(sizes, scales)]
    wanted = n.whole(3)
    policy = n.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [(w, w / s) for w, s in zip(wanted, sizes)]
    factor = (min if policy == "not_larger" else max)(w / s for w, s in zip(wanted, sizes))
    return [(int(math.floor(s * factor + 0.5)), factor) for s in sizes]


def _positions(axis: Axis, mode: str) -> Array:
    """Where each new position lies in the old dimension."""
    i = np.arange(axis.out, dtype=np.float64)
    size, scale = axis.size, axis.scale
    whole = scale * size
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        adjust = axis.out / whole
        centre = size / 2
        return centre * (1 - adjust) + (i + 0.5) / scale - 0.5
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return i * 0 if whole == 1 else i * (size - 1) / (whole - 1)
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if axis.out > 1 else i * 0 - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        if axis.out == 1:
            return np.array([(end - start) * (size - 1) / 2 + start * (size - 1)])
        return start * (size - 1) + i * (end - start) * (size - 1) / (axis.out - 1)
    raise Refused(f"the coordinates {mode}")


NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda p: np.ceil(p - 0.5),
    "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _resized(n: OnnxNode, x: Value, axes: dict[int, Axis], mode: str, coordinates: str, nearest: str) -> Value:
    e = n.emitter
    inside: dict[int, Array] = {}
    for axis, how in axes.items():
        if how.out == how.size and how.scale == 1.0 and coordinates != "tf_crop_and_resize":
            continue
        at = _positions(how, coordinates)
        if coordinates == "tf_crop_and_resize":
            inside[axis] = (at >= 0) & (at <= how.size - 1)
        if mode == "nearest":
            x = e.select_positions(x, axis, np.clip(NEAREST[nearest](at), 0, how.size - 1))
        else:
            require(is_float(x.dtype), f"{mode} interpolation of integers")
            x = _product(n, x, axis, weights(n, how, at, mode))
    if coordinates == "tf_crop_and_resize":
        for axis, mask in inside.items():
            if not mask.all():
                shape: list[Dim] = [len(mask) if i == axis else 1 for i in range(x.rank)]
                keep = e.reshape(known(mask), shape)
                x = e.op("where", keep, x, e.scalar(n.number("extrapolation_value"), x.dtype))
    return x


def _product(n: OnnxNode, x: Value, axis: int, matrix: Array) -> Value:
    """x with `axis` replaced by the rows of the matrix."""
    e = n.emitter
    order = [i for i in range(x.rank) if i != axis] + [axis]
    made = e.op(
        "matmul", e.permute(x, order), e.cast(known(np.ascontiguousarray(matrix.T).astype(np.float32)), x.dtype)
    )
    return e.permute(made, [order.index(i) for i in range(x.rank)])


def weights(n: OnnxNode, axis: Axis, at: Array, mode: str) -> Array:
    """[out, size]: what each old element counts at each new position."""
    antialias = bool(n.integer("antialias")) and axis.scale < 1
    stretch = axis.scale if antialias else 1.0
    a = n.number("cubic_coeff_a", -0.75)
    reach = 1.0 if mode == "linear" else 2.0
    matrix = np.zeros((axis.out, axis.size))
    for row, p in enumerate(at):
        if antialias:
            low = int(math.floor(p - reach / stretch)) + 1
            high = int(math.ceil(p + reach / stretch)) - 1
        else:
            low = int(math.floor(p)) - (0 if mode == "linear" else 1)
            high = low + (1 if mode == "linear" else 3)
        taps = np.arange(low, high + 1)
        value = _kernel(np.abs(taps - p) * stretch, mode, a)
        if n.integer("exclude_outside"):
            value = np.where((taps >= 0) & (taps < axis.size), value, 0)
        if antialias or n.integer("exclude_outside"):
            value = value / value.sum()
        np.add.at(matrix[row], np.clip(taps, 0, axis.size - 1), value)
    return matrix


def _kernel(d: Array, mode: str, a: float) -> Array:
    if mode == "linear":
        return np.asarray(np.maximum(1 - d, 0), np.float64)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    made: Array = np.where(d <= 1, near, np.where(d < 2, far, 0))
    return made
