#!/usr/bin/env python3
"""check_pointwise.py FUSEC_RUN FUSEC [--full]

Pointwise kernels and gated units, on the emulator for sm_80 and sm_90a: every byte moved once, 16-byte coalesced
accesses, no local memory, no division, a bound on float instructions per element, and several loads in flight before
the first is used. Small shapes are executed completely and verified, large ones on some blocks. Nothing is read beyond
the end of an input when a block's last iterations have few elements or none. With dtypes of different widths every
sector is requested once. If nvdisasm is in PATH (or the Python package nvidia-cuda-nvdisasm is installed), the SASS is
checked, too. Status 77: no NVRTC."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import axis_parts_models
import sass

BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8}
FLOAT_SASS = re.compile(r"^(FADD|FMUL|FFMA|FSEL|FSETP|FMNMX|MUFU)")


def unary(op, **attrs):
    return ["x"], [{"name": "y", "op": op, "inputs": ["x"], "attrs": attrs}]


SWIGLU = ["x", "u"], [{"name": "a", "op": "silu", "inputs": ["x"]}, {"name": "y", "op": "mul", "inputs": ["a", "u"]}]
ADD = ["x", "u"], [{"name": "y", "op": "add", "inputs": ["x", "u"]}]
QUANTIZE = ["x"], [{"name": "s", "op": "mul", "inputs": ["x", 0.25]},
                   {"name": "y", "op": "cast", "inputs": ["s"], "attrs": {"dtype": "float8_e4m3fn"}}]

# name, (inputs, nodes), dtype, dtype of the result, shape, float instructions an element (0: not counted), loads in flight
LARGE = [
    ("swiglu", SWIGLU, "float32", "float32", [2048, 8192], 6, 4),
    ("swiglu", SWIGLU, "bfloat16", "bfloat16", [4096, 14336], 6, 4),
    ("softplus", unary("softplus"), "bfloat16", "bfloat16", [4096, 8192], 15, 2),
    ("elu", unary("elu"), "bfloat16", "bfloat16", [4096, 8192], 15, 2),
    ("log_sigmoid", unary("log_sigmoid"), "float16", "float16", [4096, 8192], 15, 2),
    ("selu", unary("selu"), "float16", "float16", [4096, 8192], 16, 2),
    ("gelu", unary("gelu"), "bfloat16", "bfloat16", [4096, 14336], 17, 2),
    ("gelu_tanh", unary("gelu", approximate="tanh"), "float16", "float16", [4096, 8192], 9, 2),
    ("mish", unary("mish"), "float32", "float32", [2048, 8192], 10, 4),
    ("add", ADD, "float16", "float16", [4096, 8192], 1, 4),
    ("quantize", QUANTIZE, "bfloat16", "float8_e4m3fn", [4096, 8192], 0, 2),
]
ODD = [(name, body, dtype, dtype, shape, floats, 1)
       for name, body, floats in [("swiglu", SWIGLU, 6), ("gelu", unary("gelu"), 17), ("add", ADD, 1)]
       for dtype in ["float32", "bfloat16"] for shape in [[100003], [64, 4095], [129, 33]]]
# Executed instructions, without moves, of a warp whose threads have 16 bytes of each tensor; only full blocks.
FULL_BLOCKS = [("swiglu", SWIGLU, "float32", "float32", [512, 33], 6, 1)]
OF_FULL_BLOCKS = 37


# A chip with two multiprocessors, where few elements give each thread several vectors.
SMALL_CHIP = {"fusec_target": 1, "multiprocessors": 2}
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "int64": 8, "int16": 2, "int8": 1, "float8_e5m2": 1}
# Multiples of 256 vectors of 16 bytes, and further elements: slightly more than whole iterations, whole blocks, a
# vector.
TURNS = [2, 3, 4, 8]


def edges_model(dtype):
    """Kernels of one, two and three inputs, of slices and of symbols, at sizes slightly above a multiple of a block;
    and the values of the symbols."""
    width = 16 // BYTES[dtype]
    floating = dtype.startswith(("float", "bfloat")) and BYTES[dtype] > 1
    model = {"fusec": 1, "symbols": {}, "inputs": [], "nodes": [], "outputs": []}
    values = []

    def tensor(size, of=dtype):
        model["inputs"].append({"name": f"x{len(model['inputs'])}", "dtype": of, "shape": size if isinstance(size, list) else [size]})
        return model["inputs"][-1]["name"]

    def node(op, inputs, **attrs):
        model["nodes"].append({"name": f"y{len(model['nodes'])}", "op": op, "inputs": inputs, "attrs": attrs})
        return model["nodes"][-1]["name"]

    for at, turns in enumerate(TURNS):
        whole = turns * 256 * width
        size = whole + [1, width - 1, width + 1, 2 * width + 1][at]
        x = tensor(size)
        one = ("sub", [x, x]) if BYTES[dtype] > 1 else ("cast", [x])
        model["outputs"].append(node(*one, **({} if BYTES[dtype] > 1 else {"dtype": "float32"})))
        model["outputs"].append(node("where", [tensor(size, "bool"), tensor(size), tensor(size)]))
        if BYTES[dtype] == 1 and dtype != "int8":
            continue
        model["outputs"].append(node("swiglu" if floating else "mul", [tensor(size), tensor(size)]))
        model["outputs"].append(node("add", [tensor([size, 2]), tensor([size, 2])]))
        # Slices of inputs that begin at a vector, and unaligned ones.
        model["outputs"].append(node("neg", [node("slice", [tensor(size + width)], dim=0, start=width, end=size + width)]))
        model["outputs"].append(node("neg", [node("slice", [tensor(size + 3)], dim=0, start=3, end=size + 3)]))
        symbol = f"s{at}"
        model["symbols"][symbol] = [{"hint": whole}, {"hint": whole, "multiple_of": whole}, {"hint": size}, {"hint": 7}][at]
        model["symbols"][symbol]["max"] = 1 << 20
        values.append(f"--symbol={symbol}={whole if at == 1 else size}")
        extent = [symbol + " + 1"] if at == 1 else [symbol]
        model["outputs"].append(node("add", [tensor(extent), tensor(extent)]))
        x = tensor(extent)
        model["outputs"].append(node("mul", [x, x]))
    return model, values


def check_edges(dtype, arch, strategy, options, folder):
    model, values = edges_model(dtype)
    paths = [os.path.join(folder, name) for name in ("edges.json", "chip.json")]
    for path, document in zip(paths, (model, SMALL_CHIP | {"arch": arch})):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
    done = subprocess.run([options.fusec_run, paths[0], "--random=3", "--device=emulator", "--verify", "--arch=" + arch,
                           "--target=" + paths[1], "--strategy=" + strategy] + values, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode == 3 and "no libnvrtc found" in done.stderr:
        print("skipped: no NVRTC")
        sys.exit(77)
    return [] if done.returncode == 0 else [f"exit status {done.returncode}: {done.stderr.strip()[:600]}"]


# 16 bytes of one dtype go with less than a word of the other, which is accessed by bytes and half words.
MIXED = [("int64", "int8"), ("int8", "int64"), ("float64", "bool"), ("int4", "float32"), ("int64", "float16")]


def check_mixed(dtypes, arch, options, folder):
    path = os.path.join(folder, "mixed.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "inputs": [{"name": "x", "dtype": dtypes[0], "shape": [33, 4096]}], "outputs": ["y"],
                   "nodes": [{"name": "y", "op": "cast", "inputs": ["x"], "attrs": {"dtype": dtypes[1]}}]}, f)
    done = subprocess.run([options.fusec_run, path, "--random", "--device=emulator", "--verify", "--json", "--profile=-",
                           "--arch=" + arch], capture_output=True, text=True)
    if done.returncode != 0:
        return [done.stdout + done.stderr]
    kernel = json.loads(done.stdout)["kernels"][0]
    ratio = 32 * kernel["sectors"] / kernel["least_bytes"]
    return [f"{ratio:.2f} times the least sectors"] if ratio > 1.03 or kernel["resources"]["spill_bytes"] else []


def check_parts(model, arch, options, folder):
    """Checks a model whose parts read the same operands, on a small chip."""
    paths = [os.path.join(folder, name) for name in ("parts.json", "chip.json", "parts.ptx")]
    for path, document in zip(paths, (model.document(), SMALL_CHIP | {"arch": arch})):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
    of_chip = ["--arch=" + arch, "--target=" + paths[1]]
    done = subprocess.run([options.fusec_run, paths[0], "--random=2", "--device=emulator", "--verify", "--json",
                           "--profile=-", *of_chip], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [done.stdout + done.stderr]
    kernels = json.loads(done.stdout)["kernels"]
    if not model.moved:
        return []
    if len(kernels) != 1:
        return [f"{len(kernels)} kernels"]
    k, faults = kernels[0], []
    if 32 * k["sectors"] > 1.02 * model.moved:
        faults.append(f"{k['sectors']} sectors, {32 * k['sectors'] / model.moved:.2f} times those that are enough")
    executed = sum(k["instructions"].values()) * 512 / model.moved
    if executed > model.instructions:
        faults.append(f"{executed:.1f} instructions for 16 bytes")
    resources = k["resources"]
    if resources["stack_bytes"] or resources["spill_bytes"] or k["findings"] or k["bank_conflicts"]:
        faults.append("local memory, findings or bank conflicts")
    subprocess.run([options.fusec, paths[0], *of_chip, "-o", paths[2]], capture_output=True, check=True)
    with open(paths[2], encoding="utf-8") as f:
        accesses = re.findall(r"\b(?:ld|st)\.global[.\w:]*", f.read())
    narrow = [a for a in accesses if not re.search(r"\.v4\.[ubf]32$|\.v2\.[ubf]64$", a)]
    wide = accesses and len(narrow) <= model.narrow
    return faults if wide else [*faults, f"{len(narrow)} of {len(accesses)} accesses are no 16 bytes"]


def sass_faults(ops, case):
    name, (inputs, _), dtype, result, _, floats, flight = case
    faults = [f"{op} in the SASS" for op in ops if op.split(".")[0] in ("CALL", "LDL", "STL", "FCHK")]
    loads = [op for op in ops if op.startswith("LDG")]
    faults += [f"{op}: not 128 bits" for op in loads if ".128" not in op]
    if BITS[dtype] == BITS[result]:
        faults += [f"{op}: not 128 bits" for op in ops if op.startswith("STG") and ".128" not in op]
    ordered = [op for op in ops if FLOAT_SASS.match(op) or op.startswith("LDG")]
    ahead = next((i for i, op in enumerate(ordered) if not op.startswith("LDG")), len(ordered))
    if ahead < flight:
        faults.append(f"{ahead} loads before the first is used, not {flight}")
    each = len(loads) // len(inputs) * 128 // BITS[dtype]  # elements a thread
    count = sum(1 for op in ops if FLOAT_SASS.match(op))
    if floats and count > floats * each:
        faults.append(f"{count} float instructions for {each} elements")
    return faults


def check(case, arch, whole, options, folder):
    name, (inputs, nodes), dtype, result, shape, floats, _ = case
    model = os.path.join(folder, "model.json")
    with open(model, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "inputs": [{"name": i, "dtype": dtype, "shape": shape} for i in inputs], "nodes": nodes,
                   "outputs": ["y"]}, f)
    more = ["--verify"] if whole else ["--sample-blocks=4"]
    done = subprocess.run([options.fusec_run, model, "--random=3", "--device=emulator", "--arch=" + arch, "--json",
                           "--profile=-"] + more, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 3 and "no libnvrtc found" in done.stderr:
        print("skipped: no NVRTC")
        sys.exit(77)
    if done.returncode != 0:
        return [f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"]
    kernels = json.loads(done.stdout)["kernels"]
    if len(kernels) != 1:
        return [f"{len(kernels)} kernels"]
    k, faults = kernels[0], []
    elements = 1
    for extent in shape:
        elements *= extent
    bits = len(inputs) * BITS[dtype] + BITS[result]
    if whole:
        moved = elements * bits // 8
    else:
        moved = elements * bits // 8 * k["sample"]["blocks"] // k["sample"]["of"]
        elements = elements * k["sample"]["blocks"] // k["sample"]["of"]
    edges = 32 * 16 * (len(inputs) + 1) if whole else 0  # scalar tails: a sector for each element
    if k["distinct_bytes"] > moved + edges or k["requested_bytes"] > moved + edges or 32 * k["sectors"] > moved + edges:
        faults.append(f"moves {k['requested_bytes']} bytes in {k['sectors']} sectors, {moved} are enough")
    resources = k["resources"]
    if resources["stack_bytes"] or resources["spill_bytes"]:
        faults.append("local memory")
    if k["findings"] or k["bank_conflicts"]:
        faults.append("findings or bank conflicts")
    warps = elements / 32
    instructions = k["instructions"]
    floating = instructions["float32"] + instructions["special_function"]
    if floats and floating > floats * (warps + (40 if whole else 0)):
        faults.append(f"{floating / warps:.2f} float instructions an element, at most {floats}")
    executed = sum(instructions.values()) - instructions["move"]
    if case in FULL_BLOCKS and executed > OF_FULL_BLOCKS * elements * BITS[dtype] // (128 * 32):
        faults.append(f"{executed} instructions, {OF_FULL_BLOCKS} a warp are enough")
    accesses = sum(-(-elements * b // (32 * 128)) for b in [BITS[dtype]] * (len(inputs) + 1))
    arguments = (len(inputs) + 4) * (-(-elements * BITS[dtype] // 128) // 32 + 64)
    if instructions["load_store"] > accesses + arguments:
        faults.append(f"{instructions['load_store']} loads and stores, {accesses} of 16 bytes are enough")
    if sass.disassembler() and not whole:
        faults += sass_faults(sass.operations(options.fusec, model, arch, folder), case)
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("fusec")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    cases = [(case, arch, False) for case in (LARGE if options.full else LARGE[:4]) for arch in ("sm_80", "sm_90a")]
    cases += [(case, arch, True) for i, case in enumerate(ODD) for arch in ("sm_80", "sm_90a")
              if options.full or (arch == "sm_80" and i % 5 == 0)]
    cases += [(case, arch, True) for i, case in enumerate(FULL_BLOCKS) for j, arch in enumerate(("sm_80", "sm_90a"))
              if options.full or (i + j) % 2 == 0]
    # Each alone, and fused horizontally.
    edges = [(dtype, arch, strategy) for i, dtype in enumerate(BYTES) for j, arch in enumerate(("sm_80", "sm_90a"))
             for k, strategy in enumerate(("tvm", "full")) if options.full or (i, j, k) in ((0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1))]
    mixed = [(dtypes, arch) for i, dtypes in enumerate(MIXED) for j, arch in enumerate(("sm_80", "sm_90a"))
             if options.full or i % 4 == 2 * j]
    parts = [(model, arch) for i, model in enumerate(axis_parts_models.counted())
             for j, arch in enumerate(("sm_80", "sm_90a")) if options.full or i % 12 == 6 * j]
    parts += [(axis_parts_models.any_parts(seed), ("sm_80", "sm_90a")[seed % 2])
              for seed in range(150 if options.full else 3)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, arch, whole in cases:
            faults = check(case, arch, whole, options, folder)
            failed += bool(faults)
            for fault in faults:
                print(f"{case[0]} {case[2]} {case[4]} {arch}: {fault}")
        for dtype, arch, strategy in edges:
            faults = check_edges(dtype, arch, strategy, options, folder)
            failed += bool(faults)
            for fault in faults:
                print(f"edges of {dtype} {arch} {strategy}: {fault}")
        for dtypes, arch in mixed:
            faults = check_mixed(dtypes, arch, options, folder)
            failed += bool(faults)
            for fault in faults:
                print(f"{dtypes[0]} as {dtypes[1]} {arch}: {fault}")
        for model, arch in parts:
            faults = check_parts(model, arch, options, folder)
            failed += bool(faults)
            for fault in faults:
                print(f"{model.name} {arch}: {fault}")
    count = len(cases) + len(edges) + len(mixed) + len(parts)
    print(f"{count - failed} of {count} pointwise kernels as they should be, "
          f"SASS {'read' if sass.disassembler() else 'not read: no nvdisasm'}")
    sys.exit(1 if failed else 0)


main()
