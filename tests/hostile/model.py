"""What families of hostile models are made of: a model under construction, a case, and the list of families."""
import json, random

FAMILIES = {}


class Case:
    """Files of one folder, and how fusec is called there. The model is model.json."""

    def __init__(self, model, arguments=(), files=None):
        self.model = model if isinstance(model, (str, bytes)) else json.dumps(model)
        self.arguments, self.files = list(arguments), files or {}

    def size(self):
        return len(self.model) + sum(len(content) for content in self.files.values())


def family(name, most=20000):
    """Registers a function of (size, random numbers) that makes a case. `most` is the largest size that is tried."""

    def register(make):
        assert name not in FAMILIES, name
        FAMILIES[name] = (make, most)
        return make

    return register


def make(name, size, seed):
    case = FAMILIES[name][0](max(1, size), random.Random(seed))
    return case if isinstance(case, Case) else Case(case.document())


class Model:
    def __init__(self, **keys):
        self.keys = {"fusec": 1, **keys}
        self.inputs, self.constants, self.nodes, self.outputs = [], [], [], []

    def input(self, name="x", shape=(4, 8), dtype="float32"):
        self.inputs.append({"name": name, "dtype": dtype, "shape": list(shape)})
        return name

    def constant(self, name, shape, dtype="float32", data=None, **keys):
        entry = {"name": name, "dtype": dtype, "shape": list(shape), **keys}
        if data is not None:
            entry["data"] = data
        self.constants.append(entry)
        return name

    def op(self, op, *operands, name=None, **attrs):
        node = {"name": name or f"n{len(self.nodes)}", "op": op, "inputs": list(operands)}
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        return node["name"]

    def output(self, *names):
        self.outputs.extend(names)
        return self

    def document(self):
        document = dict(self.keys)
        document["inputs"] = self.inputs
        if self.constants:
            document["constants"] = self.constants
        return {**document, "nodes": self.nodes, "outputs": self.outputs}


def chained(size, step, shape=(4, 8), dtype="float32", **keys):
    """x -> step -> step -> ...: `step` takes a model, a value and the round, and gives the next value."""
    model = Model(**keys)
    value = model.input("x", shape, dtype)
    for i in range(size):
        value = step(model, value, i)
    return model.output(value)
