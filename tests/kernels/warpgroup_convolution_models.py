"""Warpgroup convolutions of sm_90a for kernels/convolutions.py: models, the number of multiprocessors of their device,
and their expected schedules."""
from kernels.case import tensor, words as node


def image(dims, images, channels, size, outputs, kernel, dtype="float16", tail="relu", **attributes):
    """Images, weights and results with channels last. `size`: one extent for all dimensions, or a list."""
    size = size if isinstance(size, list) else [size] * dims
    attributes = {name: [value] * dims for name, value in attributes.items()}
    first, last = [0, dims + 1, *range(1, dims + 1)], [0, *range(2, dims + 2), 1]
    results = [(s + 2 * attributes.get("padding", [0])[0] - attributes.get("dilation", [1])[0] * (kernel - 1) - 1) //
               attributes.get("stride", [1])[0] + 1 for s in size]
    inputs = [tensor("x", dtype, images, *size, channels)]
    nodes = [node("i", "permute", "x", dims=first), node("v", "permute", "w", dims=first),
             node("p", f"conv{dims}d", "i v b" if dtype != "int8" else "i v", **attributes)]
    if tail == "residual":
        inputs.append(tensor("r", dtype, images, *results, outputs))
        nodes += [node("s", "permute", "r", dims=first), node("a", "add", "p s"), node("t", "relu", "a")]
    elif tail == "float32":
        nodes.append(node("t", "cast", "p", dtype="float32"))
    elif tail == "gate":
        nodes += [node("s", "sigmoid", "p"), node("t", "mul", "p s")]
    else:
        nodes.append(node("t", tail, "p"))
    constants = [tensor("w", dtype, outputs, *[kernel] * dims, channels)]
    return {"fusec": 1, "name": "layer", "inputs": inputs, "outputs": ["y"],
            "constants": constants + ([tensor("b", dtype, outputs)] if dtype != "int8" else []),
            "nodes": nodes + [node("y", "permute", "t", dims=last)]}


def planes(dims, images, channels, size, outputs, kernel, dtype="float16", tail="silu", groups=1, **attributes):
    """Images and results with channels first."""
    size = size if isinstance(size, list) else [size] * dims
    attributes = {name: [value] * dims for name, value in attributes.items()}
    results = [s + 2 * attributes.get("padding", [0])[0] - attributes.get("dilation", [1])[0] * (kernel - 1) for s in size]
    inputs = [tensor("x", dtype, images, channels, *size)]
    nodes = [node("p", f"conv{dims}d", "x w b", groups=groups, **attributes)]
    if tail == "residual":
        inputs.append(tensor("r", dtype, images, outputs, *results))
        nodes.append(node("y", "add", "p r"))
    elif tail == "points":
        inputs.append(tensor("r", dtype, images, channels // 2, *results))
        nodes += [node("q", f"conv{dims}d", "r v"), node("y", "add", "p q")]
    else:
        nodes.append(node("y", tail, "p"))
    constants = [tensor("w", dtype, outputs, channels // groups, *[kernel] * dims), tensor("b", dtype, outputs)]
    if tail == "points":
        constants.append(tensor("v", dtype, outputs, channels // 2, *[1] * dims))
    return {"fusec": 1, "name": "layer", "inputs": inputs, "outputs": ["y"], "constants": constants, "nodes": nodes}


def from_to(images_last, results_last, images, channels, size, outputs, kernel, dtype="float16", tail="silu", **attributes):
    """Two-dimensional convolutions, where the layouts of images and results may differ."""
    model = planes(2, images, channels, size, outputs, kernel, dtype, tail, **attributes)
    nodes, first, last = model["nodes"], [0, 3, 1, 2], [0, 2, 3, 1]
    if images_last:
        x, conv = model["inputs"][0], nodes[0]
        x["shape"] = [x["shape"][i] for i in last]
        nodes.insert(0, node("i", "permute", "x", dims=first))
        conv["inputs"][0] = "i"
    if results_last:
        nodes[-1]["name"] = "t"
        nodes.append(node("y", "permute", "t", dims=last))
    return model


def strided(model, stride=2):
    next(n for n in model["nodes"] if n["op"] == "conv2d")["attrs"]["stride"] = [stride, stride]
    return model


def placed(images_last, results_last, how, images, channels, size, outputs, dtype="float16"):
    """An upsampled image, or one with reflected borders: positions of taps come from a table."""
    model = from_to(images_last, results_last, images, channels, size, outputs, 3, dtype)
    conv = next(n for n in model["nodes"] if n["op"] == "conv2d")
    of = conv["inputs"][0]
    made = (node("e", "interpolate", of, size=[2 * s for s in size], mode="nearest") if how == "enlarged" else
            node("e", "pad", of, pad=[1, 1, 1, 1], mode=how))
    model["nodes"].insert(model["nodes"].index(conv), made)
    conv["inputs"][0] = "e"
    if how == "enlarged":
        conv["attrs"]["padding"] = [1, 1]
    return model


def with_shortcut(size, channels, outputs, stride):
    """The end of a residual block: a convolution plus a 1x1 convolution of its input, strided or not."""
    model, dims = from_to(True, True, 2, channels, size, outputs, 3, tail="relu", padding=1), [0, 3, 1, 2]
    model["inputs"].append(tensor("z", "float16", 2, *[stride * s for s in size], outputs))
    model["constants"].append(tensor("v", "float16", outputs, outputs, 1, 1))
    at = next(i for i, n in enumerate(model["nodes"]) if n["op"] == "relu")
    model["nodes"][at]["inputs"] = ["a"]
    model["nodes"][at:at] = [node("j", "permute", "z", dims=dims), node("q", "conv2d", "j v", stride=[stride, stride]),
                             node("a", "add", "p q")]
    return model


def of_symbol(model, name, images):
    x = model["inputs"][0]
    return dict(model, symbols={name: {"min": 1, "max": 64, "hint": images}},
                inputs=[dict(x, shape=[name, *x["shape"][1:]])])


def by_warpgroups():
    """(name, model, its multiprocessors, its schedules): no whole tiles of rows and columns, and steps that have parts
    of several taps."""
    one = ["convolution_wgmma"]
    yield "3x3", image(2, 2, 64, [19, 26], 72, 3, padding=1), 4, one
    yield "3x3, stride 2", image(2, 2, 64, [27, 58], 136, 3, padding=1, stride=2), 4, one
    yield "3x3, no padding", image(2, 1, 128, [28, 23], 128, 3, "bfloat16", "silu"), 4, one
    yield "3x3, dilated, with a residual", image(2, 2, 40, 21, 64, 3, "bfloat16", "residual", padding=2, dilation=2), 4, one
    yield "7x7, stride 2", image(2, 1, 64, [35, 40], 72, 7, padding=3, stride=2), 2, one
    yield "5x5 of 24 channels", image(2, 2, 24, 19, 72, 5, "bfloat16", "gate", padding=2), 4, one
    yield "3x3 of 8 channels", image(2, 2, 8, 31, 64, 3, padding=1), 4, one
    yield "1x1 of a padded image", image(2, 2, 64, 28, 136, 1, padding=1), 4, one
    yield "1x1, stride 2", image(2, 2, 264, [53, 27], 136, 1, stride=2), 4, ["gemm_wgmma"]
    yield "3x3 of many channels", image(2, 2, 200, 13, 136, 3, padding=1), 4, one
    yield "3x3 to float32", image(2, 2, 64, 20, 128, 3, "bfloat16", "float32", padding=1), 4, one
    yield "columns in no eights", image(2, 2, 64, 20, 124, 3, padding=1), 4, one
    yield "1d, dilated", image(1, 3, 64, 401, 136, 5, padding=4, dilation=3), 4, one
    yield "3d", image(3, 2, 32, [5, 9, 11], 72, 3, "bfloat16", padding=1), 4, one
    yield "images that are a symbol", of_symbol(image(2, 3, 64, 17, 72, 3, padding=1), "n", 5), 4, one
    yield "shares of the depth", image(2, 1, 264, 14, 200, 3, padding=1), 132, ["convolution_wgmma", "split_k_reduction"]
    yield "int8", image(2, 2, 80, 20, 72, 3, "int8", padding=1), 4, one
    # TMA boxes of planes have rows of 64, 32, 16 or 8 pixels.
    yield "planes, 64 pixels", planes(2, 2, 64, [6, 64], 136, 3, padding=1), 4, one
    yield "planes, 32 pixels, with a residual", planes(2, 2, 64, [9, 32], 200, 3, "bfloat16", "residual", padding=1), 4, one
    yield "planes, 16 pixels, 40 channels", planes(2, 2, 40, 16, 136, 3, tail="relu", padding=1), 4, one
    yield "planes, 8 pixels", planes(2, 2, 128, [11, 24], 136, 3, "bfloat16", padding=1), 4, one
    yield "planes, dilated", planes(2, 2, 64, [16, 32], 136, 3, padding=2, dilation=2), 4, one
    yield "planes, 5x5", planes(2, 1, 120, [6, 32], 136, 5, padding=2), 4, one
    yield "planes of a line", planes(1, 3, 64, 264, 136, 5, padding=2), 4, one
    yield "planes of volumes", planes(3, 1, 64, [3, 4, 32], 136, 3, "bfloat16", padding=1), 4, one
    yield "planes in groups", planes(2, 2, 128, [8, 32], 256, 3, groups=2, padding=1), 4, one
    yield "planes, shares of the depth", planes(2, 1, 712, 8, 200, 3, padding=1), 132, ["convolution_wgmma", "split_k_reduction"]
    yield "planes, images that are a symbol", of_symbol(planes(2, 3, 64, [8, 32], 136, 3, padding=1), "n", 5), 4, one
    # Few results, with tiles at most half full.
    yield "planes, 64 results", planes(2, 2, 64, [8, 64], 64, 3, padding=1), 4, one
    yield "planes, 48 results, with a residual", planes(2, 2, 64, [9, 32], 48, 3, "bfloat16", "residual", padding=1), 4, one
    yield "planes, 33 results", planes(2, 2, 64, [9, 32], 33, 3, padding=1), 4, one
    # TMA boxes of channels-last images, and of images whose layout differs from the results'.
    yield "boxes, 3x3", from_to(True, True, 2, 64, [9, 32], 136, 3, padding=1), 4, one
    yield "boxes, 5x5 of 3 lines", from_to(True, True, 1, 128, [3, 64], 72, 5, "bfloat16", padding=2), 4, one
    yield "boxes, dilated", from_to(True, True, 3, 64, [11, 24], 72, 3, padding=2, dilation=2), 4, one
    yield "boxes, images that are a symbol", of_symbol(from_to(True, True, 3, 64, [8, 16], 136, 3, padding=1), "n", 5), 4, one
    yield "boxes, shares of the depth", from_to(True, True, 1, 704, 16, 200, 3, padding=1), 132, ["convolution_wgmma", "split_k_reduction"]
    yield "boxes, channels last to first", from_to(True, False, 2, 64, [9, 32], 136, 3, padding=1), 4, one
    yield "pieces, 40 channels last to first", from_to(True, False, 2, 40, 16, 136, 3, "bfloat16", padding=1), 4, one
    yield "boxes, last to first with a residual", from_to(True, False, 2, 128, [11, 24], 72, 3, tail="residual", padding=1), 4, one
    yield "boxes, channels first to last", from_to(False, True, 2, 64, [9, 32], 136, 3, padding=1), 4, one
    yield "boxes, 120 channels first to last", from_to(False, True, 2, 120, 24, 264, 3, "bfloat16", padding=1), 4, one
    yield "boxes, first to last, 64 pixels", from_to(False, True, 1, 64, [5, 64], 264, 5, padding=2), 4, one
    yield "boxes, first to last, symbol", of_symbol(from_to(False, True, 3, 64, [8, 16], 72, 3, padding=1), "n", 5), 4, one
    yield "two images in one sum", with_shortcut([8, 32], 64, 136, 1), 132, one
    # With strided points, each row would be a tile of its own.
    yield "a strided image in one sum", with_shortcut([8, 32], 64, 136, 2), 132, ["convolution_mma"]
    # Threads also copy image pieces for columns; each tile has a table of positions.
    yield "pieces, last to first", from_to(True, False, 2, 64, [19, 26], 136, 3, padding=1), 4, one
    yield "pieces, last to first, stride 2", strided(from_to(True, False, 2, 72, [27, 58], 136, 3, padding=1)), 4, one
    yield "pieces, last to first, symbol", of_symbol(from_to(True, False, 3, 64, 14, 136, 3, "bfloat16", padding=1), "n", 5), 4, one
    yield "pieces, last to first, shares", from_to(True, False, 1, 264, 14, 200, 3, padding=1), 132, ["convolution_wgmma", "split_k_reduction"]
    yield "places, enlarged", placed(True, True, "enlarged", 2, 64, [9, 13], 136), 4, one
    yield "places, enlarged, 24 channels", placed(True, True, "enlarged", 2, 24, [13, 9], 72, "bfloat16"), 4, one
    yield "places, enlarged, last to first", placed(True, False, "enlarged", 2, 64, [9, 13], 136), 4, one
    yield "places, reflected", placed(True, True, "reflect", 2, 40, [19, 21], 136), 4, one
    yield "places, replicated, last to first", placed(True, False, "replicate", 2, 72, [19, 21], 136, "bfloat16"), 4, one
    yield "places, images that are a symbol", of_symbol(placed(True, True, "enlarged", 3, 64, [7, 9], 136), "n", 5), 4, one
    yield "points, first to last", from_to(False, True, 3, 128, [10, 12], 200, 1), 4, ["gemm_wgmma"]
    yield "points, last to first", from_to(True, False, 3, 128, [10, 12], 200, 1), 4, ["gemm_wgmma"]
    yield "points of planes", planes(2, 3, 128, [10, 12], 200, 1), 4, ["gemm_wgmma"]
    yield "planes and points in one sum", planes(2, 1, 128, [8, 64], 200, 3, tail="points", padding=1), 132, one
