#!/usr/bin/env python3
"""check_plan_replay.py FUSEC [--models=N] [--tiny]

A plan that is written and given back produces the same file, byte for byte: --emit=plan, then --plan, for N models of
the corpus, evenly spread (all without --models), under full. Also with disabled passes and patterns, which --plan alone
disables again. Exit 0 only without failures."""
import argparse, glob, os, subprocess, sys, tempfile

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "models")

LEFT_OUT = ((), ("--disable-pass=choose-layouts", "--disable-pass=simplify-algebra", "--disable-pattern=all"))


def emit(fusec, model, *options):
    done = subprocess.run([fusec, model, "--strategy=full", "--no-nvrtc", *options], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-400:]}")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def check(fusec, model, folder, left_out):
    plan, first, again, plan_again = (os.path.join(folder, n) for n in ("plan.json", "a.cu", "b.cu", "plan2.json"))
    emit(fusec, model, *left_out, f"--emit=cu={first}", f"--emit=plan={plan}")
    emit(fusec, model, f"--plan={plan}", f"--emit=cu={again}", f"--emit=plan={plan_again}")
    if read(first) != read(again):
        return "another file"
    return "" if read(plan) == read(plan_again) else "another plan"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(MODELS, "*.tiny.json" if args.tiny else "*.full.json")))
    if args.models:
        paths = paths[::max(1, len(paths) // args.models)][:args.models]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                faults = (check(os.path.abspath(args.fusec), path, folder, left_out) for left_out in LEFT_OUT)
                fault = next((f for f in faults if f), "")
            except RuntimeError as e:
                fault = str(e)
            failures += bool(fault)
            if fault:
                print(f"{os.path.basename(path)}: {fault}", flush=True)
    print(f"{len(paths)} plans replayed, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
