"""Attention with much code around its products, for kernels/attention_tiles.py and kernels/nvrtc_time.py: masks made of
positions, caps, slopes, quantized operands, and ops on the result."""
from kernels.case import tensor


def much_code(dtype, head, queries, keys, codes="", block=0, rope=False, cap=False, mask="", slopes=False, window=False,
              segments=False, precise=False, gate=False, residual=False, result="", weights=False, heads=4,
              key_heads=2):
    """Queries are [1, queries, heads, head]. `window`: which keys a row sees: those before it, near it, or the first
    ones. `precise`: scores in float32. `result`: quantizes the result. `weights`: the weights are an output as well."""
    inputs, nodes = [tensor("q", dtype, 1, queries, heads, head)], []

    def node(op, *operands, **attributes):
        name = f"t{len(nodes)}"
        nodes.append({"name": name, "op": op, "inputs": list(operands), "attrs": attributes})
        return name

    def given(name, dtype, *shape):
        inputs.append(tensor(name, dtype, *shape))
        return name

    def rotated(x, name, rows):
        return node("rope", x, given(name + "c", dtype, rows, head), given(name + "i", dtype, rows, head))

    def by_heads(x):
        return node("transpose", x, dim0=1, dim1=2)

    def of_keys(name):
        x = given(name, codes or dtype, 1, keys, key_heads, head)
        if codes:
            of = block or head
            scales = given(name + "s", dtype if block else "float32", 1, keys, key_heads, head // of)
            x = node("dequantize", x, scales, dtype=dtype, axis=3, block=of)
        x = by_heads(x)
        if rope and name == "k":
            x = rotated(x, "k", keys)
        return node("repeat_interleave", x, repeats=heads // key_heads, dim=1) if heads != key_heads else x

    q = by_heads("q")
    if rope:
        q = rotated(q, "q", queries)
    k, v = of_keys("k"), of_keys("v")
    # Small scores: a rounding of large scores in 16 bits would change a weight.
    score = node("mul", node("matmul", q, node("transpose", k, dim0=2, dim1=3)), 0.01)
    of_scores = "float32" if precise else dtype
    if precise:
        score = node("cast", score, dtype="float32")
    if cap:
        score = node("mul", node("tanh", node("div", score, 20.0)), 20.0)
    if mask == "bool":
        score = node("where", given("m", "bool", queries, keys), score, -10000.0)
    elif mask:
        score = node("add", score, given("m", of_scores, heads, queries, keys))
    if slopes or window:
        row = node("unsqueeze", node("arange", start=0, end=queries, dtype="int64"), dim=1)
        key = node("arange", start=0, end=keys, dtype="int64")
    if slopes:
        distance = node("cast", node("sub", key, row), dtype=of_scores)
        slope = node("mul", given("slope", of_scores, heads, 1, 1), 0.01)
        score = node("add", score, node("mul", slope, distance))
    if window:
        near = node("logical_and", node("le", key, row), node("gt", key, node("sub", row, 33)))
        seen = node("logical_or", near, node("lt", key, 4))
        if segments:
            same = node("eq", given("sk", "int32", 1, 1, 1, keys), given("sq", "int32", 1, 1, queries, 1))
            seen = node("logical_and", seen, same)
        score = node("where", seen, score, -10000.0)
    weight = node("softmax", score, dim=-1)
    if precise:
        weight = node("cast", weight, dtype=dtype)
    y = node("matmul", weight, v)
    if gate:
        y = node("mul", y, node("sigmoid", given("g", dtype, 1, heads, queries, head)))
    if residual:
        y = node("add", y, given("r", dtype, 1, heads, queries, head))
    y = by_heads(y)
    if result:
        y = node("quantize", y, given("ys", "float32", 1), dtype=result)
    return {"fusec": 1, "name": "attention", "inputs": inputs, "nodes": nodes,
            "outputs": [y] + ([weight] if weights else [])}


def windowed(seen, dtype, queries, keys, head, window, cap=False, heads=2, key_heads=2):
    """Capped scores, with -inf for keys that their positions exclude; `seen` is a key of SEEN."""
    inputs = [tensor("q", dtype, 1, heads, queries, head), tensor("k", dtype, 1, key_heads, keys, head),
              tensor("v", dtype, 1, key_heads, keys, head)]
    nodes, factors = [], ["k", "v"]

    def node(op, *operands, **attributes):
        name = f"t{len(nodes)}"
        nodes.append({"name": name, "op": op, "inputs": list(operands), "attrs": attributes})
        return name

    if heads != key_heads:
        factors = [node("repeat_interleave", x, repeats=heads // key_heads, dim=1) for x in factors]
    score = node("mul", node("matmul", "q", node("transpose", factors[0], dim0=2, dim1=3)), 0.09)
    if cap:
        score = node("mul", node("tanh", node("div", score, 50.0)), 50.0)
    row = node("unsqueeze", node("arange", start=0, end=queries, dtype="int64"), dim=1)
    key = node("unsqueeze", node("arange", start=0, end=keys, dtype="int64"), dim=0)
    back = node("sub", row, key)
    if seen == "before":
        condition = node("logical_and", node("ge", back, 0), node("lt", back, window))
    elif seen == "near":
        condition = node("le", node("abs", back), window)
    elif seen == "far before":  # the first rows see no key
        condition = node("logical_not", node("logical_or", node("lt", back, window), node("gt", back, 3 * window)))
    else:
        raise ValueError(seen)
    score = node("where", condition, score, "lowest")
    weight = node("cast", node("softmax", node("cast", score, dtype="float32"), dim=-1), dtype=dtype)
    return {"fusec": 1, "name": "attention", "inputs": inputs, "nodes": nodes,
            "constants": [{"name": "lowest", "dtype": "float32", "shape": [], "data": ["-inf"]}],
            "outputs": [node("matmul", weight, factors[1])]}


SEEN = ("before", "near", "far before")


# The parameters other than queries and keys.
MUCH_CODE = {
    "window and mask, float8, codes of a gated result": dict(
        dtype="float16", head=160, codes="float8_e5m2", mask="added", window=True, gate=True, result="float8_e4m3fn"),
    "capped, int8, codes of a gated sum": dict(
        dtype="bfloat16", head=192, codes="int8", block=32, cap=True, window=True, gate=True, residual=True,
        result="float8_e4m3fn"),
    "rotated float8, weights": dict(
        dtype="float16", head=72, codes="float8_e4m3fn", rope=True, mask="bool", precise=True, gate=True,
        residual=True, result="int8", weights=True, heads=8, key_heads=1),
    "int8, weights beside codes of a gated result": dict(
        dtype="bfloat16", head=192, codes="int8", block=32, mask="bool", precise=True, gate=True,
        result="float8_e4m3fn", weights=True),
    "slopes, window and segments": dict(
        dtype="bfloat16", head=128, slopes=True, window=True, segments=True, mask="added", gate=True),
    "slopes, capped, int8, weights": dict(
        dtype="bfloat16", head=144, codes="int8", cap=True, slopes=True, residual=True, weights=True),
    "rotated, window of segments, codes": dict(
        dtype="float16", head=96, rope=True, window=True, segments=True, slopes=True, mask="added", precise=True,
        result="int8"),
    "int4, heads of 256": dict(
        dtype="float16", head=256, codes="int4", block=32, cap=True, window=True, mask="added", gate=True,
        residual=True),
    "float32, slopes, window": dict(
        dtype="float32", head=128, slopes=True, window=True, mask="added", cap=True, gate=True, residual=True),
}
# Also with few queries and so many keys that several blocks share a row (split keys).
MUCH_CODE_OF_SHARED_KEYS = ("int8, weights beside codes of a gated result",)
