"""The norm of a model's gradients, gradient clipping, and other horizontally fused reductions of tensors of different
sizes. Demanded are few launches and few instructions per byte. With very many tensors fusec's own time must grow
linearly: three times as many tensors take at most five times as long."""
from kernels import case
from kernels.case import model, node, tensor

BLOCK = [[256, 256], [256]] * 3 + [[1024, 256], [1024], [256, 1024], [256], [384, 256]]


def Case(name, dtype, shapes, graph, launches, instructions, **more):
    """instructions: most warp instructions x 32 of all kernels, relative to the least bytes."""
    nodes, outputs = graph(dtype, len(shapes))
    inputs = [tensor(f"g{i}", dtype, *shape) for i, shape in enumerate(shapes)]
    return case.Case(f"{name} {dtype} {len(shapes)}", model(inputs, nodes, outputs), group=name,
                     most={"launches": launches, "instructions / byte": instructions}, **more)


def compiled_in_linear_time():
    few, many = (Case("many tensors", "float32", BLOCK * n, clipped_by_stack, None, None, executed=False, targets=("sm_80",))
                 for n in (6, 18))
    many.beside, many.most = few, {"compile ms": lambda run: 5 * run.beside["compile ms"]}
    return many


def norms(dtype, count):
    nodes = []
    for i in range(count):
        wide = f"g{i}"
        if dtype in ("float16", "bfloat16"):
            wide = f"c{i}"
            nodes.append(node(wide, "cast", f"g{i}", dtype="float32"))
        nodes.append(node(f"n{i}", "vector_norm", wide, ord=2))
    return nodes, [f"n{i}" for i in range(count)]


def of_stack(dtype, count):
    nodes, each = norms(dtype, count)
    return nodes + [node("all", "stack", *each, dim=0), node("norm", "vector_norm", "all", ord=2)], ["norm"]


def clipped(nodes, dtype, count):
    nodes = nodes + [node("e", "add", "norm", 1e-6), node("r", "div", 1.0, "e"), node("f", "clamp", "r", max=1.0)]
    for i in range(count):
        nodes += [node(f"f{i}", "cast", "f", dtype=dtype), node(f"y{i}", "mul", f"g{i}", f"f{i}")]
    return nodes, ["norm"] + [f"y{i}" for i in range(count)]


def clipped_by_stack(dtype, count):
    return clipped(of_stack(dtype, count)[0], dtype, count)


def clipped_by_sums(dtype, count):
    nodes, last = [], ""
    for i in range(count):
        nodes += [node(f"q{i}", "mul", f"g{i}", f"g{i}"), node(f"s{i}", "sum", f"q{i}")]
        if last:
            nodes.append(node(f"a{i}", "add", last, f"s{i}"))
        last = f"a{i}" if last else f"s{i}"
    return clipped(nodes + [node("norm", "sqrt", last)], dtype, count)


def of_losses(dtype, count):
    nodes = [node(f"m{i}", "amax", f"g{i}") for i in range(count)]
    nodes.append(node("b1", "add", "m0", "m1"))
    nodes += [node(f"b{i}", "add", f"b{i - 1}", f"m{i}") for i in range(2, count)]
    return nodes, [f"b{count - 1}"]


def cases():
    found = []
    for dtype, most in (("float32", 3.2), ("float16", 5), ("bfloat16", 5)):
        found += [Case("norms", dtype, BLOCK, norms, 2, most), Case("norm of norms", dtype, BLOCK, of_stack, 3, most),
                  Case("clipped by norm of norms", dtype, BLOCK, clipped_by_stack, 4, most)]
    uneven = [[1023, 129], [77], [301, 1001], [100003], [5]]
    squares, tall = [[512, 512], [512], [768, 512], [2048]], [[512, 512], [768, 512], [2048, 96], [64]]
    found += [Case("clipped by sums of squares", "float32", squares, clipped_by_sums, 4, 4),
              Case("clipped by norm of uneven norms", "float32", uneven, clipped_by_stack, 4, 8),
              Case("sum of maxima", "float32", tall, of_losses, 3, 5),
              Case("sum of maxima", "int8", tall, of_losses, 3, 40),
              Case("norms", "float64", [[256, 256], [256], [512, 256]], norms, 2, 12),
              Case("clipped by norm of norms", "float32", BLOCK * 6, clipped_by_stack, 4, 4)]
    return found + [compiled_in_linear_time()]
