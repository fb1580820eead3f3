#!/usr/bin/env python3
"""gate.py [--update] [--sample=N] [--seed=N] [--jobs=N] [BIN_DIR]: no model of the corpus may become more expensive.

Holds every model of tests/corpus/models under --strategy=full, for sm_80 and sm_90a, against bench/gate.json:

    launches, bytes, predicted_us   at full size, from the report; nothing is run
    requested_bytes, instructions   at the tiny size, executed on the emulator; moves left out, ptxas removes most

--sample=N looks at N of the models, by seed. Exit 1 where a figure is more than 2 % worse than the file's, or a model is
missing from it. Better figures pass and are printed.

--update writes the file anew. Where that makes a figure worse, the commit says why."""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(ROOT, "tests", "corpus", "models")
GATE = os.path.join(ROOT, "bench", "gate.json")
TARGETS = ("sm_80", "sm_90a")
WORSE = 1.02


def run(command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def predicted(bin_dir, entry, target):
    path = os.path.join(MODELS, entry["files"].get("full", entry["files"]["tiny"]))
    command = [os.path.join(bin_dir, "fusec"), path, f"--arch={target}", "--no-nvrtc", "--emit=report"]
    report = json.loads(run(command))
    totals = report["totals"]["full"]
    return {"launches": totals["launches"], "bytes": totals["bytes"]["read"] + totals["bytes"]["written"],
            "predicted_us": report["predicted_us"]}


def executed(bin_dir, entry, target):
    files = entry["files"]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        run([os.path.join(bin_dir, "fusec-run"), os.path.join(MODELS, files["tiny"]), f"--arch={target}",
             "--inputs=" + os.path.join(MODELS, files["in"]), "--device=emulator", f"--profile={profile}", "--json"])
        with open(profile, encoding="utf-8") as f:
            kernels = json.load(f)["kernels"]
    return {"requested_bytes": sum(k["requested_bytes"] for k in kernels),
            "instructions": sum(n for k in kernels for name, n in k["instructions"].items() if name != "move")}


def figures(bin_dir, entry, is_run):
    """By target; a model that cannot be compiled here (an op without source) has none."""
    found = {}
    for target in TARGETS:
        found[target] = predicted(bin_dir, entry, target)
        if is_run:
            found[target] |= executed(bin_dir, entry, target)
    return found


def compare(name, now, before, worse, better):
    for target, counts in now.items():
        for figure, value in counts.items():
            was = before.get(target, {}).get(figure)
            if was is None:
                worse.append(f"{name} {target}: {figure} is not in gate.json")
            elif value > was * WORSE:
                worse.append(f"{name} {target}: {figure} {value:g}, was {was:g} ({value / max(was, 1e-9):.3f} of it)")
            elif value * WORSE < was:
                better.append(f"{name} {target}: {figure} {value:g}, was {was:g} ({value / was:.3f} of it)")


def write(found):
    lines = [f'  {json.dumps(name)}: {json.dumps(found[name])}' for name in sorted(found)]
    with open(GATE, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    with open(os.path.join(MODELS, "index.json"), encoding="utf-8") as f:
        entries = [e for e in json.load(f) if not e.get("partition_only")]
    if options.sample and not options.update:
        entries = random.Random(options.seed).sample(entries, min(options.sample, len(entries)))
    runnable = [e["name"] for e in entries if "in" in e["files"]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda e: figures(options.bin_dir, e, e["name"] in runnable), entries)
        found = {e["name"]: result for e, result in zip(entries, results)}
    worse, better = [], []
    if os.path.exists(GATE):
        with open(GATE, encoding="utf-8") as f:
            before = json.load(f)
        for name, now in found.items():
            compare(name, now, before.get(name, {}), worse, better)
    if options.update:
        write(found)
    for title, changes in (("worse", worse), ("better", better)):
        print("\n".join(f"{title}: {change}" for change in changes), end="\n" if changes else "")
    print(f"{len(found)} models, {len(runnable)} of them executed: {len(worse)} figures worse, {len(better)} better")
    return 1 if worse and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
