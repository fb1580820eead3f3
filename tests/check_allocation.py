#!/usr/bin/env python3
"""check_allocation.py FUSEC PRELOADED MODEL... [--places=N] [--jobs=N]

Proves that the command line survives a lack of memory. At N calls of malloc, spread evenly over the run, that call
fails, or that call and all later ones (PRELOADED is tests/allocation/fail_malloc.c). Each run must end by itself:
either with its normal output, or with status 3, one line of error, and no output."""
import argparse, os, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor


def run(args, folder, model, place, later, count_file=None):
    out = os.path.join(folder, f"{os.path.basename(model)}.{place}.{later}.cu")
    environment = dict(os.environ, LD_PRELOAD=args.preloaded, FAIL_MALLOC=str(place))
    if later:
        environment["FAIL_MALLOC_LATER"] = "1"
    if count_file:
        environment["FAIL_MALLOC_COUNT"] = count_file
    process = subprocess.run([args.fusec, model, "--no-nvrtc", "--no-cache", "-o", out], env=environment, text=True,
                             capture_output=True, timeout=300)
    text = None
    if os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            text = file.read()
        os.remove(out)
    return process, text


def fault(process, text, right):
    if process.returncode == 0:
        return None if text == right else "status 0 and another output than always"
    if process.returncode != 3:
        return f"status {process.returncode}: {process.stderr[:200]!r}"
    if text is not None:
        return f"status 3 and an output of {len(text)} bytes"
    if "error:" not in process.stderr or "internal error" in process.stderr:
        return f"status 3 and the message {process.stderr[:200]!r}"
    return None


def check(args, folder, model, places):
    """Returns the number of malloc calls and the faults."""
    count_file = os.path.join(folder, "count")
    process, right = run(args, folder, model, -1, False, count_file)
    if process.returncode != 0:
        return 0, [f"{model}: {process.stderr}"]
    with open(count_file, encoding="utf-8") as file:
        calls = int(file.read())

    def faults_at(i):
        place, later = i * calls // places, i % 2 == 1
        wrong = fault(*run(args, folder, model, place, later), right)
        return [f"{model}, call {place} of {calls}{' and later ones' if later else ''}: {wrong}"] if wrong else []

    with ThreadPoolExecutor(args.jobs) as pool:
        return calls, [f for faults in pool.map(faults_at, range(places)) for f in faults]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec", type=os.path.abspath)
    parser.add_argument("preloaded", type=os.path.abspath)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--places", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            places = max(1, args.places // len(args.models))
            calls, found = check(args, folder, model, places)
            faults += found
            print(f"{model}: {calls} calls of malloc, {places} of them failed, {len(found)} faults")
    for line in faults[:20]:
        print(line)
    sys.exit(1 if faults else 0)


main()
