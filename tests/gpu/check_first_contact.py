#!/usr/bin/env python3
"""check_first_contact.py pack|contact|table BIN_DIR STAND_IN_CUDA PACKAGE [PYTHON]: bench/gpu/first_contact.sh, rehearsed
without a GPU. A library in place of the CUDA driver (STAND_IN_CUDA) runs the kernels on the emulator. Scripts take the
place of nvcc, the profiler and the sanitizer, and PyTorch's CUDA device is a module over that library.

pack     makes the package with pack.sh
contact  every step that needs no PyTorch: all is green; numbers that are wrong, kernels that do nothing, fail or
         hang are found and named, by the step that meets them; it ends when its seconds are over
table    the steps that need PyTorch (77 where it is missing), all green; then a wrong number and an empty kernel"""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

from watchdog import watch  # noqa: E402

COUNTED = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","gpu__time_duration.sum","ns","1,024"\n'
TOOLS = {"nvcc": f'[ $# -gt 1 ] || exit 0; exec "{sys.executable}" "{HERE}/stand_in_nvcc.py" "$@"',
         "nvidia-smi": "echo stand-in", "ncu": f"[ $# -gt 1 ] || exit 0; shift 5; \"$@\" && echo '{COUNTED}==PROF== end'",
         "compute-sanitizer": '[ $# -gt 1 ] || exit 0; shift 2; exec "$@"'}
STEPS = ("machine", "smoke", "emulator", "models", "counters", "sanitizer")


class Rehearsal:
    def __init__(self, bin_dir, driver, package, python):
        self.bin_dir, self.package, self.failures = os.path.abspath(bin_dir), os.path.abspath(package), []
        self.folder = tempfile.TemporaryDirectory(prefix="first_contact_")
        tools = os.path.join(self.folder.name, "tools")
        os.mkdir(tools)
        for name, text in {**TOOLS, "python3": f'exec "{python}" "$@"'}.items():
            path = os.path.join(tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(path, 0o755)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "STAND_IN_CAPABILITY": "90",
                            "FUSEC_CUDA_DRIVER": os.path.abspath(driver), "FUSEC": os.path.join(self.bin_dir, "fusec"),
                            "PYTHONPATH": os.path.join(HERE, "stand_in_torch")}
        # The package is elsewhere than the NVRTC that the programs find beside their folder.
        for library in ("libnvrtc.so.13", "libnvrtc.so.12"):
            path = os.path.join(ROOT, ".deps", "nvrtc", "lib", library)
            if os.path.exists(path):
                self.environment.setdefault("FUSEC_NVRTC", path)

    def pack(self):
        script = os.path.join(ROOT, "bench", "gpu", "pack.sh")
        command = [script, f"--bin={self.bin_dir}", f"--out={self.package}", "--small"]
        return subprocess.run(command, check=False, env=self.environment).returncode

    def run(self, steps, plant="", silence=20, seconds=100, workloads=""):
        """(exit status, rows, output, seconds)"""
        began, out = time.monotonic(), os.path.join(self.folder.name, "out")
        command = [os.path.join(self.package, "bench", "gpu", "first_contact.sh"), "--small", f"--out={out}",
                   f"--only={','.join(steps)}", f"--seconds={seconds}", f"--silence={silence}",
                   f"--workloads={workloads}"]
        done = subprocess.run(command, env={**self.environment, "STAND_IN_PLANT": plant}, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(os.path.join(out, "rows.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return done.returncode, rows, done.stdout, time.monotonic() - began

    def create_on(self, capability):
        """The error of M_create of a model of sm_90a."""
        code = ("import sys; sys.path.insert(0, 'bench/gpu')\n"
                "from compiled_model import CompiledModel\n"
                "from workloads import workloads\n"
                "workload = next(workloads(only=['attention_causal'], small=True))\n"
                "CompiledModel('compiled', workload.file_name()).create()\n")
        return subprocess.run([sys.executable, "-c", code], cwd=self.package, text=True, check=False, stderr=subprocess.PIPE,
                              env={**self.environment, "STAND_IN_CAPABILITY": capability}).stderr

    def expect(self, good, what, output):
        if not good:
            self.failures.append(f"{what}\n{output}")

    def all_green(self, steps, **options):
        status, rows, output, _ = self.run(steps, **options)
        self.expect(status == 0 and not any("failed" in row for row in rows), "a step fails", output)
        for step in steps:
            figures = [row for row in rows if row["step"] == step and "figure" in row and row["name"] != "the step"]
            self.expect(figures, f"{step} measures nothing", output)

    def finds(self, plant, step, case, reason, alone=False, **options):
        """The step names the case that meets what was planted, and goes on to others; `alone`: no other case fails."""
        status, rows, output, _ = self.run([step], plant, **options)
        failed = [row for row in rows if "failed" in row]
        named = [row for row in failed if case in row["name"] and reason in row["failed"]]
        others = [row for row in rows if "figure" in row and row["name"] not in (case, "the step")]
        self.expect(status == 1 and named and others and f"- failed: {step}: {named[0]['name']}" in output and
                    (not alone or len(failed) == 1), f"{plant} is not found by {step}", output)

    def finish(self):
        print("\n".join(self.failures) if self.failures else "all good")
        return 1 if self.failures else 0


def contact(rehearsal):
    began = time.monotonic()
    ended = watch(["bash", "-c", "sleep 30 & echo said"], 20, began + 20)
    rehearsal.expect(ended.status == 0 and time.monotonic() < began + 10, "the watchdog waits for a process left behind", "")
    rehearsal.all_green(STEPS)
    two = "swiglu,linear_bias_gelu"
    rehearsal.finds("wrong=silu", "smoke", "swiglu", "differ", alone=True, workloads=two)
    rehearsal.finds("empty=linear", "smoke", "linear", "nan", alone=True, workloads=two)
    rehearsal.finds("hang=silu", "smoke", "swiglu", "of silence", silence=6, workloads=two)
    rehearsal.finds("wrong=k@2", "emulator", "wgmma", "wrong")
    rehearsal.finds("fail=k@3", "emulator", "wgmma", "error 719")
    rehearsal.finds("hang=k@3", "emulator", "wgmma", "of silence", silence=2)
    rehearsal.expect("CUDA error 209" in rehearsal.create_on("80"), "a library of sm_90a is created on another device", "")
    rehearsal.expect(rehearsal.create_on("90") == "", "a library of sm_90a is not created on its device", "")
    status, rows, output, took = rehearsal.run(STEPS, "hang=", seconds=3)
    rehearsal.expect(took < 8 and any("no time left" in row.get("skipped", "") for row in rows), "the end is late", output)


def table(rehearsal):
    rehearsal.all_green(["table"])
    rehearsal.all_green(["compilers"], workloads="softmax")
    rehearsal.finds("wrong=silu", "table", "swiglu", "of a row's norm", alone=True, workloads="swiglu,gelu")
    rehearsal.finds("empty=softmax", "table", "softmax", "an error of inf", alone=True, workloads="softmax,gelu")


def main():
    mode, bin_dir, driver, package = sys.argv[1:5]
    python = sys.argv[5] if len(sys.argv) > 5 else sys.executable
    rehearsal = Rehearsal(bin_dir, driver, package, python)
    if mode == "pack":
        return rehearsal.pack()
    if mode == "table" and subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        print("skipped: the steps that need PyTorch: no PyTorch here")
        return 77
    {"contact": contact, "table": table}[mode](rehearsal)
    return rehearsal.finish()


if __name__ == "__main__":
    sys.exit(main())
