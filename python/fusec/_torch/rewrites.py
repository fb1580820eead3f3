"""Decompositions of operators that the format lacks into operators that it has.

torch.export runs a decomposition on fake tensors, whose shapes may be symbolic. A decomposition that returns DECLINED
leaves the call as it is. Operators that PyTorch's own table decomposes well are not repeated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import NotImplementedType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch

if TYPE_CHECKING:
    from torch._ops import OperatorBase
    from torch.types import IntLikeType, Number

    # A result, the results of an operator that has several, or DECLINED.
    Rewritten: TypeAlias = torch.Tensor | tuple[torch.Tensor, ...] | NotImplementedType

Decomposition: TypeAlias = Callable[..., Any]
DecompositionType = TypeVar("DecompositionType", bound=Decomposition)

DECLINED: Rewritten = NotImplemented  # a decomposition returns it to leave the call as it is

aten = torch.ops.aten
REWRITES: dict[OperatorBase, Decomposition] = {}


def rewrites(*operators: OperatorBase) -> Callable[[DecompositionType], DecompositionType]:
    """Registers the decorated decomposition for ATen overloads."""

    def register(function: DecompositionType) -> DecompositionType:
        for operator in operators:
            REWRITES[operator] = function
        return function

    return register


# --- pointwise ----------------------------------------------------------------------------------------------------


@rewrites(aten.add.Tensor, aten.add.Scalar)
def add(x: torch.Tensor, other: torch.Tensor | Number, alpha: Number = 1) -> Rewritten:
    return DECLINED if alpha == 1 else x + other * alpha


@rewrites(aten.sub.Tensor, aten.sub.Scalar)
def sub(x: torch.Tensor, other: torch.Tensor | Number, alpha: Number = 1) -> Rewritten:
    return DECLINED if alpha == 1 else x - other * alpha


@rewrites(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(x: torch.Tensor, other: torch.Tensor | Number, alpha: Number = 1) -> Rewritten:
    return DECLINED if alpha == 1 else other - x * alpha


@rewrites(aten.clamp.Tensor)
def clamp(x: torch.Tensor, min: torch.Tensor | None = None, max: torch.Tensor | None = None) -> torch.Tensor:
    x = x if min is None else torch.maximum(x, min)
    return x if max is None else torch.minimum(x, max)


@rewrites(aten.glu.default)
def glu(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    value, gate = torch.split(x, x.shape[dim] // 2, dim)
    return value * torch.sigmoid(gate)


@rewrites(aten.signbit.default)
def signbit(x: torch.Tensor) -> torch.Tensor:
    """The reciprocal tells -0 from 0. The sign of a NaN is not looked at."""
    return (x < 0) | ((x == 0) & (torch.reciprocal(x) < 0)) if x.is_floating_point() else x < 0


@rewrites(aten.copysign.Tensor)
def copysign(x: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    return torch.where(signbit(sign), -torch.abs(x), torch.abs(x))


@rewrites(aten.copysign.Scalar)
def copysign_scalar(x: torch.Tensor, sign: Number) -> torch.Tensor:
    magnitude = torch.abs(x) if x.is_floating_point() else torch.abs(x).to(torch.get_default_dtype())
    return -magnitude if math.copysign(1.0, sign) < 0 else magnitude


@rewrites(aten.hypot.default)
def hypot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Scaled by the greater of the two, so that squares stay finite. An infinity wins over a NaN."""
    x, y = torch.broadcast_tensors(torch.abs(x), torch.abs(y))
    greater, less = torch.maximum(x, y), torch.minimum(x, y)
    ratio = less / torch.where(greater == 0, 1, greater)
    infinite = torch.isinf(x) | torch.isinf(y)
    return torch.where(infinite, float("inf"), greater * torch.sqrt(1 + ratio * ratio))


@rewrites(aten.fmax.default)
def fmax(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))


@rewrites(aten.fmin.default)
def fmin(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))


@rewrites(aten.angle.default)
def angle(x: torch.Tensor) -> Rewritten:
    if x.is_complex():
        return DECLINED
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return torch.where(torch.isnan(x), x, torch.where(x < 0, math.pi, 0.0).to(x.dtype))


@rewrites(aten.round.decimals)
def round_decimals(x: torch.Tensor, *, decimals: int) -> Rewritten:
    if not x.is_floating_point():
        return DECLINED
    if decimals == 0:
        return torch.round(x)
    scale = 10.0 ** abs(decimals)
    return torch.round(x * scale) / scale if decimals > 0 else torch.round(x / scale) * scale


@rewrites(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantize(x: torch.Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Rewritten:
    whole = torch.round(x / scale) + zero_point
    return (torch.clamp(whole, quant_min, quant_max) - zero_point) * scale, (whole >= quant_min) & (whole <= quant_max)


@rewrites(aten.bucketize.Tensor)
def bucketize(
    x: torch.Tensor, boundaries: torch.Tensor, *, right: bool = False, out_int32: bool = False
) -> torch.Tensor:
    """y[i] = the number of boundaries below x[i]."""
    below = boundaries <= x.unsqueeze(-1) if right else boundaries < x.unsqueeze(-1)
    return below.sum(-1).to(torch.int32 if out_int32 else torch.int64)


@rewrites(aten._is_all_true.default)
def is_all_true(x: torch.Tensor) -> torch.Tensor:
    return x.all()


@rewrites(aten._is_any_true.default)
def is_any_true(x: torch.Tensor) -> torch.Tensor:
    return x.any()


@rewrites(aten.histc.default)
def histc(x: torch.Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Rewritten:
    """Counts the elements in each of `bins` equal parts of [min, max]. A mixture of experts counts its tokens by it."""
    if min >= max:
        return DECLINED  # the range depends on the data
    x = x.reshape(-1)
    place = torch.clamp(torch.floor((x - min) * (bins / (max - min))), max=bins - 1)
    place = torch.where(x <= max, place, -1.0).unsqueeze(-1)
    return (place == torch.arange(bins, dtype=x.dtype, device=x.device)).sum(0).to(x.dtype)


@rewrites(aten.searchsorted.Tensor)
def searchsorted(
    sequence: torch.Tensor,
    x: torch.Tensor,
    *,
    right: bool = False,
    out_int32: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> Rewritten:
    if sequence.dim() != 1 or sorter is not None:
        return DECLINED
    return bucketize(x, sequence, right=right or side == "right", out_int32=out_int32)


@rewrites(aten.__lshift__.Tensor, aten.__lshift__.Scalar)
@rewrites(aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar)
def left_shift(x: torch.Tensor, count: torch.Tensor | int) -> Rewritten:
    """x * 2^count, and 0 where count is no place of the integer."""
    if x.dtype not in SHIFTED or not _is_integral(count):
        return DECLINED
    bits = torch.iinfo(x.dtype).bits
    if isinstance(count, int):
        return x * (1 << count) if 0 <= count < bits - 1 else DECLINED
    if count.dtype != x.dtype:
        return DECLINED
    factor = torch.pow(2, torch.clamp(count, 0, bits - 1))
    return torch.where((count < 0) | (count >= bits), 0, x * factor)


@rewrites(aten.__rshift__.Tensor, aten.__rshift__.Scalar)
@rewrites(aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar)
def right_shift(x: torch.Tensor, count: torch.Tensor | int) -> Rewritten:
    """floor(x / 2^count), and the sign where count is no place of the integer."""
    if x.dtype not in SHIFTED or not _is_integral(count):
        return DECLINED
    places = torch.iinfo(x.dtype).bits - (1 if x.dtype.is_signed else 0)
    if isinstance(count, int):
        return torch.div(x, 1 << count, rounding_mode="floor") if 0 <= count < places else DECLINED
    if count.dtype != x.dtype:
        return DECLINED
    divisor = torch.pow(2, torch.clamp(count, 0, places - 1))
    beyond = torch.where(x < 0, -1, 0).to(x.dtype)
    return torch.where((count < 0) | (count >= places), beyond, torch.div(x, divisor, rounding_mode="floor"))


SHIFTED = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _is_integral(count: torch.Tensor | int) -> bool:
    return isinstance(count, int) or count.dtype in SHIFTED


# --- normalization (with decompose=True alone: the format has batch_norm) -----------------------------------------


def batch_norm_inference(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    var: torch.Tensor,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalizes dimension 1 with running statistics, in their dtype: float32 for 16-bit inputs."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    mean, var = mean.reshape(shape), var.reshape(shape)
    out = (x.to(var.dtype) - mean) * torch.rsqrt(var + eps)
    out = out if weight is None else out * weight.reshape(shape)
    out = out if bias is None else out + bias.reshape(shape)
    return out.to(x.dtype), x.new_empty([0]), x.new_empty([0])


# --- matrices and pooling -----------------------------------------------------------------------------------------


@rewrites(aten.baddbmm.default)
def baddbmm(
    x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Number = 1, alpha: Number = 1
) -> torch.Tensor:
    product = torch.bmm(a, b)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


@rewrites(aten.addbmm.default)
def addbmm(
    x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Number = 1, alpha: Number = 1
) -> torch.Tensor:
    return baddbmm(
        x, a.transpose(0, 1).flatten(1).unsqueeze(0), b.flatten(0, 1).unsqueeze(0), beta=beta, alpha=alpha
    ).squeeze(0)


@rewrites(aten.linalg_solve_triangular.default)
def solve_triangular(
    a: torch.Tensor, b: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Rewritten:
    """The inverse of a, times b. Inverts the blocks on the diagonal, of 1, 2, 4, ... rows, pair by pair:

        | A 0 |-1   |     A'     0  |
        | C D |   = | -D' C A'   D' |   with A', D' the inverses of A and D
    """
    n = a.shape[-1]
    if not isinstance(n, int) or not 0 < n <= 256:
        return DECLINED
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT  # type: ignore[union-attr]
    if upper:
        flipped = solve_triangular(a.flip(-2, -1), b.flip(-2), upper=False, unitriangular=unitriangular)
        return flipped.flip(-2)  # type: ignore[union-attr]
    row, column = torch.arange(n, device=a.device).unsqueeze(-1), torch.arange(n, device=a.device)
    identity = row == column
    inverse = torch.where(identity, torch.ones_like(a) if unitriangular else 1 / a, 0.0)
    size = 1
    while size < n:
        below = (row // size % 2 == 1) & (column // size == row // size - 1)
        inverse = inverse - inverse @ torch.where(below, a, 0.0) @ inverse
        size *= 2
    return inverse @ b


@rewrites(aten._trilinear.default)
def trilinear(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    """Sums the product of three tensors, each unsqueezed at its `expand` dims. nn.Bilinear calls it."""
    spread: list[torch.Tensor] = []
    for tensor, dims in ((a, expand1), (b, expand2), (c, expand3)):
        for dim in sorted(dims):
            tensor = tensor.unsqueeze(dim)
        spread.append(tensor)
    return (spread[0] * spread[1] * spread[2]).sum(list(sumdim))


@rewrites(aten.norm.Scalar)
def norm(x: torch.Tensor, p: Number = 2) -> torch.Tensor:
    result: torch.Tensor = torch.linalg.vector_norm(x, p)
    return result


@rewrites(aten._cdist_forward.default)
def cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    result: torch.Tensor = torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
    return result


@rewrites(aten.avg_pool2d.default)
def avg_pool2d(
    x: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Rewritten:
    if divisor_override is None or ceil_mode:
        return DECLINED
    area = math.prod(kernel_size) if len(kernel_size) == 2 else kernel_size[0] ** 2
    mean: torch.Tensor = aten.avg_pool2d.default(x, kernel_size, stride, padding)
    return mean * (area / divisor_override)


@rewrites(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(x: torch.Tensor, output_size: Sequence[IntLikeType]) -> torch.Tensor:
    out: torch.Tensor = aten.adaptive_avg_pool2d.default(x.unsqueeze(-2), [1, output_size[0]])
    return out.squeeze(-2)


@rewrites(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(x: torch.Tensor, output_size: Sequence[IntLikeType]) -> Rewritten:
    return x.mean((-3, -2, -1), keepdim=True) if list(output_size) == [1, 1, 1] else DECLINED


@rewrites(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x: torch.Tensor, output_size: Sequence[IntLikeType]) -> Rewritten:
    if list(output_size) != [1, 1]:
        return DECLINED
    flat = x.flatten(-2)
    return flat.amax(-1).unsqueeze(-1).unsqueeze(-1), flat.argmax(-1).unsqueeze(-1).unsqueeze(-1)


@rewrites(aten.upsample_nearest1d.vec, aten.upsample_nearest1d.default)
def upsample_nearest1d(
    x: torch.Tensor, output_size: Sequence[IntLikeType] | None, scales: float | Sequence[float] | None = None
) -> torch.Tensor:
    scale: Any = scales[0] if isinstance(scales, (list, tuple)) else scales
    size = output_size[0] if output_size is not None else math.floor(x.shape[-1] * scale)
    out: torch.Tensor = aten.upsample_nearest2d.default(x.unsqueeze(-2), [1, size], 1.0, scale)
    return out.squeeze(-2)
