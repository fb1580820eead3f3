"""How an imported model is called: NumPy arrays in the order of the ONNX graph's inputs, and its outputs in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from .._shape_tensors import host_elements
from ..errors import InputError
from .file import OnnxFile
from .values import DTYPES, WIDE, Item, dtype_of

if TYPE_CHECKING:
    from .convert import Converter


class Signature:
    """Inputs whose elements were fixed are checked; elements of narrow types are widened, those of results narrowed."""

    def __init__(
        self,
        model: onnx.ModelProto,
        file: OnnxFile,
        converter: Converter,
        names: Sequence[str],
        outputs: Sequence[Item],
    ) -> None:
        weights = {t.name for t in model.graph.initializer}
        self.names = [i.name for i in model.graph.input if i.name not in weights]
        self.fixed = {name: np.asarray(converter.example(name)) for name in converter.fixed}
        self.lengths = {
            n: len(x) for n, x in converter.given.items() if isinstance(x, list) and n in self.sequences(model)
        }
        self.given = dict(zip([v.wanted for v in converter.inputs], names))
        self.kinds = {v.wanted: v.kind for v in converter.inputs}
        names_left = iter(file.outputs)
        self.outputs = [_layout(item, names_left) for item in outputs]

    @staticmethod
    def sequences(model: onnx.ModelProto) -> set[str]:
        return {i.name for i in model.graph.input if not i.type.HasField("tensor_type")}

    def arguments(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The model's inputs by name. Raises TypeError for a call that does not fit, InputError for other elements."""
        if len(args) > len(self.names):
            raise TypeError(f"{len(args)} tensors are given; the model takes {len(self.names)}: {self.names}")
        given = dict(zip(self.names, args))
        for name, tensor in named.items():
            if name not in self.names:
                raise TypeError(f"unexpected tensor {name!r}; the model takes {self.names}")
            if name in given:
                raise TypeError(f"tensor {name!r} is given twice")
            given[name] = tensor
        missing = [name for name in self.names if name not in given and name not in self.fixed]
        if missing:
            raise TypeError(f"no tensor is given for {missing}")
        given = self._flat(given)
        for name, value in self.fixed.items():
            found = host_elements(given[name]) if name in given else value
            if not _same(found, value):
                raise InputError(
                    what=f"input {name!r}, whose elements decide a shape",
                    found=f"{found.tolist()}",
                    expected=f"{value.tolist()}",
                    hint="import the model again with inputs= of these elements",
                )
        return {name: _widened(given[wanted], self.kinds[wanted]) for wanted, name in self.given.items()}

    def results(self, tensors: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """The outputs in order; one alone is no tuple."""
        found = tuple(_result(layout, tensors) for layout in self.outputs)
        return found[0] if len(found) == 1 else found

    def _flat(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The elements of sequences by their own names."""
        flat: dict[str, Any] = {}
        for name, item in given.items():
            if name in self.lengths:
                if len(item) != self.lengths[name]:
                    raise InputError(
                        what=f"the sequence {name!r}", found=f"{len(item)} tensors", expected=f"{self.lengths[name]}"
                    )
                flat.update((f"{name}.{i}", x) for i, x in enumerate(item))
            elif item is not None:
                flat[name] = item
        return flat


def _layout(item: Item, names: Iterator[str]) -> Any:
    """Of a tensor its name and ONNX type, of a sequence a list of these."""
    if isinstance(item, list):
        return [_layout(x, names) for x in item]
    return None if item is None else (next(names), item.kind)


def _result(layout: Any, tensors: Mapping[str, Any]) -> Any:
    if isinstance(layout, list):
        return [_result(x, tensors) for x in layout]
    return None if layout is None else _narrowed(tensors[layout[0]], layout[1])


def _same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _widened(tensor: Any, kind: int) -> Any:
    if kind in WIDE and isinstance(tensor, (np.ndarray, np.generic)):
        return np.asarray(tensor).astype(np.float32).astype(_numpy(dtype_of(kind)))
    return tensor


def _narrowed(tensor: Any, kind: int) -> Any:
    if kind in WIDE and kind not in DTYPES and isinstance(tensor, np.ndarray):
        return tensor.astype(np.float32).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    return tensor


def _numpy(name: str) -> Any:
    from .._tensors import numpy_dtype

    return numpy_dtype(name)
