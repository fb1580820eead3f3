"""One node with many operands or results."""
from hostile.model import Model, family


@family("many.split", 40000)
def split(size, rng):
    m = Model()
    m.op("split", m.input("x", (size,)), split_sizes=1, dim=0)
    return m.output("n0.0")


@family("many.split_outputs", 10000)
def split_outputs(size, rng):
    m = Model()
    m.op("split", m.input("x", (size * 2, 4)), split_sizes=2, dim=0)
    return m.output(*(f"n0.{i}" for i in range(size)))


@family("many.split_uses", 5000)
def split_uses(size, rng):
    m = Model()
    m.op("split", m.input("x", (4, size)), split_sizes=[1] * size, dim=1)
    return m.output(*[m.op("exp", f"n0.{i}") for i in range(size)])


@family("many.chunk_concat", 5000)
def chunk_concat(size, rng):
    m = Model()
    m.op("chunk", m.input("x", (size, 4)), chunks=size, dim=0)
    return m.output(m.op("concat", *(f"n0.{i}" for i in reversed(range(size))), dim=0))


@family("many.split_tree", 5000)
def split_tree(size, rng):
    m = Model()
    pieces = [m.input("x", (1 << max(1, size.bit_length()), 2))]
    extent = 1 << max(1, size.bit_length())
    while extent > 1:
        extent //= 2
        for p in list(pieces):
            n = m.op("split", p, split_sizes=extent, dim=0)
            pieces += [n + ".0", n + ".1"]
            pieces.remove(p)
    return m.output(*pieces)


@family("many.concat", 20000)
def concat(size, rng):
    m = Model()
    m.input()
    return m.output(m.op("concat", *["x"] * size, dim=0))


@family("many.concat_inputs", 10000)
def concat_inputs(size, rng):
    m = Model()
    return m.output(m.op("concat", *[m.input(f"x{i}", (1 + i % 3, 8)) for i in range(size)], dim=0))


@family("many.concat_of_unary", 5000)
def concat_of_unary(size, rng):
    m = Model()
    m.input()
    return m.output(m.op("concat", *[m.op("exp", "x") if i % 2 else m.op("neg", "x") for i in range(size)], dim=0))


@family("many.stack", 10000)
def stack(size, rng):
    m = Model()
    m.input()
    return m.output(m.op("stack", *["x"] * size, dim=1))


@family("many.slices_concat", 3000)
def slices_concat(size, rng):
    m = Model()
    m.input("x", (4, size))
    return m.output(m.op("concat", *[m.op("slice", "x", dim=1, start=size - 1 - i, end=size - i) for i in range(size)], dim=1))


@family("many.slices_added", 3000)
def slices_added(size, rng):
    m = Model()
    m.input("x", (4, size + 8))
    v = m.op("slice", "x", dim=1, start=0, end=8)
    for i in range(size):
        v = m.op("add", v, m.op("slice", "x", dim=1, start=i, end=i + 8))
    return m.output(v)


@family("many.tuple", 20000)
def many_tuple(size, rng):
    m = Model()
    m.input()
    return m.output(m.op("get_item", m.op("tuple", *["x"] * size), index=size - 1))


@family("many.index_put", 300)
def index_put(size, rng):
    m = Model()
    m.input("x", (2,) * min(size, 60))
    m.input("i", (3,), "int64")
    m.input("v", (3,))
    return m.output(m.op("index_put", "x", "v", *["i"] * min(size, 60)))


@family("many.pads", 3000)
def pads(size, rng):
    m = Model()
    m.input("x", (1,) * size)
    return m.output(m.op("pad", "x", pad=[1, 0] * size))


@family("many.experts", 20000)
def experts(size, rng):
    m = Model()
    return m.output(m.op("grouped_matmul", m.input("x", (64, 32)), m.input("w", (size, 32, 32)), m.input("o", (size,), "int32")))


@family("many.splits_of_one", 200)
def splits_of_one(size, rng):
    m = Model()
    x = m.input("x", (4000,))
    for _ in range(size):
        m.op("split", x, split_sizes=1, dim=0)
    return m.output(*(f"n{i}.{i}" for i in range(size)))


@family("many.concats_of_one", 200)
def concats_of_one(size, rng):
    m = Model()
    x = m.input("x", (64,))
    return m.output(*[m.op("concat", *[x] * 500, dim=0) for _ in range(size)])


@family("many.splits_joined_in_reverse", 5000)
def splits_joined_in_reverse(size, rng):
    m = Model()
    x = m.input("x", (15 * size,))
    m.op("split", x, split_sizes=3, dim=0)
    m.op("split", x, split_sizes=5, dim=0)
    joined = [m.op("concat", *(f"n{i}.{k}" for k in reversed(range(15 * size // piece))), dim=0)
              for i, piece in enumerate((3, 5))]
    return m.output(m.op("add", *joined))
