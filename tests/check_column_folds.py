#!/usr/bin/env python3
"""check_column_folds.py FUSEC_RUN [--sample=N] [--seed=N] [--only=TEXT]

Row reductions fused with reductions of the same tensor across rows (backward passes of LayerNorm and RMSNorm with the
gradients of their weights, the factors of Adafactor, the gradient of softmax with sums over rows). The emulator
executes and verifies them for sm_80 and sm_90a: two launches that read each element once, no findings, bank conflicts
or spills. Status 77: no NVRTC."""
import json
import os
import sys

from check_columns import check
from emulated_run import fault_of, profiled
from movement_cases import element_count, node

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class Case:
    """sectors: most bytes of requested sectors, relative to the bytes of the model's inputs and outputs. instructions:
    most warp instructions x 32 without moves, relative to the same bytes. launches: most launches of all layers."""

    def __init__(self, graph, dtype, shape, sectors, instructions, layers=1, launches=2, symbols=None):
        self.name = f"{graph.__name__} {dtype} {shape}{' x' + str(layers) if layers > 1 else ''}"
        self.dtype, self.shape, self.symbols = dtype, shape, symbols or {}
        self.sectors, self.instructions, self.launches = sectors, instructions, launches
        self.inputs, self.nodes, self.outputs = {}, [], []
        for layer in range(layers):
            Layer(self, f"_{layer}" if layer else "").add(graph)

    def hinted(self, shape):
        return [self.symbols[d]["hint"] if isinstance(d, str) else d for d in shape]


class Layer:
    """Adds nodes to a case. Computes in float32, with casts of narrower tensors."""

    def __init__(self, case, suffix):
        self.case, self.suffix, self.count = case, suffix, 0

    def add(self, graph):
        for value in graph(self):
            self.case.outputs.append(self.narrow(value) if value in self.narrowed else value)

    def input(self, name, shape, dtype=None):
        dtype = dtype or self.case.dtype
        self.case.inputs[name + self.suffix] = (dtype, shape)
        return name + self.suffix if dtype == "float32" else self.op("cast", name + self.suffix, dtype="float32")

    def op(self, op, *operands, **attributes):
        self.count += 1
        self.case.nodes.append(node(f"v{self.count}{self.suffix}", op, *operands, **attributes))
        return f"v{self.count}{self.suffix}"

    def narrow(self, value):
        return value if self.case.dtype == "float32" else self.op("cast", value, dtype=self.case.dtype)

    narrowed = ()

    def row_mean(self, value):
        return self.op("mean", value, dim=[-1], keepdim=True)

    def over_rows(self, op, value):
        return self.op(op, value, dim=list(range(len(self.case.shape) - 1)))


def gradients(layer, normal, scale, centred):
    """Gradients of a norm whose normalized value is `normal`, and which was multiplied by `scale` and a weight."""
    shape = layer.case.shape
    dy, weight = layer.input("dy", shape), layer.input("w", shape[-1:])
    of_normal = layer.op("mul", dy, weight)
    back = layer.op("mul", normal, layer.row_mean(layer.op("mul", normal, of_normal)))
    if centred:
        back = layer.op("add", back, layer.row_mean(of_normal))
    dx = layer.op("mul", layer.op("sub", of_normal, back), scale)
    results = [dx, layer.over_rows("sum", layer.op("mul", dy, normal))]
    if centred:
        results.append(layer.over_rows("sum", dy))
    layer.narrowed = results
    return results


def layer_norm(layer):
    shape = layer.case.shape
    x, mean, scale = layer.input("x", shape), *(layer.input(n, shape[:-1] + [1], "float32") for n in ("mean", "rstd"))
    return gradients(layer, layer.op("mul", layer.op("sub", x, mean), scale), scale, True)


def layer_norm_anew(layer):
    x = layer.input("x", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.op("var", x, dim=[-1], keepdim=True, correction=0), 1e-5))
    return gradients(layer, layer.op("mul", layer.op("sub", x, layer.row_mean(x)), scale), scale, True)


def rms_norm_anew(layer):
    x = layer.input("x", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.row_mean(layer.op("mul", x, x)), 1e-5))
    return gradients(layer, layer.op("mul", x, scale), scale, False)


def adafactor(layer):
    gradient = layer.input("g", layer.case.shape)
    squares = layer.op("add", layer.op("mul", gradient, gradient), 1e-30)
    return [layer.op("mean", squares, dim=[-1]), layer.over_rows("mean", squares)]


def softmax_back(layer):
    """The gradient of a softmax, its sum over the rows (of a bias before it), and the maximum of each column (a scale).
    """
    y, dy = layer.input("y", layer.case.shape), layer.input("dy", layer.case.shape)
    product = layer.op("mul", y, dy)
    dx = layer.op("sub", product, layer.op("mul", y, layer.op("sum", product, dim=[-1], keepdim=True)))
    layer.narrowed = [dx]
    return [dx, layer.over_rows("sum", dx), layer.over_rows("amax", layer.op("abs", dx))]


def weight_gradient(layer):
    """Only the weight's gradient is needed; the rows' own results are not stored."""
    x, dy = layer.input("x", layer.case.shape), layer.input("dy", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.row_mean(layer.op("mul", x, x)), 1e-5))
    return [layer.over_rows("sum", layer.op("mul", dy, layer.op("mul", x, scale)))]


def cases():
    some = {"rows": {"min": 1, "max": 8192, "hint": 4096}}
    return [Case(layer_norm, "float32", [4096, 1024], 1.15, 1.8), Case(layer_norm, "float32", [8192, 768], 1.1, 1.7),
            Case(layer_norm, "bfloat16", [8192, 768], 1.2, 4.4), Case(layer_norm, "float16", [2048, 4096], 1.3, 5),
            Case(layer_norm, "float32", [16, 256, 1024], 1.15, 1.8),
            Case(layer_norm, "float32", ["rows", 2048], 1.2, 2.8, symbols=some),
            Case(layer_norm_anew, "float32", [4096, 768], 1.2, 2.2),
            Case(layer_norm_anew, "bfloat16", [2048, 1024], 1.5, 6.5),
            Case(layer_norm_anew, "bfloat16", [2048, 4096], 1.3, 7),
            Case(layer_norm_anew, "float32", [3001, 777], 1.5, 2.8),
            Case(layer_norm_anew, "float32", ["rows", 777], 1.45, 2.8, symbols=some),
            Case(rms_norm_anew, "float32", [2048, 2048], 1.2, 2.4),
            Case(rms_norm_anew, "bfloat16", [4096, 768], 1.2, 4.2),
            Case(rms_norm_anew, "float16", [1024, 1536], 1.4, 5.5),
            Case(adafactor, "float32", [3072, 3072], 1.15, 3.4), Case(adafactor, "float32", [8192, 768], 1.1, 2.2),
            Case(adafactor, "float32", [2048, 1024], 1.2, 2.6, layers=3),
            Case(softmax_back, "float32", [4096, 1024], 1.2, 2.4), Case(softmax_back, "bfloat16", [4096, 512], 1.3, 5),
            Case(layer_norm, "float32", [4096, 1024], 1.15, 1.8, layers=2),
            Case(weight_gradient, "float32", [2048, 1024], 1.2, 2.2)]


def what_is_wrong(fusec_run, scratch, case, arch):
    path = os.path.join(scratch, "model.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "symbols": case.symbols, "nodes": case.nodes, "outputs": case.outputs,
                   "inputs": [{"name": n, "dtype": d, "shape": s} for n, (d, s) in case.inputs.items()]}, f)
    kernels, why = profiled(fusec_run, path, "--verify", "--arch=" + arch, inputs="--random=1")
    if why:
        return why
    # Each layer has one output as large as an input, for each "x" or "y".
    least = sum(BYTES[d] * element_count(case.hinted(s)) for d, s in case.inputs.values())
    least += sum(BYTES[d] * element_count(case.hinted(s)) for n, (d, s) in case.inputs.items()
                 if n[0] in "xy" and len(case.outputs) > 1)
    sectors = 32 * sum(k["sectors"] for k in kernels) / least
    executed = 32 * sum(sum(k["instructions"].values()) - k["instructions"]["move"] for k in kernels) / least
    found = f"{len(kernels)} launches, {sectors:.2f} of the sectors, {executed:.2f} instructions a byte"
    if len(kernels) > case.launches or sectors > case.sectors or executed > case.instructions:
        return found
    return next(filter(None, map(fault_of, kernels)), "")


if __name__ == "__main__":
    sys.exit(check("folded columns", cases(), what_is_wrong))
