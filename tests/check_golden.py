#!/usr/bin/env python3
"""check_golden.py FUSEC [--fusec-run=PROGRAM] [--update]

Compiles every NAME.json of tests/golden and compares the outputs, byte for byte, with NAME.cu (source),
NAME.partition.json (groups) and NAME.txt (graph as text). --update rewrites these files; review the change with git
diff. With --fusec-run, and if NVRTC is found, the emulator also executes the kernels on random inputs, as their
compiled host parts launch them, and results are compared with the reference device."""
import argparse, difflib, os, sys, tempfile

import golden_models
from golden_models import FOLDER, Failure

ENDINGS = {"cu": ".cu", "partition": ".partition.json", "ir": ".txt"}


def difference(name, expected, got):
    lines = difflib.unified_diff(expected.decode("utf-8", "replace").splitlines(),
                                 got.decode("utf-8", "replace").splitlines(), name, "emitted", lineterm="", n=1)
    return "\n".join(list(lines)[:40]) or f"{name}: the bytes differ"


def check_outputs(fusec, name, scratch, update):
    # Run in the folder itself, so that outputs cannot contain the project's path.
    emitted = golden_models.emit(fusec, name + ".json", ENDINGS, scratch, folder=FOLDER)
    problems = []
    for kind, got in emitted.items():
        path = os.path.join(FOLDER, name + ENDINGS[kind])
        expected = b""
        if os.path.exists(path):
            with open(path, "rb") as f:
                expected = f.read()
        if got == expected:
            continue
        if update:
            with open(path, "wb") as f:
                f.write(got)
            print("rewrote " + os.path.basename(path))
        else:
            problems.append(difference(os.path.basename(path), expected, got))
    if problems:
        raise Failure("\n".join(problems))


def leftovers():
    """Expected outputs without a model."""
    expected = {name + ending for name in golden_models.names() for ending in [".json", *ENDINGS.values()]}
    return sorted(set(os.listdir(FOLDER)) - expected)


def check_numbers(fusec_run, name):
    """True if the emulator agrees with the reference, False if NVRTC is missing."""
    process = golden_models.run([fusec_run, name + ".json", "--random=1", "--device=emulator", "--verify",
                                 "--host-part=recorded"], FOLDER, good=(0, 3))
    if golden_models.lacks_nvrtc(process):
        return False
    if process.returncode != 0:
        raise Failure(process.stderr.decode("utf-8", "replace").strip()[-1500:])
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--fusec-run")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    fusec = os.path.abspath(args.fusec)
    failures = 0

    def attempt(name, check, *arguments):
        nonlocal failures
        try:
            return check(*arguments)
        except Failure as e:
            failures += 1
            print(f"FAILED {name}\n{e}", flush=True)
            return None

    with tempfile.TemporaryDirectory(prefix="fusec_golden_") as scratch:
        for name in golden_models.names():
            attempt(name, check_outputs, fusec, name, scratch, args.update)
    for name in leftovers():
        failures += 1
        print(f"FAILED tests/golden/{name} belongs to no model")
    executed = []
    for name in golden_models.names() if args.fusec_run else []:
        if golden_models.calls_launcher(golden_models.load(name)):
            print(f"skipped: {name} on the emulator: it calls a launcher from outside")
            continue
        agrees = attempt(name, check_numbers, os.path.abspath(args.fusec_run), name)
        if agrees is False:
            print("skipped: every golden model on the emulator: NVRTC is not on this machine")
            break
        if agrees:
            executed.append(name)
    print(f"{len(golden_models.names())} models compared, {len(executed)} executed, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
