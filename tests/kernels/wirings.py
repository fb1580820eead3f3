"""Softmax, norms and attention as front ends decompose them, with random neighbours: grouped heads, decoding, masks of all
kinds, RoPE before, soft caps, sinks on either side, weights and logarithms of sums as outputs, residuals before and
quantization after. Each is one group of one launch (two if several blocks share the keys of few rows, or few long rows;
three if float32 heads are predicted to be faster so), and results equal the reference's, except that a few quantized
values may differ by a rounding. Attention with heads that no kernel has a form for becomes products on tensor cores.
With one query, operands computed for the products (RoPE, quantized keys and values) take a bounded factor more
instructions than plain operands."""
import random
import re

from kernels.case import RESULTS, Case

class Model:
    """Nodes and inputs with names of their own."""

    def __init__(self, name):
        self.name, self.inputs, self.nodes, self.outputs, self.symbols = name, [], [], [], {}

    def input(self, name, dtype, *shape):
        self.inputs.append({"name": name, "dtype": dtype, "shape": list(shape)})
        return name

    def __call__(self, op, *inputs, **attrs):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append({"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})})
        return name

    def json(self):
        return {"fusec": 1, "name": self.name, "symbols": self.symbols, "inputs": self.inputs, "nodes": self.nodes,
                "outputs": self.outputs}


def softmax(m, x, way):
    if way == "op":
        return m("softmax", x, dim=-1)
    greatest = m("amax", x, dim=[-1], keepdim=True)
    e = m("exp", m("sub", x, greatest))
    return m("div", e, m("sum", e, dim=[-1], keepdim=True))


def rope(m, x, name, dtype, length, depth):
    cos, sin = m.input(name + "_cos", dtype, length, depth), m.input(name + "_sin", dtype, length, depth)
    half = depth // 2
    low = m("slice", x, dim=-1, start=0, end=half)
    high = m("slice", x, dim=-1, start=half, end=depth)
    turned = m("concat", m("neg", high), low, dim=-1)
    return m("add", m("mul", x, cos), m("mul", turned, sin))


def attention(rng, number):
    """A model, and its allowed numbers of launches."""
    dtype = rng.choice(["float16", "bfloat16", "float32"])
    kv_heads, group = rng.choice([1, 2, 3]), rng.choice([1, 1, 2, 4])
    heads, batch = kv_heads * group, rng.choice([1, 2])
    depth = rng.choice([16, 24, 40, 64, 80, 128, 256])
    value_depth = depth if rng.random() < 0.8 else rng.choice([16, 48, 128])
    queries = rng.choice([1, 1, 7, 33, 64, 130])
    keys = queries if rng.random() < 0.4 and queries > 1 else rng.choice([5, 65, 128, 200, 2049 if queries == 1 else 96])
    m = Model(f"attention_{number}")
    query_length, key_length = queries, keys
    if rng.random() < 0.2:
        m.symbols = {"t": {"min": 1, "max": 4096, "hint": keys}}
        key_length = "t"
    q = m.input("q", dtype, batch, heads, query_length, depth)
    k = m.input("k", dtype, batch, kv_heads, key_length, depth)
    v = m.input("v", dtype, batch, kv_heads, key_length, value_depth)
    if rng.random() < 0.25:
        q = rope(m, q, "q", dtype, query_length, depth)
        k = rope(m, k, "k", dtype, key_length, depth)
    if group > 1:
        way = rng.choice(["expand", "repeat_interleave"])
        grouped = []
        for x, d in ((k, depth), (v, value_depth)):
            if way == "expand":
                wide = m("expand", m("unsqueeze", x, dim=2), shape=[batch, kv_heads, group, key_length, d])
                grouped.append(m("reshape", wide, shape=[batch, heads, key_length, d]))
            else:
                grouped.append(m("repeat_interleave", x, repeats=group, dim=1))
        k, v = grouped
    scale = round(depth ** -0.5, 4)
    if rng.random() < 0.3:
        q = m("mul", q, scale)
        s = m("matmul", q, m("transpose", k, dim0=-2, dim1=-1))
    else:
        s = m("mul", m("matmul", q, m("transpose", k, dim0=-2, dim1=-1)), scale)
    upcast = dtype != "float32" and rng.random() < 0.5
    if upcast:
        s = m("cast", s, dtype="float32")
    if rng.random() < 0.2:
        s = m("mul", m("tanh", m("div", s, 30.0)), 30.0)
    mask = rng.choice(["none", "additive", "where", "causal", "window", "alibi"])
    score_dtype = "float32" if upcast else dtype
    if mask == "additive":
        s = m("add", s, m.input("mask", score_dtype, *rng.choice([(batch, 1, query_length, key_length),
                                                                  (query_length, key_length)])))
    elif mask == "where":
        keep = m.input("mask", "bool", *rng.choice([(batch, 1, query_length, key_length), (1, 1, 1, key_length)]))
        s = m("where", keep, s, -30000.0)
    elif mask != "none":
        rows = m("unsqueeze", m("arange", start=0, end=query_length, step=1, dtype="int64"), dim=1)
        columns = m("arange", start=0, end=key_length, step=1, dtype="int64")
        if mask == "alibi":
            away = m("mul", m("cast", m("sub", columns, rows), dtype=score_dtype), 0.01)
            slopes = m.input("slopes", score_dtype, heads, 1, 1)
            s = m("add", s, m("mul", away, slopes))
        else:
            seen = m("le", columns, rows)
            if mask == "window":
                seen = m("logical_and", seen, m("gt", columns, m("sub", rows, 16)))
            s = m("where", seen, s, -30000.0)
    sink = rng.random() < 0.2
    if sink:
        slot = m("reshape", m.input("sink", score_dtype, heads), shape=[1, heads, 1, 1])
        slot = m("expand", slot, shape=[batch, heads, query_length, 1])
        first = queries > 1 and rng.random() < 0.4
        s = m("concat", *((slot, s) if first else (s, slot)), dim=-1)
    logarithm = m("logsumexp", s, dim=[-1], keepdim=rng.random() < 0.5) if not sink and rng.random() < 0.2 else None
    p = softmax(m, s, rng.choice(["op", "op", "primitives"]))
    if sink:
        p = m("slice", p, dim=-1, start=1) if first else m("slice", p, dim=-1, start=0, end=key_length)
    used = rng.choice(["no", "no", "output", "output", "dropout", "cast", "both"])
    if upcast:
        p32, p = p, m("cast", p, dtype=dtype)
    if used in ("dropout", "both"):
        dropped = m("mul", p, m.input("keep", dtype, batch, heads, query_length, key_length))
        o = m("matmul", dropped, v)
        if used == "both":
            m.outputs.append(p)
        else:
            m.outputs.append(rng.choice([p, dropped]))
    else:
        o = m("matmul", p, v)
        if used == "output":
            m.outputs.append(p)
        elif used == "cast":
            m.outputs.append(p32 if upcast else m("cast", p, dtype="float32" if dtype != "float32" else "float16"))
    if rng.random() < 0.5:
        o = m("reshape", m("transpose", o, dim0=1, dim1=2), shape=[batch, query_length, heads * value_depth])
    m.outputs.insert(0, o)
    if logarithm:
        m.outputs.append(logarithm)
    # Separate float32 products on tensor cores may be predicted to be faster than one FFMA kernel: for large heads, and
    # for weights with dropout that are stored, if they are stored twice or there are few queries and large values.
    apart = dtype == "float32" and (depth == 256 or used == "both" or (used == "dropout" and value_depth > 64))
    may_share = keys >= 128 or m.symbols  # a symbolic number of keys may be large
    return m, dict.fromkeys(("sm_80", "sm_90a"), 3 if apart else 2 if may_share else 1)


def rms(m, x, weight, dtype):
    wide = m("cast", x, dtype="float32")
    mean = m("mean", m("mul", wide, wide), dim=[-1], keepdim=True)
    y = m("mul", wide, m("rsqrt", m("add", mean, 1e-6)))
    return m("mul", m("cast", y, dtype=dtype), weight)


def layer_norm(m, x, weight, dtype):
    wide = m("cast", x, dtype="float32")
    centred = m("sub", wide, m("mean", wide, dim=[-1], keepdim=True))
    variance = m("mean", m("mul", centred, centred), dim=[-1], keepdim=True)
    y = m("mul", centred, m("rsqrt", m("add", variance, 1e-5)))
    return m("cast", m("mul", y, weight), dtype=dtype)


def quantize(m, x, symmetric):
    wide = m("cast", x, dtype="float32")
    if symmetric:
        scale = m("div", m("clamp", m("amax", m("abs", wide), dim=[-1], keepdim=True), min=1e-5), 127.0)
        codes = m("clamp", m("round", m("div", wide, scale)), min=-128, max=127)
        return [m("cast", codes, dtype="int8"), scale]
    low, high = m("amin", wide, dim=[-1], keepdim=True), m("amax", wide, dim=[-1], keepdim=True)
    scale = m("div", m("clamp", m("sub", high, low), min=1e-5), 255.0)
    codes = m("clamp", m("round", m("div", m("sub", wide, low), scale)), min=0, max=255)
    return [m("cast", codes, dtype="uint8"), scale, low]


def rows(rng, number):
    dtype = rng.choice(["float16", "bfloat16", "float32"])
    long = rng.random() < 0.2
    count = rng.choice([1, 2, 3]) if long else rng.choice([1, 2, 5, 64, 300])
    length = rng.choice([70001, 100003, 131072, 200000]) if long else rng.choice([2, 3, 33, 128, 1001, 4096, 9999, 40000])
    if not long and count * length > 600000:
        count = 7
    m = Model(f"rows_{number}")
    x = m.input("x", dtype, count, length)
    if rng.random() < 0.5:
        x = m("add", x, m.input("r", dtype, count, length))
        if rng.random() < 0.7:
            m.outputs.append(x)
    if rng.random() < 0.3:
        x = m(rng.choice(["silu", "gelu", "tanh"]), x)
    way = rng.choice(["rms", "layer_norm", "softmax", "log_softmax", "none"])
    if way == "rms":
        x = rms(m, x, m.input("w", dtype, length), dtype)
    elif way == "layer_norm":
        x = layer_norm(m, x, m.input("w", "float32", length), dtype)
    elif way == "softmax":
        x = softmax(m, x, "primitives")
        if rng.random() < 0.5:
            x = m("mul", x, m.input("keep", dtype, count, length))
    elif way == "log_softmax":
        x = x if dtype == "float32" else m("cast", x, dtype="float32")
        shifted = m("sub", x, m("amax", x, dim=[-1], keepdim=True))
        x = m("sub", shifted, m("log", m("sum", m("exp", shifted), dim=[-1], keepdim=True)))
        if rng.random() < 0.5:
            loss = m("neg", m("gather", x, m.input("target", "int64", count, 1), dim=-1))
            m.outputs.append(loss)
        x = x if dtype == "float32" else m("cast", x, dtype=dtype)
    behind = rng.choice(["no", "quantize", "quantize", "asymmetric", "sum"])
    # Quantized values may differ if a float32 value is halfway, and if a 16-bit step exceeds a quantization step.
    if behind in ("quantize", "asymmetric") and (dtype == "float32" or "softmax" in way):
        behind = "sum"
    if not m.nodes:
        x = m("neg", x)
    if way == "none" and behind == "no":
        behind = "sum"
    if behind in ("quantize", "asymmetric"):
        if rng.random() < 0.3 and m.nodes:
            m.outputs.append(x)
        m.outputs += quantize(m, x, behind == "quantize")
    elif behind == "sum":
        m.outputs += [x, m("sum", x, dim=[-1])]
    else:
        m.outputs.append(x)
    # Without clusters, few long rows take several launches with several blocks a row, or expensive parts are separate.
    # The longest rows are shared by more blocks than a cluster has, and a launch clears their counters.
    return m, {"sm_80": 5 if count < 10 and length > 30000 else 1, "sm_90a": 2 if count < 10 and length > 100000 else 1}


def large_heads():
    """The attention op with heads of more than 256."""
    def model(name, dtype, heads, groups, queries, keys, depth, columns, mask=None, **attrs):
        m = Model(name)
        operands = [m.input("q", dtype, 1, heads, queries, depth), m.input("k", dtype, 1, groups, keys, depth),
                    m.input("v", dtype, 1, groups, keys, columns)]
        if mask:
            operands.append(m.input("mask", mask, queries, keys))
        m.outputs.append(m("scaled_dot_product_attention", *operands, **attrs))
        return m

    return [model("vae", "float16", 1, 1, 45, 45, 512, 512),
            model("latent", "bfloat16", 16, 1, 1, 96, 576, 512, enable_gqa=True),
            model("causal", "float16", 2, 2, 40, 33, 320, 320, is_causal=True),
            model("flags", "float16", 2, 2, 40, 50, 512, 512, "bool"),
            model("added", "bfloat16", 2, 2, 40, 50, 512, 512, "bfloat16", scale=0.04)]


FAMILIES = {"attention": attention, "rows": rows}


def one_query(before):
    """Decoding with grouped heads; `before` names the ops before queries, or keys and values."""
    m = Model("decoding_" + before)
    depth, keys, dtype = 128, 1025, "bfloat16"
    q = m.input("q", dtype, 1, 8, 1, depth)
    codes = before if before in ("int8", "float8_e4m3fn") else None
    k, v = (m.input(name, codes or dtype, 1, 2, keys, depth) for name in "kv")
    if before == "rope":
        q = rope(m, q, "q", dtype, 1, depth)
    elif before in ("halves", "interleaved"):
        cos, sin = m.input("cos", dtype, 1, depth), m.input("sin", dtype, 1, depth)
        q = m("rope", q, cos, sin, interleaved=before == "interleaved")
    elif codes:
        scale = m.input("scale", "float32", 1)
        k, v = m("dequantize", k, scale, dtype=dtype), m("dequantize", v, scale, dtype=dtype)
    m.outputs.append(m("scaled_dot_product_attention", q, k, v, enable_gqa=True))
    return m


# Ops before the products of one query, and the allowed ratio of instructions.
BEFORE_ONE_QUERY = {"rope": 1.3, "halves": 1.3, "interleaved": 1.3, "int8": 2.6, "float8_e4m3fn": 4.5}


def few_codes_differ(model):
    """Whether only a few quantized values differ, because a value before them rounds differently. With rounding after
    each node all must agree."""
    made = {node["name"]: node.get("attrs", {}).get("dtype") for node in model.nodes}

    def holds(text):
        differ = re.search(r'^output "(\w+)".*; (\d+) elements differ', text, re.MULTILINE)
        return bool(differ) and made[differ[1]] in ("int8", "uint8") and int(differ[2]) <= 8
    return holds


def wired(number):
    family = list(FAMILIES)[number % len(FAMILIES)]
    model, most = FAMILIES[family](random.Random(number), number)
    for target, launches in most.items():
        yield Case(f"{family} {number}", model.json(), targets=(target,), inputs="--random=3", group=family,
                   sizes={symbol: bounds["hint"] for symbol, bounds in model.symbols.items()},
                   most=RESULTS | {"launches of the partition": launches}, or_rounded=few_codes_differ(model))


def of_query(before, most):
    plain = Case("", one_query("nothing").json(), inputs="--random=3")
    return Case(f"one query, {before}", one_query(before).json(), inputs="--random=3", beside=plain, group="one query",
                most={"instructions": lambda run: most * run.beside["instructions"], "local bytes": None, "spilled bytes": 0})


def cases():
    found = [Case(f"large heads, {model.name}", model.json(), inputs="--random=3", most=RESULTS, exactly={"launches": 2},
                  least={"least multiply-adds of a kernel": 1}, group="large heads") for model in large_heads()]
    found += [of_query(before, most) for before, most in BEFORE_ONE_QUERY.items()]
    return found + [case for number in range(1000, 1150) for case in wired(number)]
