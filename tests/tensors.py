"""Reads safetensors files into plain lists of numbers, using only the standard library, writes them, and compares
tensors."""
import array, json, math, struct


def eight_bit_table(exponent_bits, mantissa_bits, bias, has_infinity):
    """The value of each byte of a float8 format."""
    table = []
    for byte in range(256):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = byte & ((1 << mantissa_bits) - 1)
        last = exponent == (1 << exponent_bits) - 1
        if last and has_infinity:
            value = math.inf if mantissa == 0 else math.nan
        elif last and mantissa == (1 << mantissa_bits) - 1:
            value = math.nan
        elif exponent == 0:
            value = mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            value = (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)
        table.append(sign * value)
    return table


F8_E4M3 = eight_bit_table(4, 3, 7, False)
F8_E5M2 = eight_bit_table(5, 2, 15, True)
F8_E8M0 = [2.0 ** (byte - 127) if byte < 255 else math.nan for byte in range(256)]
F4_E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
PLAIN = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U64": "Q", "U32": "I",
         "U16": "H", "U8": "B", "BOOL": "?"}
FLOATS = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4"}


def decode(dtype, data):
    """The elements of a tensor's bytes, in row-major order."""
    if dtype == "BF16":
        halves = array.array("H", data)
        return array.array("f", array.array("I", (h << 16 for h in halves)).tobytes()).tolist()
    if dtype == "F4":
        return [F4_E2M1[nibble] for byte in data for nibble in (byte & 15, byte >> 4)]
    tables = {"F8_E4M3": F8_E4M3, "F8_E5M2": F8_E5M2, "F8_E8M0": F8_E8M0}
    if dtype in tables:
        return [tables[dtype][byte] for byte in data]
    letter = PLAIN[dtype]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


def read(path):
    """{name: (dtype, shape, elements)} of a safetensors file."""
    with open(path, "rb") as f:
        everything = f.read()
    length = struct.unpack("<Q", everything[:8])[0]
    header = json.loads(everything[8:8 + length])
    body = everything[8 + length:]
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], decode(t["dtype"], body[t["data_offsets"][0]:t["data_offsets"][1]]))
            for name, t in header.items()}


STORED = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn": "F4", "int64": "I64", "int32": "I32",
          "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "int4": "U8", "uint4": "U8"}


def write(path, tensors):
    """A safetensors file of {name: (dtype as models name it, shape, bytes)}."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        stored = [*shape[:-1], shape[-1] // 2] if dtype in ("int4", "uint4") else shape
        header[name] = {"dtype": STORED[dtype], "shape": stored, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def rounded(dtype, value):
    """The value rounded to a 16-bit or 32-bit float, infinity beyond the range. For other dtypes the value itself.
    """
    try:
        if dtype == "BF16" and value == value:
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            bits += 0x7fff + (bits >> 16 & 1)  # to nearest, ties to even
            return struct.unpack("<f", struct.pack("<I", bits & 0xffff0000))[0]
        if dtype in ("F16", "F32"):
            return struct.unpack("<" + PLAIN[dtype], struct.pack("<" + PLAIN[dtype], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def difference(got, want, rtol, atol):
    """None if |got - want| <= atol + rtol * |want| holds everywhere, else a sentence about the worst element. Expected
    floats may be wider than the outputs (float64 results stored as float32). If the output's dtype cannot represent an
    expected value, infinity is right."""
    if got[1] != want[1] or (got[0] != want[0] and not {got[0], want[0]} <= FLOATS):
        return f"is {got[0]} {got[1]}, expected {want[0]} {want[1]}"
    exact = want[0] not in FLOATS
    worst, excess, wrong = None, 0.0, 0
    for i, (g, w) in enumerate(zip(got[2], want[2])):
        if g == w or (g != g and w != w) or (math.isinf(g) and g == rounded(got[0], w)):
            continue
        allowed = 0.0 if exact else atol + rtol * abs(w)
        # Refuse non-finite differences and tolerances.
        near = math.isfinite(allowed) and math.isfinite(g - w) and allowed > 0
        over = abs(g - w) / allowed if near else math.inf
        if over > 1.0:
            wrong += 1
            if over > excess or worst is None:
                worst, excess = i, over
    if wrong == 0:
        return None
    return (f"{wrong} of {len(want[2])} elements differ; the worst, element {worst}: got {got[2][worst]!r}, expected "
            f"{want[2][worst]!r} ({excess:.3g} times the tolerance)")
