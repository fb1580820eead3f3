#!/usr/bin/env python3
"""check_report_launches.py FUSEC [--graphs=N] [--reductions=N] [--models=N] [--seed=N]

Launches in the cost report are the real ones. For reductions of all shapes and axes, random graphs, graphs of views and
aliases, and the corpus' tiny models, under every strategy, for built-in and user-defined targets: the totals and groups
of the report have as many launches as the partition report, which has as many as the manifest has steps. A seeded
sample of each; prints each failure, exit 0 only without any."""
import argparse, glob, json, os, random, subprocess, sys, tempfile

import check_merges

TESTS = os.path.dirname(os.path.abspath(__file__))
STRATEGIES = ("none", "tvm", "full")
SIZES = (1, 3, 8, 32, 64, 96, 128, 256, 500, 512)
LENGTHS = (1, 2, 17, 32, 48, 49, 65, 129, 264, 1000, 1024, 1025, 4096, 4097, 33000, 100003, 400000)
OWN = ({"launch_seconds": 1e-9}, {"launch_seconds": 0}, {"launch_seconds": 1e-3},
       {"float32_rate": 1e10, "special_rate": 1e9, "launch_seconds": 1e-8}, {"bandwidth": 1e10},
       {"multiprocessors": 1000, "launch_seconds": 1e-7, "latency_seconds": 1e-5}, {"multiprocessors": 2})


def targets(folder):
    """Options that choose a target."""
    options = ["--arch=sm_80", "--arch=sm_90a"]
    for i, figures in enumerate(OWN):
        path = os.path.join(folder, f"target_{i}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"fusec_target": 1, "arch": ("sm_80", "sm_90a")[i % 2], "name": f"own{i}", "source": "a test"}
                      | figures, f)
        options.append("--target=" + path)
    return options


def reduction(rng):
    """One or several reductions over some axes, maybe with a reduction of columns after it or an op before it."""
    rank = rng.choice((1, 2, 2, 2, 3))
    while True:
        shape = [rng.choice(LENGTHS) for _ in range(rank)]
        count = 1
        for extent in shape:
            count *= extent
        if count <= 1 << 28:
            break
    dtype = rng.choice(("float32", "float16", "bfloat16", "float64"))
    nodes, value = [], "x"
    def add(op, inputs, attrs=None):
        nodes.append({"name": f"{op}_{len(nodes)}", "op": op, "inputs": inputs} | ({"attrs": attrs} if attrs else {}))
        return nodes[-1]["name"]
    if rng.random() < 0.3:
        value = add("relu", [value])
    if rng.random() < 0.1:
        value = add("permute", [value], {"dims": rng.sample(range(rank), rank)})
    dims = rng.sample(range(rank), rng.randint(1, rank))
    kind = rng.random()
    if kind < 0.7:
        keep = rng.random() < 0.5
        value = add(rng.choice(("sum", "mean", "amax", "var")), [value], {"dim": sorted(dims), "keepdim": keep})
        if rng.random() < 0.3 and keep:
            value = add("sub", ["x" if nodes[0]["op"] != "permute" and (len(nodes) < 2 or nodes[1]["op"] != "permute")
                                else nodes[-2]["name"], value])
        elif rng.random() < 0.3:
            value = add("exp", [value])
    else:
        value = add(rng.choice(("softmax", "log_softmax")), [value], {"dim": rng.choice(dims)})
    outputs = [value]
    if rng.random() < 0.2:
        outputs.append(add("neg", ["x"]))
    return {"fusec": 1, "name": "reduction", "inputs": [{"name": "x", "dtype": dtype, "shape": shape}],
            "nodes": nodes, "outputs": outputs}


def views(rng):
    """Outputs that are inputs, views of one another, or written into an input's buffer."""
    shape = rng.choice(([4, 6], [64, 64], [1, 7], [0, 3], [300, 128]))
    count = shape[0] * shape[1]
    model = {"fusec": 1, "name": "views",
             "inputs": [{"name": n, "dtype": "float32", "shape": shape} for n in ("x", "y")], "nodes": []}
    values = {"x": shape, "y": shape}
    for i in range(rng.randint(1, 6)):
        op, source = rng.choice(("relu", "neg", "reshape", "reshape", "unsqueeze", "permute")), rng.choice(list(values))
        shape_now, name = values[source], f"n{i}"
        node = {"name": name, "op": op, "inputs": [source]}
        if op == "reshape":
            values[name] = rng.choice(([count], shape, shape[::-1]))
            node["attrs"] = {"shape": values[name]}
        elif op == "unsqueeze":
            node["attrs"] = {"dim": 0}
            values[name] = [1] + shape_now
        elif op == "permute":
            node["attrs"] = {"dims": list(range(len(shape_now)))[::-1]}
            values[name] = shape_now[::-1]
        else:
            values[name] = shape_now
        model["nodes"].append(node)
    model["outputs"] = rng.sample(list(values), rng.randint(1, len(values)))
    same = [v for v in model["outputs"] if values[v] == shape and v not in ("x", "y")]
    inputs = ["x", "y"]
    if rng.random() < 0.5:
        aliases = {}
        for value in same[:2]:
            aliases[value] = inputs.pop(rng.randrange(len(inputs)))
        model["aliases"] = aliases
    return model


def run(fusec, path, target, strategy, folder):
    files = {kind: os.path.join(folder, kind + ".json") for kind in ("report", "partition", "manifest")}
    process = subprocess.run([fusec, path, "--no-nvrtc", target, "--strategy=" + strategy,
                              *(f"--emit={kind}={file}" for kind, file in files.items())],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if process.returncode != 0:
        raise RuntimeError(f"exit status {process.returncode}: {process.stderr.decode('utf-8', 'replace')[-500:]}")
    result = {}
    for kind, file in files.items():
        with open(file, encoding="utf-8") as f:
            result[kind] = json.load(f)
    return result


def faults_of(fusec, path, target, folder):
    faults, launched, reports = [], {}, {}
    for strategy in STRATEGIES:
        emitted = run(fusec, path, target, strategy, folder)
        steps = len(emitted["manifest"]["launches"])
        launched[strategy] = steps
        reports[strategy] = emitted["report"]
        if emitted["partition"]["launches"] != steps:
            faults.append(f"{strategy}: the partition report has {emitted['partition']['launches']} launches, "
                          f"the manifest {steps} steps")
        groups = {g["name"]: g["launches"] for g in emitted["partition"]["groups"]}
        for g in emitted["report"]["groups"]:
            if g["launches"] != groups[g["name"]]:
                faults.append(f"{strategy}: {g['name']} has {g['launches']} launches in the report, "
                              f"{groups[g['name']]} in the partition report")
    for strategy, report in reports.items():
        said = {of: report["totals"][of]["launches"] for of in STRATEGIES}
        if said != launched:
            faults.append(f"the report under {strategy} has launches {said}, the manifests {launched}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--target")
    parser.add_argument("--graphs", type=int, default=10)
    parser.add_argument("--reductions", type=int, default=20)
    parser.add_argument("--views", type=int, default=10)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failures, checked = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        options = [args.target] if args.target else targets(folder)

        def check(path, target):
            nonlocal failures, checked
            checked += 1
            try:
                faults = faults_of(args.fusec, path, target, folder)
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                faults = [] if "aliases that exclude each other" in str(e) else [str(e)]
            failures += bool(faults)
            for fault in faults:
                print(f"{os.path.basename(path)} {os.path.basename(target)}: {fault}", flush=True)
            return faults

        for path in args.files:
            for target in options:
                check(path, target)
        if not args.files:
            rng = random.Random(args.seed)
            models = sorted(glob.glob(os.path.join(TESTS, "corpus", "models", "*.tiny.json")))
            for path in rng.sample(models, min(args.models, len(models))):
                check(path, rng.choice(options))
            made = [check_merges.Maker(args.seed + i, SIZES).make() for i in range(args.graphs)]
            made += [reduction(rng) for _ in range(args.reductions)] + [views(rng) for _ in range(args.views)]
            for i, model in enumerate(made):
                path = os.path.join(folder, f"{model['name']}_{i}.json")
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(model, f)
                if check(path, rng.choice(options)):
                    print("  " + json.dumps(model))
    print(f"{checked} models, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
