#!/usr/bin/env python3
"""check_movement.py FUSEC_RUN FUSEC [--sample=N] [--seed=N] [--update]

Transposes, permutes, gathers, pads and concats, with elementwise neighbours, on the emulator: verified, no bank
conflicts, local memory or findings, few more sectors than a copy of the same bytes, and 16-byte accesses of global
memory if extents and alignment allow them. movement_figures.json has the measured figures of each case, which must not
get worse; --update writes it anew. Random chains of such ops are only compared with the reference. Status 77: no NVRTC.
"""
import argparse
import json
import os
import random
import re
import sys
import tempfile

import movement_cases
import movement_chains as chains
from emulated_run import finished

ARCHITECTURES = ("sm_80", "sm_90a")
FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "movement_figures.json")
MORE_SECTORS, MORE_INSTRUCTIONS = 1.02, 1.05  # allowed ratio to the measured figures; compilers differ
CHAINS = ((chains.any_movement, 60), (chains.any_turned, 100), (chains.any_picks, 60), (chains.any_windows, 100),
          (chains.any_planes, 60), (chains.joined_and_permuted, 40), (chains.any_half_bytes, 60), (chains.any_permute, 80),
          (chains.any_permute_of_sizes, 60))


def cases():
    return ([(case, arch) for arch in ARCHITECTURES for case in movement_cases.counted()]
            + [(case, ARCHITECTURES[i % 2]) for i, case in enumerate(movement_cases.results_alone(movement_cases.stretches()))]
            + [(case, arch) for arch in ARCHITECTURES for case in movement_cases.results_alone(movement_cases.runs())]
            + [(case, ARCHITECTURES[i % 2]) for i, case in enumerate(movement_cases.rows_backwards())]
            + [(chain(seed), ARCHITECTURES[seed % 2]) for chain, count in CHAINS for seed in range(count)])


def narrow_accesses(fusec, path, arch, scratch):
    ptx = os.path.join(scratch, "model.ptx")
    done = finished([fusec, path, "--arch=" + arch, "-o", ptx])
    if done.returncode != 0:
        return done.stderr
    with open(ptx, encoding="utf-8") as f:
        accesses = re.findall(r"\b(?:ld|st)\.global[.\w:]*", f.read())
    narrow = [a for a in accesses if not re.search(r"\.v4\.[ubf]32$|\.v2\.[ubf]64$", a)]
    return f"{narrow[0]} among {len(accesses)} accesses" if narrow or not accesses else ""


def what_is_wrong(programs, scratch, case, arch, figures):
    """What is wrong with the kernel. Stores its figures in `figures` if they are worse than those there, or if there
    are none."""
    path, report = (os.path.join(scratch, name) for name in ("model.json", "profile.json"))
    inputs = [{"name": n, "dtype": d, "shape": s} for n, (d, s) in case.inputs.items()]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "movement", "symbols": case.symbols, "inputs": inputs, "nodes": case.nodes,
                   "outputs": case.outputs}, f)
    done = finished([programs.fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=" + arch,
                "--profile=" + report, "--json", *(f"--symbol={name}={size}" for name, size in case.sizes.items())])
    if done.returncode != 0:
        return done.stdout + done.stderr
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    if len(kernels) > case.kernels:
        return f"{len(kernels)} kernels"
    if not kernels:
        return ""
    kernel = kernels[0]
    shape = next(iter(case.inputs.values()))[1]
    elements = movement_cases.element_count(
        [extent if isinstance(extent, int) else case.symbols.get(extent, {"hint": 1})["hint"] for extent in shape])
    allowed = case.conflicts + case.conflicts_each * elements / 32
    if kernel["findings"] or kernel["bank_conflicts"] > allowed:
        return f"{kernel['findings']} findings, {kernel['bank_conflicts']} bank conflicts"
    if kernel["resources"]["spill_bytes"] or kernel["resources"]["stack_bytes"]:
        return "local memory is used"
    # Sectors relative to those of the bytes, and warp instructions for 16 bytes of each thread, without edges.
    sectors = kernel["sectors"] * 32 / (case.moved or kernel["distinct_bytes"])
    executed = (sum(kernel["instructions"].values()) - 2000) * 512 / kernel["distinct_bytes"]
    if sectors > case.sectors:
        return f"{kernel['sectors']} sectors, {sectors:.2f} times those of the bytes"
    if executed > case.instructions:
        return f"{executed:.1f} instructions for 16 bytes"
    if not case.counted:
        return ""
    narrow = narrow_accesses(programs.fusec, path, arch, scratch)
    if narrow and case.wide:
        return narrow
    return beyond_figures(programs, case, {"sectors": round(sectors, 3), "instructions": round(executed, 1),
                                           "wide": not narrow}, figures)


def beyond_figures(programs, case, found, figures):
    known = figures.get(case.name)
    if programs.update:
        figures[case.name] = found if known is None else {
            "sectors": max(known["sectors"], found["sectors"]),
            "instructions": max(known["instructions"], found["instructions"]), "wide": known["wide"] and found["wide"]}
        return ""
    if known is None:
        return f"nothing in {os.path.basename(FIGURES)}, which --update writes"
    if found["sectors"] > MORE_SECTORS * known["sectors"]:
        return f"{found['sectors']} times the sectors of the bytes, and {known['sectors']} before"
    if found["instructions"] > MORE_INSTRUCTIONS * max(known["instructions"], 10):
        return f"{found['instructions']} instructions for 16 bytes, and {known['instructions']} before"
    return "accesses of less than 16 bytes" if known["wide"] and not found["wide"] else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("fusec")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--update", action="store_true")
    programs = parser.parse_args()
    chosen = [(case, arch) for case, arch in cases() if programs.only in case.name]
    if programs.sample:
        random.Random(programs.seed).shuffle(chosen)
        chosen = chosen[:programs.sample]
    failures, figures = 0, {}
    if not programs.update or programs.only or programs.sample:
        with open(FIGURES, encoding="utf-8") as f:
            figures = json.load(f)
    if programs.update:
        for case, _ in chosen:
            figures.pop(case.name, None)
    with tempfile.TemporaryDirectory() as scratch:
        for case, arch in chosen:
            wrong = what_is_wrong(programs, scratch, case, arch, figures)
            failures += bool(wrong)
            if wrong:
                print("FAILED", case.name, arch, wrong, flush=True)
    if programs.update:
        names = [name for name in dict.fromkeys(case.name for case, _ in cases()) if name in figures]
        with open(FIGURES, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(figures[n])}" for n in names) + "\n}\n")
    print(f"movement: {len(chosen)} cases, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
