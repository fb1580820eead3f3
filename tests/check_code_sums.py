#!/usr/bin/env python3
"""check_code_sums.py FUSEC_RUN

The accuracy of skinny products that convert quantized weights to 16-bit floats by their bits (magic numbers). Compares
the accumulators, before they are rounded to 16 bits, with exact sums, for x with one sign (the worst case) and with
both. docs/numerics.md states the bounds. Status 77: no NVRTC."""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import tensors

ROWS, COLUMNS, DEPTH = 3, 48, 4096
MOST, MOST_OF_ONE_SIGN_IN_BFLOAT16 = 1e-5, 1e-4  # relative to the root mean square of the sums
STORED = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "int4": "U8", "uint4": "U8", "int8": "I8",
          "float4_e2m1fn": "F4"}
HALVES = ("int4", "uint4", "float4_e2m1fn")


def value_of(kind, code):
    if kind == "float4_e2m1fn":
        return tensors.F4_E2M1[code]
    return code - 16 if kind == "int4" and code > 7 else code - 256 if kind == "int8" and code > 127 else code


def bytes_of(kind, codes):
    return bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2])) if kind in HALVES else bytes(codes)


def halves_of(dtype, values):
    if dtype == "float16":
        return struct.pack(f"<{len(values)}e", *values)
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def write(path, entries):
    header, body = {}, b""
    for name, (kind, shape, data) in entries.items():
        stored = shape[:-1] + [shape[-1] // 2] if kind in ("int4", "uint4") else shape
        header[name] = {"dtype": STORED[kind], "shape": stored, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def made(rng, dtype, kind, block, zeros, one_sign):
    """The tensors of a product, and its exact sums."""
    parts = DEPTH // block
    x = [rng.randint(64, 191) / 128 * (1 if one_sign else rng.choice((-1, 1))) for _ in range(ROWS * DEPTH)]
    most_negative = {"int4": 8, "int8": 128}.get(kind)  # excluded, so that the mean is 0
    count = 16 if kind in HALVES else 256
    codes = rng.choices([c for c in range(count) if c != most_negative], k=COLUMNS * DEPTH)
    scales = [tensors.rounded("F32", 1 + rng.random()) for _ in range(COLUMNS * parts)]
    zero = [rng.choice((7, 8)) if zeros else 0 for _ in range(COLUMNS * parts)]
    entries = {"x": (dtype, [ROWS, DEPTH], halves_of(dtype, x)),
               "c": (kind, [COLUMNS, DEPTH], bytes_of(kind, codes)),
               "s": ("float32", [COLUMNS, parts], struct.pack(f"<{len(scales)}f", *scales))}
    if zeros:
        entries["z"] = (kind, [COLUMNS, parts], bytes_of(kind, zero))
    values = [value_of(kind, code) for code in range(count)]
    sums = []
    for m in range(ROWS):
        row = x[m * DEPTH:(m + 1) * DEPTH]
        for n in range(COLUMNS):
            column = [values[c] for c in codes[n * DEPTH:(n + 1) * DEPTH]]
            of_parts = (sum(a * (w - values[zero[n * parts + p]]) for a, w in zip(row[p * block:(p + 1) * block],
                                                                                 column[p * block:(p + 1) * block]))
                        for p in range(parts))  # multiples of 1/256 up to 2^40, so exact
            sums.append(math.fsum(s * part for s, part in zip(scales[n * parts:], of_parts)))
    return entries, sums


def loss(fusec_run, folder, arch, dtype, entries, block, sums):
    model, inputs, outputs = (os.path.join(folder, name) for name in ("m.json", "i.safetensors", "o.safetensors"))
    write(inputs, entries)
    nodes = [{"name": "w", "op": "dequantize", "inputs": [n for n in entries if n != "x"],
              "attrs": {"dtype": dtype, "axis": 1, "block": block}},
             {"name": "h", "op": "linear", "inputs": ["x", "w"], "attrs": {}},
             {"name": "y", "op": "cast", "inputs": ["h"], "attrs": {"dtype": "float32"}}]
    with open(model, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "sums", "nodes": nodes, "outputs": ["y"],
                   "inputs": [{"name": n, "dtype": d, "shape": s} for n, (d, s, _) in entries.items()]}, f)
    told = subprocess.run([fusec_run, model, f"--inputs={inputs}", "--device=emulator", f"--arch={arch}",
                           f"--outputs={outputs}"], text=True, capture_output=True)
    if "NVRTC" in told.stderr:
        print(told.stderr.strip())
        sys.exit(77)
    if told.returncode:
        raise RuntimeError(told.stderr)
    size = math.sqrt(sum(s * s for s in sums) / len(sums))
    losses = [abs(got - want) for got, want in zip(tensors.read(outputs)["y"][2], sums)]
    return max(losses) / size if all(map(math.isfinite, losses)) else math.inf


def main():
    failed, worst = 0, {True: 0.0, False: 0.0}
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        for dtype, kind, zeros in (("bfloat16", "int4", False), ("float16", "int4", False), ("bfloat16", "uint4", True),
                                   ("float16", "uint4", True), ("float16", "int8", False),
                                   ("bfloat16", "float4_e2m1fn", False)):
            for block in (128, DEPTH // 2):
                for one_sign in (True, False):
                    entries, sums = made(rng, dtype, kind, block, zeros, one_sign)
                    for arch in ("sm_80", "sm_90a"):
                        lost = loss(sys.argv[1], folder, arch, dtype, entries, block, sums)
                        worst[one_sign] = max(worst[one_sign], lost)
                        most = MOST_OF_ONE_SIGN_IN_BFLOAT16 if one_sign and dtype == "bfloat16" else MOST
                        if not lost <= most:
                            failed += 1
                        print(f"{kind} in {dtype}, blocks of {block}, x of {'one sign' if one_sign else 'both signs'}, "
                              f"{arch}: {lost:.1e} of the sums are lost, at most {most:.0e}")
    print(f"the most that is lost: {worst[True]:.1e} where x has one sign, {worst[False]:.1e} where it has both")
    sys.exit(1 if failed else 0)


main()
