"""Calls of a module, (args, kwargs) -> result, as calls of the compiled model, which has named tensors."""

from __future__ import annotations

import inspect
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

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name.

        Raises TypeError for a call that does not fit. Raises InputError for a number, a text or a flag that differs
        from the one that the module was traced with.
        """
        leaves = self._leaves(args, kwargs)
        for place, traced in self.constants.items():
            if leaves[place] != traced:
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
            given = dict(bound.arguments)
            for p in self.forward.parameters.values():
                if p.kind == inspect.Parameter.VAR_KEYWORD:
                    given |= given.pop(p.name, {})
                elif p.kind == inspect.Parameter.VAR_POSITIONAL and not given[p.name]:
                    del given[p.name]
            in_order = [v for k, v in given.items() if k not in names]
            args = tuple(in_order[: positional.num_children])
            kwargs = {k: given[k] for k in names if k in given}
        elif set(kwargs) == set(names):
            kwargs = {k: kwargs[k] for k in names}
        leaves: list[Any]
        leaves, spec = pytree.tree_flatten((tuple(args), kwargs))
        if spec != self.in_spec:
            raise TypeError(f"the call does not fit: found {spec}, the module was traced with {self.in_spec}")
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
