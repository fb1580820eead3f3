"""Names of a module's results, from the structure that the module returns them in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils import _pytree as pytree


def output_names(spec: pytree.TreeSpec) -> Iterator[str]:
    """Names each leaf of the TreeSpec after its place: `output`, `output.1`, `logits`, `past.key`."""
    for keys in _paths(spec):
        yield "output" if not keys else ".".join(keys if not keys[0].isdigit() else ["output", *keys])


def _paths(spec: pytree.TreeSpec) -> Iterator[list[str]]:
    if spec.type is None:  # a leaf
        yield []
        return
    children = spec.children()
    for key, child in zip(_keys(spec, len(children)), children):
        for path in _paths(child):
            yield [key, *path]


def _keys(spec: pytree.TreeSpec, count: int) -> list[str]:
    """One text for each child: the class's own key paths, else its dictionary keys or attributes, else positions."""
    places = [_Place() for _ in range(count)]
    handlers: Any = pytree.SUPPORTED_NODES.get(spec.type)
    try:
        made = handlers.unflatten_fn(places, spec.context)
    except Exception:  # a class may check what it is made of
        made = None
    if made is not None and handlers.flatten_with_keys_fn is not None:
        children, _ = handlers.flatten_with_keys_fn(made)
        return [_text(key) for key, _ in children]
    context = spec.context
    if isinstance(context, (list, tuple)) and len(context) == count and all(isinstance(key, str) for key in context):
        return list(context)
    attributes = {id(value): name for name, value in getattr(made, "__dict__", {}).items()}
    return [attributes.get(id(place), str(i)) for i, place in enumerate(places)]


def _text(key: object) -> str:
    return str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))))


class _Place:
    """Stands for a child."""
