"""Tensors of NumPy, PyTorch and of whatever speaks DLPack, as the library sees them: address, dtype, shape, device.

dtypes go by their ml_dtypes names. A tensor of a 4-bit dtype is packed, two elements to a byte with the low nibble
first, in a tensor of ``uint8`` (or ``int8``) whose last dimension is half as long.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import InputError, PlatformError

FOUR_BITS = ("int4", "uint4", "float4_e2m1fn")
ON_GPU, _IN_HOST_MEMORY = (2, 13), (1, 3)  # device types of DLPack: CUDA and managed memory; CPU and pinned memory
_ALIGNMENT = 16  # bytes, of device memory


class View(NamedTuple):
    """Where a tensor lies. Valid as long as ``owner`` lives."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    device: int | None  # the GPU's number; None: host memory
    owner: object
    copied: bool = False  # the memory is not the tensor's: a copy for this call

    def as_argument(self) -> tuple[int, str, tuple[int, ...]]:
        return self.address, self.dtype, self.shape

    def unpacked_as(self, dtype: str) -> View:
        """The same bytes as a tensor of a 4-bit dtype, where they can be one."""
        if dtype in FOUR_BITS and self.dtype in ("uint8", "int8", "float4_e2m1fn_x2") and self.shape:
            return self._replace(dtype=dtype, shape=(*self.shape[:-1], 2 * self.shape[-1]))
        return self


def is_torch(tensor: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(tensor, torch.Tensor)


def view(tensor: Any, name: str, *, written: bool = False, stream: int = 0) -> View:
    """The tensor for one call; what is not dense is copied. ``stream``: where it is going to be used, on a GPU.

    Raises InputError for what is no tensor, and, where it is to be written, for what must be copied or is read-only.
    """
    if isinstance(tensor, (np.ndarray, np.generic)):
        return _numpy_view(np.asarray(tensor), name, written)
    if is_torch(tensor):
        return _torch_view(tensor, name, written)
    if hasattr(tensor, "__dlpack__"):
        return _dlpack_view(tensor, name, written, stream)
    raise InputError(
        what=f"tensor {name!r}",
        found=f"a {type(tensor).__name__}",
        expected="a NumPy array, a PyTorch tensor, or another tensor that has __dlpack__",
    )


def _refuse(name: str, found: str) -> InputError:
    return InputError(what=f"the tensor for {name!r}", found=found, expected="dense memory that can be written")


def _numpy_view(array: Any, name: str, written: bool) -> View:
    dtype = array.dtype
    if not dtype.isnative:
        raise InputError(what=f"tensor {name!r}", found=f"byte order {dtype.byteorder!r}", expected="this machine's")
    if written and not (array.flags.c_contiguous and array.flags.writeable):
        raise _refuse(name, "a view with strides" if array.flags.writeable else "a read-only array")
    dense = np.ascontiguousarray(array).reshape(array.shape)
    if dtype.name in FOUR_BITS:  # of ml_dtypes: an element a byte
        if written:
            raise InputError(what=f"the tensor for {name!r}", found=dtype.name, expected="packed uint8")
        bits = dense.view(np.uint8) & 15
        if dense.ndim == 0 or dense.shape[-1] % 2:
            raise InputError(what=f"tensor {name!r}", found=f"shape {dense.shape}", expected="an even last dimension")
        packed = bits[..., 0::2] | (bits[..., 1::2] << 4)
        return View(packed.ctypes.data, dtype.name, array.shape, None, packed)
    return View(dense.ctypes.data, dtype.name, array.shape, None, dense)


def _torch_view(tensor: Any, name: str, written: bool) -> View:
    tensor = tensor.detach()
    if tensor.device.type not in ("cpu", "cuda"):
        raise InputError(what=f"tensor {name!r}", found=f"device {tensor.device}", expected="cpu or cuda")
    if str(tensor.layout) != "torch.strided":
        raise InputError(what=f"tensor {name!r}", found=f"layout {tensor.layout}", expected="a strided tensor")
    device = tensor.device.index if tensor.device.type == "cuda" else None
    dense = tensor if tensor.is_contiguous() else tensor.contiguous()
    if tensor.is_conj() or tensor.is_neg():
        dense = dense.resolve_conj().resolve_neg()
    if device is not None and dense.data_ptr() % _ALIGNMENT:
        dense = dense.clone()
    if written and dense is not tensor:
        raise _refuse(name, "a view with strides, or one that is not aligned to 16 bytes")
    dtype = str(dense.dtype).removeprefix("torch.")
    return View(dense.data_ptr(), dtype, tuple(dense.shape), device, dense, dense is not tensor)


def _dlpack_view(tensor: Any, name: str, written: bool, stream: int) -> View:
    device_type, number = tensor.__dlpack_device__()
    on_gpu = device_type in ON_GPU
    if not on_gpu and device_type not in _IN_HOST_MEMORY:
        raise InputError(what=f"tensor {name!r}", found=f"DLPack device {device_type}", expected="a CPU or CUDA tensor")
    # DLPack's stream 1 is the legacy default one, which CUDA calls 0.
    options = {"stream": stream or 1} if on_gpu else {}
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a package from before DLPack 1.0
        capsule = tensor.__dlpack__(**options)
    borrowed = _core.Borrowed(capsule)
    aligned = not on_gpu or borrowed.address % _ALIGNMENT == 0
    if written and (borrowed.is_read_only or not borrowed.is_dense or not aligned):
        raise _refuse(name, "a read-only tensor" if borrowed.is_read_only else "a view with strides")
    if not borrowed.is_dense or not aligned:
        raise InputError(what=f"tensor {name!r}", found="a view with strides", expected="a dense tensor: copy it first")
    device = number if on_gpu else None
    return View(borrowed.address, borrowed.dtype, tuple(borrowed.shape), device, (tensor, borrowed))


def current_stream(tensors: list[Any], device: int) -> tuple[int, bool]:
    """The stream that the package of the first tensor uses now, and whether all tensors are of a package that goes on
    using it in order."""
    cupy = sys.modules.get("cupy")
    of_torch = [is_torch(t) for t in tensors]
    of_cupy = [cupy is not None and isinstance(t, cupy.ndarray) for t in tensors]
    if of_torch[:1] == [True]:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream), all(of_torch)
    if of_cupy[:1] == [True]:
        return int(cupy.cuda.get_current_stream().ptr), all(of_cupy)  # type: ignore[union-attr]
    return 0, False


def empty_like(example: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """An uninitialized tensor of the example's package, on its device."""
    if dtype in FOUR_BITS:
        dtype, shape = "uint8", (*shape[:-1], shape[-1] // 2)
    if is_torch(example):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=example.device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(example, cupy.ndarray):
        with example.device:
            return cupy.empty(shape, dtype=numpy_dtype(dtype))
    if hasattr(example, "__array_namespace__") and not isinstance(example, (np.ndarray, np.generic)):
        xp = example.__array_namespace__()
        made = xp.empty(shape, dtype=getattr(xp, dtype), device=example.device)
        return made.block_until_ready() if hasattr(made, "block_until_ready") else made
    return np.empty(shape, numpy_dtype(dtype))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype, or that of ml_dtypes. Raises PlatformError where ml_dtypes is needed and missing."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise PlatformError(
            what=f"NumPy has no {name}", hint="pip install ml_dtypes, or use PyTorch tensors"
        ) from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype
