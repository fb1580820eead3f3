#!/usr/bin/env python3
"""compile_models.py FUSEC [--sample=N] [--seed=N] [--nvcc=NVCC] [--only=TEXT] [--jobs=N] [--gemm=WHO]

Compiles models of tests/corpus/models with `FUSEC MODEL -o out.cu`: each graph (full and tiny) under each strategy for
each target; NVRTC proves the source. --sample takes that many of these combinations, the same ones for the same seed.
With --nvcc, nvcc also compiles the emitted files, host part included (files that differ only in comments once), and
pairs of them are linked into one program, with the libraries that they call.

Prints each failure and, last, 'N of M compiled'. Exit 0 only when all did, 77 if the compiler is missing."""
import argparse, concurrent.futures, hashlib, json, os, random, re, shutil, subprocess, sys, tempfile, threading

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "models")
STRATEGIES = ("none", "tvm", "full")
TARGETS = ("sm_80", "sm_90a")


def combinations(only):
    """Every (model file, strategy, target). Models with external calls are only for the partition report."""
    with open(os.path.join(MODELS, "index.json"), encoding="utf-8") as f:
        index = json.load(f)
    files = [e["files"][size] for e in index for size in ("full", "tiny")]
    return [(f, s, t) for f in files for s in STRATEGIES for t in TARGETS if only in f"{f} {s} {t}"]


class NoNvrtc(Exception):
    """The program warned that it found no NVRTC to prove the source with."""


def run(command, seconds):
    """None if the command succeeds, else its output."""
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    text = p.stdout.decode("utf-8", "replace").strip()
    if p.returncode == 0 and "no libnvrtc found" in text:
        raise NoNvrtc(text)
    return None if p.returncode == 0 else f"exit status {p.returncode}: {text[-1500:]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gemm", default="builtin", help="who multiplies matrices; others than builtin: under full alone")
    parser.add_argument("--keep", default="", help="a folder for the emitted files")
    args = parser.parse_args()
    if args.nvcc and not shutil.which(args.nvcc):
        print(f"skipped: no {args.nvcc} here, so emitted files are not compiled with their host part")
        sys.exit(77)

    cases = [c for c in combinations(args.only) if args.gemm == "builtin" or c[1] == "full"]
    if args.sample and args.sample < len(cases):
        cases = sorted(random.Random(args.seed).sample(cases, args.sample))
    folder = args.keep or tempfile.mkdtemp(prefix="fusec_compile_")
    os.makedirs(folder, exist_ok=True)

    seen, lock = set(), threading.Lock()

    def is_new(file, target):
        with open(file, encoding="utf-8") as f:
            code = re.sub(r"^\s*//.*\n", "", f.read(), flags=re.M)
        key = (target, hashlib.sha256(code.encode()).hexdigest())
        with lock:
            new = key not in seen
            seen.add(key)
        return new

    def compile_one(case):
        model, strategy, target = case
        stem = os.path.join(folder, f"{model[:-5]}.{strategy}.{target}")
        emit = [args.fusec, os.path.join(MODELS, model), "-o", stem + ".cu", f"--strategy={strategy}",
                f"--arch={target}", f"--gemm={args.gemm}", f"--cache-dir={folder}/cache"]
        why = run(emit + (["--no-nvrtc"] if args.nvcc else []), 900)
        if why is None and not os.path.exists(stem + ".cu"):
            why = "exit status 0, but no file was written"
        if why is None and args.nvcc and is_new(stem + ".cu", target):
            why = run([args.nvcc, f"-arch={target}", "-c", stem + ".cu", "-o", stem + ".o"], 900)
        return case, why

    failed = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for case, why in pool.map(compile_one, cases):
                if why is not None:
                    failed.append(case)
                    print(f"FAILED {' '.join(case)}\n    {why}", flush=True)
        except NoNvrtc as e:
            print(f"skipped: {e}")
            sys.exit(77)
    linked_badly = link_pairs(args.nvcc, folder, [c for c in cases if c not in failed]) if args.nvcc else 0
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(cases) - len(failed)} of {len(cases)} compiled")
    sys.exit(1 if failed or linked_badly or not cases else 0)


def libraries_of(files):
    """The libraries that emitted files must be linked with."""
    texts = []
    for file in files:
        with open(file, encoding="utf-8") as f:
            texts.append(f.read())
    known = {"#include <nccl.h>": "-lnccl", "#include <cublasLt.h>": "-lcublasLt"}
    return [library for include, library in known.items() if any(include in text for text in texts)]


def link_pairs(nvcc, folder, cases):
    """Links neighbours of one target, of different models, into a program each. Returns the number of pairs that do not
    link."""
    bad = 0
    empty = os.path.join(folder, "empty_main.cpp")
    with open(empty, "w", encoding="utf-8") as f:
        f.write("int main() { return 0; }\n")
    for target in TARGETS:
        objects = {}
        for model, strategy, t in cases:
            if t == target:
                file = os.path.join(folder, f"{model[:-5]}.{strategy}.{t}.o")
                if os.path.exists(file):
                    objects.setdefault(model.split(".")[0], file)
        stems = sorted(objects)
        for a, b in zip(stems[::2], stems[1::2]):
            libraries = libraries_of([objects[m][:-2] + ".cu" for m in (a, b)])
            why = run([nvcc, f"-arch={target}", empty, objects[a], objects[b], *libraries, "-o",
                       os.path.join(folder, "pair")], 300)
            if why is not None:
                bad += 1
                print(f"FAILED to link {a} and {b} into one program\n    {why}", flush=True)
    return bad


if __name__ == "__main__":
    main()
