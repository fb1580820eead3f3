"""Random chains of permutes, slices, pads, rolls, concats, gathers and elementwise ops for kernels/movement.py. A
seed gives a model. Only results are checked."""
import random

from kernels.case import element_count, node
from kernels.movement_cases import Case


def any_movement(seed):
    """Permutes, slices, pads and reshapes in a chain, with elementwise ops between them."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 4, 8, 9, 16, 24, 31, 32, 40, 64, 100]) for _ in range(chance.randint(2, 5))]
    while element_count(shape) > 200000:
        shape[chance.randrange(len(shape))] = 2
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(1, 4)):
        name, kind = f"v{step}", chance.choice(["permute", "permute", "permute", "relu", "add", "slice", "pad", "join"])
        if kind == "permute":
            dims = chance.sample(range(len(shape)), len(shape))
            shape = [shape[d] for d in dims]
            nodes.append(node(name, "permute", last, dims=dims))
        elif kind == "add":
            other = [extent if chance.random() < 0.7 else 1 for extent in shape]
            inputs[f"u{step}"] = (dtype, other)
            nodes.append(node(name, "add", last, f"u{step}"))
        elif kind == "slice":
            dim = chance.randrange(len(shape))
            start = chance.randrange(shape[dim])
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=shape[dim]))
            shape[dim] -= start
        elif kind == "pad":
            before, after = chance.choice([0, 1, 4, 8]), chance.choice([0, 3, 8])
            nodes.append(node(name, "pad", last, pad=[before, after]))
            shape[-1] += before + after
        elif kind == "join" and len(shape) > 1:
            at = chance.randrange(len(shape) - 1)
            shape[at:at + 2] = [shape[at] * shape[at + 1]]
            nodes.append(node(name, "reshape", last, shape=list(shape)))
        else:
            nodes.append(node(name, "relu", last))
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_permute(seed):
    """A permute of axes of any extents, few sectors in all, a slice of one, or a sum of one or two casts of such.
    """
    chance = random.Random(seed)
    dtype = chance.choice(["uint8", "int8", "bool", "float8_e4m3fn", "float16", "bfloat16", "float32", "int64", "float64"])
    extents = [2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 24, 33, 49, 64, 77, 100, 129, 257]
    shape = [1]
    while not 100000 <= element_count(shape) <= 400000:
        shape = [chance.choice(extents) for _ in range(chance.randint(3, 6))]
    dims = list(range(len(shape)))
    while dims == sorted(dims):
        chance.shuffle(dims)
    turned = [shape[d] for d in dims]
    inputs, nodes = {"x": (dtype, list(shape))}, [node("v", "permute", "x", dims=dims)]
    kind = chance.choice(["alone", "alone", "alone", "cast", "a part", "added"])
    if kind == "added" and dtype in ("float16", "bfloat16", "float32", "float64"):
        others = chance.sample(range(len(shape)), len(shape))
        inputs["z"] = (dtype, [turned[others.index(d)] for d in range(len(shape))])
        nodes += [node("u", "permute", "z", dims=others), node("y", "add", "v", "u")]
    elif kind == "a part":
        nodes.append(node("y", "slice", "v", dim=len(shape) - 1, start=1, end=turned[-1]))
    elif kind == "cast" and dtype not in ("bool", "float8_e4m3fn", "int64", "float64"):
        nodes.append(node("y", "cast", "v", dtype="float32"))
    else:
        nodes[0]["name"] = "y"
        case = Case(f"permute {seed}", inputs, nodes, sectors=1.7, wide=False, conflicts_each=12)
        case.counted = False
        return case
    return Case(f"permute {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40)


def any_permute_of_sizes(seed):
    """A permute with symbolic extents, at the hint, above it or below it."""
    chance = random.Random(seed)
    dtype = chance.choice(["uint8", "int8", "float8_e4m3fn", "float16", "bfloat16", "float32", "float64"])
    shape, dims = [], []
    while dims == sorted(dims) or not {"s", "b"} & set(shape):
        shape = [chance.choice([2, 3, 5, 6, 9, 13, 16, 24, 33, 64, "s", "b", "s"]) for _ in range(chance.randint(2, 5))]
        dims = chance.sample(range(len(shape)), len(shape))
    names = sorted({extent for extent in shape if isinstance(extent, str)})
    fixed = element_count([extent for extent in shape if isinstance(extent, int)])
    size = max(2, int((100000 / fixed) ** (1 / sum(isinstance(extent, str) for extent in shape))))
    inputs, nodes = {"x": (dtype, shape)}, [node("y", "permute", "x", dims=dims)]
    if chance.random() < 0.3:
        nodes = [node("v", "flip", "x", dims=[chance.randrange(len(shape))]), node("y", "permute", "v", dims=dims)]
    elif dtype in ("float16", "bfloat16", "float32"):
        nodes = [node("v", "abs", "x"), node("y", "permute", "v", dims=dims)]
    symbols = {name: {"min": 1, "max": 200000, "hint": chance.choice([size, size - 1, size // 2])} for name in names}
    case = Case(f"permute of sizes {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, symbols=symbols)
    if seed % 3 > 0:
        case.sizes = {name: chance.randint(1, 2 * size) for name in names}
    return case


def any_turned(seed):
    """A permute with ops before and after it that change the layout of rows."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 8, 31, 32, 40, 64, 130]) for _ in range(chance.randint(2, 4))]
    while element_count(shape) > 200000:
        shape[chance.randrange(len(shape))] = 2
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(2, 4)):
        name, dim = f"v{step}", chance.randrange(len(shape))
        kind = chance.choice(["permute", "permute", "roll", "flip", "step", "reflect", "replicate", "circular", "add"])
        extent = shape[dim]
        if kind == "permute":
            dims = chance.sample(range(len(shape)), len(shape))
            shape = [shape[d] for d in dims]
            nodes.append(node(name, "permute", last, dims=dims))
        elif kind == "roll":
            nodes.append(node(name, "roll", last, shifts=[chance.randint(-extent, extent)], dims=[dim]))
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=[dim]))
        elif kind == "step":
            start, by = chance.randrange(extent), chance.choice([1, 2, 3])
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=extent, step=by))
            shape[dim] = -(-(extent - start) // by)
        elif kind == "add":
            inputs[f"u{step}"] = (dtype, [extent if chance.random() < 0.6 else 1 for extent in shape])
            nodes.append(node(name, "add", last, f"u{step}"))
        else:
            pad = [min(chance.randint(0, 3), shape[-1] - 1), min(chance.randint(0, 3), shape[-1] - 1)]
            nodes.append(node(name, "pad", last, pad=pad, mode=kind))
            shape[-1] += sum(pad)
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any turned {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_picks(seed):
    """A gather along some axis with ops before and after it."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 5, 64, 300]), chance.choice([1, 3, 40, 257]), chance.choice([1, 7, 64, 65, 1000])]
    count, dim = chance.choice([1, 3, 32, 65, 129]), chance.choice([2, 2, 2, 1, 0])
    index, to = chance.choice(["int32", "int64"]), [*shape[:dim], count, *shape[dim + 1:]]
    gathers = chance.random() < 0.5
    inputs = {"x": (dtype, shape), "i": (index, to if gathers else [count])}
    nodes = [node("p", "gather" if gathers else "index_select", "x", "i", dim=dim)]
    last = "p"
    for step in range(chance.randint(0, 2)):
        kind = chance.choice(["add", "of row", "permute", "again"])
        if kind == "permute":
            dims = chance.sample(range(3), 3)
            to = [to[d] for d in dims]
            nodes.append(node(f"v{step}", "permute", last, dims=dims))
        else:
            inputs[f"b{step}"] = (dtype, to if kind == "again" else [1, 1, to[2]] if kind == "add" else [*to[:2], 1])
            nodes.append(node(f"v{step}", "add", last, f"b{step}"))
        last = f"v{step}"
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any picks {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_windows(seed):
    """A chain of ops whose operands are read through windows."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 5, 9]) for _ in range(chance.randint(0, 2))]
    shape.append(chance.choice([1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 255, 256, 1000]))
    if chance.random() < 0.8:  # small tensors do not use unaligned windows
        shape.insert(0, -(-9000 // element_count(shape)))
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(1, 3)):
        name, dim = f"v{step}", chance.choice([len(shape) - 1, len(shape) - 1, chance.randrange(len(shape))])
        kind = chance.choice(["every", "flip", "interleave", "repeat", "roll", "pad", "concat", "add", "rows"])
        extent = shape[dim]
        if kind == "every":
            start, by = chance.randrange(extent), chance.choice([1, 2, 2, 3, 4, 5])
            end = chance.randint(start + 1, extent)
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=end, step=by))
            shape[dim] = -(-(end - start) // by)
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=sorted({dim, chance.randrange(len(shape))})))
        elif kind == "interleave":
            times = chance.choice([2, 3, 4])
            nodes.append(node(name, "repeat_interleave", last, repeats=times, dim=dim))
            shape[dim] *= times
        elif kind == "repeat":
            times = chance.choice([2, 3])
            nodes.append(node(name, "repeat", last, repeats=[times if d == dim else 1 for d in range(len(shape))]))
            shape[dim] *= times
        elif kind == "roll":
            nodes.append(node(name, "roll", last, shifts=[chance.randint(-extent, extent)], dims=[dim]))
        elif kind == "pad":
            before, after = chance.choice([0, 1, 2, 5, 8, 17]), chance.choice([0, 1, 3, 8])
            nodes.append(node(name, "pad", last, pad=[0, 0] * (len(shape) - 1 - dim) + [before, after]))
            shape[dim] += before + after
        elif kind == "concat":
            other = list(shape)
            other[dim] = chance.choice([1, 2, 3, 8, 11, 64])
            inputs[f"u{step}"] = (dtype, other)
            pair = [last, f"u{step}"] + ([last] if chance.random() < 0.3 else [])
            chance.shuffle(pair)
            nodes.append(node(name, "concat", *pair, dim=dim))
            shape[dim] = shape[dim] * pair.count(last) + other[dim]
        else:
            other = [1] * (len(shape) - 1) + [shape[-1]] if kind == "add" else [*shape[:-1], 1]
            inputs[f"u{step}"] = (dtype, other)
            nodes.append(node(name, "add", last, f"u{step}"))
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any windows {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_planes(seed):
    """Images of few channels, permuted, with ops before and after."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "int8", "uint8", "int64", "float64"])
    colours, points = chance.choice([2, 3, 4]), chance.choice([[16, 16], [48], [4, 24], [8, 31], [160], [1024]])
    first = chance.random() < 0.5
    shape = [chance.choice([1, 3]), *([colours] if first else []), *points, *([] if first else [colours])]
    rank = len(shape)
    turned = [0, *range(2, rank), 1] if first else [0, rank - 1, *range(1, rank - 1)]
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"

    def extra(name):
        nonlocal last
        kind, at = chance.choice(["none", "add", "flip", "pad", "slice", "cast", "concat"]), chance.randrange(rank)
        if kind == "add":
            inputs[f"b{name}"] = (dtype, [shape[i] if i == at or chance.random() < 0.3 else 1 for i in range(rank)])
            nodes.append(node(name, "add", last, f"b{name}"))
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=[at]))
        elif kind == "pad":
            pad = [0] * (2 * rank)
            pad[2 * (rank - 1 - at)] = chance.choice([1, 2, 16])
            nodes.append(node(name, "pad", last, pad=pad))
            shape[at] += pad[2 * (rank - 1 - at)]
        elif kind == "slice":
            step = chance.choice([1, 2])
            nodes.append(node(name, "slice", last, dim=at, start=0, end=shape[at], step=step))
            shape[at] = -(-shape[at] // step)
        elif kind == "concat":
            nodes.append(node(name, "concat", last, last, dim=at))
            shape[at] *= 2
        else:
            return
        last = name

    extra("a")
    nodes.append(node("t", "permute", last, dims=turned))
    shape, last = [shape[d] for d in turned], "t"
    extra("c")
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any planes {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def joined_and_permuted(seed):
    """One-column operands next to wider ones, concatenated, padded and permuted. Their positions depend on axes along
    which they do not vary."""
    chance = random.Random(seed)
    a, b, c = chance.choice([4, 31, 64]), chance.choice([5, 31, 62]), chance.choice([1, 3, 7])
    dtype = chance.choice(["float32", "float16", "float64", "int8"])
    inputs = {"x": (dtype, [a, b, 1]), "z": (dtype, [a, b, c])}
    parts = chance.choice([["x", "z"], ["z", "x"], ["x", "z", "x"]])
    nodes, last = [node("j", "concat", *parts, dim=2)], "j"
    if chance.random() < 0.5:
        nodes.append(node("p", "pad", last, pad=chance.choice([[0, 0, 0, 2], [1, 0], [0, 1, 2, 1]])))
        last = "p"
    nodes.append(node("y", "permute", last, dims=chance.choice([[2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1]])))
    return Case(f"joined and permuted {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_half_bytes(seed):
    """4-bit elements: permuted, added to, cast from and to."""
    chance = random.Random(seed)
    dtype = chance.choice(["int4", "int4", "uint4", "float4_e2m1fn"])
    other = chance.choice(["int8", "int64", "int32"]) if dtype != "float4_e2m1fn" else chance.choice(["float32", "bfloat16"])
    shape = [chance.choice([1, 2, 6, 8, 10, 16, 32, 34, 64, 72, 130]) for _ in range(chance.randint(2, 4))]
    while element_count(shape) > 200000:
        shape[chance.randrange(len(shape))] = 2
    for end in (0, -1):  # either may be the last one
        shape[end] += shape[end] % 2
    inputs, nodes, last, now = {"x": (dtype, list(shape))}, [], "x", dtype
    for step in range(chance.randint(1, 4)):
        name, kind = f"v{step}", chance.choice(["permute", "permute", "cast", "add"])
        if kind == "permute":
            dims = chance.sample(range(len(shape)), len(shape))
            while shape[dims[-1]] % 2:
                dims = chance.sample(range(len(shape)), len(shape))
            shape = [shape[d] for d in dims]
            nodes.append(node(name, "permute", last, dims=dims))
        elif kind == "cast":
            now = other if now == dtype else dtype
            nodes.append(node(name, "cast", last, dtype=now))
        elif now == other:
            inputs[f"u{step}"] = (now, [extent if chance.random() < 0.7 else 1 for extent in shape])
            nodes.append(node(name, "add", last, f"u{step}"))
        else:
            continue
        last = name
    nodes.append(node("y", "cast", last, dtype=chance.choice([dtype, other])) if chance.random() < 0.5 or not nodes
                 else node("y", "permute", last, dims=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
                           if shape[-2] % 2 == 0 else list(range(len(shape)))))
    return Case(f"any half bytes {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)
