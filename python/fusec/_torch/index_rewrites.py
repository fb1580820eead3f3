"""Decompositions (see rewrites.py) of scatters, slices that are written, advanced indexing and embedding bags."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from . import private
from .rewrites import DECLINED, REWRITES, DecompositionType, rewrites

if TYPE_CHECKING:
    from torch.types import IntLikeType, Number

    from .rewrites import Rewritten

    Indices: TypeAlias = Sequence[torch.Tensor | None]  # of advanced indexing: None takes a whole dimension

aten = torch.ops.aten


def of_scalars_too(function: DecompositionType) -> DecompositionType:
    """Lets a decomposition take 0-d tensors, as vectors of one element."""

    @functools.wraps(function)
    def wrapped(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim() > 0:
            return function(x, *args, **kwargs)
        made = function(x.reshape(1), *(a.reshape(-1) if isinstance(a, torch.Tensor) else a for a in args), **kwargs)
        return made if made is DECLINED else made.reshape([])

    return wrapped  # type: ignore[return-value]


# --- writing into a part of a tensor ------------------------------------------------------------------------------


def _along(x: torch.Tensor, dim: int, index: torch.Tensor, shape: Sequence[IntLikeType]) -> torch.Tensor:
    """Expands a vector of positions along `dim` to `shape`, as scatter takes them."""
    view = [1] * x.dim()
    view[dim] = index.shape[0]
    return index.reshape(view).expand(shape)


@rewrites(aten.slice_scatter.default)
def slice_scatter(
    x: torch.Tensor,
    src: torch.Tensor,
    dim: int = 0,
    start: IntLikeType | None = None,
    end: IntLikeType | None = None,
    step: int = 1,
) -> torch.Tensor:
    dim = dim % x.dim()
    size = x.shape[dim]
    start, end = (0 if start is None else start), (size if end is None else end)
    if isinstance(start, int) and start < 0:
        start = start + size
    if isinstance(end, int):
        end = end + size if end < 0 else end
    part = aten.slice.Tensor(x, dim, start, end, step)
    src = src.to(x.dtype).expand(part.shape)
    if step != 1:
        place = torch.arange(start, start + part.shape[dim] * step, step, device=x.device)
        return torch.scatter(x, dim, _along(x, dim, place, src.shape), src)
    if isinstance(size, int) and isinstance(part.shape[dim], int) and part.shape[dim] == size:
        return src.clone()
    pieces = [] if isinstance(start, int) and start == 0 else [aten.slice.Tensor(x, dim, 0, start)]
    pieces.append(src)
    stop = start + part.shape[dim]
    if not (isinstance(stop, int) and isinstance(size, int) and stop >= size):
        pieces.append(aten.slice.Tensor(x, dim, stop, 2**63 - 1))
    return torch.cat(pieces, dim) if len(pieces) > 1 else src.clone()


@rewrites(aten.select_scatter.default)
def select_scatter(x: torch.Tensor, src: torch.Tensor, dim: int, index: IntLikeType) -> torch.Tensor:
    dim = dim % x.dim()
    index = index + x.shape[dim] if isinstance(index, int) and index < 0 else index
    return slice_scatter(x, src.unsqueeze(dim), dim, index, index + 1)


@rewrites(aten.diagonal_scatter.default)
def diagonal_scatter(x: torch.Tensor, src: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """Selects between x and, in each row of the diagonal, the row's element of src."""
    if src.shape[-1] == 0:
        return x.clone()
    moved = x.movedim((dim1, dim2), (-2, -1))
    row, column = (torch.arange(n, device=x.device) for n in moved.shape[-2:])
    place = torch.clamp(row + min(offset, 0), 0, src.shape[-1] - 1)
    value = torch.index_select(src, -1, place).unsqueeze(-1).to(x.dtype)
    mask = column - row.unsqueeze(-1) == offset
    return torch.where(mask, value, moved).movedim((-2, -1), (dim1, dim2))


@rewrites(aten.scatter.value)
def scatter_value(x: torch.Tensor, dim: int, index: torch.Tensor, value: Number) -> torch.Tensor:
    return torch.scatter(x, dim, index, torch.full(index.shape, value, dtype=x.dtype, device=x.device))


def _put(x: torch.Tensor, indices: Sequence[torch.Tensor], values: torch.Tensor, accumulate: bool) -> torch.Tensor:
    """The format's index_put: the indices are of the leading dimensions and count from the start."""
    out: torch.Tensor = aten._unsafe_index_put.default(x, list(indices), values, accumulate)
    return out


def _scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Adds by an accumulating index_put at the coordinates of every position of `index`."""
    coordinates: list[torch.Tensor] = []
    for axis in range(x.dim()):
        if axis == dim % x.dim():
            coordinates.append(index)
        else:
            view = [1] * x.dim()
            view[axis] = index.shape[axis]
            coordinates.append(torch.arange(index.shape[axis], device=x.device).reshape(view).expand(index.shape))
    for axis in range(x.dim()):
        src = aten.slice.Tensor(src, axis, 0, index.shape[axis])
    return _put(x, coordinates, src, True)


@rewrites(aten.scatter_add.default)
@of_scalars_too
def scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    return _scatter_add(x, dim, index, src)


@rewrites(aten.scatter_reduce.two)
@of_scalars_too
def scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Rewritten:
    return _scatter_add(x, dim, index, src) if reduce == "sum" and include_self else DECLINED


@rewrites(aten.scatter.reduce)
@of_scalars_too
def scatter_with_reduction(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, *, reduce: str
) -> Rewritten:
    return _scatter_add(x, dim, index, src) if reduce == "add" else DECLINED


@rewrites(aten.scatter.value_reduce)
@of_scalars_too
def scatter_value_with_reduction(
    x: torch.Tensor, dim: int, index: torch.Tensor, value: Number, *, reduce: str
) -> Rewritten:
    src = torch.full(index.shape, value, dtype=x.dtype, device=x.device)
    return _scatter_add(x, dim, index, src) if reduce == "add" else DECLINED


@rewrites(aten.index_copy.default)
@of_scalars_too
def index_copy(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    dim = dim % x.dim()
    return torch.scatter(x, dim, _along(x, dim, index.reshape(-1), source.shape), source)


@rewrites(aten.index_add.default)
@of_scalars_too
def index_add(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Number = 1
) -> torch.Tensor:
    dim = dim % x.dim()
    source = source if alpha == 1 else source * alpha
    moved, values = x.transpose(0, dim), source.transpose(0, dim)
    return _put(moved, [index.reshape(-1)], values, True).transpose(0, dim)


# --- advanced indexing --------------------------------------------------------------------------------------------


def _counted_from_start(indices: Indices, x: torch.Tensor) -> list[torch.Tensor | None]:
    """Corrects indices that count from the end. program.py drops the correction where none can be negative."""
    indices = [i if i is None else i.to(x.device) for i in indices]
    return [i if i is None else torch.where(i < 0, i + x.shape[d], i) for d, i in enumerate(indices)]


def _plan(x: torch.Tensor, indices: Indices) -> tuple[list[Any], list[int], int, bool]:
    """One index or None for each dimension of x; the indexed dimensions; their place in the result; any is a mask."""
    padded: list[Any] = list(indices) + [None] * (x.dim() - len(indices))
    positions = [d for d, i in enumerate(padded) if i is not None]
    masks = any(padded[d].dtype in (torch.bool, torch.uint8) for d in positions)
    together = positions == list(range(positions[0], positions[-1] + 1))
    return padded, positions, positions[0] if together else 0, masks


def _index(x: torch.Tensor, indices: Sequence[Any], at: int, positions: list[int]) -> torch.Tensor:
    """Takes x at integer indices that count from the start, by one index_select of a flattened view."""
    found = torch.broadcast_tensors(*[indices[d] for d in positions])
    others = [d for d in range(x.dim()) if d not in positions]
    order = others[:at] + positions + others[at:]
    if order != list(range(x.dim())):
        x = x.permute(order)
    sizes = [x.shape[at + k] for k in range(len(positions))]
    before, after = list(x.shape[:at]), list(x.shape[at + len(positions) :])
    linear = found[0]
    for index, size in zip(found[1:], sizes[1:]):
        linear = linear * size + index
    if len(positions) > 1:
        x = x.reshape([*before, math.prod(sizes), *after])
    out = torch.index_select(x, at, linear.reshape(-1))
    return out if linear.dim() == 1 else out.reshape([*before, *linear.shape, *after])


@rewrites(aten.index.Tensor)
def index(x: torch.Tensor, indices: Indices) -> Rewritten:
    indices, positions, at, masks = _plan(x, indices)
    return DECLINED if masks else _index(x, _counted_from_start(indices, x), at, positions)


@rewrites(aten._unsafe_index.Tensor)
def unsafe_index(x: torch.Tensor, indices: Indices) -> Rewritten:
    indices, positions, at, masks = _plan(x, indices)
    return DECLINED if masks else _index(x, indices, at, positions)


@rewrites(aten._unsafe_index_put.default)
def unsafe_index_put(
    x: torch.Tensor, indices: Indices, values: torch.Tensor, accumulate: bool = False
) -> Rewritten:
    indices = list(indices)
    leading = all(i is not None and i.dtype in (torch.int64, torch.int32) for i in indices)
    return DECLINED if leading else index_put(x, indices, values, accumulate)


@rewrites(aten.take.default)
def take(x: torch.Tensor, index: torch.Tensor) -> Rewritten:
    """Elements of the flattened tensor."""
    if x.numel() == 0:
        return DECLINED
    place = torch.where(index < 0, index + x.numel(), index).reshape(-1)
    return torch.index_select(x.reshape(-1), 0, place).reshape(index.shape)


@rewrites(aten.put.default)
def put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> Rewritten:
    if x.numel() == 0:
        return DECLINED
    place = torch.where(index < 0, index + x.numel(), index).reshape(-1)
    return _put(x.reshape(-1), [place], source.reshape(-1), accumulate).reshape(x.shape)


@rewrites(aten.unfold.default)
def unfold(x: torch.Tensor, dim: int, size: int, step: int) -> torch.Tensor:
    """Sliding windows of one dimension: gathers the positions of every window."""
    dim = dim % x.dim()
    starts = torch.arange(0, x.shape[dim] - size + 1, step, device=x.device)
    windows = _index(x, [None] * dim + [starts.unsqueeze(-1) + torch.arange(size, device=x.device)], dim, [dim])
    return windows.movedim(dim + 1, -1)


@rewrites(aten.diagonal.default)
def diagonal(x: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """Gathers every (columns + 1)-th position of the two dimensions, flattened. PyTorch's own needs x's strides."""
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - row, columns - column), 0)
    place = torch.arange(count, device=x.device) * (columns + 1) + (row * columns + column)
    return torch.index_select(x.flatten(-2), -1, place)


@rewrites(aten.as_strided.default)
def as_strided(
    x: torch.Tensor,
    size: Sequence[IntLikeType],
    stride: Sequence[IntLikeType],
    storage_offset: IntLikeType | None = None,
) -> Rewritten:
    """Gathers positions of the flattened tensor, where x is contiguous and its sizes are fixed."""
    if not x.is_contiguous() or not all(isinstance(n, int) for n in [*x.shape, *size, *stride]):
        return DECLINED
    place = torch.zeros([1] * len(size), dtype=torch.int64, device=x.device)
    for axis, (count, jump) in enumerate(zip(size, stride)):
        view: list[IntLikeType] = [1] * len(size)
        view[axis] = count
        place = place + torch.arange(count, device=x.device).reshape(view) * jump
    offset = (storage_offset or 0) - (x.storage_offset() if storage_offset is not None else 0)
    return torch.index_select(x.reshape(-1), 0, (place + offset).reshape(-1)).reshape(size)


@rewrites(aten.index_put.default)
def index_put(
    x: torch.Tensor, indices: Indices, values: torch.Tensor, accumulate: bool = False
) -> Rewritten:
    indices, positions, at, masks = _plan(x, indices)
    if masks:
        mask = indices[positions[0]].to(x.device)
        if len(positions) > 1 or values.numel() != 1 or mask.dtype != torch.bool or positions[0] != 0:
            return DECLINED
        mask = mask.reshape(list(mask.shape) + [1] * (x.dim() - mask.dim()))
        values = values.reshape([]).to(x)
        return torch.where(mask, x + values if accumulate else values, x)
    indices = _counted_from_start(indices, x)
    found = torch.broadcast_tensors(*[indices[d] for d in positions])
    others = [d for d in range(x.dim()) if d not in positions]
    count = found[0].dim()
    result = [x.shape[d] for d in others[:at]] + list(found[0].shape) + [x.shape[d] for d in others[at:]]
    values = values.to(x).expand(result)
    if len(positions) == 1 and count == 1 and not accumulate:
        dim = positions[0]
        return torch.scatter(x, dim, _along(x, dim, found[0], result), values)
    order = positions + others
    straight = order == list(range(x.dim()))
    if at:
        values = values.permute([*range(at, at + count), *range(at), *range(at + count, len(result))])
    out = _put(x if straight else x.permute(order), found, values, accumulate)
    return out if straight else out.permute([order.index(d) for d in range(x.dim())])


@rewrites(aten.masked_scatter.default)
def masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Where the mask is true, the elements of `source` in order. The n-th true element takes source[n]."""
    x, mask = torch.broadcast_tensors(x, mask)
    place = torch.cumsum(mask.reshape(-1).to(torch.int64), 0) - 1
    place = torch.clamp(place, 0, source.numel() - 1)
    taken = torch.index_select(source.reshape(-1), 0, place).reshape(x.shape)
    return torch.where(mask, taken, x)


# --- embedding bags -----------------------------------------------------------------------------------------------


def _source(tensor: torch.Tensor) -> torch.fx.Node | None:
    """The graph node that made a fake tensor, or None."""
    mode = private.get_innermost_proxy_mode()
    slot = private.get_proxy_slot(tensor, mode.tracer, None) if mode is not None else None
    return None if slot is None else slot.proxy.node


def _bag_size(offsets: torch.Tensor) -> IntLikeType | None:
    """The size of all bags, where the offsets are an arange, as nn.EmbeddingBag makes for a matrix of indices."""
    node = _source(offsets)
    if node is not None and node.target is aten.arange.start_step and node.args[0] == 0:
        step: Any = node.args[2]
        size: IntLikeType = step if isinstance(step, int) else step.meta["val"]
        return size
    return None


def embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Rewritten:
    """Sums (mode 0), averages (1) or takes the maximum (2) of the rows in each bag."""
    rows = torch.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    size = None if include_last_offset else _bag_size(offsets)
    place = torch.arange(indices.shape[0], device=indices.device)
    keep = indices != padding_idx if padding_idx >= 0 else None
    if include_last_offset:
        inside = place < offsets[bags]
        keep = inside if keep is None else keep & inside
    if keep is not None:
        keep = keep.unsqueeze(-1)
        rows = torch.where(keep, rows, float("-inf") if mode == 2 else 0.0)
    counted = rows.new_ones([indices.shape[0], 1]) if keep is None else keep.to(rows.dtype)
    if size is not None:  # bags of one size: a reduction of a reshape
        rows, counted = rows.reshape([bags, size, weight.shape[1]]), counted.reshape([bags, size, 1])
        if mode == 2:
            out = rows.amax(1)
            out = out if keep is None else torch.where(torch.isinf(out), 0.0, out)
        elif mode == 1 and keep is None:
            out = rows.mean(1)
        else:
            out = rows.sum(1)
            out = out / counted.sum(1).clamp(min=1) if mode == 1 else out
    elif mode == 2:
        return DECLINED
    else:  # each row is added to the last bag that begins at or before it
        bag = (offsets[:bags] <= place.unsqueeze(-1)).sum(-1) - 1
        out = _put(rows.new_zeros([bags, weight.shape[1]]), [bag], rows, True)
        if mode == 1:
            counts = _put(rows.new_zeros([bags, 1]), [bag], counted, True)
            out = out / counts.clamp(min=1)
    unused = offsets.new_zeros([0])
    return out.to(weight.dtype), unused, unused, unused


REWRITES[aten._embedding_bag.default] = embedding_bag
REWRITES[aten._embedding_bag_forward_only.default] = embedding_bag
