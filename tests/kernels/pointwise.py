"""Pointwise kernels and gated units: every byte moved once, 16-byte coalesced accesses, no division, a bound on float
instructions per element, and several loads in flight before the first is used. Small shapes are executed completely and
verified, large ones on some blocks. Nothing is read beyond the end of an input when a block's last iterations have few
elements or none. With dtypes of different widths every sector is requested once. Results with parts that read the same
operands are in axis_parts.py. The machine code is checked, too, where nvdisasm is at hand."""
import re

from kernels import axis_parts
from kernels.case import BITS, BYTES, RESULTS, TARGETS, Case, element_count, model, node, tensor

FLOAT_SASS = re.compile(r"^(FADD|FMUL|FFMA|FSEL|FSETP|FMNMX|MUFU)")


def unary(op, **attrs):
    return ["x"], [node("y", op, "x", **attrs)]


SWIGLU = ["x", "u"], [node("a", "silu", "x"), node("y", "mul", "a", "u")]
ADD = ["x", "u"], [node("y", "add", "x", "u")]
QUANTIZE = ["x"], [node("s", "mul", "x", 0.25), node("y", "cast", "s", dtype="float8_e4m3fn")]

# name, (inputs, nodes), dtype, dtype of the result, shape, float instructions an element (0: not counted), loads in flight
LARGE = [
    ("swiglu", SWIGLU, "float32", "float32", [2048, 8192], 6, 4),
    ("swiglu", SWIGLU, "bfloat16", "bfloat16", [4096, 14336], 6, 4),
    ("softplus", unary("softplus"), "bfloat16", "bfloat16", [4096, 8192], 15, 2),
    ("elu", unary("elu"), "bfloat16", "bfloat16", [4096, 8192], 15, 2),
    ("log_sigmoid", unary("log_sigmoid"), "float16", "float16", [4096, 8192], 15, 2),
    ("selu", unary("selu"), "float16", "float16", [4096, 8192], 16, 2),
    ("gelu", unary("gelu"), "bfloat16", "bfloat16", [4096, 14336], 17, 2),
    ("gelu_tanh", unary("gelu", approximate="tanh"), "float16", "float16", [4096, 8192], 9, 2),
    ("mish", unary("mish"), "float32", "float32", [2048, 8192], 10, 4),
    ("add", ADD, "float16", "float16", [4096, 8192], 1, 4),
    ("quantize", QUANTIZE, "bfloat16", "float8_e4m3fn", [4096, 8192], 0, 2),
]
ODD = [(name, body, dtype, dtype, shape, floats, 1)
       for name, body, floats in [("swiglu", SWIGLU, 6), ("gelu", unary("gelu"), 17), ("add", ADD, 1)]
       for dtype in ["float32", "bfloat16"] for shape in [[100003], [64, 4095], [129, 33]]]
# Executed instructions, without moves, of a warp whose threads have 16 bytes of each tensor; only full blocks.
FULL_BLOCKS = [("swiglu", SWIGLU, "float32", "float32", [512, 33], 6, 1)]
OF_FULL_BLOCKS = 37


# A chip with two multiprocessors, where few elements give each thread several vectors.
SMALL_CHIP = {"multiprocessors": 2}
EDGES = ("float64", "float32", "bfloat16", "int64", "int16", "int8", "float8_e5m2")
# Multiples of 256 vectors of 16 bytes, and further elements: slightly more than whole iterations, whole blocks, a
# vector.
TURNS = [2, 3, 4, 8]


def edges_model(dtype):
    """Kernels of one, two and three inputs, of slices and of symbols, at sizes slightly above a multiple of a block;
    and the sizes of the symbols."""
    width = 16 // BYTES[dtype]
    floating = dtype.startswith(("float", "bfloat")) and BYTES[dtype] > 1
    model = {"fusec": 1, "name": "edges", "symbols": {}, "inputs": [], "nodes": [], "outputs": []}
    sizes = {}

    def tensor(size, of=dtype):
        model["inputs"].append({"name": f"x{len(model['inputs'])}", "dtype": of, "shape": size if isinstance(size, list) else [size]})
        return model["inputs"][-1]["name"]

    def node(op, inputs, **attrs):
        model["nodes"].append({"name": f"y{len(model['nodes'])}", "op": op, "inputs": inputs, "attrs": attrs})
        return model["nodes"][-1]["name"]

    for at, turns in enumerate(TURNS):
        whole = turns * 256 * width
        size = whole + [1, width - 1, width + 1, 2 * width + 1][at]
        x = tensor(size)
        one = ("sub", [x, x]) if BYTES[dtype] > 1 else ("cast", [x])
        model["outputs"].append(node(*one, **({} if BYTES[dtype] > 1 else {"dtype": "float32"})))
        model["outputs"].append(node("where", [tensor(size, "bool"), tensor(size), tensor(size)]))
        if BYTES[dtype] == 1 and dtype != "int8":
            continue
        model["outputs"].append(node("swiglu" if floating else "mul", [tensor(size), tensor(size)]))
        model["outputs"].append(node("add", [tensor([size, 2]), tensor([size, 2])]))
        # Slices of inputs that begin at a vector, and unaligned ones.
        model["outputs"].append(node("neg", [node("slice", [tensor(size + width)], dim=0, start=width, end=size + width)]))
        model["outputs"].append(node("neg", [node("slice", [tensor(size + 3)], dim=0, start=3, end=size + 3)]))
        symbol = f"s{at}"
        model["symbols"][symbol] = [{"hint": whole}, {"hint": whole, "multiple_of": whole}, {"hint": size}, {"hint": 7}][at]
        model["symbols"][symbol]["max"] = 1 << 20
        sizes[symbol] = whole if at == 1 else size
        extent = [symbol + " + 1"] if at == 1 else [symbol]
        model["outputs"].append(node("add", [tensor(extent), tensor(extent)]))
        x = tensor(extent)
        model["outputs"].append(node("mul", [x, x]))
    return model, sizes


# 16 bytes of one dtype go with less than a word of the other, which is accessed by bytes and half words.
MIXED = [("int64", "int8"), ("int8", "int64"), ("float64", "bool"), ("int4", "float32"), ("int64", "float16")]


def sass_faults(ops, count, dtype, result, floats, flight):
    """`count` inputs, the float instructions that an element may take, and the loads in flight."""
    loads = [op for op in ops if op.startswith("LDG")]
    faults = [f"{op}: not 128 bits" for op in loads if ".128" not in op]
    if BITS[dtype] == BITS[result]:
        faults += [f"{op}: not 128 bits" for op in ops if op.startswith("STG") and ".128" not in op]
    ordered = [op for op in ops if FLOAT_SASS.match(op) or op.startswith("LDG")]
    ahead = next((i for i, op in enumerate(ordered) if not op.startswith("LDG")), len(ordered))
    if ahead < flight:
        faults.append(f"{ahead} loads before the first is used, not {flight}")
    each = len(loads) // count * 128 // BITS[dtype]  # elements a thread
    found = sum(1 for op in ops if FLOAT_SASS.match(op))
    return faults + ([f"{found} float instructions for {each} elements"] if floats and found > floats * each else [])


def moved_once(group, name, body, dtype, result, shape, floats, flight, whole=True):
    """A kernel of which a part of the blocks is executed, unless `whole`."""
    inputs, nodes = body
    elements, words = element_count(shape), len(inputs) + 1
    bits = len(inputs) * BITS[dtype] + BITS[result]
    edges = 32 * 16 * words if whole else 0  # scalar tails: a sector for each element

    def executed(run):
        return elements if whole else int(elements * run.share)

    def moved(run):
        return elements * bits // 8 * run.share + edges

    def accesses(run):
        arguments = (words + 3) * (-(-executed(run) * BITS[dtype] // 128) // 32 + 64)
        return words * -(-executed(run) * BITS[dtype] // (32 * 128)) + arguments

    most = {"distinct bytes": moved, "moved bytes": moved, "loads and stores": accesses}
    if floats:
        most["float instructions"] = lambda run: floats * (executed(run) / 32 + (40 if whole else 0))
    if group == "full blocks":
        most["lane instructions"] = 32 * OF_FULL_BLOCKS * elements * BITS[dtype] // (128 * 32)
    machine_code = {} if whole else {"slow SASS": []}
    return Case(f"{name} {dtype} {shape}", model([tensor(i, dtype, *shape) for i in inputs], nodes), group=group, most=most,
                exactly={"launches": 1, **machine_code}, blocks=0 if whole else 4, inputs="--random=3",
                also=None if whole else lambda run: sass_faults(run.sass, len(inputs), dtype, result, floats, flight)
                if run.sass else [])


def edges(dtype, strategy):
    """Alone, and fused horizontally."""
    described, sizes = edges_model(dtype)
    return Case(f"edges of {dtype}, {strategy}", described, sizes=sizes, chip=SMALL_CHIP, options=("--strategy=" + strategy,),
                inputs="--random=3", most=RESULTS, group="edges")


def mixed(dtype, result):
    return Case(f"{dtype} as {result}", model([tensor("x", dtype, 33, 4096)], [node("y", "cast", "x", dtype=result)]),
                most={"sectors / least": 1.03}, group="mixed")


def of_parts(parts, targets):
    """A model whose parts read the same operands."""
    bounds = {"conflicts": None, "local bytes": None, "findings": None} if not parts.moved else {
        "sector bytes": 1.02 * parts.moved, "instructions": parts.instructions * parts.moved / 512,
        "narrow accesses": parts.narrow}
    return Case(parts.name, parts.document(), chip=SMALL_CHIP, inputs="--random=2", targets=targets, most=bounds,
                exactly={"launches": 1} if parts.moved else {}, least={"wide accesses": 1} if parts.moved else {},
                group="parts" if parts.moved else "any parts")


def cases():
    found = [moved_once("large", *row, whole=False) for row in LARGE] + [moved_once("odd", *row) for row in ODD]
    found += [moved_once("full blocks", *row) for row in FULL_BLOCKS]
    found += [edges(dtype, strategy) for dtype in EDGES for strategy in ("tvm", "full")]
    found += [mixed(*dtypes) for dtypes in MIXED] + [of_parts(parts, TARGETS) for parts in axis_parts.counted()]
    return found + [of_parts(axis_parts.any_parts(seed), (TARGETS[seed % 2],)) for seed in range(150)]
