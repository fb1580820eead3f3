"""Tensors of NumPy, PyTorch and of whatever speaks DLPack, as the library sees them: address, dtype, shape, device.

dtypes go by their ml_dtypes names. A tensor of a 4-bit dtype is packed, two elements to a byte with the low nibble
first, in a tensor of ``uint8`` (or ``int8``) whose last dimension is half as long.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import InputError, PlatformError

FOUR_BITS = ("int4", "uint4", "float4_e2m1fn")
ON_GPU, _IN_HOST_MEMORY = (2, 13), (1, 3)  # device types of DLPack: CUDA and managed memory; CPU and pinned memory


class Stream(NamedTuple):
    """Where a call runs on a GPU, and the package that works there: "torch", "cupy", or "" for those without a current
    stream."""

    handle: int = 0  # the legacy default stream
    package: str = ""

    def orders(self, tensors: Iterable[Any]) -> bool:
        """False if the caller must synchronize, because some tensor's package does not order its later work after this
        stream."""
        return bool(self.package) and all(_package_of(t) == self.package for t in tensors)


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


def _package_of(tensor: object) -> str:
    if is_torch(tensor):
        return "torch"
    cupy = sys.modules.get("cupy")
    return "cupy" if cupy is not None and isinstance(tensor, cupy.ndarray) else ""


def view(tensor: Any, name: str, *, written: bool = False, stream: Stream = Stream()) -> View:
    """The tensor for one call, on a GPU once work that was enqueued on it before is ordered before ``stream``.

    NumPy and PyTorch tensors that are not dense are copied. Raises InputError for those of other packages, for what is no
    tensor, and, where it is to be written, for what must be copied or is read-only.
    """
    if isinstance(tensor, (np.ndarray, np.generic)):
        return _numpy_view(np.asarray(tensor), name, written)
    if is_torch(tensor):
        return _torch_view(tensor, name, written, stream)
    if hasattr(tensor, "__dlpack__"):
        return _dlpack_view(tensor, name, written, stream.handle)
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


def is_in_place(tensor: Any) -> bool:
    """Whether kernels can read and write a PyTorch tensor where it lies: dense, and on a GPU aligned."""
    aligned = not tensor.is_cuda or tensor.data_ptr() % _core.DEVICE_ALIGNMENT == 0
    return aligned and tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def _torch_view(tensor: Any, name: str, written: bool, stream: Stream) -> View:
    tensor = tensor.detach()
    torch = sys.modules["torch"]
    if tensor.device.type not in ("cpu", "cuda"):
        raise InputError(what=f"tensor {name!r}", found=f"device {tensor.device}", expected="cpu or cuda")
    if str(tensor.layout) != "torch.strided":
        raise InputError(what=f"tensor {name!r}", found=f"layout {tensor.layout}", expected="a strided tensor")
    device = tensor.device.index if tensor.device.type == "cuda" else None
    dense = tensor if is_in_place(tensor) else tensor.clone(memory_format=torch.contiguous_format)
    if device is not None and stream.package != "torch":
        own = torch.cuda.current_stream(device)
        if own.cuda_stream != stream.handle:
            own.synchronize()
    if written and dense is not tensor:
        raise _refuse(name, f"a view with strides, or one that is not aligned to {_core.DEVICE_ALIGNMENT} bytes")
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
    try:
        borrowed = _core.Borrowed(capsule)
    except (TypeError, ValueError):
        found, expected = f"{capsule!r} from __dlpack__", "a capsule of DLPack 1, not used before"
        raise InputError(what=f"tensor {name!r}", found=found, expected=expected) from None
    aligned = not on_gpu or borrowed.address % _core.DEVICE_ALIGNMENT == 0
    if written and (borrowed.is_read_only or not borrowed.is_dense or not aligned):
        raise _refuse(name, "a read-only tensor" if borrowed.is_read_only else "a view with strides")
    if not borrowed.is_dense or not aligned:
        raise InputError(what=f"tensor {name!r}", found="a view with strides", expected="a dense tensor: copy it first")
    device = number if on_gpu else None
    return View(borrowed.address, borrowed.dtype, tuple(borrowed.shape), device, (tensor, borrowed))


def gpu_of(tensor: Any) -> int | None:
    """The number of the GPU that the tensor is on; None for host memory."""
    if isinstance(tensor, (np.ndarray, np.generic)):
        return None
    if is_torch(tensor):
        return int(tensor.device.index) if tensor.is_cuda else None
    kind, number = tensor.__dlpack_device__() if hasattr(tensor, "__dlpack_device__") else (0, 0)
    return int(number) if kind in ON_GPU else None


def current_stream(first: Any) -> Stream:
    """The stream that the package of this tensor, which is on a GPU, uses now."""
    package = _package_of(first)
    if package == "torch":
        return Stream(int(sys.modules["torch"].cuda.current_stream(gpu_of(first)).cuda_stream), package)
    if package == "cupy":
        return Stream(int(sys.modules["cupy"].cuda.get_current_stream().ptr), package)
    return Stream()


def warn_of_gradients(tensors: Iterable[Any]) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return
    if any(is_torch(t) and t.requires_grad for t in tensors):
        text = "fusec: no gradient flows through a fusec.Module; torch.compile(model, backend='fusec') trains"
        warnings.warn(text + ", torch.no_grad() says that none is wanted", stacklevel=5)


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
