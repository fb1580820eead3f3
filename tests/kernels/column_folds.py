"""Row reductions fused with reductions of the same tensor across rows: backward passes of LayerNorm and RMSNorm with the
gradients of their weights, the factors of Adafactor, the gradient of softmax with sums over rows. Demanded are two
launches that read each element once."""
import array
import random

from kernels import case
from kernels.case import BYTES, element_count, model, node, tensors


class Graph:
    """sectors: most bytes of requested sectors, relative to the bytes of the model's inputs and outputs. instructions:
    most warp instructions x 32 without moves, relative to the same bytes. launches: most launches of all layers."""

    def __init__(self, graph, dtype, shape, sectors, instructions, layers=1, launches=2, symbols=None):
        self.name = f"{graph.__name__} {dtype} {shape}{' x' + str(layers) if layers > 1 else ''}"
        self.dtype, self.shape, self.symbols = dtype, shape, symbols or {}
        self.sectors, self.instructions, self.launches = sectors, instructions, launches
        self.inputs, self.nodes, self.outputs = {}, [], []
        for layer in range(layers):
            Layer(self, f"_{layer}" if layer else "").add(graph)

    def bytes_of(self, names):
        return sum(BYTES[dtype] * element_count(self.symbols[d]["hint"] if isinstance(d, str) else d for d in shape)
                   for name, (dtype, shape) in self.inputs.items() if name in names)

    def case(self):
        # Each layer has one output as large as an input, for each "x" or "y".
        large = [name for name in self.inputs if name[0] in "xy" and len(self.outputs) > 1]
        least = self.bytes_of(self.inputs) + self.bytes_of(large)
        return case.Case(self.name, model(tensors(self.inputs), self.nodes, self.outputs, symbols=self.symbols),
                         most={"launches": self.launches, "sector bytes": self.sectors * least,
                               "lane instructions": self.instructions * least})


class Layer:
    """Adds nodes to a case. Computes in float32, with casts of narrower tensors."""

    def __init__(self, case, suffix):
        self.case, self.suffix, self.count = case, suffix, 0

    def add(self, graph):
        for value in graph(self):
            self.case.outputs.append(self.narrow(value) if value in self.narrowed else value)

    def input(self, name, shape, dtype=None):
        dtype = dtype or self.case.dtype
        self.case.inputs[name + self.suffix] = (dtype, shape)
        return name + self.suffix if dtype == "float32" else self.op("cast", name + self.suffix, dtype="float32")

    def op(self, op, *operands, **attributes):
        self.count += 1
        self.case.nodes.append(node(f"v{self.count}{self.suffix}", op, *operands, **attributes))
        return f"v{self.count}{self.suffix}"

    def narrow(self, value):
        return value if self.case.dtype == "float32" else self.op("cast", value, dtype=self.case.dtype)

    narrowed = ()

    def row_mean(self, value):
        return self.op("mean", value, dim=[-1], keepdim=True)

    def over_rows(self, op, value):
        return self.op(op, value, dim=list(range(len(self.case.shape) - 1)))


def gradients(layer, normal, scale, centred):
    """Gradients of a norm whose normalized value is `normal`, and which was multiplied by `scale` and a weight."""
    shape = layer.case.shape
    dy, weight = layer.input("dy", shape), layer.input("w", shape[-1:])
    of_normal = layer.op("mul", dy, weight)
    back = layer.op("mul", normal, layer.row_mean(layer.op("mul", normal, of_normal)))
    if centred:
        back = layer.op("add", back, layer.row_mean(of_normal))
    dx = layer.op("mul", layer.op("sub", of_normal, back), scale)
    results = [dx, layer.over_rows("sum", layer.op("mul", dy, normal))]
    if centred:
        results.append(layer.over_rows("sum", dy))
    layer.narrowed = results
    return results


def layer_norm(layer):
    shape = layer.case.shape
    x, mean, scale = layer.input("x", shape), *(layer.input(n, shape[:-1] + [1], "float32") for n in ("mean", "rstd"))
    return gradients(layer, layer.op("mul", layer.op("sub", x, mean), scale), scale, True)


def layer_norm_anew(layer):
    x = layer.input("x", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.op("var", x, dim=[-1], keepdim=True, correction=0), 1e-5))
    return gradients(layer, layer.op("mul", layer.op("sub", x, layer.row_mean(x)), scale), scale, True)


def rms_norm_anew(layer):
    x = layer.input("x", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.row_mean(layer.op("mul", x, x)), 1e-5))
    return gradients(layer, layer.op("mul", x, scale), scale, False)


def adafactor(layer):
    gradient = layer.input("g", layer.case.shape)
    squares = layer.op("add", layer.op("mul", gradient, gradient), 1e-30)
    return [layer.op("mean", squares, dim=[-1]), layer.over_rows("mean", squares)]


def softmax_back(layer):
    """The gradient of a softmax, its sum over the rows (of a bias before it), and the maximum of each column (a scale).
    """
    y, dy = layer.input("y", layer.case.shape), layer.input("dy", layer.case.shape)
    product = layer.op("mul", y, dy)
    dx = layer.op("sub", product, layer.op("mul", y, layer.op("sum", product, dim=[-1], keepdim=True)))
    layer.narrowed = [dx]
    return [dx, layer.over_rows("sum", dx), layer.over_rows("amax", layer.op("abs", dx))]


def weight_gradient(layer):
    """Only the weight's gradient is needed; the rows' own results are not stored."""
    x, dy = layer.input("x", layer.case.shape), layer.input("dy", layer.case.shape)
    scale = layer.op("rsqrt", layer.op("add", layer.row_mean(layer.op("mul", x, x)), 1e-5))
    return [layer.over_rows("sum", layer.op("mul", dy, layer.op("mul", x, scale)))]


def graphs():
    some = {"rows": {"min": 1, "max": 8192, "hint": 4096}}
    return [Graph(layer_norm, "float32", [4096, 1024], 1.15, 1.92), Graph(layer_norm, "float32", [8192, 768], 1.1, 1.85),
            Graph(layer_norm, "bfloat16", [8192, 768], 1.2, 4.4), Graph(layer_norm, "float16", [2048, 4096], 1.3, 5),
            Graph(layer_norm, "float32", [16, 256, 1024], 1.15, 1.92),
            Graph(layer_norm, "float32", ["rows", 2048], 1.2, 2.8, symbols=some),
            Graph(layer_norm_anew, "float32", [4096, 768], 1.2, 2.55),
            Graph(layer_norm_anew, "bfloat16", [2048, 1024], 1.5, 6.8),
            Graph(layer_norm_anew, "bfloat16", [2048, 4096], 1.3, 7),
            Graph(layer_norm_anew, "float32", [3001, 777], 1.5, 2.8),
            Graph(layer_norm_anew, "float32", ["rows", 777], 1.45, 2.8, symbols=some),
            Graph(rms_norm_anew, "float32", [2048, 2048], 1.2, 2.4),
            Graph(rms_norm_anew, "bfloat16", [4096, 768], 1.2, 4.2),
            Graph(rms_norm_anew, "float16", [1024, 1536], 1.4, 5.5),
            Graph(adafactor, "float32", [3072, 3072], 1.2, 3.4), Graph(adafactor, "float32", [8192, 768], 1.1, 2.4),
            Graph(adafactor, "float32", [2048, 1024], 1.2, 2.95, layers=3),
            Graph(softmax_back, "float32", [4096, 1024], 1.2, 2.4), Graph(softmax_back, "bfloat16", [4096, 512], 1.3, 5),
            Graph(layer_norm, "float32", [4096, 1024], 1.15, 1.92, layers=2),
            Graph(weight_gradient, "float32", [2048, 1024], 1.2, 2.2)]


def fewer_rows_than_expected():
    """Launched for 140 rows where the hint is 4096: each line of partial sums is added, those of blocks without rows, too."""
    rows, columns = 140, 1024
    graph = Graph(layer_norm, "float32", ["rows", columns], 0, 0, symbols={"rows": {"min": 1, "max": 8192, "hint": 4096}})
    chance = random.Random(1)

    def inputs():
        shapes = {name: [rows if d == "rows" else d for d in shape] for name, (_, shape) in graph.inputs.items()}
        return {name: ("float32", shape, array.array("f", (chance.gauss(0, 1) for _ in range(element_count(shape)))).tobytes())
                for name, shape in shapes.items()}
    return case.Case("fewer rows than expected", model(tensors(graph.inputs), graph.nodes, graph.outputs, symbols=graph.symbols),
                     most={"launches": 2}, inputs=inputs)


def cases():
    return [graph.case() for graph in graphs()] + [fewer_rows_than_expected()]
