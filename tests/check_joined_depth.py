#!/usr/bin/env python3
"""check_joined_depth.py FUSEC_RUN [--sample=N] [--seed=N] [--only=TEXT]

Products over a concat along K: linear layers and convolutions, plain and after norms and activations, of two to four
pieces of equal or different lengths. The emulator executes and verifies them for sm_80 and sm_90a: one launch, no
findings, bank conflicts, spills or local memory, few instructions per multiply-add, since pieces are copied from their
own tensors. Convolutions with windows only on sm_90a. Status 77: no NVRTC."""
import json
import os
import sys

from check_columns import check, what_kernels_do_wrong
from emulated_run import finished
from movement_cases import element_count, node


class Case:
    """most: most instructions per thousand multiply-adds, by architecture."""

    def __init__(self, name, dtype, pieces, space, weights, nodes, most, **more):
        self.name = f"{name} of {dtype}{pieces} to {weights[0]}"
        self.inputs = [{"name": f"x{i}", "dtype": dtype, "shape": shape} for i, shape in enumerate(pieces)]
        self.constants = [{"name": "w", "dtype": dtype, "shape": weights}] + [
            {"name": name, "dtype": dtype, "shape": [size]} for name, size in more.items()]
        self.nodes = [node("joined", "concat", *(x["name"] for x in self.inputs), dim=1), *nodes]
        self.most = most
        depth = element_count(weights[1:])
        self.products = element_count([pieces[0][0], *space]) * weights[0] * depth


def linear(dtype, rows, pieces, columns, most, before=""):
    operand = "before" if before else "joined"
    nodes = ([node("before", before, "joined")] if before else []) + [node("p", "linear", operand, "w", "b"),
                                                                      node("y", "relu", "p")]
    return Case(f"linear {before}".strip(), dtype, [[rows, depth] for depth in pieces], [], [columns, sum(pieces)], nodes, most,
                b=columns)


def convolution(dtype, images, pieces, space, results, window, most, norm=False):
    depth, nodes, more = sum(pieces), [], {"b": results}
    if norm:
        nodes = [node("n", "batch_norm", "joined", "g", "h", "m", "v", eps=1e-5), node("before", "relu", "n")]
        more |= {name: depth for name in "ghmv"}
    nodes += [node("p", "conv2d", "before" if norm else "joined", "w", "b", stride=[1, 1],
                   padding=[window // 2, window // 2], dilation=[1, 1], groups=1), node("y", "relu", "p")]
    return Case(f"convolution {'norm ' if norm else ''}{window}x{window}", dtype,
                [[images, channels, *space] for channels in pieces], space, [results, depth, window, window], nodes,
                most, **more)


def cases():
    found = []
    for dtype in ("float16", "bfloat16"):
        found += [linear(dtype, 130, (64, 72), 136, 20), linear(dtype, 200, (96, 96), 200, 20),
                  linear(dtype, 77, (64, 40, 72), 136, 25), linear(dtype, 130, (64, 40, 72, 8), 72, 30),
                  linear(dtype, 130, (64, 72), 136, 60, before="gelu"),
                  convolution(dtype, 2, (64, 72), (8, 16), 136, 1, 20),
                  convolution(dtype, 2, (64, 32, 32), (8, 24), 72, 1, 50, norm=True),
                  convolution(dtype, 2, (64, 64), (8, 32), 136, 3, 10),
                  convolution(dtype, 1, (40, 72), (9, 24), 136, 3, 10)]
    return found + [linear("float32", 130, (64, 72), 136, 150), linear("float32", 100, (32, 32, 32), 72, 150)]


def what_is_wrong(fusec_run, scratch, case, arch):
    path, report = (os.path.join(scratch, name) for name in ("model.json", "profile.json"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "joined", "inputs": case.inputs, "constants": case.constants,
                   "nodes": case.nodes, "outputs": ["y"]}, f)
    done = finished([fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=" + arch, "--profile=" + report,
                "--json"])
    if done.returncode != 0:
        return done.stdout + done.stderr
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    each = 1000 * sum(n for k in kernels for n in k["instructions"].values()) / case.products
    windows = case.name.startswith("convolution 3")
    if len(kernels) != 1:
        return f"{len(kernels)} launches"
    if each > case.most and not (windows and arch == "sm_80"):
        return f"{each:.1f} instructions for a thousand multiply-adds, at most {case.most} expected"
    return what_kernels_do_wrong(kernels, 0)


if __name__ == "__main__":
    sys.exit(check("joined depth", cases(), what_is_wrong))
