"""How tensors lie in memory: orders of dimensions, gaps, overlaps."""

from __future__ import annotations

import torch

from .dimensions import expression_of

Order = tuple[int, ...]


def memory_order(value: torch.Tensor) -> Order | None:
    """The dimensions from the largest stride to the least; None where that is their own order."""
    strides = [hint(s) for s in value.stride()]
    sizes = [hint(s) for s in value.shape]
    if any(s is None for s in [*strides, *sizes]) or 0 in sizes:
        return None
    dense = 1
    order = sorted(range(value.dim()), key=lambda d: (-strides[d], -sizes[d], d))  # type: ignore[operator]
    for d in reversed(order):
        if sizes[d] != 1 and strides[d] != dense:
            return None  # with gaps or repeated elements: it is copied
        dense *= sizes[d]  # type: ignore[operator]
    kept = [d for d in order if sizes[d] != 1]
    return None if kept == sorted(kept) else tuple(order)


def inverse(order: Order) -> Order:
    return tuple(sorted(range(len(order)), key=lambda d: order[d]))


def has_gaps(value: torch.Tensor) -> bool:
    """Whether its memory has gaps, or elements that are in several places, in whatever order its dimensions lie."""
    dense: int | torch.SymInt = 1
    for size, stride in sorted(zip(value.shape, value.stride()), key=lambda d: (hint(d[1]) or 0, hint(d[0]) or 0)):
        if hint(size) == 1:
            continue
        if hint(stride) != hint(dense):
            return True
        dense = dense * size
    return False


def hint(size: int | torch.SymInt) -> int | None:
    """The size in the traced call."""
    if isinstance(size, torch.SymInt):
        return int(size.node.hint) if size.node.has_hint() else None  # type: ignore[arg-type]
    return int(size)


def overlaps(value: torch.Tensor) -> bool:
    """Whether two elements may lie in one place."""
    end = 1
    for stride, size in sorted((stride, size) for size, stride in zip(value.shape, value.stride()) if size > 1):
        if stride < end:
            return True
        end = stride * (size - 1) + end
    return False


def same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Of dimensions that are not 1; symbolic ones are compared as expressions."""
    strides = [(x, y) for n, x, y in zip(a.shape, a.stride(), b.stride()) if expression_of(n) != 1]
    return all(expression_of(x) == expression_of(y) for x, y in strides)
