#!/usr/bin/env python3
"""check_op_db.py [--ops=NAME,..] [--count=N] [--report=FILE] [--docs=FILE]: PyTorch's operator tests on the backend.

For each operator of torch.testing's op_db that takes float32, its sample inputs of at most 10,000 elements (at most 20,
evenly spread) are compiled by the backend and compared with eager: values, dtypes, shapes, strides, written inputs.

An operator is *supported* if no ATen operator of any of its samples stays with eager, *partly supported* if that holds
for some samples, else *unsupported*. A difference from eager is a failure in any case, and makes the exit status 1.

AOTAutograd traces the samples of one operator into one graph, which the backend's `compile_graph` compiles. TorchDynamo
in front of it would cost time for each sample and add no operator: it only finds the graph in Python code, which
check_random_modules.py and test_backend.py cover. Samples are compiled one by one where the graph of all fails.

A worker process runs the operators; it is restarted when one takes longer than --limit seconds. --report holds a JSON
line for each operator that is done; a later run goes on from there. --docs writes docs/operators.md from the report.
Exit status 77 (skipped) where PyTorch is missing.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)

from op_db_docs import write_docs

MOST_ELEMENTS, MOST_SAMPLES = 10_000, 20
UNSET_VALUES = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")


class Leaves:
    """The tensors of one sample, and the call of the operator on others of the same kind."""

    def __init__(self, op, sample):
        from torch.utils import _pytree as pytree

        self.op, self.pytree = op, pytree
        leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.leaves = leaves
        self.tensors = [leaves[i] for i in self.places]

    def elements(self):
        return sum(t.numel() for t in self.tensors)

    def call(self, tensors):
        """The tensors among the results."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        first, args, kwargs = self.pytree.tree_unflatten(leaves, self.spec)
        results = self.pytree.tree_leaves(self.op(first, *args, **kwargs))
        return [r for r in results if isinstance(r, torch.Tensor)]


def clones(tensors):
    """Copies with the same strides, where a copy can have them."""
    copied = []
    for t in tensors:
        dense = t.layout is torch.strided and all(n <= 1 or s > 0 for n, s in zip(t.shape, t.stride()))
        if not dense or t.numel() == 0:
            copied.append(t.clone())
            continue
        span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
        copied.append(torch.as_strided(t, (span,), (1,)).clone().as_strided(t.shape, t.stride()))
    return copied


def compiled(calls, options):
    """Compiles the calls as one graph. Returns their results, what became of their tensors, and the graph's report."""
    from functorch.compile import make_boxed_func
    from torch._functorch.aot_autograd import aot_function
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    from fusec._torch.backend import compile_graph

    reports, drawn = [], []

    def compiler(module, inputs):
        targets = {n.target for n in module.graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
        drawn.extend(str(t) for t in targets if torch.Tag.nondeterministic_seeded in t.tags)
        if drawn:
            return make_boxed_func(module.forward)
        with unset_fake_temporarily():
            function, report = compile_graph(module, options)
        reports.append(report)
        function._boxed_call = True
        return function

    given = [clones(c.tensors) for c in calls]
    counts = []

    def run(*tensors):
        tensors, results = list(tensors), []
        for call in calls:
            mine = [tensors.pop(0) for _ in call.tensors]
            results.append(call.call(mine))
        counts[:] = [len(r) for r in results]
        return [t for r in results for t in r]

    made = aot_function(run, fw_compiler=compiler, inference_compiler=compiler, keep_inference_input_mutations=True)
    flat = list(made(*(t for g in given for t in g)))
    results = [[flat.pop(0) for _ in range(n)] for n in counts]
    return results, given, reports, drawn


def difference(mine, theirs, tolerance, values):
    """What differs, or an empty text."""
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape or mine.layout != theirs.layout:
        return f"{mine.dtype} {list(mine.shape)} in place of {theirs.dtype} {list(theirs.shape)}"
    strided = theirs.layout is torch.strided and theirs.numel() > 1
    if strided and any(n > 1 and a != b for n, a, b in zip(mine.shape, mine.stride(), theirs.stride())):
        return f"strides {mine.stride()} in place of {theirs.stride()}"
    if not values:
        return ""
    try:
        torch.testing.assert_close(mine, theirs, equal_nan=True, atol=tolerance[0], rtol=tolerance[1])
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def tolerance_of(op):
    """Of the OpInfo's own overrides, the largest for float32; at least 1e-4."""
    found = [(1e-4, 1e-4)]
    for decorator in op.decorators:
        for wrapper in getattr(decorator, "decorators", ()):
            given = getattr(wrapper, "args", {})
            if isinstance(given, dict) and torch.float32 in given:
                found.append(tuple(given[torch.float32])[:2])
    return tuple(max(values) for values in zip(*found))


def checked_together(op, calls, options):
    """Compares the calls, as one graph, with eager. Returns a dict with `failures` and `eager`."""
    eager_given = [clones(c.tensors) for c in calls]
    with torch.no_grad():
        want = [c.call(g) for c, g in zip(calls, eager_given)]
        got, given, reports, drawn = compiled(calls, options)
    eager = sorted({(n.operator, n.reason) for r in reports for n in r.eager})
    failures = []
    values = not drawn and op.name not in UNSET_VALUES
    for call, mine, theirs, inputs, eager_inputs in zip(calls, got, want, given, eager_given):
        wrong = [difference(a, b, tolerance_of(op), values) for a, b in zip(mine, theirs)]
        changed = [difference(a, b, tolerance_of(op), values) for a, b in zip(inputs, eager_inputs)]
        wrong += ["input: " + w for w in changed if w]
        failures += [f"{described(call)}: {w}" for w in wrong if w][:1]
    launches = sum(r.launches for r in reports)
    return {"failures": failures, "eager": eager, "drawn": sorted(set(drawn)), "launches": launches}


def described(call):
    shown = []
    for leaf in call.leaves:
        if isinstance(leaf, torch.Tensor):
            strides = "" if leaf.layout is torch.strided and leaf.is_contiguous() else " not contiguous"
            shown.append(f"{str(leaf.dtype)[6:]}{list(leaf.shape)}{strides}")
        else:
            shown.append(repr(leaf)[:40])
    return "(" + ", ".join(shown) + ")"


def traceable(call):
    """Why PyTorch itself cannot trace the call, or an empty text."""
    from torch._functorch.aot_autograd import aot_function

    try:
        with torch.no_grad():
            aot_function(lambda *t: call.call(t), fw_compiler=lambda m, _: m, keep_inference_input_mutations=True)(
                *clones(call.tensors)
            )
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {first[0][:120]}"
    return ""


def check_op(op, options):
    """The report of one operator."""
    began = time.monotonic()
    calls = [Leaves(op, s) for s in op.sample_inputs("cpu", torch.float32, requires_grad=False)]
    calls = [c for c in calls if c.elements() <= MOST_ELEMENTS and works(c)]
    calls = spread(calls, MOST_SAMPLES)
    report = blank_report(samples=len(calls))
    try:
        outcomes = [(calls, checked_together(op, calls, options))] if calls else []
        if outcomes and (outcomes[0][1]["eager"] or outcomes[0][1]["drawn"]) and len(calls) > 1:
            raise SomeWithEager
    except Exception:
        outcomes = []
        for call in calls:
            try:
                outcomes.append(([call], checked_together(op, [call], options)))
            except Exception as error:
                reason = traceable(call)
                if reason:
                    report["untraceable"] = reason
                else:
                    first = " ".join(str(error).split())[:300]
                    report["failures"].append(f"{described(call)}: {type(error).__name__}: {first}")
    for part, outcome in outcomes:
        for key in ("failures", "eager", "drawn"):
            report[key] += [x for x in outcome[key] if x not in report[key]]
        report["launches"] += outcome["launches"]
        if not outcome["eager"] and not outcome["drawn"]:
            report["supported"] += len(part)
    report["seconds"] = round(time.monotonic() - began, 1)
    return report


def blank_report(**given):
    counts = {"samples": 0, "supported": 0, "launches": 0, "seconds": 0}
    return {**counts, "failures": [], "eager": [], "drawn": [], "untraceable": "", **given}


class SomeWithEager(Exception):
    """Some sample leaves operators with eager: they are looked at one by one."""


def works(call):
    try:
        with torch.no_grad():
            call.call(clones(call.tensors))
        return True
    except Exception:
        return False


def spread(items, count):
    """`count` of the items, evenly spread."""
    return items if len(items) <= count else [items[i * len(items) // count] for i in range(count)]


def full_name(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def chosen(names, count):
    from torch.testing._internal.common_methods_invocations import op_db

    ops = {full_name(o): o for o in op_db if o.supports_dtype(torch.float32, "cpu")}
    if names:
        ops = {n: o for n, o in ops.items() if any(re.fullmatch(pattern, n) for pattern in names.split(","))}
    return {n: ops[n] for n in spread(list(ops), count or len(ops))}


def work(arguments):
    """The worker: reads names of operators, prints a line of JSON for each."""
    warnings.filterwarnings("ignore")
    ops = chosen("", 0)
    options = {"no_nvrtc": True} if arguments.reference else {}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(sorted(ops)), file=answers, flush=True)
    for line in sys.stdin:
        torch.manual_seed(0)
        torch._dynamo.reset()
        name = line.strip()
        try:
            report = check_op(ops[name], options)
        except Exception as error:
            report = blank_report(untraceable=f"no samples: {type(error).__name__}: {error}"[:200])
        print(json.dumps({"op": name, **report}), file=answers, flush=True)


class Worker:
    """A process that checks one operator after the other."""

    def __init__(self, arguments):
        command = [sys.executable, os.path.abspath(__file__), "--worker"] + ["--reference"] * arguments.reference
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.names = json.loads(self.process.stdout.readline())

    def ask(self, name, limit):
        """The report, or None where the process took too long or died."""
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        return json.loads(line) if line else None

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def read_report(path):
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        return {r["op"]: r for r in map(json.loads, file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default="", help="names or regular expressions, with commas between")
    parser.add_argument("--count", type=int, default=0, help="that many operators, evenly spread")
    parser.add_argument("--report", default="", help="one JSON line for each operator; a later run goes on from there")
    parser.add_argument("--docs", default="", help="write the list of operators there")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one operator")
    parser.add_argument("--stop-after", type=float, default=0, help="end after that many seconds")
    parser.add_argument("--reference", action="store_true", help="the reference interpreter in place of kernels")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments)
    began, done = time.monotonic(), read_report(arguments.report)
    wanted = list(chosen(arguments.ops, arguments.count))
    worker = None
    for name in wanted:
        if name in done:
            continue
        if arguments.stop_after and time.monotonic() - began > arguments.stop_after:
            break
        worker = worker or Worker(arguments)
        report = worker.ask(name, arguments.limit)
        if report is None:
            code = worker.process.wait()
            reason = "no end within the limit" if code == -9 else f"the process died ({code})"
            report = {"op": name, **blank_report(failures=[reason], seconds=arguments.limit)}
            worker = None
        done[name] = report
        for failure in report["failures"]:
            print(f"{name}: {failure}", flush=True)
        if arguments.report:
            with open(arguments.report, "a") as file:
                file.write(json.dumps(report) + "\n")
    if worker:
        worker.close()
    return summarize([done[n] for n in wanted if n in done], len(wanted), arguments.docs)


def summarize(reports, wanted, docs):
    """Prints the counts. Returns the exit status."""
    full = [r for r in reports if r["samples"] and r["supported"] == r["samples"]]
    partly = [r for r in reports if 0 < r["supported"] < r["samples"]]
    failed = [r for r in reports if r["failures"]]
    print(
        f"{len(reports)} of {wanted} operators checked, {sum(r['samples'] for r in reports)} samples:"
        f" {len(full)} supported, {len(partly)} partly supported, {len(reports) - len(full) - len(partly)} unsupported;"
        f" {len(failed)} operators with failures"
    )
    for r in failed:
        print(f"  failed: {r['op']}: {r['failures'][0]}")
    if docs:
        write_docs(docs, full, partly, [r for r in reports if r not in full and r not in partly])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
