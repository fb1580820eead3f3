"""Graphs by their wiring: many pieces, trees, diamonds, tuples, symbols, ranks, outputs, constants."""
import json

from hostile.model import Case, Model, family

# --- wirings


@family("wired.doubling", 20000)
def doubling(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("add", v, v)
    return m.output(v)


@family("wired.doubling_movement", 500)
def doubling_movement(size, rng):
    m = Model()
    v = m.input("x", (8, 8))
    for _ in range(size):
        v = m.op("add", m.op("permute", v, dims=[1, 0]), m.op("flip", v, dims=[0]))
    return m.output(v)


@family("wired.fibonacci", 20000)
def fibonacci(size, rng):
    m = Model()
    a = b = m.input()
    for _ in range(size):
        a, b = b, m.op("mul", a, b)
    return m.output(b)


@family("wired.diamonds", 5000)
def diamonds(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("add", m.op("exp", v), m.op("neg", v))
    return m.output(v)


@family("wired.reduced_diamonds", 1000)
def reduced_diamonds(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("add", m.op("softmax", v, dim=1), m.op("sum", v, dim=[1], keepdim=True))
    return m.output(v)


@family("wired.residual", 2000)
def residual(size, rng):
    m = Model()
    v = m.input("x", (16, 64))
    for i in range(size):
        w = m.constant(f"w{i}", (64, 64))
        v = m.op("add", v, m.op("gelu", m.op("linear", m.op("layer_norm", v, normalized_shape=[64]), w)))
    return m.output(v)


@family("wired.all_before", 600)
def all_before(size, rng):
    m = Model()
    values = [m.input()]
    for _ in range(size):
        v = values[0]
        for w in values[1:]:
            v = m.op("add", v, w) if w is values[-1] else v
        values.append(m.op("add", v, values[rng.randrange(len(values))]))
    return m.output(m.op("concat", *values, dim=0))


@family("wired.dense_net", 300)
def dense_net(size, rng):
    m = Model()
    values = [m.input("x", (4, 8))]
    for _ in range(size):
        values.append(m.op("slice", m.op("concat", *values, dim=1), dim=1, start=0, end=8))
    return m.output(values[-1])


@family("wired.tree_of_adds", 20000)
def tree_of_adds(size, rng):
    m = Model()
    values = [m.input(f"x{i}") for i in range(min(size, 5000))]
    while len(values) > 1:
        values = [m.op("add", *values[i:i + 2]) if len(values[i:i + 2]) == 2 else values[i] for i in range(0, len(values), 2)]
    return m.output(values[0])


@family("wired.wide", 20000)
def wide(size, rng):
    m = Model()
    m.input()
    return m.output(*[m.op("exp", "x") if i % 2 else m.op("add", "x", float(i)) for i in range(size)])


@family("wired.independent", 10000)
def independent(size, rng):
    m = Model()
    return m.output(*[m.op("relu", m.op("neg", m.input(f"x{i}"))) for i in range(size)])


@family("wired.independent_products", 1000)
def independent_products(size, rng):
    m = Model()
    m.input("x", (16, 64), "bfloat16")
    return m.output(*[m.op("linear", "x", m.constant(f"w{i}", (64, 64), "bfloat16")) for i in range(size)])


@family("wired.independent_reductions", 2000)
def independent_reductions(size, rng):
    m = Model()
    return m.output(*[m.op("sum", m.op("square", m.input(f"x{i}", (4, 8 + i % 7))), dim=[0, 1]) for i in range(size)])


@family("wired.random", 5000)
def random_graph(size, rng):
    m = Model()
    values = [m.input("x", (8, 8)), m.input("y", (8, 8))]
    for _ in range(size):
        op = rng.choice(["add", "mul", "exp", "neg", "softmax", "permute", "maximum", "matmul", "sum", "flip"])
        a, b = (values[-1 - min(int(rng.expovariate(0.2)), len(values) - 1)] for _ in range(2))
        if op in ("add", "mul", "maximum", "matmul"):
            values.append(m.op(op, a, b))
        elif op == "softmax":
            values.append(m.op(op, a, dim=1))
        elif op == "permute":
            values.append(m.op(op, a, dims=[1, 0]))
        elif op == "sum":
            values.append(m.op("add", b, m.op(op, a, dim=[1], keepdim=True)))
        elif op == "flip":
            values.append(m.op(op, a, dims=[0]))
        else:
            values.append(m.op(op, a))
    return m.output(*values[-3:])


@family("wired.random_movement", 400)
def random_movement(size, rng):
    m = Model()
    v = m.input("x", (6, 10))
    shapes = [[6, 10], [60], [2, 3, 10], [5, 12], [15, 4], [3, 4, 5]]
    for _ in range(size):
        shape = rng.choice(shapes)
        v = m.op("reshape", v, shape=shape)
        dims = list(range(len(shape)))
        rng.shuffle(dims)
        v = m.op("permute", v, dims=dims)
        v = m.op("flip", v, dims=[rng.randrange(len(dims))])
    return m.output(v)


@family("wired.backwards", 20000)
def backwards(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("exp", v)
    m.nodes.reverse()
    return m.output(v)


@family("wired.circle", 20000)
def circle(size, rng):
    m = Model()
    m.input()
    for i in range(size):
        m.op("add", "x", f"n{(i + 1) % size}")
    return m.output("n0")


@family("wired.attention_heads", 200)
def attention_heads(size, rng):
    m = Model()
    m.input("x", (1, 16, 64), "float16")
    heads = []
    for i in range(size):
        q, k, v = (m.op("linear", "x", m.constant(f"{c}{i}", (16, 64), "float16")) for c in "qkv")
        scores = m.op("softmax", m.op("mul", m.op("matmul", q, m.op("transpose", k, dim0=1, dim1=2)), 0.25), dim=-1)
        heads.append(m.op("matmul", scores, v))
    return m.output(m.op("concat", *heads, dim=-1))


@family("wired.steps_of_an_optimizer", 1000)
def optimizer(size, rng):
    m = Model()
    total = None
    for i in range(size):
        g = m.input(f"g{i}", (8, 8))
        norm = m.op("sum", m.op("square", g), dim=[0, 1])
        total = norm if total is None else m.op("add", total, norm)
    scale = m.op("rsqrt", m.op("add", total, 1e-6))
    return m.output(*[m.op("sub", m.input(f"p{i}", (8, 8)), m.op("mul", f"g{i}", scale)) for i in range(size)])


@family("wired.scan", 2000)
def scan(size, rng):
    m = Model()
    m.input("x", (size, 8))
    state, states = m.input("s", (1, 8)), []
    for i in range(size):
        state = m.op("add", m.op("mul", state, 0.5), m.op("slice", "x", dim=0, start=i, end=i + 1))
        states.append(state)
    return m.output(m.op("concat", *states, dim=0))


# --- tuples


@family("tuple.doubling", 60)
def tuple_doubling(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("tuple", v, v)
    return m.output(v)


@family("tuple.nested", 5000)
def tuple_nested(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("tuple", v)
    return m.output(v)


@family("tuple.in_and_out", 2000)
def tuple_in_and_out(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("tuple", v, "x")
    for _ in range(size):
        v = m.op("get_item", v, index=0)
    return m.output(m.op("exp", v))


@family("tuple.wide_and_deep", 300)
def tuple_wide_and_deep(size, rng):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("tuple", *[v] * 3, "x")
        v = m.op("get_item", v, index=rng.randrange(4))
    return m.output(v)


# --- symbols, dimensions, ranks


@family("symbols.many", 10000)
def symbols_many(size, rng):
    m = Model(symbols={f"s{i}": {} for i in range(size)})
    return m.output(*[m.op("exp", m.input(f"x{i}", (f"s{i}", 4))) for i in range(size)])


@family("symbols.unused", 40000)
def symbols_unused(size, rng):
    m = Model(symbols={f"s{i}": {} for i in range(size)})
    return m.output(m.op("exp", m.input("x", (4,))))


@family("symbols.concat", 3000)
def symbols_concat(size, rng):
    m = Model(symbols={f"s{i}": {} for i in range(size)})
    return m.output(m.op("concat", *[m.input(f"x{i}", (f"s{i}", 4)) for i in range(size)], dim=0))


@family("symbols.one_sum", 3000)
def symbols_one_sum(size, rng):
    m = Model(symbols={f"s{i}": {} for i in range(size)})
    for i in range(size):
        m.input(f"x{i}", (f"s{i}",))
    return m.output(m.op("exp", m.input("x", ("+".join(f"s{i}" for i in range(size)), 4))))


@family("symbols.one_product", 300)
def symbols_one_product(size, rng):
    m = Model(symbols={f"s{i}": {"max": 2} for i in range(size)})
    for i in range(size):
        m.input(f"x{i}", (f"s{i}",))
    return m.output(m.op("exp", m.input("x", ("*".join(f"s{i}" for i in range(size)),))))


@family("symbols.product_of_sums", 40)
def symbols_product_of_sums(size, rng):
    m = Model(symbols={f"s{i}": {"max": 2} for i in range(size)})
    for i in range(size):
        m.input(f"x{i}", (f"s{i}",))
    return m.output(m.op("exp", m.input("x", ("*".join(f"(s{i}+1)" for i in range(size)),))))


@family("symbols.power", 60)
def symbols_power(size, rng):
    m = Model(symbols={"a": {"max": 2}, "b": {"max": 2}})
    m.input("y", ("a", "b"))
    return m.output(m.op("exp", m.input("x", ("*".join(["(a+b+1)"] * size),))))


@family("symbols.nested_division", 200)
def symbols_nested_division(size, rng):
    text = "t"
    for i in range(size):
        text = f"({text}+{i})//2" if i % 2 else f"min({text}, {1000 + i})"
    m = Model(symbols={"t": {}})
    m.input("y", ("t",))
    return m.output(m.op("expand", m.input("x", (1,)), shape=[text]))


@family("symbols.parentheses", 5000)
def symbols_parentheses(size, rng):
    m = Model(symbols={"t": {}})
    return m.output(m.op("exp", m.input("x", ("(" * size + "t" + ")" * size,))))


@family("symbols.flattened", 30)
def symbols_flattened(size, rng):
    m = Model(symbols={f"s{i}": {"max": 4} for i in range(size)})
    m.input("x", tuple(f"s{i}" for i in range(size)))
    v = m.op("flatten", m.op("permute", "x", dims=list(reversed(range(size)))), start_dim=0, end_dim=size - 1)
    return m.output(m.op("exp", v))


@family("symbols.offsets", 1000)
def symbols_offsets(size, rng):
    m = Model(symbols={"t": {"min": size + 1}})
    m.input("x", ("t",))
    return m.output(*[m.op("slice", "x", dim=0, start=i, end=f"t-{size - i}") for i in range(size)])


@family("rank.permute", 3000)
def rank_permute(size, rng):
    dims = list(range(size))
    rng.shuffle(dims)
    m = Model()
    return m.output(m.op("permute", m.input("x", tuple(1 + i % 2 if i < 40 else 1 for i in range(size))), dims=dims))


@family("rank.sum", 3000)
def rank_sum(size, rng):
    m = Model()
    return m.output(m.op("sum", m.input("x", tuple(2 if i < 40 else 1 for i in range(size))), dim=list(range(0, size, 2))))


@family("rank.reshape", 3000)
def rank_reshape(size, rng):
    m = Model()
    v = m.op("reshape", m.input("x", (2,) * min(size, 50) + (1,) * max(0, size - 50)), shape=[1 << min(size, 50)])
    return m.output(v)


@family("rank.broadcast", 1000)
def rank_broadcast(size, rng):
    m = Model()
    m.input("x", tuple(2 if i % 3 == 0 and i < 60 else 1 for i in range(size)))
    m.input("y", tuple(2 if i % 3 == 1 and i < 60 else 1 for i in range(size)))
    return m.output(m.op("add", "x", "y"))


@family("extent.huge", 62)
def extent_huge(size, rng):
    m = Model()
    return m.output(m.op("exp", m.input("x", (1 << min(size, 62), 1 + rng.randrange(3)))))


@family("extent.zero", 100)
def extent_zero(size, rng):
    m = Model()
    v = m.input("x", (0, 1 << min(size, 40)))
    for _ in range(size):
        v = m.op("sum", m.op("expand", m.op("unsqueeze", v, dim=0), shape=[3, -1, -1]), dim=[0])
    return m.output(v)


@family("extent.window", 30)
def extent_window(size, rng):
    m = Model()
    m.input("x", (1, 1, 1 << min(size, 20)))
    return m.output(m.op("max_pool1d", "x", kernel_size=1 << min(size, 20) - 1, stride=1),
                    m.op("avg_pool1d", "x", kernel_size=max(1, (1 << min(size, 20)) // 2), stride=1))


# --- outputs, aliases, inputs, constants


@family("outputs.same", 40000)
def outputs_same(size, rng):
    m = Model()
    return m.output(*[m.op("exp", m.input())] * size)


@family("outputs.inputs", 20000)
def outputs_inputs(size, rng):
    m = Model()
    return m.output(*[m.input(f"x{i}") for i in range(size)])


@family("outputs.aliases", 2000)
def outputs_aliases(size, rng):
    m = Model(aliases={f"n{i}": f"x{i}" for i in range(size)})
    for i in range(size):
        m.input(f"x{i}")
    return m.output(*[m.op("add", f"x{i}", 1.0) for i in range(size)])


@family("outputs.aliases_in_a_circle", 1000)
def outputs_aliases_in_a_circle(size, rng):
    m = Model(aliases={f"n{i}": f"x{i}" for i in range(size)})
    for i in range(size):
        m.input(f"x{i}")
    return m.output(*[m.op("add", f"x{(i + 1) % size}", float(i)) for i in range(size)])


@family("outputs.views", 5000)
def outputs_views(size, rng):
    m = Model()
    m.input("x", (4, 8))
    return m.output(*[m.op("reshape", "x", shape=[[32], [8, 4], [2, 16]][i % 3]) for i in range(size)])


@family("inputs.unused", 40000)
def inputs_unused(size, rng):
    m = Model()
    for i in range(size):
        m.input(f"x{i}")
    return m.output(m.op("exp", "x0"))


@family("constants.many", 10000)
def constants_many(size, rng):
    m = Model()
    v = m.input()
    for i in range(size):
        v = m.op("add", v, m.constant(f"c{i}", (8,), data=[float(i)] * 8))
    return m.output(v)


@family("constants.long", 500000)
def constants_long(size, rng):
    m = Model()
    return m.output(m.op("add", m.input("x", (size,)), m.constant("c", (size,), data=[round(rng.random(), 6) for _ in range(size)])))


@family("constants.folded", 2000)
def constants_folded(size, rng):
    m = Model()
    v = m.constant("c", (16, 16), data=[float(i) for i in range(256)])
    for i in range(size):
        v = m.op("matmul", v, "c") if i % 2 else m.op("add", v, 1.0)
    return m.output(m.op("add", m.input("x", (16, 16)), v))


@family("constants.arange", 40)
def constants_arange(size, rng):
    m = Model()
    end = 1 << min(size, 40)
    a = m.op("arange", start=0, end=end, step=1, dtype="float32")
    return m.output(m.op("add", m.input("x", (1,)), m.op("sum", m.op("sin", a), dim=[0])))


@family("constants.full", 30)
def constants_full(size, rng):
    m = Model()
    n = 1 << min(size, 20)
    v = m.op("matmul", m.op("full", shape=[n, n], value=1.5, dtype="float32"), m.op("full", shape=[n, n], value=2, dtype="float32"))
    return m.output(m.op("add", m.input("x", (1,)), m.op("sum", v, dim=[0, 1])))


@family("constants.sorted", 24)
def constants_sorted(size, rng):
    m = Model()
    n = 1 << min(size, 24)
    v = m.op("sort", m.op("remainder", m.op("mul", m.op("arange", start=0, end=n, step=1, dtype="int64"), 7919), 1009), dim=0)
    return m.output(m.op("add", m.input("x", (1,), "int64"), m.op("slice", v + ".0", dim=0, start=0, end=1)))


@family("constants.by_name", 20000)
def constants_by_name(size, rng):
    m = Model()
    m.input()
    for i in range(size):
        m.constant(f"c{i}", (8,))
    return m.output(m.op("concat", *["x", *[m.op("unsqueeze", f"c{i}", dim=0) for i in range(0, size, 50)]], dim=0))
