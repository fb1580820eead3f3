"""Warpgroup products of sm_90a with quantized weights or computed operands: int4, int8, mxfp4 and float8 with scales of
rows or of groups along K, with or without zero points, contiguous or strided along K, gated, batched, grouped
(experts), several in one launch. Sizes are multiples of no tile, on a device of few multiprocessors. The copying
warpgroup writes dequantized tiles for wgmma; tiles have 256 rows, the last with fewer, also in grouped GEMM. Also
attention with quantized keys and values. int8 rows with a zero point are multiplied as they are.

A gated unit over int4 takes few instructions per multiply-add. Skinny products, and products with a scale for less of K
than a tile has, stay with warps."""
import re

from kernels.case import FEW_MULTIPROCESSORS, Case, model, node, tensor


class Weight:
    """Quantized values [rows, K] (or [K, rows] if strided along K) and the nodes that dequantize them. `group`: length
    along K of one scale (and zero point) of a row; None: all of K."""

    def __init__(self, name, n, k, codes="int4", scales="bfloat16", group=128, zeros=None, to="bfloat16", across=False,
                 experts=()):
        along = 0 if across else 1
        shape, of_scales = [k, n] if across else [n, k], [n]
        attributes = {"dtype": to, "axis": 1 - along}
        if group:
            of_scales = [k // group, n] if across else [n, k // group]
            attributes = {"dtype": to, "axis": along + len(experts), "block": group}
        self.constants = [tensor(name, codes, *experts, *shape), tensor(name + "s", scales, *experts, *of_scales)]
        operands = [name, name + "s"]
        if zeros:
            self.constants.append(tensor(name + "z", zeros, *experts, *of_scales))
            operands.append(name + "z")
        self.nodes = [node(name + "d", "dequantize", *operands, **attributes)]
        self.factor = name + "d"
        if experts:
            self.nodes.append(node(name + "t", "transpose", self.factor, dim0=1, dim1=2))
            self.factor = name + "t"


def layer(m, n, k, to="bfloat16", across=False, **weight):
    w = Weight("w", n, k, to=to, across=across, **weight)
    product = (node("p", "matmul", "x", w.factor) if across else node("p", "linear", "x", w.factor, "bias"))
    return model([tensor("x", to, m, k)], w.nodes + [product, node("y", "gelu", "p")], ["y"],
                 constants=w.constants + ([] if across else [tensor("bias", to, n)]))


def gated(m, n, k, op="linear", more=(), constants=(), **weight):
    weights = [Weight(name, n, k, **weight) for name in "wv"]
    nodes = [n for w in weights for n in w.nodes]
    nodes += [node(name, op, "x", w.factor, *more) for name, w in zip("gu", weights)]
    return model([tensor("x", "bfloat16", m, k)], nodes + [node("y", "swiglu", "g", "u")], ["y"],
                 constants=[c for w in weights for c in w.constants] + list(constants))


def experts(m, n, k, ends, **weight):
    return gated(m, n, k, "grouped_matmul", ["o"], [tensor("o", "int32", len(ends), data=ends)], experts=[len(ends)],
                 **weight)


def scaled_sums(m, n, k, group):
    """float32 scales that multiply the accumulators."""
    w = Weight("w", n, k, scales="float32", group=group, to="float32")
    return model([tensor("x", "bfloat16", m, k)],
                 [node("f", "cast", "x", dtype="float32"), *w.nodes, node("p", "linear", "f", w.factor),
                  node("y", "cast", "p", dtype="bfloat16")], ["y"], constants=w.constants)


def projections(m, k, **weight):
    """Two products in one launch; three would be too much code."""
    weights = {name: Weight(name, n, k, **weight) for name, n in (("q", 520), ("k", 136))}
    return model([tensor("x", "bfloat16", m, k)],
                 [n for w in weights.values() for n in w.nodes] +
                 [node(name + "p", "linear", "x", w.factor) for name, w in weights.items()],
                 [name + "p" for name in weights], constants=[c for w in weights.values() for c in w.constants])


def batched(m, n, k, group):
    return model([tensor("x", "bfloat16", 3, m, k)],
                 [node("d", "dequantize", "w", "s", dtype="bfloat16", axis=2, block=group),
                  node("t", "transpose", "d", dim0=1, dim1=2), node("y", "matmul", "x", "t")], ["y"],
                 constants=[tensor("w", "int4", 3, n, k), tensor("s", "bfloat16", 3, n, k // group)])


def both_codes(m, n, k):
    w = Weight("w", n, k, codes="float8_e4m3fn", scales="float32")
    return model([tensor("x", "float8_e4m3fn", m, k), tensor("xs", "float32", m, k // 128)],
                 [node("f", "dequantize", "x", "xs", dtype="bfloat16", axis=1, block=128), *w.nodes,
                  node("y", "linear", "f", w.factor)], ["y"], constants=w.constants)


def several_results(m, n, k):
    """16-bit and 32-bit results of a product whose left operand is strided along K."""
    w = Weight("w", n, k)
    return model([tensor("x", "bfloat16", k, m), tensor("r", "bfloat16", m, n)],
                 w.nodes + [node("t", "transpose", "x", dim0=0, dim1=1), node("p", "linear", "t", w.factor),
                            node("y", "add", "p", "r"), node("z", "cast", "y", dtype="float32")], ["y", "z"],
                 constants=w.constants)


def symbolic(n, k):
    described = layer("tokens", n, k)
    described["symbols"] = {"tokens": {"min": 0, "max": 4096, "hint": 331}}
    return described


def forms():
    """(name, model)"""
    for group in (32, 64, 128):
        yield f"int4, groups of {group}", layer(328, 344, 384, group=group)
        yield (f"uint4 with zeros, float16, groups of {group}",
               layer(321, 341, 512, "float16", codes="uint4", scales="float16", zeros="uint4", group=group))
        yield f"int4 across the depth, groups of {group}", layer(328, 352, 384, across=True, group=group)
    yield "int4, a part of a tile's depth", layer(328, 344, 416, group=32)
    yield "int4, a gated unit", gated(264, 344, 384)
    yield "int4 with scales in float32, a gated unit", gated(264, 344, 384, scales="float32", group=64)
    yield "uint4 with zeros, a gated unit", gated(264, 344, 416, codes="uint4", zeros="int8", group=32)
    yield "int4, scales of sums", scaled_sums(328, 344, 384, 64)
    yield "int4, scales of sums, groups of 128", scaled_sums(200, 136, 384, 128)
    yield "int8", layer(328, 344, 400, codes="int8", group=None)
    yield "int8, float16", layer(328, 344, 400, "float16", codes="int8", scales="float16", group=None)
    yield "uint8 with zeros across the depth", layer(300, 344, 400, across=True, codes="uint8", zeros="uint8", group=None)
    mxfp4 = {"codes": "float4_e2m1fn", "scales": "float8_e8m0fnu", "group": 32}
    yield "mxfp4", layer(328, 344, 416, **mxfp4)
    yield "mxfp4, a gated unit", gated(264, 344, 416, **mxfp4)
    yield "float8", layer(328, 344, 384, codes="float8_e4m3fn", scales="float32")
    yield "float8, the other kind, float16", layer(328, 344, 384, "float16", codes="float8_e5m2")
    yield "float8, both factors", both_codes(328, 344, 384)
    yield "rows that are a symbol", symbolic(344, 384)
    yield "products of one launch", projections(400, 384)
    yield "batched", batched(200, 344, 128, 64)
    for name, graph in (("a layer", layer(384, 256, 384, codes="int8", group=None)),
                        ("a layer, odd sizes", layer(709, 341, 416, group=32)),
                        ("several results", several_results(776, 344, 384)),
                        ("a gated unit", gated(520, 344, 384, codes="uint4", zeros="uint4", group=64)),
                        ("experts", experts(1400, 136, 416, [7, 600, 1300], **mxfp4))):
        yield f"256 rows, {name}", graph
    yield "experts, int4", experts(700, 344, 384, [0, 1, 256, 700])
    yield "experts, int4, rows behind the last group", experts(451, 136, 384, [7, 140, 400])
    yield "experts, mxfp4", experts(700, 344, 416, [0, 1, 256, 690], **mxfp4)
    yield "experts, float8", experts(451, 136, 384, [7, 140, 451], codes="float8_e4m3fn", scales="float32")
    yield ("a gate that stands before a product",
           model([tensor("g", "bfloat16", 328, 400), tensor("u", "bfloat16", 328, 400)],
                 [node("h", "mul", "g", "u"), node("y", "linear", "h", "w")], ["y"],
                 constants=[tensor("w", "bfloat16", 344, 400)]))


def attention_of_codes(queries, keys, head, columns, codes, scales, causal=False, zeros=None, to="bfloat16"):
    inputs, nodes = [tensor("q", to, 1, 2, queries, head)], []
    for name, width in (("k", head), ("v", columns)):
        inputs.append(tensor(name, codes, 1, 1, keys, width))
        operands = [name]
        if scales:
            inputs.append(tensor(name + "s", scales, 1, 1, keys, 1))
            operands.append(name + "s")
        if zeros:
            inputs.append(tensor(name + "z", zeros, 1, 1, keys, 1))
            operands.append(name + "z")
        nodes.append(node(name + "d", "dequantize", *operands, dtype=to, axis=3, block=width) if scales else
                     node(name + "d", "cast", name, dtype=to))
    return model(inputs, nodes + [node("y", "scaled_dot_product_attention", "q", "kd", "vd", enable_gqa=True,
                                       is_causal=causal)], ["y"])


def attentions():
    """(name, model) of attention with dequantized keys and values."""
    yield "attention over int8", attention_of_codes(200, 333, 64, 64, "int8", "bfloat16")
    yield "attention over int8, causal", attention_of_codes(300, 300, 128, 128, "int8", "bfloat16", causal=True)
    yield "attention over int8 with zeros", attention_of_codes(200, 270, 64, 128, "int8", "float16", zeros="int8", to="float16")
    yield "attention over float8", attention_of_codes(150, 333, 128, 128, "float8_e4m3fn", "float32")
    yield "attention over float8 without scales", attention_of_codes(150, 200, 128, 64, "float8_e5m2", None, to="float16")
    yield "attention over int4", attention_of_codes(150, 333, 64, 64, "int4", "bfloat16")
    # Rows of no multiple of 128 bytes, whose 16-byte pieces still are in different banks.
    yield "attention over int8, heads of 72", attention_of_codes(200, 270, 72, 72, "int8", "bfloat16")
    yield "attention over float8, heads of 80", attention_of_codes(150, 333, 80, 80, "float8_e4m3fn", "bfloat16", causal=True)
    yield "attention over int8 with zeros, heads of 96", attention_of_codes(200, 200, 96, 96, "int8", "float16", zeros="int8", to="float16")
    yield "attention over int4, heads of 112", attention_of_codes(150, 333, 112, 112, "int4", "bfloat16")


def of_offset(m, k, *columns, batch=(), gated=False, out="bfloat16"):
    """Products of int8 rows that have a zero point."""
    constants, nodes = [tensor("xs", "float32", 1), tensor("xo", "int8", 1)], []
    for i, n in enumerate(columns):
        constants += [tensor(f"w{i}", "int8", n, k), tensor(f"s{i}", "float32", n), tensor(f"b{i}", "float32", n)]
        nodes.append(node(f"y{i}", "static_quant_linear", "x", f"w{i}", f"s{i}", "xs", "xo", f"b{i}", out_dtype=out))
    outputs = [n["name"] for n in nodes]
    if gated:
        nodes, outputs = nodes + [node("z", "swiglu", *outputs)], ["z"]
    return model([tensor("x", "int8", *batch, m, k)], nodes, outputs, constants=constants)


def offsets():
    """(name, model): the zero points of rows are subtracted from the accumulators, with column sums that threads
    compute from tiles of weights."""
    yield "an offset, 256 columns at a time", of_offset(500, 1040, 520)
    yield "an offset, 128 columns", of_offset(300, 528, 128)
    yield "an offset, 192 columns", of_offset(300, 528, 192, out="float32")
    yield "an offset, a gated unit", of_offset(260, 512, 256, 256, gated=True)
    yield "an offset, batched", of_offset(200, 512, 256, batch=(2,))
    tokens = of_offset("tokens", 512, 336)
    tokens["symbols"] = {"tokens": {"min": 0, "max": 4096, "hint": 331}}
    yield "an offset, rows that are a symbol", tokens


def stay():
    """(name, model) of products that stay with warps, or skinny."""
    yield "few rows", layer(16, 512, 512)
    yield "scales of sums, groups of 32", scaled_sums(328, 344, 384, 32)


def demands():
    """(name, model, most instructions per thousand multiply-adds)"""
    yield "int4, a gated unit of 512 rows", gated(512, 256, 2048), 1.0
    yield "int8 with an offset", of_offset(512, 1024, 512), 0.75
    yield "int4 with zeros", layer(512, 512, 2048, codes="uint4", zeros="uint4"), 1.4
    yield "int8", layer(512, 512, 2048, codes="int8", group=None), 1.5
    yield "mxfp4", layer(512, 512, 2048, codes="float4_e2m1fn", scales="float8_e8m0fnu", group=32), 1.3
    yield "float8", layer(512, 512, 2048, codes="float8_e4m3fn", scales="float32"), 1.6


def of(group, name, graph, schedules, wanted=(), verify="--verify", **more):
    return Case(name, graph, targets=("sm_90a",), chip=FEW_MULTIPROCESSORS, inputs="--random", verify=verify, group=group,
                exactly={"schedules": schedules} if schedules else {},
                texts=tuple(("cu", re.escape(text), True) for text in wanted), **more)


def first_and_others(run):
    return run["schedules"][0], set(run["schedules"][1:])


def by_warpgroups(run):
    return "gemm_wgmma" in run["schedules"]


def cases():
    found = []
    for name, graph in forms():
        wanted = ["signal_written(full", "load_copied_piece<"] + (["makes 256x"] if name.startswith("256") else [])
        row = of("forms", name, graph, None, wanted)
        # A launch with few rows, given by a symbol, takes special forms.
        row.exactly = {first_and_others: ("gemm_wgmma", {"skinny_gemm_mma"} if graph.get("symbols") else set())}
        found.append(row)
    found += [of("offsets", name, graph, ["gemm_wgmma"], ["subtract_zero_point_rows<"]) for name, graph in offsets()]
    found += [of("attention", name, graph, ["attention_wgmma"]) for name, graph in attentions()]
    for name, graph in stay():
        row = of("stay", name, graph, None, verify="")
        row.exactly = {by_warpgroups: False}
        found.append(row)
    return found + [of("demands", name, graph, ["gemm_wgmma"], verify="", most={"instructions / 1000 multiply-adds": limit})
                    for name, graph, limit in demands()]
