#!/usr/bin/env python3
"""check_gradient_norms.py FUSEC_RUN FUSEC [--sample=N] [--seed=N] [--only=TEXT]

The norm of a model's gradients, gradient clipping, and other horizontally fused reductions of tensors of different
sizes. The emulator executes and verifies them for sm_80 and sm_90a: no findings, bank conflicts, spills or local
memory, few launches and few instructions per byte. With very many tensors fusec's own time must grow linearly: three
times as many tensors take at most five times as long. Status 77: no NVRTC."""
import json
import os
import sys
import tempfile

from check_columns import check
from check_compile_time import least_ms
from emulated_run import fault_of, profiled
from movement_cases import node

BLOCK = [[256, 256], [256]] * 3 + [[1024, 256], [1024], [256, 1024], [256], [384, 256]]


class Case:
    """instructions: most warp instructions x 32 of all kernels, relative to the least bytes."""

    def __init__(self, name, dtype, shapes, graph, launches, instructions):
        self.name, self.dtype, self.shapes = f"{name} {dtype} {len(shapes)}", dtype, shapes
        self.nodes, self.outputs = graph(dtype, len(shapes))
        self.launches, self.instructions = launches, instructions


def norms(dtype, count):
    nodes = []
    for i in range(count):
        wide = f"g{i}"
        if dtype in ("float16", "bfloat16"):
            wide = f"c{i}"
            nodes.append(node(wide, "cast", f"g{i}", dtype="float32"))
        nodes.append(node(f"n{i}", "vector_norm", wide, ord=2))
    return nodes, [f"n{i}" for i in range(count)]


def of_stack(dtype, count):
    nodes, each = norms(dtype, count)
    return nodes + [node("all", "stack", *each, dim=0), node("norm", "vector_norm", "all", ord=2)], ["norm"]


def clipped(nodes, dtype, count):
    nodes = nodes + [node("e", "add", "norm", 1e-6), node("r", "div", 1.0, "e"), node("f", "clamp", "r", max=1.0)]
    for i in range(count):
        nodes += [node(f"f{i}", "cast", "f", dtype=dtype), node(f"y{i}", "mul", f"g{i}", f"f{i}")]
    return nodes, ["norm"] + [f"y{i}" for i in range(count)]


def clipped_by_stack(dtype, count):
    return clipped(of_stack(dtype, count)[0], dtype, count)


def clipped_by_sums(dtype, count):
    nodes, last = [], ""
    for i in range(count):
        nodes += [node(f"q{i}", "mul", f"g{i}", f"g{i}"), node(f"s{i}", "sum", f"q{i}")]
        if last:
            nodes.append(node(f"a{i}", "add", last, f"s{i}"))
        last = f"a{i}" if last else f"s{i}"
    return clipped(nodes + [node("norm", "sqrt", last)], dtype, count)


def of_losses(dtype, count):
    nodes = [node(f"m{i}", "amax", f"g{i}") for i in range(count)]
    nodes.append(node("b1", "add", "m0", "m1"))
    nodes += [node(f"b{i}", "add", f"b{i - 1}", f"m{i}") for i in range(2, count)]
    return nodes, [f"b{count - 1}"]


def cases():
    found = []
    for dtype, most in (("float32", 3.2), ("float16", 5), ("bfloat16", 5)):
        found += [Case("norms", dtype, BLOCK, norms, 2, most), Case("norm of norms", dtype, BLOCK, of_stack, 3, most),
                  Case("clipped by norm of norms", dtype, BLOCK, clipped_by_stack, 4, most)]
    uneven = [[1023, 129], [77], [301, 1001], [100003], [5]]
    squares, tall = [[512, 512], [512], [768, 512], [2048]], [[512, 512], [768, 512], [2048, 96], [64]]
    found += [Case("clipped by sums of squares", "float32", squares, clipped_by_sums, 4, 4),
              Case("clipped by norm of uneven norms", "float32", uneven, clipped_by_stack, 4, 8),
              Case("sum of maxima", "float32", tall, of_losses, 3, 5),
              Case("sum of maxima", "int8", tall, of_losses, 3, 40),
              Case("norms", "float64", [[256, 256], [256], [512, 256]], norms, 2, 12),
              Case("clipped by norm of norms", "float32", BLOCK * 6, clipped_by_stack, 4, 4)]
    return found


def write(case, scratch):
    path = os.path.join(scratch, "model.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "inputs": [{"name": f"g{i}", "dtype": case.dtype, "shape": s}
                                          for i, s in enumerate(case.shapes)],
                   "nodes": case.nodes, "outputs": case.outputs}, f)
    return path


def what_is_wrong(fusec_run, scratch, case, arch):
    kernels, why = profiled(fusec_run, write(case, scratch), "--verify", "--arch=" + arch, inputs="--random=1")
    if why:
        return why
    if len(kernels) > case.launches:
        return f"{len(kernels)} launches, {case.launches} allowed"
    if fault := next(filter(None, map(fault_of, kernels)), ""):
        return fault
    least = sum(k["least_bytes"] for k in kernels)
    of_a_byte = 32 * sum(sum(k["instructions"].values()) for k in kernels) / least
    if of_a_byte > case.instructions:
        return f"{of_a_byte:.2f} instructions a byte, {case.instructions} allowed"
    return ""


def takes_too_long(fusec):
    """fusec's own time must not be quadratic in the number of tensors."""
    with tempfile.TemporaryDirectory() as scratch:
        few, many = (least_ms(fusec, write(Case("", "float32", BLOCK * n, clipped_by_stack, 0, 0), scratch), scratch, 3)
                     for n in (6, 18))
    print(f"{len(BLOCK) * 6} tensors: {few:.0f} ms of CPU without NVRTC, {len(BLOCK) * 18}: {many:.0f} ms")
    return many > 5 * few


if __name__ == "__main__":
    fusec = sys.argv.pop(2)
    sys.exit(check("gradient norms", cases(), what_is_wrong) or takes_too_long(fusec))
