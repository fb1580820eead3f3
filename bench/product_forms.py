#!/usr/bin/env python3
"""product_forms.py BIN_DIR [BIN_DIR_BEFORE] [--blocks=N]: products of few rows, convolutions and awkward sizes, counted.

Runs a sample of blocks of each kernel on the emulator and prints, as a table, the schedule, the executed instructions a
thousand multiply-adds (a warp's is one; moves left out: ptxas removes most), the sectors asked of memory in bytes over
the least that the kernel must move, and bank conflicts of the sample; the same of an older build, where one is given."""
import argparse
import json
import os
import subprocess
import tempfile


def tensor(name, dtype, *shape):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def model(inputs, constants, nodes):
    return {"fusec": 1, "name": "form", "inputs": inputs, "constants": constants, "nodes": nodes,
            "outputs": [nodes[-1]["name"]]}


def linear(m, n, k, dtype):
    return m * n * k, model([tensor("x", dtype, m, k)], [tensor("w", dtype, n, k)],
                            [{"name": "y", "op": "linear", "inputs": ["x", "w"]}])


def matmul(m, n, k, dtype):
    return m * n * k, model([tensor("x", dtype, m, k)], [tensor("w", dtype, k, n)],
                            [{"name": "y", "op": "matmul", "inputs": ["x", "w"]}])


def gated(m, n, k, dtype):
    return 2 * m * n * k, model([tensor("x", dtype, m, k)], [tensor("g", dtype, n, k), tensor("u", dtype, n, k)],
                                [{"name": "a", "op": "linear", "inputs": ["x", "g"]},
                                 {"name": "b", "op": "linear", "inputs": ["x", "u"]},
                                 {"name": "s", "op": "silu", "inputs": ["a"]},
                                 {"name": "y", "op": "mul", "inputs": ["s", "b"]}])


def codes(m, n, k, kind):
    return m * n * k, model([tensor("x", "float16", m, k)], [tensor("c", kind, n, k), tensor("s", "float16", n)],
                            [{"name": "w", "op": "dequantize", "inputs": ["c", "s"],
                              "attrs": {"dtype": "float16", "axis": 0}},
                             {"name": "y", "op": "linear", "inputs": ["x", "w"]}])


def convolution(n, c, size, o, kernel, stride, dtype):
    pad, out = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1
    return n * out * out * o * c * kernel * kernel, model(
        [tensor("x", dtype, n, c, size, size)], [tensor("w", dtype, o, c, kernel, kernel), tensor("b", dtype, o)],
        [{"name": "p", "op": "conv2d", "inputs": ["x", "w", "b"],
          "attrs": {"stride": [stride, stride], "padding": [pad, pad]}},
         {"name": "y", "op": "relu", "inputs": ["p"]}])


FORMS = [
    ("1 x 4096 x 4096 bfloat16", linear(1, 4096, 4096, "bfloat16")),
    ("8 x 4096 x 4096 bfloat16", linear(8, 4096, 4096, "bfloat16")),
    ("32 x 4096 x 4096 bfloat16", linear(32, 4096, 4096, "bfloat16")),
    ("8 x 4096 x 4096 bfloat16, w[k, n]", matmul(8, 4096, 4096, "bfloat16")),
    ("8 x 14336 x 4096 bfloat16, gated", gated(8, 14336, 4096, "bfloat16")),
    ("8 x 4096 x 4096, w in int8", codes(8, 4096, 4096, "int8")),
    ("1 x 4096 x 4096, w in int4", codes(1, 4096, 4096, "int4")),
    ("convolution 7x7/2, 3 to 64, 224x224, float16", convolution(2, 3, 224, 64, 7, 2, "float16")),
    ("convolution 3x3, 64 to 64, 56x56, float16", convolution(8, 64, 56, 64, 3, 1, "float16")),
    ("convolution 3x3/2, 128 to 128, 56x56, float16", convolution(8, 128, 56, 128, 3, 2, "float16")),
    ("convolution 3x3, 256 to 256, 14x14, float16", convolution(32, 256, 14, 256, 3, 1, "float16")),
    ("convolution 3x3, 64 to 64, 56x56, float32", convolution(8, 64, 56, 64, 3, 1, "float32")),
    ("convolution 7x7/2, 3 to 64, 224x224, float32", convolution(2, 3, 224, 64, 7, 2, "float32")),
    ("500 x 501 x 301 float16", linear(500, 501, 301, "float16")),
    ("500 x 501 x 301 float32", linear(500, 501, 301, "float32")),
]


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def counted(bin_dir, made, blocks):
    multiply_adds, entry = made
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        with open(path("m.json"), "w", encoding="utf-8") as f:
            json.dump(entry, f)
        run([os.path.join(bin_dir, "fusec"), path("m.json"), "--no-nvrtc", f"--emit=manifest={path('m.manifest')}"])
        run([os.path.join(bin_dir, "fusec-run"), path("m.json"), "--random", "--device=emulator", "--json",
             f"--profile={path('p.json')}", f"--sample-blocks={blocks}"])
        with open(path("m.manifest"), encoding="utf-8") as f:
            schedule = json.load(f)["kernels"][-1]["schedule"]
        with open(path("p.json"), encoding="utf-8") as f:
            profile = json.load(f)["kernels"][-1]
    sample = profile.get("sample", {"blocks": 1, "of": 1})
    share = sample["blocks"] / sample["of"]
    instructions = sum(n for name, n in profile["instructions"].items() if name != "move")
    return (f"{schedule} | {1000 * instructions / (share * multiply_adds):.2f} | "
            f"{profile['requested_bytes'] / (share * profile['least_bytes']):.2f} | {profile['bank_conflicts']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir")
    parser.add_argument("before", nargs="?")
    parser.add_argument("--blocks", type=int, default=4)
    options = parser.parse_args()
    columns = "schedule | instructions | bytes | conflicts"
    print(f"| form | {columns} |{' before: ' + columns + ' |' if options.before else ''}")
    print("| --- " * (9 if options.before else 5) + "|")
    for name, made in FORMS:
        line = f"| {name} | {counted(options.bin_dir, made, options.blocks)} |"
        if options.before:
            line += f" {counted(options.before, made, options.blocks)} |"
        print(line, flush=True)


main()
