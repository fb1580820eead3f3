"""Products over a concat along K: linear layers and convolutions, plain and after norms and activations, of two to four
pieces of equal or different lengths: one launch, and few instructions per multiply-add, since pieces are copied from
their own tensors. Convolutions with windows only on sm_90a."""
from kernels import case
from kernels.case import element_count, model, node, tensor


def Case(name, dtype, pieces, space, weights, nodes, most, **more):
    """most: most instructions per thousand multiply-adds. more: name -> size of further constants."""
    inputs = [tensor(f"x{i}", dtype, *shape) for i, shape in enumerate(pieces)]
    constants = [tensor("w", dtype, *weights), *(tensor(name, dtype, size) for name, size in more.items())]
    products = element_count([pieces[0][0], *space]) * weights[0] * element_count(weights[1:])
    windows = name.startswith("convolution 3")
    bound = lambda run: None if windows and run.target == "sm_80" else most * products / 1000
    return case.Case(f"{name} of {dtype}{pieces} to {weights[0]}",
                     model(inputs, [node("joined", "concat", *(x["name"] for x in inputs), dim=1), *nodes], constants=constants),
                     exactly={"launches": 1}, most={"instructions": bound}, group=name.split(" ")[0])


def linear(dtype, rows, pieces, columns, most, before=""):
    operand = "before" if before else "joined"
    nodes = ([node("before", before, "joined")] if before else []) + [node("p", "linear", operand, "w", "b"),
                                                                      node("y", "relu", "p")]
    return Case(f"linear {before}".strip(), dtype, [[rows, depth] for depth in pieces], [], [columns, sum(pieces)], nodes, most,
                b=columns)


def convolution(dtype, images, pieces, space, results, window, most, norm=False):
    depth, nodes, more = sum(pieces), [], {"b": results}
    if norm:
        nodes = [node("n", "batch_norm", "joined", "g", "h", "m", "v", eps=1e-5), node("before", "relu", "n")]
        more |= {name: depth for name in "ghmv"}
    nodes += [node("p", "conv2d", "before" if norm else "joined", "w", "b", stride=[1, 1],
                   padding=[window // 2, window // 2], dilation=[1, 1], groups=1), node("y", "relu", "p")]
    return Case(f"convolution {'norm ' if norm else ''}{window}x{window}", dtype,
                [[images, channels, *space] for channels in pieces], space, [results, depth, window, window], nodes,
                most, **more)


def cases():
    found = []
    for dtype in ("float16", "bfloat16"):
        found += [linear(dtype, 130, (64, 72), 136, 20), linear(dtype, 200, (96, 96), 200, 20),
                  linear(dtype, 77, (64, 40, 72), 136, 25), linear(dtype, 130, (64, 40, 72, 8), 72, 30),
                  linear(dtype, 130, (64, 72), 136, 60, before="gelu"),
                  convolution(dtype, 2, (64, 72), (8, 16), 136, 1, 20),
                  convolution(dtype, 2, (64, 32, 32), (8, 24), 72, 1, 50, norm=True),
                  convolution(dtype, 2, (64, 64), (8, 32), 136, 3, 10),
                  convolution(dtype, 1, (40, 72), (9, 24), 136, 3, 10)]
    return found + [linear("float32", 130, (64, 72), 136, 150), linear("float32", 100, (32, 32, 32), 72, 150)]
