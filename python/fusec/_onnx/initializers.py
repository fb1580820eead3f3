"""Weights of an ONNX model as NumPy arrays: views of what the model holds, or of its external files."""

from __future__ import annotations

import os

import numpy as np
import onnx
from onnx import TensorProto
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from ..errors import InputError
from .values import Array

_RAW = {
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.INT16,
    TensorProto.INT8,
    TensorProto.UINT64,
    TensorProto.UINT32,
    TensorProto.UINT16,
    TensorProto.UINT8,
    TensorProto.BOOL,
    TensorProto.BFLOAT16,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E5M2,
}


class Initializers:
    """``folder``: where external data lie; None for a model that was not read from a file."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self._arrays: dict[int, Array] = {}
        self._kept: list[TensorProto] = []  # whose id() is a key

    def array(self, tensor: TensorProto) -> Array:
        """The elements; 4-bit ones one to an element."""
        if id(tensor) not in self._arrays:
            self._arrays[id(tensor)] = self._array(tensor)
            self._kept.append(tensor)
        return self._arrays[id(tensor)]

    def _array(self, tensor: TensorProto) -> Array:
        shape = tuple(tensor.dims)
        if not uses_external_data(tensor):
            return onnx.numpy_helper.to_array(tensor)
        data = self._external(tensor)
        if tensor.data_type in _RAW:
            return data.view(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).reshape(shape)
        loaded = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data.tobytes())
        return onnx.numpy_helper.to_array(loaded)

    def packed(self, tensor: TensorProto) -> Array:
        """4-bit elements as they lie in memory, which is as the format has them: two to a byte, the low half first."""
        shape = (*tuple(tensor.dims)[:-1], tensor.dims[-1] // 2)
        if uses_external_data(tensor):
            return self._external(tensor).reshape(shape)
        if tensor.HasField("raw_data"):
            return np.frombuffer(tensor.raw_data, np.uint8).reshape(shape)
        return np.array(tensor.int32_data, np.int32).astype(np.uint8).reshape(shape)

    def _external(self, tensor: TensorProto) -> Array:
        info = ExternalDataInfo(tensor)
        if self.folder is None:
            raise InputError(
                what=f"initializer {tensor.name!r}", found="external data", expected="the path of the model"
            )
        folder = os.path.realpath(self.folder)
        path = os.path.realpath(os.path.join(folder, info.location))
        if os.path.commonpath([folder, path]) != folder or not os.path.isfile(path):
            raise InputError(
                what=f"initializer {tensor.name!r}",
                found=f"external data in {info.location!r}",
                expected="a file in the model's folder",
            )
        offset, size = int(info.offset or 0), os.path.getsize(path)
        length = int(info.length) if info.length is not None else size - offset
        bits = int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize) * 8
        wanted = int(np.prod(tuple(tensor.dims), dtype=np.int64))
        if offset + length > size or (tensor.data_type in _RAW and wanted * bits // 8 != length):
            raise InputError(
                what=f"initializer {tensor.name!r}",
                found=f"{length} bytes at {offset} of {info.location!r}, which has {size}",
                expected=f"{wanted * bits // 8} bytes",
            )
        if length == 0:
            return np.empty(0, np.uint8)
        return np.memmap(path, np.uint8, "r", offset, (length,))

    def dense(self, sparse: onnx.SparseTensorProto) -> Array:
        values, indices = self.array(sparse.values), self.array(sparse.indices)
        result = np.zeros(tuple(sparse.dims), values.dtype)
        if indices.ndim == 1:
            result.reshape(-1)[indices] = values
        else:
            result[tuple(indices.T)] = values
        return result
