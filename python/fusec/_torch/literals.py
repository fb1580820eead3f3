"""Tensors that the model's code makes of numbers, `torch.tensor(2.0)`: their values are part of the program.

Parameters, buffers and attributes of the module may change after the import, and are given at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.export.graph_signature import InputKind

if TYPE_CHECKING:
    from .program import Program

LIFTED = "lifted_tensor_"  # torch.export's names of them


def literals(program: Program) -> dict[str, torch.Tensor]:
    """The literals whose values are known, by the names of the nodes that read them."""
    inputs = (s for s in program.graph_signature.input_specs if s.kind == InputKind.CONSTANT_TENSOR)
    targets = {s.arg.name: s.target for s in inputs if s.target is not None and s.target.startswith(LIFTED)}
    targets |= {n.name: str(n.target) for n in program.graph.find_nodes(op="get_attr")}
    found = {name: program.constants.get(target) for name, target in targets.items()}
    return {name: tensor for name, tensor in found.items() if isinstance(tensor, torch.Tensor) and has_values(tensor)}


def has_values(tensor: torch.Tensor) -> bool:
    return not tensor.is_meta and not isinstance(tensor, torch._subclasses.FakeTensor)
