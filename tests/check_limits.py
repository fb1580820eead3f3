#!/usr/bin/env python3
"""check_limits.py FUSEC

Small models that need much time or memory, and models of these kinds in growing sizes. Each is compiled to source
within 2 GiB and a few seconds of CPU, or refused by the limit that is named here. The samples are in tests/limits."""
import json
import os
import resource
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limits")
STRATEGIES = ("none", "tvm", "full")
SECONDS = 20  # CPU seconds on a busy machine; before the limits existed, a tenth of the size took as long


def node(name, op, inputs, attrs=None):
    return {"name": name, "op": op, "inputs": inputs, "attrs": attrs or {}}


def model(inputs, nodes, outputs, symbols=None):
    return {"fusec": 1, "symbols": symbols or {}, "nodes": nodes, "outputs": outputs,
            "inputs": [{"name": name, "dtype": "float32", "shape": shape} for name, shape in inputs]}


def chain(shape, cycle, length, symbols=None):
    """x, then `length` ops in a chain that cycles through the ops and attributes of `cycle`."""
    nodes = [node(f"n{i}", op, [f"n{i - 1}" if i else "x"], attrs)
             for i, (op, attrs) in ((i, cycle[i % len(cycle)]) for i in range(length))]
    return model([("x", shape)], nodes, [nodes[-1]["name"]], symbols)


def permuted(length):
    return chain([14, 15], [("reshape", {"shape": [6, 35]}), ("permute", {"dims": [1, 0]}),
                            ("reshape", {"shape": [10, 21]}), ("permute", {"dims": [1, 0]}),
                            ("reshape", {"shape": [14, 15]})], length)


def permuted_between(length):
    return chain([14, 15], [("reshape", {"shape": [6, 35]}), ("permute", {"dims": [1, 0]}), ("tanh", {}),
                            ("reshape", {"shape": [15, 14]}), ("flip", {"dims": [0]})], length)


def permuted_symbols(length):
    return chain(["u", "t", 15], [("reshape", {"shape": ["t*3", 5, "u"]}), ("permute", {"dims": [2, 0, 1]}),
                                  ("reshape", {"shape": ["u", "t", 15]})], length, {"u": {}, "t": {}})


def permuted_dimensions(length):
    return chain([2] * 12, [("permute", {"dims": [*range(1, 12), 0]}), ("flip", {"dims": [0, 5]})], length)


def rolled(length):
    return chain(["t"], [("roll", {"shifts": [7], "dims": [0]})], length, {"t": {"min": 8}})


def cut_symbols(length):
    return chain(["t"], [("slice", {"dim": 0, "start": 1})], length, {"t": {}})


def split(pieces):
    return model([("x", [pieces])], [node("s", "split", ["x"], {"split_sizes": 1, "dim": 0})], ["s.0"])


def split_unevenly(pieces):
    sizes = [1 + i % 3 for i in range(pieces)]
    nodes = [node("s", "split", ["x"], {"split_sizes": sizes, "dim": 0})]
    return model([("x", [sum(sizes)])], nodes, [f"s.{i}" for i in range(0, pieces, 97)])


def joined(operands):
    names = [(f"x{i}", [16]) for i in range(operands)]
    return model(names, [node("c", "concat", [n for n, _ in names], {"dim": 0})], ["c"])


def joined_symbols(operands):
    names = [(f"x{i}", [f"s{i}", 4]) for i in range(operands)]
    symbols = {f"s{i}": {} for i in range(operands)}
    return model(names, [node("c", "concat", [n for n, _ in names], {"dim": 0})], ["c"], symbols)


def many_symbols(count):
    return model([(f"x{i}", [f"s{i}"]) for i in range(count)], [node(f"n{i}", "relu", [f"x{i}"]) for i in range(count)],
                 [f"n{i}" for i in range(count)], {f"s{i}": {} for i in range(count)})


def tuples(levels, width=2):
    nodes, before = [], "x"
    for i in range(levels):
        nodes.append(node(f"t{i}", "tuple", [before] * width))
        before = f"t{i}"
    for i in range(levels):
        nodes.append(node(f"g{i}", "get_item", [before], {"index": i % width}))
        before = f"g{i}"
    return model([("x", [2])], nodes, [before])


def wide_tuple(fields):
    nodes = [node("t", "tuple", ["x"] * fields)]
    nodes += [node(f"g{i}", "get_item", ["t"], {"index": i}) for i in range(fields)]
    return model([("x", [2])], nodes, [f"g{i}" for i in range(0, fields, 100)])


# Model, and the limit that refuses it ("" if it is compiled).
CASES = [
    ("permuted", permuted, (31, 51, 200), ""),
    ("permuted_between", permuted_between, (31, 51, 200), ""),
    ("permuted_symbols", permuted_symbols, (19, 51, 200), ""),
    ("permuted_dimensions", permuted_dimensions, (51, 200), ""),
    ("rolled", rolled, (51, 200), ""),
    ("cut_symbols", cut_symbols, (30,), ""),
    ("cut_symbols_beyond", cut_symbols, (200, 2000), "dimension-size"),
    ("split", split, (1000, 8000), ""),
    ("split_beyond", split, (20000, 1000000), "results"),
    ("split_unevenly", split_unevenly, (8000,), ""),
    ("joined", joined, (1000, 10000), ""),
    ("joined_beyond", joined, (17000,), "operands"),
    ("joined_symbols", joined_symbols, (20, 60), ""),
    ("joined_symbols_beyond", joined_symbols, (300,), "dimension-terms"),
    ("many_symbols", many_symbols, (200,), ""),
    ("many_symbols_beyond", many_symbols, (5000,), "symbols"),
    ("tuples", tuples, (10,), ""),
    ("tuples_beyond", tuples, (30, 60), "tuple-fields"),
    ("wide_tuples_beyond", lambda levels: tuples(levels, 50), (5, 9), "tuple-fields"),
    ("deep_tuples_beyond", lambda levels: tuples(levels, 1), (300, 5000), "tuple-depth"),
    ("wide_tuple", wide_tuple, (2000,), ""),
]
SAMPLES = [
    ("tuple41", "tuple-fields", ()),
    ("perm31", "", ()),
    ("reshape19sym", "", ()),
    ("split8000", "", ()),
    ("growing_rewrite", "pattern-growth", ("--patterns=" + os.path.join(FOLDER, "growing_rewrite.patterns"),)),
    ("growing_rewrite", "pattern-rounds", ("--patterns=" + os.path.join(FOLDER, "swapping_rewrites.patterns"),)),
]


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def problem(fusec, path, strategy, limit, options):
    run = subprocess.run([fusec, path, "--strategy=" + strategy, "--emit=cu=/dev/null", "--no-nvrtc", *options],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit_resources)
    if not limit:
        return None if run.returncode == 0 else f"exit status {run.returncode}: {run.stderr[:300]}"
    if run.returncode != 1 or f"the limit {limit} is exceeded" not in run.stderr:
        return f"exit status {run.returncode}, not refused by {limit}: {run.stderr[:300]}"
    return None


def main():
    fusec = os.path.abspath(sys.argv[1])
    wrong = 0

    def check(label, path, limit, options=()):
        nonlocal wrong
        for strategy in STRATEGIES:
            if limit.startswith("pattern-") and strategy != "full":
                continue  # the other strategies rewrite nothing
            what = problem(fusec, path, strategy, limit, options)
            if what:
                wrong += 1
                print(f"{label} under {strategy}: {what}", flush=True)

    for name, limit, options in SAMPLES:
        check(name, os.path.join(FOLDER, name + ".json"), limit, options)
    with tempfile.TemporaryDirectory() as scratch:
        for name, make, sizes, limit in CASES:
            for size in sizes:
                path = os.path.join(scratch, "model.json")
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(make(size), f)
                check(f"{name}({size})", path, limit)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
