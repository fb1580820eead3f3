#!/usr/bin/env python3
"""check_collectives.py FUSEC_RUN MODELS

Models with collectives, executed as in a group of one device. The host part is compiled against a stub of NCCL and
compared with the launch plan, and the emulator performs its calls. A collective that a group of one cannot have is an
error. Prints each failure; exit 0 without failures."""
import json, os, subprocess, sys, tempfile


def collective(op, shape, result=None, **attrs):
    node = {"name": "c", "op": op, "inputs": ["a"], "attrs": {"group": "tp", **attrs}}
    if op != "all_reduce":
        node["outputs"] = [{"name": "c", "dtype": "float16", "shape": result or shape}]
    return {"fusec": 1, "symbols": {"t": {"min": 1, "max": 16, "hint": 5}},
            "inputs": [{"name": "x", "dtype": "float16", "shape": shape}],
            "nodes": [{"name": "a", "op": "exp", "inputs": ["x"]}, node, {"name": "y", "op": "neg", "inputs": ["c"]}],
            "outputs": ["y"]}


CASES = [("all_reduce", collective("all_reduce", ["t", 8], reduce_op="sum"), 0),
         ("all_reduce of the greatest", collective("all_reduce", ["t", 8], reduce_op="max"), 0),
         ("all_gather", collective("all_gather", ["t", 8], dim=0), 0),
         ("all_gather inside", collective("all_gather", ["t", 3, 8], dim=1), 0),
         ("reduce_scatter", collective("reduce_scatter", ["t", 8], dim=0, reduce_op="avg"), 0),
         ("reduce_scatter inside", collective("reduce_scatter", ["t", 6, 4], dim=-1), 0),
         ("all_gather of two", collective("all_gather", ["t", 8], ["t", 16], dim=1), 1),
         ("reduce_scatter of two", collective("reduce_scatter", ["t", 8], ["t", 4], dim=1), 1)]


def main():
    program, models = os.path.abspath(sys.argv[1]), sys.argv[2]
    failures = []

    def run(name, file, wanted):
        command = [program, file, "--device=emulator", "--host-part=recorded", "--random", "--verify=3e-2,6e-2"]
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        said = told.stdout.decode("utf-8", "replace")
        if told.returncode != wanted or "internal error" in said:
            failures.append(f"{name}: exit status {told.returncode}, expected {wanted}: {said[-800:]}")

    with tempfile.TemporaryDirectory(prefix="fusec_collectives_") as folder:
        for name, model, wanted in CASES:
            file = os.path.join(folder, "model.json")
            with open(file, "w", encoding="utf-8") as f:
                json.dump(model, f)
            run(name, file, wanted)
    run("tp_mlp_allreduce", os.path.join(models, "tp_mlp_allreduce_bf16.tiny.json"), 0)
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
