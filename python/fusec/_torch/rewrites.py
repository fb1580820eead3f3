"""Operators that the format does not have, said in PyTorch in terms of those it has.

Each is a decomposition for torch.export: it sees fake tensors, so shapes may be symbolic. One that returns
NotImplemented leaves that call as it is. What PyTorch's own table decomposes well is not repeated here.
"""

import math

import torch
from torch.fx.experimental.proxy_tensor import get_innermost_proxy_mode, get_proxy_slot

aten = torch.ops.aten
REWRITES = {}


def rewrites(*operators):
    def register(function):
        for operator in operators:
            REWRITES[operator] = function
        return function

    return register


# --- pointwise ----------------------------------------------------------------------------------------------------


@rewrites(aten.add.Tensor, aten.add.Scalar)
def add(x, other, alpha=1):
    return NotImplemented if alpha == 1 else x + other * alpha


@rewrites(aten.sub.Tensor, aten.sub.Scalar)
def sub(x, other, alpha=1):
    return NotImplemented if alpha == 1 else x - other * alpha


@rewrites(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(x, other, alpha=1):
    return NotImplemented if alpha == 1 else other - x * alpha


@rewrites(aten.clamp.Tensor)
def clamp(x, min=None, max=None):
    x = x if min is None else torch.maximum(x, min)
    return x if max is None else torch.minimum(x, max)


@rewrites(aten.glu.default)
def glu(x, dim=-1):
    value, gate = torch.split(x, x.shape[dim] // 2, dim)
    return value * torch.sigmoid(gate)


@rewrites(aten.signbit.default)
def signbit(x):
    return x < 0


@rewrites(aten.copysign.Tensor)
def copysign(x, sign):
    return torch.where(sign < 0, -torch.abs(x), torch.abs(x))


@rewrites(aten.hypot.default)
def hypot(x, y):
    return torch.sqrt(x * x + y * y)


@rewrites(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantize(x, scale, zero_point, quant_min, quant_max):
    whole = torch.round(x / scale) + zero_point
    return (torch.clamp(whole, quant_min, quant_max) - zero_point) * scale, (whole >= quant_min) & (whole <= quant_max)


@rewrites(aten.bucketize.Tensor)
def bucketize(x, boundaries, *, right=False, out_int32=False):
    """The number of boundaries below each value."""
    below = boundaries <= x.unsqueeze(-1) if right else boundaries < x.unsqueeze(-1)
    return below.sum(-1).to(torch.int32 if out_int32 else torch.int64)


@rewrites(aten.histc.default)
def histc(x, bins=100, min=0, max=0):
    """Elements in each of `bins` equal parts of [min, max]; mixtures of experts count their tokens so."""
    if min >= max:
        return NotImplemented  # the range is that of the data
    x = x.reshape(-1)
    place = torch.clamp(torch.floor((x - min) * (bins / (max - min))), max=bins - 1)
    place = torch.where(x <= max, place, -1.0).unsqueeze(-1)
    return (place == torch.arange(bins, dtype=x.dtype, device=x.device)).sum(0).to(x.dtype)


@rewrites(aten.searchsorted.Tensor)
def searchsorted(sequence, x, *, right=False, out_int32=False, side=None, sorter=None):
    if sequence.dim() != 1 or sorter is not None:
        return NotImplemented
    return bucketize(x, sequence, right=right or side == "right", out_int32=out_int32)


# --- normalization (--decompose only: the format has batch_norm) ----------------------------------------------------


def batch_norm_inference(x, weight, bias, mean, var, momentum, eps):
    """With running statistics, along dimension 1; 16-bit inputs are computed in float32."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    mean, var = mean.reshape(shape), var.reshape(shape)
    out = (x.to(var.dtype) - mean) * torch.rsqrt(var + eps)
    out = out if weight is None else out * weight.reshape(shape)
    out = out if bias is None else out + bias.reshape(shape)
    return out.to(x.dtype), x.new_empty([0]), x.new_empty([0])


# --- matrices and pooling -----------------------------------------------------------------------------------------


@rewrites(aten.baddbmm.default)
def baddbmm(x, a, b, *, beta=1, alpha=1):
    product = torch.bmm(a, b)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (x if beta == 1 else x * beta) + product


@rewrites(aten.addbmm.default)
def addbmm(x, a, b, *, beta=1, alpha=1):
    return baddbmm(
        x, a.transpose(0, 1).flatten(1).unsqueeze(0), b.flatten(0, 1).unsqueeze(0), beta=beta, alpha=alpha
    ).squeeze(0)


@rewrites(aten._trilinear.default)
def trilinear(a, b, c, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """nn.Bilinear: the product of three tensors, each unsqueezed at its `expand` dims, summed."""
    spread = []
    for tensor, dims in ((a, expand1), (b, expand2), (c, expand3)):
        for dim in sorted(dims):
            tensor = tensor.unsqueeze(dim)
        spread.append(tensor)
    return (spread[0] * spread[1] * spread[2]).sum(sumdim)


@rewrites(aten.norm.Scalar)
def norm(x, p=2):
    return torch.linalg.vector_norm(x, p)


@rewrites(aten._cdist_forward.default)
def cdist(x, y, p, compute_mode):
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


@rewrites(aten.avg_pool2d.default)
def avg_pool2d(x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if divisor_override is None or ceil_mode:
        return NotImplemented
    area = math.prod(kernel_size) if len(kernel_size) == 2 else kernel_size[0] ** 2
    return aten.avg_pool2d.default(x, kernel_size, stride, padding) * (area / divisor_override)


@rewrites(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(x, output_size):
    out = aten.adaptive_avg_pool2d.default(x.unsqueeze(-2), [1, output_size[0]])
    return out.squeeze(-2)


@rewrites(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(x, output_size):
    return x.mean((-3, -2, -1), keepdim=True) if list(output_size) == [1, 1, 1] else NotImplemented


@rewrites(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(x, output_size):
    if list(output_size) != [1, 1]:
        return NotImplemented
    flat = x.flatten(-2)
    return flat.amax(-1).unsqueeze(-1).unsqueeze(-1), flat.argmax(-1).unsqueeze(-1).unsqueeze(-1)


@rewrites(aten.upsample_nearest1d.vec, aten.upsample_nearest1d.default)
def upsample_nearest1d(x, output_size, scales=None):
    scale = scales[0] if isinstance(scales, (list, tuple)) else scales
    size = output_size[0] if output_size is not None else math.floor(x.shape[-1] * scale)
    return aten.upsample_nearest2d.default(x.unsqueeze(-2), [1, size], 1.0, scale).squeeze(-2)


# --- writing into a part of a tensor ------------------------------------------------------------------------------


def _along(x, dim, index, shape):
    """A vector of positions along `dim`, as scatter wants it: of `shape`."""
    view = [1] * x.dim()
    view[dim] = index.shape[0]
    return index.reshape(view).expand(shape)


@rewrites(aten.slice_scatter.default)
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
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
def select_scatter(x, src, dim, index):
    dim = dim % x.dim()
    index = index + x.shape[dim] if isinstance(index, int) and index < 0 else index
    return slice_scatter(x, src.unsqueeze(dim), dim, index, index + 1)


@rewrites(aten.scatter.value)
def scatter_value(x, dim, index, value):
    return torch.scatter(x, dim, index, torch.full(index.shape, value, dtype=x.dtype, device=x.device))


def _scatter_add(x, dim, index, src):
    """Every position of `index` as coordinates, then an accumulating index_put."""
    coordinates = []
    for axis in range(x.dim()):
        if axis == dim % x.dim():
            coordinates.append(index)
        else:
            view = [1] * x.dim()
            view[axis] = index.shape[axis]
            coordinates.append(torch.arange(index.shape[axis], device=x.device).reshape(view).expand(index.shape))
    for axis in range(x.dim()):
        src = aten.slice.Tensor(src, axis, 0, index.shape[axis])
    return aten._unsafe_index_put.default(x, coordinates, src, True)


@rewrites(aten.scatter_add.default)
def scatter_add(x, dim, index, src):
    return _scatter_add(x, dim, index, src)


@rewrites(aten.scatter_reduce.two)
def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    return _scatter_add(x, dim, index, src) if reduce == "sum" and include_self else NotImplemented


@rewrites(aten.index_copy.default)
def index_copy(x, dim, index, source):
    dim = dim % x.dim()
    return torch.scatter(x, dim, _along(x, dim, index.reshape(-1), source.shape), source)


@rewrites(aten.index_add.default)
def index_add(x, dim, index, source, *, alpha=1):
    dim = dim % x.dim()
    source = source if alpha == 1 else source * alpha
    moved, values = x.transpose(0, dim), source.transpose(0, dim)
    return aten._unsafe_index_put.default(moved, [index.reshape(-1)], values, True).transpose(0, dim)


# --- advanced indexing --------------------------------------------------------------------------------------------


def _counted_from_start(indices, x):
    """Indices may count from the end; program.py removes the correction where that is provably not so."""
    indices = [i if i is None else i.to(x.device) for i in indices]
    return [i if i is None else torch.where(i < 0, i + x.shape[d], i) for d, i in enumerate(indices)]


def _plan(x, indices):
    """(positions that are indexed, where their result dimensions go, whether any index is a mask)"""
    indices = list(indices) + [None] * (x.dim() - len(indices))
    positions = [d for d, i in enumerate(indices) if i is not None]
    masks = any(indices[d].dtype in (torch.bool, torch.uint8) for d in positions)
    together = positions == list(range(positions[0], positions[-1] + 1))
    return indices, positions, positions[0] if together else 0, masks


def _index(x, indices, at, positions):
    """x at integer indices that count from the start: one index_select of a flattened view."""
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
def index(x, indices):
    indices, positions, at, masks = _plan(x, indices)
    return NotImplemented if masks else _index(x, _counted_from_start(indices, x), at, positions)


@rewrites(aten._unsafe_index.Tensor)
def unsafe_index(x, indices):
    indices, positions, at, masks = _plan(x, indices)
    return NotImplemented if masks else _index(x, indices, at, positions)


@rewrites(aten._unsafe_index_put.default)
def unsafe_index_put(x, indices, values, accumulate=False):
    indices = list(indices)
    leading = all(i is not None and i.dtype in (torch.int64, torch.int32) for i in indices)
    return NotImplemented if leading else index_put(x, indices, values, accumulate)


@rewrites(aten.unfold.default)
def unfold(x, dim, size, step):
    """Sliding windows of one dimension: the positions of every window, gathered."""
    dim = dim % x.dim()
    starts = torch.arange(0, x.shape[dim] - size + 1, step, device=x.device)
    windows = _index(x, [None] * dim + [starts.unsqueeze(-1) + torch.arange(size, device=x.device)], dim, [dim])
    return windows.movedim(dim + 1, -1)


@rewrites(aten.as_strided.default)
def as_strided(x, size, stride, storage_offset=None):
    """Positions in the flattened tensor, where what PyTorch traced is contiguous and sizes are fixed."""
    if not x.is_contiguous() or not all(isinstance(n, int) for n in [*x.shape, *size, *stride]):
        return NotImplemented
    place = torch.zeros([1] * len(size), dtype=torch.int64, device=x.device)
    for axis, (count, jump) in enumerate(zip(size, stride)):
        view = [1] * len(size)
        view[axis] = count
        place = place + torch.arange(count, device=x.device).reshape(view) * jump
    offset = (storage_offset or 0) - (x.storage_offset() if storage_offset is not None else 0)
    return torch.index_select(x.reshape(-1), 0, (place + offset).reshape(-1)).reshape(size)


@rewrites(aten.index_put.default)
def index_put(x, indices, values, accumulate=False):
    indices, positions, at, masks = _plan(x, indices)
    if masks:
        mask = indices[positions[0]].to(x.device)
        if len(positions) > 1 or values.numel() != 1 or mask.dtype != torch.bool or positions[0] != 0:
            return NotImplemented
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
    out = aten._unsafe_index_put.default(x if straight else x.permute(order), list(found), values, accumulate)
    return out if straight else out.permute([order.index(d) for d in range(x.dim())])


# --- embedding bags -----------------------------------------------------------------------------------------------


def _source(tensor):
    """The graph node that made a fake tensor, or None."""
    mode = get_innermost_proxy_mode()
    slot = get_proxy_slot(tensor, mode.tracer, None) if mode is not None else None
    return None if slot is None else slot.proxy.node


def _bag_size(offsets):
    """The size of all bags, where the offsets are an arange (as nn.EmbeddingBag makes them for a matrix of indices)."""
    node = _source(offsets)
    if node is not None and node.target is aten.arange.start_step and node.args[0] == 0:
        step = node.args[2]
        return step if isinstance(step, int) else step.meta["val"]
    return None


def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
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
    if size is not None:  # all bags alike: a reduction of a reshape
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
        return NotImplemented
    else:  # each row is added to the last bag that begins at or before it
        bag = (offsets[:bags] <= place.unsqueeze(-1)).sum(-1) - 1
        out = aten._unsafe_index_put.default(rows.new_zeros([bags, weight.shape[1]]), [bag], rows, True)
        if mode == 1:
            counts = aten._unsafe_index_put.default(rows.new_zeros([bags, 1]), [bag], counted, True)
            out = out / counts.clamp(min=1)
    unused = offsets.new_zeros([0])
    return out.to(weight.dtype), unused, unused, unused


REWRITES[aten._embedding_bag.default] = embedding_bag
REWRITES[aten._embedding_bag_forward_only.default] = embedding_bag
