#!/usr/bin/env python3
"""check_verify.py FUSEC_RUN

What fusec-run --verify and --expect accept and refuse. The models of tests/verify are ill-conditioned: rounding op by
op differs from float64 by more than a tolerance, while the kernels, which round less, do not. A file of expected
outputs with one wrong value of any class is refused. Also checks a run's messages: what it wrote and compared, and
where the time went. Status 77 without NVRTC."""
import glob, json, math, os, re, struct, subprocess, sys, tempfile

import tensors
from emulated_run import expect, finish, finished

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verify")
FUSEC_RUN = sys.argv[1]
AWKWARD = [0.0, -0.0, 1.5, -1.5, 1e-40, 3e38, math.inf, -math.inf, math.nan]


def told(*arguments, status=0, says="", what=""):
    """The messages of a run on standard error."""
    done = finished([FUSEC_RUN, *arguments])
    what = f"{what} {' '.join(os.path.basename(a) for a in arguments)}"
    expect(done.returncode == status, f"{what}: exit status {done.returncode}: {done.stderr[-1500:]}")
    expect(re.search(says, done.stderr), f"{what}: {says!r} is not in {done.stderr!r}")
    return done.stderr


def ill_conditioned_models_pass():
    said = ""
    for model in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        file = model.replace(".json", ".in.safetensors")
        for inputs in ["--inputs=" + file] if os.path.exists(file) else ["--random=1", "--random=2", "--random=3"]:
            said += told(model, inputs, "--device=emulator", "--verify", says="verified against the reference")
    expect("float64" in said, "no model needed the float64 evaluation: the models show nothing")


def wrong_kernels_are_refused(scratch):
    """Kernels of the same model with a mistake in it. The reference of the right model accepts the results of its own
    kernels and refuses those of the wrong ones."""
    with open(os.path.join(FOLDER, "gemma2_block.json"), encoding="utf-8") as f:
        right = json.load(f)

    def with_operand(name, operand, value):
        wrong = json.loads(json.dumps(right))
        next(n for n in wrong["nodes"] if n["name"] == name)["inputs"][operand] = value
        return wrong

    def without_last_term():
        wrong = with_operand("mlp", 0, "mlp.cut")
        at = next(i for i, n in enumerate(wrong["nodes"]) if n["name"] == "mlp")
        wrong["nodes"][at]["inputs"][1] = "down.cut"
        wrong["nodes"][at:at] = [
            {"name": "mlp.cut", "op": "slice", "inputs": ["mlp.hidden"], "attrs": {"dim": 2, "start": 0, "end": 127}},
            {"name": "down.cut", "op": "slice", "inputs": ["down.proj"], "attrs": {"dim": 1, "start": 0, "end": 127}}]
        return wrong

    model, outputs = os.path.join(scratch, "mutant.json"), os.path.join(scratch, "mutant.safetensors")
    for what, made, status in [("no mistake", right, 0), ("a window one key short", with_operand("inside", 1, 15), 1),
                               ("scores without a cap", with_operand("masked", 1, "scores.scaled"), 1),
                               ("a sum without its last term", without_last_term(), 1)]:
        with open(model, "w", encoding="utf-8") as f:
            json.dump(made, f)
        told(model, "--random=1", "--device=emulator", "--outputs=" + outputs)
        told(os.path.join(FOLDER, "gemma2_block.json"), "--random=1", "--expect=" + outputs, status=status,
             says="elements differ" if status else "verified", what=what)


def write_floats(path, values):
    header = json.dumps({"y": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, 4 * len(values)]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}f", *values))


def wrong_expectations_are_refused(scratch):
    """A model whose outputs are these values. Each value in turn is expected to be another."""
    model, file = os.path.join(scratch, "values.json"), os.path.join(scratch, "expected.safetensors")
    outputs = os.path.join(scratch, "outputs.safetensors")
    with open(model, "w", encoding="utf-8") as f:
        f.write(json.dumps({"fusec": 1, "name": "values", "inputs": [],
                            "constants": [{"name": "x", "dtype": "float32", "shape": [len(AWKWARD)], "data": AWKWARD}],
                            "nodes": [{"name": "y", "op": "identity", "inputs": ["x"]}], "outputs": ["y"]})
                .replace("-Infinity", '"-inf"').replace("Infinity", '"inf"').replace("NaN", '"nan"'))
    told(model, "--outputs=" + outputs, says=r"^reference: 1 output written to .*outputs.safetensors; compared with nothing")
    values = tensors.read(outputs)["y"][2]
    told(model, "--expect=" + outputs, "--tolerance=0,0", "--verify",
         says="verified against .*outputs.safetensors: no difference; verified against the reference: no difference")
    for i, value in enumerate(values):
        for other in [values[(i + step) % len(values)] for step in (1, 4)]:
            if struct.pack("<f", value) != struct.pack("<f", other):
                write_floats(file, values[:i] + [other] + values[i + 1:])
                told(model, "--expect=" + file, "--tolerance=0,0", status=1, says=rf'"y" \[{i}\]: got .*1 elements differ')
                near = abs(value) < 1e-6 and abs(other) < 1e-6  # differences within the default tolerance
                told(model, "--expect=" + file, status=0 if near else 1)
    write_floats(file, values[:-1])
    told(model, "--expect=" + file, status=1, says="cannot be compared")
    told(model, "--expect=" + os.path.join(FOLDER, "random_154.in.safetensors"), status=1, says='no tensor "y"')
    write_floats(file, values)
    told(model, "--expect=" + file)
    told(model, "--expect=" + file, "--tolerance=1", status=2, says="--tolerance")


def runs_tell_what_they_did(scratch):
    model = os.path.join(scratch, "values.json")
    told(model, "--time-passes", says=r"ms  read(.|\n)*ms  reference(.|\n)*MiB at the peak")
    told(model, "--time-passes", "--device=emulator", "--verify", says=r"ms  run(.|\n)*verified against the reference")
    # The parent's memory does not count.
    hog = subprocess.run([sys.executable, "-c", "import subprocess, sys; x = bytearray(800 << 20)\n"
                          "subprocess.run(sys.argv[1:])", FUSEC_RUN, model, "--time-passes"], capture_output=True, text=True)
    peak = re.search(r"(\d+) MiB at the peak", hog.stderr)
    expect(peak and int(peak[1]) < 500, f"the peak is the parent's: {hog.stderr}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        wrong_expectations_are_refused(scratch)
        runs_tell_what_they_did(scratch)
        wrong_kernels_are_refused(scratch)
    ill_conditioned_models_pass()
    finish()


if __name__ == "__main__":
    main()
