"""A package of tensors on the GPU that speaks DLPack and the array API, and nothing else: as CuPy or JAX are met."""
import ctypes
import math
import types

import numpy as np
from fusec import _core


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_CODES = {"f": 2, "i": 0, "u": 1}


class DeviceArray:
    streams: list = []  # that the consumers of DLPack named
    device = "gpu:0"

    def __init__(self, shape, dtype):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.memory = _core.DeviceMemory(0, self.nbytes)
        self.lent = []

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    @classmethod
    def of(cls, array):
        made = cls(array.shape, array.dtype)
        array = np.ascontiguousarray(array)
        made.memory.copy_from_host(array.ctypes.data, array.nbytes)
        return made

    def numpy(self):
        array = np.empty(self.shape, self.dtype)
        self.memory.copy_to_host(array.ctypes.data, array.nbytes)
        return array

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None):  # as it was before DLPack 1.0
        self.streams.append(stream)
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        code = _DType(_CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1)
        tensor = _Tensor(self.memory.address, _Device(2, 0), len(self.shape), code, shape, None, 0)
        lent = _Managed(tensor, None, None)
        self.lent.append((lent, shape))  # several may be lent at once: of an input that is written as well
        return _new_capsule(ctypes.addressof(lent), b"dltensor", None)

    def __array_namespace__(self):
        return Namespace


class Namespace:
    float32 = np.float32

    @staticmethod
    def empty(shape, *, dtype, device):
        assert device == DeviceArray.device
        return DeviceArray(shape, dtype)


class TorchArray(DeviceArray):
    """The same with the methods of torch.Tensor that a call needs, for a stand-in of the module torch."""

    device = types.SimpleNamespace(type="cuda", index=0)
    layout = "torch.strided"
    is_cuda = True

    def __init__(self, shape, dtype):
        super().__init__(shape, dtype)
        self.dtype = self.dtype.name

    def detach(self):
        return self

    def is_contiguous(self):
        return True

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return self.memory.address
