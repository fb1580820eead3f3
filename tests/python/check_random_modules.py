#!/usr/bin/env python3
"""check_random_modules.py [--count=N] [--seed=S] [--stop-after=SECONDS]: torch.compile(backend="fusec") against eager.

The modules are those of random_modules.py, of seeds S, S + 1, ... Compared are results, inputs afterwards, gradients,
dtypes, shapes, strides, and which tensors share memory. A float may be off by 8 times what eager is itself off from the
module in float64, and by a tolerance of its dtype. A failure prints its seed and a program; --seed=S --count=1 repeats
it.
Exit status 77 (skipped) where PyTorch is missing.
"""

import argparse
import collections
import os
import sys
import time
import warnings

try:
    import torch
except ImportError:
    print(f"skipped: PyTorch is not installed for {sys.executable}")
    sys.exit(77)

from torch._subclasses.fake_tensor import FakeTensorMode

from fusec._torch.backend import recorded
from random_modules import Generator, shares

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 6e-2}


class Outcome:
    """What one call left: results, inputs, gradients."""

    def __init__(self, function, arguments, gradients):
        self.results = list(function(*arguments))
        if gradients:
            losses = [r.double().sum() for r in self.results if r.requires_grad]
            if losses:
                sum(losses).backward()
        self.arguments = arguments
        self.gradients = [a.grad for a in arguments]

    def tensors(self):
        named = [(f"result {i}", t) for i, t in enumerate(self.results)]
        named += [(f"input {i}", t) for i, t in enumerate(self.arguments)]
        return named + [(f"gradient {i}", t) for i, t in enumerate(self.gradients)]

    def shared(self):
        """Which pairs of results and inputs share memory."""
        tensors = [*self.results, *self.arguments]
        return [(i, j) for j, b in enumerate(tensors) for i, a in enumerate(tensors[:j]) if shares(a, b)]


def difference(got, want, exact, coarsest):
    """What differs between two outcomes, or an empty text. exact: eager's in float64."""
    for (name, mine), (_, theirs), (_, best) in zip(got.tensors(), want.tensors(), exact.tensors()):
        if (mine is None) != (theirs is None):
            return f"{name}: {mine} in place of {theirs}"
        if theirs is None:
            continue
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            return f"{name}: {mine.dtype} {list(mine.shape)} in place of {theirs.dtype} {list(theirs.shape)}"
        places = [d for d, n in enumerate(theirs.shape) if n > 1]
        if theirs.numel() and not name.startswith("gradient"):
            if any(mine.stride(d) != theirs.stride(d) for d in places):
                return f"{name}: strides {mine.stride()} in place of {theirs.stride()}"
        wrong = values_differ(mine.detach(), theirs.detach(), best.detach(), coarsest)
        if wrong:
            return f"{name}: {wrong}"
    if got.shared() != want.shared():
        return f"memory is shared by {got.shared()} in place of {want.shared()}"
    return ""


def values_differ(mine, theirs, best, coarsest):
    if not theirs.is_floating_point():
        return "" if torch.equal(mine, theirs) else f"{mine.tolist()} in place of {theirs.tolist()}"
    mine, theirs, best = mine.double(), theirs.double(), best.double()
    if theirs.numel() == 0:
        return ""
    noise = (theirs - best).nan_to_num(0, 0, 0).abs().max()
    size = theirs.nan_to_num(0, 0, 0).abs().max()
    allowed = coarsest * (1 + theirs.abs() + 0.1 * size) + 8 * noise
    same = (mine == theirs) | (mine.isnan() & theirs.isnan()) | ((mine - theirs).abs() <= allowed)
    if bool(same.all()):
        return ""
    place = int((~same).reshape(-1).nonzero()[0])
    pair = (t.reshape(-1)[place].item() for t in (mine, theirs, best))
    return "{} in place of {} (in float64 {})".format(*pair) + f" at flat position {place}"


def check(seed, tally):
    """An empty text, or what is wrong with the module of that seed."""
    case = Generator(seed).case()
    eager, widened = case.forward(), case.forward(in_float64=True)
    torch._dynamo.reset()
    compiled = torch.compile(eager, backend="fusec", dynamic=len(case.sizes) > 1)
    tally["operators"] += len(case.lines)
    tally["with gradients"] += case.gradients
    for call, (n, m) in enumerate(case.sizes):
        try:
            want = Outcome(eager, case.arguments(n, m), case.gradients)
            exact = Outcome(widened, case.arguments(n, m, in_float64=True), case.gradients)
        except (RuntimeError, IndexError):
            if call == 0:
                return "", case  # float64 alone is an error: two dtypes in a product that are now one, or the like
            continue  # other sizes need not fit
        tally["second sizes"] += call
        with recorded() as graphs:
            try:
                got = Outcome(compiled, case.arguments(n, m), case.gradients)
            except Exception as error:
                if not traceable(case, n, m):
                    tally["that PyTorch cannot trace"] += 1
                    return "", case
                return f"{type(error).__name__}: {error}"[:600], case
        for graph in graphs:
            tally["graphs"] += 1
            tally["graphs without eager"] += not graph.eager
            for node in graph.eager:
                tally[f"eager {node.operator}: {node.reason[:80]}"] += 1
        coarsest = max(
            TOLERANCE.get(getattr(torch, d), 0) for d in TOLERANCE_NAMES if d in case.text() or d == "float32"
        )
        wrong = difference(got, want, exact, coarsest)
        if "strides" in wrong and strides(got.results) == predicted_strides(case, n, m):
            tally["with strides that PyTorch predicts wrongly"] += 1
            return "", case
        if wrong:
            return f"call {call}: {wrong}", case
    return "", case


def strides(tensors):
    """Of the dimensions that are not 1."""
    return [[s for n, s in zip(t.shape, t.stride()) if n > 1] for t in tensors]


def predicted_strides(case, n, m):
    """Those that FakeTensorMode gives to the results: a compiler sees no others."""
    with FakeTensorMode() as mode:
        return strides(case.forward()(*(mode.from_tensor(a) for a in case.arguments(n, m))))


def traceable(case, n, m):
    """Whether PyTorch's own backend that compiles nothing takes the module."""
    torch._dynamo.reset()
    try:
        Outcome(torch.compile(case.forward(), backend="aot_eager"), case.arguments(n, m), case.gradients)
    except Exception:
        return False
    return True


SLOW = 30  # seconds
TOLERANCE_NAMES = ("float32", "float16", "bfloat16")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop-after", type=float, default=0, help="end after that many seconds")
    parser.add_argument("--show", action="store_true", help="print the programs, and run nothing")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    began, tally, failed, done = time.monotonic(), collections.Counter(), [], 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        if arguments.show:
            print(Generator(seed).case().text())
            continue
        if arguments.stop_after and time.monotonic() - began > arguments.stop_after:
            break
        started = time.monotonic()
        wrong, case = check(seed, tally)
        done += 1
        if time.monotonic() - started > SLOW:
            print(f"seed {seed} took {time.monotonic() - started:.0f} s", flush=True)
        if wrong:
            failed.append(seed)
            print(f"--- seed {seed}: {wrong}\n{case.text()}", flush=True)
    counts = ", ".join(f"{n} {name}" for name, n in tally.items() if not name.startswith("eager"))
    for name, n in tally.most_common():
        if name.startswith("eager"):
            print(f"  {n} {name}")
    print(f"{done} random modules ({counts}): {len(failed)} failures {failed or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
