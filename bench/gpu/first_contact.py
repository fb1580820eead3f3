"""What first_contact.sh does: the steps of STEPS, each for at most so many seconds, in the order of their value.

Rows are lines of JSON: {"step", "name", "what", "figure", "unit"}, or {"step", "name", "failed"} or {..., "skipped"} with the
reason. What is wrong, hangs or breaks is failed; what this machine lacks, or what there was no time for, is skipped."""
import argparse
import concurrent.futures
import csv
import dataclasses
import glob
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE]

from run import Table, worker_command  # noqa: E402
from watchdog import watch, watch_cases  # noqa: E402
from workloads import smoke_workloads, workloads  # noqa: E402

COUNTERS = {"gpu__time_duration.sum": "time", "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory throughput",
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessor throughput",
            "dram__bytes_read.sum": "bytes read", "dram__bytes_write.sum": "bytes written",
            "l1tex__data_bank_conflicts_pipe_lsu.sum": "bank conflicts", "launch__registers_per_thread": "registers"}


class Contact:
    def __init__(self, options):
        self.options, self.step, self.lock = options, None, threading.Lock()
        self.began = time.monotonic()
        self.deadline = self.began + options.seconds
        self.rows, self.table, self.lines = [], Table(), []
        self.scratch = tempfile.mkdtemp(prefix="first_contact_")
        os.makedirs(options.out, exist_ok=True)
        open(os.path.join(options.out, "rows.jsonl"), "w", encoding="utf-8").close()

    def add(self, name, **values):
        row = {"step": self.step.name, "name": name, **values, "at": round(time.monotonic() - self.began, 1)}
        with self.lock, open(os.path.join(self.options.out, "rows.jsonl"), "a", encoding="utf-8") as file:
            self.rows.append(row)
            file.write(json.dumps(row) + "\n")
        if "figure" not in row:
            print(f"{row['at']:6.1f} s  {row['step']}: {name}: {'FAILED' if 'failed' in row else 'skipped'}: "
                  f"{values.get('failed', values.get('skipped'))}", flush=True)

    def add_ended(self, name, ended):
        """A command that did not end well."""
        self.add(name, **{"failed" if ended.in_time else "skipped": ended.reason()})

    def add_case(self, row):
        """A row of watch_cases."""
        for what, figure, unit in row.get("figures", []):
            self.add(row["name"], what=what, figure=figure, unit=unit)
        for reason in ("failed", "skipped"):
            if row.get(reason):
                self.add(row["name"], **{reason: row[reason]})

    def program(self, name):
        return os.path.join(PACKAGE, "bin", name)

    def end(self):
        return min(self.deadline, self.step_began + self.step.seconds)

    def run(self, step):
        self.step, self.step_began = step, time.monotonic()
        if time.monotonic() >= self.deadline:
            return self.add("all of it", skipped="no time left")
        try:
            step.function(self)
        except Exception as error:
            self.add("the step", failed=f"{type(error).__name__}: {error}")
        self.add("the step", what="time", figure=round(time.monotonic() - self.step_began, 1), unit="s")

    def run_model(self, name, model, *options, before=(), patience=1):
        """One model through the driver; a row with the time that it took, all told."""
        began, lines = time.monotonic(), []
        command = [*before, self.program("fusec-run"), model, "--device=cuda", "--no-cache", *options]
        ended = watch(command, patience * self.options.silence, self.end(), lines.append)
        if ended.status == 0:
            self.add(name, what="ran", figure=round(time.monotonic() - began, 2), unit="s")
        else:
            self.add_ended(name, ended)
        return lines

    def graph_file(self, workload):
        path = os.path.join(self.scratch, workload.file_name() + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(workload.graph(), file)
        return path

    def models(self):
        """(name, model, options) of tests/corpus/models that have PyTorch's outputs."""
        with open(os.path.join(PACKAGE, "models", "index.json"), encoding="utf-8") as file:
            index = json.load(file)
        cases = [(entry, case) for entry in index if not entry.get("partition_only")
                 for case in [entry["files"], *entry.get("cases", [])]]
        for entry, case in cases[::30 if self.options.small else 1]:
            paths = {key: os.path.join(PACKAGE, "models", name) for key, name in {**entry["files"], **case}.items()}
            yield case["in"].partition(".in.")[0], paths["tiny"], [f"--inputs={paths['in']}", f"--expect={paths['out']}",
                                                                   "--verify"]


def machine(contact):
    """What the machine has."""
    asked = {"GPU": ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,memory.total,power.draw",
                     "--format=csv,noheader"],
             "nvcc": ["nvcc", "--version"],
             "Python": [sys.executable, "-c", "import torch, triton; print(torch.__version__, triton.__version__)"],
             "ncu": ["ncu", "--version"], "compute-sanitizer": ["compute-sanitizer", "--version"],
             "fusec": [contact.program("fusec"), "doctor"]}
    asked.update({f"libraries of {name}": ["ldd", contact.program(name)] for name in os.listdir(contact.program(""))})

    def ask(name, command):
        lines = []
        if not shutil.which(command[0]):
            return contact.add(name, skipped=f"no {command[0]} in PATH")
        ended = watch(command, contact.options.silence, contact.end(), lines.append)
        missing = [line.strip() for line in lines if "not found" in line and command[0] == "ldd"]
        if missing:
            contact.add(name, failed="; ".join(missing))
        elif ended.status != 0 and name in ("Python", "nvcc"):
            contact.add(name, skipped=ended.reason())
        elif ended.status != 0:
            contact.add_ended(name, ended)
        else:
            contact.add(name, what="says", figure="; ".join(filter(None, lines))[:1000], unit="")
        return None

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, *zip(*asked.items())))


def smoke(contact):
    """The first kernels: outputs are NaN before they run, and are compared with the reference's, made by pack.sh."""
    for workload in smoke_workloads(contact.options.small):
        if not contact.options.workloads or workload.name in contact.options.workloads.split(","):
            path = os.path.join(PACKAGE, "smoke", workload.file_name())
            contact.run_model(workload.title(), path + ".json", "--random", f"--expect={path}.out.safetensors")


def emulator(contact):
    """Single instructions on the chip and on the emulator, random operands; wgmma first."""

    def on_row(row):
        if row.get("wrong"):
            row["failed"] = f"{row['wrong']} of {row['results']} wrong; {row['first']}"
        elif "worst" in row:
            row["figures"] = [["largest error", row["worst"], "of its bound"]]
        contact.add_case(row)

    chosen = ["--rounds=1", "--only=m64n8k"] if contact.options.small else ["--rounds=2"]
    watch_cases([contact.program("compare_gpu"), "--rows", *chosen], contact.options.silence, contact.end(), on_row)


def models(contact):
    """Networks through the driver, beside PyTorch's outputs and the reference, four at a time."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda case: contact.run_model(case[0], case[1], *case[2]), contact.models()))


def measure(contact, peers, *more, patience=1):
    contact.lines += ["", Table.HEADER]

    def on_row(row):
        contact.add_case(row)
        contact.lines += filter(None, [contact.table.line(row)])

    given = [f"--only={contact.options.workloads}", *["--small"] * contact.options.small, *more]
    command = worker_command(os.path.join(PACKAGE, "compiled"), f"--peers={peers}", *given)
    watch_cases(command, patience * contact.options.silence, contact.end(), on_row)


def table(contact):
    """The ceilings; each workload of bench/gpu, products and attention first, beside eager PyTorch and cuDNN."""
    measure(contact, "eager,cudnn")


def counters(contact):
    """Hardware counters of five kernels."""
    if not shutil.which("ncu"):
        return contact.add("ncu", skipped="no ncu in PATH")
    ncu = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(COUNTERS)]
    for name in ("linear_bias_gelu", "attention_causal", "swiglu", "softmax", "transpose"):
        workload = next(workloads(None, only=(name,), small=contact.options.small))
        lines = contact.run_model(workload.title(), contact.graph_file(workload), "--random", before=ncu, patience=2)
        header = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
        for row in csv.DictReader(lines[header:]):
            if row["Metric Name"] in COUNTERS:
                contact.add(f"{workload.title()} {row['Kernel Name']}", what=COUNTERS[row["Metric Name"]],
                            figure=row["Metric Value"], unit=row["Metric Unit"])


def sanitizer(contact):
    """Small models under compute-sanitizer: accesses out of bounds, and races in shared memory."""
    if not shutil.which("compute-sanitizer"):
        return contact.add("compute-sanitizer", skipped="no compute-sanitizer in PATH")
    cases = list(contact.models())
    for number, (name, model, options) in enumerate(cases[::max(1, len(cases) // 10)][:10]):
        tool = "racecheck" if number % 2 else "memcheck"
        contact.run_model(f"{tool} {name}", model, *options, patience=3,
                          before=["compute-sanitizer", f"--tool={tool}", "--error-exitcode=9"])


def compilers(contact):
    """The same workloads beside torch.compile and Triton, in what time is left."""
    measure(contact, "compile,triton", "--no-ceilings", patience=3)


@dataclasses.dataclass
class Step:
    name: str
    seconds: float  # at most
    function: typing.Callable


STEPS = [Step("machine", 20, machine), Step("smoke", 30, smoke), Step("emulator", 40, emulator), Step("models", 90, models),
         Step("table", 130, table), Step("counters", 60, counters), Step("sanitizer", 60, sanitizer),
         Step("compilers", 600, compilers)]


def summary(contact, failures):
    lines = ["# First contact", "", "| step | figures | failed | skipped | time |", "| --- | ---: | ---: | ---: | ---: |"]
    for step in STEPS:
        rows = [row for row in contact.rows if row["step"] == step.name]
        if not rows:
            continue
        counts = [sum(kind in row for row in rows) for kind in ("figure", "failed", "skipped")]
        took = next((row["figure"] for row in rows if row["name"] == "the step" and "figure" in row), 0)
        lines.append(f"| {step.name} | {' | '.join(map(str, counts))} | {took} s |")
    lines += ["", *(f"- failed: {failure}" for failure in failures)]
    if contact.lines:
        lines += ["", *contact.lines, "", contact.table.ceilings_text(), contact.table.summary() + "."]
    return "\n".join(lines) + "\n"


def set_nvrtc():
    """Where there is no toolkit, NVRTC is the one of PyTorch's wheels."""
    wheels = sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib", "libnvrtc.so.1[23]")))
    if wheels and not glob.glob("/usr/local/cuda/**/libnvrtc.so.1[23]", recursive=True):
        os.environ.setdefault("FUSEC_NVRTC", wheels[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--out", default="contact")
    parser.add_argument("--silence", type=float, default=20, help="seconds after which a silent program is killed")
    parser.add_argument("--only", default="", help=", ".join(step.name for step in STEPS))
    parser.add_argument("--workloads", default="", help="NAME,...: of the steps smoke, table and compilers")
    parser.add_argument("--small", action="store_true", help="little of each step, for the emulator")
    options = parser.parse_args()
    set_nvrtc()
    contact = Contact(options)
    for step in STEPS:
        if not options.only or step.name in options.only.split(","):
            contact.run(step)
    shutil.rmtree(contact.scratch, ignore_errors=True)
    failures = [f"{row['step']}: {row['name']}: {row['failed']}" for row in contact.rows if "failed" in row]
    text = summary(contact, failures)
    with open(os.path.join(options.out, "summary.md"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
