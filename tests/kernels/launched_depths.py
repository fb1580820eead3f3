"""Products whose K is a symbol, at values that are no multiple of 16 bytes: either operand contiguous or strided along K,
plain, batched and with an activation, floats of 8 to 64 bits and integers; and grouped GEMM with the results of a token
summed: 16-bit and 8-bit floats on tensor cores, coalesced accesses."""
from kernels import case
from kernels.case import model, node, tensors

TENSOR_CORES = ("float16", "bfloat16", "float8_e4m3fn")


def products_elsewhere(run):
    """Kernels of products that are not on tensor cores."""
    return [k["name"] for k in run.kernels if "matmul" in k["name"] and k["tensor_multiply_adds"] == 0]


def Case(name, dtype, inputs, nodes, bound, most):
    """bound: symbol -> value at the launch. most: most bytes in sectors of a kernel, relative to the
    least bytes."""
    return case.Case(name, model(tensors(inputs), nodes, symbols={symbol: {"max": 4096} for symbol in bound}), sizes=bound,
                     most={"sectors / least of a kernel": most}, exactly={products_elsewhere: []} if dtype in TENSOR_CORES else {},
                     group=name.split(" ")[0])


def product(dtype, rows, columns, depth, left="mk", right="kn", batch=(), before=""):
    sizes = {"m": rows, "n": columns, "k": "k"}
    inputs = {"x": (dtype, [*batch, *(sizes[i] for i in left)]), "w": (dtype, [sizes[i] for i in right])}
    nodes, x, w = [], "x", "w"
    if left == "km":
        nodes.append(node("xt", "transpose", x, dim0=len(batch), dim1=len(batch) + 1))
        x = "xt"
    if before:
        nodes.append(node("before", before, x))
        x = "before"
    if right == "nk":
        nodes.append(node("wt", "transpose", w, dim0=0, dim1=1))
        w = "wt"
    nodes += [node("p", "matmul", x, w), node("y", "relu", "p")]
    name = f"{before} {left} {right} of {dtype}{[*batch, rows, depth, columns]}".strip()
    return Case(name, dtype, inputs, nodes, {"k": depth}, 9)


def experts(dtype, tokens, count, depth, hidden, each, interleaved):
    inputs = {"x": (dtype, [tokens, depth]), "o": ("int32", [count]), "a": (dtype, [count, depth, 2 * hidden]),
              "b": (dtype, [count, hidden, depth]), "c": (dtype, [count, depth]), "g": (dtype, [tokens * each, 1])}
    nodes = [node("r", "repeat_interleave", "x", repeats=each, dim=0), node("p", "grouped_matmul", "r", "a", "o"),
             node("s", "swiglu", "p", interleaved=interleaved), node("q", "grouped_matmul", "s", "b", "o", "c"),
             node("w", "mul", "q", "g"), node("u", "reshape", "w", shape=[tokens, each, depth]),
             node("y", "sum", "u", dim=[1])]
    name = f"{'interleaved ' if interleaved else ''}experts of {dtype}{[tokens, count, depth, hidden, each]}"
    return Case(name, dtype, inputs, nodes, {}, 7)


def cases():
    found = [experts("float16", *shape, interleaved) for interleaved in (False, True)
             for shape in ((67, 5, 72, 40, 2), (30, 4, 96, 64, 4))]
    for dtype in TENSOR_CORES:
        found += [product(dtype, 131, 136, 101), product(dtype, 131, 136, 101, left="km"),
                  product(dtype, 72, 200, 77, left="km", right="nk"), product(dtype, 72, 200, 77, right="nk"),
                  product(dtype, 72, 131, 50), product(dtype, 40, 104, 35, batch=(3,)),
                  product(dtype, 264, 512, 333)]
        if dtype != "float8_e4m3fn":
            found += [product(dtype, 40, 104, 35, before="silu"), product(dtype, 80, 104, 35, left="km", before="silu")]
    return found + [product(dtype, 80, 104, 33, left=left, right=right) for dtype in ("float32", "float64", "int32", "int8")
                    for left, right in (("mk", "kn"), ("km", "nk"), ("mk", "nk"))]
