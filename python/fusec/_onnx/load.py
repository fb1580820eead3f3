"""Reads an ONNX model, and imports it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import onnx

from ..errors import InputError
from .convert import Converter, RestartWithKnownInputs
from .errors import Deferred, elements_needed, import_error
from .file import OnnxFile
from .initializers import Initializers
from .signature import Signature
from .sizes import Sizes, texts
from .values import Item, Value


class Opened(NamedTuple):
    """A model, and the folder of its external data."""

    model: onnx.ModelProto
    folder: str | None

    def input_names(self) -> list[str]:
        """Of the inputs that a call gives."""
        weights = {t.name for t in self.model.graph.initializer}
        return [i.name for i in self.model.graph.input if i.name not in weights]

    def weight_names(self) -> set[str]:
        """Of the main graph's initializers and constants. Those of subgraphs get names when they are imported."""
        constants = (name for node in self.model.graph.node if node.op_type == "Constant" for name in node.output)
        return {t.name for t in self.model.graph.initializer}.union(constants)


def load(
    model: str | os.PathLike[str] | onnx.ModelProto | Opened,
    *,
    name: str | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    inputs: Mapping[str, Any] | None = None,
    allow_custom: bool = False,
    types: bool = False,
) -> tuple[OnnxFile, Signature]:
    """The graph and how it is called. Raises InputError; Deferred where elements of inputs must be known first."""
    proto, folder = read(model) if not isinstance(model, Opened) else model
    dims = {} if dims is None else dims
    given = dict(inputs or {})
    _check(proto, given, dims)
    initializers = Initializers(folder)
    fixed: set[str] = set()
    while True:
        sizes = Sizes(dict(dims))
        converter = Converter(proto, initializers, sizes, given, fixed, allow_custom)
        try:
            outputs = converter.run()
            break
        except RestartWithKnownInputs as restart:
            if restart.names <= fixed:
                raise
            fixed |= restart.names
    if converter.problems:
        error = import_error(converter.problems, allow_custom, bool(given or dims))
        needed = elements_needed(converter.problems)
        raise error if needed is None else Deferred(str(error), needed)
    file = OnnxFile(name or proto.graph.name or "model", types)
    flat = [pair for info, item in zip(proto.graph.output, outputs) for pair in _flat(info.name, item)]
    if not flat:
        raise InputError(
            what="the outputs of the ONNX model", found="only empty sequences and optionals", expected="a tensor"
        )
    converter.emitter.write(file, converter.inputs, [value for _, value in flat], [name for name, _ in flat])
    file.symbols = sizes.symbols
    names = [converter.emitter.named[value] for value in converter.inputs]
    for given_name, value in zip(names, converter.inputs):
        file.inputs.append({"name": given_name, "dtype": value.dtype, "shape": texts(value.shape)})
        if given_name != value.wanted:
            file.onnx_names[given_name] = value.wanted
    _determine_symbols(file)
    return file, Signature(proto, file, converter, names, outputs)


def _determine_symbols(file: OnnxFile) -> None:
    """Sizes of custom ops' results that depend on elements: inputs of shape [size, 0], without data, declare them."""
    written = {word for row in file.inputs for d in row["shape"] for word in re.findall(r"[A-Za-z_]\w*", str(d))}
    for symbol in file.symbols.keys() - written:
        file.inputs.append({"name": file.unique(f"size_of_{symbol}"), "dtype": "uint8", "shape": [symbol, 0]})


def _flat(name: str, item: Item) -> list[tuple[str, Value]]:
    """The tensors of an output: of a sequence each element."""
    if isinstance(item, list):
        return [pair for i, x in enumerate(item) for pair in _flat(f"{name}.{i}", x)]
    return [] if item is None else [(name, item)]


def read(model: str | os.PathLike[str] | onnx.ModelProto) -> Opened:
    """The model, with its external data left where they are."""
    if isinstance(model, onnx.ModelProto):
        return Opened(model, None)
    path = os.fspath(model)
    try:
        return Opened(onnx.load(path, load_external_data=False), os.path.dirname(os.path.abspath(path)))
    except FileNotFoundError:
        raise InputError(what=path, found="no such file", expected="an ONNX model", file=path) from None
    except Exception as error:  # of protobuf, which has several
        raise InputError(f"{path} cannot be read as an ONNX model: {error}", file=path) from None


def _check(model: onnx.ModelProto, given: Mapping[str, Any], dims: Mapping[str, Any]) -> None:
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            raise InputError(
                what="the model's opset",
                found=str(opset.version),
                expected=f"at most {newest}",
                hint="update the package onnx",
            )
    if not model.graph.output:
        raise InputError(what="the ONNX model", found="a graph without outputs", expected="at least one")
    if not isinstance(dims, Mapping):
        raise InputError(what="dims=", found=repr(dims), expected="a dict of sizes by name")
    weights = {t.name for t in model.graph.initializer}
    known = [i.name for i in model.graph.input if i.name not in weights]
    for name in given:
        if name not in known:
            raise InputError(what="inputs=", found=repr(name), expected=f"one of {known}")
    params = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    unnamed = {
        f"{i.name}_dim{axis}"
        for i in model.graph.input
        for axis, d in enumerate(i.type.tensor_type.shape.dim)
        if not d.dim_param and not d.HasField("dim_value")
    }
    for name, size in dims.items():
        if not any(name in p for p in params | unnamed):
            raise InputError(what="dims=", found=repr(name), expected=f"one of {sorted(params | unnamed)}")
        fine = isinstance(size, int) and size >= 0
        if not fine and not (isinstance(size, Sequence) and len(size) == 2 and 0 <= size[0] <= size[1]):
            raise InputError(what=f"dims[{name!r}]", found=repr(size), expected="a size, or a pair of bounds")
