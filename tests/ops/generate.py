#!/usr/bin/env python3
"""generate.py [FAMILY...]: writes FAMILY.json, FAMILY.in.safetensors and FAMILY.out.safetensors beside itself.

Each model is one family of the op table: many nodes, each an op with operands of some dtypes and some attributes, and
what PyTorch (2.15, on the CPU) computes for it. Operands hold the awkward values: zeros of both signs, infinities, NaN,
halves to be rounded, the limits of the integers. The declared outputs are PyTorch's types, so reading a model tests type
inference. Where PyTorch refuses a combination there is no node. Composites are float64 results, rounded once."""
import json, math, os, struct, sys

import torch
import torch.nn.functional as F

DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
          "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2"}
FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
ALL = FLOATS + INTEGERS + ["bool"]


def dtype(name):
    return getattr(torch, name)


def name_of(t):
    return str(t.dtype).removeprefix("torch.")


def save(path, tensors):
    header, blob = {}, b""
    for name in sorted(tensors):
        t = tensors[name].contiguous()
        data = bytes(t.reshape(-1).view(torch.uint8).tolist())
        header[name] = {"dtype": DTYPES[name_of(t)], "shape": list(t.shape),
                        "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


class Model:
    def __init__(self, name):
        self.name, self.inputs, self.nodes, self.outputs = name, {}, [], {}

    def input(self, name, tensor):
        self.inputs[name] = tensor
        return name

    def node(self, op, operands, attrs, answer):
        """`operands` are input names, numbers, or None; `answer` is called with their values."""
        values = [self.inputs[o] if isinstance(o, str) else o for o in operands]
        try:
            want = answer(*values)
        except (RuntimeError, TypeError, NotImplementedError):
            return  # PyTorch refuses it
        name = f"{op}_{len(self.nodes)}"
        node = {"name": name, "op": op, "inputs": operands}
        if attrs:
            node["attrs"] = attrs
        node["outputs"] = [{"name": name, "dtype": name_of(want), "shape": list(want.shape)}]
        self.nodes.append(node)
        self.outputs[name] = want

    def write(self, folder):
        path = os.path.join(folder, self.name)
        inputs = [{"name": n, "dtype": name_of(t), "shape": list(t.shape)} for n, t in self.inputs.items()]
        lines = lambda items: ",\n".join("  " + json.dumps(item) for item in items)
        with open(path + ".json", "w", encoding="utf-8") as f:
            f.write(f'{{"fusec": 1, "name": "{self.name}",\n "inputs": [\n{lines(inputs)}],\n "nodes": [\n'
                    f'{lines(self.nodes)}],\n "outputs": {json.dumps([n["name"] for n in self.nodes])}}}\n')
        save(path + ".in.safetensors", self.inputs)
        save(path + ".out.safetensors", self.outputs)


def awkward(name, n=32):
    """n values of a dtype, the awkward ones first."""
    if name == "bool":
        return torch.arange(n) % 3 == 0
    if name in FLOATS:
        values = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 1.0, -1.0, math.inf, -math.inf, math.nan, 3.0, -3.0, 20.5,
                  -20.5, 100.0, -100.0, 1e-3, -1e-3]
        return torch.cat([torch.tensor(values, dtype=torch.float64), torch.randn(n - len(values)).double() * 2]).to(
            dtype(name))
    limits = torch.iinfo(dtype(name))
    values = torch.randint(max(limits.min, -120), 120, (n,)).to(dtype(name))
    values[:4] = torch.tensor([limits.min, limits.max, 0, 1])
    return values


def shuffled(t):
    return t[torch.randperm(len(t))]


def in_float64(function, to):
    """The function of the operands in float64, rounded to a dtype."""
    def run(*operands):
        wide = [o.double() if torch.is_tensor(o) and o.is_floating_point() else o for o in operands]
        return function(*wide).to(dtype(to))
    return run


def unary():
    m = Model("unary")
    functional = {op: getattr(F, op) for op in "relu6 silu selu mish hardswish hardsigmoid".split()}
    functional["log_sigmoid"] = F.logsigmoid
    plain = ("neg abs sign floor ceil round trunc relu square exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal "
             "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid logical_not bitwise_not isnan "
             "isinf").split() + list(functional)
    for d in ALL:
        x = m.input("x_" + d, awkward(d))
        for op in plain:
            m.node(op, [x], {}, functional.get(op) or getattr(torch, op))
        m.node("identity", [x], {}, torch.clone)
        m.node("hardtanh", [x], {}, F.hardtanh)
        if d != "uint8":  # there PyTorch wraps a negative bound
            m.node("hardtanh", [x], {"min_val": -2.5, "max_val": 1.5}, lambda t: F.hardtanh(t, -2.5, 1.5))
        for bounds in ({"min": -1, "max": 2}, {"min": -0.5}, {"max": 2.5}, {"min": 3, "max": 1}, {"min": "nan"}):
            given = {k: float(v) if v == "nan" else v for k, v in bounds.items()}
            m.node("clamp", [x], bounds, lambda t: torch.clamp(t, **given))
        for to in DTYPES:  # a float outside an integer's range has no specified value
            if d not in FLOATS or to not in INTEGERS:
                m.node("cast", [x], {"dtype": to}, lambda t: t.to(dtype(to)))
    for d in FLOATS:
        x = "x_" + d
        finite = m.input("finite_" + d, torch.nan_to_num(awkward(d), 0.7, 30, -30).clamp(-30, 30))
        for kind in ("none", "tanh"):
            m.node("gelu", [finite], {"approximate": kind}, in_float64(lambda t: F.gelu(t, approximate=kind), d))
        m.node("leaky_relu", [x], {}, F.leaky_relu)
        m.node("leaky_relu", [x], {"negative_slope": 0.3}, lambda t: F.leaky_relu(t, 0.3))
        m.node("elu", [x], {}, F.elu)
        m.node("elu", [x], {"alpha": 1.7}, lambda t: F.elu(t, 1.7))
        m.node("softplus", [x], {}, F.softplus)
        m.node("softplus", [x], {"beta": 2, "threshold": 3.5}, lambda t: F.softplus(t, 2, 3.5))
    fractions = m.input("fractions", torch.tensor([0, 1.5, -1.5, 2.5, 100.7, -100.7, 126.9, 0.99]))
    positive = m.input("positive", m.inputs[fractions].abs())
    for to in INTEGERS:
        m.node("cast", [positive if to == "uint8" else fractions], {"dtype": to}, lambda t: t.to(dtype(to)))
    return m


def binary():
    m = Model("binary")
    for d in ALL:
        m.input("x_" + d, awkward(d))
        m.input("y_" + d, shuffled(awkward(d)))
        m.input("scalar_" + d, torch.tensor({"bool": 1, "uint8": 3}.get(d, -3), dtype=dtype(d)))
    pairs = [("x_" + d, "y_" + d) for d in ALL]
    pairs += [("x_int32", "y_bfloat16"), ("x_float16", "y_bfloat16"), ("x_uint8", "y_int8"), ("x_bool", "y_int16"),
              ("x_int64", "y_float32"), ("x_float32", "scalar_float64"), ("x_bfloat16", "scalar_float32"),
              ("scalar_bfloat16", "x_float16"), ("x_int8", "scalar_int64"), ("x_int8", "scalar_float16"),
              ("x_bool", "scalar_int32")]
    numbers = [("x_" + d, v) for d in ALL for v in (2, 3, 0.5, -3, -1.5)]
    numbers += [(v, "y_" + d) for d in ("float32", "bfloat16", "int32", "int8") for v in (2, 2.5)]
    needs_tensors = "maximum minimum atan2 logical_and logical_or logical_xor".split()

    def answer(op, **options):
        def run(a, b):
            if op in needs_tensors:
                a, b = torch.as_tensor(a), torch.as_tensor(b)
            return getattr(torch, op)(a, b, **options)
        return run

    for op in ("add sub mul div pow eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor").split() + needs_tensors:
        for operands in pairs + numbers:
            infinite_root = op == "pow" and operands == ("x_float16", 0.5)  # (-inf)^0.5: PyTorch's dtypes disagree
            if not infinite_root:
                m.node(op, list(operands), {}, answer(op))
    nonzero = []
    for d in FLOATS + INTEGERS:
        y = m.inputs["y_" + d]
        divisor = m.input("divisor_" + d, y if d in FLOATS else torch.where(y == 0, torch.full_like(y, 7), y))
        nonzero.append(("x_" + d, divisor))
    nonzero += [("x_int8", "divisor_int32"), (2.5, "divisor_float32")] + numbers
    nonzero = [(a, b) for a, b in nonzero if isinstance(b, str) and b.startswith("divisor") or not isinstance(b, str)]
    for operands in nonzero:
        for mode in ("trunc", "floor"):
            m.node("div", list(operands), {"rounding_mode": mode}, answer("div", rounding_mode=mode))
        for op in ("remainder", "fmod"):
            m.node(op, list(operands), {}, answer(op))
    for d in FLOATS:
        m.node("prelu", ["x_" + d, "y_" + d], {}, in_float64(lambda x, slope: torch.where(x > 0, x, x * slope), d))
    m.input("left", torch.randn(3, 1, 4))
    m.input("right", torch.randn(5, 1))
    m.node("add", ["left", "right"], {}, torch.add)
    m.node("lt", ["right", "left"], {}, torch.lt)
    return m


def ternary():
    m = Model("ternary")
    kinds = ["float32", "float16", "bfloat16", "float64", "int32", "int8", "uint8", "bool"]
    cond = m.input("cond", torch.rand(32) < 0.5)
    for d in kinds:
        a = m.input("a_" + d, awkward(d))
        b, w = m.input("b_" + d, shuffled(awkward(d))), m.input("w_" + d, shuffled(awkward(d)))
        for operands in ([cond, a, b], [cond, a, 2.5], [cond, a, 2], [cond, -1, a]):
            m.node("where", operands, {}, torch.where)
        for weight in (0.25, 0.75, -0.4, 1.5, w):
            m.node("lerp", [a, b, weight], {}, torch.lerp)
        for op, values in (("addcmul", (1, -2.5)), ("addcdiv", (1, 0.3))):
            for value in values:
                m.node(op, [a, b, w], {"value": value}, lambda *t: getattr(torch, op)(*t, value=value))
    m.node("where", [cond, "a_float16", "b_bfloat16"], {}, torch.where)
    m.node("where", [cond, "a_int32", "b_bfloat16"], {}, torch.where)
    m.node("where", [cond, 1, 2.5], {}, torch.where)
    for op, last in (("addcmul", "w_int32"), ("addcdiv", "w_float16")):
        m.node(op, ["a_int32", "b_float32", last], {"value": 0.5}, lambda *t: getattr(torch, op)(*t, value=0.5))
    return m


def creation():
    m = Model("creation")
    for d in ALL:
        for value in (0, 1, 2.7, True, 3):
            m.node("full", [], {"shape": [2, 3], "value": value, "dtype": d},
                   lambda: torch.full((2, 3), value, dtype=dtype(d)))
        for start, end, step in ((0, 10, 1), (3, 20, 4), (10, -7, -3), (0, 0, 1), (0, 1, 0.25), (0.5, 7.3, 1.7),
                                 (2, -1, -0.5), (-3, 90, 7)):
            if d != "bool" and (d != "uint8" or min(start, end) >= 0):
                m.node("arange", [], {"start": start, "end": end, "step": step, "dtype": d},
                       lambda: torch.arange(start, end, step, dtype=dtype(d)))
    m.node("full", [], {"shape": [2], "value": "-inf", "dtype": "float16"},
           lambda: torch.full((2,), -math.inf, dtype=torch.float16))
    m.node("full", [], {"shape": [], "value": "nan", "dtype": "bool"}, lambda: torch.tensor(math.nan).bool())
    return m


def reduced(op, x, attrs):
    """PyTorch's answer, dims given as a list throughout."""
    dims = attrs.get("dim", list(range(x.dim())))
    dims = sorted(d % max(x.dim(), 1) for d in (dims if isinstance(dims, list) else [dims]))
    options = {k: v for k, v in attrs.items() if k in ("keepdim", "correction")}
    if op == "prod":  # one dimension at a time there
        wide = x.double() if x.is_floating_point() else x.long()
        for d in reversed(dims):
            wide = torch.prod(wide, d, **options)
        return wide.to(x.dtype) if x.is_floating_point() else wide
    if op == "vector_norm":
        return torch.linalg.vector_norm(x, float(attrs["ord"]), dims, **options)
    result = getattr(torch, op)(x, dim=tuple(dims), **options)
    return result.bool() if op in ("any", "all") else result  # uint8 gives uint8 there


def reduction():
    m = Model("reduction")
    for d in FLOATS:
        m.input("x_" + d, torch.randn(3, 5, 4).to(dtype(d)))
    for d in INTEGERS:
        m.input("x_" + d, torch.randint(0 if d == "uint8" else -5, 5, (3, 5, 4)).to(dtype(d)))
    bools = torch.rand(3, 5, 4) < 0.5
    bools[1, :, 2], bools[0, 3] = True, False
    m.input("x_bool", bools)
    special = torch.randn(3, 5, 4)
    special[0, 1, 2], special[1], special[2, 0, 0] = math.nan, -math.inf, math.inf
    m.input("x_special", special)
    operands = list(m.inputs)
    m.input("scalar", torch.tensor(2.5))
    m.input("tie", torch.tensor([[1.0, 3, 3], [2, 2, 1]]))
    m.input("far", torch.randn(4, 50) + 1000)  # the variance is small beside the mean
    for op in "sum mean amax amin prod any all logsumexp var std".split():
        for x in operands:
            for attrs in ({}, {"dim": 1}, {"dim": [0, -1], "keepdim": True}, {"dim": [-1]}, {"keepdim": True}):
                m.node(op, [x], attrs, lambda t: reduced(op, t, attrs))
        m.node(op, ["scalar"], {}, lambda t: reduced(op, t, {}))
    for op in ("var", "std"):
        for correction in (0, 2, 0.5, 5, 7):
            attrs = {"dim": [1], "correction": correction}
            m.node(op, ["x_float32"], attrs, lambda t: reduced(op, t, attrs))
        m.node(op, ["far"], {"dim": [1]}, in_float64(lambda t: getattr(torch, op)(t, 1), "float32"))
    for order in (0, 1, 2, 3, 0.5, -1, "inf", "-inf"):
        for x in ["x_" + d for d in FLOATS] + ["x_special"]:
            for attrs in ({"ord": order}, {"ord": order, "dim": [0, 2]}):
                m.node("vector_norm", [x], attrs, lambda t: reduced("vector_norm", t, attrs))
    for op in ("argmax", "argmin"):
        for x in operands + ["tie"]:
            for attrs in ({}, {"dim": 1}, {"dim": -1, "keepdim": True}, {"keepdim": True}):
                m.node(op, [x], attrs, lambda t: getattr(torch, op)(t, **attrs))
    for op in ("any", "all"):  # no dimension at all
        m.node(op, ["x_special"], {"dim": []}, lambda t: getattr(torch, op)(t, dim=()))
    for op in ("cumsum", "cumprod"):
        for x in operands + ["scalar"]:
            for d in (0, -1):
                m.node(op, [x], {"dim": d}, lambda t: getattr(torch, op)(t, d))
    return m


def composite():
    m = Model("composite")
    for d in FLOATS:
        def tensor(name, t):
            return m.input(f"{name}_{d}", t.to(dtype(d)))

        def node(op, operands, attrs, function):
            m.node(op, operands, attrs, in_float64(function, d))

        x = tensor("x", torch.randn(3, 6, 5) * 2)
        last, last_bias = tensor("last", torch.randn(5)), tensor("last_bias", torch.randn(5))
        two, two_bias = tensor("two", torch.randn(6, 5)), tensor("two_bias", torch.randn(6, 5))
        channel, shift = tensor("channel", torch.randn(6)), tensor("shift", torch.randn(6))
        variance = tensor("variance", torch.rand(6) + 0.5)
        for dim in (0, 1, -1):
            node("softmax", [x], {"dim": dim}, lambda t: torch.softmax(t, dim))
            node("log_softmax", [x], {"dim": dim}, lambda t: torch.log_softmax(t, dim))
        norm = F.layer_norm
        node("layer_norm", [x, last, last_bias], {"normalized_shape": [5]}, lambda t, w, b: norm(t, [5], w, b))
        node("layer_norm", [x, None, last_bias], {"normalized_shape": [5]}, lambda t, w, b: norm(t, [5], w, b))
        node("layer_norm", [x, two, two_bias], {"normalized_shape": [6, 5]}, lambda t, w, b: norm(t, [6, 5], w, b))
        node("layer_norm", [x], {"normalized_shape": [6, 5], "eps": 0.1}, lambda t: norm(t, [6, 5], eps=0.1))
        eps = None if d == "float64" else 2.0**-23
        node("rms_norm", [x, last], {"normalized_shape": [5]}, lambda t, w: F.rms_norm(t, [5], w, eps))
        node("rms_norm", [x], {"normalized_shape": [6, 5], "eps": 0.01}, lambda t: F.rms_norm(t, [6, 5], eps=0.01))
        for groups in (1, 2, 3, 6):
            node("group_norm", [x, channel, shift], {"num_groups": groups},
                 lambda t, w, b: F.group_norm(t, groups, w, b))
        node("group_norm", [x], {"num_groups": 2, "eps": 0.2}, lambda t: F.group_norm(t, 2, eps=0.2))
        node("instance_norm", [x, channel, shift], {}, lambda t, w, b: F.instance_norm(t, weight=w, bias=b))
        node("instance_norm", [x], {"eps": 0.3}, lambda t: F.instance_norm(t, eps=0.3))
        node("batch_norm", [x, channel, shift, shift, variance], {},
             lambda t, w, b, mean, var: F.batch_norm(t, mean, var, w, b))
        node("batch_norm", [x, None, None, shift, variance], {"eps": 0.1},
             lambda t, w, b, mean, var: F.batch_norm(t, mean, var, eps=0.1))
    infinite = torch.randn(2, 4)
    infinite[0], infinite[1, 2] = -math.inf, math.inf
    m.input("infinite", infinite)
    m.input("scalar", torch.tensor(2.0))
    for op in ("softmax", "log_softmax"):
        for x, dim in (("infinite", 1), ("infinite", 0), ("scalar", 0)):
            m.node(op, [x], {"dim": dim}, lambda t: getattr(torch, op)(t, dim))
    return m


def gated_answer(op, attrs, both):
    """`both`: gate and up are one operand."""
    def run(*operands):
        if both:
            x = operands[0]
            parts = [x[..., 0::2], x[..., 1::2]] if attrs.get("interleaved") else list(x.chunk(2, -1))
            gate, up = reversed(parts) if attrs.get("swapped") else parts
        else:
            gate, up = operands
        if "limit" in attrs:
            gate, up = gate.clamp(max=attrs["limit"]), up.clamp(-attrs["limit"], attrs["limit"])
        activation = {"swiglu": lambda: gate * torch.sigmoid(attrs.get("alpha", 1) * gate),
                      "geglu": lambda: F.gelu(gate, approximate=attrs.get("approximate", "none")),
                      "reglu": lambda: F.relu(gate)}[op]()
        return activation * (up + attrs.get("up_offset", 0))
    return run


def gated():
    m = Model("gated")
    for d in FLOATS:
        both = m.input("both_" + d, (torch.randn(4, 10) * 3).to(dtype(d)))
        gate, up = (m.input(f"{n}_{d}", (torch.randn(4, 5) * 3).to(dtype(d))) for n in ("gate", "up"))
        for op, own in (("swiglu", {"alpha": 1.702}), ("geglu", {"approximate": "tanh"}), ("reglu", {})):
            for attrs in ({}, own, {"limit": 1.5, "up_offset": 1}, own | {"limit": 2.0}):
                m.node(op, [gate, up], attrs, in_float64(gated_answer(op, attrs, False), d))
                for layout in ({}, {"swapped": True}, {"interleaved": True}, {"swapped": True, "interleaved": True}):
                    m.node(op, [both], attrs | layout, in_float64(gated_answer(op, attrs | layout, True), d))
    return m


def turned(x, interleaved):
    if interleaved:
        return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def rotary():
    m = Model("rotary")
    for d in FLOATS:
        x = m.input("x_" + d, torch.randn(2, 3, 4, 6).to(dtype(d)))
        for i, shape in enumerate([(4, 6), (2, 1, 4, 6), (1, 1, 1, 6)]):
            angle = torch.randn(shape)
            cos = m.input(f"cos{i}_{d}", angle.cos().to(dtype(d)))
            sin = m.input(f"sin{i}_{d}", angle.sin().to(dtype(d)))
            for interleaved in (False, True):
                m.node("rope", [x, cos, sin], {"interleaved": interleaved},
                       in_float64(lambda t, c, s: t * c + turned(t, interleaved) * s, d))
    return m


def spread(t, kind):
    """A scale or zero point as a tensor of [4, 8], in float32."""
    t = t.float()
    if kind == "rows":
        t = t[:, None]
    if kind == "block":
        t = t.repeat_interleave(4, 1)
    return t.expand(4, 8)


def quantized_to(to, kind):
    def run(x, scale, zero_point=None):
        v = x.float() / spread(scale, kind)
        v = v if dtype(to).is_floating_point else torch.round(v)
        if zero_point is not None:
            v = v + spread(zero_point, kind)
        limits = torch.finfo(dtype(to)) if dtype(to).is_floating_point else torch.iinfo(dtype(to))
        v = v.double().clamp(limits.min, limits.max)
        return v.float().to(dtype(to)) if dtype(to).is_floating_point else v.long().to(dtype(to))
    return run


def dequantized_to(to, kind):
    def run(q, scale, zero_point=None):
        v = q.float() if zero_point is None else q.float() - spread(zero_point, kind)
        return (v * spread(scale, kind)).to(dtype(to))
    return run


def quantize():
    m = Model("quantize")
    layouts = {"rows": {"axis": 0}, "block": {"block": 4}}
    scales = {"one": torch.tensor(0.7), "one_of_rank_1": torch.tensor([1.0]), "last": torch.rand(8) + 0.5,
              "rows": torch.rand(4) + 0.5, "broadcast": torch.rand(4, 1) + 0.5, "block": torch.rand(4, 2) + 0.5}
    zero_points = {"one": torch.tensor(3).to(torch.int8), "last": torch.randint(-5, 5, (8,)).to(torch.int8),
                   "rows": torch.randint(0, 5, (4,)).to(torch.int32), "block": torch.randint(-5, 5, (4, 2)).to(torch.int8)}
    for kind, t in scales.items():
        m.input("scale_" + kind, t)
    for kind, t in zero_points.items():
        m.input("zero_" + kind, t)
    stored = {"int8": torch.randint(-128, 127, (4, 8)).to(torch.int8),
              "int32": torch.randint(-100000, 100000, (4, 8)).to(torch.int32),
              "float8_e4m3fn": (torch.randn(4, 8) * 20).to(torch.float8_e4m3fn)}
    for d, t in stored.items():
        m.input("stored_" + d, t)
    for d in ("float32", "float16", "bfloat16"):
        x = torch.randn(4, 8) * 60
        x[0, :2], x[1, :3] = torch.tensor([1e4, -1e4]), torch.tensor([0.5, 1.5, -2.5])
        m.input("x_" + d, x.to(dtype(d)))
        for kind in scales:
            extras = [["scale_" + kind]] + ([["scale_" + kind, "zero_" + kind]] if kind in zero_points else [])
            for extra in extras:
                for to in ("int8", "uint8", "int16", "int32", "float8_e4m3fn", "float8_e5m2"):
                    m.node("quantize", ["x_" + d] + extra, layouts.get(kind, {}) | {"dtype": to}, quantized_to(to, kind))
                for q in stored:
                    m.node("dequantize", ["stored_" + q] + extra, layouts.get(kind, {}) | {"dtype": d},
                           dequantized_to(d, kind))
    return m


FAMILIES = [unary, binary, ternary, creation, reduction, composite, gated, rotary, quantize]


def main():
    for family in FAMILIES:
        if not sys.argv[1:] or family.__name__ in sys.argv[1:]:
            torch.manual_seed(11)
            m = family()
            m.write(os.path.dirname(os.path.abspath(__file__)))
            print(f"{m.name}: {len(m.nodes)} nodes")


if __name__ == "__main__":
    main()
