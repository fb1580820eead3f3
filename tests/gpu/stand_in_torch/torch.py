"""PyTorch whose CUDA device is the stand-in of the driver (FUSEC_CUDA_DRIVER): first in PYTHONPATH, this module makes place
for the real one. Tensors "on cuda" are the CPU's, and their memory is registered with the driver when their address is
asked for. A CUDA graph replays what was launched on its stream; PyTorch's own operators ran when it was captured."""
import ctypes
import importlib
import os
import sys
import time
import types

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
del sys.modules["torch"]
torch = importlib.import_module("torch")
driver = ctypes.CDLL(os.environ["FUSEC_CUDA_DRIVER"])
driver.cuCtxPushCurrent_v2(None)
registered = {}  # (address, storage) by address: kept, so that no address comes twice


def checked(status):
    if status != 0:
        raise RuntimeError(f"the stand-in of the driver: error {status}")


def on_cpu(function):
    def made(*arguments, device=None, **options):
        return function(*arguments, device="cpu" if device == "cuda" else device, **options)
    return made


for maker in ("randn", "empty", "full", "zeros"):
    setattr(torch, maker, on_cpu(getattr(torch, maker)))

host_address = torch.Tensor.data_ptr


def device_address(tensor):
    storage, address = tensor.untyped_storage(), ctypes.c_uint64()
    begin = storage.data_ptr()
    if begin not in registered:
        checked(driver.cuMemHostRegister_v2(ctypes.c_void_p(begin), ctypes.c_size_t(storage.nbytes()), 0))
        checked(driver.cuMemHostGetDevicePointer_v2(ctypes.byref(address), ctypes.c_void_p(begin), 0))
        registered[begin] = (address.value, storage)
    return registered[begin][0] + host_address(tensor) - begin


class Stream:
    def __init__(self):
        handle = ctypes.c_void_p()
        checked(driver.cuStreamCreate(ctypes.byref(handle), 1))
        self.cuda_stream = handle.value

    def synchronize(self):
        checked(driver.cuStreamSynchronize(ctypes.c_void_p(self.cuda_stream)))


class Current:
    """A stream for a scope, which a graph captures, or None."""

    stream = types.SimpleNamespace(cuda_stream=0)

    def __init__(self, stream, graph=None):
        self.new, self.graph = stream, graph

    def __enter__(self):
        self.old, Current.stream = Current.stream, self.new
        if self.graph:
            checked(driver.cuStreamBeginCapture_v2(ctypes.c_void_p(self.new.cuda_stream), 1))

    def __exit__(self, *_):
        Current.stream = self.old
        if self.graph:
            made = ctypes.c_void_p()
            checked(driver.cuStreamEndCapture(ctypes.c_void_p(self.new.cuda_stream), ctypes.byref(made)))
            checked(driver.cuGraphInstantiateWithFlags(ctypes.byref(self.graph.executable), made, ctypes.c_ulonglong(0)))


class CUDAGraph:
    def __init__(self):
        self.executable = ctypes.c_void_p()

    def replay(self):
        checked(driver.cuGraphLaunch(self.executable, ctypes.c_void_p(Current.stream.cuda_stream)))


class Event:
    def __init__(self, enable_timing=False):
        self.time = 0.0

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1e3 * (end.time - self.time)


torch.Tensor.data_ptr = device_address
torch.compile = lambda function, **_: function
for name, value in {"Stream": Stream, "stream": Current, "Event": Event, "CUDAGraph": CUDAGraph,
                    "graph": lambda graph, stream: Current(stream, graph), "current_stream": lambda: Current.stream,
                    "synchronize": lambda: checked(driver.cuCtxSynchronize()), "clock_rate": lambda: 1980,
                    "get_device_capability": lambda: (9, 0),
                    "get_device_properties": lambda _: types.SimpleNamespace(L2_cache_size=1)}.items():
    setattr(torch.cuda, name, value)
