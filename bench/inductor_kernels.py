"""The Triton kernels that PyTorch's Inductor makes of a function, without a GPU.

Inductor asks a device for its properties and Triton's driver for its target; both are answered here for an A100 or an
H100, tensors are fake. The function is traced, decomposed and lowered as torch.compile does it, and what Inductor prints is
compiled by Triton to PTX, in every configuration that its heuristics would try.

    launches(function, [("x", "float32", [512, 4096])], 90)   launches in order, each with its configurations; buffers"""
import dataclasses
import hashlib
import importlib.util
import os
import re
import tempfile
import types

import torch
import torch._inductor.runtime.triton_heuristics as heuristics
import torch._inductor.runtime.triton_helpers as helpers
import triton
from torch._dynamo.device_interface import CudaInterface
from torch._inductor import config
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes
from torch._inductor.fx_passes.post_grad import post_grad_passes
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import ASTSource
from triton.runtime.driver import driver


@dataclasses.dataclass
class Configuration:
    ptx: str
    grid: tuple
    threads: int
    shared: int
    text: str


@dataclasses.dataclass
class Launch:
    kernel: str
    arguments: list  # names of buffers, and numbers
    configurations: list


@dataclasses.dataclass
class Buffer:
    dtype: str
    shape: list


class NoDevice(DriverBase):
    """A Triton driver that knows a target and can launch nothing."""
    arch = 90

    def __init__(self):  # the base's asks PyTorch for a device
        pass

    @classmethod
    def is_active(cls):
        return True

    def get_current_target(self):
        return GPUTarget("cuda", NoDevice.arch, 32)

    def get_active_torch_device(self):
        return torch.device("cuda", 0)

    def get_current_device(self):
        return 0


NoDevice.__abstractmethods__ = frozenset()


def properties(*_, **__):
    is_80 = NoDevice.arch == 80
    return types.SimpleNamespace(
        name="", major=NoDevice.arch // 10, minor=NoDevice.arch % 10, multi_processor_count=108 if is_80 else 132,
        max_threads_per_multi_processor=2048, max_threads_per_block=1024, regs_per_multiprocessor=65536, warp_size=32,
        total_memory=80 << 30, shared_memory_per_block=48 << 10, gcnArchName="", L2_cache_size=(40 if is_80 else 50) << 20,
        shared_memory_per_block_optin=(163 if is_80 else 227) << 10)


def pretend_to_have_a_device(arch):
    NoDevice.arch = arch
    driver.set_active(NoDevice())
    helpers.set_driver_to_gpu = lambda: None
    answers = {"is_available": lambda *_: True, "current_device": lambda *_: 0, "device_count": lambda *_: 1,
               "get_device_properties": properties, "get_compute_capability": lambda *_: arch,
               "is_triton_capable": lambda *_: True, "raise_if_triton_unavailable": lambda *_: None}
    for name, answer in answers.items():
        setattr(CudaInterface, name, staticmethod(answer))
        if hasattr(CudaInterface.Worker, name):
            setattr(CudaInterface.Worker, name, staticmethod(answer))
    torch.cuda.get_device_properties = properties
    torch.cuda.get_device_capability = lambda *_: (arch // 10, arch % 10)
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_available = lambda: True
    DeviceProperties = heuristics.DeviceProperties
    if hasattr(DeviceProperties.create, "cache_clear"):
        DeviceProperties.create.cache_clear()


def generated_code(function, inputs):
    """The wrapper that Inductor prints, with the kernels in it."""
    fake = FakeTensorMode()
    with fake:
        tensors = [torch.empty(shape, dtype=getattr(torch, dtype), device="cuda") for _, dtype, shape in inputs]
        module = make_fx(function, decomposition_table=select_decomp_table())(*tensors)
    # Results that a caller sees are not padded.
    with V.set_fake_mode(fake), V.set_debug_handler(DebugContext()), config.patch(comprehensive_padding=False):
        joint_graph_passes(module, torch.device("cpu"))  # attention patterns alone are made for a device
        post_grad_passes(module, True)
        graph = GraphLowering(module, example_inputs=tensors, is_inference=True)
        with V.set_graph_handler(graph):
            graph.run(*tensors)
            code = graph.codegen()[0]
    return getattr(code, "value", code)


def tuner_of(name, source, folder):
    path = os.path.join(folder, hashlib.sha256(source.encode()).hexdigest()[:16] + ".py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def configurations_of(tuner, numbers):
    made = []
    for choice in tuner.configs:
        meta = tuner._create_compile_meta(choice)
        source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
        binary = triton.compile(source, target=GPUTarget("cuda", NoDevice.arch, 32),
                                options=tuner._create_compile_options(choice, meta))
        grid = heuristics.GridExpr.from_meta(tuner.inductor_meta, choice).eval_slow(numbers)
        made.append(Configuration(binary.asm["ptx"], grid, 32 * binary.metadata.num_warps, binary.metadata.shared,
                                  str(choice)))
    return made


def launches(function, inputs, arch):
    """The launches in order, the buffers that they make, and which of these is the result."""
    pretend_to_have_a_device(arch)
    code = generated_code(function, inputs)
    found, buffers = [], {}
    names = re.search(r"^ +(.*?),? = args$", code, re.M).group(1).split(", ")
    given = dict(zip(names, (name for name, _, _ in inputs)))
    with tempfile.TemporaryDirectory() as folder:
        tuners = {name: tuner_of(name, source, folder)
                  for name, source in re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.S)}
        for line in code.splitlines():
            if made := re.match(r" +(\w+) = empty_strided_cuda\(\(([^)]*)\), \([^)]*\), torch\.(\w+)\)", line):
                shape = [int(extent) for extent in made.group(2).split(",") if extent.strip()]
                buffers[made.group(1)] = Buffer(made.group(3), shape)
            if "# reuse" in line:
                raise NotImplementedError("a buffer that is used again")
            if run := re.match(r" +(\w+)\.run\((.*), stream=", line):
                tuner, arguments = tuners[run.group(1)], [a.strip() for a in run.group(2).split(",")]
                signature = [n for n, kind in tuner.triton_meta["signature"].items() if kind != "constexpr"]
                numbers = {n: int(a) for n, a in zip(signature, arguments) if re.fullmatch(r"-?\d+", a)}
                named = [numbers.get(n, given.get(a, a)) for n, a in zip(signature, arguments)]
                found.append(Launch(run.group(1), named, configurations_of(tuner, numbers)))
    result, = re.search(r"return \((.*), \)$", code, re.M).group(1).split(", ")
    return found, buffers, result
