"""A model of many single ops with what PyTorch computes for each, and the values that operands are made of."""
import json, math, os, struct

import torch

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
        """`operands` are input names, numbers, or None; `answer` is called with their values. Several results are named
        name.0, name.1, ..."""
        values = [self.inputs[o] if isinstance(o, str) else o for o in operands]
        try:
            want = answer(*values)
        except (RuntimeError, TypeError, NotImplementedError):
            return  # PyTorch refuses it
        name = f"{op}_{len(self.nodes)}"
        node = {"name": name, "op": op, "inputs": operands}
        if attrs:
            node["attrs"] = attrs
        several = not torch.is_tensor(want)
        results = {f"{name}.{i}": t for i, t in enumerate(want)} if several else {name: want}
        node["outputs"] = [{"name": n, "dtype": name_of(t), "shape": list(t.shape)} for n, t in results.items()]
        self.nodes.append(node)
        self.outputs |= results

    def write(self, folder):
        path = os.path.join(folder, self.name)
        inputs = [{"name": n, "dtype": name_of(t), "shape": list(t.shape)} for n, t in self.inputs.items()]
        lines = lambda items: ",\n".join("  " + json.dumps(item) for item in items)
        with open(path + ".json", "w", encoding="utf-8") as f:
            f.write(f'{{"fusec": 1, "name": "{self.name}",\n "inputs": [\n{lines(inputs)}],\n "nodes": [\n'
                    f'{lines(self.nodes)}],\n "outputs": {json.dumps(list(self.outputs))}}}\n')
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
