#!/usr/bin/env python3
"""compare_triton.py [--only=NAME,...] [--arch=80,90] [--sample] [--jobs=N] [--markdown=FILE] [BIN_DIR]: our kernels beside Triton's
and beside those of PyTorch's Inductor.

Compiles Triton's kernels (PyPI; no GPU needed) for softmax, LayerNorm, RMSNorm, SwiGLU and GELU, at six shapes each, in
float32 and bfloat16, for sm_80 and sm_90a, and runs their PTX on the emulator beside what fusec emits for the same graph
and the same inputs. Triton's kernels know every size at compile time, as Inductor's do, and take the faster (in executed
instructions) of the warps that Triton's tutorials and Inductor would choose. Where PyTorch is there, the kernels that
Inductor makes of the same functions are a second peer (bench/inductor_kernels.py; no GPU either), in the best of the
configurations that it would try. Which is best is seen on some blocks, then it is run as a whole; those within 2 % of it
are, too. All outputs are held against float64.

Printed for each: executed warp instructions by class, bytes and sectors of global memory, bank conflicts, barriers; from
ptxas: registers and bytes of machine code. Moves are left out of the sums, since ptxas removes most of them.

Demands, exit 1 where one is not met: ours needs no more bytes, sectors and bank conflicts anywhere, and executes in the
geometric mean no more instructions. Exits with 77 where Triton or NumPy is missing."""
import argparse
import concurrent.futures
import math
import os
import sys
import tempfile

from triton_peers import (LETTERS, ROOT, compiled, numpy, our_run, ptx_run, read_output, read_tensors, stored, tl, triton,
                          write_tensors)

try:
    import torch

    import inductor_kernels
except ImportError:
    inductor_kernels = None

SHAPES = [(512, 512), (256, 1024), (128, 4096), (128, 4095), (512, 33), (32, 16384)]
SAMPLE = [(128, 4096), (128, 4095)]
EPSILON = 1e-5
TOLERANCES = {"float32": (2e-5, 1e-4), "bfloat16": (3e-2, 3e-2)}  # rtol, atol: those of fusec-run --verify


@triton.jit
def softmax(x, y, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + column, e / tl.sum(e, 0), mask=mask)


@triton.jit
def layer_norm(x, w, b, y, n: tl.constexpr, eps: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=0.0).to(tl.float32)
    distance = tl.where(mask, value - tl.sum(value, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(distance * distance, 0) / n + eps)
    weight = tl.load(w + column, mask=mask).to(tl.float32)
    tl.store(y + row * n + column, distance * scale * weight + tl.load(b + column, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def rms_norm(x, w, y, n: tl.constexpr, eps: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(y + row * n + column, value * scale * tl.load(w + column, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def swiglu(gate, up, y, n: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(gate + at, mask=mask).to(tl.float32)
    tl.store(y + at, g * tl.sigmoid(g) * tl.load(up + at, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def gelu(x, y, n: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask).to(tl.float32)
    tl.store(y + at, value * 0.5 * (1 + tl.erf(value * 0.7071067811865476)), mask=mask)


def float64_softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def float64_gelu(x):
    return x * 0.5 * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2)))


def float64_layer_norm(x, w, b):
    return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + EPSILON) * w + b


# name: kernel, operands of a row's shape, operands of one row, by rows or by elements, the op, what it computes
WORKLOADS = {
    "softmax": (softmax, ["x"], [], True, lambda n: {"op": "softmax", "attrs": {"dim": -1}}, float64_softmax),
    "layer_norm": (layer_norm, ["x"], ["w", "b"], True,
                   lambda n: {"op": "layer_norm", "attrs": {"normalized_shape": [n], "eps": EPSILON}}, float64_layer_norm),
    "rms_norm": (rms_norm, ["x"], ["w"], True,
                 lambda n: {"op": "rms_norm", "attrs": {"normalized_shape": [n], "eps": EPSILON}},
                 lambda x, w: x / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * w),
    "swiglu": (swiglu, ["gate", "up"], [], False, lambda n: {"op": "swiglu"}, lambda g, u: g / (1 + numpy.exp(-g)) * u),
    "gelu": (gelu, ["x"], [], False, lambda n: {"op": "gelu"}, float64_gelu),
}


def warps_to_try(by_rows, columns):
    block = triton.next_power_of_2(columns)
    by_256 = max(block // 256, 1)
    return sorted({min(by_256, 4), min(by_256, 8), min(max(block // 512, 1), 16)}) if by_rows else [4, 8]


def peer_run(blocks, *arguments):
    """A peer's kernel on the emulator. Some blocks alone, if so many are asked for: then the executed instructions of all,
    were they like these. Triton's reductions of several values write equal words from several threads."""
    sample = [f"--sample-blocks={blocks}"] if blocks else []
    figures = ptx_run(*arguments, may_find="shared_race", options=sample)
    return figures["executed"] * figures["blocks"] if blocks else figures


def best_of(runs):
    """`runs`: functions of the number of blocks, each of one configuration. The one that executes the least."""
    if len(runs) > 1:
        seen = [run_some(8) for run_some in runs]
        runs = [run_some for run_some, executed in zip(runs, seen) if executed <= 1.02 * min(seen)]
    return min((run_all(0) for run_all in runs), key=lambda figures: figures["executed"])


def triton_run(workload, shape, dtype, arch, warps, inputs, folder, fusec_run):
    """A function of the number of blocks."""
    kernel, wide, narrow, by_rows, _, _ = WORKLOADS[workload]
    rows, columns = shape
    constants = {"n": columns, "BLOCK": triton.next_power_of_2(columns)} if by_rows else {"n": rows * columns, "BLOCK": 1024}
    if workload.endswith("norm"):
        constants["eps"] = EPSILON
    signature = {name: "*" + LETTERS[dtype] for name in [*wide, *narrow, "y"]}
    made = compiled(kernel, signature, constants, arch, warps)
    grid = rows if by_rows else -(-rows * columns // 1024)
    arguments = [f"in:{name}" for name in [*wide, *narrow]] + [f"out:y:{dtype}:{rows}x{columns}"]
    return lambda blocks: peer_run(blocks, made.asm["ptx"], workload, (grid, 1, 1), 32 * warps, made.metadata.shared,
                                   arguments, inputs, "y", folder, fusec_run)


def torch_function(workload, columns):
    functional = torch.nn.functional
    return {"softmax": lambda x: torch.softmax(x, -1),
            "layer_norm": lambda x, w, b: functional.layer_norm(x, [columns], w, b, EPSILON),
            "rms_norm": lambda x, w: functional.rms_norm(x, [columns], w, EPSILON),
            "swiglu": lambda gate, up: functional.silu(gate) * up, "gelu": functional.gelu}[workload]


def inductor_run(workload, shape, dtype, arch, inputs, folder, fusec_run):
    _, wide, narrow, _, _, _ = WORKLOADS[workload]
    given = [(n, dtype, list(shape)) for n in wide] + [(n, dtype, [shape[1]]) for n in narrow]
    launches, buffers, result = inductor_kernels.launches(torch_function(workload, shape[1]), given, arch)
    tensors, total = read_tensors(inputs), {}
    for number, launch in enumerate(launches):
        arguments = [f"i32:{a}" if isinstance(a, int) else f"in:{a}" if a in tensors else
                     f"out:{a}:{buffers[a].dtype}:{'x'.join(map(str, buffers[a].shape))}" for a in launch.arguments]
        made = next(a for a in launch.arguments if not isinstance(a, int) and a not in tensors)
        given_now = os.path.join(folder, f"inductor{number}.safetensors")
        write_tensors(given_now, tensors)
        best = best_of([lambda blocks, c=c: peer_run(blocks, c.ptx, launch.kernel, c.grid, c.threads, c.shared, arguments,
                                                     given_now, made, folder, fusec_run) for c in launch.configurations])
        tensors |= read_tensors(os.path.join(folder, "peer.out"))
        classes = {name: total.get("classes", {}).get(name, 0) + count for name, count in best["classes"].items()}
        total = {key: total.get(key, 0) + value for key, value in best.items() if key not in ("classes", "output")}
        total["classes"] = classes
    return total | {"output": read_output(os.path.join(folder, "peer.out"), result)}


def model_of(workload, shape, dtype):
    _, wide, narrow, _, op, _ = WORKLOADS[workload]
    rows, columns = shape
    return {"fusec": 1, "name": workload,
            "inputs": [{"name": n, "dtype": dtype, "shape": [rows, columns]} for n in wide]
            + [{"name": n, "dtype": dtype, "shape": [columns]} for n in narrow],
            "nodes": [{"name": "y", "inputs": [*wide, *narrow]} | op(columns)], "outputs": ["y"]}


def check_output(who, output, want, dtype):
    rtol, atol = TOLERANCES[dtype]
    wrong = ~(numpy.abs(output - want.ravel()) <= atol + rtol * numpy.abs(want.ravel()))  # NaN is wrong
    if wrong.any():
        sys.exit(f"compare_triton: {who}: {wrong.sum()} elements beyond {rtol},{atol}")


def compare(cell, fusec, fusec_run):
    with tempfile.TemporaryDirectory() as folder:
        return compare_in(folder, *cell, fusec, fusec_run)


def compare_in(folder, workload, shape, dtype, arch, fusec, fusec_run):
    random = numpy.random.default_rng([*shape, arch])
    _, wide, narrow, by_rows, _, expected = WORKLOADS[workload]
    tensors, values = {}, []
    for name in [*wide, *narrow]:
        extents = shape if name in wide else shape[1:]
        data, held = stored(random.standard_normal(extents), dtype)
        tensors[name] = (dtype, extents, data)
        values.append(held)
    inputs = os.path.join(folder, "inputs.safetensors")
    write_tensors(inputs, tensors)
    want = expected(*values)
    peers = {"Triton": best_of([triton_run(workload, shape, dtype, arch, warps, inputs, folder, fusec_run)
                                for warps in warps_to_try(by_rows, shape[1])])}
    if inductor_kernels:
        peers["Inductor"] = inductor_run(workload, shape, dtype, arch, inputs, folder, fusec_run)
    ours = our_run(model_of(workload, shape, dtype), "y", arch, inputs, folder, fusec, fusec_run)
    where = f"{workload} {shape[0]}x{shape[1]} {dtype} sm_{arch}"
    for peer, theirs in peers.items():
        check_output(f"{peer}'s {where}", theirs["output"], want, dtype)
    check_output(f"our {where}", ours["output"], want, dtype)
    return where, ours, peers


def mean(ratios):
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def row_of(where, ours, peer, theirs):
    classes = sorted(set(ours["classes"]) | set(theirs["classes"]))
    cells = [where, peer, f"{ours['executed'] / theirs['executed']:.3f}"]
    cells += [f"{ours[key]} / {theirs[key]}" for key in ("executed", "requested_bytes", "sectors", "bank_conflicts",
                                                         "barriers", "registers", "code_bytes")]
    cells.append(", ".join(f"{c} {ours['classes'].get(c, 0)}/{theirs['classes'].get(c, 0)}" for c in classes))
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads, by name")
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("--sample", action="store_true", help="two shapes of the six")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", default="")
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    fusec, fusec_run = (os.path.join(options.bin_dir, p) for p in ("fusec", "fusec-run"))
    heads = ["kernel", "peer", "executed, ratio", "executed, ours / peer's", "bytes", "sectors", "bank conflicts", "barriers",
             "registers", "machine code", "executed by class"]
    lines, ratios, broken = ["| " + " | ".join(heads) + " |", "| --- | --- |" + " ---: |" * (len(heads) - 2)], {}, []
    cells = [(workload, shape, dtype, arch)
             for workload in WORKLOADS if not options.only or workload in options.only.split(",")
             for arch in map(int, options.arch.split(","))
             for dtype in TOLERANCES for shape in (SAMPLE if options.sample else SHAPES)]
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        compared = pool.map(compare, cells, [fusec] * len(cells), [fusec_run] * len(cells))
        for (workload, _, _, _), (where, ours, peers) in zip(cells, compared):
            for peer, theirs in peers.items():
                lines.append(row_of(where, ours, peer, theirs))
                print(lines[-1], file=sys.stderr, flush=True)
                ratios.setdefault(peer, {}).setdefault(workload, []).append(ours["executed"] / theirs["executed"])
                broken += [f"{where}: {key} {ours[key]}, {peer}'s {theirs[key]}"
                           for key in ("requested_bytes", "sectors", "bank_conflicts") if ours[key] > theirs[key]]
    lines.append("")
    for peer, workloads in ratios.items():
        means = {name: mean(r) for name, r in workloads.items()}
        overall = mean([r for part in workloads.values() for r in part])
        broken += [f"executed instructions of {name}: {figure:.3f} of {peer}'s in the geometric mean"
                   for name, figure in (means | {"all": overall}).items() if figure > 1]
        lines += [f"Executed instructions, geometric mean of ours over {peer}'s: "
                  + ", ".join(f"{name} {figure:.3f}" for name, figure in means.items()) + f"; overall {overall:.3f}", ""]
    if not inductor_kernels:
        lines += ["Inductor's kernels were not compared: no PyTorch", ""]
    lines += [*("not met: " + b for b in broken), f"{len(broken)} demands not met"]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(text)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
