"""Transposes, permutes, gathers, pads and concats for kernels/movement.py. Each case has its allowed sectors
relative to those of its bytes, and further bounds."""
from kernels.case import element_count, node

ALIGNED = 1.1  # sectors relative to those of the bytes
# Each unaligned row touches one sector more than it fills, which matters most for short rows.
ODD = {"float64": 1.12, "int64": 1.12, "float32": 1.27, "int32": 1.27, "float16": 1.3, "bfloat16": 1.3, "int8": 2.1}


class Case:
    """inputs: name -> (dtype, shape); nodes; bounds; numbers of wide loads and stores."""

    def __init__(self, name, inputs, nodes, outputs=("y",), sectors=ALIGNED, wide=True, conflicts=0, moved=0,
                 symbols=None, kernels=1, conflicts_each=None, instructions=1e9):
        # Additional bank conflicts for each time that a warp reads an element of shared memory.
        self.conflicts_each = (0.1 if wide else 3) if conflicts_each is None else conflicts_each
        self.name, self.inputs, self.nodes, self.outputs = name, inputs, nodes, list(outputs)
        self.symbols, self.kernels = symbols or {}, kernels
        self.sizes = {}  # values of symbols at the run; else their hints
        self.sectors, self.wide, self.conflicts, self.moved = sectors, wide, conflicts, moved
        self.counted = sectors < 1e9  # else only results are checked
        self.instructions = instructions  # of a warp, for 16 bytes of each thread


def permute(dtype, shape, dims, **how):
    return Case(f"permute{dims} {dtype}{shape}", {"x": (dtype, shape)}, [node("y", "permute", "x", dims=dims)], **how)


def transposes():
    cases = []
    for dtype in ("float32", "bfloat16", "int8", "float64", "int64", "bool"):
        cases += [permute(dtype, [512, 768], [1, 0]), permute(dtype, [3, 256, 384], [0, 2, 1]),
                  permute(dtype, [2, 64, 28, 32], [0, 2, 3, 1]), permute(dtype, [2, 28, 32, 64], [0, 3, 1, 2]),
                  permute(dtype, [2, 48, 16, 64], [0, 2, 1, 3])]
    for dtype in ("float32", "bfloat16", "int8", "int64"):
        # Extents that are no multiples of the tile, with rows aligned to sectors.
        cases += [permute(dtype, [160, 352], [1, 0]), permute(dtype, [5, 96, 416], [2, 0, 1])]
        # Unaligned rows.
        cases += [permute(dtype, [257, 129], [1, 0], sectors=ODD[dtype], wide=False),
                  permute(dtype, [3, 65, 100], [0, 2, 1], sectors=ODD[dtype], wide=False, conflicts_each=4)]
    for dtype in ("uint8", "float16", "float32", "float64"):  # image channels
        for colours in (2, 3, 4):
            cases += [permute(dtype, [2, colours, 64, 64], [0, 2, 3, 1], sectors=1.01),
                      permute(dtype, [2, 64, 64, colours], [0, 3, 1, 2], sectors=1.01)]
    cases += [permute("float32", [64, 64, 7], [0, 2, 1], wide=False), permute("float32", [5, 129, 3], [0, 2, 1], sectors=2, wide=False),
              permute("float64", [3, 129, 1, 65], [3, 2, 1, 0], sectors=1.7, wide=False, conflicts_each=2),
              Case("padded and transposed", {"x": ("int8", [129, 5])},
                   [node("p", "pad", "x", pad=[4, 1], value=1), node("y", "permute", "p", dims=[1, 0])], sectors=3,
                   wide=False),
              # Few elements and odd extents also have no conflicts.
              permute("bfloat16", [16, 9, 15], [0, 2, 1], sectors=3, wide=False), permute("int32", [3, 17], [1, 0], sectors=3, wide=False),
              permute("bool", [17, 17, 5], [0, 2, 1], sectors=3, wide=False), permute("int64", [2, 100, 63, 2], [1, 3, 0, 2], sectors=3, wide=False),
              permute("float16", [4, 8, 32, 64], [0, 2, 3, 1]), permute("float32", [6, 40, 8, 24], [3, 1, 0, 2])]
    return cases


def odd_lines():
    """Transposes of odd extents, or of extents that are no multiples of a sector: word accesses on both sides."""
    cases = []
    turn = node("y", "permute", "v", dims=[1, 0])
    for dtype, sectors in (("uint8", 1.23), ("float16", 1.13), ("float32", 1.09), ("float64", 1.05)):
        cases += [permute(dtype, [1021, 773], [1, 0], sectors=sectors, wide=False),
                  permute(dtype, [512, 773], [1, 0], sectors=1 + (sectors - 1) / 1.5, wide=False, conflicts_each=1),
                  permute(dtype, [3, 515, 390], [0, 2, 1], sectors=1 + 1.2 * (sectors - 1), wide=False, conflicts_each=1),
                  permute(dtype, [5, 257, 3, 129], [0, 3, 2, 1], sectors=1 + 1.7 * (sectors - 1), wide=False,
                          conflicts_each=1)]
    odd = [771, 517]
    for dtype, to, sectors in (("float16", "float32", 1.1), ("int8", "float64", 1.06), ("uint8", "int8", 1.23)):
        cases.append(Case(f"odd lines of {dtype} turned to {to}", {"x": (dtype, odd)},
                          [node("v", "cast", "x", dtype=to), turn], sectors=sectors, wide=False))
    cases += [Case("odd lines turned and added", {"x": ("float32", odd), "z": ("float32", [517, 771]), "b": ("float32", [517, 1])},
                   [node("v", "relu", "x"), node("t", "permute", "v", dims=[1, 0]), node("s", "add", "t", "z"),
                    node("y", "mul", "s", "b")], sectors=1.13, wide=False),
              Case("odd lines of two turned", {"x": ("bfloat16", odd), "z": ("bfloat16", odd)},
                   [node("v", "add", "x", "z"), turn], sectors=1.16, wide=False)]
    sizes = {"m": {"min": 1, "max": 100000, "hint": 517}, "n": {"min": 1, "max": 100000, "hint": 771}}
    for dtype, sectors in (("float16", 1.14), ("float32", 1.1)):
        cases.append(Case(f"odd lines of any number turned {dtype}", {"v": (dtype, ["m", "n"])}, [turn], sectors=sectors,
                          wide=False, symbols=sizes))
    return cases


def strips():
    """Unaligned transposes with several hundred rows a block: few sectors are read twice, whole sectors are stored, and
    conflicts are rare."""
    cases = []

    def add(dtype, shape, dims, sectors, instructions, conflicts_each=0.1):
        cases.append(permute(dtype, shape, dims, sectors=sectors, wide=False, conflicts_each=conflicts_each,
                             instructions=instructions))

    # As many blocks as a device has multiprocessors each have 128 KB to move.
    for dtype, sectors, instructions in (("int8", 1.22, 100), ("bfloat16", 1.11, 72), ("float32", 1.05, 34),
                                         ("float64", 1.04, 25)):
        add(dtype, [1333, 2777], [1, 0], sectors, instructions, 0.2)
    for dtype, sectors, instructions in (("float32", 1.03, 40), ("float16", 1.025, 70)):
        add(dtype, [64, 77, 197], [0, 2, 1], sectors, instructions, 0.3)
    for dtype, instructions in (("uint8", 110), ("float16", 50), ("float32", 25)):  # attention's heads
        add(dtype, [2, 12, 197, 64], [0, 1, 3, 2], 1.005, instructions, 0.3)
    return cases


def boxes():
    """Permutes of several short or odd axes: tiles of several axes. Result words combine elements from arbitrary
    positions, so some lanes conflict."""
    cases = []

    def add(name, dtype, shape, nodes, sectors, conflicts_each=2.5, **inputs):
        cases.append(Case(f"boxes: {name} {dtype}{shape}", {"x": (dtype, shape)} | inputs, nodes, sectors=sectors,
                          wide=False, conflicts_each=conflicts_each))

    for dtype, sectors in (("uint8", 1.18), ("float16", 1.22), ("float32", 1.12)):
        for shape, dims in (([5, 60, 116, 5], [3, 1, 2, 0]), ([48, 32, 65, 6], [3, 2, 1, 0]), ([48, 32, 65, 6], [0, 3, 2, 1]),
                            ([2, 225, 225, 3], [0, 3, 1, 2]), ([2, 3, 225, 225], [0, 2, 3, 1]),
                            ([2, 28, 5, 3, 56, 33], [0, 1, 4, 2, 3, 5]), ([3, 28, 28, 3, 58], [0, 1, 2, 4, 3]),
                            ([2, 197, 3, 5, 33], [2, 0, 3, 1, 4]), ([9, 7, 65, 6, 9], [4, 3, 0, 2, 1])):
            add(f"permute{dims}", dtype, shape, [node("y", "permute", "x", dims=dims)], sectors)
        for times in (2, 3):
            side = 60 * times
            add(f"pixels shuffled by {times}", dtype, [2, 3 * times * times, 60, 60],
                [node("r", "reshape", "x", shape=[2, 3, times, times, 60, 60]),
                 node("p", "permute", "r", dims=[0, 1, 4, 2, 5, 3]), node("y", "reshape", "p", shape=[2, 3, side, side])],
                sectors)
        add("pixels unshuffled", dtype, [2, 3, 180, 180],
            [node("r", "reshape", "x", shape=[2, 3, 60, 3, 60, 3]), node("p", "permute", "r", dims=[0, 1, 3, 5, 2, 4]),
             node("y", "reshape", "p", shape=[2, 27, 60, 60])], sectors)
        for dims in ([0, 2, 4, 1, 3, 5], [0, 2, 4, 3, 5, 1]):
            add(f"patches {dims}", dtype, [2, 3, 224, 224],
                [node("r", "reshape", "x", shape=[2, 3, 16, 14, 16, 14]), node("p", "permute", "r", dims=dims),
                 node("y", "reshape", "p", shape=[2, 256, 588])], sectors)
    add("colours as float16", "uint8", [2, 225, 225, 3],
        [node("p", "permute", "x", dims=[0, 3, 1, 2]), node("c", "cast", "p", dtype="float16"), node("y", "sub", "c", "m")],
        1.25, m=("float16", [3, 1, 1]))
    for dtype, shape, dims in (("uint8", [257, 300], [1]), ("float16", [129, 129, 5], [2]), ("uint8", [257, 3, 100], [0, 2])):
        add(f"backwards {dims}", dtype, shape, [node("y", "flip", "x", dims=dims)], 1.07)
    add("backwards and turned", "uint8", [300, 257], [node("f", "flip", "x", dims=[0, 1]),
                                                      node("y", "permute", "f", dims=[1, 0])], 1.15, 3)
    add("two added", "float32", [9, 4, 15, 100, 6],
        [node("p", "permute", "x", dims=[2, 4, 1, 3, 0]), node("q", "permute", "z", dims=[0, 3, 4, 2, 1]),
         node("y", "add", "p", "q")], 1.1, 6, z=("float32", [15, 9, 100, 6, 4]))
    add("a part", "float16", [2, 225, 129, 4],
        [node("v", "slice", "x", dim=3, start=0, end=3), node("y", "permute", "v", dims=[0, 3, 1, 2])], 1.3, 5)
    sizes = {name: {"min": 1, "max": 8192, "hint": hint} for name, hint in (("b", 16), ("s", 225), ("t", 57))}
    for dtype, sectors in (("uint8", 1.14), ("float16", 1.12), ("float32", 1.06)):
        for shape, dims in ((["b", "t", 5, 33], [0, 2, 1, 3]), (["b", "t", 3, 5, 33], [2, 0, 3, 1, 4]),
                            (["b", 3, "s", "t"], [0, 2, 3, 1]), (["b", "t", 7, "t", 6], [0, 1, 3, 2, 4])):
            used = {name: size for name, size in sizes.items() if name in shape}
            cases.append(Case(f"boxes of any size: permute{dims} {dtype}{shape}", {"x": (dtype, shape)},
                              [node("y", "permute", "x", dims=dims)], sectors=sectors, wide=False, symbols=used,
                              conflicts_each=2.5))
    return cases


def narrow():
    """Few columns become long rows, or the reverse. Threads store sectors of neighbouring rows if the elements of one
    row are in few banks."""
    cases = []
    for dtype, shape, conflicts_each in (
            ("uint8", [4096, 6], 0.3), ("uint8", [4096, 8], 1), ("int8", [2048, 12], 0.4), ("bool", [2048, 24], 1),
            ("float8_e5m2", [4096, 8], 1), ("float16", [2048, 12], 0.4), ("float32", [4096, 8], 1),
            ("float32", [24, 2048], 1), ("float64", [12, 2048], 0)):
        cases.append(Case(f"narrow: permute[1, 0] {dtype}{shape}", {"x": (dtype, shape)},
                          [node("y", "permute", "x", dims=[1, 0])], sectors=1.05, wide=False,
                          conflicts_each=conflicts_each))
    return cases


def half_bytes():
    """Transposed 4-bit elements, two a byte: a word of the tile has elements of eight rows."""
    cases = []
    for dtype in ("int4", "uint4", "float4_e2m1fn"):
        cases += [permute(dtype, [512, 768], [1, 0]), permute(dtype, [3, 256, 384], [0, 2, 1]),
                  permute(dtype, [2, 64, 32, 64], [0, 2, 3, 1]), permute(dtype, [2, 32, 64, 64], [0, 3, 1, 2])]
    for dtype, sectors in (("float32", 1.12), ("bfloat16", 1.01), ("int8", 1.01), ("int64", 1.06)):
        cases += [Case(f"int4 turned to {dtype}", {"x": ("int4", [512, 768])},
                       [node("c", "cast", "x", dtype=dtype), node("y", "permute", "c", dims=[1, 0])], sectors=1.01),
                  Case(f"{dtype} turned to int4", {"x": (dtype, [512, 768])},
                       [node("c", "cast", "x", dtype="int4"), node("y", "permute", "c", dims=[1, 0])], sectors=sectors,
                       wide=False)]
    return cases


def small_extents():
    """Innermost extents of a few bytes, moved as words."""
    cases = []
    for dtype, extents in (("uint8", (2, 4, 8, 16)), ("float16", (2, 4, 8)), ("float32", (2, 4)), ("uint4", (8, 16))):
        for extent in extents:
            cases.append(permute(dtype, [4, 128, 12, extent], [0, 2, 1, 3], wide=False,
                                 conflicts_each=3.5 if dtype == "uint8" and extent == 2 else 1))
    for dtype in ("uint8", "float16"):  # pixels shuffled, unshuffled and put into patches
        cases += [permute(dtype, [2, 8, 4, 4, 32, 32], [0, 1, 4, 2, 5, 3], wide=False),
                  permute(dtype, [2, 16, 32, 2, 32, 2], [0, 1, 3, 5, 2, 4], wide=False),
                  permute(dtype, [2, 3, 8, 16, 8, 16], [0, 2, 4, 1, 3, 5], sectors=1.01, wide=False)]
    # One operand that one part of the launch reads as words and the other as bytes.
    cases.append(Case("words beside bytes", {"x": ("int8", [4, 128, 12, 8])},
                      [node("a", "permute", "x", dims=[0, 2, 1, 3]), node("c", "flip", "x", dims=[3])],
                      outputs=("a", "c"), sectors=1.4, wide=False))
    return cases


def half_bytes_together():
    """4-bit elements moved by eights."""
    cases = []
    for dtype in ("uint4", "float4_e2m1fn"):
        x = (dtype, [256, 768])
        for name, more, last in (
                ("repeated", {}, node("y", "repeat", "x", repeats=[1, 2])),
                ("each row twice", {}, node("y", "repeat_interleave", "x", repeats=2, dim=0)),
                ("rolled", {}, node("y", "roll", "x", shifts=[8], dims=[1])),
                ("padded", {}, node("y", "pad", "x", pad=[8, 16])),
                ("rows picked", {"i": ("int64", [200])}, node("y", "index_select", "x", "i", dim=0)),
                ("rows backwards", {}, node("y", "flip", "x", dims=[0])),
                ("concat", {"z": (dtype, [256, 136])}, node("y", "concat", "x", "z", dim=1))):
            cases.append(Case(f"{name} {dtype}", {"x": x} | more, [last], sectors=1.23, wide=False))
    return cases


def around():
    x = ("float32", [384, 256])
    h = ("bfloat16", [4, 192, 128])
    return [
        Case("transposed and added", {"x": x, "z": ("float32", [256, 384])},
             [node("t", "permute", "x", dims=[1, 0]), node("s", "add", "t", "z"), node("y", "relu", "s")]),
        Case("before and behind", {"x": h, "b": ("bfloat16", [192])},
             [node("g", "gelu", "x"), node("t", "permute", "g", dims=[0, 2, 1]), node("y", "add", "t", "b")],
             sectors=1.15, wide=False),
        Case("two transposed", {"x": h, "u": h},
             [node("a", "permute", "x", dims=[0, 2, 1]), node("c", "permute", "u", dims=[0, 2, 1]),
              node("s", "silu", "a"), node("y", "mul", "s", "c")]),
        Case("permuted in two ways", {"x": ("float32", [32, 64, 96]), "u": ("float32", [32, 96, 64])},
             [node("a", "permute", "x", dims=[2, 0, 1]), node("c", "permute", "u", dims=[1, 2, 0]),
              node("d", "permute", "c", dims=[0, 2, 1]), node("y", "add", "a", "d")]),
        Case("in three ways", {"x": ("bfloat16", [64, 64, 64]), "u": ("bfloat16", [64, 64, 64]), "w": ("bfloat16", [64, 64, 64])},
             [node("a", "permute", "x", dims=[2, 0, 1]), node("c", "permute", "u", dims=[1, 2, 0]),
              node("s", "add", "a", "c"), node("y", "add", "s", "w")], conflicts_each=3.5),
        Case("narrowed", {"x": x}, [node("t", "permute", "x", dims=[1, 0]), node("y", "cast", "t", dtype="bfloat16")],
             wide=False),
        Case("widened", {"x": ("bfloat16", [384, 256])},
             [node("t", "permute", "x", dims=[1, 0]), node("y", "cast", "t", dtype="float32")]),
        Case("each four times, transposed", {"x": ("float32", [192, 4, 192])},
             [node("t", "permute", "x", dims=[1, 2, 0]), node("r", "repeat_interleave", "t", repeats=4, dim=2),
              node("y", "relu", "r")], sectors=4, wide=False),
        Case("heads joined", {"x": ("bfloat16", [2, 8, 96, 64])},
             [node("t", "permute", "x", dims=[0, 2, 1, 3]), node("y", "reshape", "t", shape=[2, 96, 512])]),
        Case("patches", {"x": ("float32", [2, 3, 64, 64])},
             [node("r", "reshape", "x", shape=[2, 3, 4, 16, 4, 16]), node("t", "permute", "r", dims=[0, 2, 4, 1, 3, 5]),
              node("y", "reshape", "t", shape=[2, 16, 768])]),
        Case("patches, channels last", {"x": ("bfloat16", [2, 8, 64, 64])},
             [node("r", "reshape", "x", shape=[2, 8, 4, 16, 4, 16]), node("t", "permute", "r", dims=[0, 2, 4, 3, 5, 1]),
              node("y", "reshape", "t", shape=[2, 16, 2048])], wide=False),
    ]


def rows_and_parts():
    """Gathered, padded and concatenated rows, with vector accesses wherever they are aligned."""
    table, ids = ("bfloat16", [1000, 768]), ("int64", [4, 128])
    return [
        Case("embedding", {"w": table, "i": ids}, [node("y", "embedding", "w", "i")], wide=False,
             moved=2 * 512 * 768 * 2),
        Case("embedding and positions", {"w": ("float32", [500, 512]), "p": ("float32", [128, 512]), "i": ids},
             [node("e", "embedding", "w", "i"), node("y", "add", "e", "p")], wide=False, moved=3 * 512 * 512 * 4),
        Case("index_select", {"w": table, "i": ("int64", [300])}, [node("y", "index_select", "w", "i", dim=0)], wide=False),
        Case("padded", {"x": ("bfloat16", [64, 512])}, [node("y", "pad", "x", pad=[8, 16, 1, 1])]),
        Case("rows padded", {"x": ("float32", [3, 20, 129])}, [node("y", "pad", "x", pad=[0, 0, 4, 8])]),
        Case("joined", {"x": ("bfloat16", [64, 512]), "u": ("bfloat16", [64, 256])}, [node("y", "concat", "x", "u", dim=1)]),
        Case("rows joined", {"x": ("bfloat16", [64, 511]), "u": ("bfloat16", [32, 511])},
             [node("y", "concat", "x", "u", dim=0)]),
        Case("a part", {"x": ("float16", [96, 512])}, [node("y", "slice", "x", dim=1, start=64, end=320)]),
    ] + [case for dtype in ("float8_e4m3fn", "float8_e5m2") for case in (
        Case(f"a part of {dtype}", {"x": (dtype, [384, 2048])}, [node("y", "slice", "x", dim=1, start=64, end=1344)]),
        Case(f"backwards {dtype}", {"x": (dtype, [384, 2048])}, [node("y", "flip", "x", dims=[0])]),
        Case(f"turned round {dtype}", {"x": (dtype, [512, 768])}, [node("y", "permute", "x", dims=[1, 0])]),
        Case(f"padded by 1.5 {dtype}", {"x": (dtype, [384, 2048])}, [node("y", "pad", "x", pad=[16, 32, 1, 1], value=1.5)]))]


def line_pairs():
    """Rows of half a sector that are not contiguous in the results: patches of images, in both directions, and short
    heads."""
    cases = []
    for dtype, side in (("uint8", 16), ("float16", 8)):
        tall = 224 // side
        images, tokens = [2, 3, 224, 224], [2, tall * tall, 3 * side * side]
        patches = [node("v", "reshape", "x", shape=[2, 3, tall, side, tall, side]),
                   node("t", "permute", "v", dims=[0, 2, 4, 1, 3, 5]), node("y", "reshape", "t", shape=tokens)]
        back = [node("v", "reshape", "x", shape=[2, tall, tall, 3, side, side]),
                node("t", "permute", "v", dims=[0, 3, 1, 4, 2, 5]), node("y", "reshape", "t", shape=images)]
        cases += [Case(f"patches of {side} {dtype}", {"x": (dtype, images)}, patches, sectors=1.02, instructions=32),
                  Case(f"image of {side} {dtype}", {"x": (dtype, tokens)}, back, sectors=1.02, instructions=32)]
    scaled = patches[:2] + [node("r", "reshape", "t", shape=[2, 784, 192]), node("f", "cast", "r", dtype="float16"),
                            node("g", "mul", "f", 0.0078125), node("y", "sub", "g", 1.0)]
    cases.append(Case("patches of 8 scaled", {"x": ("uint8", images)}, scaled, sectors=1.02, wide=False, instructions=90))
    for dtype, shape in (("float16", [2, 64, 12, 8]), ("float32", [4, 96, 8, 4]), ("int8", [2, 128, 12, 16]),
                         ("float16", [8, 197, 12, 8])):
        cases.append(Case(f"short heads {dtype}{shape}", {"x": (dtype, shape)}, [node("y", "permute", "x", dims=[0, 2, 1, 3])],
                          sectors=1.04, instructions=26))
    return cases


def windows():
    """Operands in another order than the results: strided, reversed, repeated, unaligned. Results are stored 16 bytes
    at a time; sectors and executed instructions are relative to 16-byte copies."""
    cases = []

    def add(name, dtype, shape, nodes, sectors=ALIGNED, wide=False, **inputs):
        cases.append(Case(f"{name} {dtype}{shape}", {"x": (dtype, shape)} | {n: (dtype, s) for n, s in inputs.items()},
                          nodes, sectors=sectors, wide=wide))

    for dtype in ("uint8", "float16", "float32", "float64"):
        for step in (2, 3, 4):
            add(f"every {step}", dtype, [96, 768], [node("y", "slice", "x", dim=1, start=1, end=768, step=step)],
                sectors=1.51 if (dtype, step) == ("float64", 3) else ALIGNED, wide=(dtype, step) != ("float64", 3))
        add("backwards", dtype, [96, 512], [node("y", "flip", "x", dims=[1])], wide=True)
        add("backwards", dtype, [96, 515], [node("y", "flip", "x", dims=[0, 1])], sectors=1.15)
        add("each twice", dtype, [96, 512], [node("y", "repeat_interleave", "x", repeats=2, dim=1)])
        add("twice", dtype, [96, 517], [node("y", "repeat", "x", repeats=[1, 2])], sectors=1.25)
        add("rolled", dtype, [96, 512], [node("y", "roll", "x", shifts=[1], dims=[1])], sectors=1.2)
        for before, after in ((1, 0), (0, 1), (3, 2)):
            add(f"padded by {before, after}", dtype, [96, 1023], [node("y", "pad", "x", pad=[before, after])],
                sectors=1.15)
        add("a part", dtype, [96, 1023], [node("y", "slice", "x", dim=1, start=5, end=1003)], sectors=1.15)
        # Only the few warps with points of two rows or two operands read both.
        add("a part of rows", dtype, [256, 1021], [node("y", "slice", "x", dim=1, start=3, end=1000)])
        add("rows padded by (3, 2)", dtype, [256, 1021], [node("y", "pad", "x", pad=[3, 2])])
        add("joined rows", dtype, [256, 1021], [node("y", "concat", "x", "u", dim=1)], u=[256, 515])
        add("rows joined", dtype, [31, 511], [node("y", "concat", "x", "u", dim=0)], u=[32, 511])
        add("joined", dtype, [64, 511], [node("y", "concat", "x", "u", dim=1)], sectors=1.25, u=[64, 130])
    for dtype in ("bfloat16", "float32"):
        for n in (1024, 1030):
            add("interleaved swiglu", dtype, [64, n], [node("y", "swiglu", "x", interleaved=True)], wide=n == 1024)
            add("clamped", dtype, [64, n], [node("y", "swiglu", "x", interleaved=True, alpha=1.702, limit=7.0, up_offset=1.0)],
                wide=n == 1024)
        add("a row for all", dtype, [64, 4095], [node("y", "add", "x", "b")], sectors=1.65, b=[4095])
        add("a factor for each row", dtype, [64, 4095], [node("y", "mul", "x", "b")], b=[64, 1])
    for dtype in ("uint8", "float16", "float64"):  # repeated elements are read once
        for times, dim in ((2, 0), (3, 1), (4, 2)):
            add(f"repeated {times, dim}", dtype, [12, 24, 64], sectors=1.02, nodes=[
                node("y", "repeat", "x", repeats=[times if d == dim else 1 for d in range(3)])])
        add("tiled", dtype, [12, 24, 64], sectors=1.02, nodes=[
            node("u", "unsqueeze", "x", dim=1), node("e", "expand", "u", shape=[12, 3, 24, 64]),
            node("y", "reshape", "e", shape=[36, 24, 64])])
    cases.append(Case("images normalized", {"x": ("uint8", [2, 64, 64, 3]), "m": ("float32", [3]), "s": ("float32", [3])},
                      [node("c", "cast", "x", dtype="float32"), node("d", "sub", "c", "m"), node("y", "mul", "d", "s")],
                      sectors=1.15, wide=False))
    return cases


def stretches():
    """Reflected, replicated and circular pads, rolls, short odd rows, odd steps. A block copies the operand range of
    its points to shared memory, with few extra sectors and without conflicts."""
    cases = []

    def add(name, dtype, shape, nodes, sectors=1.12, symbols=None, conflicts=0):
        if symbols:
            name += f" of {symbols['n']['hint']}"
        cases.append(Case(f"stretches: {name} {dtype}{shape}", {"x": (dtype, shape)}, nodes, sectors=sectors, wide=False,
                          symbols=symbols, conflicts=conflicts))

    for dtype in ("uint8", "float16", "float32", "float64"):
        for mode in ("reflect", "replicate", "circular"):
            add(mode, dtype, [64, 1024], [node("y", "pad", "x", pad=[3, 4], mode=mode)])
            add(mode + " rows", dtype, [500, 37], [node("y", "pad", "x", pad=[2, 1], mode=mode)])
            add(mode + " images", dtype, [4, 6, 64, 56], [node("p", "pad", "x", pad=[1, 1, 1, 1], mode=mode),
                                                          node("y", "relu", "p")], sectors=1.3)
            add(mode + " volumes", dtype, [2, 3, 12, 20, 48], [node("y", "pad", "x", pad=[2, 2, 1, 1, 1, 1], mode=mode)],
                sectors=1.75, conflicts=1)  # all elements: a warp's points are in three rows
        add("roll of odd rows", dtype, [300, 129], [node("y", "roll", "x", shifts=[1, -3], dims=[0, 1])], sectors=1.2)
        add("each three times", dtype, [300, 65], [node("y", "repeat_interleave", "x", repeats=3, dim=1)])
        add("odd rows twice", dtype, [300, 65], [node("y", "repeat", "x", repeats=[1, 2])])
        add("odd rows backwards", dtype, [40, 16, 33], [node("y", "flip", "x", dims=[0, 2])], sectors=1.6)
        for n in (255, 256):
            any_size = {"n": {"min": 1, "max": 4096, "hint": n}}
            add("symbolic roll", dtype, [128, "n"], [node("a", "roll", "x", shifts=[1], dims=[1]), node("y", "relu", "a")],
                symbols=any_size, sectors=1.3)
            add("symbolic odd steps", dtype, [128, "n+1"],
                [node("a", "slice", "x", dim=1, start=1, end=1 << 62, step=2), node("y", "relu", "a")], symbols=any_size)
    return cases


BYTES = {"int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2, "bfloat16": 2, "float32": 4}


def runs():
    """Pure movement of unaligned rows: 16 bytes of the results mostly are a contiguous range of one operand, and take
    no instructions per element there."""
    cases = []

    def add(name, inputs, *nodes, sectors=1.03, instructions=95, conflicts_each=12, symbols=None,
            sizes=None):
        dtypes = "/".join(dict.fromkeys(dtype for dtype, _ in inputs.values()))
        hints = {symbol: bounds["hint"] for symbol, bounds in (symbols or {}).items()}
        elements = sum(element_count([hints.get(n, n) for n in shape]) for _, shape in inputs.values())
        # Where rows meet, 16-byte accesses of a quarter warp may conflict.
        conflicts = conflicts_each * elements * BYTES[dtypes] / 512
        cases.append(Case(f"runs: {name} {dtypes}{inputs['x'][1]}", inputs, nodes, sectors=sectors, wide=False,
                          conflicts=conflicts, symbols=symbols, instructions=instructions))
        cases[-1].sizes, cases[-1].conflicts_each = sizes or {}, 0

    def joined(name, dtype, rows, *columns, **how):
        inputs = {"xzuvw"[i]: (dtype, [rows, n]) for i, n in enumerate(columns)}
        add(name, inputs, node("y", "concat", *inputs, dim=1), **how)

    for dtype in ("float8_e4m3fn", "float16"):
        images = {"x": (dtype, [4, 16, 112, 112])}
        add("padded by zeros", images, node("y", "pad", "x", pad=[1, 1, 1, 1]))
        for mode in ("reflect", "replicate"):
            add("padded by " + mode, images, node("y", "pad", "x", pad=[3, 3, 3, 3], mode=mode), instructions=110,
                conflicts_each=16)
    add("padded by 1.5", {"x": ("bfloat16", [4, 16, 112, 112])}, node("y", "pad", "x", pad=[1, 1, 1, 1], value=1.5))
    add("padded by -1", {"x": ("int8", [16, 3, 5, 100, 41])}, node("y", "pad", "x", pad=[1, 1, 2, 2, 1, 1], value=-1),
        instructions=150, conflicts_each=20)
    add("padded behind", {"x": ("uint8", [8, 16, 113, 113])}, node("y", "pad", "x", pad=[0, 1, 0, 1]))
    add("padded on all sides", {"x": ("float32", [8, 16, 57, 57])}, node("y", "pad", "x", pad=[1, 1, 1, 1]))
    add("padded by reflect", {"x": ("float32", [4, 8, 128, 128])},
        node("y", "pad", "x", pad=[2, 2, 2, 2], mode="reflect"))
    add("padded to rows of 32 bytes", {"x": ("float8_e5m2", [16, 64, 30, 30])}, node("y", "pad", "x", pad=[1, 1, 1, 1]),
        instructions=170, conflicts_each=16)
    add("padded around", {"x": ("float16", [4, 32, 64, 64])},
        node("y", "pad", "x", pad=[1, 1, 1, 1], mode="circular"), sectors=1.12, instructions=140,
        conflicts_each=25)
    for dtype in ("int8", "float16"):
        joined("joined", dtype, 8000, 77, 33, instructions=105)
        joined("a few columns joined with many", dtype, 4096, 13, 351)
        add("padded and joined", {"x": (dtype, [256, 50, 77]), "z": (dtype, [256, 52, 20])},
            node("p", "pad", "x", pad=[1, 1, 1, 1]), node("y", "concat", "p", "z", dim=2), instructions=140,
            conflicts_each=15)
    joined("five joined", "float16", 4000, 17, 33, 65, 5, 120, instructions=110, sectors=1.04)
    joined("odd rows joined", "bfloat16", 500, 513, 511, 3)
    add("rolled", {"x": ("int8", [256, 33, 165])}, node("y", "roll", "x", shifts=[1, 3], dims=[1, 2]), sectors=1.12,
        instructions=150)
    add("padded", {"x": ("uint8", ["n", 331])}, node("y", "pad", "x", pad=[2, 1], mode="reflect"),
        symbols={"n": {"hint": 8000}}, instructions=110)
    add("rows of any length rolled", {"x": ("float16", [400, "n"])}, node("y", "roll", "x", shifts=[3], dims=[1]),
        symbols={"n": {"min": 5, "hint": 300}}, sizes={"n": 9000}, sectors=1.05)
    for dtype, images in (("uint8", 32), ("float16", 16)):
        for mode in ("constant", "reflect"):
            add(f"{mode} padded pixels", {"x": (dtype, [images, 112, 112, 3])},
                node("y", "pad", "x", pad=[0, 0, 1, 1, 1, 1], mode=mode), instructions=115)
    for n in (1001, 1000, 333, 13):
        for mode in ("replicate", "constant"):
            add(f"rows of {n} padded, {mode},", {"x": ("float16", [400, "n"])},
                node("y", "pad", "x", pad=[2, 1], mode=mode), symbols={"n": {"hint": 1001}}, sizes={"n": n},
                sectors=1.05 if n > 100 else 1e9, instructions=120 if n > 1000 else 1e9)
    return cases


def slices():
    """Evenly spaced slices of one tensor, concatenated (a permutation): each is read once."""
    cases = []

    def add(name, dtype, shape, nodes, sectors=1.03, instructions=60, conflicts_each=1):
        cases.append(Case(f"slices: {name} {dtype}{shape}", {"x": (dtype, shape)}, nodes, sectors=sectors, wide=False,
                          instructions=instructions, conflicts_each=conflicts_each))

    def parts(dim, end, steps):
        return [node(f"s{i}", "slice", "x", dim=dim, start=i, end=end, step=steps) for i in range(steps)]

    def joined(steps, dim, operand="s"):
        return node("y", "concat", *(f"{operand}{i}" for i in range(steps)), dim=dim)

    for dtype in ("uint8", "float16", "float32"):
        for order in ("rows first", "columns first"):
            nodes = []
            for i in range(4):
                row, column = (i % 2, i // 2) if order == "rows first" else (i // 2, i % 2)
                nodes += [node(f"r{i}", "slice", "x", dim=2, start=row, end=160, step=2),
                          node(f"s{i}", "slice", f"r{i}", dim=3, start=column, end=320, step=2)]
            add(f"pixels to channels, {order},", dtype, [2, 3, 160, 320], [*nodes, joined(4, 1)])
        add("odd rows behind even ones", dtype, [120, 640], [*parts(0, 120, 2), joined(2, 0)])
        add("every third row beside the next", dtype, [120, 640], [*parts(0, 120, 3), joined(3, 1)])
        add("odd columns behind even ones", dtype, [511, 1024], [*parts(1, 1024, 2), joined(2, 1)],
            instructions=110)
        add("twice", dtype, [37, 128, 64], [node("y", "concat", "x", "x", dim=1)])
        add("halves change places", dtype, [256, 8, 128],
            [node("a", "slice", "x", dim=2, start=64, end=128), node("b", "slice", "x", dim=2, start=0, end=64),
             node("y", "concat", "a", "b", dim=2)])
    return cases


def turned():
    """Transposes of operands that are rolled, reflected, reversed, strided, sliced, padded or concatenated."""
    cases = []
    turn = node("y", "permute", "v", dims=[1, 0])
    for dtype in ("uint8", "float16", "float32", "float64"):
        beside = {"uint8": 1.55, "float16": 1.26, "float32": 1.14, "float64": 1.08}[dtype]  # unaligned operands
        x = {"x": (dtype, [384, 256])}
        for name, op, attrs, sectors in (
                ("rolled", "roll", {"shifts": [3], "dims": [1]}, beside),
                ("rows rolled", "roll", {"shifts": [3], "dims": [0]}, 1.01),
                ("reflected", "pad", {"pad": [3, 2], "mode": "reflect"}, beside),
                ("rows reflected", "pad", {"pad": [0, 0, 16, 16], "mode": "reflect"}, 1.05),
                ("every other", "slice", {"dim": 1, "start": 0, "end": 256, "step": 2}, 1.01),
                ("backwards", "flip", {"dims": [1]}, 1.01), ("rows backwards", "flip", {"dims": [0]}, 1.01),
                ("a part", "slice", {"dim": 1, "start": 3, "end": 251}, beside),
                ("rows' part", "slice", {"dim": 0, "start": 3, "end": 377}, beside),
                ("padded", "pad", {"pad": [3, 2]}, beside), ("rows padded", "pad", {"pad": [0, 0, 3, 1]}, beside)):
            cases.append(Case(f"turned: {name} {dtype}", x, [node("v", op, "x", **attrs), turn], sectors=sectors,
                              conflicts_each=6, wide=False))
        cases.append(Case(f"turned: images padded {dtype}", {"x": (dtype, [2, 30, 32, 64])},
                          [node("v", "permute", "x", dims=[0, 3, 1, 2]), node("y", "pad", "v", pad=[1, 1, 1, 1])],
                          sectors=1 + 1.8 * (beside - 1) if dtype != "uint8" else 2, wide=False))
        for shift in (0, 3):
            cases.append(Case(f"turned: windows rolled by {shift} {dtype}", {"x": (dtype, [2, 56, 56, 64])},
                              [node("r", "roll", "x", shifts=[-shift, -shift], dims=[1, 2]),
                               node("v", "reshape", "r", shape=[2, 8, 7, 8, 7, 64]),
                               node("y", "permute", "v", dims=[0, 1, 3, 2, 4, 5])], sectors=1.01))
    return cases


def picks():
    """Gathers along the last axis: rows are staged in shared memory, and indices are read once for several rows. Bank
    conflicts are random."""
    cases = []

    def add(name, nodes, sectors, symbols=None, **inputs):
        cases.append(Case(f"picks: {name}", inputs, nodes, sectors=sectors, wide=False, conflicts=1 << 40,
                          symbols=symbols))

    select, gather = node("y", "index_select", "x", "i", dim=1), node("y", "gather", "x", "i", dim=1)
    for dtype in ("uint8", "float16", "float32", "float64"):
        for rows, length, count in ((1024, 1024, 1024), (4000, 100, 100), (4001, 257, 129)):
            shared = {"uint8": 1.6, "float16": 1.35}.get(dtype, 1.2)  # the indices have 8 bytes
            add(f"{count} of {dtype}{[rows, length]}", [select], shared, x=(dtype, [rows, length]), i=("int64", [count]))
            add(f"{count} of each of {dtype}{[rows, length]}", [gather], 1.2, x=(dtype, [rows, length]),
                i=("int64", [rows, count]))
        add(f"of two {dtype}", [node("t", "index_select", "x", "i", dim=1), node("s", "index_select", "u", "i", dim=1),
                                node("y", "add", "t", "s")], 1.9, x=(dtype, [2100, 513]), u=(dtype, [2100, 128]),
            i=("int32", [128]))
        add(f"symbolic {dtype}", [select], 1.7, {"m": {"min": 1, "max": 100000, "hint": 3001}}, x=(dtype, ["m", 65]),
            i=("int32", [65]))
    add("of looked-up rows", [node("t", "index_select", "x", "i", dim=1), node("y", "index_select", "t", "r", dim=0)],
        2, x=("float16", [300, 600]), i=("int32", [600]), r=("int64", [2000]))
    add("besides being added", [node("t", "index_select", "x", "i", dim=1), node("c", "cast", "i", dtype="float32"),
                                node("y", "add", "t", "c")], 1.6,
        x=("float32", [3000, 600]), i=("int32", [600]))
    add("256 of each of float32[1024, 1024]", [gather], 1.05, x=("float32", [1024, 1024]), i=("int64", [1024, 256]))
    return cases


def rows_backwards():
    """Reversed odd rows, or rows in reverse order. The windows of a tensor's first and last row extend beyond it, where
    the lanes of another row are. All elements together are whole vectors, except for a few. Warps with elements of two
    rows have bank conflicts at each load."""
    cases = []

    def add(name, dtype, shape, nodes, symbols=None, conflicts_each=1.5, **inputs):
        cases.append(Case(f"rows backwards: {name} {dtype}{shape}", {"x": (dtype, shape)} | inputs,
                          [*nodes, node("y", "abs", "v")], sectors=1e9, wide=False, symbols=symbols,
                          conflicts_each=conflicts_each))

    for dtype, end in (("int8", "float32"), ("float16", "float16"), ("float32", "float16"), ("float64", "float64")):
        for rows, columns in ((64, 255), (48, 337), (63, 261)):
            shape, kept = [rows, columns], columns - 1 if columns == 255 else columns
            add("columns", dtype, shape, [node("v", "flip", "x", dims=[1])])
            add("rows", dtype, shape, [node("v", "flip", "x", dims=[0])])
            add("both", dtype, [4, *shape], [node("v", "flip", "x", dims=[0, 2])])
            add("cast", dtype, shape, [node("f", "flip", "x", dims=[1]), node("v", "cast", "f", dtype=end)])
            add("a part", dtype, shape, [node("f", "flip", "x", dims=[1]),
                                         node("v", "slice", "f", dim=1, start=0, end=kept - 6)])
            for step in (2, 3) if rows != 63 else (2,):
                for dims in ([0], [1], [0, 1]):
                    add(f"{dims} in steps of {step}", dtype, [rows, step * columns],
                        [node("f", "flip", "x", dims=dims),
                         node("v", "slice", "f", dim=1, start=step - 1, end=step * columns, step=step)])
            add("added up", dtype, shape, [node("f", "flip", "x", dims=[1]), node("g", "flip", "x", dims=[0]),
                                           node("h", "add", "f", "g"), node("v", "add", "h", "b")],
                conflicts_each=3 * 0.75, b=(dtype, [columns]))  # three are loaded for each
            add("each twice", dtype, shape, [node("f", "flip", "x", dims=[1]),
                                             node("v", "repeat_interleave", "f", repeats=2, dim=0)])
            add("joined", dtype, shape, [node("f", "flip", "x", dims=[1]), node("v", "concat", "f", "x", dim=0)])
    for dtype in ("int8", "float16", "float32", "float64"):
        for dims in ([0], [1], [0, 1]):
            add(f"symbolic {dims}", dtype, ["m", 255], [node("v", "flip", "x", dims=dims)],
                {"m": {"min": 16, "max": 256, "multiple_of": 16, "hint": 64}})
            add(f"symbolic {dims} in steps of 2", dtype, ["m", 510],
                [node("f", "flip", "x", dims=dims), node("v", "slice", "f", dim=1, start=0, end=510, step=2)],
                {"m": {"min": 16, "max": 256, "multiple_of": 16, "hint": 64}})
    return cases


def symbolic():
    """Symbolic sizes that are multiples of 8."""
    symbols = {"n": {"min": 8, "max": 4096, "multiple_of": 8, "hint": 256}}
    return [Case("symbolic transpose", {"x": ("bfloat16", [128, "n"])}, [node("y", "permute", "x", dims=[1, 0])],
                 symbols=symbols),
            Case("symbolic images", {"x": ("float32", [2, 64, "n"])}, [node("y", "permute", "x", dims=[0, 2, 1])],
                 symbols=symbols)]


def results_alone(cases):
    """Cases without a schedule of their own: only results are checked."""
    for case in cases:
        case.sectors, case.instructions, case.conflicts, case.counted = 1e9, 1e9, 1 << 40, False
    return cases


def counted():
    return (transposes() + boxes() + narrow() + half_bytes() + small_extents() + half_bytes_together() + around() +
            rows_and_parts() + line_pairs() + windows() + symbolic() + slices() + turned() +
            results_alone(odd_lines() + strips() + picks()))
