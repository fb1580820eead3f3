#!/usr/bin/env python3
"""compare_tvm.py [--time-partition=PROGRAM] [--venv=DIR] [--sizes=1000,10000] [--families=tower,...]: measures TVM's
FuseOps and ours on the same graphs in one run, checks that the groups are equal, and prints the ratios.

TVM (apache-tvm, pinned below) is installed from PyPI into a virtual environment of its own, build/tvm-venv unless told
otherwise. On TVM's side the seconds are those of relax.transform.FuseOps alone (PrimFuncs have empty bodies and one
[4] operand type, so that the graph's structure is all that costs); ours are those of annotation and partition up to the
finished plan. Demands at 10k nodes: 30 times faster on tower and chain, 500 times on the layered graphs whose branches
meet at the end. Exit 1 where one is not met or groups differ."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import venv

TVM = "apache-tvm==0.27.0.post1"
DEMANDS = {"tower": 30, "chain": 30, "layered": 500, "layered_ew": 500}
KINDS = {"elemwise": 0, "broadcast": 1, "injective": 2, "comm_reduce": 3, "out_ewise_fusable": 4, "tuple": 7,
         "opaque": 8}
MIX = ["elemwise"] * 5 + ["broadcast"] * 2 + ["injective"] * 2 + ["out_ewise_fusable", "comm_reduce"]


# --- graphs, as lists of (pattern, operands); operand -1 is the graph's input

def tower(n):
    nodes, x = [], -1
    while len(nodes) + 4 <= n:
        first = len(nodes)
        nodes += [("out_ewise_fusable", [x]), ("elemwise", [first]), ("elemwise", [first + 1]),
                  ("elemwise", [first + 2, x])]
        x = len(nodes) - 1
    return nodes, [x]


def chain(n):
    return [("elemwise", [i - 1]) for i in range(n)], [n - 1]


def layered(n, mixed, join):
    rng, nodes, last = random.Random(1), [], [-1] * 10
    while len(nodes) + 10 <= n:
        layer = []
        for i in range(10):
            kind = rng.choice(MIX) if mixed else "elemwise"
            nodes.append((kind, [last[i] if join else rng.choice(last), rng.choice(last)]))
            layer.append(len(nodes) - 1)
        last = layer
    if join:
        nodes.append(("elemwise", list(last)))
        return nodes, [len(nodes) - 1]
    used = {o for _, operands in nodes for o in operands}
    return nodes, [i for i in range(len(nodes)) if i not in used]


FAMILIES = {"tower": tower, "chain": chain, "layered": lambda n: layered(n, True, True),
            "layered_ew": lambda n: layered(n, False, True), "layered_outs": lambda n: layered(n, True, False)}


def model(name, nodes, outputs):
    tensor = {"dtype": "float32", "shape": [4]}
    value = lambda i: "x" if i < 0 else f"n{i}"  # noqa: E731
    return {"fusec": 1, "name": name, "inputs": [{"name": "x", **tensor}],
            "nodes": [{"name": f"n{i}", "op": "custom." + kind, "pattern": kind, "inputs": [value(o) for o in operands],
                       "outputs": [{"name": f"n{i}", **tensor}]} for i, (kind, operands) in enumerate(nodes)],
            "outputs": [value(o) for o in outputs]}


# --- TVM's side, run by the interpreter of the virtual environment

def tvm_module(graph):
    import tvm
    from tvm import relax, tirx

    def prim_func(name, arity, kind):
        buffers = [tirx.decl_buffer((4,), "float32", name=f"b{i}") for i in range(arity + 1)]
        # The attribute keeps equal functions apart, so that a group's calls tell its nodes.
        return tirx.PrimFunc(buffers, tirx.Evaluate(0)).with_attr("op_pattern", KINDS[kind]).with_attr("node", name)

    tensor = relax.TensorType((4,), "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor)
    values, outputs, bindings = {"x": x}, set(graph["outputs"]), []
    for node in graph["nodes"]:
        name = node["name"]
        function = builder.add_func(prim_func(name, len(node["inputs"]), node["pattern"]), name)
        call = builder.normalize(relax.call_tir(function, relax.Tuple([values[i] for i in node["inputs"]]), tensor))
        var = (relax.Var if name in outputs else relax.DataflowVar)(name, tensor)
        bindings.append(relax.VarBinding(var, call))
        values[name] = var
    results = [values[o] for o in graph["outputs"]]
    body = results[0] if len(results) == 1 else builder.normalize(relax.Tuple(results))
    block = builder.normalize(relax.SeqExpr([relax.DataflowBlock(bindings)], body))
    main = relax.Function([x], block, body.ty, True).with_attr("global_symbol", "main")
    module = tvm.IRModule(dict(builder.finalize().functions.items()))
    module["main"] = main
    return module


def tvm_groups(module):
    from tvm import relax

    def calls(function):
        found = []
        for block in function.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if isinstance(value, relax.Call) and getattr(value.op, "name", "") == "relax.call_tir":
                    found.append(value.args[0].name_hint)
        return found

    groups = []
    for var, function in module.functions.items():
        if isinstance(function, relax.Function):
            groups += [[n] for n in calls(function)] if var.name_hint == "main" else [calls(function)]
    return groups


def tvm_worker(path, repeats):
    from tvm import relax
    module = tvm_module(json.load(open(path, encoding="utf-8")))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fused = relax.transform.FuseOps()(module)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": sorted(seconds)[len(seconds) // 2], "groups": tvm_groups(fused)}))


# --- the comparison

def environment(folder):
    python = os.path.join(folder, "bin", "python")
    if subprocess.run([python, "-c", "import tvm"], stderr=subprocess.DEVNULL).returncode if os.path.exists(python) else 1:
        print(f"installing {TVM} from PyPI into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", TVM], check=True)
    return python


def as_partition(groups):
    return {frozenset(g) for g in groups}


def compare(family, size, python, program, folder):
    path, plan = os.path.join(folder, "model.json"), os.path.join(folder, "plan.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model(family, *FAMILIES[family](size)), f)
    ours = json.loads(subprocess.run([program, path, "9", plan], stdout=subprocess.PIPE, check=True).stdout)
    repeats = 1 if family.startswith("layered") and family != "layered_outs" else 3
    tvm = json.loads(subprocess.run([python, __file__, "--worker", path, str(repeats)], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, check=True).stdout)
    groups = [g["nodes"] for g in json.load(open(plan, encoding="utf-8"))["groups"]]
    equal = as_partition(groups) == as_partition(tvm["groups"])
    ratio = tvm["seconds"] / ours["seconds"]
    met = equal and (size != 10000 or ratio >= DEMANDS.get(family, 0))
    print(f"{family:14} {ours['nodes']:7} {tvm['seconds']:10.4f} {ours['seconds'] * 1e3:9.3f} {ratio:9.0f} "
          f"{len(groups):7} {'equal' if equal else 'DIFFERENT'}{'' if met else '  NOT MET'}", flush=True)
    return met


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--worker":
        return tvm_worker(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-partition", default="build/release/bin/time_partition")
    parser.add_argument("--venv", default="build/tvm-venv")
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--families", default=",".join(FAMILIES))
    options = parser.parse_args()
    python = environment(options.venv)
    print(f"{'family':14} {'nodes':>7} {'TVM s':>10} {'ours ms':>9} {'ratio':>9} {'groups':>7}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families.split(","):
            for size in options.sizes.split(","):
                good &= compare(family, int(size), python, options.time_partition, folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
