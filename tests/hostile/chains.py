"""Chains: one op, or a few in turn, as often as the size says."""
from hostile.model import Model, chained, family


def chain(name, step, most=20000, shape=(4, 8), dtype="float32", **keys):
    family("chain." + name, most)(lambda size, rng: chained(size, step, shape, dtype, **keys))


for op in ["neg", "exp", "log", "sqrt", "sin", "tanh", "erf", "sigmoid", "relu", "silu", "gelu", "elu", "softplus", "mish",
           "hardswish", "log_sigmoid", "floor", "reciprocal", "identity", "clamp"]:
    attrs = {"clamp": {"min": -1.0, "max": 1.0}}.get(op, {})
    chain(op, lambda m, v, i, op=op, attrs=attrs: m.op(op, v, **attrs))
chain("logical_not", lambda m, v, i: m.op("logical_not", v), dtype="bool")
chain("bitwise_not", lambda m, v, i: m.op("bitwise_not", v), dtype="int32")
chain("cast", lambda m, v, i: m.op("cast", v, dtype=("bfloat16", "float32", "float16", "int32")[i % 4]))
for op in ["add", "mul", "sub", "div", "maximum", "pow"]:
    chain(op + ".itself", lambda m, v, i, op=op: m.op(op, v, v))
    chain(op + ".number", lambda m, v, i, op=op: m.op(op, v, 1.5 + i % 3))
chain("add.input", lambda m, v, i: m.op("add", v, "x"))
chain("where", lambda m, v, i: m.op("where", m.op("gt", v, 0.5), v, "x"))
chain("lerp", lambda m, v, i: m.op("lerp", v, "x", 0.25))
chain("addcmul", lambda m, v, i: m.op("addcmul", v, "x", "x", value=0.5))
chain("mixed", lambda m, v, i: m.op(("exp", "neg", "tanh", "abs", "relu", "sqrt")[i % 6], v))

# --- movement

chain("reshape", lambda m, v, i: m.op("reshape", v, shape=[[32], [8, 4], [4, 8]][i % 3]), 5000)
chain("reshape_permute", lambda m, v, i: m.op("reshape", m.op("permute", m.op("reshape", v, shape=[[6, 35], [10, 21]][i % 2]),
                                                             dims=[1, 0]), shape=[14, 15]), 400, shape=(14, 15))
chain("permute", lambda m, v, i: m.op("permute", v, dims=[[1, 0, 2], [2, 1, 0], [0, 2, 1]][i % 3]), shape=(2, 3, 4))
chain("transpose", lambda m, v, i: m.op("transpose", v, dim0=0, dim1=1))
chain("transpose_add", lambda m, v, i: m.op("add", m.op("transpose", v, dim0=0, dim1=1), v), 2000, shape=(8, 8))
chain("flatten", lambda m, v, i: m.op("reshape", m.op("flatten", v, start_dim=0, end_dim=1), shape=[4, 8]))
chain("squeeze", lambda m, v, i: m.op("squeeze", m.op("unsqueeze", v, dim=i % 3), dim=i % 3))
chain("expand", lambda m, v, i: m.op("sum", m.op("expand", m.op("unsqueeze", v, dim=0), shape=[2, -1, -1]), dim=[0]), 5000)
chain("slice_pad", lambda m, v, i: m.op("pad", m.op("slice", v, dim=1, start=1, end=8), pad=[1, 0]), 3000)
chain("pad_slice", lambda m, v, i: m.op("slice", m.op("pad", v, pad=[1, 1, 1, 1]), dim=i % 2, start=1, end=9 - 4 * (i % 2 == 0)), 200)
chain("select", lambda m, v, i: m.op("expand", m.op("select", v, dim=0, index=i % 4), shape=[4, 8]), 5000)
chain("flip", lambda m, v, i: m.op("flip", v, dims=[i % 2]), 5000)
chain("roll", lambda m, v, i: m.op("roll", v, shifts=[1 + i % 3], dims=[i % 2]), 2000)
chain("repeat", lambda m, v, i: m.op("slice", m.op("repeat", v, repeats=[1, 2]), dim=1, start=i % 3, end=8 + i % 3), 1000)
chain("repeat_interleave", lambda m, v, i: m.op("slice", m.op("repeat_interleave", v, repeats=2, dim=0), dim=0, start=0, end=4), 1000)
chain("tril", lambda m, v, i: m.op(("tril", "triu")[i % 2], v, diagonal=i % 5 - 2), 5000)
chain("concat_slice", lambda m, v, i: m.op("slice", m.op("concat", v, "x", dim=1), dim=1, start=2, end=10), 1000)
chain("concat_itself", lambda m, v, i: m.op("slice", m.op("concat", v, v, dim=0), dim=0, start=1, end=5), 1000)
chain("stack_select", lambda m, v, i: m.op("select", m.op("stack", v, "x", dim=0), dim=0, index=0), 5000)
chain("concat_grows", lambda m, v, i: m.op("concat", v, "x", dim=0), 2000)
chain("stack_grows", lambda m, v, i: m.op("unsqueeze", v, dim=0), 300)


def split_concat(m, v, i):
    s = m.op("split", v, split_sizes=[2, 6], dim=1)
    return m.op("concat", s + ".1", s + ".0", dim=1)


def chunk_add(m, v, i):
    s = m.op("chunk", v, chunks=2, dim=1)
    return m.op("concat", m.op("add", s + ".0", s + ".1"), m.op("mul", s + ".0", s + ".1"), dim=1)


chain("split_concat", split_concat, 1000)
chain("chunk_add", chunk_add, 1000)
chain("get_item", lambda m, v, i: m.op("get_item", m.op("tuple", v, "x"), index=i % 2), 5000)
chain("stack", lambda m, v, i: m.op("stack", v, v, dim=0), 48)
chain("reshape_symbolic", lambda m, v, i: m.op("reshape", m.op("permute", m.op("reshape", v, shape=["t*3", 5, "u"]), dims=[2, 0, 1]),
                                               shape=["u", "t", 15]), 100, shape=("u", "t", 15), symbols={"u": {}, "t": {}})
chain("slice_symbolic", lambda m, v, i: m.op("pad", m.op("slice", v, dim=0, start=1, end="t"), pad=[0, 0, 0, 1]), 500,
      shape=("t", 8), symbols={"t": {"min": 4}})

# --- reductions and composite ops

for op in ["sum", "mean", "amax", "prod", "logsumexp", "var"]:
    chain(op, lambda m, v, i, op=op: m.op("add", "x", m.op(op, v, dim=[1], keepdim=True)), 3000)
for op in ["any", "argmax"]:
    chain(op, lambda m, v, i, op=op: m.op("where", m.op("gt", m.op(op, v, dim=1 if op == "argmax" else [1], keepdim=True), 0), v, "x"), 2000)
chain("sum_columns", lambda m, v, i: m.op("sub", v, m.op("sum", v, dim=[i % 2], keepdim=True)), 2000)
chain("cumsum", lambda m, v, i: m.op("cumsum", v, dim=i % 2), 5000)
chain("softmax", lambda m, v, i: m.op("softmax", v, dim=-1 - i % 2), 3000)
chain("log_softmax", lambda m, v, i: m.op("log_softmax", v, dim=1), 3000)
chain("layer_norm", lambda m, v, i: m.op("layer_norm", v, normalized_shape=[8]), 3000)
chain("rms_norm", lambda m, v, i: m.op("rms_norm", v, normalized_shape=[8], eps=1e-5), 3000)
chain("group_norm", lambda m, v, i: m.op("group_norm", v, num_groups=2), 2000, shape=(2, 4, 5))
chain("instance_norm", lambda m, v, i: m.op("instance_norm", v), 2000, shape=(2, 4, 5))
chain("softmax_by_hand", lambda m, v, i: m.op("div", m.op("exp", v), m.op("sum", m.op("exp", v), dim=[1], keepdim=True)), 1000)
chain("norm_by_hand", lambda m, v, i: m.op("mul", v, m.op("rsqrt", m.op("mean", m.op("mul", v, v), dim=[1], keepdim=True))), 1000)

# --- matrices, windows

chain("matmul", lambda m, v, i: m.op("matmul", v, "x"), 2000, shape=(8, 8))
chain("matmul.itself", lambda m, v, i: m.op("matmul", v, v), 2000, shape=(8, 8))
chain("bmm", lambda m, v, i: m.op("bmm", v, "x"), 2000, shape=(2, 8, 8))
chain("linear", lambda m, v, i: m.op("linear", v, m.constant(f"w{i}", (64, 64), "bfloat16")), 2000, shape=(16, 64), dtype="bfloat16")
chain("linear_gelu", lambda m, v, i: m.op("gelu", m.op("linear", v, m.constant(f"w{i}", (64, 64), "bfloat16"))), 1000, shape=(16, 64), dtype="bfloat16")
chain("addmm", lambda m, v, i: m.op("addmm", "x", v, "x"), 2000, shape=(8, 8))
chain("conv1d", lambda m, v, i: m.op("conv1d", v, m.constant(f"w{i}", (4, 4, 3)), padding=1), 1000, shape=(1, 4, 16))
chain("conv2d", lambda m, v, i: m.op("relu", m.op("conv2d", v, m.constant(f"w{i}", (4, 4, 3, 3)), padding=1)), 500, shape=(1, 4, 8, 8))
chain("conv3d", lambda m, v, i: m.op("conv3d", v, m.constant(f"w{i}", (2, 2, 3, 3, 3)), padding=1), 300, shape=(1, 2, 4, 4, 4))
chain("conv_transpose2d", lambda m, v, i: m.op("conv_transpose2d", v, m.constant(f"w{i}", (4, 4, 3, 3)), padding=1), 300, shape=(1, 4, 8, 8))
chain("depthwise", lambda m, v, i: m.op("conv2d", v, m.constant(f"w{i}", (8, 1, 3, 3)), padding=1, groups=8), 300, shape=(1, 8, 8, 8))
chain("attention", lambda m, v, i: m.op("scaled_dot_product_attention", v, v, v, is_causal=bool(i % 2)), 200, shape=(1, 2, 16, 16), dtype="float16")
chain("max_pool2d", lambda m, v, i: m.op("max_pool2d", v, kernel_size=3, stride=1, padding=1), 500, shape=(1, 2, 8, 8))
chain("avg_pool1d", lambda m, v, i: m.op("avg_pool1d", v, kernel_size=3, stride=1, padding=1), 500, shape=(1, 2, 16))
chain("interpolate", lambda m, v, i: m.op("interpolate", m.op("slice", v, dim=2, start=0, end=4), size=[8, 8], mode=("nearest", "bilinear")[i % 2]), 200, shape=(1, 2, 8, 8))
chain("adaptive_avg_pool2d", lambda m, v, i: m.op("adaptive_avg_pool2d", v, output_size=[5, 5]), 500, shape=(1, 2, 5, 5))
chain("swiglu", lambda m, v, i: m.op("swiglu", v, "x"), 2000)
chain("geglu_halves", lambda m, v, i: m.op("concat", m.op("geglu", v), m.op("reglu", v), dim=1), 500)
chain("rope", lambda m, v, i: m.op("rope", v, "x", "x"), 1000)

# --- indices, quantized values, other ops

chain("gather", lambda m, v, i: m.op("gather", v, "x", dim=0), 3000, shape=(8, 8), dtype="int64")
chain("index_select", lambda m, v, i: m.op("index_select", v, v, dim=0), 3000, shape=(8,), dtype="int64")
chain("embedding", lambda m, v, i: m.op("select", m.op("embedding", "x", v), dim=0, index=i % 8), 2000, shape=(8,), dtype="int64")
chain("scatter", lambda m, v, i: m.op("scatter", v, "x", v, dim=0), 2000, shape=(8, 8), dtype="int64")
chain("index_put", lambda m, v, i: m.op("index_put", v, v, "x"), 2000, shape=(8,), dtype="int64")
chain("sort", lambda m, v, i: m.op("sort", v, dim=1) + ".0", 3000)
chain("topk", lambda m, v, i: m.op("topk", v, k=8, dim=1) + ".0", 3000)
chain("quantize", lambda m, v, i: m.op("dequantize", m.op("quantize", v, "s", dtype="int8"), "s", dtype="float32") if i else m.op("add", v, m.constant("s", (1,))), 1000)
chain("all_reduce", lambda m, v, i: m.op("all_reduce", v, group="world", reduce_op="sum"), 3000)
chain("opaque", lambda m, v, i: custom(m, v, symbol="launch_it"), 5000)
chain("expression", lambda m, v, i: custom(m, v, "elemwise", expr="$0 * sigmoid($0)"), 5000)


def custom(m, v, pattern=None, **attrs):
    node = m.op("my.op", v, **attrs)
    m.nodes[-1]["outputs"] = [{"name": node, "dtype": "float32", "shape": [4, 8]}]
    if pattern:
        m.nodes[-1]["pattern"] = pattern
    return node


@family("chain.longer_expression", 3000)
def longer_expression(size, rng):
    m = Model()
    custom(m, m.input(), "elemwise", expr=" + ".join(f"$0 * {i}.5" for i in range(size)))
    return m.output("n0")


@family("chain.deeper_expression", 3000)
def deeper_expression(size, rng):
    m = Model()
    custom(m, m.input(), "elemwise", expr="sigmoid(" * size + "$0" + ")" * size)
    return m.output("n0")


@family("chain.int4_linear", 300)
def int4_linear(size, rng):
    def step(m, v, i):
        w, s = m.constant(f"w{i}", (64, 64), "int4"), m.constant(f"s{i}", (64, 2))
        return m.op("static_quant_linear_int4", m.op("quantize", v, "z", dtype="int8"), w, s, None, "z", group_size=32, out_dtype="float32")
    m = Model()
    m.constant("z", (1,))
    v = m.input("x", (16, 64))
    for i in range(size):
        v = step(m, v, i)
    return m.output(v)


@family("chain.fp8_linear", 300)
def fp8_linear(size, rng):
    m = Model()
    v = m.input("x", (16, 64))
    m.constant("z", (1,))
    for i in range(size):
        v = m.op("fp8_linear", m.op("quantize", v, "z", dtype="float8_e4m3fn"), m.constant(f"w{i}", (64, 64), "float8_e4m3fn"),
                 "z", "z", out_dtype="float32")
    return m.output(v)


@family("chain.mxfp4_linear", 300)
def mxfp4_linear(size, rng):
    m = Model()
    v = m.input("x", (16, 64), "bfloat16")
    for i in range(size):
        v = m.op("mxfp4_linear", v, m.constant(f"w{i}", (64, 64), "float4_e2m1fn"), m.constant(f"s{i}", (64, 2), "float8_e8m0fnu"),
                 out_dtype="bfloat16")
    return m.output(v)


@family("chain.grouped_matmul", 300)
def grouped_matmul(size, rng):
    m = Model()
    v = m.input("x", (16, 64), "bfloat16")
    m.input("offsets", (4,), "int32")
    for i in range(size):
        v = m.op("grouped_matmul", v, m.constant(f"w{i}", (4, 64, 64), "bfloat16"), "offsets")
    return m.output(v)
