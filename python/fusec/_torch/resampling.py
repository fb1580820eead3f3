"""Antialiased resampling, which PyTorch has no decomposition for: a product with a matrix of weights for each axis.

    y[n, c, i, j] = sum over h, w of rows[i, h] * columns[j, w] * x[n, c, h, w]

The matrices depend on the sizes alone. They are made of ranges, so that sizes may be symbolic; fusec computes those of
fixed sizes once.
"""

import torch

from .rewrites import rewrites

aten = torch.ops.aten


def _triangle(distance):
    return torch.clamp(1 - distance, min=0)


def _cubic(distance):
    """Keys' cubic with a = -0.5, as PyTorch has it where it is antialiased."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def _lanczos(distance):
    """Lanczos with three lobes: sinc(d) * sinc(d / 3)."""
    angle = torch.clamp(distance, min=1e-9) * torch.pi
    value = 3 * torch.sin(angle) * torch.sin(angle / 3) / (angle * angle)
    return torch.where(distance < 1e-6, 1.0, torch.where(distance < 3, value, 0.0))


def _step(size, output_size, align_corners, scale, like):
    """How far apart two neighbouring results are in the source: a number, or a 0-d tensor where sizes are symbolic."""
    if align_corners:
        size, output_size = size - 1, output_size - 1
    elif scale is not None and scale > 0:
        return 1 / scale
    if isinstance(size, int) and isinstance(output_size, int):
        return size / output_size if output_size else 0.0
    size, output_size = (torch.full([], n, dtype=like.dtype, device=like.device) for n in (size, output_size))
    return torch.where(output_size > 0, size / output_size, 0.0)


def _weights(size, output_size, filter_of, align_corners, scale, like):
    """[output_size, size]: the filter around each result's centre, its sum 1; widened where the result is smaller."""
    step = _step(size, output_size, align_corners, scale, like)
    width = torch.clamp(step, min=1) if isinstance(step, torch.Tensor) else max(step, 1.0)
    kind = {"dtype": like.dtype, "device": like.device}
    centre = (torch.arange(output_size, **kind) + 0.5) * step
    weights = filter_of(torch.abs(torch.arange(size, **kind) + 0.5 - centre.unsqueeze(-1)) / width)
    return weights / weights.sum(-1, keepdim=True)


def _resampled(x, filter_of, output_size, align_corners, scales):
    if not x.is_floating_point():
        return NotImplemented  # PyTorch rounds integers in a way of its own
    like = torch.empty([], dtype=torch.float64 if x.dtype == torch.float64 else torch.float32, device=x.device)
    result = x.to(like.dtype)
    for axis in (-1, -2):
        if isinstance(x.shape[axis], int) and x.shape[axis] == output_size[axis]:
            continue  # PyTorch leaves such an axis alone, whatever the scale
        weights = _weights(x.shape[axis], output_size[axis], filter_of, align_corners, scales[axis], like)
        result = result @ weights.t() if axis == -1 else weights @ result
    return result.to(x.dtype)


def _register(overload, filter_of):
    @rewrites(overload)
    def resample(x, output_size, align_corners, scales_h=None, scales_w=None):
        return _resampled(x, filter_of, output_size, align_corners, (scales_h, scales_w))


for _name, _filter in (("bilinear", _triangle), ("bicubic", _cubic), ("lanczos", _lanczos)):
    if hasattr(aten, f"_upsample_{_name}2d_aa"):
        _register(getattr(aten, f"_upsample_{_name}2d_aa").default, _filter)
