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
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.compiler import ASTSource
except ImportError as missing:
    print(f"compare_triton: {missing}")
    sys.exit(77)

try:
    import torch

    import inductor_kernels
except ImportError:
    inductor_kernels = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
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


def stored(values, dtype):
    """The bytes of float32 values in a dtype, and what they hold then."""
    values = values.astype(numpy.float32)
    if dtype == "float32":
        return values.tobytes(), values.astype(numpy.float64)
    bits = values.view(numpy.uint32)
    halves = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return halves.tobytes(), (halves.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)


def write_tensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    names, header, at = {"float32": "F32", "bfloat16": "BF16"}, {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": names[dtype], "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def read_output(path, name):
    with open(path, "rb") as f:
        everything = f.read()
    length = struct.unpack("<Q", everything[:8])[0]
    tensor = json.loads(everything[8:8 + length])[name]
    first, last = (8 + length + offset for offset in tensor["data_offsets"])
    data = everything[first:last]
    if tensor["dtype"] == "BF16":
        return (numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    return numpy.frombuffer(data, numpy.float32)


def read_tensors(path):
    """As write_tensors takes them."""
    names = {"F32": "float32", "BF16": "bfloat16"}
    with open(path, "rb") as f:
        everything = f.read()
    length = struct.unpack("<Q", everything[:8])[0]
    header = json.loads(everything[8:8 + length])
    return {name: (names[t["dtype"]], t["shape"], everything[slice(*(8 + length + o for o in t["data_offsets"]))])
            for name, t in header.items() if name != "__metadata__"}


def run(command, may_find=""):
    """`may_find`: a kind of finding that does not stop us where the emulator reports nothing else."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = [line for line in (done.stdout + done.stderr).splitlines() if "(ptx line" in line]
    if done.returncode != 0 and not (may_find and found and all(may_find in line for line in found)):
        sys.exit(f"compare_triton: {' '.join(command)}\n{done.stderr}")
    return done


def counted(profile_path):
    """Sums over the kernels of a profile, and what of each class was executed."""
    with open(profile_path, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    classes = {}
    for kernel in kernels:
        for name, count in kernel["instructions"].items():
            classes[name] = classes.get(name, 0) + count
    figures = {key: sum(k[key] for k in kernels)
               for key in ("requested_bytes", "distinct_bytes", "sectors", "bank_conflicts", "barriers")}
    figures["executed"] = sum(count for name, count in classes.items() if name != "move")
    figures["classes"] = {name: count for name, count in classes.items() if count and name != "move"}
    return figures


def assembled(ptx, folder):
    """Registers of the greediest kernel, and bytes of machine code of all. By the newest assembler that Triton
    brings, that for Blackwell: it knows the PTX versions of Triton and of NVRTC; a toolkit's may be older."""
    ptxas = get_ptxas(100).path
    cubin = os.path.join(folder, "assembled.cubin")
    target = re.search(r"^\.target\s+(\S+?)(,|\s|$)", open(ptx, encoding="utf-8").read(), re.M).group(1)
    done = run([ptxas, "-v", f"-arch={target}", ptx, "-o", cubin])
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", done.stderr + done.stdout)]
    sections = run(["readelf", "-SW", cubin]).stdout
    code = [int(line.split("]")[1].split()[4], 16) for line in sections.splitlines() if "] .text." in line]
    return {"registers": max(registers, default=0), "code_bytes": sum(code)}


def warps_to_try(by_rows, columns):
    block = triton.next_power_of_2(columns)
    by_256 = max(block // 256, 1)
    return sorted({min(by_256, 4), min(by_256, 8), min(max(block // 512, 1), 16)}) if by_rows else [4, 8]


def ptx_run(ptx, kernel, grid, threads, shared, arguments, inputs, result, folder, fusec_run, blocks=0):
    """A peer's kernel on the emulator: `arguments` in fusec-run's words; scratch pointers that Triton appends are null.
    Some blocks alone, if so many are asked for: then the executed instructions of all, were they like these."""
    path, output, profile = (os.path.join(folder, name) for name in ("peer.ptx", "peer.out", "peer.json"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(ptx)
    parameters = len(re.findall(r"^\s*\.param", ptx.split(".entry")[1].split("{")[0], re.M))
    arguments = [f"--arg={a}" for a in arguments] + ["--arg=null"] * (parameters - len(arguments))
    for stale in (output, profile):
        if os.path.exists(stale):
            os.remove(stale)
    # Triton's reductions of several values write equal words from several threads.
    run([fusec_run, f"--ptx={path}", f"--kernel={kernel}", f"--grid={','.join(map(str, grid))}", f"--block={threads},1,1",
         f"--shared={shared}", *arguments, f"--inputs={inputs}", f"--outputs={output}", f"--profile={profile}", "--json",
         *([f"--sample-blocks={blocks}"] if blocks else [])], may_find="shared_race")
    if blocks:
        with open(profile, encoding="utf-8") as f:
            sample = json.load(f)["kernels"][0].get("sample", {"blocks": 1, "of": 1})
        return counted(profile)["executed"] * sample["of"] / sample["blocks"]
    return counted(profile) | assembled(path, folder) | {"output": read_output(output, result)}


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
    letter = {"float32": "*fp32", "bfloat16": "*bf16"}[dtype]
    signature = {name: letter for name in [*wide, *narrow, "y"]} | {name: "constexpr" for name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants,
                       attrs={(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t[0] == "*"})
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps})
    grid = rows if by_rows else -(-rows * columns // 1024)
    arguments = [f"in:{name}" for name in [*wide, *narrow]] + [f"out:y:{dtype}:{rows}x{columns}"]
    return lambda blocks: ptx_run(made.asm["ptx"], workload, (grid, 1, 1), 32 * warps, made.metadata.shared, arguments, inputs,
                                  "y", folder, fusec_run, blocks)


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
        best = best_of([lambda blocks, c=c: ptx_run(c.ptx, launch.kernel, c.grid, c.threads, c.shared, arguments, given_now,
                                                    made, folder, fusec_run, blocks) for c in launch.configurations])
        tensors |= read_tensors(os.path.join(folder, "peer.out"))
        classes = {name: total.get("classes", {}).get(name, 0) + count for name, count in best["classes"].items()}
        total = {key: total.get(key, 0) + value for key, value in best.items() if key not in ("classes", "output")}
        total["classes"] = classes
    return total | {"output": read_output(os.path.join(folder, "peer.out"), result)}


def our_run(workload, shape, dtype, arch, inputs, folder, fusec, fusec_run):
    _, wide, narrow, _, op, _ = WORKLOADS[workload]
    rows, columns = shape
    model = {"fusec": 1, "name": workload,
             "inputs": [{"name": n, "dtype": dtype, "shape": [rows, columns]} for n in wide]
             + [{"name": n, "dtype": dtype, "shape": [columns]} for n in narrow],
             "nodes": [{"name": "y", "inputs": [*wide, *narrow]} | op(columns)], "outputs": ["y"]}
    path, ptx, output, profile = (os.path.join(folder, n) for n in ("model.json", "ours.ptx", "ours.out", "ours.json"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    target = f"--arch={'sm_90a' if arch == 90 else f'sm_{arch}'}"
    run([fusec, path, target, "-o", ptx])
    run([fusec_run, path, target, "--device=emulator", f"--inputs={inputs}", f"--outputs={output}", f"--profile={profile}",
         "--json"])
    return counted(profile) | assembled(ptx, folder) | {"output": read_output(output, "y")}


def check_output(who, output, want, dtype):
    rtol, atol = TOLERANCES[dtype]
    wrong = numpy.abs(output - want.ravel()) > atol + rtol * numpy.abs(want.ravel())
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
    ours = our_run(workload, shape, dtype, arch, inputs, folder, fusec, fusec_run)
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
