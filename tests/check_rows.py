#!/usr/bin/env python3
"""check_rows.py FUSEC_RUN FUSEC [--sample=N] [--seed=N]

Row kernels (softmax, norms, sums, and their fused neighbours) over lengths of rows, dtypes and targets. The emulator
executes and verifies them: no findings, bank conflicts, spills or local memory. Memory is read once if registers hold a
row, by 16 bytes if rows allow it. Short unaligned rows go through shared memory: every byte once, in 16-byte accesses
except at the ends. Pools, reductions of channels, batch norms and the shortest rows take few instructions per byte
(LIGHT). Rows that no block holds are kept by several co-resident blocks, and read once, too. A few rows longer than
that, and the keys of attention, take several launches. Status 77: no NVRTC."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
WIDE = {"float64": 8}
ARCHITECTURES = ("sm_80", "sm_90a")
HELD = 32768  # float32 elements of a row that a block's registers hold


def softmax(rows, columns):
    return [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}}], {}


def layer_norm(rows, columns):
    attrs = {"normalized_shape": [columns], "eps": 1e-5}
    return [{"name": "y", "op": "layer_norm", "inputs": ["x", "w", "b"], "attrs": attrs}], {"w": [columns], "b": [columns]}


def rms_norm(rows, columns):
    return ([{"name": "y", "op": "rms_norm", "inputs": ["x", "w"], "attrs": {"normalized_shape": [columns]}}],
            {"w": [columns]})


def residual_rms_norm(rows, columns):
    return ([{"name": "s", "op": "add", "inputs": ["x", "r"]},
             {"name": "y", "op": "rms_norm", "inputs": ["s", "w"], "attrs": {"normalized_shape": [columns]}}],
            {"r": [rows, columns], "w": [columns]})


def log_softmax_written_out(rows, columns):
    return ([{"name": "m", "op": "amax", "inputs": ["x"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "d", "op": "sub", "inputs": ["x", "m"]},
             {"name": "e", "op": "exp", "inputs": ["d"]},
             {"name": "t", "op": "sum", "inputs": ["e"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "l", "op": "log", "inputs": ["t"]},
             {"name": "y", "op": "sub", "inputs": ["d", "l"]}], {})


def reduction(op, **attrs):
    def of_shape(rows, columns):
        return [{"name": "y", "op": op, "inputs": ["x"], "attrs": attrs}], {}
    of_shape.__name__ = op + str(attrs.get("dim", "_all"))
    return of_shape


def over_its_norm(rows, columns):
    return ([{"name": "q", "op": "mul", "inputs": ["x", "x"]},
             {"name": "t", "op": "sum", "inputs": ["q"], "attrs": {}},
             {"name": "n", "op": "sqrt", "inputs": ["t"]},
             {"name": "y", "op": "div", "inputs": ["x", "n"]}], {})


ROW_FORMS = [softmax, layer_norm, rms_norm, residual_rms_norm, log_softmax_written_out]
LENGTHS = {24: 641, 33: 700, 40: 450, 64: 5001, 128: 1333, 256: 770, 512: 60, 768: 300, 1001: 40, 1024: 64, 2047: 33,
           2048: 20, 4095: 7, 4096: 140, 8192: 12, 16384: 5, 30000: 3}


def padded(op, rows, columns, before, behind, **attrs):
    return rows, columns, [{"name": "p", "op": "pad", "inputs": ["x"], "attrs": {"pad": [before, behind]}},
                           {"name": "y", "op": op, "inputs": ["p"], "attrs": {"dim": [1] if attrs else 1, **attrs}}]


def cut_from_two(op, rows, columns, start, end, **attrs):
    return rows, columns, [{"name": "t", "op": "concat", "inputs": ["x", "x"], "attrs": {"dim": 1}},
                           {"name": "c", "op": "slice", "inputs": ["t"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "y", "op": op, "inputs": ["c"], "attrs": attrs or {"dim": 1}}]


def repeated(op, rows, columns, start, end):
    return rows, columns, [{"name": "e", "op": "unsqueeze", "inputs": ["x"], "attrs": {"dim": 2}},
                           {"name": "t", "op": "expand", "inputs": ["e"], "attrs": {"shape": [rows, columns, 8]}},
                           {"name": "f", "op": "reshape", "inputs": ["t"], "attrs": {"shape": [rows, 8 * columns]}},
                           {"name": "c", "op": "slice", "inputs": ["f"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "s", "op": "slice", "inputs": ["z"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "a", "op": "add", "inputs": ["c", "s"]},
                           {"name": "y", "op": op, "inputs": ["a"], "attrs": {"dim": 1}}]


def part_of(op, rows, columns, start, end, **attrs):
    return rows, columns, [{"name": "c", "op": "slice", "inputs": ["x"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "y", "op": op, "inputs": ["c"], "attrs": attrs or {"dim": 1}}]


# Padded or concatenated rows: the position in the row decides whether and where an element is read.
GUARDED = [padded("amax", 1, 512, 1, 2, keepdim=True), padded("softmax", 1, 513, 1, 2),
           padded("softmax", 1, 512, 0, 1), padded("softmax", 7, 301, 3, 0), padded("sum", 1, 20000, 1, 2, keepdim=True),
           cut_from_two("log_softmax", 1, 65, 1, 130), cut_from_two("softmax", 5, 301, 3, 500),
           cut_from_two("layer_norm", 1, 1000, 8, 1983, normalized_shape=[1975], eps=1e-5),
           repeated("softmax", 1, 40, 8, 267), repeated("softmax", 3, 40, 8, 267),
           *[part_of("softmax", 8, columns, start, start + count) for columns, start, count in
             ((5, 3, 2), (7, 3, 4), (9, 1, 6), (13, 5, 8), (11, 3, 3))]]
# Few long rows, and reductions of everything.
LONG = [(softmax, 4, 65536), (layer_norm, 2, 100003), (residual_rms_norm, 1, 200000), (softmax, 1, 1000003),
        (reduction("sum", dim=[1]), 3, 100003), (reduction("sum"), 1024, 1025), (reduction("var"), 700, 1000),
        (reduction("amax"), 1, 1 << 20), (over_its_norm, 500, 1001), (reduction("sum", dim=[0]), 9001, 96),
        (reduction("softmax", dim=0), 6001, 70), (reduction("mean", dim=[0]), 70000, 5),
        (reduction("argmax", dim=1), 2, 300001), (reduction("argmax", dim=0), 6001, 70)]
# Rows that no block holds: blocks share them, on sm_90a in clusters.
SHARED = [(3, 65521), (4, 65536), (1, 100003), (3, 100003), (24, 100003), (2, 128256)]
SHARED_ON_SM_80 = [(9, 70000)]
SHARED_WIDE = [(4, 100003), (7, 40001), (3, 65536)]
# Attention of few queries over many keys, which blocks share: heads, key heads, queries, keys, head size.
DECODING = [(4, 4, 1, 4096, 64, "bfloat16", False), (8, 2, 1, 3001, 64, "float16", False),
            (2, 2, 5, 2000, 40, "float32", False), (3, 3, 3, 2500, 128, "bfloat16", True),
            (1, 1, 70, 6000, 32, "float16", True), (2, 2, 1, 700, 64, "float32", False),
            (1, 1, 7, 301, 256, "float32", True), (8, 4, 1, 1001, 128, "float32", False)]
# Heads whose rows are no multiple of 16 bytes.
UNEVEN_HEADS = [(2, 2, 200, 200, 84, "bfloat16", False), (2, 1, 130, 150, 100, "float16", True),
                (1, 1, 130, 200, 90, "float16", False), (4, 4, 1, 1000, 100, "bfloat16", False)]


# Many short rows that are not aligned to sectors.
SHORT = {5: 1000, 6: 640, 33: 512, 36: 512, 63: 300, 100: 256, 127: 1111, 201: 130, 255: 160}
SHORT_LONGER = {301: 128, 420: 100, 511: 96}  # with vectors as further operands


def any_short(seed):
    """A random kernel of short rows. Only results, findings, bank conflicts and spills are checked."""
    chance = random.Random(seed)
    columns = chance.choice([2, 3, 5, 6, 7, 9, 10, 12, 15, 17, 20, 24, 31, 33, 36, 44, 49, 63, 77, 90, 99, 100, 101, 127, 129,
                             150, 200, 201, 255, 257, 301, 333, 420, 511])
    rows = chance.choice([64, 65, 77, 130] + ([200, 333, 1000] if columns < 150 else []))
    dtype = chance.choice(["float32", "bfloat16", "float16"] * 3 + ["float8_e4m3fn", "int32", "int8"])
    shape = chance.choice([[rows], [2, rows // 2 + 1], [3, 5, rows // 15 + 1], ["n"]]) + [columns]
    symbols = {"n": {"min": 1, "max": chance.choice([4096, 1 << 33]), "hint": rows}} if shape[0] == "n" else {}
    inputs, nodes, outputs, x = {"x": (dtype, shape)}, [], ["y"], "x"
    if dtype not in BYTES:
        nodes, x, dtype = [{"name": "c", "op": "cast", "inputs": ["x"], "attrs": {"dtype": "float32"}}], "c", "float32"
    if chance.random() < 0.4:
        inputs["r"] = (dtype, shape)
        nodes.append({"name": "s", "op": "add", "inputs": [x, "r"]})
        x, outputs = "s", outputs + ["s"] * chance.randint(0, 1)
    last, attrs = len(shape) - 1, {"normalized_shape": [columns]}
    kind = chance.choice(["softmax", "log_softmax", "layer_norm", "rms_norm", "argmax", "sum", "var", "scaled", "over_greatest",
                          "float8_e4m3fn", "int8"])
    if kind in ("softmax", "log_softmax", "argmax"):
        nodes.append({"name": "y", "op": kind, "inputs": [x], "attrs": {"dim": last}})
    elif kind in ("sum", "var"):
        nodes.append({"name": "y", "op": kind, "inputs": [x], "attrs": {"dim": [last]}})
    elif kind == "layer_norm":
        inputs |= {"w": (dtype, [columns]), "b": (dtype, [columns])}
        nodes.append({"name": "y", "op": kind, "inputs": [x, "w", "b"], "attrs": attrs})
    elif kind == "scaled":
        inputs["q"] = (dtype, shape[:-1] + [1])
        nodes += [{"name": "m", "op": "mul", "inputs": [x, "q"]},
                  {"name": "y", "op": "softmax", "inputs": ["m"], "attrs": {"dim": last}}]
    else:
        inputs["w"] = (dtype, [columns])
        nodes.append({"name": "y" if kind == "rms_norm" else "v", "op": "rms_norm", "inputs": [x, "w"], "attrs": attrs})
    if kind == "over_greatest":
        nodes += [{"name": "a", "op": "abs", "inputs": ["v"]},
                  {"name": "m", "op": "amax", "inputs": ["a"], "attrs": {"dim": [last], "keepdim": True}},
                  {"name": "y", "op": "div", "inputs": ["v", "m"]}]
        outputs.append("m")
    if kind in ("float8_e4m3fn", "int8"):
        nodes += [{"name": "z", "op": "mul", "inputs": ["v", 20.0]},
                  {"name": "y", "op": "cast", "inputs": ["z"], "attrs": {"dtype": kind}}]
    given = ["--symbol=n=" + str(chance.choice([1, 15, 64, 65, 333]))] if symbols else []
    return inputs, nodes, outputs, symbols, given


def guarded(number):
    rows, columns, nodes = GUARDED[number]
    dtype = "float32" if nodes[0]["op"] == "slice" else "float16"
    inputs = [{"name": "x", "dtype": dtype, "shape": [rows, columns]}]
    if nodes[0]["op"] == "unsqueeze":
        inputs.append({"name": "z", "dtype": "float16", "shape": [rows, 8 * columns]})
    return nodes, inputs


def attention(heads, key_heads, queries, keys, size, dtype, causal):
    attrs = {"is_causal": causal, **({"enable_gqa": True} if heads != key_heads else {})}
    shapes = {"q": [1, heads, queries, size], "k": [1, key_heads, keys, size], "v": [1, key_heads, keys, size]}
    nodes = [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"], "attrs": attrs}]
    return nodes, [{"name": n, "dtype": dtype, "shape": s} for n, s in shapes.items()]


# Op, dtype, shape, reduced dimensions, and the most instructions of a thread per moved byte. With more than six an
# H200 computes for longer than it copies.
LIGHT = [
    ("mean", "bfloat16", [64, 512, 7, 7], [2, 3], 4.0),
    ("mean", "float32", [64, 512, 7, 7], [2, 3], 1.5),
    ("amax", "float16", [64, 512, 7, 7], [2, 3], 4.0),
    ("amax", "float16", [16, 512, 14, 14], [2, 3], 4.5),
    ("var", "float32", [16, 1280, 7, 7], [2, 3], 3.5),
    ("std", "bfloat16", [16, 1280, 7, 7], [2, 3], 8.0),
    ("softmax", "float32", [20000, 49], [1], 4.5),
    ("softmax", "float16", [3000, 77], [1], 7.0),
    ("softmax", "bfloat16", [20000, 8], [1], 3.0),
    ("amax", "float16", [50000, 2], [1], 4.5),
    ("sum", "bfloat16", [50000, 4], [1], 3.5),
    ("mean", "float16", [30001, 8], [1], 3.0),
    ("amax", "uint8", [4000, 49], [1], 18.0),
    ("amin", "uint16", [5000, 33], [1], 8.0),
    ("mean", "bfloat16", [8, 64, 56, 56], [0, 2, 3], 3.0),
    ("sum", "float32", [8, 64, 28, 28], [0, 2, 3], 2.0),
    ("amax", "float16", [8, 33, 10, 20, 20], [0, 2, 3, 4], 3.5),
    ("std", "bfloat16", [32, 16, 56, 56], [0, 2, 3], 5.0),
    ("sum", "float16", [500, 2001], [0], 3.0),
    ("mean", "bfloat16", [40, 256, 1023], [1], 3.0),
    ("var", "float16", [8, 300, 257], [1], 4.5),
    ("sum", "float32", [800, 1501], [0], 2.0),
    ("mean", "float16", [32, 512, 7, 7], [0, 2, 3], 2.5),
    ("mean", "bfloat16", [32, 128, 14, 14], [0, 2, 3], 2.5),
    ("mean", "float16", [32, 16, 57, 57], [0, 2, 3], 2.5),
    ("var", "float32", [12, 48, 33, 33], [0, 2, 3], 3.0),
    ("sum", "float32", [20, 96, 5, 5], [0, 2, 3], 2.0),
    ("amax", "uint8", [64, 256, 7, 7], [0, 2, 3], 4.5),
    ("mean", "bfloat16", [12, 48, 13, 11], [0, 3], 3.5),
    ("sum", "float16", [100, 96, 25], [0, 2], 2.5),
    ("mean", "float16", [64, 3, 7, 7], [0, 2, 3], 3.0),
    ("mean", "bfloat16", [501, 5, 7, 7], [0, 2, 3], 2.5),
    ("var", "bfloat16", [32, 512, 7, 7], [0, 2, 3], 5.0),
    ("std", "float16", [200, 512, 7, 7], [0, 2, 3], 4.0),
    ("normalized", "float16", [32, 256, 7, 7], [0, 2, 3], 4.5),
    ("normalized", "bfloat16", [8, 32, 28, 28], [0, 2, 3], 4.0),
    ("normalized", "float16", [16, 32, 56, 56], [0, 2, 3], 4.0),
]


def light(number):
    """The nodes and inputs of a model of LIGHT."""
    op, dtype, shape, along, _ = LIGHT[number]
    dim = along[0] if op == "softmax" else along
    if op == "normalized":
        attrs = {"dim": along, "keepdim": True}
        return ([{"name": "m", "op": "mean", "inputs": ["x"], "attrs": attrs},
                 {"name": "v", "op": "var", "inputs": ["x"], "attrs": attrs},
                 {"name": "d", "op": "sub", "inputs": ["x", "m"]}, {"name": "e", "op": "add", "inputs": ["v", 0.001]},
                 {"name": "r", "op": "rsqrt", "inputs": ["e"]}, {"name": "y", "op": "mul", "inputs": ["d", "r"]}],
                [{"name": "x", "dtype": dtype, "shape": shape}])
    return ([{"name": "y", "op": op, "inputs": ["x"], "attrs": {"dim": dim}}],
            [{"name": "x", "dtype": dtype, "shape": shape}])


def cases():
    found = []
    for arch in ARCHITECTURES:
        for dtype in BYTES:
            found += [(form, rows, columns, dtype, arch) for columns, rows in LENGTHS.items() for form in ROW_FORMS]
        found += [(form, rows, columns, dtype, arch) for form, rows, columns in LONG for dtype in ("float32", "bfloat16")]
        shared = SHARED + (SHARED_ON_SM_80 if arch == "sm_80" else [])
        found += [(form, rows, columns, dtype, arch) for rows, columns in shared for form in ROW_FORMS for dtype in BYTES]
        found += [(form, rows, columns, "float64", arch) for rows, columns in SHARED_WIDE for form in ROW_FORMS]
        found += [(attention, shape, arch) for shape in DECODING + UNEVEN_HEADS]
        for dtype in BYTES:
            found += [(form, rows, columns, dtype, arch) for columns, rows in SHORT.items() for form in ROW_FORMS]
            found += [(form, rows, columns, dtype, arch) for columns, rows in SHORT_LONGER.items()
                      for form in (layer_norm, rms_norm)]
    found += [(guarded, number, arch) for number in range(len(GUARDED)) for arch in ARCHITECTURES]
    found += [(light, number, arch) for number in range(len(LIGHT)) for arch in ARCHITECTURES]
    found += [(any_short, seed, ARCHITECTURES[seed % 2]) for seed in range(100)]
    return found


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 3 and "nvrtc" in done.stdout:
        print("skipped: " + done.stdout.strip())
        sys.exit(77)
    return done


def of_rows(kernels):
    """The kernels without the one that clears the counters of co-resident blocks."""
    return [kernel for kernel in kernels if "clear_counters" not in kernel["name"]]


def held_in_registers(kernels, case, others):
    """Checks for one kernel that reads operands of the input's size once."""
    form, rows, columns, dtype, _ = case
    kernels = of_rows(kernels)
    if len(kernels) != 1:
        return f"{len(kernels)} kernels"
    # Operands of the input's size and the result once. An unaligned row has parts of sectors. Every row reads the
    # weights; with unaligned rows in a few accesses each, by threads one vector apart, so that requests touch sectors
    # of the L1 cache that neighbouring requests touch, too.
    big = (1 + len([s for s in others.values() if len(s) == 2]) + 1) * rows * columns * BYTES[dtype]
    small = sum(rows * s[0] * BYTES[dtype] for s in others.values() if len(s) == 1)
    row = columns * BYTES[dtype]
    if row % 16 != 0 and columns >= 128:
        small *= 2.4 if BYTES[dtype] == 4 else 3.0
    allowed = (1.02 if row % 128 == 0 else 1.5 if row >= 256 else 2.0) * (big + small)
    if kernels[0]["requested_bytes"] > allowed:
        return f"{kernels[0]['requested_bytes']} bytes requested, {big + small:.0f} needed"
    return ""


def read_once(kernels, case, others):
    """Checks that every byte of the rows is read once, and the shared vectors once a row. Allows for sectors that
    neighbouring warps share if rows are unaligned, and for the data that co-resident blocks exchange."""
    _, rows, columns, dtype, arch = case
    row = columns * {**BYTES, **WIDE}[dtype]
    needed = rows * row * (2 + len(others))
    meeting = 32768 if arch == "sm_80" else 4096
    moved = max(sum(k["requested_bytes"] for k in kernels), 32 * sum(k["sectors"] for k in kernels))
    many = [kernel["name"] for kernel in of_rows(kernels)]
    # With weights, a warp's 32 wide elements are not aligned to sectors.
    more = 1.0 if row % 128 == 0 else 1.085 if dtype in WIDE and others else 1.045
    if len(many) != 1 or moved > more * needed + meeting:
        return f"{moved} bytes by {', '.join(many)}, {needed} needed"
    return ""


def heavy(kernels, case):
    """More than a tenth of the sectors are read twice, or there are more instructions than the case allows."""
    least = sum(kernel["least_bytes"] for kernel in kernels)
    sectors = 32 * sum(kernel["sectors"] for kernel in kernels) / least
    spent = 32 * sum(n for kernel in kernels for kind, n in kernel["instructions"].items() if kind != "move") / least
    if len(kernels) == 1 and sectors <= 1.1 and spent <= LIGHT[case[1]][-1]:
        return ""
    return f"{len(kernels)} kernels, {sectors:.2f} of the bytes in sectors, {spent:.1f} instructions for a byte"


def is_short(case):
    _, rows, columns, _, _ = case
    return SHORT.get(columns) == rows or SHORT_LONGER.get(columns) == rows


def moved_once(kernels, case, others):
    """Every byte of the rows is moved once. A block of 8 or more rows reads the shared vectors."""
    _, rows, columns, dtype, _ = case
    big = (2 + len([s for s in others.values() if len(s) == 2])) * rows * columns * BYTES[dtype]
    small = sum((rows / 8 + 1) * (s[0] * BYTES[dtype] + 96) for s in others.values() if len(s) == 1)
    ends = 64 * (2 + len(others))
    if len(kernels) != 1 or max(kernels[0]["requested_bytes"], 32 * kernels[0]["sectors"]) > big + small + ends:
        return f"{kernels[0]['requested_bytes']} bytes in {kernels[0]['sectors']} sectors, {big} needed and {small} beside"
    return ""


def narrow_accesses(fusec, path, arch, scratch, allowed=0):
    """Allowed accesses of global memory that are not 16 bytes wide."""
    ptx = os.path.join(scratch, "model.ptx")
    done = run([fusec, path, "--arch=" + arch, "--emit=ptx=" + ptx, "-o", os.path.join(scratch, "model.cu")])
    if done.returncode != 0:
        return done.stdout
    with open(ptx, encoding="utf-8") as f:
        accesses = re.findall(r"\b(?:ld|st)\.global[.\w:]*", f.read())
    narrow = [a for a in accesses if not re.search(r"\.v4\.[ubf]32$|\.v2\.[ubf]64$", a)]
    return f"{narrow[0]} among {len(accesses)} accesses" if len(narrow) > allowed or len(narrow) == len(accesses) else ""


def what_is_wrong(programs, scratch, case):
    form, arch = case[0], case[-1]
    outputs, symbols, given = ["y"], {}, []
    if form is any_short:
        tensors, nodes, outputs, symbols, given = any_short(case[1])
        inputs = [{"name": n, "dtype": d, "shape": s} for n, (d, s) in tensors.items()]
    elif form is attention:
        nodes, inputs = attention(*case[1])
    elif form in (guarded, light):
        nodes, inputs = form(case[1])
    else:
        rows, columns, dtype = case[1:-1]
        nodes, others = form(rows, columns)
        inputs = [{"name": n, "dtype": dtype, "shape": s} for n, s in {"x": [rows, columns], **others}.items()]
    path, report = (os.path.join(scratch, name) for name in ("model.json", "profile.json"))
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "rows", "symbols": symbols, "inputs": inputs, "nodes": nodes, "outputs": outputs}, f)
    done = run([programs.fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=" + arch,
                "--profile=" + report, "--json"] + given)
    if done.returncode != 0:
        return done.stdout
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    for kernel in kernels:
        # With a few threads a row and a few elements, bank conflicts are rare but possible.
        few = 6 if form is guarded and nodes[0]["op"] == "slice" else 0
        if nodes[0].get("attrs", {}).get("dim") in (0, [0]):  # columns: tests/check_columns.py
            few = kernel["sectors"] / 12
        if form is attention and case[1] not in UNEVEN_HEADS:
            few = kernel["bank_conflicts"]
        if kernel["findings"] or kernel["bank_conflicts"] > few:
            return f"{kernel['findings']} findings, {kernel['bank_conflicts']} bank conflicts"
        if kernel["resources"]["spill_bytes"] or kernel["resources"]["stack_bytes"]:
            return "local memory is used"
    if form is light:
        return heavy(kernels, case)
    if form not in ROW_FORMS:
        return ""
    if (rows, columns) in SHARED + SHARED_ON_SM_80 + SHARED_WIDE:
        return read_once(kernels, case, others)
    if columns > HELD:
        return ""
    if is_short(case):
        # The ends of each tensor's rows, and the weights.
        ends = len(inputs) + 1 + sum(-(-s[0] // 32) for s in others.values() if len(s) == 1)
        return moved_once(kernels, case, others) or narrow_accesses(programs.fusec, path, arch, scratch, ends)
    wrong = held_in_registers(kernels, case, others)
    if not wrong and len(kernels) == 1 and columns * BYTES[dtype] % 16 == 0:  # counters and partial results are words
        wrong = narrow_accesses(programs.fusec, path, arch, scratch)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("fusec")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    programs = parser.parse_args()
    chosen = cases()
    if programs.sample:
        always = [case for case in chosen if case[0] in (guarded, light)]
        random.Random(programs.seed).shuffle(chosen)
        chosen = always + chosen[:programs.sample]
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in chosen:
            wrong = what_is_wrong(programs, scratch, case)
            if wrong:
                failures += 1
                print("FAILED", case[0].__name__, *case[1:], wrong, flush=True)
    print(f"rows: {len(chosen)} cases, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
