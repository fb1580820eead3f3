"""Families that move, select and contract elements."""
import torch
import torch.nn.functional as F

from model import FLOATS, Model, dtype, in_float64


def movement():
    m = Model("movement")
    x = m.input("x", torch.randn(2, 3, 4))
    other = m.input("other", torch.randn(2, 3, 4))
    ones = m.input("ones", torch.randn(1, 3, 1, 2))
    image = m.input("image", torch.randn(2, 3, 5, 6))
    volume = m.input("volume", torch.randn(1, 2, 3, 4, 5))
    scalar = m.input("scalar", torch.tensor(1.5))
    mask = m.input("mask", torch.rand(3, 5) < 0.5)
    bytes_ = m.input("bytes", torch.randint(-128, 127, (4, 6)).to(torch.int8))

    for shape in ([4, 6], [-1], [2, -1, 2], [3, 1, 8, 1]):
        m.node("reshape", [x], {"shape": shape}, lambda t: t.reshape(shape))
    m.node("reshape", [scalar], {"shape": [1, 1]}, lambda t: t.reshape(1, 1))
    for start, end in ((0, -1), (1, 2), (0, 1), (1, 1)):
        m.node("flatten", [x], {"start_dim": start, "end_dim": end}, lambda t: t.flatten(start, end))
    m.node("flatten", [scalar], {}, torch.flatten)
    m.node("permute", [x], {"dims": [2, 0, -2]}, lambda t: t.permute(2, 0, -2))
    m.node("transpose", [x], {"dim0": 0, "dim1": -1}, lambda t: t.transpose(0, -1))
    for dim in (0, -2, [0, 2], 1):
        m.node("squeeze", [ones], {"dim": dim}, lambda t: t.squeeze(tuple(dim) if isinstance(dim, list) else dim))
    for dim in (0, 2, -1):
        m.node("unsqueeze", [x], {"dim": dim}, lambda t: t.unsqueeze(dim))
    for shape in ([4, 3, 5, 2], [2, -1, 3, 7, 2], [-1, 3, 1, 2]):
        m.node("expand", [ones], {"shape": shape}, lambda t: t.expand(shape))
    for dim, start, end, step in ((1, 1, 3, 1), (2, 0, 2**63 - 1, 3), (-1, -3, -1, 1), (0, 5, 9, 1), (2, -9, 3, 2)):
        m.node("slice", [x], {"dim": dim, "start": start, "end": end, "step": step},
               lambda t: torch.ops.aten.slice.Tensor(t, dim, start, end, step))
    for dim, index in ((0, 1), (2, -1), (1, 0)):
        m.node("select", [x], {"dim": dim, "index": index}, lambda t: t.select(dim, index))
    for sizes, dim in ((2, 2), (3, -1), ([1, 2], 1), (5, 0)):
        m.node("split", [x], {"split_sizes": sizes, "dim": dim}, lambda t: torch.split(t, sizes, dim))
    for chunks, dim in ((2, 0), (3, 2), (7, 1)):
        m.node("chunk", [x], {"chunks": chunks, "dim": dim}, lambda t: torch.chunk(t, chunks, dim))
    for dim in (0, 1, -1):
        m.node("concat", [x, other, x], {"dim": dim}, lambda *t: torch.cat(t, dim))
        m.node("stack", [x, other], {"dim": dim}, lambda *t: torch.stack(t, dim))
    for pad in ([1, 2], [0, 1, 2, 0], [-1, 2, 1, -2], [1, 1, 0, 0, 2, 1]):
        m.node("pad", [x], {"pad": pad, "mode": "constant", "value": 0.5}, lambda t: F.pad(t, pad, value=0.5))
    for mode in ("reflect", "replicate", "circular"):
        m.node("pad", [image], {"pad": [2, 1, 1, 3], "mode": mode}, lambda t: F.pad(t, (2, 1, 1, 3), mode))
        m.node("pad", [x], {"pad": [1, 2], "mode": mode}, lambda t: F.pad(t, (1, 2), mode))
        m.node("pad", [volume], {"pad": [1, 2, 0, 1, 1, 1], "mode": mode}, lambda t: F.pad(t, (1, 2, 0, 1, 1, 1), mode))
    m.node("pad", [mask], {"pad": [1, 1], "mode": "constant", "value": 1}, lambda t: F.pad(t, (1, 1), value=1))
    m.node("flip", [x], {"dims": [0, -1]}, lambda t: t.flip(0, -1))
    for shifts, dims in (([1, -2], [0, 2]), (3, -1), (11, 2)):
        m.node("roll", [x], {"shifts": shifts, "dims": dims}, lambda t: t.roll(shifts, dims))
    m.node("roll", [x], {"shifts": 5}, lambda t: t.roll(5))
    for repeats in ([2, 1, 3], [2, 1, 2, 1]):
        m.node("repeat", [x], {"repeats": repeats}, lambda t: t.repeat(repeats))
    for repeats, dim in ((2, 1), (3, -1)):
        m.node("repeat_interleave", [x], {"repeats": repeats, "dim": dim}, lambda t: t.repeat_interleave(repeats, dim))
    m.node("repeat_interleave", [x], {"repeats": 2}, lambda t: t.repeat_interleave(2))
    for diagonal in (0, 1, -2, 9):
        for op in ("tril", "triu"):
            for operand in (image, mask, bytes_):
                m.node(op, [operand], {"diagonal": diagonal}, lambda t: getattr(torch, op)(t, diagonal))
    return m


def indexing():
    m = Model("indexing")
    x = m.input("x", torch.randn(4, 5, 3))
    halves = m.input("halves", torch.randn(4, 5, 3).half())
    whole = m.input("whole", torch.randint(-9, 9, (4, 6)))
    table = m.input("table", torch.randn(7, 5).bfloat16())
    small = m.input("small", torch.randint(0, 3, (2, 4, 3)))
    ids = m.input("ids", torch.randint(0, 7, (2, 3)).int())
    m.node("embedding", [table, ids], {}, lambda w, i: F.embedding(i, w))
    rows = m.input("rows", torch.tensor([3, 0, 0, 2]))
    for dim in (0, 1):
        m.node("index_select", [x, rows], {"dim": dim}, lambda t, i: t.index_select(dim, i))
    for dim in (0, 1, -1):
        m.node("gather", [x, small], {"dim": dim}, lambda t, i: t.gather(dim, i))
    unique = m.input("unique", torch.stack([torch.randperm(5)[:3] for _ in range(4)])[:, :, None].expand(4, 3, 2))
    source = m.input("source", torch.randn(4, 3, 2))
    m.node("scatter", [x, unique, source], {"dim": 1}, lambda t, i, s: t.scatter(1, i, s))
    values = m.input("values", torch.randn(4, 3))
    first, second = m.input("first", torch.tensor([3, 0, 1, 2])), m.input("second", torch.tensor([4, 0, -1, 2]))
    m.node("index_put", [x, values, first, second], {"accumulate": False},
           lambda t, v, *i: torch.index_put(t, i, v))
    m.node("index_put", [x, values, rows, second], {"accumulate": True},
           lambda t, v, *i: torch.index_put(t, i, v, accumulate=True))
    for operand in (x, halves, whole):
        for dim in (0, -1):
            for flag in (True, False):
                m.node("sort", [operand], {"dim": dim, "descending": flag, "stable": True},
                       lambda t: torch.sort(t, dim=dim, descending=flag, stable=True))
                if operand != whole:  # which of equal values are taken is not specified
                    m.node("topk", [operand], {"k": 2, "dim": dim, "largest": flag, "sorted": True},
                           lambda t: torch.topk(t, 2, dim, flag, True))
    return m


def matrix():
    m = Model("matrix")
    for d in FLOATS:
        def tensor(name, *shape):
            return m.input(f"{name}_{d}", (torch.randn(shape) / 2).to(dtype(d)))

        def node(op, operands, attrs, function):
            m.node(op, operands, attrs, in_float64(function, d))

        vector, row = tensor("vector", 6), tensor("row", 5)
        a, b = tensor("a", 5, 6), tensor("b", 6, 4)
        stack_a, stack_b = tensor("stack_a", 3, 5, 6), tensor("stack_b", 3, 6, 4)
        wide = tensor("wide", 2, 1, 5, 6)
        weight, bias = tensor("weight", 4, 6), tensor("bias", 4)
        for operands in ([a, b], [vector, b], [a, vector], [vector, vector], [stack_a, b], [a, stack_b],
                         [stack_a, stack_b], [wide, stack_b], [vector, stack_b], [stack_a, vector]):
            node("matmul", operands, {}, torch.matmul)
        for operands in ([a, weight], [a, weight, bias], [wide, weight, bias], [vector, weight, bias]):
            node("linear", operands, {}, F.linear)
        node("bmm", [stack_a, stack_b], {}, torch.bmm)
        full = tensor("full", 5, 4)
        column = tensor("column", 5, 1)
        for operands in ([bias, a, b], [full, a, b], [column, a, b]):
            node("addmm", operands, {}, torch.addmm)
            node("addmm", operands, {"alpha": 0.5, "beta": -2}, lambda *t: torch.addmm(*t, alpha=0.5, beta=-2))
    m.input("left", torch.randint(-50, 50, (3, 7)).int())
    m.input("right", torch.randint(-50, 50, (7, 2)).int())
    m.node("matmul", ["left", "right"], {}, torch.matmul)
    return m


def convolution():
    m = Model("convolution")
    sizes = {1: (9,), 2: (7, 8), 3: (5, 4, 6)}
    variants = [{}, {"stride": 2, "padding": 1}, {"padding": 2, "dilation": 2}, {"groups": 2}, {"padding": "same"},
                {"padding": "valid", "stride": 2}, {"padding": "same", "dilation": 2, "groups": 2}]
    transposed = [{}, {"stride": 2, "padding": 1}, {"stride": 3, "padding": 1, "output_padding": 2},
                  {"groups": 2, "dilation": 2}]
    for d in ("float32", "float16"):
        for n, size in sizes.items():
            x = m.input(f"x{n}_{d}", torch.randn(2, 4, *size).to(dtype(d)))
            bias = m.input(f"bias{n}_{d}", torch.randn(6).to(dtype(d)))
            for attrs in variants:
                shape = (6, 4 // attrs.get("groups", 1), *([3, 2, 3][:n] if attrs.get("padding") != "same" else [3] * n))
                weight = m.input(f"weight{len(m.inputs)}", (torch.randn(shape) / 3).to(dtype(d)))
                for operands in ([x, weight], [x, weight, bias]):
                    m.node(f"conv{n}d", operands, attrs,
                           in_float64(lambda *t: getattr(F, f"conv{n}d")(*t, **attrs), d))
            for attrs in transposed:
                shape = (4, 6 // attrs.get("groups", 1), *[3, 2, 3][:n])
                weight = m.input(f"weight{len(m.inputs)}", (torch.randn(shape) / 3).to(dtype(d)))
                m.node(f"conv_transpose{n}d", [x, weight, bias], attrs,
                       in_float64(lambda *t: getattr(F, f"conv_transpose{n}d")(*t, **attrs), d))
    per_dimension = {"stride": [2, 1], "padding": [0, 2], "dilation": [1, 3]}
    m.input("uneven", torch.randn(5, 4, 3, 2))
    m.node("conv2d", ["x2_float32", "uneven"], per_dimension,
           in_float64(lambda *t: F.conv2d(*t, **per_dimension), "float32"))
    return m


def attention():
    m = Model("attention")
    op = "scaled_dot_product_attention"
    for d in ("float32", "float16", "bfloat16"):
        def tensor(name, *shape):
            return m.input(f"{name}_{d}", torch.randn(shape).to(dtype(d)))

        def node(operands, attrs, **options):
            options = options | {k: v for k, v in attrs.items() if k != "is_causal"}
            causal = attrs.get("is_causal", False)
            function = lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, **options)
            m.node(op, operands, attrs, in_float64(function, d))

        q, k, v = tensor("q", 2, 4, 5, 8), tensor("k", 2, 4, 7, 8), tensor("v", 2, 4, 7, 6)
        shared_k, shared_v = tensor("shared_k", 2, 2, 7, 8), tensor("shared_v", 2, 2, 7, 6)
        keep = m.input(f"keep_{d}", torch.rand(5, 7) < 0.7)
        m.inputs[keep][:, 0] = True
        added = tensor("added", 2, 1, 5, 7)
        node([q, k, v], {})
        node([q, k, v], {"is_causal": True})
        node([q, k, v], {"scale": 0.3})
        node([q, k, v, keep], {})
        node([q, k, v, added], {"scale": 1.0})
        node([q, shared_k, shared_v], {"enable_gqa": True})
        node([q, shared_k, shared_v, keep], {"enable_gqa": True})
        some = m.input(f"some_{d}", torch.rand(2, 4, 5, 7) < 0.5)
        m.inputs[some][:, 1:3, 2] = False  # rows without a key are 0
        node([q, k, v, some], {})
    return m


def pooling():
    m = Model("pooling")
    sizes = {1: (9,), 2: (7, 8), 3: (5, 4, 6)}
    for d in ("float32", "bfloat16"):
        for n, size in sizes.items():
            x = m.input(f"x{n}_{d}", torch.randn(2, 3, *size).to(dtype(d)))
            for attrs in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
                          {"kernel_size": 3, "stride": 2, "ceil_mode": True}, {"kernel_size": 2, "dilation": 2}):
                m.node(f"max_pool{n}d", [x], attrs, lambda t: getattr(F, f"max_pool{n}d")(t, **attrs))
            for attrs in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
                          {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
                          {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}):
                m.node(f"avg_pool{n}d", [x], attrs, in_float64(lambda t: getattr(F, f"avg_pool{n}d")(t, **attrs), d))
        x = f"x2_{d}"
        for size in ([3, 3], 1, [4, 8], [9, 5]):
            m.node("adaptive_avg_pool2d", [x], {"output_size": size},
                   in_float64(lambda t: F.adaptive_avg_pool2d(t, size), d))
        for size in ([14, 16], [3, 5], [10, 4]):
            m.node("interpolate", [x], {"size": size, "mode": "nearest"}, lambda t: F.interpolate(t, size))
            for corners in (False, True):
                m.node("interpolate", [x], {"size": size, "mode": "bilinear", "align_corners": corners},
                       in_float64(lambda t: F.interpolate(t, size, mode="bilinear", align_corners=corners), d))
    return m
