"""Handlers of functional collectives (torch.distributed._functional_collectives), as DTensor and FSDP call them.

They gather and scatter along dimension 0. What reads a result waits for it, so that wait_tensor is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from .errors import Refused
from .model_file import Value
from .op_handlers import handles, require

if TYPE_CHECKING:
    from .complex_pairs import Result
    from .convert import Arguments, Converter

REDUCTIONS = {"sum": "sum", "product": "prod", "prod": "prod", "max": "max", "min": "min", "avg": "avg"}


@handles("wait_tensor.default", library="_c10d_functional")
def wait_tensor(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["tensor"]
    return x


@handles("all_reduce.default", "all_reduce_coalesced.default", library="_c10d_functional")
def all_reduce(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return each(c, node, a, "all_reduce", {"group": group_of(a), "reduce_op": reduction_of(a)})


@handles("all_gather_into_tensor.default", "all_gather_into_tensor_coalesced.default", library="_c10d_functional")
def all_gather(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return each(c, node, a, "all_gather", {"group": group_of(a), "dim": 0})


@handles("reduce_scatter_tensor.default", "reduce_scatter_tensor_coalesced.default", library="_c10d_functional")
def reduce_scatter(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return each(c, node, a, "reduce_scatter", {"group": group_of(a), "dim": 0, "reduce_op": reduction_of(a)})


def each(c: Converter, node: torch.fx.Node, a: Arguments, op: str, attributes: Mapping[str, Any]) -> Result:
    """One node for each tensor; the size of the group shows in the types alone, which are written."""
    operands = a["inputs"] if "inputs" in a else [a["input"]]
    results = node.meta["val"] if "inputs" in a else [node.meta["val"]]
    require(op == "all_reduce" or all(x.shape for x in operands), "a tensor without dimensions is gathered")
    values = [c.emit_declared(node, op, [x], attributes, r) for x, r in zip(operands, results)]
    return values if "inputs" in a else values[0]


def group_of(a: Arguments) -> str:
    group = a["group_name"]
    name = group if isinstance(group, str) else getattr(group, "group_name", None)
    if not isinstance(name, str):
        raise Refused("a process group without a name")
    return name


def reduction_of(a: Arguments) -> str:
    name = str(a["reduce_op"]).lower()
    require(name in REDUCTIONS, f"the format has no reduction {name!r} between devices")
    return REDUCTIONS[name]
