"""What bench/gpu measures: for each workload a graph for fusec, the same as a PyTorch function, and what it costs at least.

A workload is made by a function of its shape. Operands are in the order of the graph's inputs and of the function's
parameters; the function is evaluated in float64 for checking, in the operands' dtype for timing."""
import dataclasses
import typing

EPSILON = 1e-5
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass
class Workload:
    name: str
    shape: tuple
    dtype: str
    operands: list  # (name, shape)
    nodes: list  # the last one's result is the output "y"
    output_shape: tuple
    function: typing.Callable  # of torch tensors
    flops: float = 0  # of its products
    triton: str = ""  # the kernel of bench/compare_triton.py, where there is one

    def graph(self):
        inputs = [{"name": name, "dtype": self.dtype, "shape": list(shape)} for name, shape in self.operands]
        return {"fusec": 1, "name": self.file_name(), "inputs": inputs, "nodes": self.nodes, "outputs": ["y"]}

    def least_bytes(self):
        return BYTES[self.dtype] * (sum(count(shape) for _, shape in self.operands) + count(self.output_shape))

    def title(self):
        return f"{self.name} {'x'.join(map(str, self.shape))} {self.dtype}"

    def file_name(self):
        return self.title().replace(" ", "_")


def count(shape):
    elements = 1
    for extent in shape:
        elements *= extent
    return elements


def node(name, op, inputs, **attrs):
    return {"name": name, "op": op, "inputs": inputs} | ({"attrs": attrs} if attrs else {})


def elementwise(name, nodes, function, operands, triton=""):
    def of(shape, dtype):
        return Workload(name, shape, dtype, [(o, shape) for o in operands], nodes, shape, function, triton=triton)
    return of


def swiglu_of(torch):
    return elementwise("swiglu", [node("s", "silu", ["gate"]), node("y", "mul", ["s", "up"])],
                       lambda g, u: torch.nn.functional.silu(g) * u, ["gate", "up"], "swiglu")


def gelu_of(torch):
    return elementwise("gelu", [node("y", "gelu", ["x"])], lambda x: torch.nn.functional.gelu(x), ["x"], "gelu")


def softmax_of(torch):
    return elementwise("softmax", [node("y", "softmax", ["x"], dim=-1)], lambda x: torch.softmax(x, -1), ["x"], "softmax")


def rms_norm_of(torch):
    def of(shape, dtype):
        n = shape[-1]
        return Workload("rms_norm", shape, dtype, [("x", shape), ("w", (n,))],
                        [node("y", "rms_norm", ["x", "w"], normalized_shape=[n], eps=EPSILON)], shape,
                        lambda x, w: torch.nn.functional.rms_norm(x, (n,), w, EPSILON), triton="rms_norm")
    return of


def layer_norm_of(torch):
    def of(shape, dtype):
        n = shape[-1]
        return Workload("layer_norm", shape, dtype, [("x", shape), ("w", (n,)), ("b", (n,))],
                        [node("y", "layer_norm", ["x", "w", "b"], normalized_shape=[n], eps=EPSILON)], shape,
                        lambda x, w, b: torch.nn.functional.layer_norm(x, (n,), w, b, EPSILON), triton="layer_norm")
    return of


def add_rms_norm_of(torch):
    def of(shape, dtype):
        n = shape[-1]
        return Workload("add_rms_norm", shape, dtype, [("x", shape), ("r", shape), ("w", (n,))],
                        [node("s", "add", ["x", "r"]), node("y", "rms_norm", ["s", "w"], normalized_shape=[n], eps=EPSILON)],
                        shape, lambda x, r, w: torch.nn.functional.rms_norm(x + r, (n,), w, EPSILON))
    return of


def transpose_of(torch):
    def of(shape, dtype):
        return Workload("transpose", shape, dtype, [("x", shape)], [node("y", "transpose", ["x"], dim0=0, dim1=1)],
                        shape[::-1], lambda x: x.t().contiguous())
    return of


def linear_gelu_of(torch):
    def of(shape, dtype):
        m, n, k = shape
        return Workload("linear_bias_gelu", shape, dtype, [("x", (m, k)), ("w", (n, k)), ("b", (n,))],
                        [node("p", "linear", ["x", "w", "b"]), node("y", "gelu", ["p"])], (m, n),
                        lambda x, w, b: torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b)), 2.0 * m * n * k)
    return of


def linear_residual_of(torch):
    def of(shape, dtype):
        m, n, k = shape
        return Workload("linear_residual", shape, dtype, [("x", (m, k)), ("w", (n, k)), ("r", (m, n))],
                        [node("p", "linear", ["x", "w"]), node("y", "add", ["p", "r"])], (m, n),
                        lambda x, w, r: torch.nn.functional.linear(x, w) + r, 2.0 * m * n * k)
    return of


def dual_swiglu_of(torch):
    def of(shape, dtype):
        m, n, k = shape
        nodes = [node("g", "linear", ["x", "wg"]), node("u", "linear", ["x", "wu"]), node("s", "silu", ["g"]),
                 node("y", "mul", ["s", "u"])]
        return Workload("dual_swiglu", shape, dtype, [("x", (m, k)), ("wg", (n, k)), ("wu", (n, k))], nodes, (m, n),
                        lambda x, g, u: torch.nn.functional.silu(torch.nn.functional.linear(x, g)) *
                        torch.nn.functional.linear(x, u), 4.0 * m * n * k)
    return of


def attention_of(torch):
    def of(shape, dtype):
        batch, heads, tokens, size = shape
        flops = 2.0 * batch * heads * tokens * tokens * size  # causal: half of both products
        return Workload("attention_causal", shape, dtype, [(name, shape) for name in "qkv"],
                        [node("y", "scaled_dot_product_attention", ["q", "k", "v"], is_causal=True)], shape,
                        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), flops)
    return of


# Three shapes each, then those of --all.
ROWS = [(4096, 4096), (16384, 4095), (2048, 16384)], [(4, 65536), (16384, 512), (8192, 8192), (512, 65536), (16384, 1000)]
PRODUCTS = [(4096, 4096, 4096), (16, 14336, 4096), (2048, 14336, 4096)], [(1, 4096, 14336), (16384, 4096, 4096), (256, 4096, 14336)]
HEADS = [(1, 32, 8192, 128), (4, 32, 2048, 128), (4, 32, 2048, 64)], [(1, 16, 16384, 128), (16, 16, 1024, 64)]
LIST = [(linear_gelu_of, *PRODUCTS), (attention_of, *HEADS), (linear_residual_of, *PRODUCTS), (dual_swiglu_of, *PRODUCTS),
        (swiglu_of, [(2048, 8192), (4096, 14336), (16384, 4095)], [(4, 65536), (16384, 512)]), (softmax_of, *ROWS),
        (rms_norm_of, *ROWS), (add_rms_norm_of, *ROWS), (layer_norm_of, *ROWS), (gelu_of, *ROWS),
        (transpose_of, [(8192, 8192), (4096, 4095), (16384, 1024)], [(65536, 64)])]
SMALL = {2: (16, 128), 3: (64, 64, 64), 4: (1, 1, 128, 64)}  # for the emulator, by the shape's rank
# The first kernels on a new chip: TMA, wgmma, clusters with multicast, clusters with distributed shared memory.
SMOKE = [(swiglu_of, (64, 1024)), (linear_gelu_of, (1024, 2048, 128)), (attention_of, (1, 2, 256, 64)),
         (softmax_of, (2, 32768))]


def workloads(torch=None, everything=False, only=(), dtype="bfloat16", small=False):
    """All of them, one after the other. Without torch they are graphs; the functions cannot be called."""
    for maker, shapes, more in LIST:
        make = maker(torch)
        for shape in [SMALL[len(shapes[0])]] if small else shapes + (more if everything else []):
            workload = make(shape, dtype)
            if not only or workload.name in only:
                yield workload


def smoke_workloads(small=False):
    for maker, shape in SMOKE:
        yield maker(None)(SMALL[len(shape)] if small and maker is linear_gelu_of else shape, "bfloat16")
