"""The collectives of a compiled model, done by torch.distributed: by NCCL for CUDA tensors, by gloo for CPU tensors."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from .. import _core
from ..errors import InputError
from . import private
from .model_file import TORCH_DTYPES

REDUCTIONS = {
    "sum": dist.ReduceOp.SUM,
    "prod": dist.ReduceOp.PRODUCT,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
    "avg": dist.ReduceOp.AVG,
}


class Communicator:
    """Called for each collective of a launch: with its addresses, on the launch's stream (0 in host memory).

    groups: process groups by the model's names of them. A name that is not among them is that of a process group of
    torch.distributed, as importers write it. device: the number of the GPU, None for host memory.
    """

    def __init__(self, groups: Mapping[str, Any], device: int | None) -> None:
        self.groups, self.device = groups, device

    def __call__(self, collective: _core.Collective, stream: int) -> None:
        group = self._group(collective)
        source = self._tensor(collective.source, collective.source_elements, collective.dtype)
        target = self._tensor(collective.target, collective.target_elements, collective.dtype)
        with self._on(stream):
            if collective.op == "all_gather":
                dist.all_gather_into_tensor(target, source, group)
            elif collective.op == "reduce_scatter":
                dist.reduce_scatter_tensor(target, source, REDUCTIONS[collective.reduce_op], group)
            else:
                if collective.target != collective.source:
                    target.copy_(source)
                dist.all_reduce(target, REDUCTIONS[collective.reduce_op], group)

    def _group(self, collective: _core.Collective) -> Any:
        try:
            group = self.groups.get(collective.group) or private.resolve_process_group(collective.group)
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError(
                what=f"the group {collective.group!r} of the model",
                found="no process group of this name",
                expected="one of torch.distributed",
                hint=f"module.use_groups({{{collective.group!r}: group}})",
            ) from error
        elements = [collective.source_elements, collective.target_elements]
        if collective.op != "all_reduce" and max(elements) != min(elements) * dist.get_world_size(group):
            raise InputError(
                what=f"the group {collective.group!r} of the model",
                found=f"{dist.get_world_size(group)} processes",
                expected=f"{max(elements) // max(min(elements), 1)}",
            )
        return group

    def _tensor(self, address: int, elements: int, dtype: str) -> torch.Tensor:
        """The memory as a tensor, without an owner."""
        kind = TORCH_DTYPES[dtype]
        if elements == 0:
            return torch.empty(0, dtype=kind, device="cpu" if self.device is None else f"cuda:{self.device}")
        if self.device is None:
            size = elements * kind.itemsize
            return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=kind, count=elements)
        return torch.as_tensor(_CudaMemory(address, elements * kind.itemsize), device=f"cuda:{self.device}").view(kind)

    def _on(self, stream: int) -> contextlib.AbstractContextManager[Any]:
        if self.device is None:
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.ExternalStream(stream, device=self.device))


class _CudaMemory:
    """Device memory, as https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html describes it."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}
