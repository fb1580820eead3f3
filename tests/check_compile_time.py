#!/usr/bin/env python3
"""check_compile_time.py FUSEC MODEL [--ms=N] [--runs=N]

FUSEC takes at most N milliseconds for the model without NVRTC: CPU time of the whole process, the least of several
runs. A slow or busy machine is allowed more, in proportion to a loop in Python. The goal is 25 ms; the limit is four
times that, which a quadratic pass or repeated lowering of equal groups exceeds. Also checks that repeated layers are
lowered once: eight times the layers take at most eight times as long. Exit 1 if a limit is exceeded."""
import argparse
import copy
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

LOOP_MS = 110  # yardstick_ms() on a quiet machine


def yardstick_ms():
    before, total = time.process_time(), 0
    for i in range(2_000_000):
        total += i * i % 7
    return 1e3 * (time.process_time() - before)


def cpu_ms(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def least_ms(fusec, model, scratch, runs):
    command = [fusec, model, "--no-nvrtc", "-o", os.path.join(scratch, "out.cu")]
    return min(cpu_ms(command) for _ in range(runs))


def repeated(model, layers):
    """The model's nodes `layers` times; each layer reads the output of the previous one instead of the first input.
    """
    whole = copy.deepcopy(model)
    first, last = model["inputs"][0]["name"], model["outputs"][0]
    produced = {n["name"] for n in model["nodes"]} | {o for n in model["nodes"] for o in n.get("outputs", [])}
    whole["nodes"], before = [], first
    for layer in range(layers):
        def now(v, layer=layer, before=before):
            if not isinstance(v, str):
                return v
            return before if v == first else f"{v}.{layer}" if v in produced else v
        for node in model["nodes"]:
            fresh = copy.deepcopy(node)
            fresh["name"] = f"{node['name']}.{layer}"
            fresh["inputs"] = [now(v) for v in node["inputs"]]
            if "outputs" in node:
                fresh["outputs"] = [f"{o}.{layer}" for o in node["outputs"]]
            whole["nodes"].append(fresh)
        before = f"{last}.{layer}"
    whole["outputs"] = [before]
    return whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("model")
    parser.add_argument("--ms", type=float, default=100)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        loop = min(yardstick_ms() for _ in range(options.runs))
        allowed = options.ms * max(1, loop / LOOP_MS)
        once = least_ms(options.fusec, options.model, scratch, options.runs)
        print(f"{options.model}: {once:.1f} ms of CPU without NVRTC, at most {allowed:.0f} allowed "
              f"({options.ms:.0f} on a quiet machine)")
        with open(options.model, encoding="utf-8") as f:
            layers = repeated(json.load(f), 8)
        path = os.path.join(scratch, "layers.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(layers, f)
        eight = least_ms(options.fusec, path, scratch, options.runs)
        print(f"eight layers: {eight:.1f} ms")
    sys.exit(0 if once <= allowed and eight <= 8 * max(once, 20) else 1)


if __name__ == "__main__":
    main()
