"""import_onnx.py MODEL.onnx [DIM=SIZE ...]: imports an ONNX model, shows its kernels, and runs it on the emulator."""

import sys

import numpy as np

import fusec

path, *sizes = sys.argv[1:]
imported = fusec.from_onnx(path, dims={name: int(size) for name, size in (text.split("=") for text in sizes)})
module = fusec.compile(imported)
print(module)
print(module.explain())
inputs = []
for tensor in imported.model.inputs:
    shape = [size if isinstance(size, int) else 2 for size in tensor.shape]  # any size will do for what is symbolic
    inputs.append(np.ones(shape, tensor.dtype))
outputs = module(*inputs)
for output in outputs if isinstance(outputs, tuple) else [outputs]:
    print(output.dtype, output.shape)
