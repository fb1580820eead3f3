"""The pass move-borders: a widening at the end of a group (a cast, a broadcast) moves to the groups that read it. The
models quantize to int8 or float8 and multiply the values as wider numbers, or cast 16-bit norms and products to
float32. Under full no value named "wide" is stored, and the plan is predicted to be no slower than without the pass.
Results equal the reference's, and quantized values equal the graph's."""
from kernels.case import Case, tensor


class Model:
    def __init__(self, inputs, constants):
        self.entry = {"fusec": 1, "name": "borders", "inputs": inputs, "constants": constants, "nodes": []}

    def __call__(self, op, inputs, name=None, **attributes):
        name = name or f"n{len(self.entry['nodes'])}"
        self.entry["nodes"].append({"name": name, "op": op, "inputs": inputs, "attrs": attributes})
        return name

    def give(self, *outputs):
        return {**self.entry, "outputs": list(outputs)}


def codes_of(m, wide, least):
    """Quantizes each row to 8 bits, with a scale."""
    top = m("clamp", [m("amax", [m("abs", [wide])], dim=[-1], keepdim=True)], min=1e-8)
    scale = m("div", [top, 127.0])
    rounded = m("clamp", [m("round", [m("div", [wide, scale])])], min=least, max=127)
    return m("cast", [rounded], dtype="int8"), scale


def product(m, codes, scale, wide):
    """Multiplies quantized values as wider numbers, and then by their scale."""
    by = m("cast", ["c"], dtype=wide)
    made = m("linear", [m("cast", [codes], "wide", dtype=wide), by])
    if wide != "float32":
        made = m("cast", [made], dtype="float32")
    return m("mul", [made, scale])


def quantized(rows, dtype, depth, columns, wide, norm):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("c", "int8", columns, depth), tensor("g", dtype, depth)])
    x = m("rms_norm", ["x", "g"], normalized_shape=[depth], eps=1e-5) if norm else "x"
    codes, scale = codes_of(m, m("cast", [x], dtype="float32"), -128)
    return m.give(product(m, codes, scale, wide))


def float8(rows, dtype, depth, columns):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("c", "float8_e4m3fn", columns, depth)])
    x = m("cast", ["x"], dtype="float32")
    top = m("clamp", [m("amax", [m("abs", [x])], dim=[-1], keepdim=True)], min=1e-8)
    scale = m("div", [top, 448.0])
    codes = m("cast", [m("div", [x, scale])], dtype="float8_e4m3fn")
    return m.give(product(m, codes, scale, "float32"))


def columns_of(rows, dtype, depth):
    """A norm of rows, then a softmax along the columns."""
    m = Model([tensor("x", dtype, rows, depth)], [tensor("g", dtype, depth)])
    x = m("rms_norm", ["x", "g"], normalized_shape=[depth], eps=1e-5)
    return m.give(m("softmax", [m("cast", [x], "wide", dtype="float32")], dim=0))


def probabilities(rows, dtype, depth, columns):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("w", dtype, columns, depth)])
    p = m("linear", ["x", "w"])
    return m.give(m("softmax", [m("cast", [p], "wide", dtype="float32")], dim=-1))


def models():
    """(name, model)"""
    for dtype in ("bfloat16", "float16"):
        for rows, depth, columns in ((5, 32, 32), (33, 96, 72)):
            what = f"{rows}x{depth}x{columns} {dtype}"
            for norm in (False, True):
                for wide in ("int32", "float32"):
                    yield (f"quantized {what} {wide}{' norm' if norm else ''}",
                           quantized(rows, dtype, depth, columns, wide, norm))
            yield f"float8 {what}", float8(rows, dtype, depth, columns)
            yield f"columns {what}", columns_of(rows, dtype, depth)
            yield f"probabilities {what}", probabilities(rows, dtype, depth, columns)


def stores_wide(run):
    return any("wide" in group["outputs"] for group in run.json("partition")["groups"])


def cases():
    """No bound on conflicts and local memory."""
    return [Case(name, entry, inputs="--random", exactly={stores_wide: False},
                 beside=Case("", entry, options=("--disable-pass=move-borders",)),
                 most={"conflicts": None, "local bytes": None,
                       "predicted us": lambda run: run.beside["predicted us"] * 1.000001}, group=name.split(" ")[0])
            for name, entry in models()]
