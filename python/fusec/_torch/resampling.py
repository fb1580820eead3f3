"""Decomposes antialiased resampling, as PyTorch does not, into a product with a matrix of weights for each axis.

    y[n, c, i, j] = sum over h, w of rows[i, h] * columns[j, w] * x[n, c, h, w]

The matrices depend on the sizes alone. They are computed from ranges, so that sizes may be symbolic. fusec computes the
matrices of fixed sizes once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import torch

from .rewrites import DECLINED, rewrites

if TYPE_CHECKING:
    from torch._ops import OperatorBase
    from torch.types import IntLikeType

    from .rewrites import Rewritten

Filter: TypeAlias = Callable[[torch.Tensor], torch.Tensor]

aten = torch.ops.aten


def _triangle(distance: torch.Tensor) -> torch.Tensor:
    return torch.clamp(1 - distance, min=0)


def _cubic(distance: torch.Tensor) -> torch.Tensor:
    """Keys' cubic with a = -0.5, as in PyTorch's antialiased form."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def _lanczos(distance: torch.Tensor) -> torch.Tensor:
    """Lanczos with three lobes: sinc(d) * sinc(d / 3)."""
    angle = torch.clamp(distance, min=1e-9) * torch.pi
    value = 3 * torch.sin(angle) * torch.sin(angle / 3) / (angle * angle)
    return torch.where(distance < 1e-6, 1.0, torch.where(distance < 3, value, 0.0))


def _step(
    size: IntLikeType, output_size: IntLikeType, align_corners: bool, scale: float | None, like: torch.Tensor
) -> float | torch.Tensor:
    """The distance of neighbouring results in the source: a number, or a 0-d tensor where sizes are symbolic."""
    if align_corners:
        size, output_size = size - 1, output_size - 1
    elif scale is not None and scale > 0:
        return 1 / scale
    if isinstance(size, int) and isinstance(output_size, int):
        return size / output_size if output_size else 0.0
    source, result = (torch.full([], n, dtype=like.dtype, device=like.device) for n in (size, output_size))
    return torch.where(result > 0, source / result, 0.0)


def _weights(
    size: IntLikeType,
    output_size: IntLikeType,
    filter_of: Filter,
    align_corners: bool,
    scale: float | None,
    like: torch.Tensor,
) -> torch.Tensor:
    """[output_size, size]: row i is the filter around the centre of result i, scaled to the sum 1.

    Where the result is smaller than the source, the filter is widened by their ratio.
    """
    step = _step(size, output_size, align_corners, scale, like)
    width = torch.clamp(step, min=1) if isinstance(step, torch.Tensor) else max(step, 1.0)
    results, sources = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (output_size, size))
    centre = (results + 0.5) * step
    weights = filter_of(torch.abs(sources + 0.5 - centre.unsqueeze(-1)) / width)
    return weights / weights.sum(-1, keepdim=True)


def _resampled(
    x: torch.Tensor,
    filter_of: Filter,
    output_size: Sequence[IntLikeType],
    align_corners: bool,
    scales: Sequence[float | None],
) -> Rewritten:
    if not x.is_floating_point():
        return DECLINED  # PyTorch rounds integers differently
    like = torch.empty([], dtype=torch.float64 if x.dtype == torch.float64 else torch.float32, device=x.device)
    result = x.to(like.dtype)
    for axis in (-1, -2):
        if isinstance(x.shape[axis], int) and x.shape[axis] == output_size[axis]:
            continue  # PyTorch does not resample this axis, whatever the scale
        weights = _weights(x.shape[axis], output_size[axis], filter_of, align_corners, scales[axis], like)
        result = result @ weights.t() if axis == -1 else weights @ result
    return result.to(x.dtype)


def _register(overload: OperatorBase, filter_of: Filter) -> None:
    @rewrites(overload)
    def resample(
        x: torch.Tensor,
        output_size: Sequence[IntLikeType],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Rewritten:
        return _resampled(x, filter_of, output_size, align_corners, (scales_h, scales_w))


for _name, _filter in (("bilinear", _triangle), ("bicubic", _cubic), ("lanczos", _lanczos)):
    if hasattr(aten, f"_upsample_{_name}2d_aa"):
        _register(getattr(aten, f"_upsample_{_name}2d_aa").default, _filter)
