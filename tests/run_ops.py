#!/usr/bin/env python3
"""run_ops.py FUSEC_RUN [--device=emulator] [--strategy=none] [--sample=N] [--seed=N] [--only=FAMILY] [-- OPTION...]

Runs the models of tests/ops (every op of a family over dtypes, attributes and special values) on a device and compares
each result with PyTorch's. --sample takes that many nodes of each family. Options after -- go to fusec-run. Prints each
wrong node with its operands and attributes and, last, 'N of M nodes agree'. Exit 0 only when all do, 77 if the machine
lacks what the device needs."""
import argparse, glob, json, os, random, subprocess, sys, tempfile

import tensors

OPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops")
# A few rounding errors of the dtype; sums of many products have more.
SUMS = {"matrix", "convolution", "attention"}
GRIDS = {"F16": 2.0**-11, "BF16": 2.0**-8}
TOLERANCES = {"F64": (1e-12, 1e-13), "F32": (4e-6, 1e-6), "F16": (1.1e-3, 1e-6), "BF16": (8.1e-3, 1e-6)}


def family_model(family, args):
    """The family's model, or a sample of its nodes."""
    with open(os.path.join(OPS, family + ".json"), encoding="utf-8") as f:
        model = json.load(f)
    if args.sample and args.sample < len(model["nodes"]):
        picked = sorted(random.Random(f"{args.seed} {family}").sample(range(len(model["nodes"])), args.sample))
        model["nodes"] = [model["nodes"][i] for i in picked]
    model["outputs"] = [o["name"] for node in model["nodes"] for o in node["outputs"]]
    return model


def run_family(family, args, folder):
    """(nodes, wrong nodes). Prints each wrong node."""
    model = family_model(family, args)
    path, outputs = os.path.join(folder, "model.json"), os.path.join(folder, "out.safetensors")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    p = subprocess.run([args.fusec_run, path, "--inputs=" + os.path.join(OPS, family + ".in.safetensors"),
                        "--outputs=" + outputs, "--device=" + args.device, "--strategy=" + args.strategy] + args.options,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = p.stdout.decode("utf-8", "replace").strip()
    if p.returncode == 3 and "no libnvrtc found" in text:
        print("skipped: " + text)
        sys.exit(77)
    if p.returncode != 0:
        print(f"{family}: exit status {p.returncode}: {text[-2000:]}")
        return len(model["nodes"]), len(model["nodes"])
    want, got = tensors.read(os.path.join(OPS, family + ".out.safetensors")), tensors.read(outputs)
    wrong, scale = 0, 8 if family in SUMS else 1

    def difference(name):
        relative, absolute = (t * scale for t in TOLERANCES.get(want[name][0], (0, 0)))
        if family == "attention" and want[name][0] in GRIDS:
            # Attention weights are rounded to the operands' dtype before the product with values, as in common kernels.
            # The error of each is at most half a step of the dtype, relative to the greatest result.
            absolute += GRIDS[want[name][0]] / 2 * max(map(abs, want[name][2]), default=0)
        return tensors.difference(got[name], want[name], relative, absolute)

    for node in model["nodes"]:
        why = [difference(o["name"]) for o in node["outputs"]]
        if any(why):
            wrong += 1
            print(f"{node['name']}({', '.join(map(str, node['inputs']))}) {node.get('attrs', '')}: "
                  f"{next(w for w in why if w)}")
    return len(model["nodes"]), wrong


def main():
    argv = sys.argv[1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("--device", default="emulator")
    parser.add_argument("--strategy", default="none")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    args.options = argv[argv.index("--") + 1:] if "--" in argv else []
    families = sorted(os.path.basename(path)[:-5] for path in glob.glob(os.path.join(OPS, "*.json")))
    total = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for family in families:
            if args.only in ("", family):
                nodes, wrong = run_family(family, args, folder)
                total, failed = total + nodes, failed + wrong
    print(f"{total - failed} of {total} nodes agree with PyTorch")
    sys.exit(1 if failed or total == 0 else 0)


if __name__ == "__main__":
    main()
