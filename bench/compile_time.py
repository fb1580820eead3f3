#!/usr/bin/env python3
"""compile_time.py [BIN_DIR] [--models=FOLDER] [--only=NAME,...] [--layers=N,...] [--runs=N] [--arch=ARCH] [--callgrind]
[--markdown=FILE]

How long compiling takes, for examples, the full-size models of tests/corpus/models, and examples/llama_block.json of so
many layers (default 1, 8, 32, 80):

  text    CUDA text alone (--no-nvrtc --quiet)       cold    every kernel proven by NVRTC, no cache
  warm    the same command again, with a cache       passes  the three slowest stages of the text

Times are milliseconds of CPU of the whole process, its NVRTC processes included: of text and warm the least of the
runs, of cold one run. `wall` is the wall time of the cold run. MiB is the peak of memory of the text run; it is never
below the peak of this script. --callgrind adds the instructions of the text run, in millions; a busy machine does not
change them (needs valgrind). The last line has geometric means over the models; stacks of layers do not count."""
import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import check_compile_time


def models_of(only, folder=None):
    patterns = [os.path.join(folder, "*.json")] if folder else [
        os.path.join(ROOT, "examples", "*.json"), os.path.join(ROOT, "tests", "corpus", "models", "*.full.json")]
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    named = [(os.path.basename(path).removesuffix(".json").removesuffix(".full"), path) for path in paths]
    return [(name, path) for name, path in named if not only or name in only]


def layers_of(counts, folder):
    with open(os.path.join(ROOT, "examples", "llama_block.json"), encoding="utf-8") as f:
        block = json.load(f)
    for count in counts:
        path = os.path.join(folder, f"layers_{count}.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(check_compile_time.repeated(block, count), f)
        yield f"llama_block x {count}", path


def run(command):
    """Milliseconds of CPU and of wall, MiB at the peak, and what the program says as JSON."""
    start = time.monotonic()
    process = subprocess.Popen(command + ["--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}:\n{said}")
    return 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * (time.monotonic() - start), usage.ru_maxrss / 1024, json.loads(said)


def least(command, runs):
    return min((run(command) for _ in range(runs)), key=lambda result: result[0])


def instructions(command):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1]) / 1e6


def measured(fusec, name, path, arguments, folder):
    base = [fusec, path, f"--arch={arguments.arch}", "-o", os.path.join(folder, "out.cu")]
    text, _, peak, said = least(base + ["--no-nvrtc", "--time-passes", "--quiet"], arguments.runs)
    cold, wall, _, _ = least(base + ["--no-cache"], 1)
    cached = base + ["--cache-dir=" + os.path.join(folder, "cache")]
    run(cached)
    warm, _, _, again = least(cached, arguments.runs)
    if not again["from_cache"]:
        raise SystemExit(f"{name}: the result was not kept")
    stages = sorted(said["times"], key=lambda stage: -stage["milliseconds"])[:3]
    row = {"model": name, "nodes": said["nodes"], "kernels": said.get("kernels", 0) + said.get("variants", 0), "text": text,
           "cold": cold, "wall": wall, "warm": warm, "MiB": peak,
           "passes": ", ".join(f"{stage['stage']} {stage['milliseconds']:.1f}" for stage in stages)}
    if arguments.callgrind:
        row["M instructions"] = instructions(base + ["--no-nvrtc", "--quiet"])
    return row


def shown(value):
    return value if isinstance(value, str) else f"{value:.0f}" if isinstance(value, int) or value >= 100 else f"{value:.1f}"


def geometric_mean(values):
    return math.exp(sum(math.log(max(value, 0.1)) for value in values) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--models", help="a folder of model files to measure in place of the repository's")
    parser.add_argument("--only", type=lambda text: set(text.split(",")), default=set())
    parser.add_argument("--layers", type=lambda text: [int(n) for n in text.split(",") if n], default=[1, 8, 32, 80])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--callgrind", action="store_true")
    parser.add_argument("--markdown", help="a file for the table")
    arguments = parser.parse_args()
    fusec = os.path.join(arguments.bin_dir, "fusec")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models = models_of(arguments.only, arguments.models)
        for name, path in [*models, *layers_of(arguments.layers, folder)]:
            rows.append(measured(fusec, name, path, arguments, folder))
            print(", ".join(f"{key} {shown(value)}" for key, value in rows[-1].items()), flush=True)
    if not rows:
        raise SystemExit("no model of these names")
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" + " ---: |" * (len(columns) - 2) + " --- |"]
    lines += ["| " + " | ".join(shown(row[column]) for column in columns) + " |" for row in rows]
    if models:
        means = {column: geometric_mean([row[column] for row in rows[:len(models)]]) for column in ("text", "cold", "wall", "warm")}
        lines += ["", f"Geometric means over {len(models)} models: " +
                  ", ".join(f"{column} {value:.1f} ms" for column, value in means.items()) + "."]
        print(lines[-1])
    if arguments.markdown:
        with open(arguments.markdown, "w", encoding="utf-8") as f:
            f.write(f"# Compile time\n\n`{' '.join(['bench/compile_time.py', *sys.argv[1:]])}`, {time.strftime('%Y-%m-%d')}, "
                    f"{os.cpu_count()} cores, {arguments.arch}. Milliseconds; what the columns are says the command's --help.\n\n")
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
