"""Caches of transformers as arguments and results: registers their classes as pytrees, where transformers is loaded."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import InputError


def register_caches() -> None:
    """Registers DynamicCache and StaticCache."""
    if "transformers" not in sys.modules:
        return
    try:
        from transformers.integrations.executorch import register_dynamic_cache_export_support
    except ImportError:  # an older version registers its cache itself
        return
    register_dynamic_cache_export_support()
    static_cache = sys.modules["transformers"].StaticCache
    if static_cache not in pytree.SUPPORTED_NODES:
        pytree.register_pytree_node(
            static_cache,
            flatten,
            unflatten,
            serialized_type_name="transformers.StaticCache",
            flatten_with_keys_fn=lambda cache: (
                [(pytree.SequenceKey(i), t) for i, t in enumerate(flatten(cache)[0])],
                flatten(cache)[1],
            ),
        )


def flatten(cache: Any) -> tuple[list[dict[str, torch.Tensor]], Any]:
    """The tensors of each layer of a StaticCache by name, and everything else that it holds."""
    tensors = [{k: v for k, v in vars(layer).items() if isinstance(v, torch.Tensor)} for layer in cache.layers]
    rest = [(type(layer), {k: v for k, v in vars(layer).items() if k not in t}) for layer, t in zip(cache.layers, tensors)]
    return tensors, (type(cache), {k: v for k, v in vars(cache).items() if k != "layers"}, rest)


def unflatten(tensors: Any, context: Any) -> Any:
    kind, state, rest = context
    layers = [_made(layer, {**others, **t}) for (layer, others), t in zip(rest, tensors)]
    return _made(kind, {**state, "layers": layers})


def _made(kind: type, state: dict[str, Any]) -> Any:
    made: Any = object.__new__(kind)
    vars(made).update(state)
    return made


def static_caches(tree: Any) -> list[Any]:
    def is_one(value: Any) -> bool:
        node = pytree.SUPPORTED_NODES.get(type(value))
        return node is not None and node.flatten_fn is flatten

    return [v for v in pytree.tree_leaves(tree, is_leaf=is_one) if is_one(v)]


def check_writable(cache: Any) -> None:
    """Raises InputError where a graph cannot do what the StaticCache does at a call."""
    for layer in cache.layers:
        if type(layer).__name__ != "StaticLayer":
            raise InputError(
                what="a StaticCache",
                found=f"a {type(layer).__name__}",
                expected="StaticLayer: other layers keep positions as Python numbers, which a graph cannot advance",
                hint='torch.compile(model, backend="fusec") takes it',
            )
        if not layer.is_initialized:
            raise InputError(
                what="a StaticCache",
                found="a layer without tensors",
                expected="tensors that the graph writes",
                hint="call cache.early_initialization(...), or the module once without fusec",
            )
