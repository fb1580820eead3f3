"""Helpers of tests that run a model's kernels on the emulator, and collect failures."""
import json
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


def profiled(fusec_run, path, *options, inputs="--random"):
    """The profile of each kernel of a run on the emulator and ""; or no profile and what is wrong."""
    result = finished([fusec_run, path, inputs, "--device=emulator", "--json", "--profile=-", *options])
    if result.returncode != 0:
        return [], result.stderr[-2000:] + result.stdout[-500:]
    return json.loads(result.stdout[:result.stdout.rindex("}") + 1])["kernels"], ""


def emulated(fusec_run, path, *options, inputs="--random"):
    """The profile of each kernel of a run on the emulator; an error counts as a failure of the test."""
    kernels, why = profiled(fusec_run, path, *options, inputs=inputs)
    expect(not why, f"{path}, {' '.join(options)}: {why}")
    return kernels


def fault_of(kernel):
    """What no kernel may have: findings, bank conflicts, local memory. "" if it has none."""
    local = max(kernel["resources"]["spill_bytes"], kernel["resources"]["stack_bytes"])
    found = {"findings": kernel["findings"], "bank conflicts": kernel["bank_conflicts"], "bytes of local memory": local}
    return ", ".join(f"{count} {what}" for what, count in found.items() if count)


def expect_clean(kernels, what):
    for kernel in kernels:
        expect(not fault_of(kernel), f"{what}: {fault_of(kernel)}")


def executed(kernels):
    """Warp instructions of all kinds."""
    return sum(sum(kernel["instructions"].values()) for kernel in kernels)


def finish(what=""):
    """Prints the failures and the number of cases, and ends the test."""
    for failure in failures:
        print(failure)
    print(f"{what}{len(failures)} failures")
    sys.exit(bool(failures))
