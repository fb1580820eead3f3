"""Elementwise families, and tensors out of nothing."""
import math

import torch
import torch.nn.functional as F

from model import ALL, DTYPES, FLOATS, INTEGERS, Model, awkward, dtype, in_float64, shuffled


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
