#!/usr/bin/env python3
"""check_rows.py FUSEC_RUN: kernels of rows (softmax, norms, what fuses with them) read their input once, whatever the
row's length and dtype: executed on the emulator, verified, and counted in requested bytes. Status 77: no NVRTC."""
import json
import os
import subprocess
import sys
import tempfile

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def softmax(rows, columns, dtype):
    return [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}}], {}


def layer_norm(rows, columns, dtype):
    attrs = {"normalized_shape": [columns], "eps": 1e-5}
    return [{"name": "y", "op": "layer_norm", "inputs": ["x", "w", "b"], "attrs": attrs}], {"w": [columns], "b": [columns]}


def residual_rms_norm(rows, columns, dtype):
    return ([{"name": "s", "op": "add", "inputs": ["x", "r"]},
             {"name": "y", "op": "rms_norm", "inputs": ["s", "w"], "attrs": {"normalized_shape": [columns]}}],
            {"r": [rows, columns], "w": [columns]})


def log_softmax_written_out(rows, columns, dtype):
    return ([{"name": "m", "op": "amax", "inputs": ["x"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "d", "op": "sub", "inputs": ["x", "m"]},
             {"name": "e", "op": "exp", "inputs": ["d"]},
             {"name": "t", "op": "sum", "inputs": ["e"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "l", "op": "log", "inputs": ["t"]},
             {"name": "y", "op": "sub", "inputs": ["d", "l"]}], {})


CASES = [(softmax, 64, 1024, "float32"), (softmax, 200, 4096, "bfloat16"), (softmax, 7, 4095, "float32"),
         (softmax, 500, 33, "float16"), (layer_norm, 64, 4096, "float16"), (layer_norm, 300, 768, "float32"),
         (layer_norm, 40, 1001, "bfloat16"), (residual_rms_norm, 64, 4096, "bfloat16"),
         (residual_rms_norm, 33, 2047, "float32"), (log_softmax_written_out, 64, 2048, "float32")]


def requested(fusec_run, scratch, case):
    form, rows, columns, dtype = case
    nodes, others = form(rows, columns, dtype)
    inputs = [{"name": n, "dtype": dtype, "shape": s} for n, s in {"x": [rows, columns], **others}.items()]
    path, report = (os.path.join(scratch, name) for name in ("model.json", "profile.json"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "rows", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}, f)
    done = subprocess.run([fusec_run, path, "--random=1", "--device=emulator", "--verify", "--profile=" + report, "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 3 and "nvrtc" in done.stdout:
        print("skipped: " + done.stdout.strip())
        sys.exit(77)
    if done.returncode != 0:
        return done.stdout
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    if len(kernels) != 1:
        return f"{len(kernels)} kernels"
    # Operands of the input's size and the result once; a row that begins inside a sector has it in part, and vectors
    # of the weights are read by every row; beside rows that begin anywhere element by element, by threads a vector apart,
    # so that each request touches sectors (of the first cache) that its neighbours touch as well.
    big = (1 + len([s for s in others.values() if len(s) == 2]) + 1) * rows * columns * BYTES[dtype]
    small = sum(rows * s[0] * BYTES[dtype] for s in others.values() if len(s) == 1)
    row = columns * BYTES[dtype]
    if row % 16 != 0 and columns >= 128:
        small *= 16 // BYTES[dtype]
    allowed = (1.02 if row % 128 == 0 else 1.5 if row >= 256 else 2.0) * (big + small)
    if kernels[0]["requested_bytes"] > allowed:
        return f"{kernels[0]['requested_bytes']} bytes requested, {big + small} needed"
    if kernels[0]["resources"]["spill_bytes"] != 0:
        return "registers are spilled"
    return ""


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            wrong = requested(sys.argv[1], scratch, case)
            if wrong:
                failures += 1
                print("FAILED", case[0].__name__, *case[1:], wrong)
    print(f"rows read once: {len(CASES)} cases, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
