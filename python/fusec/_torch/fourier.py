"""Decomposes Fourier transforms of moderate length into products with the matrices of cosines and sines.

    y[k] = sum over j of x[j] * exp(-2 pi i j k / n)

Complex tensors become pairs of real ones (complex_pairs.py). fusec computes the matrices of fixed sizes once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .rewrites import DECLINED, rewrites

if TYPE_CHECKING:
    from torch.types import IntLikeType

    from .rewrites import Rewritten

aten = torch.ops.aten
LONGEST = 1024  # whose two matrices of float32 take 8 MiB; they grow with the square


def _declined(x: torch.Tensor, lengths: Sequence[IntLikeType]) -> bool:
    return not all(isinstance(n, int) and 0 < n <= LONGEST for n in lengths) or x.dtype == torch.complex32


def _waves(rows: int, columns: int, n: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of 2 pi j k / n, for j < rows and k < columns."""
    j, k = (torch.arange(count, device=like.device) for count in (rows, columns))
    angle = (j.unsqueeze(-1) * k % n).to(like.dtype) * (2 * math.pi / n)
    return torch.cos(angle), torch.sin(angle)


def _scale(normalization: int, lengths: Sequence[int]) -> float:
    """Of normalization 0: none, 1: by the root of the number of elements, 2: by that number."""
    return float(math.prod(lengths) ** (-normalization / 2))


def _parts(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    both = torch.view_as_real(x)
    return both[..., 0], both[..., 1]


def _along(x: torch.Tensor, dim: int, matrix: torch.Tensor) -> torch.Tensor:
    return (x.transpose(dim, -1) @ matrix).transpose(dim, -1)


def _transformed(
    real: torch.Tensor, imag: torch.Tensor, dims: Sequence[int], forward: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    for dim in dims:
        n = real.shape[dim]
        cos, sin = _waves(n, n, n, real)
        sin = sin if forward else -sin
        real, imag = (
            _along(real, dim, cos) + _along(imag, dim, sin),
            _along(imag, dim, cos) - _along(real, dim, sin),
        )
    return real, imag


@rewrites(aten._fft_c2c.default)
def complex_transform(x: torch.Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Rewritten:
    lengths = [x.shape[d] for d in dim]
    if _declined(x, lengths):
        return DECLINED
    real, imag = _transformed(*_parts(x), dim, forward)
    scale = _scale(normalization, lengths)
    return torch.complex(real * scale, imag * scale)


@rewrites(aten._fft_r2c.default)
def real_transform(x: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Rewritten:
    lengths = [x.shape[d] for d in dim]
    if _declined(x, lengths):
        return DECLINED
    n = lengths[-1]
    cos, sin = _waves(n, n // 2 + 1 if onesided else n, n, x)
    real, imag = _transformed(_along(x, dim[-1], cos), _along(x, dim[-1], -sin), dim[:-1], True)
    scale = _scale(normalization, lengths)
    return torch.complex(real * scale, imag * scale)


@rewrites(aten._fft_c2r.default)
def transform_to_real(
    x: torch.Tensor, dim: Sequence[int], normalization: int, last_dim_size: IntLikeType
) -> Rewritten:
    """The inverse. x holds the first half of a spectrum whose second half is the conjugate of the first."""
    if _declined(x, [*(x.shape[d] for d in dim[:-1]), last_dim_size]):
        return DECLINED
    n, kept = int(last_dim_size), x.shape[dim[-1]]
    lengths = [*(x.shape[d] for d in dim[:-1]), n]
    real, imag = _transformed(*_parts(x), dim[:-1], False)
    cos, sin = _waves(kept, n, n, real)
    k = torch.arange(kept, device=x.device)
    once = (k == 0) | (k * 2 == n)
    weight = torch.where(once, 1.0, 2.0).to(real.dtype).unsqueeze(-1) * _scale(normalization, lengths)
    return _along(real, dim[-1], cos * weight) - _along(imag, dim[-1], sin * weight)
