"""Runs a case for a target: compiles the model, executes it on the emulator, and gives its figures and texts, each made
when it is first asked for."""
import functools
import json
import os
import re
import sys
import tempfile

from kernels.figures import FIGURES
import emulated_run
import sass
import tensors
from check_compile_time import least_ms
from nvrtc_time import NvrtcTime

TOGETHER = ("cu", "manifest", "partition")  # emitted by one command, without NVRTC


class Wrong(Exception):
    """A program that fails."""


class Programs:
    def __init__(self, fusec, fusec_run, with_times=True):
        self.fusec, self.fusec_run = os.path.abspath(fusec), os.path.abspath(fusec_run)
        self.with_times = with_times  # NVRTC's time is measured, which takes several compilations

    @functools.cached_property
    def manifest_schema(self):
        path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "schemas", "manifest.schema.json")
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    @functools.cached_property
    def yardstick(self):
        self.scratch = tempfile.TemporaryDirectory()
        try:
            return NvrtcTime(self.fusec, self.scratch.name)
        except LookupError as missing:
            print(f"skipped: {missing}")
            sys.exit(77)


class Run:
    def __init__(self, programs, case, target, folder):
        self.programs, self.case, self.target, self.folder = programs, case, target, folder
        self.figures, self.texts = {}, {}
        os.makedirs(folder, exist_ok=True)
        self.path = self.written("model.json", case.model)
        self.target_options = ["--arch=" + target]
        if case.chip:
            chip = self.written("chip.json", {"fusec_target": 1, "arch": target, **case.chip})
            self.target_options.append("--target=" + chip)
        for name, document in case.files.items():
            self.written(name, document)
        self.options = [*self.target_options, *(o.format(folder=folder) for o in case.options)]

    def file(self, name):
        return os.path.join(self.folder, name)

    def written(self, name, document):
        with open(self.file(name), "w", encoding="utf-8") as f:
            json.dump(document, f)
        return self.file(name)

    def __getitem__(self, figure):
        """A figure by its name, or by a function of the run."""
        if figure not in self.figures:
            self.figures[figure] = (FIGURES[figure] if isinstance(figure, str) else figure)(self)
        return self.figures[figure]

    def finished(self, command):
        done = emulated_run.finished(command)
        if done.returncode != 0:
            raise Wrong(f"exit status {done.returncode}:\n{done.stderr[-2000:]}{done.stdout[-500:]}")
        return done.stdout

    @functools.cached_property
    def kernels(self):
        """The emulator's profile of each launch."""
        case, given = self.case, self.case.inputs
        given = given() if callable(given) else given
        if isinstance(given, dict):
            tensors.write(self.file("in.safetensors"), given)
            given = "--inputs=" + self.file("in.safetensors")
        how = [f"--sample-blocks={case.blocks}"] if case.blocks else [case.verify] if case.verify else []
        how += ["--outputs=" + self.file("out.safetensors")] if case.reads_outputs else []
        how += [f"--symbol={name}={size}" for name, size in case.sizes.items()]
        command = [self.programs.fusec_run, self.path, given, "--device=emulator", "--json",
                   "--profile=" + self.file("profile.json"), *how, *self.options, *case.run_options]
        try:
            self.finished(command)
        except Wrong as wrong:
            if not case.or_rounded(str(wrong)):
                raise
            self.finished([*command, "--round-intermediates"])
        with open(self.file("profile.json"), encoding="utf-8") as f:
            return json.load(f)["kernels"]

    @functools.cached_property
    def outputs(self):
        self.kernels
        return tensors.read(self.file("out.safetensors"))

    @property
    def blocks(self):
        """The blocks of the last kernel, of which a sample was executed."""
        return self.kernels[-1]["sample"]["of"]

    @property
    def share(self):
        """The part of these blocks that was executed."""
        sample = self.kernels[-1].get("sample")
        return sample["blocks"] / sample["of"] if sample else 1

    def text(self, kind):
        """What fusec emits: cu, ptx, manifest, partition, report; or sass, the machine code, None without nvdisasm."""
        if kind in self.texts:
            return self.texts[kind]
        if kind == "sass":
            known = sass.disassembler()
            self.texts[kind] = sass.code(self.programs.fusec, self.path, self.options, self.folder) if known else None
            return self.texts[kind]
        kinds = TOGETHER if kind in TOGETHER else (kind,)
        self.finished([self.programs.fusec, self.path, *self.options, *(f"--emit={k}={self.file('m.' + k)}" for k in kinds),
                       "-o", self.file("m.out.cu"), *([] if kind == "ptx" else ["--no-nvrtc"])])
        for each in kinds:
            with open(self.file("m." + each), encoding="utf-8") as f:
                self.texts[each] = f.read()
        return self.texts[kind]

    def json(self, kind):
        return json.loads(self.text(kind))

    @functools.cached_property
    def sass(self):
        """The operations of the machine code; None without nvdisasm."""
        text = self.text("sass")
        return None if text is None else sass.operations(text)

    @functools.cached_property
    def beside(self):
        return Run(self.programs, self.case.beside, self.target, self.file("beside"))

    def nvrtc_time(self):
        if not self.programs.with_times:
            return None
        options = [o for o in self.options if not o.startswith("--arch=")]
        took, limit = self.programs.yardstick.slowest(self.path, self.target, options)
        return took / limit

    def compile_ms(self):
        return least_ms(self.programs.fusec, self.path, self.folder, 3)


def faults_of(run, recorded):
    """What is beyond the budget. `recorded`: figure -> value of the same case before, for case.recorded."""
    case, faults = run.case, []
    if case.executed:
        run.kernels  # fails where the results are wrong
    for figure, bound, holds in case.budget():
        found = run[figure]
        bound = bound(run) if callable(bound) else bound
        if found is not None and bound is not None and not holds(found, bound):
            faults.append(f"{figure if isinstance(figure, str) else figure.__name__}: {shown(found)}, allowed {shown(bound)}")
    if "beside" in vars(run) and "kernels" in vars(run.beside) and run.beside["findings"]:
        faults.append("findings in the case beside it")
    for kind, pattern, wanted in case.texts:
        text = run.text(kind)
        if text is not None and bool(re.search(pattern, text)) != wanted:
            faults.append(f"{'no' if wanted else 'there is'} {pattern} in the {kind}")
    for figure, ratio in case.recorded.items():
        if figure not in recorded:
            faults.append(f"{figure}: not in recorded.json, which --update writes")
        elif run[figure] > ratio * recorded[figure]:
            faults.append(f"{figure}: {shown(run[figure])}, {shown(recorded[figure])} before")
    return faults + list(case.also(run) if case.also else [])


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
