"""fusec fuses the operators of a neural network into few CUDA kernels.

    import fusec

    module = fusec.compile("model.json", arch="sm_90a")
    y = module(x)              # CUDA tensors on their GPU; NumPy arrays and CPU tensors on the emulator
    print(module)              # what was fused
    print(module.explain())    # and why

Errors are :class:`fusec.FusecError`: InputError (TraceError is one), UsageError, PlatformError.
"""

from ._calls import CudaGraph
from ._compile import annotate, compile, examine, load, partition, passes, patterns, read, register, run_pass
from ._core import (
    Finding,
    Group,
    Kernel,
    KernelImage,
    MatchedPattern,
    MatchedValue,
    Model,
    ModelBuilder,
    ModelTensor,
    PassInfo,
    Pattern,
    PatternInfo,
    Progress,
    Registry,
    TensorInfo,
    Value,
    version as _version,
)
from ._explain import Explanation, explain
from ._formula import Scalar, function
from ._imported import ImportedModel, from_onnx, from_torch
from ._module import Module
from ._options import CompileOptions
from .errors import FusecError, InputError, PlatformError, TraceError, UsageError

__version__: str = _version()

__all__ = [
    "CompileOptions",
    "CudaGraph",
    "Explanation",
    "Finding",
    "FusecError",
    "Group",
    "ImportedModel",
    "InputError",
    "Kernel",
    "KernelImage",
    "MatchedPattern",
    "MatchedValue",
    "Model",
    "ModelBuilder",
    "ModelTensor",
    "Module",
    "PassInfo",
    "Pattern",
    "PatternInfo",
    "PlatformError",
    "Progress",
    "Registry",
    "Scalar",
    "TensorInfo",
    "TraceError",
    "UsageError",
    "Value",
    "annotate",
    "compile",
    "examine",
    "explain",
    "from_onnx",
    "from_torch",
    "function",
    "load",
    "partition",
    "passes",
    "patterns",
    "read",
    "register",
    "run_pass",
]
