"""Values of the graph under construction, and the dtypes of ONNX and of the format."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Union

import numpy as np
import onnx
from onnx import TensorProto

from .._tensors import numpy_dtype
from .errors import Refused
from .sizes import Shape

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[int, str] = {
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT: "float32",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.INT64: "int64",
    TensorProto.INT32: "int32",
    TensorProto.INT16: "int16",
    TensorProto.INT8: "int8",
    TensorProto.UINT64: "uint64",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT8: "uint8",
    TensorProto.BOOL: "bool",
}

# Dtypes whose elements the graph holds in a wider one, which has all their values. The format packs 4-bit elements, two
# to a byte, and so needs an even last dimension, which ONNX does not; it has no 2-bit elements and no *FNUZ floats.
WIDE: dict[int, str] = {
    TensorProto.INT4: "int8",
    TensorProto.UINT4: "uint8",
    TensorProto.FLOAT4E2M1: "float8_e4m3fn",
}
PACKED: dict[int, str] = {
    TensorProto.INT4: "int4",
    TensorProto.UINT4: "uint4",
    TensorProto.FLOAT4E2M1: "float4_e2m1fn",
}
for _name, _wide in (
    ("INT2", "int8"),
    ("UINT2", "uint8"),
    ("FLOAT8E4M3FNUZ", "float16"),
    ("FLOAT8E5M2FNUZ", "float16"),
):
    if hasattr(TensorProto, _name):
        WIDE[getattr(TensorProto, _name)] = _wide
if hasattr(TensorProto, "FLOAT8E8M0"):
    DTYPES[TensorProto.FLOAT8E8M0] = "float8_e8m0fnu"
KINDS = {dtype: kind for kind, dtype in DTYPES.items()}

FLOATS = ("float64", "float32", "float16", "bfloat16")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn")


def dtype_of(kind: int) -> str:
    """The format's dtype in which elements of an ONNX type are held."""
    dtype = DTYPES.get(kind) or WIDE.get(kind)
    if dtype is None:
        name = TensorProto.DataType.Name(kind) if kind in TensorProto.DataType.values() else str(kind)
        raise Refused(f"the format has no tensors of {name}")
    return dtype


def kind_name(kind: int) -> str:
    return str(TensorProto.DataType.Name(kind))


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


class Value:
    """A tensor: a result of a node, an input, or elements that are known while the graph is imported.

    Known elements are a NumPy array, or an array of objects where some are symbolic sizes. They become a constant, or
    nodes that compute the sizes, once a node reads them.
    """

    def __init__(
        self,
        dtype: str,
        shape: Shape,
        *,
        kind: int | None = None,
        elements: Array | Callable[[], Array] | None = None,
        wanted: str = "",
        is_weight: bool = False,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.kind = KINDS[dtype] if kind is None else kind  # the ONNX type
        self.wanted = wanted  # the name that it should have in the file
        self.is_weight = is_weight
        self._elements = elements

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_known(self) -> bool:
        return self._elements is not None

    @functools.cached_property
    def elements(self) -> Array:
        found = self._elements
        if found is None:
            raise ValueError(f"{self.wanted!r} is not known")
        return found() if callable(found) else found

    @property
    def is_symbolic(self) -> bool:
        return self.is_known and not self.is_weight and self.elements.dtype == object

    @property
    def count(self) -> int:
        """The number of elements; only of known ones."""
        total = 1
        for d in self.shape:
            total *= int(d)  # type: ignore[arg-type]
        return total

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}" + (f" = {self.elements.tolist()}" if self.is_known else "")


# What a name of an ONNX graph stands for: a tensor, a sequence, or an optional that is empty.
Item = Union[Value, "list[Any]", None]


def known(array: Array, *, kind: int | None = None, wanted: str = "") -> Value:
    """A value whose elements are known. Objects are integers and symbolic sizes, of the type int64 or `kind`."""
    if array.dtype == object:
        kind = TensorProto.INT64 if kind is None else kind
        flat = array.reshape(-1).tolist()
        if not all(isinstance(x, int) for x in flat):
            return Value(dtype_of(kind), array.shape, kind=kind, elements=array, wanted=wanted)
        array = np.array(flat).reshape(array.shape).astype(numpy_dtype(dtype_of(kind)))
    if kind is None:
        kind = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    return Value(dtype_of(kind), array.shape, kind=kind, elements=array, wanted=wanted)


def wide_array(array: Array, kind: int) -> Array:
    """Elements of a dtype that the graph holds in a wider one, in that one."""
    return array.astype(numpy_dtype(dtype_of(kind))) if kind in WIDE and array.dtype != object else array
