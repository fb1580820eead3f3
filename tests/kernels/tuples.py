"""Random models that put tensors into tuples and take them out again: fields as producers, consumers and outputs, nested,
repeated, unused, of inputs and of constants. Each is compiled under every strategy, with get_item or tuple excluded from
fusion, and with its nodes cut into random groups, and is compared with the evaluator below."""
import random
import struct

from kernels.case import RESULTS, Case

ROWS, COLUMNS = 3, 4
UNARY = {"neg": lambda v: -v, "abs": abs, "square": lambda v: v * v, "sign": lambda v: float((v > 0) - (v < 0))}
BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "maximum": max, "minimum": min,
          "mul": lambda a, b: a * b}


class Tensor:
    """A value [rows, columns] of small integers, which floats hold exactly."""
    def __init__(self, rows):
        self.rows = rows
        self.shape = (len(rows), len(rows[0]))

    def map(self, f):
        # Sums and products of two such values are still exact.
        return Tensor([[float(max(-50, min(50, f(v)))) for v in row] for row in self.rows])


def transposed(t):
    return Tensor([list(column) for column in zip(*t.rows)])


class Model:
    """Nodes are made together with their values: a Tensor, or a list of fields for a tuple."""
    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.inputs, self.constants, self.nodes, self.values, self.kept = {}, [], [], {}, []
        self.large = set()  # values that only a clamp reads
        for i in range(self.pick.choice([1, 2, 3])):
            self.inputs[f"x{i}"] = self.values[f"x{i}"] = Tensor(
                [[float(self.pick.randint(-4, 4)) for _ in range(COLUMNS)] for _ in range(ROWS)])
        if self.pick.random() < 0.4:
            rows = [[float(self.pick.randint(-3, 3)) for _ in range(COLUMNS)] for _ in range(ROWS)]
            self.values["c"] = Tensor(rows)
            self.constants = [{"name": "c", "dtype": "float32", "shape": [ROWS, COLUMNS],
                               "data": [v for row in rows for v in row]}]
        wanted = self.pick.randrange(5, 22)
        while len(self.nodes) < wanted:
            self.step()

    def node(self, op, inputs, value, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append({"name": name, "op": op, "inputs": inputs, "attrs": attrs})
        self.values[name] = value
        return name

    def choose(self, wanted):
        """A recent value of the wanted kind, or None."""
        names = [n for n, v in self.values.items() if n not in self.large and wanted(v)]
        return (self.pick.choice(names[-6:] if self.pick.random() < 0.6 else names)) if names else None

    def step(self):
        kind = self.pick.random()
        is_tensor, is_tuple = lambda v: isinstance(v, Tensor), lambda v: isinstance(v, list)
        if kind < 0.25:
            fields = [self.choose(lambda v: is_tensor(v) or self.pick.random() < 0.3)
                      for _ in range(self.pick.choice([1, 2, 2, 3]))]
            if None not in fields:
                self.node("tuple", fields, [self.values[f] for f in fields])
        elif kind < 0.55:
            if (source := self.choose(is_tuple)) is not None:
                fields = self.values[source]
                index = self.pick.randrange(-len(fields), len(fields))
                self.node("get_item", [source], fields[index], index=index)
        else:
            self.compute(self.choose(is_tensor))

    def compute(self, x):
        value, kind = self.values[x], self.pick.random()
        if kind < 0.35:
            op = self.pick.choice(list(UNARY))
            y = self.node(op, [x], Tensor([[UNARY[op](v) for v in row] for row in value.rows]))
        elif kind < 0.65:
            op = self.pick.choice(list(BINARY))
            other = self.choose(lambda v: isinstance(v, Tensor) and v.shape == value.shape)
            y = self.node(op, [x, other], Tensor([[BINARY[op](a, b) for a, b in zip(*rows)]
                                                  for rows in zip(value.rows, self.values[other].rows)]))
        elif kind < 0.73:
            y = self.node("sum", [x], Tensor([[sum(row)] for row in value.rows]), dim=[1], keepdim=True)
        elif kind < 0.81:
            sums = [[sum(row[:i + 1]) for i in range(len(row))] for row in value.rows]
            y = self.node("cumsum", [x], Tensor(sums), dim=1)
        elif kind < 0.87:
            y = self.node("transpose", [x], transposed(value), dim0=0, dim1=1)
        elif kind < 0.93:
            other = self.choose(lambda v: isinstance(v, Tensor) and v.shape[0] == value.shape[1])
            if other is None:
                return
            product = [[sum(a * b for a, b in zip(row, column)) for column in zip(*self.values[other].rows)]
                       for row in value.rows]
            y = self.node("matmul", [x, other], Tensor(product))
        else:
            flat = [v for row in value.rows for v in row]
            y = self.node("reshape", [x], Tensor([flat]), shape=[1, len(flat)])
        self.large.add(y)
        self.node("clamp", [y], self.values[y].map(lambda v: v), min=-50.0, max=50.0)

    def json(self):
        tensors_made = [n["name"] for n in self.nodes if isinstance(self.values[n["name"]], Tensor)]
        used = {name for node in self.nodes for name in node["inputs"]}
        outputs = [n for n in tensors_made if n not in used]
        fields = [n["name"] for n in self.nodes if n["op"] == "get_item" and n["name"] in tensors_made]
        outputs += self.pick.sample(fields, min(len(fields), self.pick.randrange(3)))
        outputs += self.pick.sample(tensors_made, min(len(tensors_made), self.pick.randrange(2)))
        self.kept = list(dict.fromkeys(outputs))
        return {"fusec": 1, "name": "tuples", "constants": self.constants, "nodes": self.nodes, "outputs": self.kept,
                "inputs": [{"name": n, "dtype": "float32", "shape": list(t.shape)} for n, t in self.inputs.items()]}


def groups_of(nodes, pick):
    """The nodes in their order, cut into random groups."""
    groups, left = [], 0
    for node in nodes:
        alone = node["op"] in ("cumsum", "tuple")  # a plan must keep opaque ops and tuples alone
        if left <= 0 or alone:
            groups.append({"name": f"g{len(groups)}", "nodes": []})
            left = 0 if alone else pick.randrange(1, len(nodes) + 1) if pick.random() < 0.3 else pick.randrange(1, 5)
        groups[-1]["nodes"].append(node["name"])
        left -= 1
    return groups


def wrong_outputs(made):
    """A figure: the outputs that differ from the evaluator's."""
    def wrong(run):
        wanted = {name: [v for row in made.values[name].rows for v in row] for name in made.kept}
        return [name for name, values in wanted.items() if run.outputs[name][2] != values]
    return wrong


def cases():
    found = []
    for seed in range(1000, 1150):
        made = Model(seed)
        described = made.json()
        if not made.kept:
            continue
        plan = {"fusec_plan": 1, "model": "tuples", "strategy": "tvm", "max_fused_ops": 256, "max_args": 512,
                "groups": groups_of(described["nodes"], made.pick)}
        given = {name: ("float32", [ROWS, COLUMNS], struct.pack(f"<{ROWS * COLUMNS}f", *(v for row in tensor.rows for v in row)))
                 for name, tensor in made.inputs.items()}
        for options in (["--strategy=none"], ["--strategy=tvm"], ["--strategy=full"],
                        ["--strategy=full", "--no-fuse=" + made.pick.choice(["get_item", "tuple", "clamp"])],
                        ["--strategy=tvm", f"--max-fused-ops={made.pick.choice([1, 2, 3, 5])}"],
                        ["--strategy=tvm", "--plan={folder}/plan.json"]):
            found.append(Case(f"{seed} {' '.join(options)}", described, files={"plan.json": plan}, inputs=given, verify="",
                              reads_outputs=True, options=tuple(options), targets=("sm_80",), exactly={wrong_outputs(made): []},
                              most=RESULTS, group=" ".join([options[0], *(o.split("=")[0] for o in options[1:])])))
    return found
