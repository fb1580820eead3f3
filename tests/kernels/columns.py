"""Reductions along the first or a middle dimension, where reduced elements have a stride in memory (softmax, variance,
sums, norms of channels and of batches), and rows that several blocks share. Few and many columns, aligned and unaligned
rows of memory, long reductions kept by co-resident blocks, groups of neighbouring channels over pixels, tall columns,
and elementwise results that are stored while their operands are read for a sum (the gradient beside that of a bias).
Demanded are few launches, sectors close to those of the passes over the tensor, occupancy, few bank conflicts, and few
instructions per 16 bytes."""
from kernels import case
from kernels.case import BYTES, element_count, model, node, tensor


def normalized(dim, weights):
    """(x - mean) / sqrt(var) as primitive ops, along dim."""
    last = [node("m", "mean", "x", dim=dim, keepdim=True), node("c", "sub", "x", "m"), node("q", "mul", "c", "c"),
            node("v", "mean", "q", dim=dim, keepdim=True), node("s", "rsqrt", "v"),
            node("n" if weights else "y", "mul", "c", "s")]
    return last + ([node("u", "mul", "n", "w"), node("y", "add", "u", "b")] if weights else [])


def Case(name, dtype, shape, nodes, passes, launches=1, more=1.06, others=None, occupancy=0.0, conflicts=0, instructions=None,
         outputs=("y",), dtypes=None):
    """launches; passes: how often the whole tensor is read or written; more: most sectors relative to those of the
    passes; occupancy: least occupancy of each kernel; conflicts: allowed bank conflicts besides one per hundred
    sectors; instructions: most instructions of a thread per 16 bytes of the passes."""
    inputs = [tensor(n, (dtypes or {}).get(n, dtype), *s) for n, s in {"x": shape, **(others or {})}.items()]
    least = passes * element_count(shape) * BYTES[dtype]
    return case.Case(f"{name} {dtype}{shape}", model(inputs, nodes, outputs), group=name, least={"occupancy": occupancy},
                     most={"launches": launches, "sector bytes": more * least + 32 * 40,
                           "conflicts": lambda run: run["sector bytes"] / 3200 + conflicts}
                     | ({"instructions": instructions * least / (16 * 32)} if instructions else {}))


def tall_sums():
    """Sums of tall columns, few or many of them, where many threads of a block share a column."""
    found = []
    for dtype, most in (("float32", 22), ("float16", 44), ("bfloat16", 44)):
        for shape in ([32768, 64], [16384, 128], [8192, 256], [4096, 1000], [2048, 1024]):
            found.append(Case("tall sum", dtype, shape, [node("y", "sum", "x", dim=[0])], 1, 2, 1.08,
                              instructions=most))
        of_products = [node("p", "mul", "x", "d"), node("s", "sum", "p", dim=[0]), node("t", "sum", "d", dim=[0]),
                       node("y", "add", "s", "t")]
        found.append(Case("sums of products", dtype, [32768, 64], of_products, 2, 2, 1.08, {"d": [32768, 64]},
                          instructions=most))
        found += [Case("tall maximum", dtype, [32768, 64], [node("y", "amax", "x", dim=[0])], 1, 2, 1.08,
                       instructions=most),
                  Case("tall variance", dtype, [32768, 64], [node("y", "var", "x", dim=[0])], 1, 2, 1.08,
                       instructions=1.7 * most)]
    # Moments in one pass. 8-byte results rarely conflict in banks of shared memory.
    for shape, launches, more in (([4096, 1001], 1, 1.12), ([4096, 250], 2, 1.08), ([8, 513, 77], 1, 1.16)):
        found += [Case("tall " + op, "float64", shape, [node("y", op, "x", dim=[len(shape) - 2])], 1, launches, more,
                       instructions=34 if shape[-1] != 77 else None) for op in ("var", "std")]
    found.append(Case("tall maximum", "int8", [32768, 128], [node("y", "amax", "x", dim=[0])], 1, 2, 1.08,
                      instructions=76))
    return found


def in_pieces():
    """Up to a thousand rows, kept in pieces of as many bytes as the alignment of rows allows, up to 16: by warps that
    have whole columns, and by warps and blocks that combine them. Also odd row lengths."""
    found = []
    for dtype, shape, dim, most, more in (
            ("float16", [4, 8, 64, 1024], 1, 40, 1.0), ("float16", [4, 8, 64, 1024], 2, 53, 1.0),
            ("float32", [4, 8, 64, 1024], 1, 18, 1.0), ("bfloat16", [8, 32, 4096], 1, 49, 1.0),
            ("float16", [2, 21, 128, 128], 1, 49, 1.0), ("float32", [2, 21, 128, 128], 1, 21, 1.0),
            ("bfloat16", [16, 40, 1024], 1, 50, 1.0), ("float32", [8, 40, 1024], 1, 31, 1.0),
            ("float16", [1024, 1024], 0, 55, 1.0), ("float32", [1024, 1024], 0, 23, 1.0),
            ("bfloat16", [2, 1000, 256], 1, 59, 1.0), ("float32", [4, 200, 200], 1, 39, 1.03),
            # Unaligned rows, accessed as aligned vectors; those at the ends of a strip are stored in parts.
            ("float16", [16, 64, 57, 58], 1, 91, 1.15), ("float32", [16, 64, 57, 57], 1, 32, 1.08),
            ("bfloat16", [4, 64, 129, 257], 1, 107, 1.1), ("float32", [4, 19, 129, 257], 1, 48.5, 1.08),
            ("float32", [2, 128, 129, 129], 1, 35, 1.08), ("float16", [200, 64, 255], 1, 97, 1.15),
            ("float16", [16, 300, 76], 1, 75, 1.5)):
        for op in ("softmax", "log_softmax"):
            found.append(Case("kept in pieces: " + op, dtype, shape, [node("y", op, "x", dim=dim)], 2, more=more,
                              instructions=1.12 * most if op == "log_softmax" else most))
    for dtype, most, of_rows in (("float16", 92, 60), ("float32", 41, 26)):
        shape = [2, 21, 128, 128]
        found += [Case("kept in pieces: logsumexp", dtype, shape, [node("y", "logsumexp", "x", dim=[1])], 1,
                       more=1.06, instructions=most),
                  Case("kept in pieces: variance", dtype, [4, 64, 8192], [node("y", "var", "x", dim=[1])], 1,
                       more=1.04, instructions=of_rows)]
        weights = {"w": [96, 1, 1], "b": [96, 1, 1]}
        found.append(Case("kept in pieces: normalized", dtype, [8, 96, 56, 56], normalized([1], True), 2, more=1.08,
                          others=weights, instructions=65 if dtype == "float16" else 22))
    # The stored elements of a column are narrower or wider than the elements that are read.
    narrow = [node("m", "amax", "x", dim=[1], keepdim=True), node("d", "sub", "x", "m"), node("g", "argmin", "d", dim=1),
              node("e", "abs", "d"), node("s", "sum", "e", dim=[1]), node("f", "cast", "s", dtype="float16"),
              node("h", "cast", "g", dtype="float16"), node("y", "sub", "f", "h")]
    found.append(Case("kept in pieces: of a column", "float32", [3, 20, 44, 20], narrow, 1, more=1.1))
    return found


def gradient_of_gelu(dtype):
    """g * gelu'(x), in float32, then rounded."""
    return [node("f", "cast", "x", dtype="float32"), node("t", "mul", "f", 0.7071067811865476), node("e", "erf", "t"),
            node("o", "add", "e", 1.0), node("h", "mul", "o", 0.5), node("q", "mul", "f", "f"),
            node("n", "mul", "q", -0.5), node("p", "exp", "n"), node("d", "mul", "p", 0.3989422804014327),
            node("w", "cast", "g", dtype="float32"), node("k", "mul", "f", "d"), node("a", "add", "h", "k"),
            node("m", "mul", "w", "a"), node("y", "cast", "m", dtype=dtype)]


def gradients():
    """The gradient of an activation or of dropout, and of the bias before it: y, and its sum."""
    found = []
    for dtype in ("float32", "float16", "bfloat16"):
        def add(name, shape, nodes, dims, passes=3, launches=1, op="sum", **more):
            g = {"g": shape, **more.pop("others", {})}
            found.append(Case(f"gradients of {name}", dtype, shape, nodes + [node("s", op, "y", dim=dims)], passes,
                              launches, more.pop("more", 1.01), g, outputs=("y", "s"), **more))

        relu = [node("c", "gt", "x", 0), node("z", "full", shape=[], value=0.0, dtype=dtype),
                node("y", "where", "c", "g", "z")]
        sum_of_two = [node("y", "add", "x", "g")]
        most = 60 if dtype == "float32" else 120
        add("gelu", [2048, 3072], gradient_of_gelu(dtype), [0], instructions=most)
        for shape in ([2048, 3072], [512, 768], [8, 500, 512], [2000, 40]):
            few = shape == [2000, 40]
            add("relu", shape, relu, [len(shape) - 2], launches=2 if few else 1, instructions=64 if few else 46)
        softmax_of_sum = sum_of_two + [node("s", "softmax", "y", dim=0)]
        found.append(Case("sums beside their softmax", dtype, [1000, 512], softmax_of_sum, 4, 2, 1.06,
                          {"g": [1000, 512]}, outputs=("y", "s")))
        add("sums of tall columns", [32768, 64], sum_of_two, [0], launches=2, more=1.03)
        for columns in (16, 7):
            add("sums of few columns", [65536, columns], sum_of_two, [0], launches=2, more=1.04)
        add("a maximum", [4096, 1024], sum_of_two, [0], op="amax")
        add("moments", [4096, 1024], sum_of_two, [0], op="var")
        add("images", [32, 256, 7, 7], sum_of_two, [0, 2, 3])
        add("planes", [8, 64, 28, 28], sum_of_two, [0, 2, 3])
        # Rows shared by blocks, reductions of all elements, and unaligned rows.
        add("long rows", [4, 524288], sum_of_two, [1], launches=2)
        add("rows", [2048, 1024], sum_of_two, [1])
        add("all", [2048, 1024], sum_of_two, [0, 1], launches=2, more=1.02)
        add("odd lines", [2000, 1003], sum_of_two, [0], more=1.25 if dtype == "float32" else 1.5)
        dropout = [node("d", "mul", "g", "k"), node("y", "mul", "d", 1.1111)]
        half_a_byte = 2 + 1 / BYTES[dtype]
        found.append(Case("gradients of dropout", dtype, [4096, 1024], dropout + [node("s", "sum", "y", dim=[0])],
                          half_a_byte, 1, 1.01, {"g": [4096, 1024], "k": [4096, 1024]}, outputs=("y", "s"),
                          dtypes={"k": "bool"}))
    found.append(Case("gradients of sums", "float64", [2048, 512],
                      [node("y", "add", "x", "g"), node("s", "sum", "y", dim=[0])], 3, 1, 1.01, {"g": [2048, 512]},
                      outputs=("y", "s")))
    return found


def channels_last_norm(dtype, shape, groups, **more):
    """A norm of groups of neighbouring channels over all pixels, between the permutations of a network with channels
    first. Each row of memory has several elements of a group, with a weight each."""
    nodes = [node("p", "permute", "x", dims=[0, 3, 1, 2]), node("n", "group_norm", "p", "w", "b", num_groups=groups),
             node("a", "silu", "n"), node("y", "permute", "a", dims=[0, 2, 3, 1])]
    return Case(f"{groups} groups of channels", dtype, shape, nodes, **more,
                others={"w": [shape[3]], "b": [shape[3]]})


def written_out_norm(dtype, shape, **more):
    """The same norm as primitive ops on [images, pixels, groups, channels]."""
    nodes = normalized([1, 3], True)
    return Case("groups written out", dtype, shape, nodes, **more, others={"w": shape[2:], "b": shape[2:]})


def groups_of_channels():
    found = []
    for dtype in ("float32", "float16", "bfloat16"):
        wide = dtype == "float32"
        found += [channels_last_norm(dtype, [2, 32, 32, 320], 32, passes=2, launches=2, more=1.28 if wide else 1.1),
                  channels_last_norm(dtype, [1, 24, 24, 256], 16, passes=2, launches=1, more=1.15),
                  channels_last_norm(dtype, [5, 24, 40, 96], 16, passes=2, launches=2, more=1.5),
                  channels_last_norm(dtype, [1, 90, 90, 72], 24, passes=2, launches=2, more=1.4),
                  written_out_norm(dtype, [2, 1024, 32, 10], passes=2, launches=2, more=1.28 if wide else 1.1)]
    return found + [channels_last_norm("float16", [1, 128, 128, 128], 32, passes=2, launches=2, more=1.1),
                    channels_last_norm("float16", [16, 16, 16, 320], 32, passes=2, launches=1, more=1.1),
                    channels_last_norm("bfloat16", [1, 256, 256, 128], 32, passes=3, launches=2, more=1.15)]


def around(op, factor, summand):
    """A softmax of elements far from 0, some beyond the largest number."""
    return [node("m", "mul", "x", factor), node("a", "add", "m", summand), of_rows(op, "a")]


def masked(op, shape, dtype, fill):
    """A softmax where some rows have only the number that masks elements."""
    return [node("z", "full", shape=shape, value=fill, dtype=dtype), node("c", "gt", "r", 0.0),
            node("h", "gt", "x", 0.5), node("b", "logical_and", "c", "h"),
            node("d", "where", "b", "x", "z"), of_rows(op, "d")]


def of_rows(op, operand):
    return node("y", op, operand, dim=[0] if op == "logsumexp" else 0)


def cases():
    found = []
    for dtype in ("float32", "float16"):
        for rows, columns in ((20003, 33), (20003, 64), (6001, 70), (4001, 257), (4096, 500)):
            found += [Case("softmax", dtype, [rows, columns], [node("y", "softmax", "x", dim=0)], 4, 3, 1.18),
                      Case("variance", dtype, [rows, columns], [node("y", "var", "x", dim=[0])], 1, 2, 1.13)]
        # Moments in one pass, also of few columns whose chunks end within a row.
        for shape in ([65536, 16], [100003, 8], [40001, 5], [60000, 12], [50000, 33], [3, 20001, 6]):
            dim = len(shape) - 2
            found.append(Case("tall moments", dtype, shape, [node("y", "var", "x", dim=[dim])], 1, 2, 1.08))
        for shape in ([30001, 5, 7], [30000, 8, 3]):
            found.append(Case("tall moments", dtype, shape, [node("y", "std", "x", dim=[0, 2])], 1, 2, 1.08))
        for shape in ([20003, 33], [4096, 1000], [9001, 96], [700, 4096], [100, 33]):
            found.append(Case("sum", dtype, shape, [node("y", "sum", "x", dim=[0])], 1, 2, 1.12))
        for channels, more in ((64, 1.08), (96, 1.08)):
            shape = [8, channels, 56, 56]
            weights = {"w": [channels, 1, 1], "b": [channels, 1, 1]}
            found += [Case("channels normalized", dtype, shape, normalized([1], True), 2, 1, more, weights),
                      Case("softmax of channels", dtype, shape, [node("y", "softmax", "x", dim=1)], 2),
                      Case("mean of channels", dtype, shape, [node("y", "mean", "x", dim=[1])], 1)]
        # Each kind of reduction has its own shared memory, and all of it is needed at once.
        several = [node("v", "var", "x", dim=[1]), node("g", "argmax", "x", dim=1), node("h", "argmin", "x", dim=1),
                   node("p", "add", "g", "h"), node("f", "cast", "p", dtype="float32"), node("y", "add", "v", "f")]
        if dtype == "float32":
            # Unaligned rows, read once. At the end each reduction has bank conflicts between differently aligned rows.
            found += [Case("several of", dtype, [4, 255, 127], several, 1, more=1.15, conflicts=900)]
        # Values that several loops need, and functions of elements that are recomputed.
        exponentials = [node("s", "silu", "x"), node("l", "logsumexp", "s", dim=[0], keepdim=True),
                        node("p", "softmax", "s", dim=0), node("a", "add", "p", "l"), node("y", "mul", "a", "s")]
        deviation = [node("t", "tanh", "x"), node("y", "var", "t", dim=[1])]
        beside_softmax = [node("e", "exp", "x"), node("l", "log_softmax", "e", dim=1),
                          node("d", "std", "e", dim=[1], keepdim=True), node("y", "add", "l", "d")]
        found += [Case("exponentials", dtype, shape, exponentials, 2, more=2) for shape in ([1000, 511], [1024, 4096])]
        found += [Case("deviation", dtype, [4, 1000, 511], deviation, 2, 3, more=1.25),
                  Case("deviation beside softmax", dtype, [2, 2048, 96], beside_softmax, 4, 4, more=1.3)]
        found += [Case("batch normalized", dtype, [8192, 64], normalized([0], False), 3, 2, 1.12),
                  Case("softmax between", dtype, [8, 1000, 33], [node("y", "softmax", "x", dim=1)], 2,
                       more=1.06 if dtype == "float32" else 1.95)]
        for columns in (77, 99, 257):
            found.append(Case("variance between", dtype, [8, 300, columns], [node("y", "var", "x", dim=[1])], 1,
                              more=2.3 if columns == 257 else 1.1))
        for shape in ([32, 64, 56, 56], [16, 96, 28, 28], [4, 32, 128, 128]):
            found.append(Case("batch statistics", dtype, shape, [node("y", "std", "x", dim=[0, 2, 3])], 1,
                              occupancy=0.5))
        # Strips one sector wide, held in a block's registers.
        for shape in ([16, 3136, 32], [4, 2048, 64], [4096, 64] if dtype == "float16" else [2000, 40]):
            dim = len(shape) - 2
            found.append(Case("softmax of strips", dtype, shape, [node("y", "softmax", "x", dim=dim)], 2, more=1.01))
        # Aligned rows are read once for the mean and the variance.
        found += [Case("moments", dtype, [4096, 768], [node("y", "var", "x", dim=[0])], 1, more=1.03),
                  Case("moments", dtype, [8, 3136, 96], [node("y", "std", "x", dim=[1])], 1, more=1.03),
                  Case("moments", dtype, [8, 2000, 80], [node("y", "var", "x", dim=[1])], 1, 2, more=1.1),
                  Case("moments", dtype, [20003, 64], [node("y", "var", "x", dim=[0])], 1, 2, more=1.03),
                  Case("moments", dtype, [6001, 72], [node("y", "std", "x", dim=[0])], 1, 2, more=1.06)]
        found.append(Case("log_softmax", dtype, [4, 2600, 90], [node("y", "log_softmax", "x", dim=1)], 2, 2, 1.2,
                          conflicts=430))
        # Unaligned rows.
        found += [Case("shifted", dtype, [4096, 1001], [node("y", "sum", "x", dim=[0])], 1, 2, more=1.12),
                  Case("shifted", dtype, [4, 2000, 667], [node("y", "std", "x", dim=[1])], 1, 2, more=1.2)]
        # Unaligned rows with one operand value a column. Some threads' vectors extend beyond the ends of rows. Each
        # thread reads the operand once, as aligned vectors, for its few rows.
        product = [node("p", "mul", "x", "w")]
        for shape, most in (([64, 4095], 1.25), ([3, 19, 4097], 1.65), ([16, 10001], 1.7), ([16, 4096], 1.15),
                            ([16, 40, 1000], 1.25)):
            dim, weights = len(shape) - 2, {"w": shape[-1:]}
            for name, last in (("sum", node("y", "sum", "p", dim=[dim])), ("variance", node("y", "var", "p", dim=[dim])),
                               ("logsumexp", node("y", "logsumexp", "p", dim=[dim])),
                               ("softmax", node("y", "softmax", "p", dim=dim))):
                found.append(Case(f"{name} of weighted columns", dtype, shape, product + [last],
                                  2 if name == "softmax" else 1, more=max(most, 1.6) if name == "softmax" else
                                  most if dtype == "float16" else min(most, 1.41), others=weights))
        found.append(Case("sum of columns weighted by batch", dtype, [4, 64, 4095],
                          product + [node("y", "sum", "p", dim=[1])], 1, more=1.24, others={"w": [4, 1, 4095]}))
        # Values and indices of maxima, and two further reductions, fit into registers.
        extremes = [node("p", "mul", "x", "w"), node("q", "add", "p", "b"), node("g", "argmax", "q", dim=1),
                    node("h", "argmin", "q", dim=1)]
        for shape in ([4, 64, 1001], [2, 33, 4097], [2, 40, 4096]):
            found.append(Case("extremes of products", dtype, shape, extremes, 1, more=1.73, conflicts=6000,
                              others={"w": shape[-1:], "b": shape[-1:]}, outputs=("g", "h")))
        # Dot products of two vectors, with more threads than vectors, or several vectors a thread.
        for length in (256, 1000):
            found.append(Case("dot", dtype, [length], [node("p", "mul", "x", "w"), node("y", "sum", "p", dim=[0])], 2,
                              more=1.05, others={"w": [length]}))
        # Long rows, one chunk a block. One pass computes what both reductions need.
        found += [Case("shared by blocks", dtype, [1000, 1000], [node("y", "var", "x", dim=[0, 1])], 1, 2, 1.03),
                  Case("shared by blocks", dtype, [2, 500001], [node("y", "logsumexp", "x", dim=[1])], 1, 2, 1.06),
                  Case("shared by blocks", dtype, [2, 900000], normalized([1], False), 3, 2, 1.16)]
        # A reduced row is made of unaligned pieces of rows, which together are whole sectors.
        found += [Case("pieces", dtype, [4000, 8, 7, 7], [node("y", "mean", "x", dim=[0, 2, 3])], 1, 2, more=1.04),
                  Case("pieces", dtype, [2000, 32, 3], [node("y", "var", "x", dim=[0, 2])], 1, 2, more=1.04),
                  Case("pieces", dtype, [40, 64, 30, 9], [node("y", "amax", "x", dim=[0, 3])], 1, more=1.02),
                  Case("pieces", dtype, [16, 32, 57, 57], [node("y", "mean", "x", dim=[0, 2, 3])], 1, more=1.04),
                  Case("pieces", dtype, [64, 8, 35, 35], [node("y", "std", "x", dim=[0, 2, 3])], 1, 2, more=1.05),
                  Case("pieces", dtype, [16, 1024, 7, 7], normalized([0, 2, 3], False), 2, more=1.06)]
        # Tensors too large for a block's registers are kept by co-resident blocks: strips, unaligned rows, moments. If
        # too many blocks are needed, one pass computes the maximum and the sum of exponentials (online softmax).
        for shape in ([8192, 32], [4096, 33], [20000, 3], [2, 20000, 7], [3, 5000, 40 if dtype == "float16" else 200],
                      [8192, 128]):
            dim = len(shape) - 2
            nodes = [node("y", "softmax", "x", dim=dim)]
            found.append(Case("softmax of waiting blocks", dtype, shape, nodes, 2, 2, 1.1))
        found += [Case("moments of waiting blocks", dtype, [8192, 64], normalized([0], False), 2, 2, 1.06),
                  Case("beyond waiting blocks", dtype, [70000, 8 if dtype == "float32" else 16],
                       [node("y", "softmax", "x", dim=0)], 3, 2, 1.1)]
        for shape in ([8192, 32], [4096, 24], [4096, 33], [30000, 67], [2, 9000, 120], [9000, 1001]):
            dim = len(shape) - 2
            nodes = [node("y", "logsumexp", "x", dim=[dim])]
            more = 1.09 if shape[-1] == 1001 else 1.07
            found.append(Case("exponentials in one pass", dtype, shape, nodes, 1, 2, more))
        for op, passes in (("softmax", 2), ("logsumexp", 1)):
            found += [Case(f"{op} far from 0", dtype, [8192, 32], around(op, factor, summand), passes, 2, 1.1)
                      for factor, summand in ([(1.0, -1e4), (3e8, -1.1e9), (3e38, 0.0)] if dtype == "float32" else
                                              [(1.0, -1e4), (3e4, 100.0)])]
            found += [Case(f"{op} masked", dtype, [8192, 32], masked(op, [8192, 32], dtype, fill), passes, 2, 2.7,
                           {"r": [1, 32]}) for fill in ("-inf", -3.4e38 if dtype == "float32" else -65504.0)]
    found += tall_sums() + in_pieces() + gradients()
    for dtype in ("int8", "bool", "uint8"):
        found += [Case("pieces", dtype, [64, 256, 7, 7], [node("y", "amax", "x", dim=[0, 2, 3])], 1, more=1.02),
                  Case("pieces", dtype, [20, 64, 35, 35], [node("y", "amax", "x", dim=[0, 2, 3])], 1, more=1.12),
                  Case("shifted", dtype, [600, 2001], [node("y", "amax", "x", dim=[0])], 1, 2, more=1.26),
                  Case("shifted", dtype, [16, 400, 777], [node("y", "amax", "x", dim=[1])], 1, 2, more=1.2)]
    found.append(Case("softmax between", "float32", [16, 300, 77], [node("y", "softmax", "x", dim=1)], 2))
    # Wide values, whose results take as much shared memory as two elements a thread.
    for op, attrs, shape in (("softmax", {"dim": 1}, [4, 700, 90]), ("log_softmax", {"dim": 1}, [2, 1000, 130])):
        found.append(Case(f"{op} between", "float64", shape, [node("y", op, "x", **attrs)], 2, 3, more=2.3))
    extremes = [node("s", "sum", "x", dim=[1], keepdim=True), node("t", "amax", "x", dim=[1], keepdim=True),
                node("u", "sub", "x", "s"), node("y", "sub", "u", "t")]
    found.append(Case("sum and maximum taken away", "int64", [3, 900, 99], extremes, 2, 2, more=1.8))
    return found + groups_of_channels()
