"""Random models with matrix products among views, elementwise ops and reductions, each twice: as --strategy=full fuses it,
and with all nodes in one group, which the lowering must split if one kernel cannot compute it."""
import random

from kernels.case import RESULTS, Case

UNARY = ["relu", "silu", "sigmoid", "tanh", "gelu", "neg", "abs"]


class Model:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.inputs, self.nodes, self.types, self.count = [], [], {}, 0
        self.dtype = self.random.choice(["float16", "bfloat16", "float32", "float32"])
        for _ in range(self.random.choice([1, 2])):
            leading = [self.random.choice([1, 2, 5, 17, 33]) for _ in range(self.random.choice([1, 1, 2]))]
            self.input(leading + [self.random.choice([16, 24, 48])], self.dtype)
        wanted = self.random.randrange(4, 14)
        while len(self.nodes) < wanted:
            self.step()

    def name(self, letter, shape, dtype):
        self.count += 1
        name = f"{letter}{self.count}"
        self.types[name] = (tuple(shape), dtype)
        return name

    def input(self, shape, dtype):
        name = self.name("i", shape, dtype)
        self.inputs.append({"name": name, "dtype": dtype, "shape": list(shape)})
        return name

    def node(self, op, operands, shape, dtype, /, **attributes):
        name = self.name("v", shape, dtype)
        self.nodes.append({"name": name, "op": op, "inputs": operands, "attrs": attributes})

    def weight(self, shape, dtype):
        if self.random.random() < 0.25:
            codes = self.input(shape, "int8")
            scale = self.input(shape[:1] if len(shape) < 3 else (1,), dtype)
            self.node("dequantize", [codes, scale], shape, dtype, dtype=dtype, axis=0)
        elif self.random.random() < 0.2 and len(shape) == 2:
            self.node("permute", [self.input(shape[::-1], dtype)], shape, dtype, dims=[1, 0])
        else:
            return self.input(shape, dtype)
        return self.nodes[-1]["name"]

    def step(self):
        pick = self.random
        names = [n for n, (shape, dtype) in self.types.items() if dtype != "int8" and shape]
        x = pick.choice(names[-6:] if pick.random() < 0.7 else names)
        shape, dtype = self.types[x]
        kind = pick.random()
        if kind < 0.3 and len(shape) >= 2:
            self.product(x, shape, dtype, names)
        elif kind < 0.5:
            self.node(pick.choice(UNARY), [x], shape, dtype)
        elif kind < 0.7:
            alike = [n for n in names if self.types[n] == (shape, dtype) and n != x]
            broadcast = pick.choice([shape, shape[-1:], shape[:-1] + (1,)])
            y = pick.choice(alike) if alike and pick.random() < 0.7 else self.input(broadcast, dtype)
            self.node(pick.choice(["add", "mul", "sub"]), [x, y], shape, dtype)
        elif kind < 0.9:
            self.view(x, shape, dtype)
        elif dtype != self.dtype or pick.random() < 0.3:
            to = self.dtype if dtype == "float32" else "float32"
            self.node("cast", [x], shape, to, dtype=to)
        elif pick.random() < 0.5:
            self.node("softmax", [x], shape, dtype, dim=-1)
        else:
            self.node("mean", [x], shape[:-1] + (1,), dtype, dim=[len(shape) - 1], keepdim=True)

    def product(self, x, shape, dtype, names):
        columns = self.random.choice([8, 12, 16, 24, 32, 40])
        kind = self.random.random()
        others = [n for n in names if n != x and self.types[n][1] == dtype and len(self.types[n][0]) == 2
                  and self.types[n][0][1] == shape[-1]]
        if kind < 0.3:
            self.node("matmul", [x, self.weight((shape[-1], columns), dtype)], shape[:-1] + (columns,), dtype)
        elif kind < 0.5 and len(shape) == 3:
            w = self.weight((shape[0], shape[2], columns), dtype)
            self.node("bmm", [x, w], shape[:-1] + (columns,), dtype)
        elif kind < 0.7 and others:
            w = self.random.choice(others)
            self.node("linear", [x, w], shape[:-1] + (self.types[w][0][0],), dtype)
        else:
            self.node("linear", [x, self.weight((columns, shape[-1]), dtype)], shape[:-1] + (columns,), dtype)

    def view(self, x, shape, dtype):
        kind, rank = self.random.random(), len(shape)
        d = self.random.randrange(rank)
        if kind < 0.4 and shape[d] >= 2:
            half = shape[d] // 2
            start, end, step = self.random.choice([(0, half, 1), (half, shape[d], 1), (0, shape[d], 2),
                                                   (1, shape[d], 2), (1, shape[d], 1)])
            extent = (end - start + step - 1) // step
            self.node("slice", [x], shape[:d] + (extent,) + shape[d + 1:], dtype, dim=d, start=start, end=end, step=step)
        elif kind < 0.6:
            dims = self.random.sample(range(rank), rank)
            self.node("permute", [x], tuple(shape[i] for i in dims), dtype, dims=dims)
        elif kind < 0.85 and rank < 4 and shape[-1] % 4 == 0:
            to = shape[:-1] + self.random.choice([(4, shape[-1] // 4), (2, shape[-1] // 2)])
            self.node("reshape", [x], to, dtype, shape=list(to))
        elif rank >= 3:
            to = (shape[0] * shape[1],) + shape[2:]
            self.node("reshape", [x], to, dtype, shape=list(to))

    def json(self):
        used = {name for node in self.nodes for name in node["inputs"]}
        outputs = [node["name"] for node in self.nodes if node["name"] not in used]
        inner = [node["name"] for node in self.nodes if node["name"] in used]
        if inner and self.random.random() < 0.4:
            outputs.append(self.random.choice(inner))
        return {"fusec": 1, "name": "random", "inputs": [i for i in self.inputs if i["name"] in used],
                "nodes": self.nodes, "outputs": outputs}


def cases():
    found = []
    for seed in range(1000, 1150):
        model = Model(seed).json()
        plan = {"fusec_plan": 1, "model": "random", "strategy": "tvm", "max_fused_ops": 256, "max_args": 512,
                "groups": [{"name": "all", "nodes": [n["name"] for n in model["nodes"]]}]}
        # In 16 bits the reference rounds after every node. Kernels must, too, or sums that cancel differ.
        rounded = any(i["dtype"] in ("float16", "bfloat16") for i in model["inputs"])
        for group, options in (("fused", ("--strategy=full",)), ("in one group", ("--strategy=tvm", "--plan={folder}/plan.json"))):
            found.append(Case(f"{seed} {group}", model, files={"plan.json": plan}, inputs="--random=3", targets=("sm_80",),
                              group=group, options=options + (("--round-intermediates",) if rounded else ()),
                              verify="--verify=0.05,0.2" if rounded else "--verify=2e-3,2e-2",
                              most=RESULTS))
    return found
