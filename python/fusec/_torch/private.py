"""What fusec uses of PyTorch that is no public API, each with its use. A version of PyTorch may lack one.

`private.NAME` reads it when it is used, so that all else works without it.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from typing import Any

import torch

from ..errors import PlatformError

TESTED = "2.15"  # scripts/torch.txt

USED = {
    # A method that TorchDynamo calls at each graph break: fusec.explain lists them.
    "InstructionTranslatorBase": "torch._dynamo.symbolic_convert.InstructionTranslatorBase",
    "log_graph_break": "torch._dynamo.symbolic_convert.InstructionTranslatorBase.log_graph_break",
    # Functional collectives name their groups; only this finds a group by its name.
    "resolve_process_group": "torch.distributed.distributed_c10d._resolve_process_group",
    # AOTAutograd calls a backend under a fake mode; fusec allocates tensors.
    "unset_fake_temporarily": "torch._subclasses.fake_tensor.unset_fake_temporarily",
    # The node that makes a tensor while a graph is traced: bags of one size are found by it.
    "get_innermost_proxy_mode": "torch.fx.experimental.proxy_tensor.get_innermost_proxy_mode",
    "get_proxy_slot": "torch.fx.experimental.proxy_tensor.get_proxy_slot",
}


def __getattr__(name: str) -> Any:
    """Raises PlatformError where this version of PyTorch lacks it."""
    if name not in USED:
        raise AttributeError(name)
    try:
        return _resolved(USED[name])
    except (ImportError, AttributeError):
        raise _lacks(USED[name]) from None


@functools.cache
def _resolved(path: str) -> Any:
    return pkgutil.resolve_name(path)


def call_kernel(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """Calls the overload's C++ kernel of a dispatch key, (key, ...) -> result.

    `overload.decompose` calls Python kernels first, which torch.export replaces while it decomposes.
    """
    if not hasattr(overload, "_op_dk"):
        raise _lacks("torch._ops.OpOverload._op_dk")
    return overload._op_dk


def _lacks(name: str) -> PlatformError:
    return PlatformError(
        what="PyTorch's private API",
        found=f"version {torch.__version__} without {name}",
        expected=f"a version that has it, as {TESTED} does",
        hint=f"pip install torch=={TESTED}.*",
    )
