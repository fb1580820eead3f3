#!/usr/bin/env python3
"""check_arena.py FUSEC [--graphs=N] [--strategies=full,none] [--only=TEXT]

Compares the workspace of every tiny model of the corpus and of N random graphs with a lower bound, the largest set of
values that are live at once. Symbols have their hints and other values. Also checks that the report and the manifest
agree, and prints the figures. That live values never overlap is checked by the emulator, not here. Exit 0 only if the
sum is at most 1.1 times the lower bound, and no model of more than 64 KiB takes more than 1.6 times."""
import argparse, glob, json, os, random, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def value(formula, symbols):
    return eval(formula, {"__builtins__": {}, "min": min, "max": max}, symbols)  # integers, symbols, + - * // % min max


def random_graph(seed):
    """Elementwise chains with skips, reductions and products between, some with symbols."""
    r = random.Random(seed)
    rows = "n" if r.random() < 0.5 else r.choice([64, 256])
    nodes, pool = [], ["x"]
    for i in range(r.randint(4, 40)):
        name, kind = f"v{i}", r.random()
        a, b = r.choice(pool[-4:]), r.choice(pool)
        if kind < 0.3:
            nodes.append({"name": name, "op": "softmax", "inputs": [a], "attrs": {"dim": 1}})
        elif kind < 0.5:
            nodes.append({"name": name, "op": "linear", "inputs": [a, "w"]})
        elif kind < 0.7:
            nodes.append({"name": name, "op": "cumsum", "inputs": [a], "attrs": {"dim": 1}})
        else:
            nodes.append({"name": name, "op": "add", "inputs": [a, b]})
        pool.append(name)
    return {"fusec": 1, "name": f"random_{seed}", "symbols": {"n": {"max": 4096, "hint": 300}} if rows == "n" else {},
            "inputs": [{"name": "x", "dtype": "float32", "shape": [rows, 96]}],
            "constants": [{"name": "w", "dtype": "float32", "shape": [96, 96]}], "nodes": nodes, "outputs": [pool[-1]]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--strategies", default="full,none")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failures, takes, least, worst = 0, 0, 0, []
    with tempfile.TemporaryDirectory(prefix="fusec_arena_") as folder:
        models = sorted(glob.glob(os.path.join(HERE, "corpus", "models", f"*{args.only}*.tiny.json")))
        for seed in range(args.graphs):
            models.append(os.path.join(folder, f"random_{seed}.json"))
            with open(models[-1], "w", encoding="utf-8") as f:
                json.dump(random_graph(seed), f)
        for path in models:
            for strategy in args.strategies.split(","):
                report = os.path.join(folder, "report.json")
                p = subprocess.run([args.fusec, path, "--emit=manifest", "--emit=report=" + report, "--no-nvrtc",
                                    "--strategy=" + strategy], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if p.returncode != 0:
                    continue  # a custom op without a launcher
                manifest = json.loads(p.stdout)
                hints = {s["name"]: s["hint"] for s in manifest["symbols"]}
                arena = value(manifest["workspace_bytes"], hints)
                bound = value(manifest["least_workspace_bytes"], hints)
                with open(report, encoding="utf-8") as f:
                    memory = json.load(f)["memory"]
                if (memory["workspace_bytes"], memory["least_workspace_bytes"]) != (arena, bound):
                    failures += 1
                    print(f"FAILED {path} {strategy}: the report says {memory}, the manifest {arena} of {bound}")
                takes, least = takes + arena, least + bound
                if bound:
                    worst.append((arena / bound, arena, bound, os.path.basename(path), strategy))
                if arena < bound or (arena > 65536 and arena > 1.6 * bound):
                    failures += 1
                    print(f"FAILED {path} {strategy}: {arena} bytes, {bound} are alive at once")
    worst.sort(reverse=True)
    for ratio, arena, bound, name, strategy in worst[:8]:
        print(f"  {ratio:.3f}  {arena} of {bound}  {name} {strategy}")
    print(f"{len(worst)} arenas: {takes} bytes, {takes / max(1, least):.4f} times the least; {failures} failures")
    sys.exit(1 if failures or takes > 1.1 * least else 0)


if __name__ == "__main__":
    main()
