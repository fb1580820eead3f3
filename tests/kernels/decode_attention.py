"""Attention of few queries over many keys (decoding): grouped heads, caches in 16 bits, int8 and float8, paged caches,
sizes that are no multiple of a tile, causal or not. Demanded are blocks for every multiprocessor twice, bytes in flight
on each, and that keys and values are read once."""
import re

from kernels.case import Case, model, node, tensor

MULTIPROCESSORS = {"sm_80": 108, "sm_90a": 132}
SHARED_BYTES = {"sm_80": 164 * 1024, "sm_90a": 228 * 1024}  # of a multiprocessor
RESERVED_BYTES = 1024                                       # of a block
LEAST_IN_FLIGHT = {"sm_80": 32 * 1024, "sm_90a": 48 * 1024}


def attention(heads, key_heads, keys, head=128, batch=2, queries=1, dtype="bfloat16", codes=None, causal=False):
    inputs, nodes, operands = [tensor("q", dtype, batch, heads, queries, head)], [], ["q"]
    for name in "kv":
        inputs.append(tensor(name, codes or dtype, batch, key_heads, keys, head))
        operands.append(name)
        if codes:
            inputs.append(tensor(name + "s", "float32", batch, key_heads, keys, 1))
            nodes.append(node(name + "d", "dequantize", name, name + "s", dtype=dtype, axis=3, block=head))
            operands[-1] += "d"
    nodes.append(node("y", "scaled_dot_product_attention", *operands, is_causal=causal, enable_gqa=heads != key_heads))
    return model(inputs, nodes)


def paged(heads, key_heads, pages_of_row, page=16, head=128, batch=2, dtype="bfloat16", codes=None):
    """Keys and values lie in pages, which a block table lists for each row of the batch."""
    pages, values = batch * pages_of_row + 3, page * key_heads * head
    inputs, nodes, operands = [tensor("q", dtype, batch, heads, 1, head), tensor("table", "int32", batch, pages_of_row)], [], ["q"]
    for name in "kv":
        inputs.append(tensor(name, codes or dtype, pages, values))
        nodes.append(node(name + "g", "embedding", name, "table"))
        nodes.append(node(name + "h", "reshape", name + "g", shape=[batch, pages_of_row * page, key_heads, head]))
        nodes.append(node(name + "t", "permute", name + "h", dims=[0, 2, 1, 3]))
        operands.append(name + "t")
        if codes:
            inputs.append(tensor(name + "s", "float32", batch, key_heads, pages_of_row * page, 1))
            nodes.append(node(name + "d", "dequantize", name + "t", name + "s", dtype=dtype, axis=3, block=head))
            operands[-1] = name + "d"
    nodes.append(node("y", "scaled_dot_product_attention", *operands, enable_gqa=True))
    return model(inputs, nodes)


def launch_of_attention(run):
    manifest = run.json("manifest")
    kernel = next(k for k in manifest["kernels"] if k["schedule"].startswith("attention"))
    return kernel, next(launch for launch in manifest["launches"] if launch["kernel"] == kernel["name"])


def blocks(run):
    return int(launch_of_attention(run)[1]["grid"][0])


def resident_blocks(run):
    """Blocks of a multiprocessor, as far as the grid and shared memory allow."""
    shared = int(launch_of_attention(run)[1]["dynamic_shared_bytes"]) + RESERVED_BYTES
    return min(-(-blocks(run) // MULTIPROCESSORS[run.target]), SHARED_BYTES[run.target] // shared)


def bytes_in_flight(run):
    """Of a multiprocessor: the copies of a group, as often as groups are in flight when the first one is waited for."""
    ptx = run.text("ptx")
    group = ptx[ptx.index("cp.async.wait_all"):ptx.index("cp.async.commit_group")]
    of_thread = sum(int(size) for size in re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^]]+\], \[[^]]+\], (\d+)", group))
    groups = 1 + int(re.search(r"cp\.async\.wait_group (\d+)", ptx)[1])
    return of_thread * groups * launch_of_attention(run)[0]["block"][0] * resident_blocks(run)


def filling(name, graph, target):
    """Only what is launched is checked: 8 x 32 heads over 8192 keys take long on the emulator."""
    return Case(f"{name}, {target}", graph, targets=(target,), executed=False, group="filling",
                least={blocks: 264, resident_blocks: 2, bytes_in_flight: LEAST_IN_FLIGHT[target]})


def launches_of_layers(run):
    """All layers share counters, which are cleared once."""
    names = [k["name"] for k in run.kernels]
    cleared = [name for name in names if "clear_counters" in name]
    return [] if len(names) == 3 and len(cleared) == 1 else [f"launches: {names}"]


def two_layers():
    inputs = [tensor("q", "float16", 1, 4, 1, 64)]
    for layer, keys in (("1", 700), ("2", 1200)):
        inputs += [tensor(name + layer, "float16", 1, 2, keys, 64) for name in "kv"]
    return model(inputs, [node("x", "scaled_dot_product_attention", "q", "k1", "v1", enable_gqa=True),
                          node("y", "scaled_dot_product_attention", "x", "k2", "v2", enable_gqa=True)])


def cases():
    big = dict(heads=32, key_heads=8, keys=8192, batch=8)
    found = [filling(name, graph, target) for target in MULTIPROCESSORS for name, graph in
             (("8 x 32 heads", attention(**big)), ("8 x 32 heads, int8", attention(**big, codes="int8")),
              ("8 x 32 heads, float8", attention(**big, codes="float8_e4m3fn")))]
    once = {"sectors / least": 1.25, "conflicts": 0, "spilled bytes": 0}
    rows = [("whole tiles", attention(8, 2, 1024), once),
            ("1001 keys", attention(8, 2, 1001), once),
            ("16 heads of one key head", attention(16, 1, 1001), {}),
            ("no groups, float16", attention(3, 3, 777, dtype="float16"), once),
            ("many rows, not split", attention(2, 1, 65, batch=300), once),
            ("few keys", attention(8, 2, 17), {}),
            ("3 queries, heads of 72", attention(6, 2, 1001, head=72, queries=3), {}),
            ("heads of 64, causal", attention(4, 1, 301, head=64, queries=4, causal=True), {}),
            ("heads of 6, few keys", attention(4, 2, 7, head=6, dtype="float16"), {}),
            ("heads of 20", attention(4, 2, 300, head=20), {}),
            ("heads of 256", attention(8, 2, 301, head=256, dtype="float16"), {}),
            ("20 rows", attention(20, 1, 500), {}),
            ("paged", paged(8, 2, 32), once),
            ("paged, heads of 64", paged(4, 1, 21, head=64), {}),
            ("paged, int8", paged(8, 2, 20, codes="int8"), {}),
            ("float32", attention(4, 2, 700, head=64, dtype="float32"), {})]
    for codes in ("int8", "float8_e4m3fn", "float8_e5m2"):
        rows.append((f"{codes}, 1001 keys", attention(8, 2, 1001, codes=codes), {}))
        rows.append((f"{codes}, heads of 72", attention(6, 2, 300, head=72, codes=codes, dtype="float16"), {}))
    found += [Case(name, graph, most=most, inputs="--random", group="numbers") for name, graph, most in rows]
    return found + [Case("two layers", two_layers(), inputs="--random", also=launches_of_layers, group="layers")]
