"""Rows that a block takes, or blocks together: how often threads meet at barriers, and how many blocks run on a
multiprocessor at a time.

    several    independent reductions of one row are one reduction, whoever shares the row: a block, a cluster,
               co-resident blocks
    gradients  of LayerNorm and RMSNorm, with those of their weights: blocks take rows one after the other, two blocks a
               multiprocessor where both keep what they need of a row, and copy later rows while they compute
    packed     long rows of 16-bit values stay packed in registers, at most 64 a thread, so that a second block fits
"""
from kernels import column_folds
from kernels.column_folds import layer_norm, layer_norm_anew, rms_norm_anew
from kernels.case import FEW_MULTIPROCESSORS, TARGETS, Case, model, node, tensor, tensors

ONE_REDUCTION = (("cu", r"= \w+_reduce<[^;]*\(pair\(", True), ("cu", r"(?s)= \w+_reduce<\d.*= \w+_reduce<\d", False))

COPIED_AHEAD = (("ptx", r"cp\.async\.cg\.shared\.global", True), ("ptx", r"cp\.async\.wait_group", True))


def several(dtype, rows, columns):
    """Maximum, sum, sum of squares and argmax of a row, all of which the results need."""
    along, nodes, x = {"dim": [1], "keepdim": True}, [], "x"
    if dtype in ("float16", "bfloat16"):
        nodes, x = [node("xf", "cast", "x", dtype="float32")], "xf"
    nodes += [node("a", "amax", x, **along), node("s", "sum", x, **along), node("q", "mul", x, x),
              node("t", "sum", "q", **along), node("m", "argmax", x, dim=1, keepdim=True), node("d", "sub", x, "a"),
              node("e", "mul", "d", "s"), node("y", "add", "e", "t")]
    return model([tensor("x", dtype, rows, columns)], nodes, ["y", "m"])


def gradients(norm, dtype, rows, columns, blocks=2, targets=TARGETS):
    graph = column_folds.Graph(norm, dtype, [rows, columns], None, None)
    return Case(f"gradients {graph.name}", model(tensors(graph.inputs), graph.nodes, graph.outputs), targets=targets,
                least={"blocks a multiprocessor": blocks},
                most={"launches": 2, "reductions": 3 if "anew" in norm.__name__ else 1, "NVRTC / limit": 1},
                texts=COPIED_AHEAD, chip=FEW_MULTIPROCESSORS, group="gradients")


def softmax(columns):
    return [node("y", "softmax", "x", dim=1)], []


def log_softmax(columns):
    return [node("y", "log_softmax", "x", dim=1)], []


def rms_norm(columns):
    return [node("y", "rms_norm", "x", "w", normalized_shape=[columns], eps=1e-5)], ["w"]


def packed(form, dtype, columns):
    nodes, vectors = form(columns)
    inputs = [tensor("x", dtype, 12, columns)] + [tensor(name, dtype, columns) for name in vectors]
    return Case(f"packed {form.__name__} {dtype} {columns}", model(inputs, nodes),
                least={"blocks a multiprocessor": 2}, most={"registers": 64, "sectors / least": 1.05 + 0.4 * len(vectors), "NVRTC / limit": 1},
                chip=FEW_MULTIPROCESSORS, group="packed")


def cases():
    found = [Case(f"several {dtype} {shape}", several(dtype, *shape), texts=ONE_REDUCTION, most={"conflicts": None},
                  targets=targets, group="several")
             for dtype, *shape, targets in (
                 ("float32", 300, 20000, ("sm_80", "sm_90a")), ("float32", 12, 100000, ("sm_80", "sm_90a")),
                 ("bfloat16", 12, 100001, ("sm_80", "sm_90a")), ("float64", 60, 3000, ("sm_80", "sm_90a")),
                 ("bfloat16", 7, 15999, ("sm_80",)))]
    found += [gradients(layer_norm, "bfloat16", 300, 4096), gradients(layer_norm, "float32", 299, 4096),
              gradients(layer_norm, "float16", 301, 8192), gradients(layer_norm, "float32", 300, 8192, targets=("sm_90a",)),
              gradients(layer_norm, "bfloat16", 301, 5128), gradients(layer_norm, "float32", 301, 4100),
              gradients(layer_norm_anew, "bfloat16", 300, 8192), gradients(rms_norm_anew, "float32", 300, 8192),
              gradients(rms_norm_anew, "float16", 300, 6144), gradients(layer_norm, "float32", 1201, 1024, blocks=1)]
    return found + [packed(softmax, "bfloat16", 32768), packed(softmax, "float16", 24576), packed(softmax, "bfloat16", 20480),
                    packed(log_softmax, "bfloat16", 32760), packed(log_softmax, "float16", 20000),
                    packed(rms_norm, "bfloat16", 24576)]
