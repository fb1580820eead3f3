"""Calls of a module, (args, kwargs) -> result, as calls of the compiled model, which has named tensors."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from ..errors import InputError
from .model_file import ModelFile, Plain, Size


class Signature:
    """The signature of one traced module. A buffer that the module writes (a KV cache) is passed by reference."""

    def __init__(self, program: torch.export.ExportedProgram, file: ModelFile, module: torch.nn.Module | None) -> None:
        self.in_spec, self.out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        self.leaves, self.integers = dict(file.leaves), dict(file.integers)
        self.outputs, self.returned = list(file.outputs), list(file.returned)
        buffers = {**program.state_dict, **program.constants}
        if module is not None:
            buffers |= dict(module.named_buffers(remove_duplicate=False))
        self.state: dict[str, torch.Tensor] = {name: buffers[buffer] for name, buffer in file.state.items()}
        user = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
        self.constants: dict[int, Any] = {
            i: s.arg.value for i, s in enumerate(user) if isinstance(s.arg, ConstantArgument)
        }
        self.forward = inspect.signature(module.forward) if module is not None else None

    @property
    def names(self) -> set[str]:
        """The names of the arguments that the traced call was given."""
        positional, keywords = self.in_spec.children()
        parameters = [] if self.forward is None else list(self.forward.parameters)
        return {*parameters[: positional.num_children], *keywords.context}

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name.

        Raises TypeError for a call that does not fit. Raises InputError for a number, a text or a flag that differs
        from the one that the module was traced with.
        """
        leaves = self._leaves(args, kwargs)
        for place, traced in self.constants.items():
            if not _same(leaves[place], traced):
                raise InputError(
                    what="an argument that the module was traced with",
                    found=repr(leaves[place]),
                    expected=repr(traced),
                    hint="import the module again for another value; torch.export.Dim.DYNAMIC lets an integer vary",
                )
        given: dict[str, Any] = {name: leaves[place] for name, place in self.leaves.items()}
        tensors = (t for t in (*given.values(), *self.state.values()) if isinstance(t, torch.Tensor))
        device = next((t.device for t in tensors), None)
        given |= {
            name: torch.empty(leaves[place], 0, dtype=torch.uint8, device=device)
            for name, place in self.integers.items()
        }
        return {**given, **self.state}

    def _leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of a call, in the order of the traced call."""
        positional, keywords = self.in_spec.children()
        names = keywords.context  # the keyword arguments of the traced call, in their order
        if self.forward is not None:
            bound = self.forward.bind(*args, **kwargs)
            bound.apply_defaults()
            in_order: list[Any] = []
            given: dict[str, Any] = {}
            for p in self.forward.parameters.values():
                value = bound.arguments[p.name]
                if p.kind == inspect.Parameter.VAR_POSITIONAL:
                    in_order += value
                elif p.kind == inspect.Parameter.VAR_KEYWORD:
                    given |= value
                elif p.name in names:
                    given[p.name] = value
                elif len(in_order) < positional.num_children or not _is_default(value, p):
                    in_order.append(value)  # else the traced call left it out as well
            args, kwargs = tuple(in_order), given
        kwargs = {**{k: kwargs[k] for k in names if k in kwargs}, **kwargs}
        leaves: list[Any]
        leaves, spec = pytree.tree_flatten((tuple(args), kwargs))
        if spec != self.in_spec:
            raise TypeError(f"the call does not fit the one that the module was traced with: {_misfit(spec, self.in_spec)}")
        return leaves

    def results(self, tensors: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """The module's result, made of the outputs by name."""

        def leaf(returned: int | Plain | Size) -> Any:
            if isinstance(returned, Plain):
                return returned.value
            if isinstance(returned, Size):
                return int(given[returned.input].shape[returned.dim])
            return tensors[self.outputs[returned]]

        return pytree.tree_unflatten([leaf(r) for r in self.returned], self.out_spec)


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    return value is parameter.default or (isinstance(value, (int, float, str)) and _same(value, parameter.default))


def _same(given: Any, traced: Any) -> bool:
    """Whether a call computes the same with both: not with 2.0 for 2, nor with True for 1, nor with -0.0 for 0.0."""
    if isinstance(traced, bool) or isinstance(given, bool):
        return given is traced
    if isinstance(traced, int):
        return isinstance(given, numbers.Integral) and int(given) == traced
    if isinstance(traced, float):
        is_float = isinstance(given, numbers.Real) and not isinstance(given, numbers.Integral)
        return is_float and float.hex(float(given)) == float.hex(traced)
    return isinstance(given, type(traced)) and bool(given == traced)


def _misfit(found: pytree.TreeSpec, traced: pytree.TreeSpec) -> str:
    """The first difference between the structures of two calls."""
    (mine, my_keywords), (theirs, their_keywords) = found.children(), traced.children()
    if mine.num_children != theirs.num_children:
        return f"found {mine.num_children} positional arguments, expected {theirs.num_children}"
    if my_keywords.context != their_keywords.context:
        return f"found the keyword arguments {my_keywords.context}, expected {their_keywords.context}"
    arguments = [*((str(i), a, b) for i, (a, b) in enumerate(zip(mine.children(), theirs.children()))),
                 *zip(my_keywords.context, my_keywords.children(), their_keywords.children())]
    name, given, expected = next(a for a in arguments if a[1] != a[2])
    return f"argument {name}: found {_shown(given)}, expected {_shown(expected)}"


def _shown(spec: pytree.TreeSpec) -> str:
    return "one tensor or number" if spec.is_leaf() else " ".join(str(spec).split())
