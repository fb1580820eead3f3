#!/usr/bin/env python3
"""instructions.py [--update] [--sample=N] [--jobs=N] [BIN_DIR]: compiling to text may not become slower.

Holds the instructions that `fusec --no-nvrtc` executes, in millions, against bench/instructions.json, for examples and
the full-size models of tests/corpus/models (sm_80). Callgrind counts them, so a busy machine does not change them.

--sample=N looks at every N-th model. Exit 1 where a count is more than 5 % above the file's, or a model is missing from
it. Smaller counts pass; those by more than 5 % are printed. Exit 77 (skipped) without valgrind, or where the programs
were built by another compiler than the file's counts.

--update writes the file anew. Where that makes a count larger, the commit says why."""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import compile_time

COUNTS = os.path.join(compile_time.ROOT, "bench", "instructions.json")
MORE = 1.05


def compiler_of(bin_dir):
    """The first line of the compiler's --version, and the build type."""
    with open(os.path.join(bin_dir, "..", "CMakeCache.txt"), encoding="utf-8") as f:
        cache = f.read()
    compiler, kind = (re.search(rf"^{name}:\w+=(.*)$", cache, re.M)[1] for name in ("CMAKE_CXX_COMPILER", "CMAKE_BUILD_TYPE"))
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{version.split('/')[-1].replace('c++', 'g++')}, {kind}"


def counted(fusec, path):
    with tempfile.TemporaryDirectory() as folder:
        command = [fusec, path, "--no-nvrtc", "--quiet", "--arch=sm_80", "-o", os.path.join(folder, "out.cu")]
        return round(compile_time.instructions(command), 1)


def compare(counts, known):
    """The number of models that became slower; prints them and those that became faster."""
    worse = 0
    for name, count in counts.items():
        was = known.get(name)
        if was is None:
            worse += 1
            print(f"not in the file: {name}: {count} M instructions")
        elif count > MORE * was:
            worse += 1
            print(f"worse: {name}: {count} M instructions, was {was}")
        elif was > MORE * count:
            print(f"better: {name}: {count} M instructions, was {was}")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(compile_time.ROOT, "build", "release", "bin"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: no valgrind")
        sys.exit(77)
    compiler = compiler_of(options.bin_dir)
    file = {}
    if os.path.exists(COUNTS):
        with open(COUNTS, encoding="utf-8") as f:
            file = json.load(f)
    if not options.update and file.get("compiler") != compiler:
        print(f"skipped: built by {compiler}, the counts are of {file.get('compiler')}")
        sys.exit(77)
    models = compile_time.models_of([])[:: options.sample]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        fusec = os.path.join(options.bin_dir, "fusec")
        counts = dict(zip((name for name, _ in models), pool.map(lambda model: counted(fusec, model[1]), models)))
    worse = compare(counts, file.get("models", {}))
    print(f"{len(counts)} models, {worse} slower or missing")
    if options.update:
        with open(COUNTS, "w", encoding="utf-8") as f:
            json.dump({"compiler": compiler, "models": file.get("models", {}) | counts}, f, indent=1, sort_keys=True)
            f.write("\n")
        return
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
