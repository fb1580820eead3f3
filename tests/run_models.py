#!/usr/bin/env python3
"""run_models.py FUSEC_RUN [--device=reference|emulator|cuda] [--sample=N] [--seed=N] [--only=TEXT] [-- OPTION...]

Runs every tiny model of tests/corpus/models on a device, for each of its cases, and compares the outputs with the
expected ones within the tolerances of index.json. Options after -- go to fusec-run (--strategy=full, --arch=sm_90a).
Prints each failure and, last, 'N of M cases within tolerance'; exit 0 only when all are."""
import argparse, json, os, random, subprocess, sys, tempfile

import tensors

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "models")


def all_cases(only):
    """(entry, inputs file, expected file) for every model with data and every further size it lists."""
    with open(os.path.join(MODELS, "index.json"), encoding="utf-8") as f:
        index = json.load(f)
    return [(e, c["in"], c["out"]) for e in index if not e.get("partition_only")
            for c in [e["files"]] + e.get("cases", []) if only in f"{e['name']} {c['in']}"]


def run_one(args, case, folder):
    """None when the model runs and all its outputs are within tolerance, else why not."""
    entry, inputs, expected = case
    outputs = os.path.join(folder, "out.safetensors")
    if os.path.exists(outputs):
        os.remove(outputs)
    command = [args.fusec_run, os.path.join(MODELS, entry["files"]["tiny"]),
               "--inputs=" + os.path.join(MODELS, inputs), "--outputs=" + outputs, "--device=" + args.device]
    try:
        p = subprocess.run(command + args.options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if p.returncode != 0:
        return f"exit status {p.returncode}: {p.stdout.decode('utf-8', 'replace').strip()[-1500:]}"
    if not os.path.exists(outputs):
        return "exit status 0, but no outputs were written"
    want, got = tensors.read(os.path.join(MODELS, expected)), tensors.read(outputs)
    if set(want) != set(got):
        return f"outputs are {sorted(got)}, expected {sorted(want)}"
    wrong = []
    for name in sorted(want):
        rtol, atol = entry["tol"].get(name, (entry["rtol"], entry["atol"]))
        why = tensors.difference(got[name], want[name], rtol, atol)
        if why is not None:
            wrong.append(f"{name}: {why}")
    return None if not wrong else "\n    ".join(wrong[:5])


def main():
    argv = sys.argv[1:]
    options = argv[argv.index("--") + 1:] if "--" in argv else []
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("--device", default="reference")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    args.options = options

    cases = all_cases(args.only)
    if args.sample and args.sample < len(cases):
        cases = [cases[i] for i in sorted(random.Random(args.seed).sample(range(len(cases)), args.sample))]
    good = 0
    with tempfile.TemporaryDirectory(prefix="fusec_run_") as folder:
        for case in cases:
            why = run_one(args, case, folder)
            if why is None:
                good += 1
            else:
                print(f"FAILED {case[0]['name']} ({case[1]})\n    {why}", flush=True)
    print(f"{good} of {len(cases)} cases within tolerance")
    sys.exit(0 if cases and good == len(cases) else 1)


if __name__ == "__main__":
    main()
