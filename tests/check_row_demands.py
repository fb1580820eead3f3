#!/usr/bin/env python3
"""check_row_demands.py FUSEC_RUN FUSEC [--full]: softmax, LayerNorm, RMSNorm and add + RMSNorm at 4096 columns and at odd
lengths, on the emulator and in the machine code, for sm_80 and sm_90a: verified, one kernel, its input read once, no bank
conflicts, no local memory, no slow paths of divisions; all accesses 16 bytes wide at 4096, of rows of other lengths all but
those of their ends and of the weights, which lie differently to each row. A row of 100003 fits into no block of sm_80,
which has no clusters: there it is read once for each of its reductions and once more. Without --full one dtype a target.
Status 77: no NVRTC."""
import argparse
import collections
import json
import os
import sys
import tempfile

import check_rows
import sass
from check_rows import BYTES, layer_norm, residual_rms_norm, rms_norm, run, softmax

FORMS = [softmax, layer_norm, rms_norm, residual_rms_norm]
ROWS = {4096: 5, 4095: 5, 33: 512, 100003: 2}
STAGES = {softmax: 2, layer_norm: 2, rms_norm: 1, residual_rms_norm: 1}  # reductions one after the other


def byte_faults(kernels, form, columns, dtype, arch, others):
    size = ROWS[columns] * columns * BYTES[dtype]
    operands = 1 + len([s for s in others.values() if len(s) == 2])
    weights = len(others) + 1 - operands
    reads, most = 1, 1
    if columns == 100003 and arch == "sm_80":
        reads, most = STAGES[form] + 1, STAGES[form] + 1
    # Beside rows that begin anywhere weights are read by parts of 16 bytes: requests that share sectors.
    beside = {4096: 1, 33: 1 / 8}.get(columns, 3.1)
    allowed = (1 if columns == 4096 else 1.04) * size * (operands * reads + 1 + weights * beside) + 4096
    requested = sum(k["requested_bytes"] for k in kernels)
    faults = [f"{len(kernels)} kernels"] if len(kernels) > most else []
    if requested > allowed:
        faults.append(f"{requested} bytes requested, {allowed:.0f} allowed")
    for kernel in kernels:
        if kernel["findings"] or kernel["bank_conflicts"]:
            faults.append(f"{kernel['findings']} findings, {kernel['bank_conflicts']} bank conflicts")
    return faults


def sass_faults(operations, columns, others, launches):
    faults = [f"{op} in the machine code" for op in operations if op.split(".")[0] in ("LDL", "STL", "CALL", "FCHK")]
    counts = collections.Counter("wide" if ".128" in op else "narrow" for op in operations if op.startswith(("LDG", "STG")))
    weights = any(len(s) == 1 for s in others.values())
    ends = 0 if columns == 4096 else 2 * (2 + len(others)) + len(others) * -(-columns // 32) * (columns == 33)
    # Several launches leave partial results for one another, a few words.
    if counts["narrow"] > ends and not (weights and columns not in (4096, 33)) and launches == 1:
        faults.append(f"{counts['narrow']} accesses are narrower than 16 bytes")
    if not counts["wide"]:
        faults.append("no access is 16 bytes wide")
    return faults


def faults_of(programs, folder, form, columns, dtype, arch):
    nodes, others = form(ROWS[columns], columns)
    inputs = {"x": [ROWS[columns], columns], **others}
    path, report = os.path.join(folder, "model.json"), os.path.join(folder, "profile.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "inputs": [{"name": n, "dtype": dtype, "shape": s} for n, s in inputs.items()],
                   "nodes": nodes, "outputs": ["y"]}, f)
    done = run([programs.fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=" + arch,
                "--profile=" + report, "--json"])
    if done.returncode != 0:
        return [done.stdout]
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    faults = byte_faults(kernels, form, columns, dtype, arch, others)
    if sass.disassembler():
        faults += sass_faults(sass.operations(programs.fusec, path, arch, folder), columns, others, len(kernels))
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("fusec")
    parser.add_argument("--full", action="store_true")
    programs = parser.parse_args()
    targets = [("sm_80", "float32"), ("sm_90a", "bfloat16")]
    if programs.full:
        targets = [(arch, dtype) for arch in check_rows.ARCHITECTURES for dtype in BYTES]
    cases = [(form, columns, dtype, arch) for arch, dtype in targets for columns in ROWS for form in FORMS]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            faults = faults_of(programs, folder, *case)
            failed += bool(faults)
            for fault in faults:
                print("FAILED", case[0].__name__, *case[1:], fault, flush=True)
    print(f"row demands: {len(cases)} cases, {failed} failures, "
          f"SASS {'read' if sass.disassembler() else 'not read: no nvdisasm'}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
