#!/usr/bin/env python3
"""check_special_values.py FUSEC FUSEC_RUN [--sample=N] [--seed=N] [--only=CASE] [--dtype=NAME] [--options=WHICH]

Every unary and binary op, reduction and norm of the op table on zeros of both signs, infinities, NaN, subnormal and
extreme numbers, each fused with a following reciprocal, which shows the sign of a zero. They run on the emulator, by
default and under --precise-math, and are compared with PyTorch's results (special_values/expected.safetensors).

The table in docs/numerics.md, "Where special values differ from PyTorch", lists differences by design. A difference
that is not in the table fails. A full run also fails if an op or dtype of the table does not differ. --sample takes N
cases of each dtype, under one of the options."""
import argparse
import json
import math
import os
import random
import re
import struct
import sys
import tempfile

import emulated_run
import tensors

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "special_values"))
import cases  # pylint: disable=wrong-import-position

OPTIONS = {"default": [], "--precise-math": ["--precise-math"]}
TOLERANCES = {"float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 1e-11}
NAMES = {code: name for name, code in cases.CODES.items()}


def encoded(dtype, values):
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", tensors.rounded("BF16", v))[2:] for v in values)
    return struct.pack(f"<{len(values)}{tensors.PLAIN[cases.CODES[dtype]]}", *values)


class Run:
    """One case in a model: its input and, for each result, the operands."""
    def __init__(self, case, name, shape, operands, known):
        self.case, self.key, self.shape, self.operands, self.known = case, name, shape, operands, known
        self.name = re.sub(r"\W", "_", name)


def flat(table):
    return [v for row in table for v in row]


def all_runs(dtype):
    """For each case: the inputs of its node as {name: (shape, values)}, and the operands of each result by name."""
    x = cases.unary_values(dtype)
    a, b = cases.binary_operands(dtype)
    runs = [Run(c, c.name, {"x": ([len(x)], x)}, ["x"], [{"x": v} for v in x]) for c in cases.unary_cases()]
    runs += [Run(c, c.name, {"a": ([len(a)], a), "b": ([len(b)], b)}, ["a", "b"],
                 [{"a": v, "b": w} for v, w in zip(a, b)]) for c in cases.binary_cases()]
    for n in cases.LENGTHS:
        table = cases.rows(dtype, n)
        known = [{"row": name, "n": n, "at": at} for name in table for at in cases.kept(n)]
        rows, columns = list(table.values()), list(zip(*table.values()))
        lines = {f"r{n}": ([len(rows), n], flat(rows))}
        runs += [Run(c, f"{c.name}[{n}]", lines, [f"r{n}"], known) for c in cases.reduction_cases()]
        lines = {f"c{n}": ([n, len(rows)], flat(columns))}
        runs += [Run(c, f"{c.name}[{n}]", lines, [f"c{n}"], known) for c in cases.column_cases()]
        lines = {f"i{n}": ([len(rows), 2, n // 2], flat(rows))}
        runs += [Run(c, f"{c.name}[{n}]", lines, [f"i{n}"], known) for c in cases.norm_cases() if n > 2 and n % 2 == 0]
    return runs


def attributes(run):
    n = int(run.key[:-1].split("[")[1]) if "[" in run.key else 0
    return {k: [n] if v == ["n"] else v for k, v in run.case.attrs.items()}


def model_of(dtype, runs):
    inputs, nodes = {}, []
    for run in runs:
        inputs |= run.shape
        nodes.append({"name": run.name, "op": run.case.op, "inputs": run.operands + run.case.numbers,
                      "attrs": attributes(run)})
        nodes.append({"name": run.name + "_inverse", "op": "reciprocal", "inputs": [run.name]})
    return inputs, {"fusec": 1, "name": "special_values",
                    "inputs": [{"name": n, "dtype": dtype, "shape": shape} for n, (shape, _) in inputs.items()],
                    "nodes": nodes, "outputs": [node["name"] for node in nodes]}


def picked(run, result):
    """The compared results, row by row, in the order of the expected ones."""
    _, shape, values = result
    if "[" not in run.key:
        return values
    n = run.known[-1]["n"]
    count = len(run.known) // len(cases.kept(n))
    if len(values) == count and not (n == 1 and len(shape) > 1):
        return values
    by_columns = run.operands[0].startswith("c")
    at = (lambda row, i: i * count + row) if by_columns else (lambda row, i: row * n + i)
    return [values[at(row, i)] for row in range(count) for i in cases.kept(n)]


def inverse(value):
    if value == 0:
        return math.copysign(math.inf, value)
    return 1.0 / value


def near(got, want, dtype, case):
    """Whether both are the same special value, or the same number within rounding."""
    got, want = float(got), float(want)
    if math.isnan(want) or math.isinf(want) or got != got or math.isinf(got):
        return got == want or (got != got and want != want)
    if math.copysign(1, got) != math.copysign(1, want):
        return False
    if case.absolute and abs(want) <= case.absolute:
        return abs(got) <= 2 * case.absolute
    if (got == 0) != (want == 0):
        return False
    _, normal, least = cases.LIMITS.get(dtype, (0, 0, 0))
    slack = 2 * least if abs(want) < 4 * normal else 0
    return abs(got - want) <= case.absolute + slack + case.tolerance * TOLERANCES.get(dtype, 0) * abs(want)


def near_inverse(got, wants, dtype, case):
    """As `near`, for reciprocals of any of these numbers: a result near the ends of the range has a reciprocal beyond
    it."""
    code = cases.CODES[dtype]
    for want in wants:
        expected = tensors.rounded(code, inverse(float(want)))
        if near(got, expected, dtype, cases.Case("", "", "", tolerance=2 * case.tolerance)):
            return True
        if case.absolute and abs(want) <= case.absolute and math.copysign(1, got) == math.copysign(1, want):
            return True
    return False


def text_of(value):
    if isinstance(value, bool) or value != value:
        return str(value).replace("nan", "NaN")
    return repr(float(value)) if value == 0 or math.isinf(value) else f"{value:.9g}"


def class_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if value != value:
        return "NaN"
    if value == 0 or math.isinf(value):
        return ("-" if math.copysign(1, value) < 0 else "+") + ("0" if value == 0 else "inf")
    return "finite"


class Difference:
    def __init__(self, run, dtype, options, known, want, got, inverted):
        self.run, self.dtype, self.options, self.known = run, dtype, options, known
        self.want, self.got, self.inverted = want, got, inverted

    def __str__(self):
        result = "1 / " if self.inverted else ""
        operands = ", ".join(f"{k} = {text_of(v) if isinstance(v, float) else v}" for k, v in self.known.items())
        return (f"{result}{self.run.key} of {self.dtype} ({self.options}), {operands}: {text_of(self.got)}, PyTorch "
                f"{' or '.join(sorted({text_of(w) for w in self.want}))}")


def differences(dtype, options, runs, expected, results):
    for run in runs:
        rows = []
        while f"{dtype}/{run.key}/{len(rows)}" in expected:
            rows.append(expected[f"{dtype}/{run.key}/{len(rows)}"])
        # 16-bit dtypes have rows of float32, too, since kernels compute in it.
        own = [[tensors.rounded(rows[0][0], v) for v in row[2]] for row in rows]
        got, inverted = results[run.name], results[run.name + "_inverse"]
        values, inverses = picked(run, got), picked(run, inverted)
        known = run.known if len(values) == len(run.known) else run.known[::len(run.known) // len(values)]
        out, of_inverse = NAMES[got[0]], NAMES[inverted[0]]
        for i, value in enumerate(values):
            want = [row[i] for row in own]
            if not any(near(value, w, out, run.case) for w in want):
                yield Difference(run, dtype, options, known[i], want, value, False)
            elif not near_inverse(inverses[i], [row[2][i] for row in rows], of_inverse, run.case):
                yield Difference(run, dtype, options, known[i], [inverse(float(row[2][i])) for row in rows], inverses[i],
                                 True)


class Listed:
    """A row of the table: ops, dtypes, options, operands, PyTorch's result and fusec's."""
    def __init__(self, cells):
        words = [re.findall(r"`([^`]+)`", cell) or [w.strip() for w in cell.split(",")] for cell in cells[:3]]
        self.names, self.dtypes, self.options = words
        self.condition = re.findall(r"`([^`]+)`", cells[3])[0]
        self.want, self.got = (cell.strip().split(" or ") for cell in cells[4:6])
        self.unneeded = {(name, dtype) for name in self.names for dtype in self.dtypes}
        self.text = " | ".join(cells)

    def covers(self, d):
        names = {d.run.case.op, d.run.case.name} & set(self.names)
        if not names or not ({"all", d.dtype} & set(self.dtypes)) or not ({"all", d.options} & set(self.options)):
            return False
        _, normal, least = cases.LIMITS[d.dtype]
        known = {"row": "", "n": 0, "at": 0} | d.known
        bare = {"inf": math.inf, "abs": abs, "greatest": cases.LIMITS[d.dtype][0], "normal": normal, "least": least,
                "negative_zero": lambda v: v == 0 and math.copysign(1, v) < 0, "nan": lambda v: v != v,
                "__builtins__": {}}
        try:
            holds = eval(self.condition, bare, known)  # pylint: disable=eval-used
        except NameError:
            return False
        inverse_mark = "1/" if d.inverted else ""
        said = lambda answers, value: inverse_mark + class_of(value) in answers
        if not holds or not said(self.got, d.got) or not any(said(self.want, w) for w in d.want):
            return False
        self.unneeded -= {(name, dtype) for name in names for dtype in ("all", d.dtype)}
        return True


def listed_differences():
    with open(os.path.join(HERE, "..", "docs", "numerics.md"), encoding="utf-8") as f:
        section = f.read().split("\n## Where special values differ from PyTorch\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [Listed([cell.strip().replace("&#124;", "|") for cell in line.strip("|").split("|")]) for line in lines]


def run_all(args, dtype, options, runs, folder):
    inputs, model = model_of(dtype, runs)
    path, given, made = (os.path.join(folder, f"{dtype}.{end}") for end in ("json", "in.safetensors", "out.safetensors"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    tensors.write(given, {name: (dtype, shape, encoded(dtype, values)) for name, (shape, values) in inputs.items()})
    command = [args.fusec_run, path, "--inputs=" + given, "--outputs=" + made, "--device=emulator"]
    what = f"{dtype} {options}"
    if emulated_run.run(command + OPTIONS[options], what) is None:
        return None
    return tensors.read(made)


def expect_all_ops(fusec):
    listed = emulated_run.run([fusec, "--list-ops", "--json"]) or "[]"
    told = {case.op for cs in (cases.unary_cases(), cases.binary_cases(), cases.reduction_cases()) for case in cs}
    whole = {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"}  # ops without floats
    for op in json.loads(listed):
        if op["family"] in ("unary", "binary", "reduction") and op["name"] not in told | whole:
            emulated_run.failures.append(f"op {op['name']}: no case in special_values/cases.py")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="all")
    parser.add_argument("--options", default="")
    args = parser.parse_args()
    expect_all_ops(args.fusec)
    pairs = [(d, o) for d in cases.DTYPES for o in OPTIONS if args.dtype in ("all", d) and args.options in ("", o)]
    pick = random.Random(args.seed)
    if args.sample:
        pairs = [pick.choice([pair for pair in pairs if pair[0] == d]) for d in dict(pairs)]
    expected = tensors.read(os.path.join(HERE, "special_values", "expected.safetensors"))
    table, compared = listed_differences(), 0
    with tempfile.TemporaryDirectory() as folder:
        for dtype, options in pairs:
            runs = [run for run in all_runs(dtype) if args.only in ("", run.case.name, run.case.op)]
            if args.sample:
                runs = pick.sample(runs, min(args.sample, len(runs)))
            results = run_all(args, dtype, options, runs, folder)
            if results is None:
                continue
            compared += sum(len(run.known) for run in runs)
            for difference in differences(dtype, options, runs, expected, results):
                # All rows that explain the difference count as needed.
                if not any([row.covers(difference) for row in table]):
                    emulated_run.failures.append(str(difference))
    if not (args.sample or args.only or args.options) and args.dtype == "all":
        for row in table:
            for name, dtype in sorted(row.unneeded):
                emulated_run.failures.append(f"docs/numerics.md: {name} of {dtype} does not differ so: {row.text}")
    emulated_run.finish(f"{compared} results, ")


if __name__ == "__main__":
    main()
