#!/usr/bin/env python3
"""run.py [BIN_DIR] [--all] [--only=NAME,...] [--minutes=9] [--json=FILE] [--markdown=FILE] [--dry-run]: fusec's kernels on
the GPU at hand, beside its ceilings and its peers.

Ceilings are measured first, in this very run: a copy within the device, cuBLAS's largest product. Then, for each workload
at three shapes (--all: at all): fusec's time, what share of the ceiling it reaches (of the copy's bytes/s, or of the
product's flop/s for what multiplies), and the peers' times: PyTorch eager, torch.compile (max-autotune), Triton's own
kernels where there are some. Inputs are random, several sets of them, so that the cache does not flatter; outputs are
checked against float64; times are medians over many launches in CUDA graphs. What the host part costs is measured apart.

Peers are left out ("-") when the minutes are used up. --dry-run compiles everything, for this machine's nvcc, and runs
nothing: no GPU is needed. Needs PyTorch and nvcc. Exit 1: an output is wrong; 77: PyTorch or nvcc is missing."""
import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

try:
    import torch
except ImportError as missing:
    print(f"bench/gpu: PyTorch is needed (pip install torch): {missing}")
    sys.exit(77)

from compiled_model import CompiledModel  # noqa: E402
from timing import copy_rate, device_seconds, host_seconds, product_rate  # noqa: E402
from workloads import workloads  # noqa: E402

TOLERANCES = {"float32": (2e-5, 1e-4), "bfloat16": (3e-2, 3e-2), "float16": (1e-2, 1e-2)}
MOST_BYTES = 4 << 30  # of all input sets of a workload


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="bfloat16", choices=sorted(TOLERANCES))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--tuning-db", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--markdown", default="")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--arch", default="sm_90a", help="of --dry-run")
    return parser.parse_args()


def architecture():
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def input_sets(workload):
    """As many sets of operands as exceed the cache three times over."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(16, math.ceil(3 * cache / workload.least_bytes()), MOST_BYTES // workload.least_bytes()))
    dtype = getattr(torch, workload.dtype)
    scale = 1.0 if not workload.flops else workload.operands[0][1][-1] ** -0.25  # sums of products stay near 1
    return [[(torch.randn(shape, device="cuda") * scale).to(dtype) for _, shape in workload.operands] for _ in range(sets)]


def wrong_elements(workload, operands, output):
    """Against float64: of some rows where rows are independent, of one head of attention."""
    some = operands
    if workload.with_rows:
        some = [o[:64] if name in workload.with_rows else o for (name, _), o in zip(workload.operands, operands)]
        output = output[:64]
    elif workload.name == "attention_causal":
        some, output = [o[:1, :1] for o in operands], output[:1, :1]
    expected = workload.function(*[o.double() for o in some])
    rtol, atol = TOLERANCES[workload.dtype]
    atol *= max(1.0, expected.square().mean().sqrt().item())
    right = (output.double() - expected).abs() <= atol + rtol * expected.abs()  # not where either is NaN
    return int((~right).sum().item())


class Ours:
    def __init__(self, model, workload, sets):
        self.outputs, self.kept, self.launches = [], [], []
        model.create()
        shapes = dict(workload.operands)
        for operands in sets:
            output = torch.empty(workload.output_shape, device="cuda", dtype=getattr(torch, workload.dtype))
            tensors = [t.data_ptr() for t in operands] + [output.data_ptr()]
            arguments = model.arguments(shapes, tensors)
            prepared, workspace = (torch.empty(max(16, size), device="cuda", dtype=torch.uint8)
                                   for size in (model.prepared_bytes(arguments), model.workspace_bytes(arguments)))
            model.prepare(arguments, prepared.data_ptr(), 0)
            launch = model.launcher(arguments, prepared.data_ptr(), workspace.data_ptr())
            self.launches.append(lambda launch=launch: launch(torch.cuda.current_stream().cuda_stream))
            self.outputs.append(output)
            self.kept += [arguments, prepared, workspace]
        torch.cuda.synchronize()


def triton_launches(workload, sets):
    """The fastest number of warps of those that Triton's own tutorials and Inductor would take."""
    import compare_triton
    import triton
    kernel, _, _, by_rows, _, _ = compare_triton.WORKLOADS[workload.triton]
    rows, columns = workload.shape
    constants = {"n": columns, "BLOCK": triton.next_power_of_2(columns)} if by_rows else {"n": rows * columns, "BLOCK": 1024}
    if workload.triton.endswith("norm"):
        constants["eps"] = compare_triton.EPSILON
    grid = (rows,) if by_rows else (-(-rows * columns // 1024),)
    outputs = [torch.empty(workload.output_shape, device="cuda", dtype=sets[0][0].dtype) for _ in sets]
    for warps in compare_triton.warps_to_try(by_rows, columns):
        yield [lambda operands=operands, output=output, warps=warps:
               kernel[grid](*operands, output, **constants, num_warps=warps) for operands, output in zip(sets, outputs)]


def peers_of(workload, sets, deadline):
    """Seconds by name; nothing for those that there was no time for or that this machine cannot run."""
    times = {}

    def attempt(name, make):
        if time.monotonic() > deadline:
            return
        try:
            times[name] = make()
        except Exception as error:  # a peer's failure is the peer's
            print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)

    def of(function):
        return device_seconds(torch, [lambda operands=operands: function(*operands) for operands in sets])

    attempt("eager", lambda: of(workload.function))
    compiled = torch.compile(workload.function, mode="max-autotune-no-cudagraphs", dynamic=False)
    attempt("compile", lambda: of(compiled))
    if workload.triton:
        attempt("triton", lambda: min(device_seconds(torch, launches) for launches in triton_launches(workload, sets)))
    return times


def measure(model, workload, ceilings, deadline):
    sets = input_sets(workload)
    ours = Ours(model, workload, sets)
    result = {"workload": workload.name, "shape": list(workload.shape), "dtype": workload.dtype,
              "launches": model.launches, "least_bytes": workload.least_bytes(), "flops": workload.flops,
              "seconds": device_seconds(torch, ours.launches)}
    result["wrong"] = wrong_elements(workload, sets[0], ours.outputs[0])
    of_copy = workload.least_bytes() / ceilings["copy_bytes_per_second"]
    of_product = workload.flops / ceilings["product_flops_per_second"]
    result["ceiling"] = max(of_copy, of_product) / result["seconds"]
    if workload.name in ("swiglu",):
        result["host_seconds"] = host_seconds(torch, ours.launches[0])
    result["peers"] = peers_of(workload, sets, deadline)
    model.destroy()
    return result


def empty_launch_seconds(folder):
    """What a bare cudaLaunchKernel costs the host."""
    import ctypes
    from compiled_model import run
    source, library = os.path.join(folder, "empty.cu"), os.path.join(folder, "empty.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write("__global__ void nothing() {}\n"
                   'extern "C" int launch(cudaStream_t s) { return cudaLaunchKernel(nothing, 1, 32, nullptr, 0, s); }\n')
    run(["nvcc", "-shared", "-Xcompiler=-fPIC", source, "-o", library])
    launch = ctypes.CDLL(library).launch
    stream = ctypes.c_void_p(0)
    return host_seconds(torch, lambda: launch(stream))


def line_of(result):
    def microseconds(seconds):
        return f"{seconds * 1e6:9.1f}" if seconds is not None else f"{'-':>9}"
    peers = result["peers"]
    shape = "x".join(map(str, result["shape"]))
    return (f"| {result['workload']:<17} | {shape:<15} | {result['launches']:>2} | {microseconds(result['seconds'])} "
            f"| {100 * result['ceiling']:5.1f} % | {microseconds(peers.get('eager'))} | {microseconds(peers.get('compile'))} "
            f"| {microseconds(peers.get('triton'))} | {'' if result['wrong'] == 0 else 'WRONG'} |")


HEADER = ("| workload          | shape           | launches | fusec us | of ceiling | eager us | torch.compile us | Triton us |  |\n"
          "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")


def summary(results):
    ratios = [r["peers"]["compile"] / r["seconds"] for r in results if r["peers"].get("compile")]
    if not ratios:
        return "torch.compile was not measured"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"torch.compile takes {mean:.3f} times as long in the geometric mean of {len(ratios)}, {min(ratios):.3f} at worst"


def dry_run(options, only, folder):
    names = []
    for workload in workloads(torch, options.all, only, options.dtype):
        if names and names[-1] == workload.name and not options.all:
            continue
        model = CompiledModel(os.path.join(options.bin_dir, "fusec"), workload.graph(), options.arch, folder)
        for function in ("create", "workspace_bytes", "prepared_bytes", "prepare", "launch", "error", "destroy"):
            model.function(function)
        shapes = dict(workload.operands)
        model.workspace_bytes(model.arguments(shapes, [16] * (len(shapes) + 1)))
        names.append(workload.name)
    print(f"{len(names)} workloads compiled: {', '.join(names)}")
    return 0


def main():
    options = parse()
    if not shutil.which("nvcc"):
        print("bench/gpu: no nvcc in PATH")
        return 77
    only = tuple(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        if options.dry_run:
            return dry_run(options, only, folder)
        deadline = time.monotonic() + 60 * options.minutes
        ceilings = {"copy_bytes_per_second": copy_rate(torch), "product_flops_per_second": product_rate(torch)}
        device = torch.cuda.get_device_name()
        print(f"{device}, {architecture()}: a copy moves {ceilings['copy_bytes_per_second'] / 1e12:.3f} TB/s, cuBLAS's bfloat16 "
              f"product of 8192^3 makes {ceilings['product_flops_per_second'] / 1e12:.0f} Tflop/s\n\n{HEADER}")
        tuned = [f"--tuning-db={options.tuning_db}"] if options.tuning_db else []
        results = []
        for workload in workloads(torch, options.all, only, options.dtype):
            model = CompiledModel(os.path.join(options.bin_dir, "fusec"), workload.graph(), architecture(), folder, tuned)
            results.append(measure(model, workload, ceilings, deadline))
            print(line_of(results[-1]), flush=True)
        bare = empty_launch_seconds(folder)
        hosts = [r["host_seconds"] for r in results if "host_seconds" in r]
        tail = summary(results)
        if hosts:
            tail += f"; the host part takes {min(hosts) * 1e6:.2f} us a launch, a bare cudaLaunchKernel {bare * 1e6:.2f} us"
        print("\n" + tail)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"device": device, "ceilings": ceilings, "bare_launch_seconds": bare, "results": results}, file, indent=1)
        if options.markdown:
            with open(options.markdown, "w", encoding="utf-8") as file:
                file.write("\n".join([f"{device}", "", HEADER, *map(line_of, results), "", tail]) + "\n")
        return 1 if any(r["wrong"] for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
