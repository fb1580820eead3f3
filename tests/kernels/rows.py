"""Row kernels (softmax, norms, sums, and their fused neighbours) over lengths of rows, dtypes and targets.

Memory is read once if registers hold a row, by 16 bytes if rows allow it. Short unaligned rows go through shared memory:
every byte once, in 16-byte accesses except at the ends. Pools, reductions of channels, batch norms and the shortest rows
take few instructions per byte (LIGHT). Rows that no block holds are kept by several co-resident blocks, and read once,
too. A few rows longer than that, and the keys of attention, take several launches."""
import random

from kernels.case import BYTES, TARGETS, Case, model, tensor, tensors

FLOATS = ("float32", "float16", "bfloat16")
HELD = 32768  # float32 elements of a row that a block's registers hold


def softmax(rows, columns):
    return [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}}], {}


def layer_norm(rows, columns):
    attrs = {"normalized_shape": [columns], "eps": 1e-5}
    return [{"name": "y", "op": "layer_norm", "inputs": ["x", "w", "b"], "attrs": attrs}], {"w": [columns], "b": [columns]}


def rms_norm(rows, columns):
    return ([{"name": "y", "op": "rms_norm", "inputs": ["x", "w"], "attrs": {"normalized_shape": [columns]}}],
            {"w": [columns]})


def residual_rms_norm(rows, columns):
    return ([{"name": "s", "op": "add", "inputs": ["x", "r"]},
             {"name": "y", "op": "rms_norm", "inputs": ["s", "w"], "attrs": {"normalized_shape": [columns]}}],
            {"r": [rows, columns], "w": [columns]})


def log_softmax_written_out(rows, columns):
    return ([{"name": "m", "op": "amax", "inputs": ["x"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "d", "op": "sub", "inputs": ["x", "m"]},
             {"name": "e", "op": "exp", "inputs": ["d"]},
             {"name": "t", "op": "sum", "inputs": ["e"], "attrs": {"dim": [1], "keepdim": True}},
             {"name": "l", "op": "log", "inputs": ["t"]},
             {"name": "y", "op": "sub", "inputs": ["d", "l"]}], {})


def reduction(op, **attrs):
    def of_shape(rows, columns):
        return [{"name": "y", "op": op, "inputs": ["x"], "attrs": attrs}], {}
    of_shape.__name__ = op + str(attrs.get("dim", "_all"))
    return of_shape


def over_its_norm(rows, columns):
    return ([{"name": "q", "op": "mul", "inputs": ["x", "x"]},
             {"name": "t", "op": "sum", "inputs": ["q"], "attrs": {}},
             {"name": "n", "op": "sqrt", "inputs": ["t"]},
             {"name": "y", "op": "div", "inputs": ["x", "n"]}], {})


ROW_FORMS = [softmax, layer_norm, rms_norm, residual_rms_norm, log_softmax_written_out]
LENGTHS = {24: 641, 33: 700, 40: 450, 64: 5001, 128: 1333, 256: 770, 512: 60, 768: 300, 1001: 40, 1024: 64, 2047: 33,
           2048: 20, 4095: 7, 4096: 140, 8192: 12, 16384: 5, 30000: 3}


def padded(op, rows, columns, before, behind, **attrs):
    return rows, columns, [{"name": "p", "op": "pad", "inputs": ["x"], "attrs": {"pad": [before, behind]}},
                           {"name": "y", "op": op, "inputs": ["p"], "attrs": {"dim": [1] if attrs else 1, **attrs}}]


def cut_from_two(op, rows, columns, start, end, **attrs):
    return rows, columns, [{"name": "t", "op": "concat", "inputs": ["x", "x"], "attrs": {"dim": 1}},
                           {"name": "c", "op": "slice", "inputs": ["t"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "y", "op": op, "inputs": ["c"], "attrs": attrs or {"dim": 1}}]


def repeated(op, rows, columns, start, end):
    return rows, columns, [{"name": "e", "op": "unsqueeze", "inputs": ["x"], "attrs": {"dim": 2}},
                           {"name": "t", "op": "expand", "inputs": ["e"], "attrs": {"shape": [rows, columns, 8]}},
                           {"name": "f", "op": "reshape", "inputs": ["t"], "attrs": {"shape": [rows, 8 * columns]}},
                           {"name": "c", "op": "slice", "inputs": ["f"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "s", "op": "slice", "inputs": ["z"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "a", "op": "add", "inputs": ["c", "s"]},
                           {"name": "y", "op": op, "inputs": ["a"], "attrs": {"dim": 1}}]


def part_of(op, rows, columns, start, end, **attrs):
    return rows, columns, [{"name": "c", "op": "slice", "inputs": ["x"], "attrs": {"dim": 1, "start": start, "end": end}},
                           {"name": "y", "op": op, "inputs": ["c"], "attrs": attrs or {"dim": 1}}]


# Padded or concatenated rows: the position in the row decides whether and where an element is read.
GUARDED = [padded("amax", 1, 512, 1, 2, keepdim=True), padded("softmax", 1, 513, 1, 2),
           padded("softmax", 1, 512, 0, 1), padded("softmax", 7, 301, 3, 0), padded("sum", 1, 20000, 1, 2, keepdim=True),
           cut_from_two("log_softmax", 1, 65, 1, 130), cut_from_two("softmax", 5, 301, 3, 500),
           cut_from_two("layer_norm", 1, 1000, 8, 1983, normalized_shape=[1975], eps=1e-5),
           repeated("softmax", 1, 40, 8, 267), repeated("softmax", 3, 40, 8, 267),
           *[part_of("softmax", 8, columns, start, start + count) for columns, start, count in
             ((5, 3, 2), (7, 3, 4), (9, 1, 6), (13, 5, 8), (11, 3, 3))]]
# Few long rows, and reductions of everything.
LONG = [(layer_norm, 2, 100003), (residual_rms_norm, 1, 200000), (softmax, 1, 1000003),
        (reduction("sum", dim=[1]), 3, 100003), (reduction("sum"), 1024, 1025), (reduction("var"), 700, 1000),
        (reduction("amax"), 1, 1 << 20), (over_its_norm, 500, 1001), (reduction("sum", dim=[0]), 9001, 96),
        (reduction("softmax", dim=0), 6001, 70), (reduction("mean", dim=[0]), 70000, 5),
        (reduction("argmax", dim=1), 2, 300001), (reduction("argmax", dim=0), 6001, 70)]
# Rows that no block holds: blocks share them, on sm_90a in clusters.
SHARED = [(3, 65521), (4, 65536), (1, 100003), (3, 100003), (24, 100003), (2, 128256)]
SHARED_ON_SM_80 = [(9, 70000)]
SHARED_WIDE = [(4, 100003), (7, 40001), (3, 65536)]
# Attention of few queries over many keys, which blocks share: heads, key heads, queries, keys, head size.
DECODING = [(4, 4, 1, 4096, 64, "bfloat16", False), (8, 2, 1, 3001, 64, "float16", False),
            (2, 2, 5, 2000, 40, "float32", False), (3, 3, 3, 2500, 128, "bfloat16", True),
            (1, 1, 70, 6000, 32, "float16", True), (2, 2, 1, 700, 64, "float32", False),
            (1, 1, 7, 301, 256, "float32", True), (8, 4, 1, 1001, 128, "float32", False)]
# Heads whose rows are no multiple of 16 bytes.
UNEVEN_HEADS = [(2, 2, 200, 200, 84, "bfloat16", False), (2, 1, 130, 150, 100, "float16", True),
                (1, 1, 130, 200, 90, "float16", False), (4, 4, 1, 1000, 100, "bfloat16", False)]


# Many short rows that are not aligned to sectors.
SHORT = {5: 1000, 6: 640, 33: 512, 36: 512, 63: 300, 100: 256, 127: 1111, 201: 130, 255: 160}
SHORT_LONGER = {301: 128, 420: 100, 511: 96}  # with vectors as further operands


def any_short(seed):
    """A random kernel of short rows. Only results, findings, bank conflicts and spills are checked."""
    chance = random.Random(seed)
    columns = chance.choice([2, 3, 5, 6, 7, 9, 10, 12, 15, 17, 20, 24, 31, 33, 36, 44, 49, 63, 77, 90, 99, 100, 101, 127, 129,
                             150, 200, 201, 255, 257, 301, 333, 420, 511])
    rows = chance.choice([64, 65, 77, 130] + ([200, 333, 1000] if columns < 150 else []))
    dtype = chance.choice(["float32", "bfloat16", "float16"] * 3 + ["float8_e4m3fn", "int32", "int8"])
    shape = chance.choice([[rows], [2, rows // 2 + 1], [3, 5, rows // 15 + 1], ["n"]]) + [columns]
    symbols = {"n": {"min": 1, "max": chance.choice([4096, 1 << 33]), "hint": rows}} if shape[0] == "n" else {}
    inputs, nodes, outputs, x = {"x": (dtype, shape)}, [], ["y"], "x"
    if dtype not in FLOATS:
        nodes, x, dtype = [{"name": "c", "op": "cast", "inputs": ["x"], "attrs": {"dtype": "float32"}}], "c", "float32"
    if chance.random() < 0.4:
        inputs["r"] = (dtype, shape)
        nodes.append({"name": "s", "op": "add", "inputs": [x, "r"]})
        x, outputs = "s", outputs + ["s"] * chance.randint(0, 1)
    last, attrs = len(shape) - 1, {"normalized_shape": [columns]}
    kind = chance.choice(["softmax", "log_softmax", "layer_norm", "rms_norm", "argmax", "sum", "var", "scaled", "over_greatest",
                          "float8_e4m3fn", "int8"])
    if kind in ("softmax", "log_softmax", "argmax"):
        nodes.append({"name": "y", "op": kind, "inputs": [x], "attrs": {"dim": last}})
    elif kind in ("sum", "var"):
        nodes.append({"name": "y", "op": kind, "inputs": [x], "attrs": {"dim": [last]}})
    elif kind == "layer_norm":
        inputs |= {"w": (dtype, [columns]), "b": (dtype, [columns])}
        nodes.append({"name": "y", "op": kind, "inputs": [x, "w", "b"], "attrs": attrs})
    elif kind == "scaled":
        inputs["q"] = (dtype, shape[:-1] + [1])
        nodes += [{"name": "m", "op": "mul", "inputs": [x, "q"]},
                  {"name": "y", "op": "softmax", "inputs": ["m"], "attrs": {"dim": last}}]
    else:
        inputs["w"] = (dtype, [columns])
        nodes.append({"name": "y" if kind == "rms_norm" else "v", "op": "rms_norm", "inputs": [x, "w"], "attrs": attrs})
    if kind == "over_greatest":
        nodes += [{"name": "a", "op": "abs", "inputs": ["v"]},
                  {"name": "m", "op": "amax", "inputs": ["a"], "attrs": {"dim": [last], "keepdim": True}},
                  {"name": "y", "op": "div", "inputs": ["v", "m"]}]
        outputs.append("m")
    if kind in ("float8_e4m3fn", "int8"):
        nodes += [{"name": "z", "op": "mul", "inputs": ["v", 20.0]},
                  {"name": "y", "op": "cast", "inputs": ["z"], "attrs": {"dtype": kind}}]
    return inputs, nodes, outputs, symbols, {"n": chance.choice([1, 15, 64, 65, 333])} if symbols else {}


def guarded(number):
    rows, columns, nodes = GUARDED[number]
    dtype = "float32" if nodes[0]["op"] == "slice" else "float16"
    inputs = [{"name": "x", "dtype": dtype, "shape": [rows, columns]}]
    if nodes[0]["op"] == "unsqueeze":
        inputs.append({"name": "z", "dtype": "float16", "shape": [rows, 8 * columns]})
    return nodes, inputs


def attention(heads, key_heads, queries, keys, size, dtype, causal):
    attrs = {"is_causal": causal, **({"enable_gqa": True} if heads != key_heads else {})}
    shapes = {"q": [1, heads, queries, size], "k": [1, key_heads, keys, size], "v": [1, key_heads, keys, size]}
    nodes = [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"], "attrs": attrs}]
    return nodes, [{"name": n, "dtype": dtype, "shape": s} for n, s in shapes.items()]


# Op, dtype, shape, reduced dimensions, and the most instructions of a thread per moved byte. With more than six an
# H200 computes for longer than it copies.
LIGHT = [
    ("mean", "bfloat16", [64, 512, 7, 7], [2, 3], 4.0),
    ("mean", "float32", [64, 512, 7, 7], [2, 3], 1.5),
    ("amax", "float16", [64, 512, 7, 7], [2, 3], 4.0),
    ("amax", "float16", [16, 512, 14, 14], [2, 3], 4.5),
    ("var", "float32", [16, 1280, 7, 7], [2, 3], 3.5),
    ("std", "bfloat16", [16, 1280, 7, 7], [2, 3], 8.0),
    ("softmax", "float32", [20000, 49], [1], 4.5),
    ("softmax", "float16", [3000, 77], [1], 7.0),
    ("softmax", "bfloat16", [20000, 8], [1], 3.0),
    ("amax", "float16", [50000, 2], [1], 4.5),
    ("sum", "bfloat16", [50000, 4], [1], 3.5),
    ("mean", "float16", [30001, 8], [1], 3.0),
    ("amax", "uint8", [4000, 49], [1], 18.0),
    ("amin", "uint16", [5000, 33], [1], 8.0),
    ("mean", "bfloat16", [8, 64, 56, 56], [0, 2, 3], 3.0),
    ("sum", "float32", [8, 64, 28, 28], [0, 2, 3], 2.0),
    ("amax", "float16", [8, 33, 10, 20, 20], [0, 2, 3, 4], 3.5),
    ("std", "bfloat16", [32, 16, 56, 56], [0, 2, 3], 5.0),
    ("sum", "float16", [500, 2001], [0], 3.0),
    ("mean", "bfloat16", [40, 256, 1023], [1], 3.0),
    ("var", "float16", [8, 300, 257], [1], 4.5),
    ("sum", "float32", [800, 1501], [0], 2.0),
    ("mean", "float16", [32, 512, 7, 7], [0, 2, 3], 2.5),
    ("mean", "bfloat16", [32, 128, 14, 14], [0, 2, 3], 2.5),
    ("mean", "float16", [32, 16, 57, 57], [0, 2, 3], 2.5),
    ("var", "float32", [12, 48, 33, 33], [0, 2, 3], 3.0),
    ("sum", "float32", [20, 96, 5, 5], [0, 2, 3], 2.0),
    ("amax", "uint8", [64, 256, 7, 7], [0, 2, 3], 4.5),
    ("mean", "bfloat16", [12, 48, 13, 11], [0, 3], 3.5),
    ("sum", "float16", [100, 96, 25], [0, 2], 2.5),
    ("mean", "float16", [64, 3, 7, 7], [0, 2, 3], 3.0),
    ("mean", "bfloat16", [501, 5, 7, 7], [0, 2, 3], 2.5),
    ("var", "bfloat16", [32, 512, 7, 7], [0, 2, 3], 5.0),
    ("std", "float16", [200, 512, 7, 7], [0, 2, 3], 4.0),
    ("normalized", "float16", [32, 256, 7, 7], [0, 2, 3], 4.5),
    ("normalized", "bfloat16", [8, 32, 28, 28], [0, 2, 3], 4.0),
    ("normalized", "float16", [16, 32, 56, 56], [0, 2, 3], 4.0),
]


def light(number):
    """The nodes and inputs of a model of LIGHT."""
    op, dtype, shape, along, _ = LIGHT[number]
    dim = along[0] if op == "softmax" else along
    if op == "normalized":
        attrs = {"dim": along, "keepdim": True}
        return ([{"name": "m", "op": "mean", "inputs": ["x"], "attrs": attrs},
                 {"name": "v", "op": "var", "inputs": ["x"], "attrs": attrs},
                 {"name": "d", "op": "sub", "inputs": ["x", "m"]}, {"name": "e", "op": "add", "inputs": ["v", 0.001]},
                 {"name": "r", "op": "rsqrt", "inputs": ["e"]}, {"name": "y", "op": "mul", "inputs": ["d", "r"]}],
                [{"name": "x", "dtype": dtype, "shape": shape}])
    return ([{"name": "y", "op": op, "inputs": ["x"], "attrs": {"dim": dim}}],
            [{"name": "x", "dtype": dtype, "shape": shape}])


def operands_of(rows, columns, others):
    """The numbers of operands of the input's size (with x), and of vectors."""
    vectors = sum(len(shape) == 1 for shape in others.values())
    return 1 + len(others) - vectors, vectors


def held_in_registers(rows, columns, dtype, others):
    """Operands of the input's size and the result once. An unaligned row has parts of sectors. Every row reads the
    weights; with unaligned rows in a few accesses each, by threads one vector apart, so that requests touch sectors of
    the L1 cache that neighbouring requests touch, too."""
    big, small = ((n + i) * rows * columns * BYTES[dtype] for n, i in zip(operands_of(rows, columns, others), (1, 0)))
    row = columns * BYTES[dtype]
    if row % 16 != 0 and columns >= 128:
        small *= 2.4 if BYTES[dtype] == 4 else 3.0
    more = 1.02 if row % 128 == 0 else 1.5 if row >= 256 else 2.0
    # Counters and partial results are words.
    narrow = {"narrow accesses": lambda run: 0 if run["launches"] == 1 else run["narrow accesses"]} if row % 16 == 0 else {}
    return dict(most={"requested bytes": more * (big + small), **narrow}, exactly={"kernels of rows": 1},
                least={"wide accesses": 1} if narrow else {})


def read_once(rows, columns, dtype, others, target):
    """Every byte of the rows is read once, and the shared vectors once a row. Allows for sectors that neighbouring warps
    share if rows are unaligned, and for the data that co-resident blocks exchange."""
    row = columns * BYTES[dtype]
    # With weights, a warp's 32 wide elements are not aligned to sectors.
    more = 1.0 if row % 128 == 0 else 1.085 if dtype == "float64" and others else 1.045
    return dict(most={"moved bytes": more * rows * row * (2 + len(others)) + (32768 if target == "sm_80" else 4096)},
                exactly={"kernels of rows": 1})


def moved_once(rows, columns, dtype, others):
    """Every byte of the rows is moved once. A block of 8 or more rows reads the shared vectors. Accesses are narrow at
    the ends of each tensor's rows, and those of the weights."""
    wide, vectors = operands_of(rows, columns, others)
    big, small = (wide + 1) * rows * columns * BYTES[dtype], vectors * (rows / 8 + 1) * (columns * BYTES[dtype] + 96)
    return dict(most={"moved bytes": big + small + 64 * (2 + len(others)),
                      "narrow accesses": 2 + len(others) + vectors * -(-columns // 32)},
                least={"wide accesses": 1}, exactly={"launches": 1})


def of_form(group, form, rows, columns, dtype, target):
    nodes, others = form(rows, columns)
    bounds = {}
    if group == "shared":
        bounds = read_once(rows, columns, dtype, others, target)
    elif group == "short":
        bounds = moved_once(rows, columns, dtype, others)
    elif group == "held":
        bounds = held_in_registers(rows, columns, dtype, others)
    elif nodes[0].get("attrs", {}).get("dim") in (0, [0]):  # columns: kernels/columns.py
        bounds = dict(most={"conflicts": None, "conflicts a sector": 1 / 12})
    inputs = [tensor(name, dtype, *shape) for name, shape in {"x": [rows, columns], **others}.items()]
    return Case(f"{form.__name__} {dtype} [{rows}, {columns}]", model(inputs, nodes), targets=(target,), group=group, **bounds)


def cases():
    found = []
    for target in TARGETS:
        def add(group, shapes, dtypes, forms=ROW_FORMS, target=target):
            found.extend(of_form(group, form, rows, columns, dtype, target)
                         for dtype in dtypes for rows, columns in shapes for form in forms)

        add("held", [(rows, columns) for columns, rows in LENGTHS.items()], FLOATS)
        add("shared", SHARED + (SHARED_ON_SM_80 if target == "sm_80" else []), FLOATS)
        add("shared", SHARED_WIDE, ["float64"])
        add("short", [(rows, columns) for columns, rows in SHORT.items()], FLOATS)
        add("short", [(rows, columns) for columns, rows in SHORT_LONGER.items()], FLOATS, (layer_norm, rms_norm))
        for form, rows, columns in LONG:
            group = "held" if columns <= HELD and form in ROW_FORMS else "long"
            found += [of_form(group, form, rows, columns, dtype, target) for dtype in ("float32", "bfloat16")]
    for shape in DECODING + UNEVEN_HEADS:
        nodes, inputs = attention(*shape)
        found.append(Case(f"attention {shape}", model(inputs, nodes), group="attention",
                          most={} if shape in UNEVEN_HEADS else {"conflicts": None}))
    for number, (rows, columns, nodes) in enumerate(GUARDED):
        # With a few threads a row and a few elements, bank conflicts are rare but possible.
        found.append(Case(f"guarded {number}, [{rows}, {columns}]", model(guarded(number)[1], nodes), group="guarded",
                          most={"conflicts": 6 if nodes[0]["op"] == "slice" else 0}))
    for number, (op, dtype, shape, along, most) in enumerate(LIGHT):
        nodes, inputs = light(number)
        found.append(Case(f"light {op} {dtype} {shape} along {along}", model(inputs, nodes), group="light",
                          most={"sectors / least": 1.1, "lane instructions / byte": most}, exactly={"launches": 1}))
    for seed in range(100):
        inputs, nodes, outputs, symbols, sizes = any_short(seed)
        found.append(Case(f"any short {seed}", model(tensors(inputs), nodes, outputs, symbols=symbols), sizes=sizes,
                          targets=(TARGETS[seed % 2],), group="any"))
    return found
