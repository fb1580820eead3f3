#!/usr/bin/env python3
"""worker.py --compiled=DIR [--skip=N] [--all | --small] [--only=NAME,...] [--peers=NAME,...] [--dtype=D] [--no-ceilings]:
measures the two ceilings, then each workload that bench/gpu/run.py compiled into the folder, as rows of JSON for
watchdog.py: {"name", "figures": [[WHAT, NUMBER, UNIT], ...]}, with "failed" where outputs are wrong and "skipped" peers.

Inputs are random, several sets of them, so that the cache does not flatter. Before a run the outputs are NaN; afterwards
all of two sets is compared with float64, row by row."""
import argparse
import contextlib
import ctypes
import functools
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
os.environ.setdefault("TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS", "ATEN")  # Triton's products take minutes to tune

import torch  # noqa: E402

from compiled_model import CompiledModel  # noqa: E402
from timing import Captured, copy_rate, host_seconds, median_seconds, product_rate  # noqa: E402
from watchdog import START_AGAIN  # noqa: E402
from workloads import workloads  # noqa: E402

# Of |output - expected| / |expected| of a row: what rounding the operands and intermediates to the dtype explains.
TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-2, "float16": 2e-3}
MOST_BYTES = 4 << 30  # of all input sets of a workload


def input_sets(workload):
    """As many sets of operands as exceed the cache three times over, two at least."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(2, min(16, math.ceil(3 * cache / workload.least_bytes()), MOST_BYTES // workload.least_bytes()))
    scale = 1.0 if not workload.flops else workload.operands[0][1][-1] ** -0.25  # sums of products stay near 1
    return [[(torch.randn(shape, device="cuda") * scale).to(getattr(torch, workload.dtype)) for _, shape in workload.operands]
            for _ in range(sets)]


def worst_row(workload, operands, output):
    """The largest error of a row, as part of the row's norm; infinite where an element is NaN."""
    if workload.name == "attention_causal":  # a head at a time: the scores of all would not fit
        parts = [([o[i:i + 1, j:j + 1] for o in operands], output[i:i + 1, j:j + 1])
                 for i in range(output.shape[0]) for j in range(output.shape[1])]
    else:
        parts = [(operands, output)]
    worst = 0.0
    for inputs, got in parts:
        expected = workload.function(*[o.double() for o in inputs])
        errors = (got.double() - expected).norm(dim=-1) / expected.norm(dim=-1).clamp_min(1e-30)
        worst = max(worst, errors.nan_to_num(nan=math.inf).max().item())
    return worst


class Ours:
    def __init__(self, model, workload, sets):
        self.outputs, self.kept, self.bare = [], [], []
        model.create()
        shapes = dict(workload.operands)
        for operands in sets:
            output = torch.full(workload.output_shape, math.nan, device="cuda", dtype=getattr(torch, workload.dtype))
            tensors = [t.data_ptr() for t in operands] + [output.data_ptr()]
            arguments = model.arguments(shapes, tensors)
            prepared, workspace = (torch.full((max(16, size),), 255, device="cuda", dtype=torch.uint8)
                                   for size in (model.prepared_bytes(arguments), model.workspace_bytes(arguments)))
            model.prepare(arguments, prepared.data_ptr(), 0)
            self.bare.append(model.launcher(arguments, prepared.data_ptr(), workspace.data_ptr()))
            self.outputs.append(output)
            self.kept += [operands, arguments, prepared, workspace]
        torch.cuda.synchronize()
        self.launches = [lambda bare=bare: bare(torch.cuda.current_stream().cuda_stream) for bare in self.bare]


def triton_launches(workload, sets):
    """For each number of warps of those that Triton's own tutorials and Inductor would take."""
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
        yield warps, [functools.partial(kernel[grid], *operands, output, **constants, num_warps=warps)
                      for operands, output in zip(sets, outputs)]


def cudnn_attention(*operands):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=True)


def captured_peers(workload, sets, names, skipped):
    """Graphs by name. A peer's failure is the peer's."""
    captured = {}

    def attempt(name, launches):
        try:
            for key, functions in launches():
                captured[key] = Captured(torch, functions)
        except (Exception, SystemExit) as error:  # bench/compare_triton.py ends with 77 where Triton is missing
            skipped.append(f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0][:200]}")

    def of(name, function):
        return [(name, [functools.partial(function, *operands) for operands in sets])]

    if "eager" in names:
        attempt("eager", lambda: of("eager", workload.function))
    if "cudnn" in names and workload.name == "attention_causal":
        attempt("cudnn", lambda: of("cudnn", cudnn_attention))
    if "compile" in names:
        attempt("compile", lambda: of("compile", torch.compile(workload.function, mode="max-autotune-no-cudagraphs",
                                                               dynamic=False)))
    if "triton" in names and workload.triton:
        attempt("triton", lambda: ((f"triton {warps}", launches) for warps, launches in triton_launches(workload, sets)))
    return captured


def measure(workload, options):
    model = CompiledModel(options.compiled, workload.file_name())
    sets, skipped = input_sets(workload), []
    ours = Ours(model, workload, sets)
    captured = {"fusec": Captured(torch, ours.launches)}
    worst = max(worst_row(workload, sets[i], ours.outputs[i]) for i in (0, len(sets) - 1))
    captured.update(captured_peers(workload, sets, options.peers.split(","), skipped))
    seconds = median_seconds(captured, **options.timing)
    triton = [seconds.pop(name) for name in list(seconds) if name.startswith("triton")]
    if triton:
        seconds["triton"] = min(triton)
    figures = [["launches", model.launches, ""], ["least bytes", workload.least_bytes(), "B"],
               ["operations", workload.flops, ""], ["worst row", worst, "of its norm"]]
    with contextlib.suppress(Exception):  # without NVIDIA's management library
        figures.append(["SM clock", torch.cuda.clock_rate(), "MHz"])
    figures += [[name, 1e6 * taken, "us"] for name, taken in seconds.items()]
    if workload.name == "swiglu":
        empty, stream = ctypes.CDLL(os.path.abspath(os.path.join(options.compiled, "empty.so"))).launch, ctypes.c_void_p()
        for what, launch in (("host part", lambda: ours.bare[0](0)), ("bare launch", lambda: empty(stream))):
            figures.append([what, 1e6 * host_seconds(torch, launch, 5 if options.small else 2000), "us a launch"])
    model.destroy()
    row = {"figures": figures, "skipped": "; ".join(skipped)}
    if not worst <= TOLERANCES[workload.dtype]:
        row["failed"] = f"wrong: an error of {worst:.3g} of a row's norm; {TOLERANCES[workload.dtype]:g} is allowed"
    return row


def cases(options):
    megabytes, size, dtype = *((1 / 64, 64) if options.small else (1024, 8192)), getattr(torch, options.dtype)
    if not options.no_ceilings:
        yield "copy", lambda: {"figures": [["rate", copy_rate(torch, megabytes, **options.timing), "B/s"]]}
        yield "product", lambda: {"figures": [["rate", product_rate(torch, dtype, size, **options.timing), "flop/s"]]}
    only = tuple(filter(None, options.only.split(",")))
    for workload in workloads(torch, options.all, only, options.dtype, options.small):
        yield workload.title(), functools.partial(measure, workload, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiled", required=True)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="eager,cudnn")
    parser.add_argument("--dtype", default="bfloat16", choices=sorted(TOLERANCES))
    parser.add_argument("--no-ceilings", action="store_true")
    options = parser.parse_args()
    options.timing = {"warm": 0, "repeats": 1} if options.small else {}
    torch.manual_seed(0)
    for name, run in list(cases(options))[options.skip:]:
        print(json.dumps({"begins": name}), flush=True)
        try:
            row = run()
            torch.cuda.synchronize()
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            print(json.dumps({"name": name, "failed": why}), flush=True)
            return START_AGAIN
        print(json.dumps({"name": name, **row}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
