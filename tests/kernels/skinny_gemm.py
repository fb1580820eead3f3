"""Skinny GEMM: products of 1 to 32 rows with a weight matrix, as in decoding. Right results at sizes that are no multiple
of any tile. Each sector of the weights is read once. If 16-byte accesses suffice, the PTX has no others. Large weights
take few enough instructions per byte that copying, not computing, is the bottleneck."""
import math

from kernels import case
from kernels.case import BITS, Case, TARGETS, tensor, words as node

ROWS = [1, 2, 3, 5, 8, 9, 13, 16, 25, 32]


def model(inputs, constants, nodes, *outputs, **more):
    return case.model(inputs, nodes, outputs, constants=constants, **more)


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


def small_cases():
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


def is_skinny(run):
    return run["schedules"][-1] in ("skinny_gemm_mma", "side_by_side")


def small(name, entry):
    """A product of the tables, verified; `plain` ones also have wide accesses and request each weight once."""
    most, least = {}, {}
    if name.startswith("plain"):
        weights, (m, k) = weight_bytes(entry), entry["inputs"][0]["shape"]
        n = weights // (2 * k)
        columns = 64 if name.startswith("plain_across") else 16
        most = {"requested bytes": weights + -(-n // columns) * m * k * 2 + m * n * 2, "narrow accesses": 0}
        least = {"wide accesses": 1}
    return Case(name, entry, most=most, least=least, exactly={is_skinny: True}, inputs="--random", group=name.split(" ")[0])


def bytes_of(tensors):
    return sum(math.prod(t["shape"]) * BITS[t["dtype"]] / 8 for t in tensors)


def needed_bytes(entry):
    """Each block reads the rows that it needs once (a single row twice), and each step a sector of every column's
    scales."""
    (m, k), n = entry["inputs"][0]["shape"], entry["constants"][0]["shape"][0]
    scales = [t["shape"] for t in entry["constants"][1:] if len(t["shape"]) > 1 and t["shape"][1] < k]
    beside = bytes_of(entry["constants"]) + m * n * 2 + sum(32 * n * k / 128 * max(1, 32 * s[1] / k) for s in scales)
    return lambda run: 1.1 * (run.blocks * bytes_of(entry["inputs"]) * (2 if m == 1 else 1) + beside)


def all_blocks(run):
    return run.blocks


def large(name, entry, most, target):
    m, n, k = entry["inputs"][0]["shape"][0], *entry["constants"][0]["shape"]
    bounds = {"lane instructions": lambda run: most * weight_bytes(entry) * run.share,
              "multiply-adds": lambda run: 1.26 * -(-m // 8) * 8 * n * k * run.share}
    if not ("scaled float8" in name or "float4 float16" in name):
        bounds["requested bytes"] = lambda run: needed_bytes(entry)(run) * run.share
    return Case(name, entry, most=bounds, targets=(target,), inputs="--random", blocks=2, group="large",
                exactly={all_blocks: n // 64} if "wide" in name else {})  # tiles of 64 columns


def cases():
    return [small(*row) for row in small_cases()] + [large(name, entry, most, target) for name, entry, bounds in large_cases()
                                                     for target, most in zip(TARGETS, bounds)]
