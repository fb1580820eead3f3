"""Fourier transforms as products with cosines and sines, and mel weights."""

from __future__ import annotations

import numpy as np

from ..._tensors import numpy_dtype
from ..node import OnnxNode, from_front
from ..registry import handles, require
from ..sizes import constant_shape
from ..values import Array, Value, dtype_of, known


@handles("DFT")
def fourier(n: OnnxNode) -> Value:
    """Over one dimension; the last one holds real and imaginary parts."""
    e, x = n.emitter, n.tensor(0)
    if n.version >= 20:
        axis = from_front(n.single(2) if n.get(2) is not None else -2, x.rank)
    else:
        axis = n.axis(x.rank, 1)
    inverse, onesided = bool(n.integer("inverse")), bool(n.integer("onesided"))
    if n.get(1) is not None:
        length = n.single(1)
    else:
        given = constant_shape([x.shape[axis]], "a DFT")[0]
        length = 2 * (given - 1) if inverse and onesided else given
    parts = constant_shape([x.shape[-1]], "the parts of complex numbers")[0]
    size = constant_shape([x.shape[axis]], "a DFT")[0]
    x = e.slice(x, axis, 0, min(size, length))
    order = [i for i in range(x.rank) if i not in (axis, x.rank - 1)] + [axis, x.rank - 1]
    rows = e.permute(x, order)
    values = [e.op("select", rows, dim=x.rank - 1, index=i) for i in range(parts)]
    real, imaginary = values[0], values[1] if parts == 2 else None
    used = min(size, length)
    if inverse and onesided:
        made = _real_inverse(n, real, imaginary, used, length)
    else:
        made = _transformed(n, real, imaginary, used, length // 2 + 1 if onesided else length, length, inverse)
    return e.permute(made, [order.index(i) for i in range(x.rank)])


def _waves(rows: int, columns: int, length: int) -> tuple[Array, Array]:
    angle = 2 * np.pi * (np.arange(rows)[:, None] * np.arange(columns)[None, :] % length) / length
    return np.cos(angle), np.sin(angle)


def _matrix(n: OnnxNode, array: Array, dtype: str) -> Value:
    return known(np.ascontiguousarray(array).astype(numpy_dtype(dtype)))


def _transformed(
    n: OnnxNode, real: Value, imaginary: Value | None, used: int, out: int, length: int, inverse: bool
) -> Value:
    """[.., out, 2]: (a + bi) (cos - i sin), or its inverse over the length."""
    e = n.emitter
    cosine, sine = _waves(used, out, length)
    if inverse:
        cosine, sine = cosine / length, -sine / length
    c, s = (_matrix(n, m, real.dtype) for m in (cosine, sine))
    re, im = e.op("matmul", real, c), e.op("neg", e.op("matmul", real, s))
    if imaginary is not None:
        re = e.op("add", re, e.op("matmul", imaginary, s))
        im = e.op("add", im, e.op("matmul", imaginary, c))
    return e.op("stack", re, im, dim=-1)


def _real_inverse(n: OnnxNode, real: Value, imaginary: Value | None, used: int, length: int) -> Value:
    """A real signal [.., length, 1] of the half of its spectrum that is not conjugate to the other half."""
    e = n.emitter
    half = min(used, length // 2 + 1)
    weight = np.full(used, 2.0)
    weight[0] = 1
    weight[half:] = 0
    if length % 2 == 0 and half == length // 2 + 1:
        weight[half - 1] = 1
    cosine, sine = _waves(used, length, length)
    y = e.op("matmul", real, _matrix(n, cosine * weight[:, None] / length, real.dtype))
    if imaginary is not None:
        y = e.op("sub", y, e.op("matmul", imaginary, _matrix(n, sine * weight[:, None] / length, real.dtype)))
    return e.op("unsqueeze", y, dim=-1)


@handles("STFT")
def short_time_fourier(n: OnnxNode) -> Value:
    """Frames [batch, frames, length], weighted by the window, each transformed."""
    e, signal = n.emitter, n.tensor(0)
    step, window = n.single(1), n.get(2)
    if n.get(3) is not None:
        length = n.single(3)
    else:
        require(window is not None, "no frame length")
        assert window is not None
        length = constant_shape(window.shape, "a window")[0]
    size = constant_shape([signal.shape[1]], "a signal")[0]
    frames = (size - length) // step + 1
    at = (np.arange(frames)[:, None] * step + np.arange(length)).reshape(-1)
    parts = constant_shape([signal.shape[2]], "the parts of complex numbers")[0] if signal.rank == 3 else 1
    signal = e.reshape(signal, [signal.shape[0], size, parts])
    cut = e.op("index_select", signal, known(at.astype(np.int64)), dim=1)
    cut = e.reshape(cut, [signal.shape[0], frames, length, parts])
    values = [e.op("select", cut, dim=3, index=i) for i in range(parts)]
    if window is not None:
        width = constant_shape(window.shape, "a window")[0]
        window = (
            window
            if width == length
            else e.op("pad", window, pad=[(length - width) // 2, length - width - (length - width) // 2])
        )
        values = [e.op("mul", v, window) for v in values]
    out = length // 2 + 1 if n.integer("onesided", 1) else length
    return _transformed(n, values[0], values[1] if parts == 2 else None, length, out, length, False)


@handles("MelWeightMatrix")
def mel_weights(n: OnnxNode) -> Value:
    """Triangles over the bins of a spectrum, evenly spread on the mel scale."""
    bands, length, rate = (n.single(i) for i in range(3))
    low, high = (float(n.known(i).reshape(-1)[0]) for i in (3, 4))
    spectrum = length // 2 + 1
    mels = 2595 * np.log10(1 + np.array([low, high]) / 700)
    edges = mels[0] + np.arange(bands + 2) * ((mels[1] - mels[0]) / (bands + 2))
    bins = ((length + 1) * (700 * (10 ** (edges / 2595) - 1)) // rate).astype(int)
    made = np.zeros((spectrum, bands))
    for i in range(bands):
        lower, centre, upper = bins[i : i + 3]
        if centre == lower:
            made[centre, i] = 1
        else:
            made[lower : centre + 1, i] = (np.arange(lower, centre + 1) - lower) / (centre - lower)
        if upper > centre:
            made[centre:upper, i] = (upper - np.arange(centre, upper)) / (upper - centre)
    kind = n.integer("output_datatype", 1)
    return known(made.astype(numpy_dtype(dtype_of(kind))), kind=kind)
