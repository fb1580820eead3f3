"""The file of a model that was imported from ONNX; its weights are NumPy arrays."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import onnx

from .._graph_file import GraphFile, Stored


class OnnxFile(GraphFile):
    """``dtypes``: of each tensor, as the format calls it (4-bit ones are packed in uint8 arrays)."""

    def __init__(self, name: str, declares_types: bool) -> None:
        super().__init__(name)
        self.declares_types = declares_types
        self.dtypes: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.onnx_names: dict[str, str] = {}  # name of an input -> ONNX's name for it, where they differ

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"about": f"imported from ONNX by the package onnx {onnx.__version__}"}
        if self.onnx_names:
            found["onnx_names"] = self.onnx_names
        return found

    def stored(self, name: str, tensor: Any) -> Stored:
        shape = self.shapes[name]
        address = tensor.__array_interface__["data"][0]
        key = address, self.dtypes[name], shape, tensor.strides  # a square matrix and its transpose differ in strides

        def write(f: BinaryIO) -> None:
            f.write(np.ascontiguousarray(tensor).view(np.uint8).data if tensor.size else b"")

        return Stored(self.dtypes[name], shape, int(tensor.nbytes), key, write)
