"""Pooling of one to three dimensions and resampling of row-major planes, with elementwise neighbours: each byte moved
once, NVRTC within 400 ms of CPU, and a bound on a thread's instructions per byte for each case. Disjoint windows that
begin at vectors are loaded as vectors, in one kernel, with bounds on accesses per 16 bytes and on sectors."""
from kernels import case
from kernels.case import Case, tensor, words as node

MOST_BYTES = 1.05  # relative to the least bytes


def model(inputs, nodes, **symbols):
    bounds = {name: {"min": low, "max": high} for name, (low, high) in symbols.items()}
    return case.model(inputs, nodes, constants=[], symbols=bounds)


def window(op, dtype, shape, **attributes):
    return model([tensor("x", dtype, *shape)], [node("y", op, "x", **attributes)])


def bilinear(dtype, shape, size):
    return window("interpolate", dtype, shape, size=size, mode="bilinear", align_corners=False)


def symbolic(op, dtype, least, **attributes):
    return model([tensor("x", dtype, "n", 8, "h", "w")], [node("y", op, "x", **attributes)], n=(1, 64), h=(least, 64),
                 w=(least, 64))


def sum_behind(dtype):
    return model([tensor("x", dtype, 2, 16, 28, 28)],
                 [node("r", "relu", "x"), node("p", "max_pool2d", "r", kernel_size=3, stride=1, padding=1),
                  node("y", "add", "p x")])


def upsampled_sum(dtype):
    return model([tensor("x", dtype, 2, 8, 14, 14), tensor("z", dtype, 2, 8, 28, 28)],
                 [node("u", "interpolate", "x", size=[28, 28], mode="bilinear", align_corners=False),
                  node("y", "add", "u z")])


def pyramid(dtype):
    """Spatial pyramid pooling: windows of several sizes on one input."""
    sizes = (5, 9)
    return model([tensor("x", dtype, 2, 8, 20, 20)],
                 [node(f"p{k}", "max_pool2d", "x", kernel_size=k, stride=1, padding=k // 2) for k in sizes] +
                 [node("y", "concat", " ".join(["x"] + [f"p{k}" for k in sizes]), dim=1)])


def element_cases():
    """(name, model, most instructions of a thread per byte)"""
    stem = dict(kernel_size=3, stride=2, padding=1)
    same = dict(kernel_size=3, stride=1, padding=1)
    spp = dict(kernel_size=5, stride=1, padding=2)
    yield "stem float32", window("max_pool2d", "float32", [2, 32, 56, 56], **stem), 2
    yield "stem bfloat16", window("max_pool2d", "bfloat16", [2, 32, 56, 56], **stem), 5.5
    yield "stem float16", window("max_pool2d", "float16", [2, 7, 33, 29], ceil_mode=True, **stem), 6
    yield "average float32", window("avg_pool2d", "float32", [2, 64, 35, 35], **same), 5
    yield "average bfloat16", window("avg_pool2d", "bfloat16", [2, 64, 35, 35], **same), 11
    yield "average inside bfloat16", window("avg_pool2d", "bfloat16", [2, 6, 27, 31], count_include_pad=False, **same), 13
    yield "average up float32", window("avg_pool2d", "float32", [2, 6, 27, 31], count_include_pad=False, ceil_mode=True,
                                       **stem), 3
    yield "average uneven float16", window("avg_pool2d", "float16", [2, 6, 27, 31], kernel_size=[5, 4], stride=[2, 3],
                                           padding=[2, 2], ceil_mode=True), 6.5
    yield "wide float32", window("max_pool2d", "float32", [2, 64, 20, 20], **spp), 7.5
    yield "wide bfloat16", window("max_pool2d", "bfloat16", [2, 64, 20, 20], **spp), 17
    yield "widest float32", window("max_pool2d", "float32", [1, 32, 20, 20], kernel_size=9, stride=1, padding=4), 16
    yield "pyramid bfloat16", pyramid("bfloat16"), 30
    yield "dilated float32", window("max_pool2d", "float32", [3, 5, 31, 17], dilation=[3, 2], **same), 5
    yield "dilated bfloat16", window("max_pool2d", "bfloat16", [2, 7, 40, 32], kernel_size=[3, 2], stride=[1, 2],
                                     padding=[1, 0], dilation=[2, 1]), 5
    yield "solid float32", window("max_pool3d", "float32", [1, 5, 11, 14, 13], **same), 12
    yield "solid average float16", window("avg_pool3d", "float16", [1, 5, 11, 14, 13], kernel_size=[2, 3, 3],
                                          stride=[1, 2, 1], padding=[1, 1, 1]), 14
    yield "line float32", window("max_pool1d", "float32", [4, 30, 77], **same), 3
    yield "line bfloat16", window("avg_pool1d", "bfloat16", [4, 30, 77], kernel_size=4, stride=2, padding=2), 5
    for dtype in ("int8", "uint8"):
        yield f"bytes {dtype}", window("max_pool2d", dtype, [2, 16, 20, 20], **same), 24
    yield "float64", window("max_pool2d", "float64", [2, 8, 6, 6], **same), 5
    yield "behind bfloat16", sum_behind("bfloat16"), 13
    yield "symbolic float32", symbolic("max_pool2d", "float32", 4, **same), 7
    yield "symbolic bfloat16", symbolic("avg_pool2d", "bfloat16", 1, **stem), 14
    yield "twice float32", bilinear("float32", [2, 32, 28, 28], [56, 56]), 6
    yield "twice bfloat16", bilinear("bfloat16", [2, 32, 28, 28], [56, 56]), 12
    yield "four times float16", bilinear("float16", [2, 8, 15, 13], [60, 52]), 19
    yield "to any size bfloat16", bilinear("bfloat16", [2, 8, 15, 13], [23, 31]), 15
    yield "corners float32", window("interpolate", "float32", [2, 8, 15, 13], size=[30, 26], mode="bilinear",
                                    align_corners=True), 9
    yield "half float32", bilinear("float32", [2, 8, 32, 32], [16, 16]), 3
    yield "summed float32", upsampled_sum("float32"), 4


def reduced(op, dtype, shape, dim):
    return model([tensor("x", dtype, *shape)], [node("y", op, "x", dim=dim)])


def around(dtype, shape):
    """A pool with elementwise ops before and after it."""
    return model([tensor("x", dtype, *shape), tensor("b", dtype, shape[1], 1, 1)],
                 [node("a", "add", "x b"), node("r", "relu", "a"),
                  node("p", "max_pool2d", "r", kernel_size=2, stride=2), node("y", "silu", "p")])


def vector_cases():
    """(name, model, most instructions per byte, most accesses per 16 bytes, most sectors)

    The bounds are a little above what is measured, as 4.6 instructions a byte of "apart around float16"."""
    twice = dict(kernel_size=2, stride=2)
    for dtype, most in (("float32", 1.6), ("float16", 2.6), ("bfloat16", 2.6), ("int8", 3.6), ("uint8", 3.6)):
        yield f"apart {dtype}", window("max_pool2d", dtype, [1, 16, 128, 128], **twice), most, 1.5, 1.02
        yield f"apart short rows {dtype}", window("max_pool2d", dtype, [2, 16, 56, 56], **twice), most + 0.2, 4.1, 1.45
    yield "apart average float16", window("avg_pool2d", "float16", [2, 16, 112, 112], **twice), 2.8, 1.5, 1.02
    yield "apart of 14 float16", window("max_pool2d", "float16", [1, 64, 28, 28], **twice), 2.8, 4.1, 1.45
    yield "apart of 20 float16", window("max_pool2d", "float16", [1, 32, 40, 40], **twice), 2.2, 2.1, 1.2
    yield "apart 3 float16", window("max_pool2d", "float16", [1, 32, 96, 96], kernel_size=3), 3, 1.3, 1.02
    yield "apart 4 float32", window("avg_pool2d", "float32", [1, 16, 64, 64], kernel_size=4), 2, 1.3, 1.02
    yield "apart gaps bfloat16", window("max_pool2d", "bfloat16", [1, 64, 96, 96], kernel_size=2, stride=3), 2, 1, 0.75
    yield "apart rows end bfloat16", window("max_pool2d", "bfloat16", [1, 64, 33, 64], ceil_mode=True,
                                            **twice), 4, 1.7, 1.05
    yield "apart solid float16", window("max_pool3d", "float16", [1, 8, 8, 56, 56], **twice), 2.4, 1.6, 1.2
    yield "apart planes float16", window("max_pool3d", "float16", [1, 8, 8, 56, 56], kernel_size=[1, 2, 2],
                                         stride=[1, 2, 2]), 2.3, 2.1, 1.2
    yield "apart line float16", window("max_pool1d", "float16", [4, 30, 1024], **twice), 2.5, 1.7, 1.02
    yield "apart line of 4 bfloat16", window("avg_pool1d", "bfloat16", [4, 64, 1024], kernel_size=4), 3.2, 1.5, 1.02
    yield "apart around float16", around("float16", [2, 32, 64, 64]), 4.7, 1.9, 1.05
    yield "places float32", reduced("sum", "float32", [2, 16, 28, 2, 28, 2], [3, 5]), 1.7, 1.5, 1.02
    yield "places mean float16", reduced("mean", "float16", [2, 16, 14, 4, 16, 4], [3, 5]), 3.2, 1.2, 1.02
    yield "places three bfloat16", reduced("amax", "bfloat16", [4, 16, 2, 15, 2, 24, 2], [2, 4, 6]), 2.6, 1.3, 1.05
    yield "last of 3 float32", reduced("sum", "float32", [20000, 3], [1]), 2.3, 1.6, 1.02
    yield "last of 6 float16", reduced("mean", "float16", [20000, 6], [1]), 3.8, 1.8, 1.02
    yield "last of 3 int8", reduced("amax", "int8", [40000, 3], [1]), 4, 1.6, 1.02
    # Result rows that are no whole vectors: single elements, but threads share no window.
    yield "apart odd float16", window("max_pool2d", "float16", [1, 64, 30, 30], **twice), 2.4, 9, 3.3
    yield "apart odd int8", window("max_pool2d", "int8", [1, 64, 50, 50], **twice), 5, 18, 4.2


def of(name, entry, most, accesses=None, sectors=None):
    return Case(name, entry, inputs="--random", sizes={"n": 2, "h": 19, "w": 23} if entry["symbols"] else {},
                most={"lane instructions / byte": most, "distinct / least": MOST_BYTES, "accesses / 16 bytes": accesses,
                      "sectors / least": sectors, "NVRTC / limit": 1},
                exactly={"launches": 1} if accesses else {}, group="vectors" if accesses else "elements")


def cases():
    return [of(*row) for row in (*element_cases(), *vector_cases())]
