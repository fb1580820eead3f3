"""The accuracy of skinny products that convert quantized weights to 16-bit floats by their bits (magic numbers). Compares
the accumulators, before they are rounded to 16 bits, with exact sums, for x with one sign (the worst case) and with
both. docs/numerics.md states the bounds."""
import functools
import math
import random
import struct

import tensors
from kernels.case import Case, model, node, tensor

ROWS, COLUMNS, DEPTH = 3, 48, 4096
MOST, MOST_OF_ONE_SIGN_IN_BFLOAT16 = 1e-5, 1e-4  # relative to the root mean square of the sums
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


class Product:
    """The tensors of a product and its exact sums, made when they are first needed."""

    def __init__(self, *what):
        self.what = what

    @functools.cached_property
    def made(self):
        return made(random.Random(str(self.what)), *self.what)

    def given(self):
        return self.made[0]

    def loss(self, run):
        """The greatest difference from the exact sums, relative to their root mean square."""
        sums = self.made[1]
        size = math.sqrt(sum(s * s for s in sums) / len(sums))
        losses = [abs(got - want) for got, want in zip(run.outputs["y"][2], sums)]
        return max(losses) / size if all(map(math.isfinite, losses)) else math.inf


def of(dtype, kind, zeros, block, one_sign):
    product, parts = Product(dtype, kind, block, zeros, one_sign), DEPTH // block
    inputs = [tensor("x", dtype, ROWS, DEPTH), tensor("c", kind, COLUMNS, DEPTH), tensor("s", "float32", COLUMNS, parts),
              *([tensor("z", kind, COLUMNS, parts)] if zeros else [])]
    nodes = [node("w", "dequantize", *(t["name"] for t in inputs[1:]), dtype=dtype, axis=1, block=block),
             node("h", "linear", "x", "w"), node("y", "cast", "h", dtype="float32")]
    most = MOST_OF_ONE_SIGN_IN_BFLOAT16 if one_sign and dtype == "bfloat16" else MOST
    signs = "one sign" if one_sign else "both signs"
    return Case(f"{kind} in {dtype}, blocks of {block}, x of {signs}", model(inputs, nodes),
                inputs=product.given, verify="", reads_outputs=True, most={"conflicts": None, "local bytes": None, product.loss: most},
                group=f"{kind} {dtype}")


def cases():
    return [of(*kind, block, one_sign) for kind in
            (("bfloat16", "int4", False), ("float16", "int4", False), ("bfloat16", "uint4", True), ("float16", "uint4", True),
             ("float16", "int8", False), ("bfloat16", "float4_e2m1fn", False))
            for block in (128, DEPTH // 2) for one_sign in (True, False)]
