"""Random chains of reductions of the same rows with elementwise ops in between. Each must be one launch. There are two
kinds:

    chains     softmax, norms, sums, maxima, in a chain, along the last axis, the first or a middle one; some
               intermediate rows and row results are outputs
    segments   a sum, a gated product or nothing, then norms or softmaxes, then blocks of 32 to 128 columns that are
               quantized with a scale each, normalized or reduced by a softmax; outputs are quantized values, scales and
               values before them

A fifth of them are executed. If 16-bit values between nodes were not rounded, differences may grow beyond any tolerance;
then a run that rounds them decides."""
import random

from kernels.case import RESULTS, TARGETS, Case, model

MODELS = 1000  # of each kind


class Model:
    def __init__(self, pick, dtype, shape, symbols=None):
        self.pick, self.dtype, self.shape = pick, dtype, shape
        self.symbols = symbols or {}
        self.inputs, self.nodes, self.outputs = [], [], []
        self.current = self.input(shape)

    def input(self, shape):
        self.inputs.append({"name": f"x{len(self.inputs)}", "dtype": self.dtype, "shape": shape})
        return self.inputs[-1]["name"]

    def node(self, op, inputs, **attrs):
        self.nodes.append({"name": f"{op}{len(self.nodes)}", "op": op, "inputs": inputs, "attrs": attrs})
        return self.nodes[-1]["name"]

    def norm(self, op, length, weights):
        operands = [self.input([length]) for _ in range(weights if self.pick.random() < 0.5 else 0)]
        self.current = self.node(op, [self.current, *operands], normalized_shape=[length], eps=1e-5)

    def give_back(self, value):
        if value not in self.outputs and value != self.inputs[0]["name"]:
            self.outputs.append(value)

    def document(self):
        return model(self.inputs, self.nodes, self.outputs, symbols=self.symbols)


def elementwise(m):
    op = m.pick.choice(["relu", "silu", "gelu", "tanh", "abs", "scale", "add"])
    if op == "add" and len(m.inputs) < 6:
        m.current = m.node("add", [m.current, m.input(m.shape)])
    elif op == "scale":
        m.current = m.node("mul", [m.current, 0.7])
    elif op != "add":
        m.current = m.node(op, [m.current])


def reduction(m, axis, length):
    x, keep = m.current, {"dim": [axis], "keepdim": True}
    last = axis == len(m.shape) - 1
    kind = m.pick.choice(["softmax", "log_softmax", "less most", "less mean", "share", "row"] +
                         ["rms_norm", "layer_norm"] * (2 * last))
    if kind in ("softmax", "log_softmax"):
        m.current = m.node(kind, [x], dim=axis)
    elif kind == "rms_norm":
        m.norm(kind, length, 1)
    elif kind == "layer_norm":
        m.norm(kind, length, 2)
    elif kind == "less most":
        m.current = m.node("sub", [x, m.node("amax", [x], **keep)])
    elif kind == "less mean":
        m.current = m.node("sub", [x, m.node("mean", [x], **keep)])
    elif kind == "share":
        size = m.node("add", [m.node("abs", [x]), 0.01])
        m.current = m.node("div", [size, m.node("sum", [size], **keep)])
    else:
        op = m.pick.choice(["amax", "amin", "mean"])
        m.give_back(m.node(op, [x], dim=[axis], keepdim=m.pick.random() < 0.5))


def chain(pick):
    dtype = pick.choice(["float32", "float16", "bfloat16"])
    n = pick.choice([5, 33, 64, 129, 300, 512, 1000, 1024, 2048, 4095, 4096])
    axis = pick.choice([0, 1, 2])
    if axis != 2:
        n = min(n, 512)
    symbols = {"n": {"min": 1, "max": 4096, "hint": n}} if pick.random() < 0.2 else {}
    length = "n" if symbols else n
    shape = {0: [length, 3 * pick.randint(1, 40) + 1], 1: [2, length, pick.randint(3, 42)],
             2: [2, pick.choice([1, 3, 16, 50] if n > 512 else [3, 30, 130]), length]}[axis]
    m = Model(pick, dtype, shape, symbols)
    for _ in range(pick.randint(2, 6)):
        for _ in range(pick.randint(0, 2)):
            elementwise(m)
        reduction(m, axis, length)
        if pick.random() < 0.3:
            m.give_back(m.current)
    if pick.random() < 0.5:
        m.give_back(m.node("amax", [m.current], dim=[axis]))
    if not m.outputs:
        m.give_back(m.node("relu", [m.current]))
    return m, {"n": pick.choice([1, 7, 64, 300])} if symbols else {}


def segments(pick):
    dtype = pick.choice(["float32", "float16", "bfloat16"])
    block, blocks = pick.choice([32, 64, 128]), pick.choice([2, 3, 8, 16])
    length = block * blocks
    symbols = {"t": {"min": 1, "max": 8192}} if pick.random() < 0.3 else {}
    rows = ["t" if symbols else pick.choice([1, 5, 30, 64])]
    m = Model(pick, dtype, rows + [length], symbols)
    front = pick.choice(["none", "add", "gated"])
    if front == "add":
        m.current = m.node("add", [m.current, m.input(m.shape)])
        m.give_back(m.current)
    elif front == "gated":
        m.current = m.node("mul", [m.node("silu", [m.current]), m.input(m.shape)])
    for _ in range(pick.randint(1, 2)):
        m.norm(pick.choice(["rms_norm", "layer_norm"]), length, 1)
    if pick.random() < 0.3:
        m.give_back(m.current)
    parts = m.node("reshape", [m.current], shape=rows + [blocks, block])
    kind = pick.choice(["codes", "codes", "norm", "softmax"])
    if kind == "norm":
        m.give_back(m.node("rms_norm", [parts], normalized_shape=[block], eps=1e-5))
    elif kind == "softmax":
        m.give_back(m.node("reshape", [m.node("softmax", [parts], dim=-1)], shape=m.shape))
    else:
        wide = m.node("cast", [parts], dtype="float32")
        most = m.node("clamp", [m.node("amax", [m.node("abs", [wide])], dim=[-1], keepdim=True)], min=1e-4)
        scale = m.node("div", [most, 448.0])
        code = m.node("cast", [m.node("div", [wide, scale])], dtype="float8_e4m3fn")
        m.give_back(m.node("reshape", [code], shape=m.shape) if pick.random() < 0.7 else code)
        if pick.random() < 0.8:
            m.give_back(m.node("squeeze", [scale], dim=-1))
    return m, {"t": pick.choice([1, 7, 33])} if symbols else {}


def of_rounding(dtype):
    return lambda text: dtype != "float32" and "reference" in text


def cases():
    found = []
    for kind in (chain, segments):
        for i in range(MODELS):
            made, sizes = kind(random.Random(f"{kind.__name__} {1000 + i}"))
            name, target = f"{kind.__name__} {1000 + i}", (TARGETS[i % 2],)
            found.append(Case(name, made.document(), targets=target, executed=False, exactly={"launches of the partition": 1},
                              group=kind.__name__))
            if i < MODELS // 5:
                found.append(Case(name, made.document(), targets=target, sizes=sizes, or_rounded=of_rounding(made.dtype),
                                  most=RESULTS, group=f"{kind.__name__} executed"))
    return found
