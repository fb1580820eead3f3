"""Softmax, LayerNorm, RMSNorm and add + RMSNorm with 4096 columns and odd lengths, and in the machine code: one kernel,
input read once, no slow paths of divisions. With 4096 columns all accesses are 16 bytes wide; with other lengths all but
those at the ends of rows, and those of the weights, whose alignment differs for each row. A row of 100003 fits into no
block of sm_80, which has no clusters: co-resident blocks share it, after a launch that clears their counters.

Further cases: few columns, short aligned and unaligned rows of fixed and symbolic lengths in any dtype, group norms of
images of any size, lengths at which registers were once spilled, and 8-bit quantization, with their requested sectors
relative to the least bytes and one conversion per quantized value."""
from kernels.case import BYTES, TARGETS, Case, model, tensors
from kernels.rows import FLOATS, layer_norm, residual_rms_norm, rms_norm, softmax

FORMS = [softmax, layer_norm, rms_norm, residual_rms_norm]
ROWS = {4096: 5, 4095: 5, 33: 512, 100003: 2}


def node(name, op, inputs, **attrs):
    return {"name": name, "op": op, "inputs": inputs, **({"attrs": attrs} if attrs else {})}


def reduced(op, dtype, rows, columns, symbols=(), **more):
    dim = -1 if op in ("argmax", "softmax", "log_softmax") else [-1]
    return {"x": (dtype, [rows, columns])}, [node("y", op, ["x"], dim=dim, **more)], symbols


def along_middle(op, dtype, shape):
    return {"x": (dtype, shape)}, [node("y", op, ["x"], dim=1)], ()


def columns(op, dtype, shape):
    """A reduction of few columns along the second last dimension."""
    dim = len(shape) - 2
    more = {"correction": 1} if op == "var" else {}
    return {"x": (dtype, shape)}, [node("y", op, ["x"], dim=dim if "max" in op[3:] else [dim], **more)], ()


def sliced(dtype, columns, first):
    """Rows with different alignment in the input and in the result."""
    last = first + columns // 16 * 16
    return ({"x": (dtype, [64, columns])},
            [node("a", "slice", ["x"], dim=1, start=first, end=last, step=1), node("y", "softmax", ["a"], dim=-1)], ())


def of_parts(op, dtype, rows, parts, **attrs):
    """Rows whose parts are in several tensors."""
    names = [f"p{i}" if i else "x" for i in range(len(parts))]
    return ({n: (dtype, [rows, columns]) for n, columns in zip(names, parts)},
            [node("c", "concat", names, dim=1), node("y", op, ["c"], **attrs)], ())


def of_padded(op, dtype, rows, columns, before, behind, **attrs):
    return ({"x": (dtype, [rows, columns])}, [node("p", "pad", ["x"], pad=[before, behind]), node("y", op, ["p"], **attrs)], ())


def joined(op, dtype, rows, parts, last=None):
    """Rows of several tensors, each reduced by itself, concatenated as one result."""
    inputs, nodes, names = {}, [], []
    for i, columns in enumerate(parts):
        name = f"x{i}" if i else "x"
        inputs[name] = (dtype, [rows, columns])
        names.append("n" + name)
        if op.endswith("norm"):
            inputs["w" + name] = (dtype, [columns])
            nodes.append(node("n" + name, op, [name, "w" + name], normalized_shape=[columns], eps=1e-5))
        else:
            nodes.append(node("n" + name, op, [name], dim=-1))
    nodes.append(node("c" if last else "y", "concat", names, dim=1))
    return inputs, nodes + ([node("y", last, ["c"])] if last else []), ()


def joined_of_one(dtype, shape):
    """Several reductions of one operand, which is read once for all."""
    return ({"x": (dtype, shape)}, [node("m", "mean", ["x"], dim=[1], keepdim=True), node("g", "amax", ["x"], dim=[1], keepdim=True),
                                    node("y", "concat", ["m", "g"], dim=1)], ())


def joined_group_norm(dtype, images, channels, height, width, groups, kept):
    """A group norm over a concat of two images' channels; a group may have channels of both. If `kept`, the concat is
    an output, too."""
    of_channel = (dtype, [sum(channels)])
    total = "kept" if kept else "c"
    return ({"x": (dtype, [images, channels[0], height, width]), "z": (dtype, [images, channels[1], height, width]),
             "w": of_channel, "b": of_channel},
            [node(total, "concat", ["x", "z"], dim=1), node("n", "group_norm", [total, "w", "b"], num_groups=groups, eps=1e-5),
             node("y", "silu", ["n"])], ())


def halved(op, dtype, rows, columns, pieces=2):
    """Pieces of a normalized row: c0 * silu(c1), plus c2 if there are three."""
    attrs = {"normalized_shape": [columns], "eps": 1e-5} if op.endswith("norm") else {"dim": -1}
    last = [node("y", "mul", ["c.0", "g"])] if pieces == 2 else [node("m", "mul", ["c.0", "g"]), node("y", "add", ["m", "c.2"])]
    return ({"x": (dtype, [rows, columns])}, [node("n", op, ["x"], **attrs), node("c", "chunk", ["n"], chunks=pieces, dim=-1),
                                              node("g", "silu", ["c.1"])] + last, ())


def beside_sink(op, dtype, rows, columns, first=False, symbols=()):
    """Softmax of rows with one more element (a sink), which the result lacks."""
    end = columns if isinstance(columns, str) else columns + first
    return ({"x": (dtype, [rows, columns]), "s": (dtype, [1, 1])},
            [node("e", "expand", ["s"], shape=[rows, 1]), node("c", "concat", ["e", "x"] if first else ["x", "e"], dim=-1),
             node("l", op, ["c"], dim=-1), node("y", "slice", ["l"], dim=-1, start=int(first), end=end, step=1)], symbols)


def softmax_around(dtype, rows, columns, factor, summand):
    """Softmax of rows whose maximum is far from 0."""
    return ({"x": (dtype, [rows, columns])}, [node("m", "mul", ["x", factor]), node("a", "add", ["m", summand]),
                                              node("y", "softmax", ["a"], dim=-1)], ())


def softmax_masked(dtype, rows, columns, fill):
    """Softmax where some rows have only the number that masks elements."""
    return ({"x": (dtype, [rows, columns]), "r": (dtype, [rows, 1])},
            [node("z", "full", [], shape=[rows, columns], value=fill, dtype=dtype), node("c", "gt", ["r", 0.0]),
             node("a", "where", ["c", "x", "z"]), node("y", "softmax", ["a"], dim=-1)], ())


def group_norm(dtype, shape, groups, symbols=()):
    weights = (dtype, [shape[1]])
    return ({"x": (dtype, shape), "w": weights, "b": weights},
            [node("y", "group_norm", ["x", "w", "b"], num_groups=groups, eps=1e-5)], symbols)


def group_norm_of_sum(dtype, shape, groups, summand):
    """A group norm of planes plus one number a plane, or of the sum of two images."""
    weights = (dtype, [shape[1]])
    return ({"x": (dtype, shape), "r": (dtype, summand), "w": weights, "b": weights},
            [node("s", "add", ["x", "r"]), node("n", "group_norm", ["s", "w", "b"], num_groups=groups, eps=1e-5),
             node("y", "silu", ["n"])], ())


def norm(op, dtype, rows, columns, symbols=(), residual=False, kept=False):
    """A norm of x, or of x + r, which is an output, too, if `kept`."""
    names = ["x", "w"] + ["b"] * (op == "layer_norm")
    inputs = {n: (dtype, [rows, columns] if n == "x" else [columns]) for n in names}
    nodes = [node("y", op, names, normalized_shape=[columns], eps=1e-5)]
    if residual or kept:
        inputs["r"] = inputs["x"]
        total = "kept" if kept else "s"
        nodes = [node(total, "add", ["x", "r"]), {**nodes[0], "inputs": [total] + names[1:]}]
    return inputs, nodes, symbols


def recast(model, dtype, before=False):
    """The form with its result in another dtype, or computed in that dtype from the input."""
    inputs, nodes, symbols = model
    if before:
        return inputs, [node("c", "cast", ["x"], dtype=dtype), {**nodes[0], "inputs": ["c"] + nodes[0]["inputs"][1:]}], symbols
    return inputs, [{**nodes[0], "name": "h"}, node("y", "cast", ["h"], dtype=dtype)], symbols


def codes(rows, columns):
    return ({"x": ("bfloat16", [rows, columns]), "w": ("bfloat16", [columns])},
            [node("h", "rms_norm", ["x", "w"], normalized_shape=[columns], eps=1e-5),
             node("f", "cast", ["h"], dtype="float32"), node("a", "abs", ["f"]),
             node("m", "amax", ["a"], dim=[1], keepdim=True), node("s", "div", ["m", 448.0]),
             node("d", "div", ["f", "s"]), node("y", "cast", ["d"], dtype="float8_e4m3fn")], ())


def scores(dtype, shape, *operands, symbols=()):
    """Softmax of attention scores with added biases or bool masks, which repeat over some of the rows."""
    inputs, nodes, last = {"x": (dtype, shape)}, [], "x"
    for i, (kind, operand) in enumerate(operands):
        inputs[f"m{i}"] = (kind, operand)
        nodes.append(node(f"a{i}", "where", [f"m{i}", last, -1e9]) if kind == "bool" else node(f"a{i}", "add", [last, f"m{i}"]))
        last = f"a{i}"
    return inputs, nodes + [node("y", "softmax", [last], dim=-1)], symbols


def rows_of_sums(op, dtype, outer, inner, columns, **attrs):
    """A row op on x + z, for every pair of a row of x and a row of z."""
    return ({"x": (dtype, [outer, 1, columns]), "z": (dtype, [1, inner, columns])},
            [node("s", "add", ["x", "z"]), node("y", op, ["s"], **attrs)], ())


def nearest_class(rows, columns):
    return ({"x": ("float16", [rows, columns]), "t": ("int64", [rows])},
            [node("l", "log_softmax", ["x"], dim=-1), node("u", "unsqueeze", ["t"], dim=1),
             node("y", "gather", ["l", "u"], dim=1)], ())


def one_hot(rows, columns):
    """A comparison of each row's label with all classes."""
    return ({"x": None, "t": ("int64", [rows])},
            [node("classes", "arange", [], end=columns, dtype="int64"), node("u", "unsqueeze", ["t"], dim=1),
             node("hot", "eq", ["u", "classes"])])


def loss_by_comparison(dtype, rows, columns):
    """The cross-entropy of each row."""
    inputs, nodes = one_hot(rows, columns)
    return ({**inputs, "x": (dtype, [rows, columns])},
            nodes + [node("l", "log_softmax", ["x"], dim=-1), node("p", "where", ["hot", "l", 0.0]),
                     node("s", "sum", ["p"], dim=[-1]), node("y", "neg", ["s"])], ())


def gradient_by_comparison(dtype, rows, columns, within=None, loss=False):
    """The gradient of cross-entropy, computed in the dtype `within`; with the loss as a second result."""
    inputs, nodes = one_hot(rows, columns)
    inputs.update({"x": (dtype, [rows, columns]), "g": (within or dtype, [rows, 1])})
    nodes.append(node("f", "cast", ["hot"], dtype=within or dtype))
    if loss:
        nodes += [node("l", "log_softmax", ["x"], dim=-1), node("p", "where", ["hot", "l", 0.0]),
                  node("s", "sum", ["p"], dim=[-1]), node("kept", "neg", ["s"]), node("q", "exp", ["l"])]
    elif within:
        nodes += [node("w", "cast", ["x"], dtype=within), node("q", "softmax", ["w"], dim=-1)]
    else:
        nodes.append(node("q", "softmax", ["x"], dim=-1))
    nodes += [node("d", "sub", ["q", "f"]), node("m" if within else "y", "mul", ["d", "g"])]
    return inputs, nodes + ([node("y", "cast", ["m"], dtype=dtype)] if within else []), ()


def divergence(rows, columns):
    """Kullback-Leibler divergence of two tensors of logits."""
    shape = ("float32", [rows, columns])
    return ({"x": shape, "z": shape},
            [node("p", "softmax", ["x"], dim=-1), node("a", "log_softmax", ["x"], dim=-1),
             node("b", "log_softmax", ["z"], dim=-1), node("d", "sub", ["a", "b"]), node("m", "mul", ["p", "d"]),
             node("y", "sum", ["m"], dim=[-1])], ())


def dice(dtype, shape, within=None):
    """Three sums of all elements."""
    inputs, nodes, p, t = {"x": (dtype, shape), "t": (dtype, shape)}, [], "x", "t"
    if within:
        nodes, p, t = [node("xw", "cast", ["x"], dtype=within), node("tw", "cast", ["t"], dtype=within)], "xw", "tw"
    nodes += [node("p", "sigmoid", [p]), node("m", "mul", ["p", t]), node("i", "sum", ["m"]), node("a", "sum", ["p"]),
              node("b", "sum", [t]), node("two", "mul", ["i", 2.0]), node("u", "add", ["a", "b"]), node("v", "add", ["u", 1.0]),
              node("q", "div", ["two", "v"]), node("y", "sub", [1.0, "q"])]
    return inputs, nodes, ()


def mean_divergence(rows, columns, dtype="float32"):
    """The mean of the divergence over all rows, as losses compute it."""
    inputs, nodes, _ = divergence(rows, columns)
    nodes[-1:] = [node("s", "sum", ["m"]), node("y", "div", ["s", float(rows)])]
    return {name: (dtype, shape) for name, (_, shape) in inputs.items()}, nodes, ()


ANY = {"min": 1, "max": 1 << 30}
# A model, the most requested sectors relative to the least bytes, and optionally the most warp instructions.
COUNTED = [
    (reduced("sum", "float32", 2048, 32), 1.03), (reduced("var", "float32", 2048, 16, correction=1), 1.03),
    (reduced("mean", "bfloat16", 2048, 32), 1.05), (reduced("amax", "int32", 1024, 24), 1.05),
    (reduced("sum", "float64", 1024, 16), 1.03), (reduced("argmax", "float16", 1024, 48), 1.03),
    (reduced("amax", "int8", 1024, 32), 1.12), (reduced("sum", "float32", 40, 7), 1.3),
    (reduced("sum", "int64", 700, 3), 1.1), (nearest_class(1024, 32), 1.5),
    (reduced("softmax", "bfloat16", 129, "c", [("c", ANY, 3)]), 1.4),
    (reduced("argmax", "float16", 129, "c", [("c", ANY, 33)]), 2.2),
    (reduced("sum", "float32", 129, "c", [("c", ANY, 5)]), 1.4),
    (along_middle("softmax", "float16", [4, 512, 64]), 1.03), (along_middle("softmax", "float32", [2, 100, 72]), 1.4),
    (along_middle("log_softmax", "bfloat16", [4, 256, 128]), 1.03),
    (group_norm("float16", [2, 6, 4096], 2), 1.08), (group_norm("float16", [2, 6, 4095], 2), 1.2),
    (group_norm("float32", [2, 16, 14, 14], 2), 1.6), (group_norm("bfloat16", [2, 32, 7, 7], 4), 1.6),
    (group_norm("bfloat16", [2, 4, "c"], 2, [("c", {"min": 1, "max": 200000}, 2048)]), 1.15),
    # Planes of odd size with one added number each: a vector may span two planes.
    (group_norm_of_sum("float16", [2, 96, 15, 15], 3, [2, 96, 1, 1]), 1.25, 46500),
    (group_norm_of_sum("float32", [2, 96, 15, 15], 3, [96, 1, 1]), 1.25, 55000),
    (group_norm_of_sum("float32", [2, 96, 15, 15], 6, [96, 1, 1]), 1.25, 53500),
    (group_norm_of_sum("bfloat16", [2, 120, 17, 17], 3, [120, 1, 1]), 1.3, 103000),
    (group_norm_of_sum("float16", [2, 96, 7, 7], 6, [2, 96, 1, 1]), 1.28, 11300),
    (group_norm_of_sum("float16", [2, 96, 31, 31], 3, [2, 96, 1, 1]), 1.25, 219000),
    (group_norm_of_sum("bfloat16", [2, 120, 31, 31], 3, [2, 120, 31, 31]), 1.25),
    # Short unaligned rows, where registers, not shared memory, limit the blocks of a multiprocessor.
    (norm("rms_norm", "float32", 700, 77, kept=True), 1.1), (norm("rms_norm", "float16", 128, 197, kept=True), 1.15),
    (norm("layer_norm", "float32", 150, 255, kept=True), 1.15),
    (norm("layer_norm", "float32", 8, 1025), 1.85), (norm("rms_norm", "float64", 3, 4095, residual=True), 1.3),
    (norm("layer_norm", "float64", 150, 4096, residual=True), 1.7), (norm("rms_norm", "float64", 150, 4096, residual=True), 1.4),
    (norm("layer_norm", "float64", 4, 100003), 1.72), (norm("layer_norm", "float64", 4, 100003, residual=True), 1.55),
    (norm("rms_norm", "float64", 5, 60001), 1.48), (norm("rms_norm", "float64", 4, 100003, residual=True), 1.36),
    (reduced("softmax", "float64", 16, 65536), 1.03), (norm("layer_norm", "float64", 300, 16384, residual=True), 1.7),
    (norm("layer_norm", "float32", 64, "c", [("c", {"min": 1, "max": 200000}, 513)]), 2.1), (codes(64, 4096), 1.7),
    (recast(reduced("softmax", "float32", 32, 4096), "float16"), 1.03),
    (recast(reduced("softmax", "float32", 32, 4095), "bfloat16"), 1.1),
    (recast(reduced("softmax", "float32", 64, 256), "float8_e4m3fn"), 1.03),
    (recast(reduced("softmax", "float32", 64, 1024), "int8"), 1.03),
    (recast(reduced("softmax", "float64", 16, 1024), "float16"), 1.03),
    (recast(reduced("softmax", "float16", 32, 4096), "float32", before=True), 1.03),
    (recast(reduced("softmax", "int8", 32, 4095), "float32", before=True), 1.1),
    (recast(norm("rms_norm", "float32", 32, 3136), "float8_e4m3fn"), 1.9),
    (recast(group_norm("float32", [4, 64, 14, 14], 2), "float8_e4m3fn"), 1.15),
    (({"x": ("float16", [65, "8*n"])}, [node("y", "layer_norm", ["x"], normalized_shape=["8*n"], eps=1e-5)],
      [("n", {"min": 1, "max": 4096}, 16)]), 1.03),
    (({**group_norm("float16", [2, 12, "n", "n+1"], 3)[0]}, group_norm("float16", [2, 12, "n", "n+1"], 3)[1],
      [("n", {"min": 1, "max": 4096}, 33)]), 1.2),
    (reduced("softmax", "bfloat16", 128, 4096), 1.03, 190000), (reduced("softmax", "bfloat16", 32, 16384), 1.03, 162000),
    *((softmax_around("float32", 9, 520, factor, summand), 1.03)
      for factor, summand in [(1.0, -1e4), (1e6, 2e6), (1e8, 5e8), (3e8, -1.1e9), (1.0, 3e9), (3e37, 0.0), (1.0, -3.4e38)]),
    (softmax_masked("float32", 9, 520, -3.4e38), 1.4), (softmax_masked("bfloat16", 9, 519, -3.38e38), 1.4),
    # Rows made of parts with different alignment.
    (of_padded("softmax", "float32", 64, 513, 1, 2, dim=1), 1.25), (of_padded("softmax", "float32", 64, 301, 3, 0, dim=1), 1.2),
    (of_padded("sum", "bfloat16", 64, 4095, 0, 3, dim=[1]), 1.65), (of_parts("softmax", "float32", 64, [767, 257], dim=1), 1.25),
    (of_parts("rms_norm", "bfloat16", 64, [767, 257], normalized_shape=[1024]), 1.55),
    (of_parts("sum", "float16", 64, [1, 4096, 1], dim=[1]), 1.7), (of_parts("log_softmax", "float32", 9, [1, 1000, 1], dim=1), 1.4),
    # If parts begin at vectors of their tensors, each vector comes from one part.
    (of_parts("layer_norm", "float16", 128, [512, 1024, 512], normalized_shape=[2048]), 1.03, 95000),
    (of_parts("softmax", "float32", 64, [1024, 3072], dim=1), 1.03, 96000),
    (of_parts("rms_norm", "float64", 32, [256, 768], normalized_shape=[1024]), 1.03, 14000),
    (of_parts("log_softmax", "bfloat16", 64, [1024, 1024], dim=1), 1.03, 56000),
    *((joined_group_norm("float16", 1, channels, 32, 32, 16, kept), 1.1, 73000) for channels, kept in
      [((64, 32), True), ((80, 16), False)]),
    # A concat of reduced rows: each operand's rows are kept by their own blocks.
    (joined("softmax", "float16", 256, [1024, 512]), 1.03, 142000),
    (joined("softmax", "float32", 128, [1024, 1024, 64], "relu"), 1.03, 97500),
    (joined("rms_norm", "bfloat16", 64, [4096, 4096]), 1.53, 177000),
    (joined("layer_norm", "float32", 64, [64, 1024]), 1.53, 26000),
    (joined("softmax", "float16", 256, [1023, 770], "relu"), 1.54, 204500), (joined_of_one("float32", [8, 128, 28, 28]), 1.03),
    # Rows in pieces: concatenated halves, and a sink that the result lacks.
    (halved("layer_norm", "float16", 128, 2048), 1.03, 115000), (halved("rms_norm", "float32", 64, 4096, 4), 1.03, 60000),
    (halved("softmax", "bfloat16", 1024, 192), 1.03, 114000), (halved("softmax", "float64", 32, 1024), 1.03, 76000),
    (beside_sink("softmax", "bfloat16", 128, 1024), 1.03, 44000), (beside_sink("softmax", "float16", 128, 512, True), 1.03, 27200),
    (beside_sink("log_softmax", "float32", 64, 1001), 1.06, 25100), (beside_sink("softmax", "float8_e4m3fn", 32, 2048), 1.03, 71000),
    (beside_sink("softmax", "bfloat16", 64, "c", symbols=[("c", {"min": 1, "max": 8192, "hint": 1024}, 1024)]), 1.03, 28000),
    # Long rows with weights are kept in shared memory, and nothing is spilled.
    (norm("layer_norm", "float32", 2, 32767), 2.1), (norm("rms_norm", "float32", 2, 32767), 1.7),
    (norm("rms_norm", "float32", 2, 32767, residual=True), 1.5), (norm("layer_norm", "float16", 2, 50001), 2.5),
    (norm("layer_norm", "float32", 2, 32001, residual=True), 2.5), (codes(2, 32001), 2.5),
    # Sums that are stored in addition to their norms need most of a thread's registers.
    *((norm("layer_norm", dtype, 42, columns, kept=True), 1.6, instructions)
      for dtype, columns, instructions in [("float32", 16384, 360000), ("float16", 12288, 340000), ("bfloat16", 12288, 340000),
                                           ("bfloat16", 16384, 460000), ("float16", 16384, 460000)]),
    (norm("rms_norm", "bfloat16", 42, 24576, kept=True), 1.6), (norm("layer_norm", "float32", 42, 32768, kept=True), 1.6),
    (sliced("float16", 4097, 1), 1.03), (sliced("float32", 1030, 3), 1.03),
    (columns("sum", "float16", [30000, 2]), 1.03, 12000), (columns("amax", "float32", [20000, 3]), 1.03, 25000),
    (columns("mean", "bfloat16", [64, 1001, 7]), 1.1), (columns("sum", "int8", [4000, 31]), 1.1),
    (columns("argmax", "float16", [5000, 5]), 1.1), (columns("var", "float32", [999, 6]), 1.05),
    (columns("softmax", "float16", [4096, 4]), 1.03), (columns("log_softmax", "float32", [8, 700, 9]), 1.1),
    (({"x": ("float16", [33, 4096])}, [node("y", "softmax", ["x"], dim=0)], ()), 1.03),
    (reduced("argmax", "float32", 16, 50257), 1.06, 340000), (reduced("argmax", "bfloat16", 8, 32768), 1.03, 130000),
    (reduced("softmax", "bfloat16", 32, "c", [("c", {"min": 1, "max": 131072, "hint": 4096}, 4096)]), 1.03, 95000),
    (norm("layer_norm", "float32", 32, "c", [("c", {"min": 1, "max": 131072, "hint": 4096}, 4096)]), 2.05, 145000),
    # Rows of one element; their number is a symbol, and each is guarded.
    (reduced("softmax", "bfloat16", 65, "c", [("c", {"min": 0, "max": 300, "hint": 7}, 7)]), 1.5, 5300),
    (reduced("log_softmax", "float16", 64, "c", [("c", {"min": 0, "max": 512, "hint": 7}, 7)]), 1.5, 6900),
    (reduced("logsumexp", "bfloat16", 8, 32768), 1.03, 120000), (norm("layer_norm", "float32", 2, 128256), 2.05),
    # Biases and masks that repeat over rows are read once for several of them.
    (scores("bfloat16", [64, 6, 49, 49], ("bfloat16", [6, 49, 49])), 1.12, 720000),
    (scores("bfloat16", [32, 6, 49, 49], ("bfloat16", [32, 1, 1, 49])), 1.07, 430000),
    (scores("float32", [32, 8, 77, 77], ("float32", [77, 77])), 1.12, 1360000),
    (scores("float16", [8, 6, 197, 197], ("float16", [6, 197, 197])), 1.15, 1500000),
    (scores("bfloat16", [4, 6, 197, 197], ("bfloat16", [4, 1, 1, 197])), 1.06, 690000),
    (scores("float32", [8, 4, 6, 49, 49], ("float32", [6, 49, 49]), ("float32", [4, 1, 49, 49])), 1.3, 650000),
    (scores("bfloat16", [32, 6, 49, 49], ("bool", [32, 1, 1, 49])), 1.07, 450000),
    (scores("float32", ["n", 6, 49, 49], ("float32", [6, 49, 49]), symbols=[("n", {"min": 1, "max": 4096, "hint": 64}, 37)]),
     1.2, 550000),
    # Also longer rows that begin within vectors.
    (scores("bfloat16", [2, 6, 577, 577], ("bfloat16", [6, 577, 577])), 1.06, 3700000),
    (scores("float32", [2, 6, 577, 577], ("float32", [2, 1, 1, 577])), 1.08, 3300000),
    (rows_of_sums("layer_norm", "bfloat16", 64, 50, 1001, normalized_shape=[1001], eps=1e-5), 1.6, 2200000),
    (rows_of_sums("softmax", "float32", 16, 50, 1001, dim=-1), 1.65, 680000),
    # Short odd rows: a few lanes have slightly more elements than the others, or one lane has the whole row.
    *((reduced("softmax", "bfloat16", 2048, columns), 1.03, most) for columns, most in
      [(25, 32500), (33, 40500), (45, 49500), (49, 57000), (63, 78000), (197, 243000)]),
    # Rows of three or five vectors: one vector a lane.
    (reduced("softmax", "bfloat16", 4101, 24), 1.08, 65000), (reduced("softmax", "float16", 4101, 40), 1.08, 120000),
    (reduced("argmax", "float16", 4101, 40), 1.2, 128000), (norm("layer_norm", "bfloat16", 4101, 40), 1.25, 146000),
    (norm("rms_norm", "float32", 4101, 12), 1.2, 42000),
    (reduced("softmax", "bfloat16", 20000, 63), 1.03, 700000), (norm("layer_norm", "bfloat16", 2048, 63), 1.05, 91000),
    # Classes are indices: they are not read, and labels are compared as 32-bit integers.
    *((loss_by_comparison("bfloat16", 4096, columns), 1.03, most) for columns, most in [(5, 19000), (10, 37500), (100, 280000)]),
    (gradient_by_comparison("bfloat16", 4096, 10), 1.03, 43300), (gradient_by_comparison("float32", 4096, 10), 1.03, 38000),
    (gradient_by_comparison("bfloat16", 4096, 10, within="float32"), 1.03, 40000),
    (gradient_by_comparison("float16", 1024, 33, loss=True), 1.1), (gradient_by_comparison("float32", 2048, 100, loss=True), 1.03),
    *((gradient_by_comparison(dtype, 64, columns), 1.05)
      for dtype, columns in [("bfloat16", 50257), ("float16", 50257), ("bfloat16", 45001)]),
    *((gradient_by_comparison("bfloat16", 64, columns, loss=True), 1.06) for columns in (36001, 60001)),
    # Two values of each element are kept until the last sum is known.
    (divergence(64, 32000), 1.04), (divergence(16, 50257), 1.08),
]

# Losses in two launches: the first stores sums of blocks or rows, but no elements.
SCALARS = [
    *((dice("bfloat16", [1023, 1001], within), 1.01, 2) for within in (None, "float32")),
    *((mean_divergence(64, 8000, dtype), 1.01, 2) for dtype in ("float32", "bfloat16")),
    (dice("bfloat16", [4, 19, 128, 128]), 1.01, 2), (dice("float32", [512, 1024]), 1.01, 2),
]

# Rows that registers do not hold, only for sm_80, which has no clusters. Co-resident blocks share them, which takes
# one more launch. If that is predicted to be slower, and for rows of symbolic length, shared memory keeps a part of
# the row, and one pass computes both reductions; so only the rest is read again, once.
LONG = [
    (reduced("softmax", "float16", 40, 65536), 1.03), (norm("layer_norm", "float16", 40, 65536), 2.05),
    (norm("layer_norm", "float16", 40, 49152), 2.05), (norm("rms_norm", "float16", 40, 65536, residual=True), 1.7),
    (reduced("softmax", "float16", 40, 100003), 1.2), (reduced("log_softmax", "float32", 40, 100003), 1.05),
    (reduced("softmax", "float32", 40, "c", [("c", ANY, 100003)]), 1.05),
    (reduced("softmax", "float32", "r", 100003, [("r", ANY, 40)]), 1.05),
    *((softmax_around("float32", 40, 100003, factor, summand), 1.05) for factor, summand in [(1.0, -1e4), (3e8, -1.1e9)]),
    (softmax_masked("float32", 40, 100003, "-inf"), 1.05), (softmax_masked("bfloat16", 40, 100003, -3.38e38), 1.2),
    (reduced("var", "float32", 40, 100003, correction=1), 1.05), (norm("layer_norm", "float32", 40, 100003), 2.05),
    (norm("layer_norm", "float16", 40, 100000, residual=True), 1.7),
    (norm("rms_norm", "float32", 40, 100000, residual=True), 1.4), (columns("softmax", "bfloat16", [4, 4096, 6]), 1.03),
]


def of_form(form, columns, dtype, target):
    nodes, others = form(ROWS[columns], columns)
    inputs = {"x": (dtype, [ROWS[columns], columns]), **{name: (dtype, shape) for name, shape in others.items()}}
    weights = sum(len(shape) == 1 for shape in others.values())
    operands = 1 + len(others) - weights
    # With unaligned rows the weights go through shared memory, except at the ends of a row.
    beside = {4096: 1, 33: 1 / 8}.get(columns, 1.1)
    shared = columns == 100003 and target == "sm_80"  # by blocks, which exchange a few words
    size = ROWS[columns] * columns * BYTES[dtype] * (operands + 1 + weights * beside)
    case = Case(f"{form.__name__} {dtype} of {columns}", model(tensors(inputs), nodes), targets=(target,), group="forms",
                most={"moved bytes": (1 if columns == 4096 else 1.04) * size + (16384 if shared else 4096)},
                exactly={"launches": 1 + shared, "slow SASS": []}, least={"wide SASS": 1})
    if not (weights and columns not in (4096, 33)) and not shared:
        ends = 0 if columns == 4096 else 2 * (2 + len(others)) + len(others) * -(-columns // 32) * (columns == 33)
        case.most["narrow SASS"] = ends
    if columns == 4095:  # few more instructions than rows of 4096; weights go through shared memory
        case.beside, more = of_form(form, 4096, dtype, target), 1.16 if form is softmax else 1.37
        case.most["instructions"] = lambda run: more * run.beside["instructions"]
    return case


def of_counted(group, counted, targets=TARGETS, launches=1):
    (inputs, nodes, symbols), most, *instructions = counted
    bounds = {"sectors / least of rows": most} | ({"instructions of rows": instructions[0]} if instructions else {})
    if nodes[-1].get("attrs", {}).get("dtype") == "float8_e4m3fn":
        # Loads of 16 bits, rounded twice as the graph says, and a conversion a code of which an instruction makes one,
        # or two; a few a row.
        bounds["conversions"] = 64 * (4096 / 32 * 4 + 16)
    outputs = [n["name"] for n in nodes if n["name"] in ("y", "kept")]
    return Case(f"{' '.join(n['op'] for n in nodes)} {inputs['x']}",
                model(tensors(inputs), nodes, outputs, symbols={name: bound for name, bound, _ in symbols}), most=bounds,
                exactly={"kernels of rows": launches}, sizes={name: value for name, _, value in symbols}, targets=targets,
                group=group)


def cases():
    found = [of_form(form, columns, dtype, target) for target in TARGETS for dtype in FLOATS for columns in ROWS
             for form in FORMS]
    found += [of_counted("counted", counted) for counted in COUNTED]
    found += [of_counted("scalars", (made, most), launches=launches) for made, most, launches in SCALARS]
    return found + [of_counted("long", counted, ("sm_80",)) for counted in LONG]
