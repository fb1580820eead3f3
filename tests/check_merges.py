#!/usr/bin/env python3
"""check_merges.py FUSEC FUSEC_RUN [--graphs=N] [--run=N] [--seed=N] [--keep=FOLDER]

Random graphs of elementwise ops, reductions, movement, norms and products, some with a symbol in their shapes, planned
under full. Every node is in a group, groups read only from earlier groups (no cycles), and there are no more launches
and no more predicted time than under tvm or none. For --run graphs the emulator executes the kernels, and results are
compared with the reference, which evaluates node by node. With --round-intermediates, outputs without sums and row
scales are bit-identical under full and none.

Prints each failure, with the model's file if --keep is given, and the number of graphs. Exit 0 only without failures.
"""
import argparse, json, os, random, subprocess, sys, tempfile

UNARY = ["tanh", "sigmoid", "sin", "relu", "neg", "abs", "silu", "gelu", "cos"]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]
REDUCE = ["sum", "mean", "amax", "amin", "var", "logsumexp"]
COMPOSITE = ["softmax", "log_softmax", "rms_norm", "layer_norm"]
ELEMENTS = set(UNARY + BINARY + ["permute", "slice", "flip", "unsqueeze", "concat", "split", "reshape", "expand", "pad"])


class Maker:
    """A model, made node by node from earlier values."""

    def __init__(self, seed, extents=(1, 2, 3, 4, 5, 7, 8, 12, 16, 33)):
        self.chance = random.Random(seed)
        self.dtype = self.chance.choice(["float32"] * 4 + ["float16", "bfloat16"])
        self.model = {"fusec": 1, "name": f"random_{seed}", "inputs": [], "constants": [], "nodes": []}
        self.values = []  # (name, shape) of float tensors
        self.base = [self.chance.choice(extents) for _ in range(self.chance.randint(2, 4))]
        if self.chance.random() < 0.3:
            self.model["symbols"] = {"n": {"min": 1, "max": 64, "hint": self.chance.choice([1, 3, 8])}}
            self.base[self.chance.randrange(len(self.base))] = "n"
        for _ in range(self.chance.randint(1, 3)):
            shape = list(self.base)
            d = self.chance.randrange(len(shape))
            if self.chance.random() < 0.3 and (shape[d] != "n" or self.values):
                shape[d] = 1
            name = f"in{len(self.model['inputs'])}"
            self.model["inputs"].append({"name": name, "dtype": self.dtype, "shape": shape})
            self.values.append((name, shape))

    def node(self, op, inputs, shape, attrs=None, outputs=None):
        name = f"v{len(self.model['nodes'])}_{op}"
        node = {"name": name, "op": op, "inputs": inputs}
        if attrs:
            node["attrs"] = attrs
        self.model["nodes"].append(node)
        if outputs is None:
            self.values.append((name, shape))
        else:
            self.values.extend((f"{name}.{i}", s) for i, s in enumerate(outputs))

    def pick(self):
        # Prefer late values, so that chains grow long.
        if self.chance.random() < 0.5:
            return self.chance.choice(self.values[-4:])
        return self.chance.choice(self.values)

    def constant(self, shape):
        name = f"w{len(self.model['constants'])}"
        self.model["constants"].append({"name": name, "dtype": self.dtype, "shape": shape})
        return name

    @staticmethod
    def broadcast(a, b):
        rank = max(len(a), len(b))
        a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
        if all(x == y or x == 1 or y == 1 for x, y in zip(a, b)):
            return [y if x == 1 else x for x, y in zip(a, b)]
        return None

    def binary(self):
        name, shape = self.pick()
        others = [(n, s) for n, s in self.values if self.broadcast(shape, s) is not None]
        other, other_shape = self.chance.choice(others)
        operands = [name, other] if self.chance.random() < 0.5 else [other, name]
        self.node(self.chance.choice(BINARY), operands, self.broadcast(shape, other_shape))

    def unary(self):
        name, shape = self.pick()
        self.node(self.chance.choice(UNARY), [name], shape)

    def scaled(self):
        name, shape = self.pick()
        self.node(self.chance.choice(["mul", "add"]), [name, self.chance.choice([0.5, -0.25, 1.5])], shape)

    def reduce(self):
        name, shape = self.pick()
        if not shape:
            return
        op = self.chance.choice(REDUCE)
        last = self.chance.random() < 0.6
        dims = [len(shape) - 1] if last else sorted(self.chance.sample(range(len(shape)),
                                                                       self.chance.randint(1, min(2, len(shape)))))
        keep = self.chance.random() < 0.6
        attrs = {"dim": dims, "keepdim": keep}
        if op == "var":
            attrs["correction"] = 0
        out = [(1 if i in dims else e) for i, e in enumerate(shape) if keep or i not in dims]
        self.node(op, [name], out, attrs)

    def composite(self):
        name, shape = self.pick()
        if not shape or shape[-1] == "n":
            return
        op = self.chance.choice(COMPOSITE)
        if op.endswith("softmax"):
            self.node(op, [name], shape, {"dim": -1})
            return
        inputs = [name, self.constant([shape[-1]])]
        if op == "layer_norm":
            inputs.append(self.constant([shape[-1]]))
        self.node(op, inputs, shape, {"normalized_shape": [shape[-1]], "eps": 0.1})

    def movement(self):
        name, shape = self.pick()
        if not shape:
            return
        kind = self.chance.choice(["permute", "slice", "flip", "unsqueeze", "concat", "split", "reshape", "expand", "pad"])
        d = self.chance.randrange(len(shape))
        if kind == "permute":
            order = list(range(len(shape)))
            self.chance.shuffle(order)
            self.node("permute", [name], [shape[i] for i in order], {"dims": order})
        elif kind == "flip":
            self.node("flip", [name], shape, {"dims": [d]})
        elif kind == "unsqueeze" and len(shape) < 5:
            self.node("unsqueeze", [name], shape[:d] + [1] + shape[d:], {"dim": d})
        elif kind == "slice" and shape[d] != "n" and shape[d] > 1:
            start = self.chance.randrange(shape[d] - 1)
            end = self.chance.randint(start + 1, shape[d])
            self.node("slice", [name], shape[:d] + [end - start] + shape[d + 1:],
                      {"dim": d, "start": start, "end": end})
        elif kind == "concat" and shape[d] != "n":
            like = [n for n, s in self.values if s == shape]
            self.node("concat", [name, self.chance.choice(like)], shape[:d] + [2 * shape[d]] + shape[d + 1:], {"dim": d})
        elif kind == "split" and shape[d] != "n" and shape[d] > 1:
            first = self.chance.randint(1, shape[d] - 1)
            parts = [shape[:d] + [e] + shape[d + 1:] for e in (first, shape[d] - first)]
            self.node("split", [name], None, {"dim": d, "split_sizes": [first, shape[d] - first]}, parts)
        elif kind == "reshape" and len(shape) > 1 and "n" not in shape[d:d + 2] and d + 1 < len(shape):
            out = shape[:d] + [shape[d] * shape[d + 1]] + shape[d + 2:]
            self.node("reshape", [name], out, {"shape": out})
        elif kind == "expand" and shape[d] == 1:
            out = shape[:d] + [3] + shape[d + 1:]
            self.node("expand", [name], out, {"shape": out})
        elif kind == "pad" and shape[-1] != "n":
            self.node("pad", [name], shape[:-1] + [shape[-1] + 3], {"pad": [1, 2], "value": 0.5})

    def product(self):
        name, shape = self.pick()
        if not shape or shape[-1] == "n" or len(shape) < 2:
            return
        columns = self.chance.choice([4, 8, 16])
        self.node("linear", [name, self.constant([columns, shape[-1]])], shape[:-1] + [columns])

    def make(self):
        steps = ([self.unary] * 3 + [self.binary] * 5 + [self.scaled] * 2 + [self.reduce] * 4 + [self.composite] +
                 [self.movement] * 4 + [self.product])
        wanted = self.chance.randint(3, 22)
        while len(self.model["nodes"]) < wanted:
            self.chance.choice(steps)()
        used = {i for node in self.model["nodes"] for i in node["inputs"]}
        made = [n for n, _ in self.values[len(self.model["inputs"]):]]
        outputs = [n for n in made if n not in used][-4:] or made[-1:]
        outputs += [n for n in made if n in used and self.chance.random() < 0.08]
        self.model["outputs"] = outputs
        return self.model


def plan_of(fusec, path, strategy, *emissions):
    p = subprocess.run([fusec, path, "--strategy=" + strategy, "--no-nvrtc", "--emit=partition=-",
                        "--emit=manifest=/dev/null", *emissions],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if p.returncode != 0:
        raise RuntimeError(f"{strategy}: exit status {p.returncode}: {p.stderr.decode('utf-8', 'replace')[-800:]}")
    return json.loads(p.stdout)


def structural_faults(model, plan):
    """What is wrong with the groups of a plan under full: cycles, nodes in no group."""
    producer = {}
    for node in model["nodes"]:
        producer[node["name"]] = node["name"]
        for i in range(8):
            producer[f"{node['name']}.{i}"] = node["name"]
    nodes = {node["name"]: node for node in model["nodes"]}
    absent = set(plan["dropped"]) | set(plan["folded"]) | set(plan["prepared"])
    place = {}
    for g, group in enumerate(plan["groups"]):
        for n in group["nodes"]:
            place.setdefault(n, g)
    faults = [f"{n} is in no group" for n in nodes if n not in place and n not in absent]
    made = {i["name"] for i in model["inputs"]} | {c["name"] for c in model["constants"]}
    for group in plan["groups"]:
        faults += [f"{group['name']} reads {v}, which is not there yet" for v in group["inputs"] if v not in made]
        made |= set(group["outputs"])
    return faults


def dearer_strategies(report_path):
    with open(report_path, encoding="utf-8") as f:
        totals = json.load(f)["totals"]
    us = {strategy: total["predicted_us"] for strategy, total in totals.items()}
    return [f"{us['full']} us are predicted, {us[other]} us under {other}"
            for other in ("none", "tvm") if us["full"] > us[other] * (1 + 1e-9) + 1e-4]


def outputs_by_elements(model):
    """Outputs that depend on no reduction, no product and no padding value. NVRTC evaluates functions of constants
    itself, and the last bit may differ from the device's approximation."""
    plain = {i["name"] for i in model["inputs"]} | {c["name"] for c in model["constants"]}
    for node in model["nodes"]:
        operands = [v for v in node["inputs"] if isinstance(v, str)]
        padded = node["op"] == "pad" and node["attrs"].get("value", 0) != 0
        if node["op"] in ELEMENTS and not padded and all(v in plain for v in operands):
            plain.add(node["name"])
            plain |= {f"{node['name']}.{i}" for i in range(8)}
    return [v for v in model["outputs"] if v in plain]


def tensors_of(path):
    """The bytes of each tensor of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {name: data[start + t["data_offsets"][0]:start + t["data_offsets"][1]]
            for name, t in header.items() if name != "__metadata__"}


def changed_bits(args, path, model, seed, folder):
    wanted = outputs_by_elements(model)
    if not wanted:
        return []
    found = {}
    for strategy in ("full", "none"):
        outputs = os.path.join(folder, f"{strategy}.safetensors")
        p = subprocess.run([args.fusec_run, path, f"--random={seed}", "--device=emulator", "--round-intermediates",
                            f"--strategy={strategy}", f"--outputs={outputs}"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
        if p.returncode != 0:
            return [f"executed under {strategy}: exit status {p.returncode}: {p.stdout.decode('utf-8', 'replace')[-900:]}"]
        found[strategy] = tensors_of(outputs)
    return [f"output {v} under full is not that under none, bit for bit" for v in wanted
            if found["full"][v] != found["none"][v]]


def check(args, seed, folder, run):
    model = Maker(seed).make()
    path = os.path.join(folder, f"{model['name']}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    try:
        report = os.path.join(folder, "report.json")
        plan = plan_of(args.fusec, path, "full", f"--emit=report={report}")
        faults = structural_faults(model, plan) + dearer_strategies(report)
        for other in ("none", "tvm"):
            launches = plan_of(args.fusec, path, other)["launches"]
            if plan["launches"] > launches:
                faults.append(f"{plan['launches']} launches, {launches} under {other}")
        if run:
            # Differences of nearly equal numbers depend on where values were rounded to 16 bits.
            rounding = [] if model["inputs"][0]["dtype"] == "float32" else ["--round-intermediates"]
            p = subprocess.run([args.fusec_run, path, f"--random={seed}", "--device=emulator", "--verify"] + rounding,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
            if p.returncode != 0:
                faults.append(f"executed: exit status {p.returncode}: {p.stdout.decode('utf-8', 'replace')[-900:]}")
            faults += changed_bits(args, path, model, seed, folder)
    except (RuntimeError, subprocess.TimeoutExpired) as e:
        faults = [str(e)]
    for fault in faults:
        print(f"graph {seed}: {fault}", flush=True)
    if faults and args.keep:
        os.makedirs(args.keep, exist_ok=True)
        os.replace(path, os.path.join(args.keep, os.path.basename(path)))
    elif os.path.exists(path):
        os.remove(path)
    return bool(faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--run", type=int, default=10, help="each how many graphs one is executed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep")
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.graphs):
            failures += check(args, args.seed + i, folder, i % args.run == 0)
    print(f"{args.graphs} graphs, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
