#!/usr/bin/env python3
"""compare_fusion.py [--bytes] [--full-bytes[=MIB]] [--only=NAME,...] [--markdown=FILE] [BIN_DIR]: kernels launched, and bytes
moved, by model.

For every model of tests/corpus/models: launches of fusec under none, tvm and full, beside those of TVM's own pipeline
(tiny size) and of PyTorch Inductor (full size), both from baselines.json, which says how they were counted. Like is held
against like: TVM against the tiny graph, Inductor against the full one, and models where a peer failed stay out of its
sum. A model that was decomposed has its base model's figures. --bytes also runs the tiny models on the emulator and
prints the distinct and requested bytes of global memory under tvm and full, beside the least that the groups of full
could move. --full-bytes runs a few blocks of every kernel of the full-size models (those whose inputs and constants
have at most so many MiB, 128 where it is not said) and prints the bytes that each would request in all, operands under
1 MiB counted once, over the least that it could move.

Demands, exit 1 where one is not met: full launches no more than launches.json gives, than TVM, or than Inductor; over
the models of launches.json at most half of TVM's sum and 0.55 of Inductor's; with --bytes, every kernel of full moves
at most 1.1 times its least distinct bytes, at most 1.1 times that in requested bytes where it has no matrix product, and
all of full together at most 60 % of what tvm's grouping moves; with --full-bytes, no kernel without contraction,
convolution or pooling requests more than 1.1 times its least."""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(ROOT, "tests", "corpus", "models")
PRODUCTS = ("contraction", "attention", "row_gemm", "side_by_side")  # schedules that read operands more than once
FREE = PRODUCTS + ("gemm", "skinny_gemm", "special", "conv")  # the demand on requested bytes is not for these
SMALL = 1 << 20
SAMPLE = 8  # blocks of a kernel


def load(name):
    with open(os.path.join(MODELS, name), encoding="utf-8") as f:
        return json.load(f)


def base_of(name):
    return name[:-4] if name.endswith("_dec") else name


def launches(fusec, path, strategy):
    """Launches of the partition report; None where the model cannot be compiled."""
    done = subprocess.run([fusec, path, f"--strategy={strategy}", "--emit=partition", "--no-nvrtc"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(done.stdout)["launches"] if done.returncode == 0 else None


def manifest_kernels(fusec, path, strategy):
    """By kernel: its schedule and how many tensors it reads and writes."""
    done = subprocess.run([fusec, path, f"--strategy={strategy}", "--emit=manifest", "--no-nvrtc"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return {k["name"]: (k["schedule"], sum(p["kind"] == "pointer" for p in k["parameters"]))
            for k in json.loads(done.stdout)["kernels"]}


def profile(fusec_run, entry, strategy):
    """What each launch of the tiny model moves, executed on the emulator."""
    files = entry["files"]
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "profile.json")
        done = subprocess.run([fusec_run, os.path.join(MODELS, files["tiny"]),
                               "--inputs=" + os.path.join(MODELS, files["in"]),
                               "--outputs=" + os.path.join(scratch, "out.safetensors"), "--device=emulator",
                               f"--strategy={strategy}", "--profile=" + report, "--json"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"{entry['name']} under {strategy}: {done.stderr}")
        with open(report, encoding="utf-8") as f:
            return json.load(f)["kernels"]


def peers():
    """By base model: TVM's kernels at the tiny size, Inductor's at the full one; None where the peer failed."""
    return {m["name"]: (m.get("tvm_tiny", {}).get("kernels"), m.get("inductor_triton_full", {}).get("total"))
            for m in load("baselines.json")["models"]}


class Table:
    def __init__(self):
        self.rows, self.broken = [], []

    def demand(self, holds, text):
        if not holds:
            self.broken.append(text)

    def add(self, *cells):
        self.rows.append(["" if c is None else str(c) for c in cells])

    def text(self, heads):
        lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in self.rows])


def count_launches(fusec, entries, table):
    want, by_peer = load("launches.json"), peers()
    sums = {"tvm": [0, 0], "inductor": [0, 0]}  # ours, theirs
    for entry in entries:
        name, tiny = entry["name"], os.path.join(MODELS, entry["files"]["tiny"])
        full_path = os.path.join(MODELS, entry["files"].get("full", entry["files"]["tiny"]))
        none, tvm, full = (launches(fusec, tiny, s) for s in ("none", "tvm", "full"))
        at_full = launches(fusec, full_path, "full")
        tvm_peer, inductor = by_peer.get(base_of(name), (None, None))
        table.add(name, want.get(name), none, tvm, full, at_full, tvm_peer, inductor)
        if full is None:
            continue
        table.demand(name not in want or full <= want[name], f"{name}: {full} launches, an expert would have {want.get(name)}")
        table.demand(tvm_peer is None or full <= tvm_peer, f"{name}: {full} launches, TVM has {tvm_peer}")
        table.demand(inductor is None or at_full <= inductor, f"{name}: {at_full} launches at full size, Inductor has {inductor}")
        if name in want and tvm_peer is not None:
            sums["tvm"][0] += full
            sums["tvm"][1] += tvm_peer
        if name in want and inductor is not None:
            sums["inductor"][0] += at_full
            sums["inductor"][1] += inductor
    lines = []
    for peer, most in (("tvm", 0.5), ("inductor", 0.55)):
        ours, theirs = sums[peer]
        if theirs:
            lines.append(f"models of launches.json: {ours} launches, {peer} {theirs}: {ours / theirs:.3f} of it")
            table.demand(ours <= most * theirs, f"{lines[-1]}, more than {most}")
    return lines


def count_bytes(fusec, fusec_run, entries, table):
    totals = {"tvm": 0, "full": 0}
    for entry in entries:
        if "in" not in entry["files"] or "out" not in entry["files"]:
            continue
        sums = {}
        for strategy in ("tvm", "full"):
            kernels = profile(fusec_run, entry, strategy)
            sums[strategy] = [sum(k[key] for k in kernels) for key in ("distinct_bytes", "requested_bytes", "least_bytes")]
            totals[strategy] += sums[strategy][0]
            if strategy == "full":
                known = manifest_kernels(fusec, os.path.join(MODELS, entry["files"]["tiny"]), strategy)
                for k in kernels:
                    check_kernel(entry["name"], k, *known.get(k["name"], ("", 0)), table)
        table.add(entry["name"], sums["tvm"][0], sums["full"][0], sums["full"][2],
                  f"{sums['full'][0] / max(1, sums['tvm'][0]):.2f}", sums["tvm"][1], sums["full"][1])
    share = totals["full"] / max(1, totals["tvm"])
    table.demand(share <= 0.6, f"distinct bytes of full are {share:.3f} of those of tvm, more than 0.6")
    return [f"distinct bytes: {totals['full']} under full, {totals['tvm']} under tvm: {share:.3f} of them"]


def bytes_of_tensors(path):
    """Of a model's inputs and constants; symbols count as one."""
    with open(path, encoding="utf-8") as f:
        model = json.load(f)
    sizes = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}
    return sum(sizes.get(t["dtype"], 1) * math.prod(d for d in t["shape"] if isinstance(d, int))
               for t in model.get("inputs", []) + model.get("constants", []))


def sampled(fusec_run, path):
    """What each launch of a full-size model moves, a few blocks of each executed."""
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "profile.json")
        done = subprocess.run([fusec_run, path, "--random", "--device=emulator", f"--sample-blocks={SAMPLE}",
                               "--profile=" + report, "--json"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            return None
        with open(report, encoding="utf-8") as f:
            return json.load(f)["kernels"]


def requested_in_all(kernel):
    """The sampled blocks stand for all; what is small is counted once."""
    large = kernel["requested_bytes"] - kernel["requested_bytes_of_small"]
    sample = kernel.get("sample", {"blocks": 1, "of": 1})
    return large * sample["of"] / max(1, sample["blocks"]) + kernel["distinct_bytes_of_small"]


def pools(name):
    """Does a group of this name pool or convolve? Their windows overlap."""
    return any(word in name for word in ("pool", "conv", "interpolate", "unfold"))


def count_full_bytes(fusec, fusec_run, entries, most, table):
    """Kernels at full size; sums of those that the demand is for."""
    asked = least = requested = 0
    left_out = []
    for entry in entries:
        path = os.path.join(MODELS, entry["files"].get("full", entry["files"]["tiny"]))
        if bytes_of_tensors(path) > most << 20:
            left_out.append(entry["name"])
            continue
        kernels = sampled(fusec_run, path)
        if kernels is None:
            left_out.append(entry["name"])
            continue
        known = manifest_kernels(fusec, path, "full")
        for k in kernels:
            schedule = known.get(k["name"], ("", 0))[0]
            if k["least_bytes"] == 0 or schedule.startswith(FREE) or pools(k["name"]):
                continue
            ratio = requested_in_all(k) / k["least_bytes"]
            asked += 1
            least += k["least_bytes"]
            requested += requested_in_all(k)
            small = requested_in_all(k) <= 1.1 * k["least_bytes"] + 4096
            if ratio > 1.1:
                table.add(f"{entry['name']}: {k['name']}", schedule, k["least_bytes"], round(requested_in_all(k)),
                          f"{ratio:.2f}")
            table.demand(small, f"{entry['name']}: {k['name']} requests {ratio:.2f} times its least of {k['least_bytes']}")
    lines = [f"full size: {asked} kernels without products, {requested / max(1, least):.3f} times their least requested"]
    if left_out:
        lines.append("not executed at full size: " + ", ".join(left_out))
    return lines


def check_kernel(model, kernel, schedule, tensors, table):
    """Tiny tensors leave sectors partly used: a sector at each end of a tensor and a kilobyte are forgiven. Operands
    under 1 MiB count once, however often a kernel reads them: so requested bytes are a demand on larger kernels alone."""
    forgiven = 1024 + 64 * tensors
    least = kernel["least_bytes"] * 1.1 + forgiven
    table.demand(kernel["distinct_bytes"] <= least,
                 f"{model}: {kernel['name']} moves {kernel['distinct_bytes']} distinct bytes, its least is {kernel['least_bytes']}")
    if kernel["least_bytes"] > SMALL and not schedule.startswith(PRODUCTS):
        table.demand(kernel["requested_bytes"] <= least,
                     f"{model}: {kernel['name']} requests {kernel['requested_bytes']} bytes, its least is {kernel['least_bytes']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--full-bytes", nargs="?", type=int, const=128)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", default="")
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    only = set(options.only.split(",")) - {""}
    entries = [e for e in load("index.json") if (not only or e["name"] in only) and "tiny" in e["files"]]
    fusec, fusec_run = (os.path.join(options.bin_dir, p) for p in ("fusec", "fusec-run"))
    counted = Table()
    lines = count_launches(fusec, entries, counted)
    report = [counted.text(["model", "expert", "none", "tvm", "full", "full, full size", "TVM", "Inductor"]), "", *lines]
    broken = counted.broken
    if options.bytes:
        moved = Table()
        lines = count_bytes(fusec, fusec_run, entries, moved)
        report += ["", moved.text(["model", "tvm distinct", "full distinct", "least", "full/tvm", "tvm requested",
                                   "full requested"]), "", *lines]
        broken = broken + moved.broken
    if options.full_bytes is not None:
        beyond = Table()
        lines = count_full_bytes(fusec, fusec_run, entries, options.full_bytes, beyond)
        report += ["", beyond.text(["kernel beyond 1.1 at full size", "schedule", "least", "requested", "ratio"]), "", *lines]
        broken = broken + beyond.broken
    report += ["", *("not met: " + b for b in broken), f"{len(broken)} demands not met"]
    text = "\n".join(report) + "\n"
    print(text, end="")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(text)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
