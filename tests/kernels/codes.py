"""Every float8 bit pattern, NaN included, converts to the right number for sm_80, sm_89 and sm_90a: read as vectors,
element by element, as the operand of a product after a cast, and as an operand with block scales, which is rounded once.
Every float4 value times every scale byte is right, too, including powers of two beyond float16's range and NaN."""
import struct

from kernels.case import RESULTS, TARGETS, Case, model, tensor

CODES = 256
NOT_FINITE = {"float8_e4m3fn": {0x7f, 0xff}, "float8_e5m2": {s + c for s in (0, 0x80) for c in range(0x7c, 0x80)}}
ONE_CODE = {"float8_e4m3fn": b"\x38", "float8_e5m2": b"\x3c"}
ONE = {"float16": b"\x00\x3c", "bfloat16": b"\x80\x3f"}


def node(name, op, inputs, **attributes):
    return {"name": name, "op": op, "inputs": inputs, "attrs": attributes}


def diagonal(elements):
    """A matrix with these values on its diagonal."""
    size = len(elements[0])
    return b"".join(bytes(size * i) + e + bytes(size * (CODES - 1 - i)) for i, e in enumerate(elements))


def byte_cases():
    """Name, inputs by name (dtype, shape, bytes), nodes."""
    for codes in NOT_FINITE:
        for to in ("float32", "float16", "bfloat16"):
            x = {"x": (codes, [16, CODES], bytes(range(CODES)) * 16)}
            yield f"{codes} to {to}", x, [node("y", "cast", ["x"], dtype=to)]
            yield f"{codes} to {to}, transposed", x, [node("t", "transpose", ["x"], dim0=0, dim1=1),
                                                      node("y", "cast", ["t"], dtype=to)]
            yield (f"{codes} as a factor, cast to {to}",
                   {"x": (codes, [CODES, CODES], diagonal([bytes([c]) for c in range(CODES)])),
                    "w": (codes, [CODES, CODES], diagonal([ONE_CODE[codes]] * CODES))},
                   [node("d", "cast", ["x"], dtype=to), node("e", "cast", ["w"], dtype=to),
                    node("y", "linear", ["d", "e"])])
        for to, one in ONE.items():
            finite = [bytes([0 if c in NOT_FINITE[codes] else c]) for c in range(CODES)]
            scales = struct.pack("<512f", *(1.37 * (1 + i / 7) for i in range(512)))
            yield (f"{codes} as a factor in {to}",
                   {"x": (codes, [CODES, CODES], diagonal(finite)), "s": ("float32", [CODES, 2], scales),
                    "w": (to, [CODES, CODES], diagonal([one] * CODES))},
                   [node("d", "dequantize", ["x", "s"], dtype=to, axis=1, block=128), node("y", "linear", ["d", "w"])])


def half_byte_cases():
    """The first element of each column is a float4 value and all others are 0. In bfloat16, 22 times the scale must be
    finite."""
    depth, columns = 128, 16 * 256
    codes = b"".join(bytes([c % 16]) + bytes(depth // 2 - 1) for c in range(columns))
    for scales, block in (("float8_e8m0fnu", 32), ("float8_e4m3fn", 16)):
        for to, one in ONE.items():
            too_large = range(251, 255) if scales == "float8_e8m0fnu" and to == "bfloat16" else ()
            s = b"".join(bytes([0 if c // 16 in too_large else c // 16]) * (depth // block) for c in range(columns))
            for rows in (2, 24, 64):
                yield (f"float4 times {scales}, a factor of {rows} rows in {to}",
                       {"x": (to, [rows, depth], (one + bytes(2 * depth - 2)) * rows),
                        "w": ("float4_e2m1fn", [columns, depth], codes), "s": (scales, [columns, depth // block], s)},
                       [node("d", "dequantize", ["w", "s"], dtype=to, axis=1, block=block),
                        node("y", "linear", ["x", "d"])])
            # Columns are contiguous, and each has its own scale.
            line = bytes(2 * c % 16 | (2 * c + 1) % 16 << 4 for c in range(columns // 2))
            own = bytes(0 if c // 16 in too_large else c // 16 for c in range(columns)) * (depth // block)
            for rows in (2, 64):
                yield (f"float4 across the depth times {scales}, a factor of {rows} rows in {to}",
                       {"x": (to, [rows, depth], (one + bytes(2 * depth - 2)) * rows),
                        "w": ("float4_e2m1fn", [depth, columns], line + bytes((depth - 1) * columns // 2)),
                        "s": (scales, [depth // block, columns], own)},
                       [node("d", "dequantize", ["w", "s"], dtype=to, axis=0, block=block),
                        node("y", "matmul", ["x", "d"])])


def cases():
    return [Case(name, model([tensor(n, dtype, *shape) for n, (dtype, shape, _) in given.items()], nodes), inputs=given,
                 verify="--verify=0,0", most=RESULTS, group=table.__name__,
                 targets=("sm_80", "sm_89", "sm_90a") if table is byte_cases else TARGETS)
            for table in (byte_cases, half_byte_cases) for name, given, nodes in table()]
