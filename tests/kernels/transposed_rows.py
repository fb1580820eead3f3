"""Norms and softmax over a permuted operand, or with a permuted result, with weights and residuals in other layouts:
one launch, sectors close to those of the tensors. Unaligned rows may read sectors of their neighbours, weights are read
once a block, and a table of positions once an image. Concatenated rows (a class token, text) are handled, too."""
from kernels import case
from kernels.case import BYTES, element_count, model, node, tensors


def Case(name, inputs, nodes, outputs, more=1.02, conflicts=0.0):
    """inputs: name -> (dtype, shape). more: most sectors relative to those of all tensors, each once. conflicts: most
    bank conflicts a sector."""
    dtype, shape = inputs["x"]
    tensors_once = [*inputs.values(), *[(dtype, shape)] * len(outputs)]
    least = sum(element_count(shape) * BYTES[dtype] for dtype, shape in tensors_once)
    return case.Case(name, model(tensors(inputs), nodes, outputs), group=name.split(" ")[0],
                     most={"sector bytes": more * least + 32 * 40, "conflicts": lambda run: conflicts * run["sector bytes"] / 32},
                     exactly={"launches": 1})


def norm(result, operand, length, weights):
    return node(result, "layer_norm", operand, *(("w", "b") if weights else ()), normalized_shape=[length])


def patches(dtype, batch, length, height, width, **more):
    """Channels of an image become normalized tokens: [B, C, H, W] -> [B, H W, C]."""
    inputs = {"x": (dtype, [batch, length, height, width]), "w": (dtype, [length]), "b": (dtype, [length])}
    nodes = [node("f", "flatten", "x", start_dim=2), node("t", "transpose", "f", dim0=1, dim1=2),
             norm("y", "t", length, True)]
    return Case(f"patches {dtype}[{batch}, {length}, {height}, {width}]", inputs, nodes, ["y"], **more)


def class_token(dtype, batch, length, height, width, last=False, **more):
    """One row for all images before or after the patches, and added position embeddings."""
    rows = height * width
    inputs = {"x": (dtype, [batch, length, height, width]), "c": (dtype, [length]), "p": (dtype, [rows + 1, length]),
              "w": (dtype, [length]), "b": (dtype, [length])}
    parts = ("t", "e") if last else ("e", "t")
    nodes = [node("f", "flatten", "x", start_dim=2), node("t", "transpose", "f", dim0=1, dim1=2),
             node("d", "reshape", "c", shape=[1, 1, length]), node("e", "expand", "d", shape=[batch, 1, length]),
             node("j", "concat", *parts, dim=1), node("a", "add", "j", "p"), norm("y", "a", length, True)]
    where = "behind" if last else "before"
    return Case(f"class token {where} {dtype}[{batch}, {length}, {height}, {width}]", inputs, nodes, ["y"], **more)


def beside_text(dtype, batch, length, text, rows, **more):
    """Contiguous rows of text before the strided rows of an image."""
    inputs = {"x": (dtype, [batch, length, rows]), "r": (dtype, [batch, text, length])}
    nodes = [node("t", "transpose", "x", dim0=1, dim1=2), node("j", "concat", "r", "t", dim=1),
             norm("y", "j", length, False)]
    return Case(f"beside text {dtype}[{batch}, {length}, {text} + {rows}]", inputs, nodes, ["y"], **more)


def channels_last(dtype, batch, length, height, width, **more):
    inputs = {"x": (dtype, [batch, length, height, width])}
    nodes = [node("t", "permute", "x", dims=[0, 2, 3, 1]), norm("y", "t", length, False)]
    return Case(f"channels last {dtype}[{batch}, {length}, {height}, {width}]", inputs, nodes, ["y"], **more)


def softmax_across(dtype, batch, length, rows, **more):
    nodes = [node("t", "transpose", "x", dim0=1, dim1=2), node("y", "softmax", "t", dim=-1)]
    return Case(f"softmax across {dtype}[{batch}, {length}, {rows}]", {"x": (dtype, [batch, length, rows])}, nodes,
                ["y"], **more)


def stored_across(dtype, batch, rows, length, **more):
    inputs = {"x": (dtype, [batch, rows, length]), "w": (dtype, [length]), "b": (dtype, [length])}
    nodes = [norm("n", "x", length, True), node("y", "transpose", "n", dim0=1, dim1=2)]
    return Case(f"stored across {dtype}[{batch}, {rows}, {length}]", inputs, nodes, ["y"], **more)


def residual(dtype, batch, length, rows, **more):
    """A residual with contiguous rows, and the sum as a second result."""
    inputs = {"x": (dtype, [batch, length, rows]), "r": (dtype, [batch, rows, length]), "w": (dtype, [length]),
              "b": (dtype, [length])}
    nodes = [node("t", "transpose", "x", dim0=1, dim1=2), node("s", "add", "t", "r"), norm("y", "s", length, True)]
    return Case(f"residual {dtype}[{batch}, {length}, {rows}]", inputs, nodes, ["s", "y"], **more)


def gathered(dtype, batch, length, rows, **more):
    """Rows of a table that an index names, added to the strided rows."""
    inputs = {"x": (dtype, [batch, length, rows]), "i": ("int64", [rows]), "p": (dtype, [rows, length]),
              "w": (dtype, [length]), "b": (dtype, [length])}
    nodes = [node("t", "transpose", "x", dim0=1, dim1=2), node("g", "index_select", "p", "i", dim=0),
             node("a", "add", "t", "g"), norm("y", "a", length, True)]
    return Case(f"gathered {dtype}[{batch}, {length}, {rows}]", inputs, nodes, ["y"], **more)


def there_and_back(dtype, batch, length, height, width, **more):
    """A value with channels last, added to one with channels first."""
    inputs = {"x": (dtype, [batch, length, height, width]), "r": (dtype, [batch, height, width, length])}
    nodes = [node("t", "permute", "r", dims=[0, 3, 1, 2]), node("s", "add", "t", "x"),
             node("y", "softmax", "s", dim=1)]
    return Case(f"there and back {dtype}[{batch}, {length}, {height}, {width}]", inputs, nodes, ["y"], **more)


def cases():
    found = []
    for dtype in ("float32", "float16", "bfloat16"):
        half = dtype != "float32"
        found += [patches(dtype, 4, 768, 14, 14, more=1.27 if half else 1.22), patches(dtype, 2, 768, 16, 16, more=1.08),
                  patches(dtype, 3, 768, 7, 7, more=1.38), patches(dtype, 1, 96, 56, 56, more=1.08),
                  patches(dtype, 5, 100, 14, 14, more=1.28 if half else 1.2),
                  patches(dtype, 2, 33, 56, 56, more=1.05, conflicts=0.5),
                  patches(dtype, 2, 1000, 8, 8, more=1.09), channels_last(dtype, 8, 192, 28, 28),
                  channels_last(dtype, 1, 384, 14, 15, more=1.22), softmax_across(dtype, 16, 256, 256),
                  softmax_across(dtype, 2, 255, 256, more=1.25), softmax_across(dtype, 2, 256, 255, more=1.25),
                  stored_across(dtype, 4, 256, 768, more=1.08), stored_across(dtype, 4, 196, 768, more=1.27),
                  stored_across(dtype, 2, 49, 384, more=1.36),
                  stored_across(dtype, 2, 256, 255, more=1.08, conflicts=0.03),
                  residual(dtype, 4, 384, 256, more=1.05), residual(dtype, 2, 384, 196, more=1.15),
                  there_and_back(dtype, 4, 128, 16, 16), there_and_back(dtype, 2, 96, 14, 14, more=1.2),
                  gathered(dtype, 2, 64, 49, more=1.92)]
        found += [class_token(dtype, 4, 768, 14, 14, more=1.8), class_token(dtype, 2, 512, 16, 16, more=1.3),
                  class_token(dtype, 3, 192, 7, 7, last=True, more=1.65), beside_text(dtype, 2, 384, 77, 256, more=1.3),
                  beside_text(dtype, 2, 200, 3, 49, more=1.6, conflicts=0.01)]
    found += [softmax_across("float8_e4m3fn", 4, 256, 256), stored_across("float8_e4m3fn", 4, 256, 512, more=1.04),
              patches("float32", 1, 4096, 8, 8, more=1.13), patches("float16", 2, 4096, 16, 16, more=1.08)]
    return found
