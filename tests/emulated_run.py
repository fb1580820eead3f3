"""What a test finds wrong, and a model's kernels as they run on the emulator."""
import json
import subprocess
import sys

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(command, what=""):
    """What it prints; None where it fails, which is one of the failures. Skips the test where NVRTC is missing."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0 and "NVRTC" in result.stderr and "not found" in result.stderr:
        print("skipped: no NVRTC")
        sys.exit(77)
    expect(result.returncode == 0, f"{what or ' '.join(command)}: {result.stderr[-2000:]}{result.stdout[-500:]}")
    return result.stdout if result.returncode == 0 else None


def emulated(fusec_run, path, *options, inputs="--random"):
    """The figures of each kernel; none where the run fails."""
    out = run([fusec_run, path, inputs, "--device=emulator", "--json", "--profile=-", *options])
    return json.loads(out[:out.rindex("}") + 1])["kernels"] if out else []


def expect_clean(kernels, what):
    """No finding of the emulator, no bank conflict, no register that is spilled."""
    for kernel in kernels:
        expect(kernel["findings"] == 0, f"{what}: findings on the emulator")
        expect(kernel["bank_conflicts"] == 0, f"{what}: {kernel['bank_conflicts']} bank conflicts")
        expect(kernel["resources"]["spill_bytes"] == 0, f"{what}: spills")


def executed(kernels):
    """Warp instructions of all."""
    return sum(sum(kernel["instructions"].values()) for kernel in kernels)


def finish(what=""):
    """Prints the failures, how many of what, and ends the test."""
    for failure in failures:
        print(failure)
    print(f"{what}{len(failures)} failures")
    sys.exit(bool(failures))
