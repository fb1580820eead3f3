"""Families that reduce along rows or are built of such: reductions, norms, gated units, rotary, quantize."""
import math

import torch
import torch.nn.functional as F

from model import FLOATS, INTEGERS, Model, dtype, in_float64


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
