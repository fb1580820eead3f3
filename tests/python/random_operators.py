"""The operators of random_modules.py: each function draws a call, as (text, operands, whether the result is exact)."""

OPERATORS = []


def operator(weight):
    def register(function):
        OPERATORS.extend([function] * weight)
        return function

    return register


@operator(4)
def smooth(g):
    x = g.float()
    name = g.random.choice(
        "exp sin cos tanh sigmoid erf expm1 log1p sqrt rsqrt square atan sinh asinh special_sinc special_erfc".split()
    )
    inside = {"log1p": "{}.abs()", "sqrt": "{}.abs() + 0.5", "rsqrt": "{}.abs() + 0.5"}.get(name, "{}").format(x.name)
    name = name.replace("special_", "special.")
    return f"torch.{name}({inside})", [x], False


@operator(3)
def activation(g):
    x = g.float()
    names = "gelu silu relu leaky_relu elu softplus hardtanh hardswish mish relu6 selu logsigmoid"
    name = g.random.choice(names.split())
    return f"F.{name}({x.name})", [x], name in ("relu", "hardtanh", "relu6")


@operator(3)
def exact_unary(g):
    x = g.any(lambda v: v.dtype != "bool")
    name = g.random.choice(("neg", "abs", "clone", "relu", "positive", "square"))
    return f"torch.{name}({x.name})", [x], name != "square" or not x.is_float


@operator(5)
def arithmetic(g):
    x, y = g.any(), g.any()
    sign = g.random.choice("+ + - *".split())
    return f"{x.name} {sign} {y.name}", [x, y], sign != "*" or not (x.is_float or y.is_float)


@operator(3)
def with_number(g):
    x = g.any()
    texts = ("{} + 2", "{} * 0.5", "3 - {}", "{} / 4", "{} * 3", "{} + 0.25", "torch.add({}, 1, alpha=2)")
    text = g.random.choice(texts)
    return text.format(x.name), [x], text not in ("{} / 4", "{} * 0.5", "{} * 3") or not x.is_float


@operator(2)
def division(g):
    x, y = g.any(), g.any()
    return f"{x.name} / ({y.name}.abs() + 1)", [x, y], False


@operator(2)
def integer_division(g):
    x, y = (g.exact(lambda v: v.dtype in ("int64", "int32", "uint8")) for _ in range(2))
    text = g.random.choice(("{} // ({} % 3 + 1)", "{} % ({} % 5 + 1)", "torch.fmod({}, {} % 4 + 1)"))
    return text.format(x.name, y.name), [x, y], True


@operator(2)
def bits(g):
    x, y = (g.exact(lambda v: not v.is_float) for _ in range(2))
    sign = g.random.choice(("&", "|", "^", "<<", ">>"))
    if sign in ("<<", ">>") and "bool" in (x.dtype, y.dtype):  # PyTorch cannot trace it
        return None
    other = f"({y.name} & 3)" if sign in ("<<", ">>") else y.name
    return f"{x.name} {sign} {other}", [x, y], True


@operator(2)
def logic(g):
    x, y = g.exact(), g.exact()
    name = g.random.choice(("logical_and", "logical_or", "logical_xor"))
    return f"torch.{name}({x.name}, {y.name})", [x, y], True


@operator(1)
def invert(g):
    x = g.exact(lambda v: not v.is_float)
    return f"~{x.name}", [x], True


@operator(3)
def comparison(g):
    x, y = g.exact(), g.exact()
    sign = g.random.choice("< <= > >= == !=".split())
    other = g.random.choice((y.name, y.name, "0", "0.5", "1"))
    return f"{x.name} {sign} {other}", [x, y], True


@operator(3)
def where(g):
    mask, x, y = g.exact(), g.any(), g.any()
    other = g.random.choice((y.name, y.name, "0", "1.5"))
    return f"torch.where({mask.name}{'' if mask.dtype == 'bool' else ' > 0'}, {x.name}, {other})", [mask, x, y], True


@operator(2)
def extremes(g):
    x, y = g.any(), g.any()
    texts = ("torch.maximum({}, {})", "torch.minimum({}, {})", "torch.clamp({}, -1, 1)", "torch.clamp({}, min=0)")
    text = g.random.choice(texts)
    return text.format(x.name, y.name), [x, y], True


@operator(2)
def rounding(g):
    x = g.exact()
    name = g.random.choice(("floor", "ceil", "round", "trunc", "sign", "sgn", "frac", "isnan", "isfinite", "signbit"))
    return f"torch.{name}({x.name})", [x], True


@operator(3)
def cast(g):
    from random_modules import DTYPES, FLOATS

    x = g.any()
    targets = DTYPES if x.exact else FLOATS
    if x.is_float:  # a negative number as uint8 is undefined
        targets = [d for d in targets if d != "uint8"]
    dtype = g.random.choice(targets)
    return f"{x.name}.to(torch.{dtype})", [x], dtype not in ("float16", "bfloat16")


@operator(3)
def reduction(g):
    x = g.any()
    name = g.random.choice("sum mean amax amin sum prod var std logsumexp norm".split())
    if name in ("mean", "var", "std", "logsumexp", "norm") and not x.is_float:
        name = "sum"
    if name == "norm":
        name = "linalg.vector_norm"
    if name == "prod":
        return f"torch.prod({x.name}, {g.dim(x)})", [x], not x.is_float
    dims = [g.dim(x)] if g.random.random() < 0.5 else g.random.sample(range(x.rank), g.random.randint(0, x.rank))
    keep = g.random.choice(("", ", keepdim=True"))
    text = f"torch.{name}({x.name}, {dims}{keep})" if dims else f"torch.{name}({x.name})"
    if not dims and name in ("logsumexp",):
        return None
    return text, [x], name in ("amax", "amin") or name == "sum" and not x.is_float


@operator(1)
def truth(g):
    x = g.exact()
    name = g.random.choice(("any", "all", "count_nonzero"))
    return f"torch.{name}({x.name}" + (f", {g.dim(x)})" if g.random.random() < 0.5 else ")"), [x], True


@operator(2)
def position(g):
    x = g.exact(lambda v: v.rank and v.dtype != "bool")
    text = g.random.choice(
        (
            "torch.argmax({}, {})",
            "torch.argmin({}, {}, keepdim=True)",
            "torch.max({}, {})[0]",
            "torch.min({}, {}).indices",
            "torch.sort({}, {})[0]",
            "torch.sort({}, {}, stable=True)[1]",
            "torch.topk({}, 1, {})[0]",
        )
    )
    return text.format(x.name, g.dim(x)), [x], True


@operator(1)
def scan(g):
    x = g.any(lambda v: v.rank)
    return f"torch.cumsum({x.name}, {g.dim(x)})", [x], not x.is_float


@operator(2)
def normalized(g):
    x = g.float(1)
    text = g.random.choice(
        (
            f"torch.softmax({x.name}, {g.dim(x)})",
            f"torch.log_softmax({x.name}, {g.dim(x)})",
            f"F.layer_norm({x.name}, {x.name}.shape[-1:])",
            f"F.rms_norm({x.name}, {x.name}.shape[-1:])",
            f"F.normalize({x.name}, dim={g.dim(x)})",
        )
    )
    if "_norm(" in text and x.tensor.shape[-1] < 2:  # the mean of one: what is left is rounding
        return None
    return text, [x], False


@operator(3)
def product(g):
    x = g.float(1)
    y = g.any(lambda v: v.dtype == x.dtype and v.rank)
    texts = ["{0} @ {1}", "{0} @ {1}.mT", "{0}.mT @ {1}", "F.linear({0}, {1})", "torch.outer({0}, {1})"]
    text = g.random.choice([*texts, "F.linear({0}, {1}, {1}[:, 0])"])
    return text.format(x.name, y.name), [x, y], False


@operator(2)
def convolution(g):
    x = g.float(2)
    if 0 in x.tensor.shape:  # PyTorch disagrees with itself about the result's shape
        return None
    if x.rank == 2:
        return f"F.conv1d({x.name}.unsqueeze(0), torch.ones(2, {x.name}.shape[0], 1, dtype={x.name}.dtype))", [x], False
    if x.rank == 3:
        w = f"torch.ones(3, {x.name}.shape[1], 2, dtype={x.name}.dtype) / 4"
        text = g.random.choice(("F.conv1d({0}, {1}, padding=1)", "F.conv1d({0}, {1}, stride=2)"))
        return text.format(x.name, w), [x], False
    w = f"torch.ones(2, {x.name}.shape[1], 2, 2, dtype={x.name}.dtype) / 4"
    text = g.random.choice(("F.conv2d({0}, {1}, padding=1)", "F.max_pool2d({0}, 2)", "F.avg_pool2d({0}, 2)"))
    return text.format(x.name, w), [x], False


@operator(8)
def view(g):
    x = g.any()
    dim = g.dim(x)
    n = x.name
    texts = [f"{n}.unsqueeze({g.random.randint(0, x.rank)})", f"{n}.reshape(-1)", f"{n}.squeeze()", f"{n}[None]"]
    if x.rank:
        texts += [
            f"{n}.narrow({dim}, 0, 1)",
            f"{n}.select({dim}, -1)",
            f"{n}[1:]",
            f"{n}[..., ::2]",
            f"{n}[..., :-1]",
            f"{n}.flip({dim})",
            f"{n}.roll(1, {dim})",
            f"{n}.chunk(2, {dim})[0]",
            f"{n}.unbind({dim})[0]",
            f"{n}.repeat_interleave(2, {dim})",
            f"{n}.unfold({dim}, 1, 1)",
            f"F.pad({n}, (1, 2))",
            f"{n}.split(2, {dim})[-1]",
        ]
    if x.rank >= 2:
        order = g.random.sample(range(x.rank), x.rank)
        texts += [
            f"{n}.permute({order})",
            f"{n}.transpose(0, {dim})",
            f"{n}.reshape({n}.shape[1], -1)",
            f"{n}.flatten(0, 1)",
            f"{n}.mT",
            f"{n}.diagonal()",
            f"torch.tril({n})",
            f"torch.triu({n}, 1)",
            f"{n}.transpose(0, 1).contiguous()",
            f"{n}[1:, ::2]",
        ]
    return g.random.choice(texts), [x], True


@operator(2)
def expand(g):
    x = g.any()
    y = g.any(lambda v: v.rank >= x.rank)
    texts = ("{0}.expand_as({1})", "{0}.unsqueeze(0).expand(3, *{0}.shape)", "{0}.broadcast_to({1}.shape)")
    text = g.random.choice(texts)
    return text.format(x.name, y.name), [x], True


@operator(3)
def joined(g):
    x = g.any(lambda v: v.rank)
    y = g.any(lambda v: v.rank == x.rank)
    text = g.random.choice(("torch.cat([{0}, {1}], {2})", "torch.stack([{0}, {1}], {2})", "torch.cat([{0}, {0}], {2})"))
    return text.format(x.name, y.name, g.dim(x)), [x, y], True


@operator(3)
def indexed(g):
    x = g.any(lambda v: v.rank and v.tensor.numel())
    i = g.exact(lambda v: v.dtype in ("int64", "int32") and v.rank == 1)
    dim = g.dim(x)
    wide = f"{i.name}.long()"
    texts = [
        f"torch.index_select({x.name}, {dim}, {i.name} % {x.name}.shape[{dim}])",
        f"{x.name}[{wide} % {x.name}.shape[0]]",
        f"{x.name}.index_fill({dim}, {wide} % {x.name}.shape[{dim}], 2)",
        f"torch.gather({x.name}, {dim}, torch.zeros_like({x.name}, dtype=torch.int64))",
        f"{x.name}.index_add(0, {wide}[:1] % {x.name}.shape[0], {x.name}[:1])",
        f"torch.scatter({x.name}, {dim}, torch.zeros_like({x.name}, dtype=torch.int64)[:1], {x.name}[:1])",
    ]
    if x.rank == 2 and x.is_float:
        texts.append(f"F.embedding({i.name} % {x.name}.shape[0], {x.name})")
    return g.random.choice(texts), [x, i], True


@operator(2)
def masked(g):
    x = g.any()
    mask = g.exact(lambda v: v.dtype == "bool")
    text = g.random.choice(("{0}.masked_fill({1}, 1)", "torch.where({1}, {0}, {0} + 1)"))
    return text.format(x.name, mask.name), [x, mask], True


@operator(1)
def created(g):
    x = g.any(lambda v: v.rank)
    text = g.random.choice(
        (
            "torch.arange({0}.shape[0]) + {0}.shape[-1]",
            "torch.zeros_like({0})",
            "torch.ones({0}.shape[-1], 2)",
            "torch.full_like({0}, 3)",
            "{0}.new_full((2, {0}.shape[0]), 1)",
            "torch.eye({0}.shape[-1])",
            "torch.arange(0, {0}.shape[-1], 2, dtype=torch.int32)",
        )
    )
    return text.format(x.name), [], True


@operator(4)
def in_place(g):
    writable = [v for v in g.values if not (v.tensor.is_leaf and v.tensor.requires_grad or v.is_expanded)]
    x = g.random.choice(writable)
    y = g.any() if x.is_float else g.exact(lambda v: not (v.is_float and x.dtype == "uint8"))
    texts = ["{0}.add_({1})", "{0}.mul_({1})", "{0}.add_(1)", "{0}.copy_({1})", "{0}.zero_()", "{0}.fill_(2)"]
    if x.rank:
        texts += ["{0}.select(0, 0).add_(1)", "{0}[:1].mul_(2)", "{0}[..., ::2].zero_()", "{0}[1:].copy_({0}[:1])"]
    if x.exact and x.rank:
        texts += ["{0}.masked_fill_({0} > 0, 1)", "{0}.clamp_(min=0)"]
    if x.is_float:
        texts += ["{0}.exp_()", "{0}.sigmoid_()", "{0}.relu_()"]
    text = g.random.choice(texts)
    exact = not any(part in text for part in ("exp_", "sigmoid_")) and ("mul_" not in text or not x.is_float)
    return text.format(x.name, y.name), [x, y], exact
