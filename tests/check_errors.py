#!/usr/bin/env python3
"""check_errors.py FUSEC [--update]

For every malformed model of tests/errors the program exits with status 1, prints exactly the expected error (message,
place in the file, line with carets), prints nothing to standard output and leaves an existing output file unchanged.
The models of tests/errors/program are read without an error; a later step refuses them. --update rewrites the
expectations; review them with git diff."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "errors")
PREFIX = b"error: "
SENTINEL = b"what was there before\n"


def told(fusec, folder, name, *options):
    """The program's output. Runs in the model's folder, so that the message names the file as the expectation does.
    """
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    return subprocess.run([fusec, name + ".json", *options], cwd=folder, capture_output=True, timeout=60,
                          env=environment)


def update(fusec, folder, name):
    with open(os.path.join(folder, name + ".error"), "wb") as f:
        f.write(told(fusec, folder, name, "--no-nvrtc", "--emit=cu=/dev/null").stderr.removeprefix(PREFIX))


def problem(fusec, folder, name, scratch):
    """What is wrong with the program's output for one model, or None."""
    output = os.path.join(scratch, name + ".cu")
    with open(output, "wb") as f:
        f.write(SENTINEL)
    run = told(fusec, folder, name, "-o", output)
    with open(os.path.join(folder, name + ".error"), "rb") as f:
        expected = PREFIX + f.read()
    with open(output, "rb") as f:
        after = f.read()
    if run.returncode != 1:
        return f"exit status {run.returncode}, expected 1"
    if run.stderr != expected:
        return f"standard error is {run.stderr!r}, expected {expected!r}"
    if run.stdout:
        return f"standard output is {run.stdout[:200]!r}, expected nothing"
    if after != SENTINEL or [e for e in os.listdir(scratch) if e.startswith(name) and e != name + ".cu"]:
        return "the output file was changed, or another left beside it"
    return None


def main():
    fusec = os.path.abspath(sys.argv[1])
    cases = [(folder, e[:-5]) for folder in (FOLDER, os.path.join(FOLDER, "program"))
             for e in sorted(os.listdir(folder)) if e.endswith(".json")]
    if "--update" in sys.argv:
        for case in cases:
            update(fusec, *case)
    failures = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, name), what in zip(cases, pool.map(lambda case: problem(fusec, *case, scratch), cases)):
            if what:
                failures += 1
                print(f"{name}: {what}")
    print(f"{len(cases)} malformed models, {failures} answered wrongly")
    return 1 if failures or len(cases) < 120 else 0


if __name__ == "__main__":
    sys.exit(main())
