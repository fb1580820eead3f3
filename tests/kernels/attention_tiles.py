"""Attention by warps, on a device of few multiprocessors so that tiles are large: quantized keys and values with one scale
or one a key, float32, heads whose rows are no multiple of 128 bytes, sizes that are no multiple of a tile, causal or
not, with a gate or quantization as epilogue. On both targets: operands stored transposed, code that is too long to
unroll (masks of positions, caps, slopes, weights as an output), and windows that skip most tiles of keys. Demanded are
few instructions per multiply-add."""
from kernels import case
from kernels.attention_models import MUCH_CODE, MUCH_CODE_OF_SHARED_KEYS, SEEN, much_code, windowed
from kernels.case import FEW_MULTIPROCESSORS, RESULTS, Case, model, node


def tensor(name, *shape, dtype="bfloat16"):
    return case.tensor(name, dtype, *shape)


def attention(head, queries, keys, codes=None, one_scale=False, causal=False, behind="", dtype="bfloat16",
              query_codes=False):
    inputs, nodes, factors = [], [], []
    if not query_codes:
        inputs, factors = [tensor("q", 1, 2, queries, head, dtype=dtype)], ["q"]
    for name in "qkv" if query_codes else "kv":
        inputs.append(tensor(name, 1, 2, queries if name == "q" else keys, head, dtype=codes or dtype))
        if codes:
            inputs.append(tensor(name + "s", *([1] if one_scale else [*inputs[-1]["shape"][:3], 1]), dtype="float32"))
            block = {} if one_scale else {"axis": 3, "block": head}
            nodes.append(node(name + "d", "dequantize", name, name + "s", dtype=dtype, **block))
        factors.append(name + "d" if codes else name)
    nodes.append(node("y", "scaled_dot_product_attention", *factors, is_causal=causal))
    if behind == "gate":
        inputs.append(tensor("r", 1, 2, queries, head, dtype=dtype))
        nodes += [node("s", "sigmoid", "r"), node("z", "mul", "y", "s")]
    elif behind == "codes":
        inputs.append(tensor("scale", 1, dtype="float32"))
        nodes.append(node("z", "quantize", "y", "scale", dtype="float8_e4m3fn"))
    return model(inputs, nodes, ["z" if behind else "y"])


def tiles():
    """Name, model, and the most instructions per thousand multiply-adds (0: not checked)."""
    for head, limit in ((40, 10.6), (72, 7.7), (80, 6.6), (88, 7.2), (96, 6.3), (104, 6.7)):
        for codes in ("int8", "int4"):
            yield f"{codes}, heads of {head}", attention(head, 200, 200, codes), limit
    for head, limit in ((40, 114), (44, 114), (72, 103), (84, 98), (100, 97)):
        yield f"float32, heads of {head}", attention(head, 100, 100, dtype="float32"), limit
    for codes in ("int8", "int4", "float8_e4m3fn"):
        for causal in (False, True):
            for keys in (256, 257):
                yield (f"{codes} with one scale, {keys} keys, causal {causal}",
                       attention(128, keys, keys, codes, True, causal), 0)
    for causal in (False, True):
        yield (f"all in float8 with one scale, causal {causal}",
               attention(128, 257, 257, "float8_e4m3fn", True, causal, query_codes=True), 0)
    for behind in ("gate", "codes"):
        for head in (40, 72, 80):
            yield f"{behind} behind int8, heads of {head}", attention(head, 131, 129, "int8", behind=behind), 0
        yield f"{behind} behind int8, heads of 128", attention(128, 257, 129, "int8", behind=behind), 0
        yield f"{behind} behind, heads of 128", attention(128, 257, 129, behind=behind), 0
    for head, queries, keys in ((72, 77, 93), (80, 77, 93), (80, 300, 300), (96, 65, 131), (128, 8, 8), (128, 2, 2), (192, 8, 5)):
        yield f"heads of {head}, {queries} x {keys}", attention(head, queries, keys), 0


def turned(which, head, queries, keys, dtype, added=False):
    """Queries, keys or values stored transposed, [1, 2, head, length], as in image models and key caches."""
    inputs, nodes, factors = [], [], []
    for name, length in (("q", queries), ("k", keys), ("v", keys)):
        across = name in which
        inputs.append(tensor(name, 1, 2, *((head, length) if across else (length, head)), dtype=dtype))
        if across:
            nodes.append(node(name + "t", "transpose", name, dim0=2, dim1=3))
        factors.append(name + "t" if across else name)
    if added:
        inputs.append(tensor("mask", queries, keys, dtype=dtype))
    nodes.append(node("y", "scaled_dot_product_attention", *factors, *(["mask"] if added else []), is_causal=False))
    return model(inputs, nodes, ["y"])


TURNED = [("k", 64, 64, 128, "float16"), ("v", 64, 64, 128, "bfloat16"), ("q", 64, 130, 64, "float16"),
          ("qkv", 128, 131, 129, "bfloat16"), ("kv", 80, 65, 200, "float16", True), ("k", 40, 33, 77, "float32")]


def of_tiles(name, graph, limit):
    queries, head = graph["inputs"][0]["shape"][2:]
    keys = next(t["shape"][2] for t in graph["inputs"] if t["name"] == "k")
    return Case(name, graph, targets=("sm_80",), chip=FEW_MULTIPROCESSORS, inputs="--random", group="tiles",
                most={"instructions": limit * (2 * 2 * queries * keys * head) / 1000} if limit else {})


def of_window(seen, dtype, head, target):
    """With a window and with one that excludes no key. Uses symbols, because a mask of few known positions would become
    a constant."""
    size = 259

    def seeing(window, **more):
        graph = windowed(seen, dtype, "Q", "K", head, window, cap=head == 64, heads=1, key_heads=1)
        graph["symbols"] = {name: {"max": 4096, "hint": size} for name in "QK"}
        return Case(f"window, {seen}, {dtype}, heads of {head}", graph, targets=(target,), sizes={"Q": size, "K": size},
                    inputs="--random", group="windows", **more)

    few_tiles = head == 128 and target == "sm_90a"  # tiles of 128 rows and 128 keys
    if seen == "far before" or few_tiles:
        return seeing(20, most=RESULTS)
    return seeing(20, beside=seeing(4 * size), most=RESULTS | {"instructions": lambda run: 0.95 * run.beside["instructions"]})


def cases():
    found = [of_tiles(*row) for row in tiles()]
    found += [Case(f"turned {parts}", turned(*parts), most=RESULTS, inputs="--random", group="turned") for parts in TURNED]
    sizes = [(name, queries, 129) for name in MUCH_CODE for queries in (65, 131)]
    sizes += [(name, 65, 512) for name in MUCH_CODE_OF_SHARED_KEYS]
    found += [Case(f"{name}, {queries} queries, {keys} keys", much_code(queries=queries, keys=keys, **MUCH_CODE[name]),
                   most=RESULTS | {"spilled bytes": 0}, inputs="--random", group="much code") for name, queries, keys in sizes]
    return found + [of_window(seen, *row) for seen in SEEN for row in
                    (("bfloat16", 128, "sm_80"), ("bfloat16", 128, "sm_90a"), ("float16", 64, "sm_80"), ("float16", 64, "sm_90a"),
                     ("float32", 32, "sm_80"))]
