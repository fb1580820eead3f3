"""Helpers of tests that run the programs and collect failures; kernels/run.py runs the rows of kernels/."""
import subprocess
import sys

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def finished(command):
    """The finished process of a command. Skips the test if NVRTC is missing."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 3 and "no libnvrtc found" in result.stderr:
        print("skipped: " + result.stderr.strip())
        sys.exit(77)
    return result


def run(command, what=""):
    """The output of a command; None if it fails, which counts as a failure of the test."""
    result = finished(command)
    expect(result.returncode == 0, f"{what or ' '.join(command)}: {result.stderr[-2000:]}{result.stdout[-500:]}")
    return result.stdout if result.returncode == 0 else None


def finish(what=""):
    """Prints the failures and the number of cases, and ends the test."""
    for failure in failures:
        print(failure)
    print(f"{what}{len(failures)} failures")
    sys.exit(bool(failures))
