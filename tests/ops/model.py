"""A model of many single ops with what PyTorch computes for each, and the values that operands are made of."""
import json, math, os, struct

import torch

DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
          "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "int4": "U8", "float4_e2m1fn": "F4"}
FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
ALL = FLOATS + INTEGERS + ["bool"]


def dtype(name):
    return getattr(torch, name)


def name_of(t):
    return str(t.dtype).removeprefix("torch.")


class Packed:
    """A tensor of a 4-bit dtype: its values, and its 4-bit codes, two to a byte, the low nibble first."""
    def __init__(self, dtype_name, values, codes):
        self.dtype_name, self.values, self.codes = dtype_name, values, codes.to(torch.uint8)

    def bytes(self):
        pairs = self.codes.reshape(-1, 2)
        return bytes((pairs[:, 0] | (pairs[:, 1] << 4)).tolist())

    def stored_shape(self):
        shape = list(self.values.shape)
        return shape if self.dtype_name.startswith("float") else shape[:-1] + [shape[-1] // 2]


def int4(shape):
    values = torch.randint(-8, 8, shape)
    return Packed("int4", values, values & 15)


def float4_e2m1fn(shape):
    codes = torch.randint(0, 16, shape)
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return Packed("float4_e2m1fn", torch.where(codes > 7, -1.0, 1.0) * magnitudes[codes & 7], codes)


def type_of(t):
    """The graph format's dtype and shape."""
    packed = isinstance(t, Packed)
    return {"dtype": t.dtype_name if packed else name_of(t), "shape": list((t.values if packed else t).shape)}


def save(path, tensors):
    header, blob = {}, b""
    for name in sorted(tensors):
        t = tensors[name]
        packed = isinstance(t, Packed)
        data = t.bytes() if packed else bytes(t.contiguous().reshape(-1).view(torch.uint8).tolist())
        header[name] = {"dtype": DTYPES[type_of(t)["dtype"]], "shape": t.stored_shape() if packed else list(t.shape),
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
        values = [v.values if isinstance(v, Packed) else v for v in values]
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
        inputs = [{"name": n} | type_of(t) for n, t in self.inputs.items()]
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
