#!/usr/bin/env python3
"""check_costs.py FUSEC [--graphs=N] [--models=N] [--seed=N] [--arch=NAME]

Cost reports (--emit=report) of random graphs, of products followed by a norm or softmax (a tenth as many, at least 20),
and of the corpus' full-size models (N of them, evenly spread; all without --models). The parts of each report must be
consistent, and the prediction of `full` must not exceed those of `tvm` and `none`, also on user-defined targets (one
for each random graph). A change of a target's figures must change predictions as expected.

Prints each failure and the totals of the strategies. Exit 0 only without failures."""
import argparse, glob, json, os, random, subprocess, sys, tempfile

import check_merges
import json_schema

TESTS = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(TESTS, "..", "docs", "schemas")
MODEL = os.path.join(TESTS, "corpus", "models", "swiglu_split_bf16.full.json")
SIZES = (1, 3, 8, 32, 64, 96, 128, 256, 500, 512)  # extents of an axis; graphs have two to four axes
STRATEGIES = ("none", "tvm", "full")
# Figures of user-defined targets, with unusual costs of launches, arithmetic or memory.
OWN = ({"launch_seconds": 0}, {"launch_seconds": 1e-9}, {"launch_seconds": 1e-3}, {"float32_rate": 1e9},
       {"float32_rate": 1e10, "special_rate": 1e9, "launch_seconds": 1e-8}, {"bandwidth": 1e9, "launch_seconds": 0},
       {"special_rate": 1e9}, {"float16_rate": 1e9}, {"multiprocessors": 2}, {"latency_seconds": 1e-3},
       {"multiprocessors": 1000, "launch_seconds": 1e-7, "latency_seconds": 1e-5},
       {"float32_rate": 1e9, "launch_seconds": 0, "bandwidth": 1e9})
SMALL = 2e-3  # microseconds: the error of a sum of figures rounded to 1e-4


def emit(fusec, path, *options):
    process = subprocess.run([fusec, path, "--emit=report", "--no-nvrtc", *options], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=600)
    if process.returncode != 0:
        raise RuntimeError(f"exit status {process.returncode}: {process.stderr.decode('utf-8', 'replace')[-500:]}")
    return json.loads(process.stdout)


def near(a, b, count=1):
    return abs(a - b) <= SMALL * count + 1e-6 * max(abs(a), abs(b))


def faults_of_parts(r):
    """Recomputes sums, ratios and the list of groups to measure."""
    groups = r["groups"]
    faults = []
    parts = groups + [r["elsewhere"]]
    for key in ("predicted_us", "unfused_us"):
        if not near(sum(p[key] for p in parts), r[key], len(parts)):
            faults.append(f"{key} is not the sum over the groups and what is elsewhere")
    for key in ("additive_fused", "additive_unfused"):
        for part in r[key]:
            if not near(sum(p[key][part] for p in parts), r[key][part], len(parts)):
                faults.append(f"{key}: {part} is not the sum over the groups and what is elsewhere")
    if not near(r["totals"][r["strategy"]]["predicted_us"], r["predicted_us"]):
        faults.append("the strategy's total is another")
    if not near(r["totals"]["none"]["predicted_us"], r["unfused_us"]):
        faults.append("unfused_us is not the total of none")
    if sum(p["launches"] for p in parts) != r["totals"][r["strategy"]]["launches"]:
        faults.append("launches do not add up")
    for g in groups + [r]:
        for key in ("additive_unfused", "additive_fused"):
            a = g[key]
            if not near(a["compute_us"] + a["memory_us"] + a["launch_us"], a["total_us"]):
                faults.append(f"{g.get('name', 'model')}: {key} does not add up")
        if g["additive_fused"]["total_us"] > 1:
            ratio = g["additive_unfused"]["total_us"] / g["additive_fused"]["total_us"]
            if abs(ratio - g["additive_speedup"]) > 1e-3 * ratio + 1e-4:
                faults.append(f"{g.get('name', 'model')}: additive_speedup {g['additive_speedup']}, expected {ratio}")
    for g in groups:
        a = g["additive_fused"]
        if not a["launch_us"] + max(a["compute_us"], a["memory_us"]) <= g["predicted_us"] + SMALL <= a["total_us"] + 2 * SMALL:
            faults.append(f"{g['name']}: predicted_us is not between roofline and sum")
        if g["roofline"] and a[g["roofline"] + "_us"] < max(a["compute_us"], a["memory_us"], a["launch_us"]):
            faults.append(f"{g['name']}: {g['roofline']} does not decide")
        listed, little = g["name"] in r["to_measure"], g["unfused_us"] < 1.2 * g["predicted_us"]
        if listed and not little and not near(g["unfused_us"], 1.2 * g["predicted_us"]):
            faults.append(f"{g['name']} is to be measured with a speed-up of {g['speedup']}")
        several = g["additive_unfused"]["launch_us"] > 1.5 * g["additive_fused"]["launch_us"]
        if not listed and several and len(g["nodes"]) > 1 and g["speedup"] and g["speedup"] < 1.19 and g["unfused_us"] - g["predicted_us"] > 0.1:
            faults.append(f"{g['name']} is not to be measured with a speed-up of {g['speedup']}")
    return faults


def faults_of_totals(r):
    cost = {s: r["totals"][s]["predicted_us"] for s in STRATEGIES}
    return [f"full is predicted to take {cost['full']} us, {s} {cost[s]} us" for s in ("none", "tvm")
            if cost["full"] > cost[s] * (1 + 1e-6) + SMALL]


def check_targets(fusec, folder):
    """With half the bandwidth, memory takes twice as long and computing as long as before."""
    faults = []
    usual = emit(fusec, MODEL, "--arch=sm_90a")
    path = os.path.join(folder, "target.json")
    target = {"fusec_target": 1, "arch": "sm_90a", "chip": "half", "bandwidth": usual["target"]["bandwidth"] / 2,
              "latency_seconds": usual["target"]["latency_seconds"] * 2, "source": "a test"}
    with open(os.path.join(SCHEMAS, "target.schema.json"), encoding="utf-8") as f:
        faults += json_schema.problems(target, json.load(f))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(target, f)
    half = emit(fusec, MODEL, "--target=" + path)
    if half["arch"] != "sm_90a" or half["target"]["chip"] != "half" or half["target"]["source"] != "a test":
        faults.append(f"the target is {half['target']}")
    before, after = usual["additive_unfused"], half["additive_unfused"]
    if not near(2 * before["memory_us"], after["memory_us"]) or not near(before["compute_us"], after["compute_us"]):
        faults.append(f"half the bandwidth: {before} became {after}")
    # On a target with slow additions the epilogue costs more inside the product than after it, so it is not claimed.
    target |= {"arch": "sm_80", "float32_rate": 1e10, "special_rate": 1e9, "launch_seconds": 1e-8}
    del target["bandwidth"], target["latency_seconds"]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(target, f)
    model = {"fusec": 1, "name": "epilogue", "inputs": [{"name": "x", "dtype": "float16", "shape": [1, 64, 65]}],
             "constants": [{"name": "w", "dtype": "float16", "shape": [40, 65]}],
             "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "w"]},
                       {"name": "y", "op": "add", "inputs": ["p", "p"]}], "outputs": ["y"]}
    claimed = os.path.join(folder, "epilogue.json")
    with open(claimed, "w", encoding="utf-8") as f:
        json.dump(model, f)
    for g in emit(fusec, claimed, "--target=" + path)["groups"]:
        if g["predicted_us"] > g["unfused_us"] + SMALL:
            faults.append(f"{g['name']} takes {g['predicted_us']} us, its nodes {g['unfused_us']} us")
    if emit(fusec, MODEL, "--target=h200")["predicted_us"] > usual["predicted_us"]:
        faults.append("H200 is predicted to be slower than H100")
    return faults


def corpus(count):
    paths = sorted(glob.glob(os.path.join(TESTS, "corpus", "models", "*.full.json")))
    return paths if not count else paths[::max(1, len(paths) // count)][:count]


def product_and_rows(seed):
    """A product and a reduction of its rows. Claims fuse them if rows fit a block, and should not if few blocks would
    do all the work."""
    rng = random.Random(seed)
    dtype = rng.choice(("float16", "bfloat16", "float32"))
    m, k, n = (rng.choice(sizes) for sizes in ((1, 2, 7, 16, 33, 64, 256, 1000, 4096), (32, 64, 100, 512, 1024, 4096),
                                               (24, 64, 100, 128, 256, 512, 768, 1024)))
    last = {"inputs": ["sum"], "name": "y"}
    last |= rng.choice(({"op": "rms_norm", "attrs": {"normalized_shape": [n], "eps": 1e-5}},
                        {"op": "layer_norm", "attrs": {"normalized_shape": [n]}},
                        {"op": "softmax", "attrs": {"dim": 1}}))
    return {"fusec": 1, "name": f"rows_{seed}",
            "inputs": [{"name": "x", "dtype": dtype, "shape": [m, k]}, {"name": "r", "dtype": dtype, "shape": [m, n]}],
            "constants": [{"name": "w", "dtype": dtype, "shape": [n, k]}],
            "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "w"]},
                      {"name": "sum", "op": "add", "inputs": ["p", "r"]}, last],
            "outputs": ["y"]}


def state_in_place(state):
    """One GRU step whose new state overwrites the old one. In the product's epilogue that would need a copy."""
    def node(op, *inputs, name=None, **more):
        nodes.append({"name": name or f"n{len(nodes)}", "op": op, "inputs": list(inputs), **more})
        return nodes[-1]["name"]

    nodes, thirds = [], {"chunks": 3, "dim": 1}
    node("linear", "h", "w", name="p")
    node("chunk", "g", attrs=thirds, outputs=["ir", "iz", "in"])
    node("chunk", "p", attrs=thirds, outputs=["hr", "hz", "hn"])
    reset, update = node("sigmoid", node("add", "ir", "hr")), node("sigmoid", node("add", "iz", "hz"))
    node("lerp", node("tanh", node("add", "in", node("mul", reset, "hn"))), "h", update, name="y")
    inputs = [{"name": n, "dtype": "float32", "shape": [state[0], e]} for n, e in (("h", state[1]), ("g", 3 * state[1]))]
    return {"fusec": 1, "name": f"state_{state[1]}", "inputs": inputs, "nodes": nodes, "outputs": ["y"], "aliases": {"y": "h"},
            "constants": [{"name": "w", "dtype": "float32", "shape": [3 * state[1], state[1]]}]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="sm_80")
    args = parser.parse_args()
    failures, checked = 0, 0
    totals = dict.fromkeys(STRATEGIES, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        def check(path, target=None):
            nonlocal failures, checked
            checked += 1
            try:
                report = emit(args.fusec, path, target or "--arch=" + args.arch)
                faults = faults_of_parts(report) + faults_of_totals(report)
                for s in STRATEGIES if not target else ():
                    totals[s] += report["totals"][s]["predicted_us"]
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                faults = [str(e)]
            failures += bool(faults)
            for fault in faults:
                print(f"{os.path.basename(path)}: {fault}", flush=True)

        for path in corpus(args.models):
            check(path)
        models = [check_merges.Maker(seed, SIZES).make() for seed in range(args.seed, args.seed + args.graphs)]
        models += [product_and_rows(seed) for seed in range(args.seed, args.seed + max(20, args.graphs // 10))]
        models += [state_in_place(state) for state in ((3, 8), (64, 512))]
        for i, model in enumerate(models):
            path = os.path.join(folder, f"random_{i}_{model['name']}.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(model, f)
            check(path)
            own = os.path.join(folder, f"own_{i % len(OWN)}.json")
            with open(own, "w", encoding="utf-8") as f:
                json.dump({"fusec_target": 1, "arch": ("sm_80", "sm_90a")[i // len(OWN) % 2], "source": "a test"}
                          | OWN[i % len(OWN)], f)
            check(path, "--target=" + own)
        for fault in check_targets(args.fusec, folder):
            failures += 1
            print(f"targets: {fault}")
    sums = ", ".join(f"{s} {totals[s] / 1e3:.1f} ms" for s in STRATEGIES)
    print(f"{checked} reports, {failures} failures; predicted in all: {sums}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
