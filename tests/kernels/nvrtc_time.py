"""NVRTC takes at most 400 ms for each kernel of the largest model of every family, cubin included: CPU time of a process
that loads NVRTC and compiles only this kernel, relative to a yardstick (tests/nvrtc_time.py)."""
import json
import pathlib

from kernels.attention_models import MUCH_CODE, MUCH_CODE_OF_SHARED_KEYS, SEEN, much_code, windowed
from kernels.case import Case, tensor


def model(inputs, nodes):
    return {"fusec": 1, "name": "largest", "inputs": inputs, "nodes": nodes, "outputs": [nodes[-1]["name"]]}


def attention(queries, keys, head, causal=False, mask="", key_heads=16):
    inputs = [tensor("q", "bfloat16", 1, 16, queries, head), tensor("k", "bfloat16", 1, key_heads, keys, head),
              tensor("v", "bfloat16", 1, key_heads, keys, head)]
    if mask:
        inputs.append(tensor("m", mask, 1, 1, queries, keys))
    return model(inputs, [{"name": "y", "op": "scaled_dot_product_attention", "inputs": [t["name"] for t in inputs],
                           "attrs": {"is_causal": causal, "enable_gqa": key_heads != 16}}])


def attention_with_weights(queries, keys, head, mask):
    """Attention with an added mask whose weights are an output, too."""
    inputs = [tensor("q", "bfloat16", 1, 16, queries, head), tensor("k", "bfloat16", 1, 16, keys, head),
              tensor("v", "bfloat16", 1, 16, keys, head)]
    nodes = [{"name": "t", "op": "transpose", "inputs": ["k"], "attrs": {"dim0": 2, "dim1": 3}},
             {"name": "p", "op": "matmul", "inputs": ["q", "t"]}, {"name": "s", "op": "mul", "inputs": ["p", 0.09]}]
    if mask:
        inputs.append(tensor("m", "bfloat16", 1, 1, queries, keys))
        nodes.append({"name": "a", "op": "add", "inputs": ["s", "m"]})
    nodes += [{"name": "w", "op": "softmax", "inputs": [nodes[-1]["name"]], "attrs": {"dim": -1}},
              {"name": "y", "op": "matmul", "inputs": ["w", "v"]}]
    return model(inputs, nodes) | {"outputs": ["y", "w"]}


def linear_gelu(m, n, k, dtype="bfloat16"):
    return model([tensor("x", dtype, m, k), tensor("w", dtype, n, k), tensor("b", dtype, n)],
                 [{"name": "p", "op": "linear", "inputs": ["x", "w", "b"]}, {"name": "y", "op": "gelu", "inputs": ["p"]}])


def functions_behind(functions, shape, dtype, before=()):
    """A product of an operand computed by functions, with functions as epilogue; every second result is stored."""
    m, n, k = shape
    nodes = [{"name": f"a{i}", "op": f, "inputs": [f"a{i - 1}" if i else "x"]} for i, f in enumerate(before)]
    nodes.append({"name": "p", "op": "linear", "inputs": [f"a{len(before) - 1}" if before else "x", "w"]})
    nodes += [{"name": f"y{i}", "op": f, "inputs": [f"y{i - 1}" if i else "p"]} for i, f in enumerate(functions)]
    graph = model([tensor("x", dtype, m, k), tensor("w", dtype, n, k)], nodes)
    return graph | {"outputs": sorted({f"y{i}" for i in range(1, len(functions), 2)} | {nodes[-1]["name"]})}


def products_of_one_launch():
    sizes = {"u": 4096, "v": 1024, "w": 1024}
    return {"fusec": 1, "name": "largest", "outputs": ["h", "k", "l"],
            "inputs": [tensor("x", "bfloat16", 4096, 4096)] +
                      [tensor(name, "bfloat16", columns, 4096) for name, columns in sizes.items()],
            "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "u"]}, {"name": "h", "op": "gelu", "inputs": ["p"]},
                      {"name": "q", "op": "linear", "inputs": ["x", "v"]}, {"name": "k", "op": "silu", "inputs": ["q"]},
                      {"name": "l", "op": "linear", "inputs": ["x", "w"]}]}


def float8_in_blocks(m, n, k):
    return model([tensor("x", "float8_e4m3fn", m, k), tensor("w", "float8_e4m3fn", n, k),
                   tensor("xs", "float32", m, k // 128), tensor("ws", "float32", n, k // 128)],
                  [{"name": name + "f", "op": "dequantize", "inputs": [name, name + "s"],
                    "attrs": {"dtype": "float32", "axis": 1, "block": 128}} for name in "xw"] +
                  [{"name": "p", "op": "linear", "inputs": ["xf", "wf"]},
                   {"name": "y", "op": "cast", "inputs": ["p"], "attrs": {"dtype": "bfloat16"}}])


def gated(x, weights, product):
    """Nodes of a gated unit: operands cast to bfloat16, their products, SwiGLU. `x`, `weights`: (node before the
    product or None, name of the operand)."""
    factors = [x, *weights]
    return ([n for n, _ in factors if n] +
            [{"name": name, **product(x[1], factor)} for name, (_, factor) in zip("gu", weights)] +
            [{"name": "y", "op": "swiglu", "inputs": ["g", "u"]}])


def dequantized(name, axis, block):
    return ({"name": name + "d", "op": "dequantize", "inputs": [name, name + "s"],
             "attrs": {"dtype": "bfloat16", "axis": axis, "block": block}}, name + "d")


def gated_codes(dtype, scales, block, depth=4096, zeros=False):
    """A gated unit with quantized weights of so many bits, or all operands in float8, with block scales."""
    both = dtype.startswith("float8")
    inputs = [tensor("x", dtype if both else "bfloat16", 4096, depth)]
    inputs += [tensor("xs", scales, 4096, depth // block)] if both else []
    for name in "wv":
        inputs += [tensor(name, dtype, 4096, depth), tensor(name + "s", scales, 4096, depth // block)]
        inputs += [tensor(name + "z", "int8", 4096, depth // block)] if zeros else []
    weights = [dequantized(name, 1, block) for name in "wv"]
    for wide, name in weights:
        wide["inputs"] += [name[0] + "z"] if zeros else []
    return model(inputs, gated(dequantized("x", 1, block) if both else (None, "x"), weights,
                               lambda x, w: {"op": "linear", "inputs": [x, w]}))


def gated_of_one_launch(dtype, widths):
    inputs, nodes = [tensor("x", dtype, 4096, 2048)], []
    for width in widths:
        inputs += [tensor(f"{name}{width}", dtype, width, 2048) for name in "wv"]
        nodes += [{"name": f"{name}p{width}", "op": "linear", "inputs": ["x", f"{name}{width}"]} for name in "wv"]
        nodes.append({"name": f"y{width}", "op": "swiglu", "inputs": [f"wp{width}", f"vp{width}"]})
    return {"fusec": 1, "name": "largest", "inputs": inputs, "nodes": nodes, "outputs": [f"y{width}" for width in widths]}


def code_products_of_one_launch():
    weights = {"q": 4096, "k": 1024, "v": 1024}
    inputs, nodes = [tensor("x", "bfloat16", 4096, 4096)], []
    for name, columns in weights.items():
        inputs += [tensor(name, "int4", columns, 4096), tensor(name + "s", "bfloat16", columns, 32)]
        nodes += [dequantized(name, 1, 128)[0], {"name": name + "p", "op": "linear", "inputs": ["x", name + "d"]}]
    return {"fusec": 1, "name": "largest", "inputs": inputs, "nodes": nodes, "outputs": [n + "p" for n in weights]}


def products_of_all_kinds(rows, depth, kinds):
    """Products of one input, with weights of different quantization, width and layout, and a different epilogue each.
    """
    inputs, nodes, outputs = [tensor("x", "bfloat16", rows, depth)], [], []
    behind = ["gelu", "quantize", "silu", "", "quantize", "gelu", "", "tanh"]
    for i, kind in enumerate(kinds):
        dtype, _, across = kind.partition(" ")
        width = rows if dtype.endswith("=") else 64 * (i + 1)
        dtype = dtype.rstrip("=")
        shape, axis = ([depth, width], 0) if across else ([width, depth], 1)
        block, scales = (32, "float8_e8m0fnu") if dtype == "float4_e2m1fn" else (64, "bfloat16")
        factor = f"w{i}"
        inputs.append(tensor(factor, dtype, *shape))
        if dtype != "bfloat16":
            inputs.append(tensor(factor + "s", scales, *(n // block if d == axis else n for d, n in enumerate(shape))))
            node, factor = dequantized(factor, axis, block)
            nodes.append(node)
        nodes.append({"name": f"p{i}", "op": "matmul" if across else "linear", "inputs": ["x", factor]})
        if behind[i] == "quantize":
            inputs.append(tensor(f"q{i}", "float32", 1))
            nodes.append({"name": f"y{i}", "op": "quantize", "inputs": [f"p{i}", f"q{i}"], "attrs": {"dtype": "int8"}})
        elif behind[i]:
            nodes.append({"name": f"y{i}", "op": behind[i], "inputs": [f"p{i}"]})
        outputs.append(f"y{i}" if behind[i] else f"p{i}")
    return {"fusec": 1, "name": "largest", "inputs": inputs, "nodes": nodes, "outputs": outputs}


def convolutions_of_one_input(dtype):
    nodes = []
    for i, kernel in enumerate((3, 1, 5)):
        nodes += [{"name": f"p{i}", "op": "conv2d", "inputs": ["x", f"w{i}"], "attrs": {"padding": kernel // 2}},
                  {"name": f"y{i}", "op": "silu", "inputs": [f"p{i}"]}]
    return {"fusec": 1, "name": "largest", "outputs": ["y0", "y1", "y2"], "nodes": nodes,
            "inputs": [tensor("x", dtype, 4, 64, 28, 28)] +
                      [tensor(f"w{i}", dtype, 32 * (i + 1), 64, kernel, kernel) for i, kernel in enumerate((3, 1, 5))]}


def grouped_gated(rows, picked=False):
    """Expert matrices; rows are contiguous, or gathered by an index."""
    inputs = [tensor("x", "bfloat16", rows, 4096), tensor("o", "int32", 8), tensor("w", "bfloat16", 8, 4096, 1024),
              tensor("v", "bfloat16", 8, 4096, 1024)] + ([tensor("t", "int64", 8192)] if picked else [])
    nodes = [{"name": "p", "op": "index_select", "inputs": ["x", "t"], "attrs": {"dim": 0}}] if picked else []
    return model(inputs, nodes + gated((None, "p" if picked else "x"), [(None, "w"), (None, "v")],
                                       lambda x, w: {"op": "grouped_matmul", "inputs": [x, w, "o"]}))


def grouped_pairs(codes="", scales=""):
    """Gate and up are interleaved columns of one matrix, with a bias and clamps, as in the experts of GPT-OSS."""
    inputs = [tensor("x", "bfloat16", 4096, 2880), tensor("w", codes or "bfloat16", 32, 2880, 5760),
              tensor("b", "bfloat16", 32, 5760), tensor("o", "int32", 32)]
    nodes, w = [], "w"
    if codes:
        inputs.append(tensor("ws", scales, 32, 90, 5760))
        nodes.append({"name": "wd", "op": "dequantize", "inputs": ["w", "ws"],
                      "attrs": {"dtype": "bfloat16", "axis": 1, "block": 32}})
        w = "wd"
    nodes.append({"name": "p", "op": "grouped_matmul", "inputs": ["x", w, "o", "b"]})
    nodes += [{"name": n, "op": "slice", "inputs": ["p"], "attrs": {"dim": -1, "start": i, "step": 2}}
              for i, n in enumerate("gu")]
    nodes += [{"name": "c", "op": "clamp", "inputs": ["g"], "attrs": {"max": 7.0}},
              {"name": "e", "op": "clamp", "inputs": ["u"], "attrs": {"min": -7.0, "max": 7.0}},
              {"name": "t", "op": "mul", "inputs": ["c", 1.702]}, {"name": "s", "op": "sigmoid", "inputs": ["t"]},
              {"name": "a", "op": "mul", "inputs": ["c", "s"]}, {"name": "d", "op": "add", "inputs": ["e", 1.0]},
              {"name": "y", "op": "mul", "inputs": ["a", "d"]}]
    return model(inputs, nodes)


def weighted_pairs(dtype, bounds):
    """MXFP4 experts with 2880 features, as in a checkpoint. With `bounds`: clamps, a bias, and a weight for each row.
    """
    inputs = [tensor("x", dtype, 130, 2880), tensor("w", "float4_e2m1fn", 4, 2880, 5760),
              tensor("ws", "float8_e8m0fnu", 4, 90, 5760), tensor("o", "int32", 4)]
    inputs += [tensor("b", dtype, 4, 5760), tensor("r", dtype, 130, 1)] if bounds else []
    nodes = [{"name": "wd", "op": "dequantize", "inputs": ["w", "ws"], "attrs": {"dtype": dtype, "axis": 1, "block": 32}},
             {"name": "p", "op": "grouped_matmul", "inputs": ["x", "wd", "o"] + ["b"] * bounds},
             {"name": "s" if bounds else "y", "op": "swiglu", "inputs": ["p"], "attrs": {"interleaved": True} | (
                 {"limit": 7.0, "alpha": 1.702, "up_offset": 1.0} if bounds else {})}]
    return model(inputs, nodes + [{"name": "y", "op": "mul", "inputs": ["s", "r"]}] * bounds)


def weighted_lines(dtype, one_matrix, codes="float4_e2m1fn"):
    """Block-quantized experts with a bias and a weight for each row, contiguous along K: gate and up interleaved, or a
    matrix each."""
    inputs, nodes, sums = [tensor("x", dtype, 130, 2880), tensor("o", "int32", 4), tensor("r", dtype, 130, 1)], [], []
    columns = 5760 if one_matrix else 2880
    for name in "w" if one_matrix else "wv":
        inputs += [tensor(name, codes, 4, columns, 2880), tensor(name + "b", dtype, 4, columns),
                   tensor(name + "s", "float8_e8m0fnu" if codes.startswith("float4") else dtype, 4, columns, 90)]
        nodes += [{"name": name + "d", "op": "dequantize", "inputs": [name, name + "s"],
                   "attrs": {"dtype": dtype, "axis": 2, "block": 32}},
                  {"name": name + "t", "op": "transpose", "inputs": [name + "d"], "attrs": {"dim0": 1, "dim1": 2}},
                  {"name": name + "p", "op": "grouped_matmul", "inputs": ["x", name + "t", "o", name + "b"]}]
        sums.append(name + "p")
    nodes.append({"name": "s", "op": "swiglu", "inputs": sums, "attrs": {
        "limit": 7.0, "alpha": 1.702, "up_offset": 1.0} | ({"interleaved": True} if one_matrix else {})})
    return model(inputs, nodes + [{"name": "y", "op": "mul", "inputs": ["s", "r"]}])


def gated_mxfp4_of_float8():
    """float8 rows with block scales of the same blocks as the weights'."""
    inputs, nodes = [tensor("x", "float8_e4m3fn", 130, 288), tensor("xs", "float8_e8m0fnu", 130, 9)], []
    for name in "wv":
        inputs += [tensor(name, "float4_e2m1fn", 136, 288), tensor(name + "s", "float8_e8m0fnu", 136, 9),
                   tensor(name + "b", "bfloat16", 136)]
        nodes.append({"name": name + "p", "op": "mxfp4_linear", "inputs": ["x", name, name + "s", name + "b", "xs"],
                      "attrs": {"out_dtype": "bfloat16"}})
    return model(inputs, nodes + [{"name": "y", "op": "swiglu", "inputs": ["wp", "vp"]}])


def grouped_gated_codes(dtype, scales, block):
    """Quantized expert matrices; float8 has no scales."""
    def wide(name):
        return dequantized(name, 2, block)[0] if scales else {
            "name": name + "d", "op": "cast", "inputs": [name], "attrs": {"dtype": "bfloat16"}}

    inputs = [tensor("x", "bfloat16" if scales else dtype, 4096, 4096), tensor("o", "int32", 8)]
    nodes = [] if scales else [wide("x")]
    for name in "wv":
        inputs.append(tensor(name, dtype, 8, 1024, 4096))
        if scales:
            inputs.append(tensor(name + "s", scales, 8, 1024, 4096 // block))
        nodes += [wide(name),
                  {"name": name + "t", "op": "transpose", "inputs": [name + "d"], "attrs": {"dim0": 1, "dim1": 2}}]
    return model(inputs, nodes + gated((None, "x" if scales else "xd"), [(None, "wt"), (None, "vt")],
                                       lambda x, w: {"op": "grouped_matmul", "inputs": [x, w, "o"]}))


def attention_of_float8(scaled=False):
    """Queries, keys and values in float8, without scales or with one scale each."""
    inputs = [tensor("q", "float8_e4m3fn", 2, 32, 4096, 128)]
    inputs += [tensor(name, "float8_e4m3fn", 2, 8, 4096, 128) for name in "kv"]
    inputs += [tensor(name + "s", "float32", 1) for name in "qkv"] if scaled else []
    casts = [{"name": name + "c", "op": "dequantize" if scaled else "cast", "inputs": [name] + [name + "s"] * scaled,
              "attrs": {"dtype": "bfloat16"}} for name in "qkv"]
    return model(inputs, casts + [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["qc", "kc", "vc"],
                                   "attrs": {"enable_gqa": True, "is_causal": True}}])


def attention_and(kind, codes=None):
    """Attention with an epilogue (a residual, a gate, quantization), and quantized keys and values."""
    if codes is None:
        inputs = [tensor(n, "bfloat16", 2, 8, 1024, 128) for n in "qkv"]
        nodes, factors, attrs = [], ["q", "k", "v"], {"is_causal": True}
    else:
        described = attention_of_codes(1024, codes)
        inputs, nodes, last = described["inputs"], described["nodes"][:-1], described["nodes"][-1]
        factors, attrs = last["inputs"], {**last["attrs"], "is_causal": True}
    shape = next(t["shape"] for t in inputs if t["name"] == "q")
    nodes = nodes + [{"name": "o", "op": "scaled_dot_product_attention", "inputs": factors, "attrs": attrs}]
    if kind == "codes":
        inputs = inputs + [tensor("scale", "float32", 1)]
        nodes += [{"name": "y", "op": "quantize", "inputs": ["o", "scale"], "attrs": {"dtype": "float8_e4m3fn"}}]
    else:
        inputs = inputs + [tensor("r", "bfloat16", *shape)]
        nodes += [{"name": "s", "op": "sigmoid", "inputs": ["r"]}, {"name": "y", "op": "mul", "inputs": ["o", "s"]}]
    return model(inputs, nodes)


def attention_of_rotated():
    """Queries and keys with RoPE."""
    inputs = [tensor("q", "bfloat16", 2, 32, 4096, 128)]
    inputs += [tensor(name, "bfloat16", 2, 8, 4096, 128) for name in "kv"]
    inputs += [tensor(name, "bfloat16", 4096, 128) for name in "cs"]
    rotated = [{"name": name + "r", "op": "rope", "inputs": [name, "c", "s"]} for name in "qk"]
    return model(inputs, rotated + [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["qr", "kr", "v"],
                                     "attrs": {"enable_gqa": True, "is_causal": True}}])


def int8_by_tables(m, n, k):
    """Both operands are gathered, and columns are strided along K."""
    return model([tensor("x", "int8", m, k), tensor("w", "int8", k, n)],
                 [{"name": name + "i", "op": "cast", "inputs": [name], "attrs": {"dtype": "int32"}} for name in "xw"] +
                 [{"name": "y", "op": "matmul", "inputs": ["xi", "wi"]}])


def attention_of_codes(queries, dtype):
    """Quantized keys and values with one scale each."""
    inputs = [tensor("q", "bfloat16", 2, 32, queries, 128)]
    for name in "kv":
        inputs += [tensor(name, dtype, 2, 8, 4096, 128), tensor(name + "s", "bfloat16", 2, 8, 4096, 1)]
    keys, values = dequantized("k", 3, 128), dequantized("v", 3, 128)
    return model(inputs, [keys[0], values[0],
                          {"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", keys[1], values[1]],
                           "attrs": {"enable_gqa": True}}])


def convolution(dtype):
    return model([tensor("x", dtype, 8, 128, 28, 28), tensor("w", dtype, 256, 128, 3, 3), tensor("b", dtype, 256)],
                 [{"name": "p", "op": "conv2d", "inputs": ["x", "w", "b"],
                   "attrs": {"stride": [1, 1], "padding": [1, 1]}}, {"name": "y", "op": "relu", "inputs": ["p"]}])


def depthwise(dtype, kernel):
    """A depthwise convolution with channels last."""
    return model([tensor("x", dtype, 32, 56, 56, 256), tensor("w", dtype, 256, 1, kernel, kernel), tensor("b", dtype, 256)],
                 [{"name": "i", "op": "permute", "inputs": ["x"], "attrs": {"dims": [0, 3, 1, 2]}},
                  {"name": "p", "op": "conv2d", "inputs": ["i", "w", "b"],
                   "attrs": {"padding": [kernel // 2, kernel // 2], "groups": 256}},
                  {"name": "r", "op": "relu" if dtype == "int8" else "silu", "inputs": ["p"]},
                  {"name": "y", "op": "permute", "inputs": ["r"], "attrs": {"dims": [0, 2, 3, 1]}}])


def norm_beside(shape, dtype, weights):
    """A norm of unaligned rows, with weights of another dtype and alignment."""
    return model([tensor("x", dtype, *shape)] + [tensor(name, weights, shape[1]) for name in "wb"],
                 [{"name": "t", "op": "tanh", "inputs": ["x"]},
                  {"name": "f", "op": "cast", "inputs": ["t"], "attrs": {"dtype": weights}},
                  {"name": "n", "op": "layer_norm", "inputs": ["f", "w", "b"], "attrs": {"normalized_shape": shape[1:]}},
                  {"name": "y", "op": "cast", "inputs": ["n"], "attrs": {"dtype": dtype}}])


def rows_of_tangents(shape, dim):
    nodes = [{"name": "t", "op": "tan", "inputs": ["x"]},
             {"name": "y", "op": "softmax", "inputs": ["t"], "attrs": {"dim": dim}},
             {"name": "v", "op": "var", "inputs": ["t"], "attrs": {"dim": [dim], "keepdim": True}},
             {"name": "z", "op": "div", "inputs": ["t", "v"]}]
    return model([tensor("x", "float16", *shape)], nodes) | {"outputs": ["y", "z"]}


def rows_of_functions(functions, shape, dim, dtype="float16"):
    """Functions of reduced rows: names, or (name, second operand)."""
    inputs, nodes, last = [tensor("x", dtype, *shape)], [], "x"
    for i, function in enumerate(functions):
        name, *operands = function if isinstance(function, tuple) else (function,)
        if operands == ["z"]:
            inputs.append(tensor(f"z{i}", dtype, *shape))
            operands = [f"z{i}"]
        nodes.append({"name": f"f{i}", "op": name, "inputs": [last, *operands]})
        last = f"f{i}"
    nodes += [{"name": "y", "op": "softmax", "inputs": [last], "attrs": {"dim": dim}},
              {"name": "v", "op": "var", "inputs": [last], "attrs": {"dim": [dim], "keepdim": True}},
              {"name": "z", "op": "div", "inputs": [last, "v"]}]
    return model(inputs, nodes) | {"outputs": ["y", "z"]}


def neighbours_of_functions():
    """Functions, plus their maximum along a middle dimension."""
    return model([tensor("x", "float16", 8, 32, 32, 32)],
                 [{"name": "s", "op": "tan", "inputs": ["x"]}, {"name": "t", "op": "tan", "inputs": ["s"]},
                  {"name": "m", "op": "amax", "inputs": ["t"], "attrs": {"dim": [1], "keepdim": True}},
                  {"name": "a", "op": "add", "inputs": ["t", "m"]}, {"name": "y", "op": "expm1", "inputs": ["a"]}])


def sum_of_many(count, dtype):
    """A sum of more tensors than a thread has vector registers for."""
    nodes = [{"name": f"y{i}", "op": "add", "inputs": [f"y{i - 1}" if i > 1 else "x0", f"x{i}"]} for i in range(1, count)]
    return model([tensor(f"x{i}", dtype, 1001) for i in range(count)], nodes)


def rows_of_launch():
    """A logsumexp over two axes, one of which is a symbol."""
    return {**model([tensor("x", "bfloat16", 3, 5, "n", 1), tensor("w", "bfloat16", 1)],
                    [{"name": "r", "op": "rms_norm", "inputs": ["x", "w"], "attrs": {"normalized_shape": [1]}},
                     {"name": "g", "op": "gelu", "inputs": ["r"]},
                     {"name": "y", "op": "logsumexp", "inputs": ["g"], "attrs": {"dim": [0, 2], "keepdim": True}}]),
            "outputs": ["r", "y"], "symbols": {"n": {"min": 1, "max": 64, "hint": 8}}}


def variance_of_few_columns():
    """A variance along a middle dimension and along rows of four elements."""
    return model([tensor("x", "float32", 7, 7, 2, 4)],
                 [{"name": "y", "op": "var", "inputs": ["x"], "attrs": {"dim": [1, 3], "keepdim": True}}])


UNARY = ("exp expm1 log log2 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid gelu "
         "softplus mish elu relu").split()


def unlike(ops, count):
    """Light kernels of different lengths, which may be fused horizontally."""
    inputs, nodes = [], []
    for i in range(count):
        op, columns = ops[i % len(ops)], 256 + 64 * i
        inputs.append(tensor(f"x{i}", "float16", 512, columns))
        node = {"name": f"y{i}", "op": op, "inputs": [f"x{i}"]}
        if op == "layer_norm":
            inputs += [tensor(f"{name}{i}", "float16", columns) for name in "wb"]
            node |= {"inputs": [f"x{i}", f"w{i}", f"b{i}"], "attrs": {"normalized_shape": [columns]}}
        elif op in ("softmax", "sum"):
            node["attrs"] = {"dim": 1} if op == "softmax" else {"dim": [0]}
        elif op == "transpose":
            node["attrs"] = {"dim0": 0, "dim1": 1}
        nodes.append(node)
    return model(inputs, nodes) | {"outputs": [node["name"] for node in nodes]}


def chain(functions, dtype):
    nodes = [{"name": f"y{i}", "op": f, "inputs": [f"y{i - 1}" if i else "x"]} for i, f in enumerate(functions)]
    return model([tensor("x", dtype, 4096, 4096)], nodes)


def softmax(columns, dtype):
    return model([tensor("x", dtype, 512, columns)],
                 [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}}])


def corpus(name):
    return json.loads((pathlib.Path(__file__).parents[1] / "corpus" / "models" / f"{name}.json").read_text())


# name: model, targets
LARGEST = {
    "attention, head 64, causal": (attention(1024, 1024, 64, causal=True), ("sm_80", "sm_90a")),
    "attention, head 128": (attention(1024, 1024, 128), ("sm_80", "sm_90a")),
    "attention, head 128, odd sizes": (attention(1000, 999, 128, causal=True), ("sm_80", "sm_90a")),
    "attention, head 128, boolean mask": (attention(1024, 1024, 128, mask="bool"), ("sm_80", "sm_90a")),
    "attention, head 96, odd sizes, added mask": (attention(1000, 999, 96, mask="bfloat16"), ("sm_80", "sm_90a")),
    "attention, head 128, odd sizes, boolean mask": (attention(1000, 999, 128, mask="bool"), ("sm_90a",)),
    "attention, head 128, odd sizes, weights": (attention_with_weights(1000, 999, 128, False), ("sm_80",)),
    "attention, head 128, added mask, weights": (attention_with_weights(1024, 1024, 128, True), ("sm_90a",)),
    "attention, head 256": (attention(1024, 1024, 256), ("sm_80", "sm_90a")),
    "attention, head 256, added mask": (attention(1024, 1024, 256, mask="bfloat16"), ("sm_80", "sm_90a")),
    "attention, decoding": (attention(1, 4096, 128, key_heads=4), ("sm_80", "sm_90a")),
    "gemm, bias and gelu": (linear_gelu(4096, 4096, 4096), ("sm_80", "sm_90a")),
    "gemm, functions behind it": (
        functions_behind(["sin", "cos", "tan"], (4096, 4096, 4096), "bfloat16"), ("sm_80", "sm_90a")),
    "gemm, functions behind and before it, odd sizes": (
        functions_behind(["sin", "tan", "asinh", "cos", "erf", "atan"] * 2, (64, 100, 100), "float16", ["asinh", "sin"]),
        ("sm_80", "sm_90a")),
    "gemm, functions behind it, an odd number of columns": (
        functions_behind(["tan", "cos"], (1000, 1001, 1003), "bfloat16"), ("sm_80", "sm_90a")),
    "gemm, products of one launch": (products_of_one_launch(), ("sm_80", "sm_90a")),
    "gemm, gated float32 of one launch": (gated_of_one_launch("float32", (1536, 2560)), ("sm_80", "sm_90a")),
    "gemm, float8 with scales of blocks": (float8_in_blocks(4096, 4096, 4096), ("sm_90a",)),
    "gemm, gated float8 with scales of blocks": (gated_codes("float8_e4m3fn", "float32", 128), ("sm_80", "sm_90a")),
    "gemm, gated int4": (gated_codes("int4", "bfloat16", 128), ("sm_80", "sm_90a")),
    "gemm, gated int4 in blocks of 20": (
        gated_codes("int4", "bfloat16", 20, 4000, zeros=True), ("sm_80", "sm_90a")),
    "gemm, gated mxfp4": (gated_codes("float4_e2m1fn", "float8_e8m0fnu", 32), ("sm_80", "sm_90a")),
    "gemm, int4 products of one launch": (code_products_of_one_launch(), ("sm_80", "sm_90a")),
    # Products of equal width are one kernel, others are kernels of one launch: as many as give enough code.
    "gemm, five kinds of one launch": (
        products_of_all_kinds(96, 192, ["float4_e2m1fn= across", "int8= across", "int4=", "float8_e5m2", "int8 across"]),
        ("sm_80", "sm_90a")),
    "gemm, four kinds of one width": (
        products_of_all_kinds(1024, 1024, ["float4_e2m1fn= across", "int8= across", "int4= across",
                                           "float8_e4m3fn= across"]), ("sm_80", "sm_90a")),
    "gemm, eight kinds of one launch": (
        products_of_all_kinds(1024, 1024, ["int4", "bfloat16", "int8", "float8_e4m3fn", "bfloat16", "float4_e2m1fn",
                                           "int4", "bfloat16"]), ("sm_80", "sm_90a")),
    "few rows, six kinds of one launch": (
        products_of_all_kinds(8, 2048, ["int4", "bfloat16", "int8", "float8_e4m3fn", "float4_e2m1fn", "bfloat16"]),
        ("sm_80", "sm_90a")),
    "one row, five kinds of one launch": (
        products_of_all_kinds(1, 4096, ["float4_e2m1fn across", "int4", "float8_e5m2 across", "int8 across", "int4 across"]),
        ("sm_80", "sm_90a")),
    "a random graph of 578 nodes": (corpus("dag400_f32.full"), ("sm_80", "sm_90a")),
    "convolutions of one launch": (convolutions_of_one_input("float16"), ("sm_80",)),
    "gemm, gated, of experts": (grouped_gated(4096), ("sm_80", "sm_90a")),
    "gemm, gated, of experts and picked rows": (grouped_gated(4096, True), ("sm_80", "sm_90a")),
    "gemm, gated float8 of experts": (grouped_gated_codes("float8_e4m3fn", "", 0), ("sm_80", "sm_90a")),
    "gemm, gated int4 of experts": (grouped_gated_codes("int4", "bfloat16", 128), ("sm_80", "sm_90a")),
    "gemm, gated mxfp4 of experts": (grouped_gated_codes("float4_e2m1fn", "float8_e8m0fnu", 32), ("sm_80", "sm_90a")),
    "gemm, experts in pairs": (grouped_pairs(), ("sm_80", "sm_90a")),
    "gemm, mxfp4 experts of 2880 in pairs": (weighted_pairs("bfloat16", False), ("sm_90a",)),
    "gemm, mxfp4 experts of 2880 in pairs, weighted": (weighted_pairs("float16", True), ("sm_90a",)),
    "gemm, mxfp4 experts of 2880 in lines of pairs": (weighted_lines("float16", True), ("sm_90a",)),
    "gemm, mxfp4 experts of 2880 in lines": (weighted_lines("bfloat16", False), ("sm_90a",)),
    "gemm, int4 experts of 2880 in lines": (weighted_lines("bfloat16", False, "int4"), ("sm_90a",)),
    "gemm, gated mxfp4 of float8": (gated_mxfp4_of_float8(), ("sm_80", "sm_90a")),
    "gemm, mxfp4 experts in pairs": (grouped_pairs("float4_e2m1fn", "float8_e8m0fnu"), ("sm_80", "sm_90a")),
    "attention, keys and values in int8": (attention_of_codes(1024, "int8"), ("sm_80", "sm_90a")),
    "attention, decoding keys and values in int8": (attention_of_codes(1, "int8"), ("sm_80", "sm_90a")),
    "attention, keys and values in float8": (attention_of_codes(1024, "float8_e4m3fn"), ("sm_80", "sm_90a")),
    "attention, all in float8": (attention_of_float8(), ("sm_80", "sm_90a")),
    "attention, all in float8 with scales": (attention_of_float8(True), ("sm_80", "sm_90a")),
    "attention, codes of its result": (attention_and("codes"), ("sm_80", "sm_90a")),
    "attention, a gate behind it": (attention_and("gate"), ("sm_80", "sm_90a")),
    "attention, keys and values in int8, a gate behind it": (attention_and("gate", "int8"), ("sm_80", "sm_90a")),
    "attention, rotated": (attention_of_rotated(), ("sm_80", "sm_90a")),
    **{f"attention, {name}, {queries} queries": (much_code(queries=queries, keys=2 * queries - 1, **parts),
                                                ("sm_80", "sm_90a"))
       for name, parts in MUCH_CODE.items() for queries in (65, 1000)},
    **{f"attention, {name}, shared keys": (much_code(queries=65, keys=512, **MUCH_CODE[name]), ("sm_80", "sm_90a"))
       for name in MUCH_CODE_OF_SHARED_KEYS},
    **{f"attention, capped, keys {seen}": (
        windowed(seen, "bfloat16", 1024, 1024, 128, 128, cap=True, heads=32, key_heads=16), ("sm_80", "sm_90a"))
       for seen in SEEN},
    **{f"attention, capped, keys {seen}, heads of 256": (
        windowed(seen, dtype, queries, queries, 256, 1024, cap=True, heads=8, key_heads=4), ("sm_80", "sm_90a"))
       for seen, dtype, queries in (("before", "bfloat16", 4096), ("near", "float16", 1000))},
    "gemm, int8 by tables": (int8_by_tables(77, 136, 200), ("sm_80", "sm_90a")),
    "gemm, float32": (linear_gelu(1024, 1024, 1024, "float32"), ("sm_80",)),
    "few rows": (linear_gelu(8, 4096, 4096), ("sm_80",)),
    "few rows, float32": (linear_gelu(32, 4096, 4096, "float32"), ("sm_80", "sm_90a")),
    "convolution": (convolution("float16"), ("sm_80", "sm_90a")),
    "convolution, int8": (convolution("int8"), ("sm_80",)),
    "depthwise, 3x3": (depthwise("float16", 3), ("sm_80", "sm_90a")),
    "depthwise, 7x7": (depthwise("bfloat16", 7), ("sm_80",)),
    "depthwise, int8": (depthwise("int8", 5), ("sm_80",)),
    "softmax of long rows": (softmax(16384, "float32"), ("sm_80",)),
    "norm of long odd rows with float32 weights": (
        norm_beside([8, 30001], "float16", "float32"), ("sm_80", "sm_90a")),
    "softmax and variance of tangents": (rows_of_tangents([512, 8192], 1), ("sm_80", "sm_90a")),
    "softmax and variance of tangents, few interleaved rows": (rows_of_tangents([1000, 5], 0), ("sm_80",)),
    "softmax and variance of tangents, columns": (rows_of_tangents([4, 1000, 511], 1), ("sm_90a",)),
    "softmax and variance of three functions": (
        rows_of_functions(["sin", ("pow", "z"), "atan"], [512, 8192], 1), ("sm_80", "sm_90a")),
    "softmax and variance of asinh, few interleaved rows": (
        rows_of_functions(["asinh"], [1000, 5], 0), ("sm_80", "sm_90a")),
    "softmax and variance of fmod, few interleaved rows": (
        rows_of_functions([("fmod", "z")], [1000, 5], 0), ("sm_80", "sm_90a")),
    "softmax and variance of sinh and remainder, interleaved rows": (
        rows_of_functions(["sinh", ("remainder", 1.7)], [3000, 7], 0, "float32"), ("sm_80", "sm_90a")),
    "softmax and variance of atan2, long rows": (
        rows_of_functions([("atan2", "z")], [64, 100003], 1), ("sm_80", "sm_90a")),
    "maximum of tangents, channels last": (neighbours_of_functions(), ("sm_80", "sm_90a")),
    "gelu and logsumexp of rows of a launch's length": (rows_of_launch(), ("sm_80", "sm_90a")),
    "variance of few columns": (variance_of_few_columns(), ("sm_80", "sm_90a")),
    "a sum of 257 tensors": (sum_of_many(257, "float32"), ("sm_80", "sm_90a")),
    "a sum of 100 tensors": (sum_of_many(100, "float16"), ("sm_90a",)),
    "norms side by side": (unlike(["layer_norm"], 16), ("sm_80", "sm_90a")),
    "sums of columns side by side": (unlike(["sum"], 12), ("sm_80",)),
    "functions side by side": (unlike(UNARY, 32), ("sm_80", "sm_90a")),
    "unlike light kernels side by side": (
        unlike(["layer_norm", "gelu", "softmax", "transpose", "sum", "tan"], 24), ("sm_80", "sm_90a")),
    "six functions, pointwise": (
        chain(["tan", "asinh", "sin", "erf", "log1p", "cos"], "float16"), ("sm_80", "sm_90a")),
}


def cases():
    return [Case(name, graph, targets=targets, executed=False, most={"NVRTC / limit": 1})
            for name, (graph, targets) in LARGEST.items()]
