"""A complex tensor as two real ones, since the format has no complex dtype.

Operators on them are in complex_operators.py. This covers rotary embeddings written with view_as_complex and polar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch

from .model_file import Value

if TYPE_CHECKING:
    from torch.types import IntLikeType

PART = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}


class Pair(NamedTuple):
    """The parts of a complex tensor."""

    real: Value
    imag: Value

    @property
    def shape(self) -> tuple[IntLikeType, ...]:
        return self.real.shape


# What one call of an operator becomes: a value, or one for each result and None for a result that is not written.
Result: TypeAlias = Value | Pair | Sequence[Value | Pair | None] | None


def constant(name: str, tensor: torch.Tensor, add: Callable[[str, torch.Tensor], Value]) -> Pair:
    """Writes a complex weight as two real views of it. `add(name, tensor)` makes a constant and returns its Value."""
    return Pair(add(name + ".real", tensor.real), add(name + ".imag", tensor.imag))
