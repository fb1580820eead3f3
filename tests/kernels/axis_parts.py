"""Models whose results have parts that read the same operands (codegen/movement/thread_coarsening.h), with bounds on
the bytes that their accesses request: rotary embedding by halves, and other ops on halves, quarters and eighths of an
axis. Tables that do not vary along an axis (heads) are loaded once for four positions. The shapes fill a chip of two
multiprocessors."""
import random

from kernels.case import BITS, element_count, node


class Model:
    """inputs: name -> (dtype, shape). `moved`: bytes of global memory that suffice. `instructions`: most warp
    instructions for 16 bytes of each thread. `narrow`: accesses of single elements."""

    def __init__(self, name, inputs, nodes, outputs, moved=0, instructions=0, symbols=None, narrow=0):
        self.name, self.inputs, self.nodes, self.outputs = name, inputs, nodes, outputs
        self.moved, self.instructions, self.narrow, self.symbols = moved, instructions, narrow, symbols or {}

    def document(self):
        inputs = [{"name": n, "dtype": d, "shape": s} for n, (d, s) in self.inputs.items()]
        return {"fusec": 1, "name": "parts", "symbols": self.symbols, "inputs": inputs, "nodes": self.nodes,
                "outputs": self.outputs}


def turned(x, size, way, to):
    """The negated second half, then the first."""
    half = size // 2
    if way == "chunk":
        parts = [{"name": to + "h", "op": "chunk", "inputs": [x], "attrs": {"chunks": 2, "dim": -1}}]
        low, high = to + "h.0", to + "h.1"
    elif way == "split":
        parts = [{"name": to + "h", "op": "split", "inputs": [x], "outputs": [to + "l", to + "u"],
                  "attrs": {"split_sizes": [half, half], "dim": -1}}]
        low, high = to + "l", to + "u"
    else:
        parts = [node(to + "l", "slice", x, dim=-1, start=0, end=half),
                 node(to + "u", "slice", x, dim=-1, start=half, end=size)]
        low, high = to + "l", to + "u"
    return [*parts, node(to + "n", "neg", high), node(to + "t", "concat", to + "n", low, dim=-1)]


def rotated(x, size, to, way="slices"):
    if way == "op":
        return [node(to, "rope", x, "cos", "sin")]
    return [*turned(x, size, way, to), node(to + "a", "mul", x, "cos"), node(to + "b", "mul", to + "t", "sin"),
            node(to, "add", to + "a", to + "b")]


def rope(dtype, size, layout, way, batch=1, heads=8, tokens=64):
    """x is [batch, heads, tokens, size], or [batch, tokens, heads, size], or converts from the latter to the former.
    """
    table = [tokens, 1, size] if layout == "bshd" else [tokens, size]
    shape = [batch, heads, tokens, size] if layout == "bhsd" else [batch, tokens, heads, size]
    inputs = {"x": (dtype, shape), "cos": (dtype, table), "sin": (dtype, table)}
    nodes = [node("q", "permute", "x", dims=[0, 2, 1, 3])] if layout == "turned" else []
    nodes += rotated("q" if nodes else "x", size, "y", way)
    moved = (2 * element_count(shape) + 2 * element_count(table) * batch * heads // 4) * BITS[dtype] // 8
    of_half = size // 2 * BITS[dtype] // 8
    if of_half % 32 != 0:  # two halves read the sector between them, two warps the one between theirs
        moved *= 1.02 * (of_half // 32 + 1) * 32 / of_half
    return Model(f"rope {dtype} {layout} {size} by {way}", inputs, nodes, ["y"], moved,
                 15 if dtype == "float32" else 32)


def ropes():
    ways = ("slices", "chunk", "split", "op")
    return [rope(dtype, size, layout, ways[(i + j + k) % 4], batch=1 + (i + k) % 2)
            for i, dtype in enumerate(("bfloat16", "float32", "float16"))
            for j, size in enumerate((128, 64, 80, 96, 256))
            for k, layout in enumerate(("bhsd", "bshd", "turned"))]


def part_of_head(dtype, size, rotary):
    """RoPE on a part of each head; the rest is copied."""
    shape, table, bytes_each = [2, 8, 64, size], [64, rotary], BITS[dtype] // 8
    nodes = [node("xr", "slice", "x", dim=-1, start=0, end=rotary),
             node("xp", "slice", "x", dim=-1, start=rotary, end=size),
             *rotated("xr", rotary, "r"), node("y", "concat", "r", "xp", dim=-1)]
    # Every head reads its tables.
    return Model(f"rope of {rotary} of {size} {dtype}",
                 {"x": (dtype, shape), "cos": (dtype, table), "sin": (dtype, table)}, nodes, ["y"],
                 (2 * element_count(shape) + 2 * element_count(table) * 16) * bytes_each, 16 if dtype == "float32" else 32)


def tables_of_halves(dtype):
    shape, table = [1, 8, 64, 128], [64, 64]
    nodes = [node("cos", "concat", "c", "c", dim=-1), node("sin", "concat", "s", "s", dim=-1), *rotated("x", 128, "y")]
    return Model(f"rope {dtype} by tables of halves", {"x": (dtype, shape), "c": (dtype, table), "s": (dtype, table)},
                 nodes, ["y"], (2 * element_count(shape) + 2 * element_count(table) * 2) * BITS[dtype] // 8, 32)


def queries_and_keys(dtype, keys):
    """Queries and keys of one projection, with RoPE on both in one launch."""
    size, tokens, queries = 128, 64, 8
    table = [tokens, 1, size]
    nodes = []
    for name, first, heads in (("q", 0, queries), ("k", queries, keys)):
        nodes += [node(name + "s", "slice", "qkv", dim=-1, start=first * size, end=(first + heads) * size),
                  node(name, "reshape", name + "s", shape=[1, tokens, heads, size]), *rotated(name, size, name + "y")]
    heads = queries + keys
    moved = (2 * tokens * heads * size + 2 * tokens * size * (queries // 4 + max(1, keys // 4))) * BITS[dtype] // 8
    return Model(f"queries and {keys} keys {dtype}",
                 {"qkv": (dtype, [1, tokens, (heads + keys) * size]), "cos": (dtype, table), "sin": (dtype, table)},
                 nodes, ["qy", "ky"], moved, 40)


def complex_products(dtype):
    """Complex products with the real parts in the first half."""
    shape = [128, 256]
    nodes = [node(x + part, "slice", x, dim=-1, start=first, end=first + 128)
             for x in "ab" for part, first in (("r", 0), ("i", 128))]
    nodes += [node("p", "mul", "ar", "br"), node("q", "mul", "ai", "bi"), node("re", "sub", "p", "q"),
              node("u", "mul", "ar", "bi"), node("v", "mul", "ai", "br"), node("im", "add", "u", "v"),
              node("y", "concat", "re", "im", dim=-1)]
    return Model(f"complex products {dtype}", {"a": (dtype, shape), "b": (dtype, shape)}, nodes, ["y"],
                 3 * element_count(shape) * BITS[dtype] // 8, 32)


def with_itself(name, dtype, shape, op, *how):
    """Combines each element with an element elsewhere in the same tensor; `how` is the op that moves it."""
    return Model(f"{name} {dtype}{shape}", {"x": (dtype, shape)},
                 [node("m", *how[:2], **how[2]), node("y", op, "x", "m")], ["y"],
                 2 * element_count(shape) * BITS[dtype] // 8, 40)


def sums_and_differences(dtype, parts):
    """One step of a fast Walsh-Hadamard transform along the rows."""
    shape = [64, 64 * parts]
    nodes = [node(f"p{i}", "slice", "x", dim=-1, start=64 * i, end=64 * i + 64) for i in range(parts)]
    nodes += [node(f"s{i}", "sub" if i % 2 else "add", f"p{i // 2}", f"p{i // 2 + parts // 2}")
              for i in range(parts)]
    nodes.append(node("y", "concat", *(f"s{i}" for i in range(parts)), dim=-1))
    return Model(f"sums and differences of {parts} {dtype}", {"x": (dtype, shape)}, nodes, ["y"],
                 2 * element_count(shape) * BITS[dtype] // 8, 40)


def scaled_rows(dtype, symbolic):
    """Multiplies by tables that are the same for all images. With eight images a table is loaded at most once for four
    of them."""
    shape, table = [8, 64, 1024], [64, 1024]
    first = "8*n" if symbolic else 8
    return Model(f"images times a table {dtype}{' of a symbol' if symbolic else ''}",
                 {"x": (dtype, [first, 64, 1024]), "w": (dtype, table)}, [node("y", "mul", "x", "w")], ["y"],
                 (2 * element_count(shape) + 2 * element_count(table)) * BITS[dtype] // 8, 20,
                 {"n": {"hint": 1, "max": 64}} if symbolic else {})


def scaled_channels(dtype, last):
    """Scale and shift by channel, channels last or first. Tables that are the same for all images are loaded once for
    four."""
    shape, table = ([8, 32, 32, 32], [32]) if last else ([8, 32, 32, 32], [32, 1, 1])
    nodes = [node("s", "mul", "x", "scale"), node("y", "add", "s", "shift")]
    of_warp = 32 * BITS[dtype] / 8 / 512 if last else 1 / 32  # instructions of a warp for each element of a table
    moved = (2 + 2 * of_warp / 4) * element_count(shape) * BITS[dtype] // 8
    return Model(f"channels {'last' if last else 'first'} scaled {dtype}",
                 {"x": (dtype, shape), "scale": (dtype, table), "shift": (dtype, table)}, nodes, ["y"], moved,
                 9 if dtype == "float32" else 20, narrow=0 if last else 2)


def counted():
    return [*ropes(),
            part_of_head("bfloat16", 128, 32), part_of_head("float16", 128, 64), part_of_head("float32", 80, 32),
            part_of_head("bfloat16", 96, 64), tables_of_halves("bfloat16"), tables_of_halves("float32"),
            queries_and_keys("bfloat16", 2), queries_and_keys("float16", 8), queries_and_keys("float32", 4),
            *(complex_products(dtype) for dtype in ("float32", "bfloat16", "float64")),
            *(sums_and_differences(dtype, parts) for dtype in ("float32", "float16", "int8") for parts in (2, 4, 8)),
            with_itself("rolled by a half", "int8", [64, 512], "maximum", "roll", "x", {"shifts": [256], "dims": [-1]}),
            with_itself("rolled by a quarter", "uint8", [64, 512], "minimum", "roll", "x",
                        {"shifts": [128], "dims": [-1]}),
            with_itself("rolled by a third", "float64", [64, 96], "sub", "roll", "x", {"shifts": [32], "dims": [-1]}),
            with_itself("rolled rows", "float16", [3, 64, 512], "sub", "roll", "x", {"shifts": [1], "dims": [0]}),
            with_itself("rows backwards", "bfloat16", [4, 8, 512], "mul", "flip", "x", {"dims": [0]}),
            *(scaled_channels(dtype, last) for dtype in ("float16", "float32") for last in (False, True)),
            *(scaled_rows(dtype, symbolic) for dtype in ("bfloat16", "float32") for symbolic in (False, True))]


def any_parts(seed):
    """Random parts of some axis are combined and joined again. Only results are checked."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int16", "int64"])
    parts, size = chance.choice([2, 2, 2, 3, 4, 5, 6, 8]), chance.choice([1, 3, 4, 8, 8, 12, 16, 16, 32, 40, 64])
    shape = [chance.choice([1, 2, 3, 4, 8, 24]) for _ in range(chance.randint(1, 3))]
    dim = chance.choice([len(shape), len(shape), chance.randint(0, len(shape))])
    if dim < len(shape):
        shape.append(chance.choice([8, 24, 64, 65]))
        size = chance.choice([1, 1, 2, 3])
    shape.insert(dim, parts * size)
    inputs, nodes, whole = {"x": (dtype, list(shape))}, [], "x"
    pieces = []
    if chance.random() < 0.5:
        broadcast = [1 if chance.random() < 0.5 else extent for extent in shape]
        inputs["w"] = (dtype, broadcast)
        nodes.append(node("v", chance.choice(["mul", "add"]), "x", "w"))
        whole = "v"
    for i in range(parts):
        nodes.append(node(f"p{i}", "slice", whole, dim=dim, start=i * size, end=(i + 1) * size))
    for i in range(parts):
        a, b = f"p{chance.randrange(parts)}", f"p{chance.randrange(parts)}"
        op = chance.choice(["add", "sub", "mul", "maximum", ""])
        if op:
            nodes.append(node(f"r{i}", op, a, b))
        pieces.append(f"r{i}" if op else a)
    nodes.append(node("t", "concat", *pieces, dim=dim))
    kind = chance.choice(["add", "roll", "flip", "repeat", "none"])
    if kind == "add":
        nodes.append(node("y", "add", "t", "x"))
    elif kind == "roll":
        nodes += [node("m", "roll", "t", shifts=[chance.randrange(parts) * size], dims=[dim]),
                  node("y", "maximum", "m", whole)]
    elif kind == "flip":
        nodes += [node("m", "flip", "t", dims=[chance.randrange(len(shape))]), node("y", "add", "m", "x")]
    elif kind == "repeat":
        nodes += [node("m", "unsqueeze", "t", dim=dim), node("n", "expand", "m", shape=[*shape[:dim], 3, *shape[dim:]]),
                  node("y", "mul", "n", "m")]
    else:
        nodes.append(node("y", "maximum", "t", "x"))
    return Model(f"any parts {seed}", inputs, nodes, ["y"])
