#!/usr/bin/env python3
"""check_few_rows.py FUSEC FUSEC_RUN [--sample=N] [--seed=N] [--only=TEXT]

Skinny GEMM: products of 1 to 32 rows with a weight matrix, as in decoding, on the emulator for sm_80 and sm_90a. Right
results at sizes that are no multiple of any tile, and no findings. Each sector of the weights is read once, without
bank conflicts or local memory. If 16-byte accesses suffice, the PTX has no others. Large weights take few enough
instructions per byte that copying, not computing, is the bottleneck.

--sample: N of the cases, chosen by the seed."""
import argparse, json, math, os, random, re, tempfile

from emulated_run import expect, expect_clean, finish, run

ROWS = [1, 2, 3, 5, 8, 9, 13, 16, 25, 32]


def tensor(name, dtype, *shape):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def node(name, op, inputs, **attributes):
    return {"name": name, "op": op, "inputs": inputs.split(), "attrs": attributes}


def model(inputs, constants, nodes, *outputs, **more):
    return {"fusec": 1, "name": "few", "inputs": inputs, "constants": constants, "nodes": nodes,
            "outputs": list(outputs), **more}


def linear(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("w", dtype, n, k), tensor("b", dtype, n)],
                 [node("p", "linear", "x w b"), node("h", "gelu", "p")], "h")


def matmul(m, dtype, n, k):
    return model([tensor("x", dtype, m, k), tensor("r", dtype, m, n)], [tensor("w", dtype, k, n)],
                 [node("p", "matmul", "x w"), node("h", "add", "p r")], "h")


def plain(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("w", dtype, n, k)], [node("h", "linear", "x w")], "h")


def plain_across(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("w", dtype, k, n)], [node("h", "matmul", "x w")], "h")


def gated(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("g", dtype, n, k), tensor("u", dtype, n, k)],
                 [node("p", "linear", "x g"), node("q", "linear", "x u"), node("s", "silu", "p"),
                  node("h", "mul", "s q")], "h")


def gated_across(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("w", dtype, k, 2 * n)],
                 [node("p", "matmul", "x w"), node("c", "chunk", "p", chunks=2, dim=1), node("s", "silu", "c.0"),
                  node("h", "mul", "s c.1")], "h")


def three(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)], [tensor("q", dtype, n, k), tensor("k", dtype, n // 2, k),
                                              tensor("v", dtype, n // 2, k)],
                 [node("a", "linear", "x q"), node("b", "linear", "x k"), node("c", "linear", "x v")], "a", "b", "c")


def computed(m, dtype, n, k):
    return model([tensor("a", dtype, m, k), tensor("b", dtype, m, k)], [tensor("w", dtype, n, k)],
                 [node("s", "silu", "a"), node("x", "mul", "s b"), node("h", "linear", "x w")], "h")


def two_depths(m, dtype, n, k):
    return model([tensor("x", dtype, m, k), tensor("y", dtype, m, 2 * k)],
                 [tensor("v", dtype, n, k), tensor("w", dtype, n, 2 * k)],
                 [node("p", "linear", "x v"), node("q", "linear", "y w"), node("h", "add", "p q")], "h")


def batched(m, dtype, n, k):
    return model([tensor("x", dtype, 3, m, k)], [tensor("w", dtype, 3, k, n)],
                 [node("p", "bmm", "x w"), node("h", "relu", "p")], "h")


def symbolic(m, dtype, n, k):
    return model([tensor("x", dtype, "t", k)], [tensor("w", dtype, n, k)], [node("h", "linear", "x w")], "h",
                 symbols={"t": {"min": 1, "max": 32, "hint": m}})


def codes(m, dtype, n, k, kind, scale=None):
    return model([tensor("x", dtype, m, k)], [tensor("c", kind, n, k), tensor("s", scale or dtype, n)],
                 [node("w", "dequantize", "c s", dtype=dtype, axis=0), node("h", "linear", "x w")], "h")


def codes_across(m, dtype, n, k, kind):
    return model([tensor("x", dtype, m, k)], [tensor("c", kind, k, n), tensor("s", dtype, n)],
                 [node("w", "dequantize", "c s", dtype=dtype, axis=1), node("h", "matmul", "x w")], "h")


def blocks_of_codes(m, dtype, n, k, kind, block=32, scale=None, zero=True):
    scales = [tensor("s", scale or dtype, n, k // block)] + ([tensor("z", kind, n, k // block)] if zero else [])
    return model([tensor("x", dtype, m, k)], [tensor("c", kind, n, k), *scales],
                 [node("w", "dequantize", "c s z" if zero else "c s", dtype=dtype, axis=1, block=block),
                  node("h", "linear", "x w")], "h")


def gated_codes(m, dtype, n, k, kind, other):
    """A gated unit of a computed x. The two quantized weights have scales of blocks of different lengths."""
    return model([tensor("a", dtype, m, k), tensor("b", dtype, m, k)],
                 [tensor("g", kind, n, k), tensor("gs", "float32", n, k // 64), tensor("gz", kind, n, k // 64),
                  tensor("u", other, n, k), tensor("us", dtype, n)],
                 [node("x", "mul", "a b"), node("gw", "dequantize", "g gs gz", dtype=dtype, axis=1, block=64),
                  node("uw", "dequantize", "u us", dtype=dtype, axis=0), node("p", "linear", "x gw"),
                  node("q", "linear", "x uw"), node("s", "silu", "p"), node("h", "mul", "s q")], "h")


def normed_codes(m, dtype, n, k, kind, block):
    """A quantized product of normalized rows, with a residual."""
    return model([tensor("x", dtype, m, k), tensor("r", dtype, m, n)],
                 [tensor("g", dtype, k), tensor("c", kind, n, k), tensor("s", dtype, n, k // block), tensor("b", dtype, n)],
                 [node("a", "rms_norm", "x g", normalized_shape=[k], eps=1e-6),
                  node("w", "dequantize", "c s", dtype=dtype, axis=1, block=block), node("p", "linear", "a w b"),
                  node("q", "silu", "p"), node("h", "add", "q r")], "h")


def symbolic_codes(m, dtype, n, k, kind):
    entry = codes(m, dtype, n, k, kind)
    entry["inputs"][0]["shape"][0] = "t"
    entry["symbols"] = {"t": {"min": 1, "max": 32, "hint": m}}
    return entry


def float8(m, dtype, n, k):
    one = [tensor("xs", "float32", 1), tensor("ws", "float32", 1)]
    return model([tensor("x", "float8_e4m3fn", m, k), *one], [tensor("w", "float8_e4m3fn", n, k)],
                 [node("h", "fp8_linear", "x w xs ws", out_dtype=dtype)], "h")


def scaled_float4(m, dtype, n, k):
    return model([tensor("x", dtype, m, k)],
                 [tensor("w", "float4_e2m1fn", n, k), tensor("s", "float8_e8m0fnu", n, k // 32)],
                 [node("h", "mxfp4_linear", "x w s", out_dtype=dtype)], "h")


def scaled_float8(m, dtype, n, k):
    entry = scaled_float4(m, dtype, n, k)
    entry["inputs"] = [tensor("x", "float8_e4m3fn", m, k), tensor("xs", "float8_e8m0fnu", m, k // 32)]
    entry["nodes"][0]["inputs"] += [None, "xs"]
    return entry


def bytes_by_bytes(m, dtype, n, k):
    return model([tensor("x", "int8", m, k), tensor("xs", "float32", 1)],
                 [tensor("w", "int8", n, k), tensor("s", "float32", n), tensor("b", "float32", n)],
                 [node("h", "static_quant_linear", "x w s xs", out_dtype=dtype)], "h")


def bytes_by_codes(m, dtype, n, k, group=128, offset=False):
    linear = node("h", "static_quant_linear_int4", "x w s z xs", group_size=group, out_dtype=dtype)
    scales = [tensor("s", "float32", n, k // group)]
    if offset:
        scales.append(tensor("z", "int8", n, k // group))
    else:
        linear["inputs"][3] = None
    return model([tensor("x", "int8", m, k), tensor("xs", "float32", 1)], [tensor("w", "int4", n, k), *scales],
                 [linear], "h")


def quantized_rows(m, dtype, n, k):
    return model([tensor("x", dtype, m, k), tensor("r", "float32", m, 1)], [tensor("w", "int8", n, k)],
                 [node("q", "quantize", "x r", dtype="int8"), node("qi", "cast", "q", dtype="int32"),
                  node("wi", "cast", "w", dtype="int32"), node("p", "linear", "qi wi"),
                  node("f", "cast", "p", dtype="float32"), node("h", "mul", "f r")], "h")


def cases():
    """(name, model)"""
    found = []
    for m in ROWS:
        for dtype in ("bfloat16", "float16"):
            for form, sizes in ((linear, [(200, 264), (77, 136)]), (matmul, [(200, 264), (136, 1000)]),
                                (gated, [(104, 512), (100, 200)]), (gated_across, [(104, 136)]), (three, [(128, 512)]),
                                (computed, [(72, 528)]), (two_depths, [(72, 168)]), (batched, [(72, 136)]),
                                (symbolic, [(72, 272)]), (plain, [(208, 512)]), (plain_across, [(192, 512)])):
                for n, k in sizes:
                    found.append((f"{form.__name__} {m}x{n}x{k} {dtype}", form(m, dtype, n, k)))
        for kind in ("int8", "uint8", "int4"):
            found.append((f"codes {m} {kind}", codes(m, "float16", 72, 544, kind)))
            found.append((f"codes_across {m} {kind}", codes_across(m, "bfloat16", 72, 136, kind)))
            for dtype in ("bfloat16", "float16"):
                found.append((f"codes_blocks {m} {kind} {dtype}", blocks_of_codes(m, dtype, 72, 576, kind)))
                found.append((f"codes_blocks 64 {m} {kind} {dtype}", blocks_of_codes(m, dtype, 77, 640, kind, 64)))
        for kind in ("int8", "uint8", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
            for dtype in ("bfloat16", "float16"):
                found.append((f"codes {m} {kind} {dtype} float32", codes(m, dtype, 77, 416, kind, "float32")))
                found.append((f"codes_blocks 128 {m} {kind} {dtype} float32",
                              blocks_of_codes(m, dtype, 72, 768, kind, 128, "float32", zero="int" in kind)))
        for dtype in ("bfloat16", "float16"):
            for block, scale in ((16, "float8_e4m3fn"), (32, "float8_e8m0fnu")):
                found.append((f"codes_blocks {block} {m} float4 {dtype} {scale}",
                              blocks_of_codes(m, dtype, 77, 416, "float4_e2m1fn", block, scale, False)))
        found.append((f"normed codes {m} int4", normed_codes(m, "float16", 77, 640, "int4", 64)))
        found.append((f"normed codes {m} int8", normed_codes(m, "bfloat16", 72, 576, "int8", 64)))
        found.append((f"symbolic codes {m} int4", symbolic_codes(m, "float16", 72, 352, "int4")))
        found.append((f"symbolic codes {m} float8", symbolic_codes(m, "bfloat16", 77, 272, "float8_e4m3fn")))
        found.append((f"gated codes {m}", gated_codes(m, "bfloat16", 72, 640, "uint4", "int4")))
        found.append((f"gated codes {m} float16", gated_codes(m, "float16", 72, 640, "int8", "int8")))
        found.append((f"float8 {m}", float8(m, "bfloat16", 72, 528)))
        found.append((f"scaled_float8 {m}", scaled_float8(m, "bfloat16", 72, 544)))
        found.append((f"scaled_float4 {m} float16", scaled_float4(m, "float16", 72, 544)))
        found.append((f"bytes {m}", bytes_by_bytes(m, "float16", 72, 528)))
        found.append((f"bytes {m} odd columns", bytes_by_bytes(m, "bfloat16", 77, 136)))
        found.append((f"bytes by codes {m}", bytes_by_codes(m, "float16", 72, 640)))
        found.append((f"bytes by codes {m} offset", bytes_by_codes(m, "bfloat16", 77, 576, 32, True)))
        found.append((f"quantized rows {m}", quantized_rows(m, "float16", 72, 528)))
        found.append((f"scaled_float4 {m}", scaled_float4(m, "bfloat16", 72, 512)))
    return found


def large_cases():
    """(name, model, most lanes' instructions per byte of weights on sm_80 and sm_90a).

    While an A100 copies a byte its lanes may execute 12.5 instructions, an H100's 8.9, an H200's 6.2."""
    found = []
    for m in (1, 8, 32):
        many = m > 8
        n, k = 4096, 4096
        found.append((f"large bfloat16 {m}", plain(m, "bfloat16", n, k), (1, 1.2)))
        for dtype in ("bfloat16", "float16"):
            for kind, most, zeros in (("int8", 4.6 if many else 3, 5.1 if many else 3.2),
                                      ("int4", 7.2 if many else 4, 7.9 if many else 4.2)):
                for scale in (dtype, "float32"):
                    found.append((f"large {kind} {dtype} {scale} {m}", codes(m, dtype, n, k, kind, scale), (most, most)))
                    found.append((f"large blocks of {kind} {dtype} {scale} {m}",
                                  blocks_of_codes(m, dtype, n, k, kind, 128, scale), (zeros, zeros)))
        found.append((f"large int4 across {m}", codes_across(m, "bfloat16", n, k, "int4"), (9, 9)))
        found.append((f"large float4 {m}", scaled_float4(m, "bfloat16", n, k), (8.8, 8.8) if many else (6.8, 6.8)))
        found.append((f"large scaled float8 {m}", scaled_float8(m, "bfloat16", n, k),
                      (21.2, 17.7) if many else (10.5, 9.8)))
        found.append((f"large float4 float16 {m}", scaled_float4(m, "float16", n, k), (9.1, 9.1) if many else (6.2, 6.2)))
        for dtype in ("bfloat16", "float16"):
            for scale, block, most in (("float8_e8m0fnu", 32, 8.8 if many else 6.8),
                                       ("float8_e4m3fn", 16, 10.5 if many else 7.5)):
                found.append((f"large blocks of {block} float4 {dtype} {m}",
                              blocks_of_codes(m, dtype, n, k, "float4_e2m1fn", block, scale, False), (most, most)))
        found.append((f"large bytes {m}", bytes_by_bytes(m, "float16", n, k), (1.2, 1.8) if many else (0.6, 0.7)))
        found.append((f"large bytes by codes {m}", bytes_by_codes(m, "float16", n, k), (7, 7) if many else (4.5, 4.5)))
        found.append((f"large float8 {m}", float8(m, "bfloat16", n, k), (9.5, 3.1) if many else (5.7, 1.5)))
    for dtype in ("bfloat16", "float16"):
        found.append((f"large wide blocks of int4 {dtype}",
                      blocks_of_codes(16, dtype, 14336, 4096, "int4", 128, dtype, False), (4.6, 4.6)))
    return found


def weight_bytes(entry):
    total = 0
    for t in entry["constants"]:
        if len(t["shape"]) < 2 or t["name"] == "s":
            continue
        size = 1
        for extent in t["shape"]:
            size *= extent
        total += size * (2 if "16" in t["dtype"] else 1) // (2 if "4" in t["dtype"] and "8" not in t["dtype"] else 1)
    return total


def check(options, folder, name, entry, arch):
    what = f"{name} on {arch}"
    path = lambda file: os.path.join(folder, file)
    with open(path("m.json"), "w", encoding="utf-8") as f:
        json.dump(entry, f)
    if not run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--verify", "--device=emulator",
                "--json", f"--profile={path('p.json')}"], what):
        return
    run([options.fusec, path("m.json"), f"--arch={arch}", f"--emit=ptx={path('m.ptx')}",
         f"--emit=manifest={path('m.manifest')}"], what)
    with open(path("p.json"), encoding="utf-8") as f:
        profile = json.load(f)["kernels"][-1]
    with open(path("m.manifest"), encoding="utf-8") as f:
        kernel = json.load(f)["kernels"][-1]
    schedule = kernel["schedule"]
    expect(schedule in ("few_rows_mma", "side_by_side"), f"{what}: the kernel is {schedule}")
    expect_clean([profile], what)
    if not name.startswith("plain"):
        return
    ptx = open(path("m.ptx"), encoding="utf-8").read()
    accesses = re.findall(r"(?:ld|st)\.global[.a-zA-Z0-9:_]*", ptx)
    expect(accesses and all(".v4." in a for a in accesses), f"{what}: accesses of less than 16 bytes: {set(accesses)}")
    weights = weight_bytes(entry)
    m, k = entry["inputs"][0]["shape"]
    n = weights // (2 * k)
    columns = 64 if name.startswith("plain_across") else 16
    most = weights + -(-n // columns) * m * k * 2 + m * n * 2
    expect(profile["requested_bytes"] <= most, f"{what}: {profile['requested_bytes']} bytes requested, {most} at most")


def bytes_of(tensors):
    sizes = {"4": 0.5, "8": 1, "16": 2, "32": 4}
    return sum(math.prod(t["shape"]) * sizes[re.match(r"[a-z]+(\d+)", t["dtype"])[1]] for t in tensors)


def expect_bytes(name, what, entry, profile):
    """Each block reads the rows that it needs once (a single row twice), and each step a sector of every column's
    scales."""
    if "scaled float8" in name or "float4 float16" in name:
        return
    blocks, (m, k), n = profile["sample"], entry["inputs"][0]["shape"], entry["constants"][0]["shape"][0]
    requested = profile["requested_bytes"] * blocks["of"] / blocks["blocks"]
    needed = blocks["of"] * bytes_of(entry["inputs"]) * (2 if m == 1 else 1) + bytes_of(entry["constants"]) + m * n * 2
    for t in entry["constants"][1:]:
        if len(t["shape"]) > 1 and t["shape"][1] < k:
            needed += 32 * n * k / 128 * max(1, 32 * t["shape"][1] / k)
    expect(requested <= 1.1 * needed, f"{what}: {requested:.0f} bytes requested, where blocks need {needed:.0f}")


def check_large(options, folder, name, entry, arch, most):
    what = f"{name} on {arch}"
    path = lambda file: os.path.join(folder, file)
    with open(path("m.json"), "w", encoding="utf-8") as f:
        json.dump(entry, f)
    if not run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--device=emulator", "--json",
                f"--profile={path('p.json')}", "--sample-blocks=2"], what):
        return
    with open(path("p.json"), encoding="utf-8") as f:
        profile = json.load(f)["kernels"][-1]
    blocks = profile["sample"]
    instructions = sum(count for kind, count in profile["instructions"].items() if kind != "move")
    of_byte = 32 * instructions * blocks["of"] / blocks["blocks"] / weight_bytes(entry)
    expect(of_byte <= most, f"{what}: {of_byte:.2f} instructions for a byte of weights, {most} at most")
    expect_bytes(name, what, entry, profile)
    m, n, k = entry["inputs"][0]["shape"][0], *entry["constants"][0]["shape"]
    multiplied = profile["tensor_multiply_adds"] * blocks["of"] / blocks["blocks"] / (-(-m // 8) * 8 * n * k)
    expect(multiplied <= 1.26, f"{what}: {multiplied:.2f} of the multiply-adds of tensor cores that are needed")
    expect("wide" not in name or blocks["of"] == n // 64, f"{what}: {blocks['of']} blocks, not of 64 columns")
    expect_clean([profile], what)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    picked = [c for c in cases() if options.only in c[0]]
    large = [c for c in large_cases() if options.only in c[0]]
    if options.sample:
        picked = random.Random(options.seed).sample(picked, min(options.sample, len(picked)))
        large = random.Random(options.seed).sample(large, min(options.sample // 4, len(large)))
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, entry) in enumerate(picked):
            for arch in ("sm_80", "sm_90a") if not options.sample else (("sm_80", "sm_90a")[i % 2],):
                check(options, folder, name, entry, arch)
        for i, (name, entry, most) in enumerate(large):
            for arch in ("sm_80", "sm_90a") if not options.sample else (("sm_80", "sm_90a")[i % 2],):
                check_large(options, folder, name, entry, arch, most[arch == "sm_90a"])
    finish(f"{len(picked) + len(large)} products, ")


main()
