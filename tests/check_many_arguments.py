#!/usr/bin/env python3
"""check_many_arguments.py FUSEC FUSEC_RUN [--all]

Kernels with more than 4 KiB of parameters, which not every CUDA allows. Their tensors and sizes come through a table in
memory that small kernels fill first. Results on the emulator equal the reference's. Groups under `full` keep within the
limit and need no table if they can be cut earlier."""
import json, os, subprocess, sys, tempfile

FUSEC, RUN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def tensor(name, shape, dtype="float32"):
    return {"name": name, "dtype": dtype, "shape": shape}


def chain():
    """256 nodes that read 513 tensors."""
    inputs, nodes, last = [tensor("x", [8])], [], "x"
    for i in range(256):
        inputs += [tensor(f"c{i}", [8], "bool"), tensor(f"b{i}", [8])]
        nodes.append({"name": f"w{i}", "op": "where", "inputs": [f"c{i}", last, f"b{i}"]})
        last = f"w{i}"
    return {"fusec": 1, "name": "chain", "inputs": inputs, "nodes": nodes, "outputs": [last]}


def concatenation(symbols):
    """One node of 520 tensors, or of 350 tensors with a size each."""
    count = 350 if symbols else 520
    inputs = [tensor(f"x{i}", [f"n{i}" if symbols else 1 + i % 3]) for i in range(count)]
    return {"fusec": 1, "name": "joined", "inputs": inputs,
            "symbols": {f"n{i}": {"max": 4, "hint": 1 + i % 4} for i in range(count)} if symbols else {},
            "nodes": [{"name": "y", "op": "concat", "inputs": [x["name"] for x in inputs], "attrs": {"dim": 0}},
                      {"name": "z", "op": "neg", "inputs": ["y"]}], "outputs": ["z"]}


def launches(path, strategy):
    process = subprocess.run([FUSEC, path, "--strategy=" + strategy, "--emit=partition"], capture_output=True, text=True)
    return json.loads(process.stdout)["launches"]


def main():
    cases = [("chain", chain(), {"tvm": 3, "full": 2, "none": 256}),
             ("joined", concatenation(False), {"tvm": 3, "full": 4}),
             ("joined_symbols", concatenation(True), {"full": 4})]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="fusec_arguments_") as scratch:
        for name, model, expected in cases:
            path = os.path.join(scratch, name + ".json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(model, f)
            for strategy, count in expected.items():
                if launches(path, strategy) != count:
                    failures += 1
                    print(f"FAILED {name} ({strategy}): {launches(path, strategy)} launches, expected {count}")
            # NVRTC is slow for hundreds of branches.
            for strategy in expected if "--all" in sys.argv else list(expected)[:1] if name == "chain" else []:
                process = subprocess.run([RUN, path, "--strategy=" + strategy, "--random", "--device=emulator",
                                          "--verify"], capture_output=True, text=True)
                if process.returncode == 3 and "NVRTC" in process.stderr and "compile" not in process.stderr:
                    print("skipped: " + process.stderr.strip())
                    sys.exit(77)
                if process.returncode:
                    failures += 1
                    print(f"FAILED {name} ({strategy}): {process.stderr[:1000]}")
    print(f"kernels with many arguments: {failures} failures")
    sys.exit(1 if failures else 0)


main()
