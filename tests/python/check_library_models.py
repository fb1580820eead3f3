#!/usr/bin/env python3
"""check_library_models.py [--sample] [--names=A,B] [--dtype=float32|bfloat16] [--way=backend|from_torch] [--reference]
[--report=FILE [--resume]] [--known=FILE] [--seconds=N] [--document=FILE] [--save=FOLDER]: models of transformers,
torchvision, timm and diffusers (library_models/) against eager PyTorch.

Each model runs in a process of its own, for at most LIMIT seconds of computing, in two ways: torch.compile(model,
backend="fusec"), and fusec.compile(fusec.from_torch(model, ...)). Compared are the results, and what the model holds
afterwards (see `difference`).

--sample: the models of SAMPLE, which take some two minutes of one core. --names: models by name or pattern (llama*), in
the order given. --report: a JSON file of the results, in which what is not checked this time keeps its result.
--resume: check only what has no good result there. --known: such a file; a model that fails there, too, is no failure.
--way: one of the two ways. --reference: run on the reference in place of the emulator, without NVRTC, to find missing
operators soon. --seconds: begin no model later. --document: check nothing, and write docs/models.md from the report.
--save: check nothing, and write each model's file as fusec.from_torch imports it, for bench/compile_time.py --models.

Prints a line a model. Exit 0 when all are equal, 77 (skipped) where PyTorch or a library is missing."""

import argparse
import contextlib
import copy
import fnmatch
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings

try:
    import torch
    from library_models import diffusers_models, timm_models, torchvision_models, transformers_models
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import fusec
from fusec._torch.backend import backend, recorded
from fusec._torch.partition import UNSAFE_VIEWS
from fusec._torch.region import Region
from library_models.report import left_to_eager, markdown

LIMIT = 240  # seconds of computing time a model
PATIENCE = 4 * LIMIT  # seconds, on a machine with other work
# Of the largest magnitude in a result. A number of bfloat16 is a multiple of 2**-8 of its power of two.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2**-8}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SAMPLE = [
    ("llama", "float32"),
    ("llama_decode", "bfloat16"),
    ("gpt2", "float32"),
    ("mistral", "float32"),
    ("phi3", "float32"),
    ("opt", "float32"),
    ("bert", "float32"),
    ("modernbert", "float32"),
    ("vit", "float32"),
    ("dinov2", "float32"),
    ("convnext", "float32"),
    ("roberta", "float32"),
]
LIBRARIES = {
    "transformers": transformers_models,
    "torchvision": torchvision_models,
    "timm": timm_models,
    "diffusers": diffusers_models,
}


def all_models():
    return {name: (library, make) for library, table in LIBRARIES.items() for name, make in table.MODELS.items()}


class Calls(TorchDispatchMode):
    """Counts the operators that eager runs, apart from views and from allocations without a value."""

    def __init__(self):
        super().__init__()
        self.counted, self.names = False, []

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, overload, types, args=(), kwargs=None):
        schema = overload._schema
        aliases = any(r.alias_info is not None for r in schema.returns)
        view = overload in UNSAFE_VIEWS or (aliases and not schema.is_mutable)
        if self.counted and not view and "empty" not in schema.name and overload.namespace != "prim":
            self.names.append(str(overload))
        return overload(*args, **(kwargs or {}))

    def __enter__(self):
        self.counted = True
        return super().__enter__()

    def __exit__(self, *error):
        self.counted = False
        return super().__exit__(*error)


@contextlib.contextmanager
def regions_replayed(calls):
    """While `calls` counts, each region returns what it returned before: the emulator is slow, and is not counted."""
    forward, kept = Region.forward, []

    def replayed(region, *args):
        if not calls.counted:
            kept.append((region, forward(region, *args)))
            return kept[-1][1]
        calls.counted = False
        try:
            place = next((i for i, (other, _) in enumerate(kept) if other is region), None)
            return forward(region, *args) if place is None else kept.pop(place)[1]
        finally:
            calls.counted = True

    Region.forward = replayed
    try:
        yield
    finally:
        Region.forward = forward


def in_dtype(made, dtype):
    module, args, kwargs = made

    def cast(leaf):
        return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.dtype in DTYPES.values() else leaf

    return module.to(dtype), *pytree.tree_map(cast, (args, kwargs))


def leaves(*trees):
    """The tensors of results: those of a library's classes of results too."""
    found = []
    for leaf in pytree.tree_leaves(trees):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif hasattr(leaf, "__dict__") and not callable(leaf):
            found += leaves(list(vars(leaf).values()))
    return found


def difference(got, want, exact, dtype):
    """The largest error, as a part of what is allowed: at most 1 is good. Raises ValueError for unlike tensors.

    exact: what float32 gives with the same weights; want itself for a float32 model. A tensor t of `got` may be this
    far from it:  max |t - exact| <= 2 max |want - exact| + TOLERANCE max |exact|"""
    if len(got) != len(want):
        raise ValueError(f"{len(got)} tensors in place of {len(want)}")
    worst = 0.0
    for i, (mine, theirs, true) in enumerate(zip(got, want, exact, strict=True)):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            kinds = [f"{t.dtype} {tuple(t.shape)}" for t in (mine, theirs)]
            raise ValueError(f"tensor {i}: {kinds[0]} in place of {kinds[1]}")
        if not theirs.is_floating_point():
            if not torch.equal(mine, theirs):
                raise ValueError(f"tensor {i} of {theirs.dtype} differs")
            continue
        mine, theirs, true = mine.double(), theirs.double(), true.double()
        usual = torch.isfinite(theirs)
        if not torch.equal(torch.nan_to_num(mine[~usual]), torch.nan_to_num(theirs[~usual])):
            raise ValueError(f"tensor {i}: infinities or NaNs differ")
        usual &= torch.isfinite(true)
        if usual.any():
            error, eager_error = ((t - true)[usual].abs().max().item() for t in (mine, theirs))
            allowed = 2 * eager_error + TOLERANCE[dtype] * (true[usual].abs().max().item() + 1e-3)
            worst = max(worst, error / allowed if error == error else float("inf"))
    return round(worst, 4)


def state(module):
    return dict(module.state_dict()) | dict(module.named_buffers())


def check_backend(make, dtype, settings, row):
    module, args, kwargs = in_dtype(make(), dtype)
    began = time.time()
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=lambda graph, inputs: backend(graph, inputs, options=settings))
    calls = Calls()
    with regions_replayed(calls):
        with recorded() as graphs:
            got = compiled(*args, **kwargs)
        row["backend_seconds"] = round(time.time() - began, 1)
        got_state = copy.deepcopy(state(module))
        with calls:
            compiled(*args, **kwargs)
    row["eager_calls_left"] = calls.names
    row["graphs"] = len(graphs)
    row["launches"] = sum(g.launches for g in graphs)
    row["regions"] = sum(len(g.regions) for g in graphs)
    row["left_to_eager"] = [f"{n.operator}: {n.reason}" for g in graphs for n in g.eager]
    return leaves(got, got_state)


def check_from_torch(make, dtype, settings, row):
    module, args, kwargs = in_dtype(make(), dtype)
    began = time.time()
    imported = fusec.from_torch(module, args, kwargs)
    row["import_seconds"] = round(time.time() - began, 1)
    compiled = fusec.compile(imported, **settings)
    got = compiled(*args, **kwargs)
    row["from_torch_seconds"] = round(time.time() - began, 1)
    row["from_torch_launches"] = sum(int(g["launches"]) for g in compiled.partition["groups"])
    return leaves(got, state(module))


WAYS = {"backend": check_backend, "from_torch": check_from_torch}


def eager(made, calls):
    module, args, kwargs = made
    with calls:
        results = module(*args, **kwargs)
    return copy.deepcopy(leaves(results, state(module)))


def check(make, dtype, ways, settings):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    row, calls = {}, Calls()
    with torch.no_grad():
        want = exact = eager(in_dtype(make(), dtype), calls)
        row["eager_calls"] = len(calls.names)
        if dtype != torch.float32:
            exact = eager(in_dtype(in_dtype(make(), dtype), torch.float32), Calls())
        for way in ways:
            try:
                got = WAYS[way](make, dtype, settings, row)
                row[way + "_difference"] = difference(got, want, exact, dtype)
            except Exception as error:  # whatever a library or the compiler raises is a result of the check
                row[way + "_failed"] = f"{type(error).__name__}: {error}"[:2000]
                row[way + "_traceback"] = traceback.format_exc()[-3000:]
    return row


def save(make, dtype, path):
    module, args, kwargs = in_dtype(make(), dtype)
    with torch.no_grad():
        fusec.from_torch(module, args, kwargs).save(path)
    return {}


def warm_up():
    """Loads what PyTorch loads at the first compilation, so that the processes that are forked have it."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    with torch.no_grad():
        x, module = torch.ones(2, 2), torch.nn.Linear(2, 2)
        torch.compile(module, backend=lambda graph, inputs: backend(graph, inputs, options={"no_nvrtc": True}))(x)
        fusec.from_torch(module, (x,))


def in_a_process(work, *what):
    reader, writer = os.pipe()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = used.ru_utime + used.ru_stime
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        try:
            row = work(*what)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"[:2000]
            row = {"eager_failed": text, "eager_traceback": traceback.format_exc()[-3000:]}
        with os.fdopen(writer, "w") as f:
            json.dump(row, f)
        os._exit(0)
    os.close(writer)
    began = time.time()
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(PATIENCE)
    with os.fdopen(reader) as f:
        text = f.read()
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    try:
        row = json.loads(text)
    except ValueError:
        number = status & 127
        slow = number in (signal.SIGXCPU, signal.SIGKILL)
        text = f"stopped: too slow ({time.time() - began:.0f} seconds)" if slow else f"ended by signal {number}"
        row = {"eager_failed": text}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = used.ru_utime + used.ru_stime - before
    return {**row, "seconds": round(time.time() - began, 1), "computing_seconds": round(spent, 1)}


def failures(row):
    found = [f"{way}: {row[way + '_failed']}" for way in ("eager", "backend", "from_torch") if way + "_failed" in row]
    for way in ("backend", "from_torch"):
        if row.get(way + "_difference", 0) > 1:
            found.append(f"{way}: differs by {row[way + '_difference']} times what is allowed")
    return found


def is_good(row, way):
    return row.get(way + "_difference", float("inf")) <= 1


def chosen(options):
    """(name, dtype) of the models to check: all of a dtype, then all of the next."""
    names, dtypes = list(all_models()), [options.dtype] if options.dtype else list(DTYPES)
    if options.sample:
        return SAMPLE
    if options.names:
        names = list(dict.fromkeys(n for p in options.names.split(",") for n in fnmatch.filter(names, p)))
    pairs = [(name, dtype) for dtype in dtypes for name in names]
    return [(n, d) for n, d in pairs if d == "float32" or n not in transformers_models.ROUTED]


def printed(key, row):
    wrong = failures(row)
    print(
        f"{'FAILED' if wrong else 'good  '} {key}: {row.get('launches')} launches, {row.get('graphs')} graphs, "
        f"{left_to_eager(row)} operators left to eager, {row.get('eager_calls')} calls of eager, {row['seconds']} s",
        *(w[:300].replace("\n", " ") for w in wrong),
        sep="\n    ",
        flush=True,
    )
    for left in sorted(set(row.get("left_to_eager", []))):
        print(f"    left to eager: {left[:200]}", flush=True)


def write_report(path, report):
    """Whole, or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1)
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--names")
    parser.add_argument("--dtype", choices=DTYPES)
    parser.add_argument("--report")
    parser.add_argument("--known")
    parser.add_argument("--document")
    parser.add_argument("--save")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--seconds", type=int, default=10**9)
    options = parser.parse_args()
    ways = [options.way] if options.way else list(WAYS)
    settings = {"no_nvrtc": True} if options.reference else {}
    report, known = {}, {}
    if options.known:
        with open(options.known, encoding="utf-8") as f:
            known = json.load(f)
    if options.report and os.path.exists(options.report):
        with open(options.report, encoding="utf-8") as f:
            report = json.load(f)
    if options.document:
        with open(options.document, "w", encoding="utf-8") as f:
            f.write(markdown(list(report.values()), failures))
        return 0
    warm_up()
    began, failed, models = time.time(), 0, all_models()
    for name, dtype in chosen(options):
        key = f"{name} {dtype}"
        before = report.get(key, {})
        missing = [w for w in ways if not (options.resume and is_good(before, w))]
        if not missing:
            continue
        if time.time() - began > options.seconds:
            break
        library, make = models[name]
        if options.save:
            row = in_a_process(save, make, DTYPES[dtype], os.path.join(options.save, f"{name}_{dtype}.json"))
            failed += bool(failures(row))
            print(key, *(failures(row) or ["saved"]), flush=True)
            continue
        kept = {k: v for k, v in before.items() if not k.startswith(("eager_failed", *missing))}
        row = {**kept, **in_a_process(check, make, DTYPES[dtype], missing, settings)}
        report[key] = {"name": name, "library": library, "dtype": dtype, **row}
        failed += bool(failures(row)) and not failures(known.get(key, {}))
        printed(key, row)
        if options.report:
            write_report(options.report, report)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
