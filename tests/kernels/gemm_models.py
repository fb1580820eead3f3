"""Products of kernels/gemm.py, by name: correctness cases and cases with bounds on instructions."""
from kernels.case import tensor


def node(name, op, inputs, **attributes):
    return {"name": name, "op": op, "inputs": inputs, "attrs": attributes}


def model(name, tensors, nodes, **more):
    """Tensors with data are constants."""
    given = {"inputs": [t for t in tensors if "data" not in t], "constants": [t for t in tensors if "data" in t]}
    return {"fusec": 1, "name": name, **given, "nodes": nodes, "outputs": ["h"], **more}


def layer(m, n, k):
    return model("layer", [tensor("x", "bfloat16", m, k)],
                 [node("p", "linear", ["x", "w", "bias"]), node("h", "gelu", ["p"])],
                 constants=[tensor("w", "bfloat16", n, k), tensor("bias", "bfloat16", n)])


# Grouped GEMM. --random gives offsets in any order and beyond the rows.
GROUPED = {
    "gathered_gated": (
        [tensor("x", "bfloat16", 40, 72), tensor("t", "int64", 75), tensor("a", "bfloat16", 5, 72, 104),
         tensor("b", "bfloat16", 5, 72, 104), tensor("o", "int32", 5)],
        [node("p", "index_select", ["x", "t"], dim=0), node("g", "grouped_matmul", ["p", "a", "o"]),
         node("s", "silu", ["g"]), node("u", "grouped_matmul", ["p", "b", "o"]), node("h", "mul", ["s", "u"])]),
    "biased": (
        [tensor("x", "float32", 75, 40), tensor("a", "float32", 3, 40, 72), tensor("o", "int64", 3),
         tensor("b", "float32", 3, 72)],
        [node("h", "grouped_matmul", ["x", "a", "o", "b"])]),
    "narrow_weights": (
        [tensor("x", "float16", 75, 40), tensor("w", "float8_e4m3fn", 4, 40, 72), tensor("s", "float16", 4, 1, 72),
         tensor("o", "int32", 4)],
        [node("c", "cast", ["w"], dtype="float16"), node("a", "mul", ["c", "s"]),
         node("h", "grouped_matmul", ["x", "a", "o"])]),
    "narrow_rows": (
        [tensor("x", "float8_e4m3fn", 77, 128), tensor("xs", "bfloat16", 77, 1), tensor("w", "float8_e4m3fn", 5, 72, 128),
         tensor("s", "float32", 5, 72, 1), tensor("o", "int32", 5)],
        [node("c", "cast", ["x"], dtype="bfloat16"), node("a", "mul", ["c", "xs"]),
         node("d", "dequantize", ["w", "s"], dtype="bfloat16", axis=2, block=128),
         node("b", "transpose", ["d"], dim0=1, dim1=2), node("h", "grouped_matmul", ["a", "b", "o"])]),
    "scaled": (
        [tensor("x", "float8_e4m3fn", 277, 128), tensor("xs", "float32", 277), tensor("w", "float8_e4m3fn", 5, 72, 128),
         tensor("s", "float32", 5, 72, 1), tensor("o", "int32", 5)],
        [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=0),
         node("d", "dequantize", ["w", "s"], dtype="float32", axis=2, block=128),
         node("b", "transpose", ["d"], dim0=1, dim1=2), node("h", "grouped_matmul", ["a", "b", "o"])]),
    # Equally long groups need no table of offsets.
    "equal": (
        [tensor("x", "bfloat16", 77, 72), tensor("a", "bfloat16", 6, 72, 104), tensor("o", "int32", 6) | {"data": [12, 24, 36, 48, 60, 72]}],
        [node("g", "grouped_matmul", ["x", "a", "o"]), node("h", "gelu", ["g"])]),
    # Column-major rows are copied in pieces of several, though groups begin at any row.
    "turned": (
        [tensor("x", "float16", 64, 152), tensor("a", "float16", 5, 64, 72), tensor("o", "int32", 5)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("h", "grouped_matmul", ["t", "a", "o"])]),
    "turned_float32": (
        [tensor("x", "float32", 40, 136), tensor("a", "float32", 3, 40, 72), tensor("o", "int64", 3)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("h", "grouped_matmul", ["t", "a", "o"])]),
    "turned_codes": (
        [tensor("x", "int8", 64, 152), tensor("s", "float16", 152), tensor("r", "float16", 152, 72),
         tensor("a", "float16", 5, 64, 72), tensor("o", "int32", 5)],
        [node("d", "dequantize", ["x", "s"], dtype="float16", axis=1),
         node("t", "transpose", ["d"], dim0=0, dim1=1), node("g", "grouped_matmul", ["t", "a", "o"]),
         node("h", "add", ["g", "r"])]),
    "turned_gated": (
        [tensor("x", "bfloat16", 136, 704), tensor("a", "bfloat16", 5, 136, 264), tensor("b", "bfloat16", 5, 136, 264),
         tensor("o", "int32", 5)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("g", "grouped_matmul", ["t", "a", "o"]),
         node("s", "silu", ["g"]), node("u", "grouped_matmul", ["t", "b", "o"]), node("h", "mul", ["s", "u"])])}


# Gathered rows or columns, with tiles of fewer lines than the block's threads copy at a time. Sizes are whole tiles, so
# only threads without a line need a guard.
LOOKED_UP = {
    "norm": ([tensor("t", "bfloat16", 9, 16), tensor("i", "int64", 16), tensor("w", "bfloat16", 64, 16)],
             [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
              node("h", "rms_norm", ["p"], normalized_shape=[64])]),
    "softmax": ([tensor("t", "float16", 9, 136), tensor("i", "int32", 96), tensor("w", "float16", 128, 136),
                 tensor("r", "float16", 96, 128)],
                [node("e", "index_select", ["t", "i"], dim=0), node("p", "linear", ["e", "w"]),
                 node("s", "add", ["p", "r"]), node("h", "softmax", ["s"], dim=-1)]),
    "float32": ([tensor("t", "float32", 9, 64), tensor("i", "int32", 32), tensor("w", "float32", 128, 64)],
                [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
                 node("h", "layer_norm", ["p"], normalized_shape=[128])]),
    "scaled": ([tensor("t", "bfloat16", 9, 32), tensor("i", "int64", 64), tensor("u", "bfloat16", 7, 1),
                tensor("j", "int64", 64), tensor("w", "bfloat16", 64, 32)],
               [node("e", "embedding", ["t", "i"]), node("f", "embedding", ["u", "j"]), node("x", "mul", ["e", "f"]),
                node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p"], normalized_shape=[64])]),
    "gathered": ([tensor("t", "float32", 9, 32), tensor("i", "int64", 16), tensor("v", "float32", 9, 1),
                  tensor("m", "int64", 16), tensor("u", "float32", 9, 32), tensor("j", "int64", 64)],
                 [node("e", "embedding", ["t", "i"]), node("f", "embedding", ["v", "m"]), node("a", "mul", ["e", "f"]),
                  node("k", "unsqueeze", ["j"], dim=1), node("l", "expand", ["k"], shape=[64, 32]),
                  node("b", "gather", ["u", "l"], dim=0), node("h", "linear", ["a", "b"])]),
    "one_expert": ([tensor("t", "float16", 73, 136), tensor("i", "int32", 64), tensor("w", "float16", 1, 136, 128),
                    tensor("o", "int32", 1)],
                   [node("e", "embedding", ["t", "i"]), node("p", "grouped_matmul", ["e", "w", "o"]),
                    node("h", "rms_norm", ["p"], normalized_shape=[128])]),
    "symbol": ([tensor("t", "bfloat16", 9, 64), tensor("i", "int32", "m"), tensor("w", "bfloat16", 96, 64)],
               [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
                node("h", "softmax", ["p"], dim=-1)])}
SYMBOL_OF_ROWS = {"m": {"multiple_of": 32, "max": 4096, "hint": 64}}

# Products for one pass of tf32: operands contiguous or strided along K, sizes that are multiples of no tile.
TF32 = (
    [tensor("x", "float32", 200, 136), tensor("z", "float32", 136, 200), tensor("w", "float32", 264, 136),
     tensor("v", "float32", 136, 260), tensor("b", "float32", 264), tensor("g", "float32", 2, 136, 64)],
    [node("p", "linear", ["x", "w", "b"]), node("y", "gelu", ["p"]), node("q", "matmul", ["x", "v"]),
     node("t", "transpose", ["z"], dim0=0, dim1=1), node("r", "matmul", ["t", "v"]), node("o", "matmul", ["x", "g"])])

# Few tiles and a long K (split-K), at sizes that are multiples of no tile.
SHARED = {
    "layer": ([tensor("x", "bfloat16", 72, 4104), tensor("w", "bfloat16", 136, 4104), tensor("b", "bfloat16", 136),
               tensor("r", "bfloat16", 72, 136)],
              [node("p", "linear", ["x", "w", "b"]), node("g", "gelu", ["p"]), node("h", "add", ["g", "r"])]),
    "odd_results": ([tensor("x", "float16", 75, 4104), tensor("w", "float16", 131, 4104)],
                    [node("p", "linear", ["x", "w"]), node("h", "silu", ["p"])]),
    "batch": ([tensor("x", "float16", 2, 70, 4104), tensor("w", "float16", 2, 4104, 72)],
              [node("p", "matmul", ["x", "w"]), node("h", "tanh", ["p"])]),
    "symbols": ([tensor("x", "float16", "b", 40, 4104), tensor("w", "float16", "b", 4104, 72)],
                [node("h", "matmul", ["x", "w"])]),
    "gated": ([tensor("x", "bfloat16", 72, 4104), tensor("a", "bfloat16", 72, 4104), tensor("b", "bfloat16", 72, 4104)],
              [node("p", "linear", ["x", "a"]), node("q", "linear", ["x", "b"]), node("s", "silu", ["p"]),
               node("h", "mul", ["s", "q"])]),
    "warpgroups": ([tensor("x", "bfloat16", 200, 8200), tensor("w", "bfloat16", 200, 8200)],
                   [node("p", "linear", ["x", "w"]), node("h", "relu", ["p"])]),
    "float8": ([tensor("x", "float8_e4m3fn", 72, 8208), tensor("w", "float8_e4m3fn", 136, 8208)],
               [node("f", "cast", ["x"], dtype="float32"), node("g", "cast", ["w"], dtype="float32"),
                node("h", "linear", ["f", "g"])]),
    "float32": ([tensor("x", "float32", 40, 2052), tensor("w", "float32", 68, 2052), tensor("b", "float32", 68)],
                [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "computed": ([tensor("a", "bfloat16", 40, 4104), tensor("b", "bfloat16", 40, 4104), tensor("w", "bfloat16", 136, 4104)],
                 [node("s", "silu", ["a"]), node("x", "mul", ["s", "b"]), node("h", "linear", ["x", "w"])]),
    "odd_depth": ([tensor("x", "bfloat16", 40, 4099), tensor("w", "bfloat16", 72, 4099), tensor("b", "bfloat16", 72)],
                  [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "deep_symbol": ([tensor("x", "float16", 72, "k"), tensor("w", "float16", 136, "k")],
                    [node("p", "linear", ["x", "w"]), node("h", "relu", ["p"])]),
    # Quantized weights with scales of columns, of groups, of blocks of both operands; zero points.
    "codes": ([tensor("x", "bfloat16", 40, 4104), tensor("c", "int8", 136, 4104), tensor("s", "bfloat16", 136),
               tensor("r", "bfloat16", 40, 136)],
              [node("w", "dequantize", ["c", "s"], dtype="bfloat16", axis=0), node("p", "linear", ["x", "w"]),
               node("g", "gelu", ["p"]), node("h", "add", ["g", "r"])]),
    "groups": ([tensor("x", "float16", 60, 4224), tensor("c", "int4", 72, 4224), tensor("s", "float32", 72, 33),
                tensor("b", "float32", 72)],
               [node("w", "dequantize", ["c", "s"], dtype="float32", axis=1, block=128),
                node("f", "cast", ["x"], dtype="float32"), node("p", "linear", ["f", "w", "b"]),
                node("k", "silu", ["p"]), node("h", "cast", ["k"], dtype="float16")]),
    "groups_of_16": ([tensor("x", "int8", 65, 4128), tensor("w", "int4", 40, 4128), tensor("ws", "float32", 40, 258),
                      tensor("wo", "int8", 40, 258), tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", "wo", "xs", "xo"], group_size=16,
                           out_dtype="float16")]),
    "zero_point": ([tensor("x", "int8", 60, 8208), tensor("w", "int8", 40, 8208), tensor("ws", "float32", 40),
                    tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                   [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "float4": ([tensor("x", "bfloat16", 50, 4128), tensor("c", "float4_e2m1fn", 72, 4128),
                tensor("s", "float8_e8m0fnu", 72, 129)],
               [node("p", "mxfp4_linear", ["x", "c", "s"], out_dtype="bfloat16"), node("h", "relu", ["p"])]),
    "both_float4": ([tensor("x", "float8_e4m3fn", 50, 4128), tensor("t", "float8_e8m0fnu", 50, 129),
                     tensor("c", "float4_e2m1fn", 72, 4128), tensor("s", "float8_e8m0fnu", 72, 129),
                     tensor("b", "float32", 72)],
                    [node("h", "mxfp4_linear", ["x", "c", "s", "b", "t"], out_dtype="float32")]),
    "row_scales": ([tensor("x", "float8_e4m3fn", 72, 8208), tensor("w", "float8_e4m3fn", 136, 8208),
                    tensor("xs", "float32", 72), tensor("ws", "float32", 136)],
                   [node("p", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="bfloat16"), node("h", "silu", ["p"])]),
    "block_scales": ([tensor("x", "float8_e4m3fn", 72, 8320), tensor("w", "float8_e4m3fn", 136, 8320),
                      tensor("xs", "float32", 72, 65), tensor("ws", "float32", 136, 65)],
                     [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=1, block=128),
                      node("v", "dequantize", ["w", "ws"], dtype="float32", axis=1, block=128),
                      node("p", "linear", ["a", "v"]), node("h", "cast", ["p"], dtype="bfloat16")]),
    "wide_block_scales": ([tensor("x", "float8_e4m3fn", 200, 8448), tensor("w", "float8_e4m3fn", 200, 8448),
                           tensor("xs", "float32", 200, 66), tensor("ws", "float32", 200, 33)],
                          [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=1, block=128),
                           node("v", "dequantize", ["w", "ws"], dtype="float32", axis=1, block=256),
                           node("p", "linear", ["a", "v"]), node("h", "cast", ["p"], dtype="bfloat16")])}
SYMBOLS = {"symbols": {"b": {"max": 16, "hint": 2}}, "deep_symbol": {"k": {"multiple_of": 8, "max": 65536, "hint": 4096}}}
# Values of a symbolic K for kernels whose split-K count was chosen for another value: most parts empty, one part
# short, all parts full.
DEPTHS = [8, 456, 4104]

# FFMA products with 64 accumulators a lane, which with the operands leave few registers for addresses.
IN_LANES = {
    "linear": ([tensor("x", "float32", 4096, 64), tensor("w", "float32", 4096, 64), tensor("b", "float32", 4096)],
               [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "batch": ([tensor("x", "float32", 16, 512, 64), tensor("w", "float32", 16, 64, 512)],
              [node("h", "matmul", ["x", "w"])]),
    "transposed": ([tensor("x", "float32", 64, 4096), tensor("w", "float32", 4096, 64)],
                   [node("t", "transpose", ["x"], dim0=0, dim1=1), node("u", "transpose", ["w"], dim0=0, dim1=1),
                    node("h", "matmul", ["t", "u"])]),
    "convolution": ([tensor("x", "float32", 32, 64, 56, 56), tensor("w", "float32", 64, 64, 3, 3)],
                    [node("h", "conv2d", ["x", "w"], padding=[1, 1])]),
    "copied_weights": ([tensor("x", "float32", 32, 128, 28, 28), tensor("w", "float32", 128, 128, 3, 3)],
                       [node("h", "conv2d", ["x", "w"], padding=[1, 1])]),
    "strided": ([tensor("x", "float32", 16, 320, 32, 32), tensor("w", "float32", 320, 320, 1, 1)],
                [node("h", "conv2d", ["x", "w"], stride=[2, 2])])}

# Products with a reduction of their rows, also with more columns than a tile, with eight, four or one columns a lane,
# and with an odd stride; a single expert, zero points and small quantization groups; 8-bit data with unaligned rows.
# A plan puts each into one kernel, because such long rows are predicted to be slower so.
WITHOUT_CONFLICTS = {
    "norm": ([tensor("x", "bfloat16", 40, 64), tensor("w", "bfloat16", 512, 64), tensor("g", "bfloat16", 512)],
             [node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p", "g"], normalized_shape=[512])]),
    "residual_norm": ([tensor("x", "bfloat16", 70, 256), tensor("w", "bfloat16", 256, 256), tensor("r", "bfloat16", 70, 256),
                       tensor("g", "bfloat16", 256)],
                      [node("p", "linear", ["x", "w"]), node("s", "add", ["p", "r"]),
                       node("h", "rms_norm", ["s", "g"], normalized_shape=[256])]),
    "norm_of_384": ([tensor("x", "bfloat16", 70, 64), tensor("w", "bfloat16", 384, 64), tensor("g", "bfloat16", 384)],
                    [node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p", "g"], normalized_shape=[384])]),
    "softmax_of_120": ([tensor("x", "float16", 50, 64), tensor("w", "float16", 120, 64), tensor("r", "float16", 50, 120)],
                       [node("p", "linear", ["x", "w"]), node("s", "add", ["p", "r"]),
                        node("h", "softmax", ["s"], dim=-1)]),
    "softmax_of_99": ([tensor("x", "float16", 50, 64), tensor("w", "float16", 99, 64)],
                      [node("p", "linear", ["x", "w"]), node("h", "softmax", ["p"], dim=-1)]),
    "one_expert": ([tensor("x", "bfloat16", 70, 64), tensor("w", "bfloat16", 1, 64, 72), tensor("o", "int32", 1)],
                   [node("h", "grouped_matmul", ["x", "w", "o"])]),
    "zero_point": ([tensor("x", "int8", 60, 256), tensor("w", "int8", 100, 256), tensor("ws", "float32", 100),
                    tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                   [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "groups_of_16": ([tensor("x", "int8", 65, 224), tensor("w", "int4", 40, 224), tensor("ws", "float32", 40, 14),
                      tensor("wo", "int8", 40, 14), tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", "wo", "xs", "xo"], group_size=16,
                           out_dtype="float16")]),
    "groups_of_32": ([tensor("x", "int8", 77, 224), tensor("w", "int4", 141, 224), tensor("ws", "float32", 141, 7),
                      tensor("xs", "float32", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", None, "xs"], group_size=32,
                           out_dtype="bfloat16")]),
    "scaled_codes": ([tensor("x", "float8_e4m3fn", 77, 256), tensor("xs", "float32", 77, 2),
                      tensor("w", "float8_e4m3fn", 100, 256), tensor("ws", "float32", 100, 2)],
                     [node("a", "dequantize", ["x", "xs"], dtype="bfloat16", axis=1, block=128),
                      node("b", "dequantize", ["w", "ws"], dtype="bfloat16", axis=1, block=128),
                      node("h", "linear", ["a", "b"])]),
    "triangle": ([tensor("x", "float16", 72, 64), tensor("w", "float16", 88, 64)],
                 [node("p", "linear", ["x", "w"]), node("h", "tril", ["p"])]),
    "float8_of_100": ([tensor("x", "float8_e4m3fn", 192, 100), tensor("w", "float8_e4m3fn", 129, 100),
                       tensor("xs", "float32", 192), tensor("ws", "float32", 129)],
                      [node("h", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="float16")]),
    "float8_of_129": ([tensor("x", "float8_e4m3fn", 99, 129), tensor("w", "float8_e5m2", 96, 129)],
                      [node("a", "cast", ["x"], dtype="float16"), node("b", "cast", ["w"], dtype="float16"),
                       node("h", "linear", ["a", "b"])]),
    "float8_of_17": ([tensor("x", "float8_e4m3fn", 257, 17), tensor("w", "float8_e4m3fn", 40, 17),
                      tensor("xs", "float32", 1), tensor("ws", "float32", 40)],
                     [node("p", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="bfloat16"),
                      node("h", "rms_norm", ["p"], normalized_shape=[40])]),
    "int8_of_100": ([tensor("x", "int8", 200, 100), tensor("w", "int8", 129, 100), tensor("ws", "float32", 129),
                     tensor("xs", "float32", 1)],
                    [node("h", "static_quant_linear", ["x", "w", "ws", "xs"], out_dtype="float16")]),
    "zero_point_of_1023": ([tensor("x", "int8", 136, 1023), tensor("w", "int8", 129, 1023), tensor("ws", "float32", 129),
                            tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                           [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "gated_int4": ([tensor("x", "float16", 33, 384)] +
                   [t for w in "wv" for t in (tensor(w, "int4", 128, 384), tensor(w + "s", "float16", 128, 3))],
                   [n for w in "wv" for n in (node(w + "d", "dequantize", [w, w + "s"], dtype="float16", axis=1, block=128),
                                              node(w + "p", "linear", ["x", w + "d"]))] +
                   [node("h", "swiglu", ["wp", "vp"])]),
    "norm_of_17": ([tensor("x", "float16", 99, 40), tensor("w", "float16", 40, 17)],
                   [node("p", "matmul", ["x", "w"]), node("h", "rms_norm", ["p"], normalized_shape=[17])]),
    "softmax_of_65": ([tensor("x", "bfloat16", 99, 40), tensor("w", "bfloat16", 40, 65)],
                      [node("p", "matmul", ["x", "w"]), node("h", "softmax", ["p"], dim=-1)])}


# Gate and up are interleaved columns of one product, with matrices contiguous along the columns or along K, also
# quantized. --- experts, rows, K, pairs of columns, dtype, quantized
PAIRED = {"pairs of experts": (2, 256, 512, 256, "bfloat16", None), "pairs of a batch": (0, 136, 264, 200, "float16", None),
          "pairs of codes": (2, 128, 256, 256, "bfloat16", "int4"),
          "pairs of mxfp4": (2, 128, 256, 256, "bfloat16", "float4_e2m1fn"), "pairs in no eights": (2, 150, 136, 100, "bfloat16", None)}


def paired(experts, rows, depth, pairs, dtype, codes, way):
    count = experts or 3
    turned = lambda *shape: [shape[0], shape[2], shape[1]] if way == "depth" else list(shape)
    inputs = [tensor("x", dtype, *([count * rows, depth] if experts else [count, rows, depth])),
              tensor("w", codes or dtype, *turned(count, depth, 2 * pairs))]
    nodes, weights = [], "w"
    if codes:
        inputs.append(tensor("ws", "float8_e8m0fnu" if codes == "float4_e2m1fn" else dtype, *turned(count, depth // 32, 2 * pairs)))
        nodes.append(node("wd", "dequantize", ["w", "ws"], dtype=dtype, axis=2 if way == "depth" else 1, block=32))
        weights = "wd"
    if way == "depth":
        nodes.append(node("wt", "transpose", [weights], dim0=1, dim1=2))
        weights = "wt"
    if experts:
        inputs.append(tensor("b", dtype, count, 2 * pairs))
        nodes.append(node("p", "grouped_matmul", ["x", weights, "o", "b"]))
    else:
        nodes.append(node("p", "matmul", ["x", weights]))
    offsets = [dict(tensor("o", "int32", count), data=[rows * (e + 1) for e in range(count)])] if experts else []
    ends = [(0, 2 * pairs), (1, 2 * pairs)] if way != "halves" else [(0, pairs), (pairs, 2 * pairs)]
    nodes += [node(name, "slice", ["p"], dim=-1, start=start, end=end, step=1 if way == "halves" else 2)
              for name, (start, end) in zip("gu", ends)]
    nodes += [node("c", "clamp", ["g"], max=7.0), node("t", "mul", ["c", 1.702]), node("s", "sigmoid", ["t"]),
              node("a", "mul", ["c", "s"]), node("d", "add", ["u", 1.0]), node("h", "mul", ["a", "d"])]
    return model("pairs", inputs + offsets, nodes)


# Quantized weights with a scale for each column, contiguous along columns, are dequantized two at a time.
ACROSS = {"float4_e2m1fn": ("float8_e8m0fnu", 23), "int4": ("bfloat16", 16)}

# Quantization groups whose length is no power of two, with zero points: the elements of one scale are computed
# together. The number is the allowed ratio of instructions to groups of 32.
UNEVEN_BLOCKS = {10: 2.5, 20: 1.95, 24: 1.65, 48: 1.5}

# Epilogues read and store several columns at a time.
MOST_INSTRUCTIONS = {"residual_norm": 29000, "softmax_of_120": 13000, "float8_of_100": 80000, "int8_of_100": 80000,
                     "norm_of_17": 25000}

# (rows, columns, K, dtype, layout of the right operand): some of these once used local memory.
WITHOUT_SPILLS = [(127, 1001, 511, "bfloat16", "nk"), (64, 500, 4095, "float16", "nk"), (7, 500, 511, "float32", "nk"),
                  (4096, 1001, 511, "float32", "nk"), (127, 33, 511, "float16", "nk"),
                  (4096, 64, 1024, "bfloat16", "nk"), (64, 4096, 1024, "bfloat16", "kn")]

# (rows, columns, K, elements of each scale) of float8, which ptxas multiplies as halves; with bias and SiLU.
FLOAT8_WITHOUT_SPILLS = [(519, 2056, 144, (1, 1)), (300, 1024, 256, (300, 1024)), (519, 520, 528, (1, 1))]
