#!/usr/bin/env python3
"""run.py [BIN_DIR] [--all] [--only=NAME,...] [--minutes=9] [--peers=NAME,...] [--rows=FILE] [--markdown=FILE]: times
fusec's kernels on this machine's GPU, next to the peak rates measured there and to the kernels of other libraries.

Ceilings are measured first, in this very run: a copy within the device, cuBLAS's largest product. Then, for each workload
at three shapes (--all: at all): fusec's time, what share of the ceiling it reaches (of the copy's bytes/s, or of the
product's flop/s for what multiplies), and the peers' times: PyTorch eager, cuDNN's attention, torch.compile
(max-autotune), Triton's own kernels where there are some. bench/gpu/worker.py measures, in a process that is started anew
after a failure or 60 seconds of silence; each row is written as it comes. What there was no time for is not in the table.

--compile-into=DIR compiles all workloads for --arch and measures nothing, --compiled=DIR measures what was compiled there;
--smoke-into=DIR writes the models of the first kernels, and what the reference device makes of random inputs;
--dry-run compiles into a folder of its own and loads all of it: no GPU and no PyTorch is needed. Needs nvcc, and PyTorch
to measure. Exit 1: something failed or is wrong; 77: nvcc is missing."""
import argparse
import concurrent.futures
import json
import math
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE]

from compiled_model import CompiledModel, compile_graph, nvcc, run  # noqa: E402
from watchdog import watch_cases  # noqa: E402
from workloads import smoke_workloads, workloads  # noqa: E402

PEERS = ("eager", "cudnn", "compile", "triton")
EMPTY = ('extern "C" __global__ void nothing() {}\nextern "C" cudaError_t launch(cudaStream_t stream) {\n'
         "  return cudaLaunchKernel(reinterpret_cast<const void*>(nothing), dim3(1), dim3(32), nullptr, 0, stream);\n}\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--small", action="store_true", help="shapes for the emulator")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--tuning-db", default="")
    parser.add_argument("--rows", default="", help="a file of JSON lines")
    parser.add_argument("--markdown", default="")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compile-into", default="")
    parser.add_argument("--compiled", default="")
    parser.add_argument("--smoke-into", default="")
    parser.add_argument("--dry-run", action="store_true")
    return parser.parse_args()


def chosen(options):
    only = tuple(filter(None, options.only.split(",")))
    return list(workloads(None, options.all, only, options.dtype, options.small))


def compile_into(options, folder):
    os.makedirs(folder, exist_ok=True)
    tuned = [f"--tuning-db={options.tuning_db}"] if options.tuning_db else []
    fusec = os.path.join(options.bin_dir, "fusec")
    with open(os.path.join(folder, "empty.cu"), "w", encoding="utf-8") as file:
        file.write(EMPTY)
    nvcc(options.arch, os.path.join(folder, "empty.cu"), os.path.join(folder, "empty.so"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda w: compile_graph(fusec, w.graph(), options.arch, folder, tuned), chosen(options)))


def smoke_into(options, folder):
    os.makedirs(folder, exist_ok=True)

    def write(workload):
        path = os.path.join(folder, workload.file_name())
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(workload.graph(), file)
        run([os.path.join(options.bin_dir, "fusec-run"), path + ".json", "--random", f"--outputs={path}.out.safetensors"])

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(write, smoke_workloads(options.small)))


def dry_run(options, folder):
    compile_into(options, folder)
    for workload in chosen(options):
        model = CompiledModel(folder, workload.file_name())
        for function in ("create", "workspace_bytes", "prepared_bytes", "prepare", "launch", "error", "destroy"):
            model.function(function)
        shapes = dict(workload.operands)
        if model.workspace_bytes(model.arguments(shapes, [16] * (len(shapes) + 1))) == 2**64 - 1:
            raise RuntimeError(f"{workload.title()}: the host part refuses the shapes that it was compiled for")
    print(f"{len(chosen(options))} workloads compiled")
    return 0


def figures_of(row):
    return {what: figure for what, figure, _ in row.get("figures", [])}


class Table:
    """Lines of markdown from the worker's rows, of which the ceilings come first."""

    HEADER = (f"| workload | launches | fusec us | of ceiling | {' | '.join(f'{peer} us' for peer in PEERS)} |  |\n"
              f"| --- | ---: | ---: | ---: | {'---: | ' * len(PEERS)}--- |")

    def __init__(self):
        self.ceilings, self.ratios, self.failures = {}, [], []

    def line(self, row):
        if "failed" in row:
            self.failures.append(f"{row['name']}: {row['failed']}")
        figures = figures_of(row)
        if "rate" in figures:
            self.ceilings[row["name"]] = figures["rate"]
        if "rate" in figures:
            return ""
        if "fusec" not in figures:
            return f"| {row['name']} | | | | {'| ' * len(PEERS)}{row.get('failed', row.get('skipped', ''))} |"
        least = max([figures["least bytes"] / self.ceilings.get("copy", math.inf),
                     figures["operations"] / self.ceilings.get("product", math.inf)])
        if "compile" in figures:
            self.ratios.append(figures["compile"] / figures["fusec"])
        peers = " | ".join(f"{figures[peer]:.1f}" if peer in figures else "-" for peer in PEERS)
        return (f"| {row['name']} | {figures['launches']} | {figures['fusec']:.1f} | {1e8 * least / figures['fusec']:.1f} % "
                f"| {peers} | {'WRONG' if 'failed' in row else ''} |")

    def ceilings_text(self):
        return (f"A copy moves {self.ceilings.get('copy', math.nan) / 1e12:.3f} TB/s, cuBLAS's product of 8192^3 makes "
                f"{self.ceilings.get('product', math.nan) / 1e12:.0f} Tflop/s.")

    def summary(self):
        if not self.ratios:
            return "torch.compile was not measured"
        mean = math.exp(sum(map(math.log, self.ratios)) / len(self.ratios))
        return (f"torch.compile takes {mean:.3f} times as long in the geometric mean of {len(self.ratios)}, "
                f"{min(self.ratios):.3f} at worst")


def worker_command(compiled, *options):
    return [sys.executable, os.path.join(HERE, "worker.py"), f"--compiled={compiled}", *options]


def measure(options, compiled):
    table, lines = Table(), [Table.HEADER]
    print(Table.HEADER)

    def on_row(row):
        if options.rows:
            with open(options.rows, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        line = table.line(row)
        if line:
            lines.append(line)
            print(line, flush=True)

    command = worker_command(compiled, f"--only={options.only}", f"--dtype={options.dtype}", f"--peers={options.peers}")
    command += ["--all"] * options.all + ["--small"] * options.small
    watch_cases(command, 60, time.monotonic() + 60 * options.minutes, on_row)
    lines += ["", table.ceilings_text(), table.summary()]
    print("\n".join(lines[-3:]))
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    for failure in table.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if table.failures else 0


def native_arch():
    import torch
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def main():
    options = parse()
    if options.smoke_into:
        return smoke_into(options, options.smoke_into)
    if options.compiled:
        return measure(options, options.compiled)
    if not shutil.which("nvcc"):
        print("bench/gpu: no nvcc in PATH")
        return 77
    if options.compile_into:
        return compile_into(options, options.compile_into)
    with tempfile.TemporaryDirectory() as folder:
        if options.dry_run:
            return dry_run(options, folder)
        options.arch = native_arch()
        compile_into(options, folder)
        return measure(options, folder)


if __name__ == "__main__":
    sys.exit(main())
