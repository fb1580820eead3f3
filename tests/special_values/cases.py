"""The operands and ops that tests/check_special_values.py runs, and what each op is called in PyTorch."""
import math
from dataclasses import dataclass, field

DTYPES = ["float32", "float16", "bfloat16", "float64"]
# The greatest number, the least normal one and the least of all.
LIMITS = {"float32": (3.4028234663852886e38, 2.0**-126, 2.0**-149),
          "float16": (65504.0, 2.0**-14, 2.0**-24),
          "bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-133),
          "float64": (1.7976931348623157e308, 2.0**-1022, 2.0**-1074)}
CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "bool": "BOOL", "int64": "I64"}


@dataclass
class Case:
    """A node: `torch` is the same as a Python expression over the operands x, or a and b, F and torch. `tolerance` is
    relative to a result, or to 1 where that is less than 1 and `absolute` is set."""
    name: str
    op: str
    torch: str
    attrs: dict = field(default_factory=dict)
    numbers: list = field(default_factory=list)  # operands behind the tensor
    tolerance: float = 1
    absolute: float = 0


def both_signs(*values):
    return [sign * v for v in values for sign in (1.0, -1.0)]


def unary_values(dtype):
    greatest, normal, least = LIMITS[dtype]
    fixed = [0.0, math.inf, least, normal - least, normal, greatest, 1.0, 0.5, 0.0009765625, 3.0, 6.0, 11.5, 20.0, 88.5,
             89.0, 104.0, 1000.0, 30000.0]
    beyond = [] if dtype != "float64" else [709.5, 710.0, 746.0]
    return both_signs(*fixed, *beyond) + [math.nan]


def binary_values(dtype):
    greatest, normal, least = LIMITS[dtype]
    return both_signs(0.0, math.inf, least, normal, greatest, 1.0, 0.5, 3.0) + [math.nan]


def binary_operands(dtype):
    values = binary_values(dtype)
    return [a for a in values for _ in values], [b for _ in values for b in values]


LENGTHS = [1, 2, 33, 768]


def kept(n):
    """Of results of n elements a row, those that are compared."""
    return sorted({0, 1, n // 2 - 1, n // 2, n // 2 + 1, n - 1} & set(range(n)))


def rows(dtype, n):
    """Rows of n elements by name. Their sums are the same in whichever order they are made."""
    greatest, normal, least = LIMITS[dtype]
    one = lambda special, others: [special if i == n // 2 else others for i in range(n)]
    halves = lambda a, b: [a if i % 2 == 0 else b for i in range(n)]
    found = {"zeros": [0.0] * n, "negative zeros": [-0.0] * n, "zeros of both signs": halves(-0.0, 0.0),
             "ones": [1.0] * n, "minus ones": [-1.0] * n, "one and zeros": one(1.0, 0.0),
             "one and negative zeros": one(1.0, -0.0), "infinity and ones": one(math.inf, 1.0),
             "-infinity and ones": one(-math.inf, 1.0), "infinities": [math.inf] * n, "-infinities": [-math.inf] * n,
             "infinities of both signs": halves(math.inf, -math.inf), "NaN and ones": one(math.nan, 1.0),
             "NaN and -infinities": one(math.nan, -math.inf), "least": [least] * n, "minus least": [-least] * n,
             "normal": [normal] * n, "quarters of the greatest": [greatest / 4] * n,
             "nearly quarters of the greatest": [greatest * 0.24979256443853318] * n, "greatest": [greatest] * n,
             "minus greatest": [-greatest] * n, "quarter of the greatest and zeros": one(greatest / 4, 0.0),
             "infinity and -infinities": one(math.inf, -math.inf)}
    return found


def plain(op, torch="", **options):
    return Case(op, op, torch or f"torch.{op}(x)", **options)


def unary_cases():
    cases = [plain(op) for op in
             "neg abs sign floor ceil round trunc relu exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos "
             "tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid square logical_not isnan isinf".split()]
    cases += [plain(op, f"F.{op}(x)") for op in "relu6 silu selu mish hardswish hardsigmoid hardtanh softplus elu "
              "leaky_relu".split()]
    cases += [plain("log_sigmoid", "F.logsigmoid(x)"), plain("identity", "x.clone()"),
              Case("hardtanh_0_6", "hardtanh", "F.hardtanh(x, 0.0, 6.0)", {"min_val": 0, "max_val": 6}),
              Case("hardtanh_below_0", "hardtanh", "F.hardtanh(x, -2.0, 0.0)", {"min_val": -2, "max_val": 0}),
              Case("clamp_at_0", "clamp", "torch.clamp(x, min=0.0)", {"min": 0}),
              Case("clamp_to_0", "clamp", "torch.clamp(x, max=0.0)", {"max": 0}),
              Case("clamp", "clamp", "torch.clamp(x, -1.0, 2.0)", {"min": -1.0, "max": 2.0}),
              Case("leaky_relu_negative", "leaky_relu", "F.leaky_relu(x, -0.5)", {"negative_slope": -0.5}),
              Case("elu_half", "elu", "F.elu(x, 0.5)", {"alpha": 0.5}),
              Case("softplus_1000", "softplus", "F.softplus(x, 1.0, 1000.0)", {"threshold": 1000.0}),
              Case("softplus_steep", "softplus", "F.softplus(x, 2.0, 3.5)", {"beta": 2.0, "threshold": 3.5}),
              Case("gelu", "gelu", "F.gelu(x)", {}, absolute=1e-6),
              Case("gelu_tanh", "gelu", "F.gelu(x, approximate='tanh')", {"approximate": "tanh"}, absolute=1e-6)]
    cases += [Case(f"pow_{p}", "pow", f"torch.pow(x, {p})", {}, [p])
              for p in (0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 2.5, -3.0)]
    cases += [Case(f"{op}_{n}", op, f"{expression}", {}, [n]) for op, n, expression in
              (("add", 0.0, "x + 0.0"), ("sub", 0.0, "x - 0.0"), ("mul", 0.0, "x * 0.0"), ("mul", 1.0, "x * 1.0"),
               ("mul", -1.0, "x * -1.0"), ("div", 0.0, "x / 0.0"), ("add", -0.0, "x + -0.0"))]
    cases += [Case(f"cast_{d}", "cast", f"x.to(torch.{d})", {"dtype": d}) for d in DTYPES]
    return cases


def binary_cases():
    cases = [Case(op, op, f"torch.{op}(a, b)") for op in
             "add sub mul div pow maximum minimum remainder fmod atan2 eq ne lt le gt ge logical_and logical_or "
             "logical_xor".split()]
    return cases + [Case("div_trunc", "div", "torch.div(a, b, rounding_mode='trunc')", {"rounding_mode": "trunc"}),
                    Case("div_floor", "div", "torch.div(a, b, rounding_mode='floor')", {"rounding_mode": "floor"}),
                    Case("prelu", "prelu", "torch.where(a > 0, a, b * a)")]


def reduction_cases():
    dims = {"dim": [1]}
    cases = [Case(op, op, f"torch.{op}(x, dim=1)", dims) for op in "sum mean amax amin logsumexp".split()]
    cases += [Case(op, op, f"torch.{op}(x, dim=1)", {"dim": [1]}) for op in "prod argmax argmin any all".split()]
    cases += [Case(f"{op}_{c}", op, f"torch.{op}(x, dim=1, correction={c})", {"dim": [1], "correction": c})
              for op in ("var", "std") for c in (0, 1)]
    cases += [Case(f"vector_norm_{o}", "vector_norm", f"torch.linalg.vector_norm(x, {o!r}, dim=1)".replace(
                  "inf", "float('inf')"), {"dim": [1], "ord": "inf" if math.isinf(o) else o})
              for o in (0.0, 1.0, 2.0, 3.0, math.inf)]
    cases += [Case(op, op, f"torch.{op}(x, dim=1)", {"dim": 1}) for op in ("cumsum", "cumprod")]
    cases += [Case(op, op, f"F.{op}(x, dim=1)", {"dim": 1}) for op in ("softmax", "log_softmax")]
    cases += [Case("layer_norm", "layer_norm", "F.layer_norm(x, x.shape[1:])", {"normalized_shape": ["n"]}),
              Case("rms_norm", "rms_norm", "F.rms_norm(x, x.shape[1:])", {"normalized_shape": ["n"]}),
              Case("layer_norm_no_eps", "layer_norm", "F.layer_norm(x, x.shape[1:], eps=1e-30)",
                   {"normalized_shape": ["n"], "eps": 1e-30})]
    return cases


def column_cases():
    """The same, of columns: the schedules are others."""
    wanted = ("sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "softmax")
    cases = []
    for case in reduction_cases():
        if case.op in wanted:
            attrs = {k: ([0] if v == [1] else 0 if k == "dim" else v) for k, v in case.attrs.items()}
            cases.append(Case(case.name + "_columns", case.op, case.torch.replace("dim=1", "dim=0"), attrs))
    return cases


def norm_cases():
    """Of x[rows, channels, length]."""
    return [Case("group_norm", "group_norm", "F.group_norm(x, 2)", {"num_groups": 2}),
            Case("instance_norm", "instance_norm", "F.instance_norm(x)", {})]
