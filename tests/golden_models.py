"""The models of tests/golden, and helpers that run a program on a model."""
import json, os, subprocess

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


class Failure(Exception):
    """A failure of a test."""


def names():
    """The golden models, sorted. Expected outputs are next to NAME.json."""
    return sorted(e[:-5] for e in os.listdir(FOLDER) if e.endswith(".json") and not e.endswith(".partition.json"))


def load(name):
    with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def calls_launcher(model):
    """Whether the model needs a launcher from outside, so that no device of fusec-run can execute it."""
    return any("symbol" in node.get("attrs", {}) for node in model["nodes"])


def run(command, folder=None, good=(0,)):
    """The finished process. Its exit status is one of `good`, else raises Failure."""
    try:
        p = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Failure(str(e)) from e
    if p.returncode not in good:
        raise Failure(f"{' '.join(command)}\n    exit status {p.returncode}: "
                      f"{p.stderr.decode('utf-8', 'replace').strip()[-1500:]}")
    return p


def emit(fusec, model, kinds, scratch, options=(), folder=None):
    """The bytes of each of these kinds of output, from one compilation without NVRTC."""
    files = {kind: os.path.join(scratch, "emitted." + kind) for kind in kinds}
    for path in files.values():
        if os.path.exists(path):
            os.remove(path)
    run([fusec, model, "--no-nvrtc", *options] + [f"--emit={kind}={path}" for kind, path in files.items()], folder)
    outputs = {}
    for kind, path in files.items():
        with open(path, "rb") as f:
            outputs[kind] = f.read()
    return outputs


def lacks_nvrtc(process):
    """Whether a process ended with status 3 because NVRTC is missing."""
    return process.returncode == 3 and b"no libnvrtc found" in process.stderr
