#!/usr/bin/env python3
"""check_reported_values.py FUSEC_RUN

Models of special_values/reported, each of which once gave a wrong zero, infinity or NaN, on the emulator against
PyTorch's results. A reciprocal after the op shows the sign of a zero."""
import glob
import os
import sys
import tempfile

import emulated_run
import tensors

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "special_values", "reported")
STRATEGIES = [["--strategy=" + s] for s in ("none", "tvm", "full")]
OPTIONS = {"tuple_field": STRATEGIES, "contraction": [["--round-intermediates"], ["--strategy=none"]]}


def main():
    models = sorted(glob.glob(os.path.join(FOLDER, "*.json")))
    emulated_run.expect(len(models) == 7, f"{len(models)} models in {FOLDER}")
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "out.safetensors")
        for path in models:
            name = os.path.basename(path)[:-5]
            want = tensors.read(path[:-5] + ".out.safetensors")
            for options in OPTIONS.get(name, [[], ["--precise-math"], ["--strategy=none"]]):
                what = f"{name} {' '.join(options)}"
                command = [sys.argv[1], path, f"--inputs={path[:-5]}.in.safetensors", "--outputs=" + made,
                           "--device=emulator"]
                if emulated_run.run(command + options, what) is None:
                    continue
                got = tensors.read(made)
                for output in want:
                    wrong = tensors.difference(got[output], want[output], 2e-6, 1e-7)
                    emulated_run.expect(not wrong, f"{what}: {output}: {wrong}")
    emulated_run.finish(f"{len(models)} models, ")


if __name__ == "__main__":
    main()
