"""Models of kernels/convolutions.py: (name, model, schedules, or a figure that must be reached)."""
import math
import random

from kernels.joined_convolution_models import gated, many_channels, residual, three
from kernels.case import tensor, words as node

ON_TENSOR_CORES = ("convolution_mma", "convolution_wgmma")
PIPELINED = ON_TENSOR_CORES + ("convolution", "gemm_mma", "gemm_wgmma", "gemm")
WINDOWS = ("nhwc_stencil",)
PLANES = "nchw_stencil"
GROUPS = "grouped_implicit_gemm"
LIVE_TAPS = "live taps"


def convolution(pick, dims, dtype, groups=1, stride=1, dilation=1):
    kernel = [pick.choice([1, 2, 3] if dims == 3 else [1, 3, 5]) for _ in range(dims)]
    padding = [pick.choice([0, k // 2, k // 2 + 1]) for k in kernel]
    size = [pick.choice({1: [45, 200], 2: [9, 14, 16, 21], 3: [5, 8]}[dims]) for _ in range(dims)]
    size = [max(s, dilation * (k - 1) + 1) for s, k in zip(size, kernel)]
    channels = groups * pick.choice([3, 8, 12, 16] if groups == 1 else [8, 12])
    outputs = groups * pick.choice([8, 20, 40, 72] if groups == 1 else [8, 16, 24])
    inputs = [tensor("x", dtype, pick.choice([1, 2, 3]), channels, *size)]
    constants = [tensor("w", dtype, outputs, channels // groups, *kernel), tensor("b", dtype, outputs)]
    nodes = [node("p", f"conv{dims}d", "x w b", stride=[stride] * dims, padding=padding, dilation=[dilation] * dims,
                  groups=groups)]
    tail = pick.choice(["relu", "silu", "", "residual"])
    if tail == "residual":
        nodes += [node("s", "relu", "p"), node("y", "mul", "p s")]
    elif tail:
        nodes.append(node("y", tail, "p"))
    return inputs, constants, nodes


def channels_last(made, dims):
    """A convolution with images, weights and results stored with channels last."""
    inputs, constants, nodes = made
    first, last = [0, dims + 1, *range(1, dims + 1)], [0, *range(2, dims + 2), 1]
    images = {v["name"]: v["name"] + "_first" for v in [*inputs, constants[0]]}
    lies_last = lambda v: dict(v, shape=[v["shape"][d] for d in last])
    nodes = [dict(n, inputs=[images.get(v, v) for v in n["inputs"]]) for n in nodes]
    return [lies_last(v) for v in inputs], [lies_last(constants[0])] + constants[1:], [
        *(node(permuted, "permute", v, dims=first) for v, permuted in images.items()), *nodes,
        node("end", "permute", nodes[-1]["name"], dims=last)]


def depthwise(pick, dims, dtype, weights_are_constant):
    """A depthwise convolution with channels last."""
    channels, kernel = pick.choice([24, 32, 64, 72, 136]), pick.choice([3, 3, 4, 5, 7] if dims < 3 else [2, 3])
    stride, dilation = pick.choice([1, 1, 2]), pick.choice([1, 1, 2])
    size = [max(s, dilation * (kernel - 1) + 1) for s in ([33], [9, 14], [5, 6, 7])[dims - 1]]
    weights = tensor("w", dtype, channels, 1, *[kernel] * dims)
    first, last = [0, dims + 1, *range(1, dims + 1)], [0, *range(2, dims + 2), 1]
    inputs = [tensor("x", dtype, 2, *size, channels)] + ([] if weights_are_constant else [weights])
    tail = pick.choice(["relu", "silu", "neg"] if dtype != "int8" else ["relu", "neg"])
    return inputs, [tensor("b", dtype, channels)] + ([weights] if weights_are_constant else []), [
        node("image", "permute", "x", dims=first),
        node("p", f"conv{dims}d", "image w b", stride=[stride] * dims, dilation=[dilation] * dims, groups=channels,
             padding=[pick.choice([0, kernel // 2])] * dims),
        node("t", tail, "p"), node("y", "permute", "t", dims=last)]


def in_planes(dtype, image, groups, outputs, kernel, stride=1, tail="", **attributes):
    """Channels first, few channels a group; the model, and its multiply-adds."""
    dims = len(image) - 2
    weights = [outputs, image[1] // groups, *[kernel] * dims]
    attributes = {"stride": [stride] * dims, "padding": [kernel // 2] * dims, **attributes}
    size = [(n + 2 * attributes["padding"][d] - attributes.get("dilation", [1] * dims)[d] * (kernel - 1) - 1) // stride + 1
            for d, n in enumerate(image[2:])]
    inputs, nodes = [tensor("x", dtype, *image)], [node("p", f"conv{dims}d", "x w b", groups=groups, **attributes)]
    if tail == "residual":
        inputs.append(tensor("z", dtype, image[0], outputs, *size))
        nodes += [node("s", "add", "p z"), node("y", "relu", "s")]
    elif tail:
        nodes.append(node("y", tail, "p"))
    made = inputs, [tensor("w", dtype, *weights), tensor("b", dtype, outputs)], nodes
    return made, image[0] * outputs * math.prod(size) * math.prod(weights[1:])


def pooling(pick, op, dtype):
    kernel = pick.choice([3, 4, 5])
    attributes = {"kernel_size": kernel, "stride": pick.choice([1, 2]), "padding": pick.choice([0, 1])}
    if op == "avg_pool2d":
        attributes["count_include_pad"] = pick.choice([True, False])
    return [tensor("x", dtype, 2, 13, 11, pick.choice([16, 40]))], [], [
        node("image", "permute", "x", dims=[0, 3, 1, 2]), node("p", op, "image", **attributes),
        node("y", "permute", "p", dims=[0, 2, 3, 1])]


def separable(pick, dtype):
    """A 1x1 convolution, a depthwise one, a 1x1 one. No transposition is launched, and values in between are
    channels-last."""
    channels, size = pick.choice([64, 96]), pick.choice([14, 16])
    return [tensor("x", dtype, 2, 32, size, size)], [
        tensor("w", dtype, channels, 32, 1, 1), tensor("d", dtype, channels, 1, 3, 3),
        tensor("v", dtype, 32, channels, 1, 1)], [
        node("a", "conv2d", "x w"), node("c", "relu", "a"), node("e", "conv2d", "c d", padding=1, groups=channels),
        node("f", "relu", "e"), node("g", "conv2d", "f v"), node("y", "add", "g x")]


def images_last(pick, dtype):
    """A model with channels-last images as its front end exports it: permutes before and after each convolution, with a
    sum between."""
    channels, size = pick.choice([32, 64]), pick.choice([14, 16])
    first, last = [0, 3, 1, 2], [0, 2, 3, 1]
    inputs = [tensor("x", dtype, 2, size, size, channels)]
    constants = [tensor(w, dtype, channels, channels, 3, 3) for w in "uvw"] + [tensor("b", dtype, channels)]
    nodes, image = [], "x"
    for w in "uvw":
        nodes += [node(f"{w}_first", "permute", image, dims=first),
                  node(f"{w}_conv", "conv2d", f"{w}_first {w} b", padding=[1, 1]),
                  node(f"{w}_last", "permute", f"{w}_conv", dims=last), node(f"{w}_add", "add", f"{w}_last {image}"),
                  node(f"{w}_relu", "relu", f"{w}_add")]
        image = f"{w}_relu"
    return inputs, constants, nodes


def bytes_on_tensor_cores(pick, channels_last_too, cast):
    """int8 images and weights with int32 accumulators; the result is int8 again, or scaled floats."""
    channels, outputs, size = pick.choice([32, 64]) if channels_last_too else pick.choice([20, 32]), 40, 14
    image = [2, size, size, channels] if channels_last_too else [2, channels, size, size]
    nodes = [node("i", "permute", "x", dims=[0, 3, 1, 2])] if channels_last_too else []
    source = "i" if channels_last_too else "x"
    if cast:
        nodes += [node("xc", "cast", source, dtype="int32"), node("wc", "cast", "w", dtype="int32"),
                  node("p", "conv2d", "xc wc", padding=[1, 1]), node("f", "cast", "p", dtype="float32"),
                  node("y", "mul", "f s")]
    else:
        nodes.append(node("y", "conv2d", f"{source} w", padding=[1, 1], stride=[2, 2]))
    if channels_last_too:
        nodes.append(node("z", "permute", "y", dims=[0, 2, 3, 1]))
    return [tensor("x", "int8", *image)] + ([tensor("s", "float32", outputs, 1, 1)] if cast else []), [
        tensor("w", "int8", outputs, channels, 3, 3)], nodes


def dequantized(pick, dims, dtype, groups=1, stride=1, dilation=1):
    """8-bit images and weights, multiplied as the float32 values that they stand for: one scale for the image, one for
    each output channel; sometimes the result is quantized again."""
    inputs, constants, nodes = convolution(pick, dims, dtype, groups, stride, dilation)
    weights = constants[0]
    outputs = weights["shape"][0]
    end = nodes[-1]["name"]
    nodes = [node("xf", "dequantize", "x xs", dtype="float32"), node("wf", "dequantize", "w ws", dtype="float32", axis=0),
             dict(nodes[0], inputs=["xf", "wf", "b"]), *nodes[1:]]
    if dtype == "int8" and pick.random() < 0.6:
        nodes.append(node("q", "quantize", f"{end} qs", dtype="int8"))
        inputs.append(tensor("qs", "float32", 1))
    return inputs, [weights, tensor("b", "float32", outputs), tensor("xs", "float32", 1),
                    tensor("ws", "float32", outputs)], nodes


def deep(pick, dtype, groups):
    """Few results with a long K: split-K."""
    channels, size = pick.choice([512, 520]) // (2 if dtype == "float32" else 1) * groups, pick.choice([6, 7])
    inputs = [tensor("x", dtype, 1, channels, size, size), tensor("z", dtype, 1, 64, size, size)]
    return inputs, [tensor("w", dtype, 64, channels // groups, 3, 3), tensor("b", dtype, 64)], [
        node("p", "conv2d", "x w b", padding=[1, 1], groups=groups), node("a", "add", "p z"), node("y", "relu", "a")]


def before_it(pick, dtype):
    """A concat and a ReLU before a convolution."""
    size = pick.choice([14, 16])
    inputs = [tensor("x", dtype, 1, 16, size, size), tensor("z", dtype, 1, 16, size, size)]
    return inputs, [tensor("w", dtype, 32, 32, 3, 3)], [
        node("c", "concat", "x z", dim=1), node("r", "relu", "c"), node("y", "conv2d", "r w", padding=[1, 1])]


def network(pick, dtype):
    """Convolutions with pooling and a sum between them, where values in between become channels-last."""
    channels, outputs, size = 64, pick.choice([64, 72, 136]), pick.choice([28, 30])
    inputs = [tensor("x", dtype, pick.choice([3, 4]), 3, 2 * size, 2 * size)]
    constants = [tensor("w", dtype, channels, 3, 7, 7), tensor("v", dtype, channels, channels, 3, 3),
                 tensor("u", dtype, outputs, channels, 3, 3), tensor("b", dtype, channels)]
    return inputs, constants, [
        node("a", "conv2d", "x w b", stride=[2, 2], padding=[3, 3]), node("c", "relu", "a"),
        node("d", "max_pool2d", "c", kernel_size=[3, 3], stride=[2, 2], padding=[1, 1]),
        node("e", "conv2d", "d v b", padding=[1, 1]), node("f", "add", "e d"), node("g", "relu", "f"),
        node("h", "conv2d", "g u", stride=[2, 2], padding=[1, 1]), node("i", "relu", "h"),
        node("y", "mean", "i", dim=[2, 3])]


def groups_between(pick, dtype):
    """ResNeXt's block: a grouped convolution between two 1x1 ones, with all kernels in one file."""
    channels = pick.choice([64, 128])
    return [tensor("x", dtype, 2, 64, 14, 15)], [
        tensor("w", dtype, channels, 64, 1, 1), tensor("v", dtype, channels, 8, 3, 3),
        tensor("u", dtype, 128, channels, 1, 1), tensor("s", dtype, 128, 64, 1, 1)], [
        node("a", "conv2d", "x w"), node("b", "relu", "a"),
        node("c", "conv2d", "b v", stride=[2, 2], padding=[1, 1], groups=channels // 8), node("d", "relu", "c"),
        node("e", "conv2d", "d u"), node("f", "conv2d", "x s", stride=[2, 2]), node("y", "add", "e f")]


def transposed(pick, dtype):
    channels, outputs = pick.choice([8, 12]), pick.choice([8, 20])
    inputs = [tensor("x", dtype, 2, channels, 7, 9)]
    return inputs, [tensor("w", dtype, channels, outputs, 3, 3)], [
        node("p", "conv_transpose2d", "x w", stride=[2, 2], padding=[1, 1])]


def transposed_any(pick, dtype, dims):
    groups, stride = pick.choice([1, 2]), pick.choice([1, 2, 3])
    dilation, kernel = pick.choice([1, 2]), pick.choice([2, 3, 4])
    channels, outputs = groups * pick.choice([8, 12]), pick.choice([8, 20])
    inputs = [tensor("x", dtype, 2, channels, *([7, 5, 4][:dims]))]
    return inputs, [tensor("w", dtype, channels, outputs, *([kernel] * dims))], [
        node("p", f"conv_transpose{dims}d", "x w", stride=[stride] * dims, padding=[pick.choice([0, 1])] * dims,
             output_padding=[stride - 1] * dims, dilation=[dilation] * dims, groups=groups), node("y", "relu", "p")]


def phases(pick, dims, channels_last_too):
    """A transposed convolution whose window is a multiple of the stride: zeros between elements are not multiplied.
    """
    stride, taps = pick.choice([2, 2, 3, 4]), pick.choice([1, 1, 2])
    channels, outputs, size = 64, pick.choice([32, 64]), {1: [64], 2: [8, 16], 3: [4, 4, 8]}[dims]
    kernel, first, last = stride * taps, [0, dims + 1, *range(1, dims + 1)], [0, *range(2, dims + 2), 1]
    image = [1, *size, channels] if channels_last_too else [1, channels, *size]
    nodes = [node("i", "permute", "x", dims=first)] if channels_last_too else []
    nodes += [node("p", f"conv_transpose{dims}d", ("i" if channels_last_too else "x") + " w b", stride=[stride] * dims,
                   padding=[(kernel - stride + 1) // 2] * dims, output_padding=[(kernel - stride) % 2] * dims),
              node("y", "relu", "p")]
    if channels_last_too:
        nodes.append(node("z", "permute", "y", dims=last))
    pairs = channels * outputs * taps ** dims
    for s in size:
        pairs *= s * stride
    made = [tensor("x", "float16", *image)], [tensor("w", "float16", channels, outputs, *[kernel] * dims),
                                              tensor("b", "float16", outputs)], nodes
    return made, pairs


def to_one_channel(dtype, image, groups, kernel, stride):
    dims = len(image) - 2
    made = [tensor("x", dtype, *image)], [tensor("w", dtype, image[1], 1, *[kernel] * dims)], [
        node("p", f"conv_transpose{dims}d", "x w", stride=[stride] * dims, padding=[(kernel - stride) // 2] * dims,
             groups=groups), node("y", "relu", "p")]
    pairs = image[0] * image[1] * (kernel // stride) ** dims
    for s in image[2:]:
        pairs *= s * stride
    return made, pairs


def awkward(pick, dtype):
    m, n, k = pick.choice([40, 77, 130]), pick.choice([33, 61, 130]), pick.choice([61, 77, 150])
    if pick.random() < 0.5:
        return ([tensor("x", dtype, m, k)], [tensor("w", dtype, n, k)],
                [node("p", "linear", "x w"), node("y", "gelu", "p")])
    return [tensor("x", dtype, 3, m, k), tensor("w", dtype, 3, k, n)], [], [node("y", "bmm", "x w")]


def mapped(pick, way, dtype):
    """An operand that is reversed, rolled, or padded by reflection or circularly along K: no row beyond the last is
    read."""
    m, n, k = pick.choice([4, 33, 70]), pick.choice([16, 61]), pick.choice([5, 31, 77])
    how = {"flip": {"dims": [1]}, "roll": {"shifts": [2], "dims": [1]}, "reflect": {"pad": [3, 2], "mode": "reflect"},
           "circular": {"pad": [3, 2], "mode": "circular"}}[way]
    depth = k + 5 if "mode" in how else k
    return ([tensor("x", dtype, m, k)], [tensor("w", dtype, n, depth)],
            [node("t", "pad" if "mode" in how else way, "x", **how), node("y", "linear", "t w")])


def placed(pick, way, dims, dtype, last):
    """An upsampled image, one with reflected borders or zeros on one side, or with channels moved to space: the
    position of an element is not the sum of the column's and the tap's."""
    channels, outputs, kernel = pick.choice([24, 32, 40]), pick.choice([20, 40, 72]), pick.choice([2, 3])
    size = [pick.choice({1: [45, 100], 2: [9, 14, 16], 3: [4, 6]}[dims]) for _ in range(dims)]
    inputs, batch = [], pick.choice([1, 2])
    shape = [batch, 4 * channels if way == "shuffle" else channels, *size]
    nodes, first = [], "x"
    if last:
        nodes.append(node("f", "permute", "x", dims=[0, dims + 1, *range(1, dims + 1)]))
        shape, first = [shape[0], *shape[2:], shape[1]], "f"
    inputs.append(tensor("x", dtype, *shape))
    if way == "enlarged":
        nodes.append(node("u", "interpolate", first, size=[2 * s for s in size], mode="nearest"))
    elif way == "shuffle":
        high, wide = size
        nodes += [node("r", "reshape", first, shape=[batch, channels, 2, 2, high, wide]),
                  node("q", "permute", "r", dims=[0, 1, 4, 2, 5, 3]),
                  node("u", "reshape", "q", shape=[batch, channels, 2 * high, 2 * wide])]
    else:
        pad = [0, 1] * dims if way == "constant" else [1, 2] * dims
        nodes.append(node("u", "pad", first, pad=pad, mode=way))
    stride = 2 if way == "constant" else 1
    nodes += [node("p", f"conv{dims}d", "u w b", stride=[stride] * dims,
                   padding=kernel // 2 if way in ("enlarged", "shuffle") else 0), node("y", "silu", "p")]
    return inputs, [tensor("w", dtype, outputs, channels, *[kernel] * dims), tensor("b", dtype, outputs)], nodes


def cases():
    """(name, model, its allowed schedules; or its multiply-adds)"""
    pick, found = random.Random(17), []

    def add(name, made, *schedules):
        inputs, constants, nodes = made
        found.append((name, {"fusec": 1, "name": "layer", "inputs": inputs, "constants": constants, "nodes": nodes,
                             "outputs": [nodes[-1]["name"]]}, schedules))

    for dtype in ("float16", "bfloat16", "float32"):
        for dims in (1, 2, 3):
            for stride, dilation, groups in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2)):
                for i in range(3):
                    add(f"{dims}d stride {stride} dilation {dilation} groups {groups} {dtype} {i}",
                        convolution(pick, dims, dtype, groups, stride, dilation), *PIPELINED)
        for i in range(2):
            add(f"transposed {dtype} {i}", transposed(pick, dtype))
            add(f"awkward {dtype} {i}", awkward(pick, dtype), *PIPELINED)
    for dtype in ("float16", "bfloat16", "float32"):
        for dims in (1, 2, 3):
            for stride, dilation, groups in ((1, 1, 1), (2, 2, 2)):
                add(f"{dims}d channels last, stride {stride} dilation {dilation} groups {groups} {dtype}",
                    channels_last(convolution(pick, dims, dtype, groups, stride, dilation), dims), *PIPELINED)
    for dtype in ("float16", "float32"):
        for dims in (1, 2, 2, 2, 3):
            add(f"transposed {dims}d {dtype} {len(found)}", transposed_any(pick, dtype, dims))
    for dtype in ("float16", "bfloat16"):
        add(f"groups between points {dtype}", groups_between(random.Random(len(found)), dtype), "groups and points")
        add(f"network {dtype}", network(pick, dtype), "laid out")
        add(f"images last {dtype}", images_last(pick, dtype), *ON_TENSOR_CORES)
        add(f"before it {dtype}", before_it(pick, dtype))
    for way in ("flip", "roll", "reflect", "circular"):
        for dtype in ("bfloat16", "float32"):
            add(f"mapped {way} {dtype}", mapped(pick, way, dtype))
    for way, dims in (("enlarged", 2), ("reflect", 1), ("reflect", 2), ("replicate", 3), ("constant", 1),
                      ("constant", 2), ("shuffle", 2)):
        for dtype in ("float16", "bfloat16", "float32"):
            for last in (False, True):
                add(f"placed {way} {dims}d {dtype} {last}", placed(pick, way, dims, dtype, last), *PIPELINED)
    for channels_last_too in (False, True):
        for cast in (False, True):
            add(f"bytes {channels_last_too} {cast}", bytes_on_tensor_cores(pick, channels_last_too, cast),
                *ON_TENSOR_CORES)
    for dims, stride, dilation, groups in ((1, 1, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1), (2, 2, 1, 1),
                                           (2, 1, 2, 1), (2, 1, 1, 2), (3, 1, 1, 1), (3, 2, 1, 1)):
        add(f"dequantized {dims}d int8 {len(found)}", dequantized(pick, dims, "int8", groups, stride, dilation),
            *ON_TENSOR_CORES)
    for dtype in ("float8_e4m3fn", "float8_e5m2"):
        for dims in (1, 2, 3):
            add(f"dequantized {dims}d {dtype}", dequantized(pick, dims, dtype), "any on tensor cores")
    for dims in (1, 2, 2, 3):
        for channels_last_too in (False, True):
            made, pairs = phases(pick, dims, channels_last_too)
            add(f"phases {dims}d {channels_last_too} {len(found)}", made, pairs)
    # One output channel, or one a group: no matrix product, but the same taps.
    for dtype, image, groups, kernel, stride, most in (
            ("float16", (1, 64, 16, 16), 1, 4, 2, 24), ("float32", (1, 64, 16, 16), 1, 4, 2, 8),
            ("bfloat16", (2, 64, 128), 1, 16, 8, 60), ("float16", (1, 21, 8, 8), 21, 16, 8, 40),
            ("float32", (2, 12, 5, 6, 7), 12, 4, 2, 30), ("float16", (2, 33, 64), 33, 8, 4, 60)):
        made, pairs = to_one_channel(dtype, image, groups, kernel, stride)
        add(f"phases to one channel {dtype} {image}", made, LIVE_TAPS, most * pairs)
    for dtype, groups in (("float16", 1), ("bfloat16", 2), ("float32", 1)):
        add(f"deep {dtype} {groups}", deep(pick, dtype, groups), "split_k_reduction")
    for dtype in ("float16", "bfloat16"):
        for dims in (1, 2, 3):
            add(f"joined residual {dims}d {dtype}", residual(pick, dims, dtype), *ON_TENSOR_CORES, "split_k_reduction")
        add(f"joined gated {dtype}", gated(pick, dtype), *ON_TENSOR_CORES, "split_k_reduction")
        add(f"joined three {dtype}", three(pick, dtype), *ON_TENSOR_CORES, "split_k_reduction")
    for dims, dtype, channels, kernel, stride, groups in (
            (2, "float16", 1280, 3, 1, 1), (1, "bfloat16", 2048, 5, 2, 1), (3, "bfloat16", 512, 3, 1, 1),
            (2, "bfloat16", 704, 3, 2, 2)):
        add(f"many channels {dims}d {dtype} {channels}", many_channels(dims, dtype, channels, kernel, stride, groups),
            *ON_TENSOR_CORES, "split_k_reduction")
    for dtype in ("float16", "bfloat16", "float32", "int8"):
        for dims in (1, 2, 2, 3):
            add(f"depthwise {dims}d {dtype} {len(found)}", depthwise(pick, dims, dtype, len(found) % 2 == 0), *WINDOWS)
    for dtype in ("float16", "float32"):
        add(f"maximum {dtype}", pooling(pick, "max_pool2d", dtype), *WINDOWS)
        add(f"average {dtype}", pooling(pick, "avg_pool2d", dtype), *WINDOWS)
        add(f"separable {dtype}", separable(pick, dtype), *WINDOWS, PLANES)
    # The last number: instructions per multiply-add.
    for dtype, image, groups, outputs, kernel, stride, tail, most in (
            ("float16", (2, 32, 56, 56), 32, 32, 3, 1, "relu", 4.8), ("bfloat16", (2, 32, 56, 56), 32, 32, 3, 2, "", 10.5),
            ("float32", (1, 48, 28, 28), 48, 48, 3, 1, "residual", 4.6), ("float16", (1, 48, 28, 28), 48, 48, 5, 1, "", 2.8),
            ("float32", (1, 48, 28, 28), 48, 48, 5, 2, "", 6), ("float16", (1, 48, 28, 28), 48, 48, 7, 1, "silu", 2.4),
            ("bfloat16", (1, 48, 28, 28), 48, 48, 7, 2, "", 4.5), ("float32", (2, 24, 14, 14), 24, 24, 7, 1, "relu", 4),
            ("float32", (2, 32, 28, 28), 8, 32, 3, 2, "", 4.5), ("float16", (2, 35, 19, 17), 7, 49, 3, 1, "relu", 6),
            ("float16", (2, 21, 33, 31), 7, 14, 3, 1, "residual", 7),
            ("int8", (1, 24, 28, 28), 24, 24, 3, 1, "", 8), ("float32", (2, 24, 7, 16, 16), 6, 24, 3, 1, "", 6)):
        made, pairs = in_planes(dtype, image, groups, outputs, kernel, stride, tail)
        add(f"planes {groups} of {image} by {kernel} stride {stride} {dtype} {tail}", made, PLANES, most * pairs)
    for dilation, dtype in ((2, "float16"), (3, "float32")):
        made, pairs = in_planes(dtype, (2, 32, 28, 28), 32, 64, 3, dilation=[dilation] * 2, padding=[dilation] * 2)
        add(f"planes dilated {dilation} {dtype}", made, PLANES, 6 * pairs)
    # Groups of few channels, channels last. The last numbers: instructions per multiply-add, and requested bytes
    # relative to the least bytes (with small images many blocks read the weights).
    for dtype, image, groups, outputs, kernel, stride, tail, most, bytes_asked, attributes in (
            ("float16", (2, 128, 28, 28), 32, 128, 3, 1, "relu", 1.4, 2.2, {}),
            ("bfloat16", (1, 256, 28, 28), 32, 256, 3, 1, "residual", 0.6, 2.3, {}),
            ("float16", (2, 512, 14, 14), 32, 512, 3, 1, "silu", 0.32, 2.5, {}),
            ("bfloat16", (2, 512, 14, 15), 32, 512, 3, 2, "", 0.8, 3, {}),
            ("float16", (3, 1024, 7, 7), 32, 1024, 3, 1, "relu", 0.2, 4, {}),
            ("float16", (2, 64, 21, 17), 8, 64, 5, 1, "", 0.4, 6.5, {}),
            ("bfloat16", (2, 64, 19, 23), 4, 48, 7, 2, "", 1.5, 18, {}),
            ("float16", (1, 128, 30, 31), 16, 128, 3, 1, "", 0.6, 3.2, {"dilation": [2, 3], "padding": [2, 3]}),
            ("bfloat16", (1, 128, 40, 40), 16, 256, 3, 3, "relu", 1.2, 3.2, {"dilation": [2, 2], "padding": [2, 2]}),
            ("float16", (3, 96, 200), 8, 96, 5, 1, "residual", 0.85, 4.5, {}),
            ("bfloat16", (3, 64, 301), 16, 64, 3, 2, "", 8, 2, {}),
            ("float16", (1, 64, 6, 14, 13), 8, 64, 3, 1, "", 0.5, 7.5, {}),
            ("bfloat16", (2, 48, 22, 22), 12, 48, 3, 1, "", 1.9, 4.2, {}),
            ("float16", (2, 72, 22, 22), 6, 72, 3, 1, "", 0.75, 10, {}),
            ("bfloat16", (2, 64, 22, 22), 8, 24, 3, 1, "silu", 2.1, 3.4, {}),
            ("int8", (2, 256, 28, 28), 32, 256, 3, 1, "", 0.35, 4.2, {}),
            ("int8", (2, 128, 17, 15), 8, 128, 3, 2, "", 0.65, 6.5, {}),
            ("float16", (4, 96, 22, 21), 12, 96, 1, 1, "", 4.5, 1.5, {})):
        made, pairs = in_planes(dtype, image, groups, outputs, kernel, stride, tail, **attributes)
        if dtype == "int8":
            made = made[0], made[1][:1], [dict(made[2][0], inputs=["x", "w"])]
        add(f"groups last {groups} of {image} by {kernel} stride {stride} {dtype} {tail}",
            channels_last(made, len(image) - 2), GROUPS, most * pairs, bytes_asked)
    # Groups of few channels, channels first, and few results of one group.
    for dtype, image, groups, outputs, kernel, stride, tail, most, bytes_asked, attributes in (
            ("float16", (2, 32, 56, 56), 8, 32, 3, 1, "relu", 1.7, 3.9, {}),
            ("bfloat16", (2, 32, 56, 56), 8, 32, 3, 1, "", 1.7, 3.9, {}),
            ("float16", (3, 36, 200), 9, 36, 5, 1, "silu", 3.3, 3.2, {}),
            ("float16", (2, 64, 28, 28), 8, 64, 3, 1, "relu", 0.62, 4.4, {}),
            ("bfloat16", (2, 128, 28, 30), 16, 128, 3, 2, "residual", 2, 4.4, {}),
            ("float16", (1, 64, 25, 24), 8, 64, 5, 3, "", 1.3, 5.1, {}),
            ("bfloat16", (2, 40, 19, 17), 5, 30, 3, 1, "", 2.2, 5.8, {}),
            ("float16", (1, 64, 17, 24), 8, 64, 3, 1, "", 0.87, 7.3, {"dilation": [2, 3], "padding": [2, 3]}),
            ("float16", (3, 64, 201), 8, 64, 5, 1, "residual", 1.6, 2.5, {}),
            ("float16", (1, 64, 4, 9, 12), 8, 64, 3, 1, "", 0.45, 7.4, {}),
            ("int8", (1, 128, 14, 13), 8, 128, 3, 1, "", 0.58, 13, {}),
            ("float16", (1, 128, 48, 64), 1, 3, 3, 1, "", 0.92, 8.1, {}),
            ("bfloat16", (1, 320, 24, 24), 1, 4, 3, 1, "", 2.6, 11.8, {}),
            ("float16", (2, 64, 27, 29), 1, 12, 3, 2, "", 0.84, 8.1, {})):
        made, pairs = in_planes(dtype, image, groups, outputs, kernel, stride, tail, **attributes)
        if dtype == "int8":
            made = made[0], made[1][:1], [dict(made[2][0], inputs=["x", "w"])]
        for last in (False, True) if groups == 1 else (False,):
            add(f"groups {'last' if last else 'first'} {groups} of {image} by {kernel} stride {stride} {dtype} {tail}",
                channels_last(made, len(image) - 2) if last else made, GROUPS, most * pairs, bytes_asked)
    # Symbolic sizes of more than one tile and less than two.
    for dtype, image, groups, kernel, stride, most in (("float16", (3, 64, 17, 11), 16, 3, 1, 6),
                                                       ("bfloat16", (2, 128, 21, 19), 16, 3, 2, 2.5)):
        made, pairs = in_planes(dtype, image, groups, image[1], kernel, stride, "relu")
        made = channels_last(made, 2)
        made[0][0]["shape"][:2] = ["n", "h"]
        add(f"groups last of any size {dtype}", made, GROUPS, most * pairs, 8)
        found[-1][1]["symbols"] = {"n": {"max": 64, "hint": image[0]}, "h": {"min": 3, "max": 300, "hint": image[2]}}
    for image, groups, outputs, stride in (((1, 128, 14, 14), 32, 128, 1), ((2, 64, 19, 11), 8, 64, 2)):
        made, pairs = in_planes("float32", image, groups, outputs, 3, stride, "relu")
        add(f"groups last in tf32 {groups}", channels_last(made, 2), "groups in tf32")
    return found
