"""Results that may overwrite an operand (rows, epilogues of products, updated tensors), and similar ones that must not: the
buffers of a workspace, launches, and results with the compiled host part."""
from kernels.case import BYTES, RESULTS, Case, element_count, node, tensor

ALIGNMENT = 256


def between(name, nodes, shape, dtype="float32", constants=(), symbols=None):
    """cumsum -> nodes that lead from "a" to "b" -> cumsum. So a and b are in the workspace."""
    return {"fusec": 1, "name": name, "symbols": symbols or {}, "constants": list(constants),
            "inputs": [{"name": "x", "dtype": dtype, "shape": shape}],
            "nodes": [{"name": "a", "op": "cumsum", "inputs": ["x"], "attrs": {"dim": 0}}, *nodes,
                      {"name": "y", "op": "cumsum", "inputs": ["b"], "attrs": {"dim": 0}}], "outputs": ["y"]}


def weight(dtype, *shape):
    return tensor("w", dtype, *shape)


# A model, and the number of buffers of a's size that its workspace has.
IN_PLACE = [
    (between("softmax", [node("b", "softmax", "a", dim=1)], [37, 1024]), 1),
    (between("short_rows", [node("b", "softmax", "a", dim=1)], [4992, 64]), 1),
    (between("short_rows_left_over", [node("b", "softmax", "a", dim=1)], [5001, 64]), 1),
    (between("rows_of_three_lanes", [node("b", "softmax", "a", dim=1)], [432, 24], "bfloat16"), 1),
    (between("rows_of_three_lanes_float32", [node("b", "rms_norm", "a", normalized_shape=[12])], [432, 12]), 1),
    (between("rows_anywhere", [node("b", "softmax", "a", dim=1)], [9, 1001], "float16"), 1),
    (between("long_rows", [node("b", "softmax", "a", dim=1)], [2, 20000]), 1),
    (between("columns", [node("b", "softmax", "a", dim=0)], [300, 70]), 1),
    (between("middle", [node("b", "softmax", "a", dim=1)], [4, 50, 33]), 1),
    (between("norm", [node("b", "rms_norm", "a", "w", normalized_shape=[768])], [11, 768], "bfloat16",
             [weight("bfloat16", 768)]), 1),
    (between("residual_norm", [node("s", "add", "a", "x"),
                               node("b", "layer_norm", "s", "w", normalized_shape=[320])], [21, 320], "float16",
             [weight("float16", 320)]), 1),
    (between("symbolic_rows", [node("b", "softmax", "a", dim=1)], ["n", 256], symbols={"n": {"max": 500, "hint": 13}}), 1),
    (between("transposed_rows", [node("f", "flip", "a", dims=[1]), node("p", "softmax", "a", dim=1),
                             node("b", "mul", "p", "f")], [37, 1024]), 2),
    (between("residual", [node("h", "linear", "x", "w"), node("b", "add", "h", "a")], [64, 64], "bfloat16",
             [weight("bfloat16", 64, 64)]), 1),
    (between("residual_of_odd", [node("h", "linear", "x", "w"), node("b", "add", "h", "a")], [45, 51], "float16",
             [weight("float16", 51, 51)]), 1),
    (between("residual_skinny_gemm", [node("h", "linear", "x", "w"), node("b", "add", "h", "a")], [3, 512], "bfloat16",
             [weight("bfloat16", 512, 512)]), 1),
    (between("residual_float32", [node("h", "linear", "x", "w"), node("b", "add", "h", "a")], [70, 96], "float32",
             [weight("float32", 96, 96)]), 1),
    (between("residual_large", [node("h", "linear", "x", "w"), node("b", "add", "h", "a")], [256, 256], "bfloat16",
             [weight("bfloat16", 256, 256)]), 1),
    (between("factor_and_residual", [node("h", "linear", "a", "w"), node("b", "add", "h", "a")], [64, 64], "bfloat16",
             [weight("bfloat16", 64, 64)]), 2),
]


def update(name, nodes, outputs, aliases=None, constants=(), **inputs):
    given = {"cache": ("float32", [40, 16]), "new": ("float32", [5, 16]), "i": ("int64", [5]), **inputs}
    return {"fusec": 1, "name": "update_" + name, "nodes": nodes, "outputs": outputs, "aliases": aliases or {},
            "constants": list(constants),
            "inputs": [{"name": n, "dtype": d, "shape": s} for n, (d, s) in given.items()]}


# Models that update tensors in place, and their launches. The old value is copied only if that is needed.
UPDATES = [
    (update("cache", [node("c", "index_put", "cache", "new", "i")], ["c"], {"c": "cache"}), 1),
    (update("cache_then_read", [node("c", "index_put", "cache", "new", "i"), node("y", "softmax", "c", dim=1)],
            ["c", "y"], {"c": "cache"}), 2),
    (update("added_twice", [node("c", "index_put", "cache", "new", "i", accumulate=True),
                            node("d", "index_put", "c", "new", "i", accumulate=True)], ["d"], {"d": "cache"}), 2),
    (update("between", [node("a", "cumsum", "cache", dim=0), node("c", "index_put", "a", "new", "i"),
                        node("y", "cumsum", "c", dim=0)], ["y"]), 3),
    (update("into_an_output", [node("a", "cumsum", "cache", dim=0), node("c", "index_put", "a", "new", "i")], ["c"]), 2),
    (update("not_aliased", [node("c", "index_put", "cache", "new", "i")], ["c"]), 2),
    (update("old_is_output", [node("a", "cumsum", "cache", dim=0), node("c", "index_put", "a", "new", "i")],
            ["a", "c"]), 3),
    (update("of_itself", [node("a", "cumsum", "cache", dim=0), node("v", "slice", "a", dim=0, start=0, end=5),
                          node("c", "index_put", "a", "v", "i"), node("y", "cumsum", "c", dim=0)], ["y"]), None),
    (update("weights", [node("a", "cumsum", "w", dim=0), node("c", "index_put", "a", "new", "i"),
                        node("y", "cumsum", "c", dim=0)], ["y"], None, [weight("float32", 40, 16)]), None),
    (update("scatter", [node("a", "cumsum", "cache", dim=0), node("c", "scatter", "a", "at", "new", dim=0),
                        node("y", "cumsum", "c", dim=0)], ["y"], at=("int64", [5, 16])), 3),
]


def written(name, nodes, outputs, aliases, **inputs):
    described = update(name, nodes, outputs, aliases)
    described["inputs"] = [{"name": n, "dtype": "float32", "shape": s} for n, s in inputs.items()]
    return described


# The running mean of a batch, and a result that uses the batch's own mean.
STATISTICS = [node("m", "mean", "x", dim=[0, 2]), node("d", "mul", "old", 0.9), node("e", "mul", "m", 0.1),
              node("new", "add", "d", "e"), node("u", "unsqueeze", "m", dim=1), node("y", "sub", "x", "u")]
# Old and new values, and the new one's sums.
SUMS = [node("new", "add", "old", "x"), node("y", "mul", "old", 2.0)]
# A state whose rows are summed, and the short sums that change it.
STATE = [node("a", "mul", "c", "w"), node("b", "sum", "a", dim=[2]), node("d", "unsqueeze", "b", dim=2),
         node("e", "mul", "x", "d"), node("new", "add", "old", "e"), node("f", "mul", "new", "x"),
         node("y", "sum", "f", dim=[2])]
# Quantized rows with a scale each, both updated in place. Blocks that share rows need a copy of the old scale.
SCALES = [node("s", "mul", "x", "old"), node("t", "abs", "s"), node("new", "amax", "t", dim=[1], keepdim=True),
          node("y", "div", "s", "new")]
# An optimizer step whose step count is a tensor, too. One kernel computes what all parameter tensors need.
STEP = [node("step_new", "add", "step", 1.0), node("a", "pow", 0.9, "step_new"), node("b", "sub", 1.0, "a"),
        node("rate", "div", "lr", "b"), node("c", "mul", "lr", 0.01), node("decay", "sub", 1.0, "c"),
        node("d", "mul", "p", "decay"), node("e", "mul", "g", "rate"), node("p_new", "sub", "d", "e"),
        node("f", "mul", "q", "decay"), node("i", "mul", "h", "rate"), node("q_new", "sub", "f", "i")]
# The new value depends on x only, and another result reads the old value, maybe after the new one is stored.
def before(name, new, x, old):
    nodes = [node("old", "cumsum", "o", dim=0), *new, node("y", "sub", "old", "new"), node("z", "cumsum", "new", dim=0)]
    return written("before_" + name, nodes, ["y", "z"], {}, x=x, o=old), None


SUM = [node("s", "sum", "x", dim=[1], keepdim=True), node("new", "sigmoid", "s")]
# Under full, reduced rows may overwrite the rows themselves or a residual, unless another node reads that operand.
WRITTEN = [
    (written("statistics", STATISTICS, ["new", "y"], {"new": "old"}, x=[4, 8, 36], old=[8]), 1),
    (written("statistics_left_over", STATISTICS, ["y", "new"], {"new": "old"}, x=[2, 37, 25], old=[37]), 1),
    (written("statistics_alone", STATISTICS[:4], ["new"], {"new": "old"}, x=[16, 64, 1], old=[64]), 1),
    (written("statistics_read", STATISTICS[:4] + [node("v", "unsqueeze", "old", dim=1), node("y", "sub", "x", "v")],
             ["new", "y"], {"new": "old"}, x=[4, 8, 36], old=[8]), None),
    (written("columns", SUMS + [node("z", "sum", "new", dim=[0])], ["new", "y", "z"], {"new": "old"}, x=[4, 8],
             old=[4, 8]), 1),
    (written("many_columns", SUMS + [node("z", "sum", "new", dim=[0])], ["new", "y", "z"], {"new": "old"}, x=[1000, 20],
             old=[1000, 20]), 1),
    (written("rows", SUMS + [node("z", "sum", "new", dim=[1])], ["new", "y", "z"], {"new": "old"}, x=[1000, 20],
             old=[1000, 20]), 1),
    (written("beside_other_sums", STATE, ["y", "new"], {"new": "old"}, x=[4, 40, 16], old=[4, 40, 16], c=[4, 40, 3],
             w=[40, 3]), 1),
    (written("scalars", STEP, ["step_new", "p_new", "q_new"], {"step_new": "step", "p_new": "p"}, step=[], lr=[],
             p=[4096], q=[4095], g=[4096], h=[4095]), 2),
    (written("scales", SCALES, ["y", "new"], {"new": "old"}, x=[300, 260], old=[300, 1]), 1),
    (written("scales_of_short_rows", SCALES, ["y", "new"], {"new": "old"}, x=[100, 3], old=[100, 1]), 1),
    (written("scales_read_again", SCALES, ["y", "new"], {"new": "old"}, x=[130, 33001], old=[130, 1]), 1),
    (written("scales_of_long_rows", SCALES, ["y", "new"], {"new": "old"}, x=[2, 40000], old=[2, 1]), None),
    before("rows", SUM, [12, 8], [12, 1]),
    before("columns", SUM, [12, 300, 40], [12, 1, 40]),
    before("long_rows", SUM, [3, 20001], [3, 1]),
    before("elements", [node("new", "sin", "x")], [1027], [1027]),
    before("softmax", [node("new", "softmax", "x", dim=1)], [12, 1027], [12, 1027]),
    (written("long_rows", SUMS + [node("z", "softmax", "new", dim=1)], ["new", "y", "z"], {"new": "old"}, x=[2, 40000],
             old=[2, 40000]), 2),  # several blocks a row, and a launch that clears their counters; no copy
]


def workspace_bytes(run):
    manifest = run.json("manifest")
    sizes = {symbol["name"]: symbol["hint"] for symbol in manifest["symbols"]}
    return eval(manifest["workspace_bytes"], {"__builtins__": {}, "min": min, "max": max}, sizes)  # + - * // % min max


def of_buffers(described, buffers):
    """So many buffers of the size of x are in the workspace."""
    x = described["inputs"][0]
    own = BYTES[x["dtype"]] * element_count(described["symbols"][d]["hint"] if isinstance(d, str) else d for d in x["shape"])
    return Case(described["name"], described, run_options=("--host-part=recorded",), group="in place",
                least={workspace_bytes: (buffers - 1) * own + 1},
                most=RESULTS | {workspace_bytes: buffers * -(-own // ALIGNMENT) * ALIGNMENT})


def of_launches(group, described, launches, strategy):
    return Case(f"{described['name']} {strategy}", described, options=("--strategy=" + strategy,), targets=("sm_80",),
                run_options=("--host-part=recorded",), most=RESULTS, group=f"{group} {strategy}",
                exactly={"launches of the partition": launches})


def cases():
    found = [of_buffers(*row) for row in IN_PLACE]
    found += [of_launches("updates", *row, strategy) for row in UPDATES for strategy in ("full", "none")]
    return found + [of_launches("written", described, launches if strategy == "full" else None, strategy)
                    for described, launches in WRITTEN for strategy in ("full", "none")]
