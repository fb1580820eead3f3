"""The warpgroup GEMM of sm_90a. A linear layer with bias and GELU in bfloat16: wgmma fed by TMA, with multicast to both
blocks of a cluster that multiply the same tile, a producer that gives registers to consumers, stores by TMA, requested
bytes of global memory within 1.1 times what its tiles need, NVRTC within 400 ms of CPU. Then every transposition,
batches, gated dual GEMM, results in several tensors, symbolic sizes, float8 and int8 operands with scales of tensors,
rows and blocks along K, and grouped GEMM, on a device of few multiprocessors so that small products use this form and
blocks are persistent. Sizes are multiples of no tile; the launches are those of the compiled host part."""
import re

from kernels import case
from kernels.case import FEW_MULTIPROCESSORS, Case, model, node

SM_90A = ("sm_90a",)
ROWS, DEPTH = 128, 64


def tensor(name, *shape, dtype="bfloat16"):
    return case.tensor(name, dtype, *shape)


def layer(m, n, k):
    return model([tensor("x", m, k)],
                 [node("p", "linear", "x", "w", "bias"), node("h", "gelu", "p")], ["h"],
                 constants=[tensor("w", n, k), tensor("bias", n)])


def transposed(x_turned, w_turned, dtype, m, n, k):
    nodes, x, w = [], "x", "w"
    if x_turned:
        nodes.append(node("xt", "transpose", "x", dim0=0, dim1=1))
        x = "xt"
    if w_turned:
        nodes.append(node("wt", "transpose", "w", dim0=0, dim1=1))
        w = "wt"
    nodes.append(node("y", "matmul", x, w))
    return model([tensor("x", *((k, m) if x_turned else (m, k)), dtype=dtype),
                  tensor("w", *((n, k) if w_turned else (k, n)), dtype=dtype)], nodes, ["y"])


def forms():
    """(name, model, texts that the kernel's source must contain)"""
    for dtype in ("bfloat16", "float16"):
        for x_turned in (False, True):
            for w_turned in (False, True):
                across = f"<{64 if x_turned else 0}, {0 if w_turned else 64}>"
                yield (f"{dtype} {across}", transposed(x_turned, w_turned, dtype, 328, 344, 136),
                       [f"multiply_warpgroup_{'bf16' if dtype == 'bfloat16' else 'fp16'}{across}"])
    yield ("columns in no eights", layer(321, 341, 200), ["__cluster_dims__(2"])
    yield ("rows of one tile", layer(120, 520, 328), ["load_box("])
    yield ("depth of one tile", layer(1000, 520, 40), [])
    yield ("batched, with a residual",
           model([tensor("x", 3, 200, 136), tensor("w", 3, 136, 344), tensor("r", 3, 200, 344)],
                 [node("y", "matmul", "x", "w"), node("z", "add", "y", "r")], ["z"]), ["load_box_multicast"])
    # The last tile of a cluster has no rows.
    for n in (344, 341):
        yield (f"rows of three tiles, {n} columns, with a residual",
               model([tensor("x", 384, 136), tensor("r", 384, n)],
                     [node("p", "linear", "x", "w"), node("y", "add", "p", "r")], ["y"], constants=[tensor("w", n, 136)]),
               ["__cluster_dims__(2"])
    heads = [node(n + "t", "permute", n, dims=[0, 2, 1, 3]) for n in "qk"]
    yield ("heads apart in memory",
           model([tensor("q", 2, 200, 3, 64), tensor("k", 2, 152, 3, 64)],
                 heads + [node("kk", "transpose", "kt", dim0=2, dim1=3), node("s", "matmul", "qt", "kk")], ["s"]), [])
    yield ("a matrix for all of a batch",
           model([tensor("x", 2, 3, 100, 136), tensor("w", 344, 136)], [node("y", "linear", "x", "w")], ["y"]), [])
    yield ("heads that are merged",
           model([tensor("a", 1, 3, 400, 64), tensor("w", 344, 192)],
                 [node("t", "permute", "a", dims=[0, 2, 1, 3]), node("m", "reshape", "t", shape=[1, 400, 192]),
                  node("y", "linear", "m", "w")], ["y"]), [" % 64, "])
    yield ("products of one launch",
           model([tensor("x", 400, 200), tensor("u", 520, 200), tensor("v", 136, 200), tensor("w", 136, 200)],
                 [node("q", "linear", "x", "u"), node("k", "linear", "x", "v"), node("l", "linear", "x", "w"),
                  node("h", "gelu", "q")], ["h", "k", "l"]), ["const int part"])
    gated = [node("a", "linear", "x", "g"), node("b", "linear", "x", "u"), node("s", "silu", "a"),
             node("h", "mul", "s", "b")]
    yield ("a gated unit", model([tensor("x", 264, 264)], gated, ["h"],
                                 constants=[tensor("g", 344, 264), tensor("u", 344, 264)]), ["makes 128x128", "store_words(", ".reg .f32 sum<128>"])
    yield ("halves of one matrix, gated",
           model([tensor("x", 264, 264)],
                 [node("p", "linear", "x", "w"), node("a", "slice", "p", dim=-1, start=0, end=344),
                  node("b", "slice", "p", dim=-1, start=344, end=688), node("s", "silu", "a"), node("h", "mul", "s", "b")],
                 ["h"], constants=[tensor("w", 688, 264)]), [])
    yield ("three sums", model([tensor("x", 392, 264)],
                               [node("a", "linear", "x", "u"), node("b", "linear", "x", "v"),
                                node("c", "linear", "x", "w"), node("s", "sigmoid", "b"), node("t", "mul", "a", "s"),
                                node("y", "add", "t", "c")], ["y"],
                               constants=[tensor(n, 328, 264) for n in "uvw"]), ["makes 128x64", ".reg .f32 sum<96>"])
    yield ("several results", model([tensor("x", 264, 264)],
                                    [node("p", "linear", "x", "w"), node("t", "tanh", "p"), node("r", "relu", "p")],
                                    ["p", "t", "r"], constants=[tensor("w", 344, 264)]), ["store_box("])
    yield ("float32 results", model([tensor("x", 264, 264)],
                                    [node("p", "linear", "x", "w"), node("f", "cast", "p", dtype="float32")], ["f"],
                                    constants=[tensor("w", 344, 264)]), ["store_box("])
    for columns in (344, 336):  # 344 bytes are no multiple of 16
        yield (f"results of 32, 8 and 16 bits, {columns} columns",
               model([tensor("x", 264, 264)],
                     [node("p", "linear", "x", "w"), node("f", "cast", "p", dtype="float32"),
                      node("e", "cast", "p", dtype="float8_e4m3fn"), node("r", "relu", "p")],
                     ["e", "f", "r"], constants=[tensor("w", columns, 264)]),
               ["store_box("] + (["store_words("] if columns == 344 else []))
    yield ("a batch's results of two dtypes",
           model([tensor("x", 3, 200, 136), tensor("w", 3, 136, 344)],
                 [node("y", "matmul", "x", "w"), node("z", "cast", "y", dtype="float8_e5m2"),
                  node("t", "tanh", "y")], ["z", "t"]), ["store_box(", "store_words("])
    yield ("pieces of a concat",
           model([tensor("x", 264, 264)],
                 [node("p", "linear", "x", "v"), node("q", "linear", "x", "w"), node("r", "relu", "q"),
                  node("c", "concat", "p", "r", dim=1)], ["c"],
                 constants=[tensor("v", 136, 264), tensor("w", 344, 264)]), ["store_box("])
    yield ("rows that are a symbol",
           model([tensor("x", "tokens", 264)], [node("p", "linear", "x", "w"), node("h", "gelu", "p")], ["h"],
                 symbols={"tokens": {"min": 0, "max": 4096, "hint": 331}}, constants=[tensor("w", 344, 264)]), [])


def dequantized(x, w, x_scale, w_scale, block=None, m=328, n=344, k=400):
    """A product of quantized values times scales. Scales are of a tensor, of rows, or of blocks along K of each row. If
    the weight has fewer scales than rows, each is for 128 rows."""
    nodes = []

    def widened(name, scale, rows):
        attributes = {"dtype": "float32"}
        scales = name + "s"
        if len(scale) == 2:
            attributes.update(axis=1, block=block)
            if scale[0] < rows:
                nodes.extend([node(name + "t", "reshape", scales, shape=[scale[0], 1, scale[1]]),
                              node(name + "e", "expand", name + "t", shape=[scale[0], 128, scale[1]]),
                              node(name + "r", "reshape", name + "e", shape=[rows, scale[1]])])
                scales = name + "r"
        elif scale != [1]:
            attributes["axis"] = 0
        nodes.append(node(name + "f", "dequantize", name, scales, **attributes))

    widened("x", x_scale, m)
    widened("w", w_scale, n)
    nodes += [node("p", "linear", "xf", "wf"), node("y", "cast", "p", dtype="bfloat16")]
    return model([tensor("x", m, k, dtype=x), tensor("xs", *x_scale, dtype="float32")], nodes, ["y"],
                 constants=[tensor("w", n, k, dtype=w), tensor("ws", *w_scale, dtype="float32")])


def forms_in_8_bits():
    e4m3, e5m2 = "float8_e4m3fn", "float8_e5m2"

    def fp8_linear(m, n, k, x_scales, w_scales):
        return model([tensor("x", m, k, dtype=e4m3), tensor("xs", x_scales, dtype="float32")],
                     [node("p", "fp8_linear", "x", "w", "xs", "ws", "bias", out_dtype="bfloat16"),
                      node("h", "gelu", "p")], ["h"],
                     constants=[tensor("w", n, k, dtype=e4m3), tensor("ws", w_scales, dtype="float32"),
                                tensor("bias", n)])

    yield ("fp8, scales of tensors", fp8_linear(328, 344, 208, 1, 1), ["multiply_warpgroup_e4m3_e4m3("])
    yield ("fp8, scales of rows", fp8_linear(328, 344, 208, 328, 344), ["multiply_warpgroup_e4m3_e4m3("])
    yield ("fp8, scales of rows, odd columns", fp8_linear(321, 341, 208, 321, 341), [])
    yield ("fp8, a long depth", fp8_linear(200, 328, 1232, 1, 328), ["add_warpgroup_parts<false, false>"])
    for x, w, name in ((e4m3, e5m2, "e4m3_e5m2"), (e5m2, e4m3, "e5m2_e4m3"), (e5m2, e5m2, "e5m2_e5m2")):
        yield (name, dequantized(x, w, [1], [1]), [f"multiply_warpgroup_{name}("])
    yield ("fp8, dequantized by rows", dequantized(e4m3, e4m3, [328], [344]), ["multiply_warpgroup_e4m3_e4m3("])
    yield ("fp8, dequantized by rows, a long depth", dequantized(e4m3, e4m3, [328], [344], k=1232),
           ["multiply_warpgroup_e4m3_e4m3(", "add_warpgroup_parts<false, false>"])
    yield ("fp8, blocks of 128 by 128",
           dequantized(e4m3, e4m3, [328, 4], [3, 4], 128, k=512, n=384),
           ["add_warpgroup_parts<true, true>"])
    yield ("fp8, blocks of 256 of the weight", dequantized(e4m3, e4m3, [1], [344, 3], 256, k=768),
           ["step % 2 == 1"])
    yield ("int8, blocks of 128", dequantized("int8", "int8", [328, 3], [344, 3], 128, k=384),
           ["add_warpgroup_parts<true, true>"])
    yield ("int8, dequantized by rows", dequantized("int8", "int8", [328], [344]), ["multiply_warpgroup_s8("])
    yield ("int8, dequantized by tensors", dequantized("int8", "int8", [1], [1]), ["multiply_warpgroup_s8("])
    yield ("int8, integer sums",
           model([tensor("x", 328, 400, dtype="int8"), tensor("xs", 1, dtype="float32")],
                 [node("y", "static_quant_linear", "x", "w", "ws", "xs", out_dtype="bfloat16")], ["y"],
                 constants=[tensor("w", 344, 400, dtype="int8"), tensor("ws", 344, dtype="float32")]),
           ["multiply_warpgroup_s8("])
    yield ("fp8, a gated unit",
           model([tensor("x", 264, 272, dtype=e4m3), tensor("xs", 1, dtype="float32")],
                 [node("a", "fp8_linear", "x", "g", "xs", "gs", out_dtype="bfloat16"),
                  node("b", "fp8_linear", "x", "u", "xs", "us", out_dtype="bfloat16"), node("s", "silu", "a"),
                  node("h", "mul", "s", "b")], ["h"],
                 constants=[tensor(n, 344, 272, dtype=e4m3) for n in "gu"] +
                 [tensor(n + "s", 344, dtype="float32") for n in "gu"]), ["makes 128x128"])
    yield ("fp8, batched",
           model([tensor("x", 3, 200, 144, dtype=e4m3), tensor("w", 3, 344, 144, dtype=e4m3)],
                 [node("xf", "cast", "x", dtype="float32"), node("wf", "cast", "w", dtype="float32"),
                  node("t", "transpose", "wf", dim0=1, dim1=2), node("y", "matmul", "xf", "t")], ["y"]), [])
    yield ("fp8, cast to 16 bits",
           model([tensor("x", 328, 400, dtype=e4m3)],
                 [node("xh", "cast", "x", dtype="bfloat16"), node("wh", "cast", "w", dtype="bfloat16"),
                  node("y", "linear", "xh", "wh")], ["y"], constants=[tensor("w", 344, 400, dtype=e4m3)]),
           ["multiply_warpgroup_e4m3_e4m3("])
    yield ("fp8, rows that are a symbol",
           model([tensor("x", "tokens", 528, dtype=e4m3), tensor("xs", "tokens", dtype="float32")],
                 [node("h", "fp8_linear", "x", "w", "xs", "ws", out_dtype="bfloat16")], ["h"],
                 symbols={"tokens": {"min": 0, "max": 4096, "hint": 331}},
                 constants=[tensor("w", 344, 528, dtype=e4m3), tensor("ws", 1, dtype="float32")]), [])


def grouped(m, k, n, offsets, dtype="bfloat16", turned=False, **more):
    """Grouped GEMM: rows of "a" choose among matrices, and among those of "b" if the product is gated. `offsets`:
    numbers, or their count, for which --random gives values in any order and beyond the rows."""
    given = isinstance(offsets, list)
    offsets_ = tensor("o", len(offsets) if given else offsets, dtype="int32")
    count = offsets_["shape"][0]
    if given:
        offsets_["data"] = offsets
    weights, nodes, constants = {}, [], [offsets_]
    for name in "ab" if more.get("gated") else "a":
        constants.append(tensor(name, count, *((n, k) if turned else (k, n)), dtype=dtype))
        weights[name] = name
        if dtype.startswith("float8"):
            nodes.append(node(name + "f", "cast", name, dtype=more.get("widened", "float32")))
            weights[name] = name + "f"
        if turned:
            nodes.append(node(name + "t", "transpose", weights[name], dim0=1, dim1=2))
            weights[name] = name + "t"
    x = "x"
    if dtype.startswith("float8"):
        nodes.append(node("xf", "cast", "x", dtype=more.get("widened", "float32")))
        x = "xf"
    bias = []
    if more.get("biased"):
        constants.append(tensor("bias", count, n, dtype=dtype))
        bias = ["bias"]
    nodes.append(node("p", "grouped_matmul", x, weights["a"], "o", *bias))
    if more.get("gated"):
        nodes += [node("q", "grouped_matmul", x, weights["b"], "o"), node("s", "silu", "p"), node("y", "mul", "s", "q")]
    else:
        nodes.append(node("y", more.get("behind", "gelu"), "p", **more.get("attributes", {})))
    if more.get("router"):  # a weight of each row
        nodes += [node("v", "unsqueeze", "r", dim=1), node("z", "mul", "y", "v")]
    rows = more.get("picked_from", m)
    if rows != m:  # rows are gathered from so many
        nodes.insert(0, node("picked", "index_select", "x", "t", dim=0))
        for each in nodes[1:]:
            each["inputs"] = ["picked" if name == "x" else name for name in each["inputs"]]
    inputs = [tensor("x", rows, k, dtype=dtype)]
    inputs += [tensor("t", m, dtype="int64")] if rows != m else []
    inputs += [tensor("r", m, dtype=dtype)] if more.get("router") else []
    outputs = ["z"] if more.get("router") else ["p", "y"] if more.get("both") else ["y"]
    return model(inputs, nodes, outputs, constants=constants, **more.get("fields", {}))


def forms_in_groups():
    """Groups of no row, of one, of all rows; rows after the last group; offsets in any order and beyond the rows.
    """
    ends = [0, 1, 1, 300, 520]
    yield ("groups", grouped(700, 136, 344, ends), ["find_group<", "<0, 64>(", "store_box(", "store_lines("])
    yield ("groups, a bias of each", grouped(700, 136, 344, 5, "float16", turned=True, biased=True), ["<0, 0>("])
    yield ("one group has all", grouped(389, 200, 264, [0, 0, 389, 389], router=True), [])
    yield ("no group has a row", grouped(700, 136, 344, [0, 0], biased=True), [])
    yield ("many groups", grouped(2000, 264, 344, list(range(80, 2080, 80))), [])
    yield ("groups, gated", grouped(700, 264, 344, ends, gated=True), ["makes 128x128", ".reg .f32 sum<"])
    yield ("groups, gated, of rows weighted", grouped(515, 264, 328, 4, turned=True, gated=True, router=True), [])
    yield ("groups, columns in no eights", grouped(451, 136, 341, [100, 101, 451], turned=True), [])
    yield ("groups, both results", grouped(451, 136, 344, 3, both=True), [])
    for columns in (344, 336):  # 344 bytes are no multiple of 16
        yield (f"groups, results of 32 and 8 bits, {columns} columns",
               grouped(451, 136, columns, [7, 140, 451], behind="cast", attributes={"dtype": "float8_e4m3fn"}), [])
    yield ("groups, float32 results", grouped(451, 136, 344, [7, 140, 451], behind="cast", attributes={"dtype": "float32"}), [])
    yield ("groups, rows that are a symbol",
           grouped("tokens", 136, 344, 3, fields={"symbols": {"tokens": {"min": 0, "max": 4096, "hint": 1100}}}), [])
    yield ("groups of few tiles, in clusters", grouped(2048, 136, 520, [1000, 2048]), ["__cluster_dims__(2", "find_group<256>"])
    yield ("groups of picked rows", grouped(700, 136, 344, ends, biased=True, picked_from=300), ["copy_gathered_rows<false>"])
    yield ("groups of picked rows, gated",
           grouped(1000, 264, 344, 5, "float16", turned=True, gated=True, router=True, picked_from=350), ["copy_gathered_rows<false>"])
    yield ("groups of picked rows, in clusters", grouped(2048, 192, 520, [1000, 2040], picked_from=900),
           ["__cluster_dims__(2", "copy_gathered_rows<true>"])
    yield ("groups of picked rows, fp8", grouped(1400, 208, 344, [7, 600, 1400], "float8_e4m3fn", turned=True, picked_from=300),
           ["copy_gathered_rows<false>", "multiply_warpgroup_e4m3_e4m3("])
    yield ("picked rows",
           model([tensor("x", 300, 264), tensor("t", 700, dtype="int64")],
                 [node("p", "index_select", "x", "t", dim=0), node("y", "linear", "p", "w", "bias")], ["y"],
                 constants=[tensor("w", 344, 264), tensor("bias", 344)]), ["copy_gathered_rows<false>"])
    yield ("groups, fp8", grouped(451, 208, 344, [7, 140, 451], "float8_e4m3fn", turned=True),
           ["multiply_warpgroup_e4m3_e4m3("])
    yield ("groups, fp8 cast to 16 bits, gated",
           grouped(700, 208, 344, ends, "float8_e4m3fn", turned=True, gated=True, widened="bfloat16"),
           ["multiply_warpgroup_e4m3_e4m3("])
    yield ("groups, fp8, a long depth, gated", grouped(451, 1232, 136, [7, 140, 451], "float8_e4m3fn", turned=True, gated=True),
           ["add_warpgroup_parts<false, false>"])


def forms_of_scaled_groups():
    """float8 operands with a scale for each row and each column of a matrix, or for blocks along K."""
    for name, m, k, block, wanted in (("rows", 700, 384, 384, "column_scale"), ("blocks", 1300, 512, 128, "<true, true>")):
        x_scales = (m,) if block == k else (m, k // block)
        yield (f"groups, fp8 with scales of {name}",
               model([tensor("x", m, k, dtype="float8_e4m3fn"), tensor("xs", *x_scales, dtype="float32")],
                     [node("a", "dequantize", "x", "xs", dtype="float32",
                           **({"axis": 0} if block == k else {"axis": 1, "block": block})),
                      node("d", "dequantize", "w", "ws", dtype="float32", axis=2, block=block),
                      node("b", "transpose", "d", dim0=1, dim1=2), node("p", "grouped_matmul", "a", "b", "o"),
                      node("y", "cast", "p", dtype="bfloat16")], ["y"],
                     constants=[tensor("w", 3, 344, k, dtype="float8_e4m3fn"),
                                tensor("ws", 3, 344, k // block, dtype="float32"),
                                dict(tensor("o", 3, dtype="int32"), data=[100, 101, m - 50])]),
               ["multiply_warpgroup_e4m3_e4m3(", wanted])


def pairs(x, w, columns, product, offsets=None, codes=None, **more):
    """Gate and up are interleaved columns of one product, as in the experts of GPT-OSS."""
    constants, nodes, weights = [tensor("w", *w, dtype=codes or "bfloat16")], [], "w"
    if codes:
        block = dict(axis=len(w) - 2, block=32)
        constants.append(tensor("ws", *w[:-2], w[-2] // 32, w[-1], dtype=more.get("scales", "bfloat16")))
        nodes.append(node("wd", "dequantize", "w", "ws", dtype="bfloat16", **block))
        weights = "wd"
    if offsets:
        constants += [dict(tensor("o", len(offsets), dtype="int32"), data=offsets), tensor("b", len(offsets), columns)]
    operands = ["x", weights] + (["o", "b"] if offsets else [])
    nodes += [node("p", product, *operands), node("g", "slice", "p", dim=-1, start=0, step=2),
              node("u", "slice", "p", dim=-1, start=1, step=2), node("c", "clamp", "g", max=7.0),
              node("e", "clamp", "u", min=-7.0, max=7.0), node("t", "mul", "c", 1.702), node("s", "sigmoid", "t"),
              node("a", "mul", "c", "s"), node("d", "add", "e", 1.0), node("y", "mul", "a", "d")]
    return model([tensor("x", *x)], nodes, ["y"], constants=constants, **more.get("fields", {}))


def forms_of_pairs():
    """Gate and up in one thread, with all kinds of operands; columns that are no multiple of 8; symbolic rows."""
    wanted = ["eight_pairs<float", "multiply_warpgroup_bf16<0, 64>"]
    yield ("groups, pairs", pairs([700, 136], [4, 136, 688], 688, "grouped_matmul", [0, 1, 300, 520]), wanted)
    yield ("groups, pairs of codes", pairs([700, 160], [4, 160, 688], 688, "grouped_matmul", [0, 1, 300, 520], "int4"),
           ["eight_pairs<"])
    yield ("groups, pairs of mxfp4", pairs([700, 160], [3, 160, 704], 704, "grouped_matmul", [90, 300, 620],
                                           "float4_e2m1fn", scales="float8_e8m0fnu"), ["eight_pairs<"])
    yield ("groups, pairs, columns in no eights", pairs([451, 136], [3, 136, 680], 680, "grouped_matmul", [7, 140, 451]),
           ["pair.v[1]"])
    yield ("batched pairs", pairs([3, 200, 136], [3, 136, 688], 688, "matmul"), wanted)
    yield ("pairs in clusters", pairs([1200, 200], [200, 528], 528, "matmul"), wanted)
    yield ("pairs, rows that are a symbol",
           pairs(["tokens", 264], [264, 688], 688, "matmul",
                 fields={"symbols": {"tokens": {"min": 0, "max": 4096, "hint": 331}}}), wanted)


MACHINE_CODE = {"fp8, blocks of 128 by 128": "QGMMA.64x128x32.F32.E4M3.E4M3", "fp8, a long depth": "QGMMA.64x128x32.F32",
                "e5m2_e4m3": "QGMMA.64x128x32.F32.E5M2.E4M3", "int8, dequantized by rows": "IGMMA.64x128x32.S8.S8"}


def serialized(run):
    """The first products of a stage wait for one another."""
    if run.sass and re.findall(r"GMMA\.64|WARPGROUP\.DEPBAR", run.text("sass"))[:4] != ["GMMA.64"] * 4:
        yield "products that wait for one another"


def main_schedules(run):
    """A launch with few rows, given by a symbol, takes special forms."""
    return [s for s in run["schedules"] if not (run.case.model.get("symbols") and s.startswith("skinny_gemm"))]


def of_form(group, name, graph, wanted):
    texts = [("cu", re.escape(text), True) for text in ["multiply_warpgroup_", *wanted]]
    if name in MACHINE_CODE:
        texts += [("sass", re.escape(MACHINE_CODE[name]), True), ("sass", "UTMALDG", True), ("sass", "STL|LDL", False)]
    return Case(name, graph, targets=SM_90A, chip=FEW_MULTIPROCESSORS, inputs="--random", run_options=("--host-part=recorded",),
                exactly={main_schedules: ["gemm_wgmma"], "manifest problems": [], "launches": 1}, texts=tuple(texts),
                also=serialized if name in MACHINE_CODE else None, group=group)


def tile_of(run):
    """The columns of a tile and the blocks of a cluster."""
    found = re.search(r"makes 128x(\d+) at a time", run.text("cu"))
    return int(found[1]) if found else 1, 2 if "__cluster_dims__(2" in run.text("cu") else 1


def of_groups(name, **more):
    """A gated unit with grouped rows: tiles hold rows of one group only, requested bytes match them, fewer instructions
    than by warps, operands fed by TMA."""
    m, k, n, ends = 1024, 2048, 256, [0, 1, 256, 700]

    def tiles(run):
        columns, cluster = tile_of(run)
        sizes = [end - begin for begin, end in zip([0] + ends, ends)]
        return sum(cluster * -(-rows // (ROWS * cluster)) for rows in sizes) * -(-n // columns)

    def products(run):
        return tiles(run) * ROWS * tile_of(run)[0] * k * 2

    def needed(run):
        columns, cluster = tile_of(run)
        return 1.1 * (tiles(run) * (ROWS + 2 * columns // cluster) * k * 2 + 2 * m * n)

    wanted = ["HGMMA.64x256x16.F32.BF16", "UTMALDG.3D", "USETMAXREG"]
    return Case(name, grouped(m, k, n, ends, gated=True, **more), targets=SM_90A, chip=FEW_MULTIPROCESSORS, inputs="--random",
                verify="", exactly={"multiply-adds": products}, group="demands",
                most={"requested bytes": needed, "instructions": lambda run: products(run) / 1250, "NVRTC / limit": 1},
                texts=(("cu", "makes 128x", True), *(("sass", re.escape(text), True) for text in wanted), ("sass", "STL|LDL", False)))


def layer_faults(run):
    columns, _ = tile_of(run)
    wanted = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16"
    if wanted not in run.text("ptx"):
        yield f"no {wanted} in the PTX"
    if run.sass:
        code = run.text("sass")
        if f"HGMMA.64x{columns}x16.F32.BF16" not in code:
            yield "no HGMMA of the tile in the machine code"
        products = [line for line in code.splitlines() if "HGMMA" in line or "WARPGROUP.DEPBAR" in line]
        waits = sum("DEPBAR" in line for line in products)
        if 2 * waits > len(products) - waits:
            yield f"{waits} waits for {len(products) - waits} products: serialized"


def of_layer(m, n, k, blocks, chip):
    def tiles(run):
        return run["multiply-adds"] / (ROWS * tile_of(run)[0] * -(-k // DEPTH) * DEPTH)

    def part_of_tile(run):
        return tiles(run) % 1

    def all_tiles(run):
        return 2 * -(-m // (2 * ROWS)) * -(-n // tile_of(run)[0])

    # For a tile a block copies the rows of x, and half of the columns of w that the cluster shares. It stores 2 bytes
    # an element, and its lanes read as many bytes of the bias.
    def needed(run):
        return 1.1 * (tiles(run) * (ROWS + tile_of(run)[0] // 2) * k * 2 + 2 * 2 * m * n * tiles(run) // all_tiles(run))

    ptx = ["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", "setmaxnreg.dec",
           "setmaxnreg.inc", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"]
    sass = ["UTMALDG.2D.MULTICAST", "USETMAXREG", "UTMASTG.2D"]
    return Case(f"layer {m}x{n}x{k}", layer(m, n, k), targets=SM_90A, chip=chip, inputs="--random", verify="", blocks=blocks,
                exactly={part_of_tile: 0} | ({} if blocks else {tiles: all_tiles}),
                most={"requested bytes": needed, "NVRTC / limit": 1}, also=layer_faults, group="demands",
                texts=(("cu", "makes 128x", True), *(("ptx", re.escape(text), True) for text in ptx), ("ptx", r"st\.global", False),
                       *(("sass", re.escape(text), True) for text in sass), ("sass", "(?<!UTMA)STG", False),
                       ("sass", "STL|LDL", False)))


def cases():
    found = [of_layer(392, 1064, 200, 0, FEW_MULTIPROCESSORS), of_layer(4096, 4096, 4096, 2, None), of_groups("groups, gated, large"),
             of_groups("groups of picked rows, large", picked_from=600)]
    tables = (forms, forms_in_8_bits, forms_in_groups, forms_of_scaled_groups, forms_of_pairs)
    return found + [of_form(table.__name__, *row) for table in tables for row in table()]
