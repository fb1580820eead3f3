"""The tensor-core GEMM of sm_80: mma from fragments loaded by ldmatrix, filled by 16-byte asynchronous copies, 16-byte
stores of the result, and requested bytes of global memory within 1.1 times what its tiles need. Further forms:

- grouped GEMM with any offsets, operands with a stride along K (column-major), and gathered rows and columns, which are
  not read beyond the last;
- float32 in one pass of tf32 under --allow-tf32 only, and FFMA kernels without spills;
- split-K for long K and few tiles, including quantized operands whose parts begin at scale groups."""
import json
import random
import re
import struct

from kernels.case import RESULTS, TARGETS, Case, tensor
from kernels.gemm_models import (
    ACROSS, DEPTHS, FLOAT8_WITHOUT_SPILLS, GROUPED, IN_LANES, LOOKED_UP, MOST_INSTRUCTIONS, PAIRED, SHARED,
    SYMBOL_OF_ROWS, SYMBOLS, TF32, UNEVEN_BLOCKS, WITHOUT_CONFLICTS, WITHOUT_SPILLS, layer, model, node, paired)
UNSPILLED = RESULTS | {"spilled bytes": 0}
TF32_VERIFIED = "--verify=2e-3,1e-2"


def of_layer(m, n, k, blocks):
    """A linear layer with bias and GELU in bfloat16."""
    def tile(run):
        found = re.search(r"A block makes (\d+)x(\d+)", run.text("cu"))
        return (int(found[1]), int(found[2])) if found else (m, n)

    def executed_blocks(run):
        rows, columns = tile(run)
        return (blocks or -(-m // rows) * -(-n // columns)) * rows * columns

    def needed(run):
        rows, columns = tile(run)
        made = executed_blocks(run)
        # Stored bytes, and read ones of the bias.
        results = m * n * made // (-(-m // rows) * rows * -(-n // columns) * columns) * 2
        return 1.1 * (made // (rows * columns) * (rows + columns) * k * 2 + 2 * results)

    ptx = ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "ldmatrix.sync.aligned.m8n8.x4", "cp.async.cg.shared.global",
           "st.global.v4")
    texts = (("cu", r"A block makes (\d+)x(\d+)", True), *(("ptx", re.escape(text), True) for text in ptx),
             ("ptx", r"st\.global\.(b|u|s)(16|32)|st\.global\.v2", False), ("sass", r"HMMA\.16816\.F32\.BF16", True),
             ("sass", r"STG\.E\.128", True), ("sass", r"STG\.E(\.64)? ", False), ("sass", "STL|LDL", False))
    return Case(f"layer {m}x{n}x{k}", layer(m, n, k), texts=texts, targets=("sm_80",), blocks=blocks, inputs="--random",
                most={"requested bytes": needed}, exactly={"multiply-adds": lambda run: executed_blocks(run) * -(-k // 32) * 32},
                group="layer")


def halves(depth):
    """Random inputs x and w with this K."""
    values = random.Random(depth)

    def elements(count):
        return struct.pack(f"<{count}e", *(values.uniform(-1, 1) for _ in range(count)))

    return {name: ("float16", [rows, depth], elements(rows * depth)) for name, rows in (("x", 72), ("w", 136))}


def split_kernels(run):
    """The split-K kernel, and the kernel that adds the partial sums."""
    return ["_shares" in kernel["name"] for kernel in run.kernels]


def shares():
    for name, (inputs, nodes) in SHARED.items():
        given = [halves(depth) for depth in DEPTHS] if name == "deep_symbol" else ["--random"]
        ways = {"float32": [((), {}), (("--allow-tf32",), {})], "symbols": [((), {}), ((), {"b": 3})]}.get(name, [((), {})])
        for values in given:
            for options, sizes in ways:
                yield Case(f"split-K {name} {' '.join(options)}{sizes or ''}",
                           model(name, inputs, nodes, symbols=SYMBOLS.get(name, {})), inputs=values, options=options, sizes=sizes,
                           targets=TARGETS[1:] if name == "warpgroups" else TARGETS,
                           verify=TF32_VERIFIED if options else "--verify",
                           texts=(("cu", "multiply_warpgroup_", True),) if name == "warpgroups" else (),
                           exactly={split_kernels: [True, False], "launches of a group": 2}, group="split-K")


def groups():
    for name, (inputs, nodes) in GROUPED.items():
        for seed in (1, 2):
            yield Case(f"grouped {name} {seed}", model(name, inputs, nodes), inputs=f"--random={seed}", most=RESULTS, group="grouped",
                       texts=(("cu", "rows_of_tile<", True),))
    # TMA boxes of 64 columns, the last of which extends beyond the result. The last rows of a group store nothing of
    # it, though the columns are a multiple of 64.
    inputs = [tensor("x", "bfloat16", 130, 320), tensor("w", "float4_e2m1fn", 4, 320, 5760),
              tensor("s", "float8_e8m0fnu", 4, 10, 5760), tensor("o", "int32", 4)]
    nodes = [node("d", "dequantize", ["w", "s"], dtype="bfloat16", axis=1, block=32),
             node("p", "grouped_matmul", ["x", "d", "o"]), node("h", "swiglu", ["p"], interleaved=True)]
    yield Case("last columns of groups", model("last_columns", inputs, nodes), most=RESULTS, targets=TARGETS[1:], group="grouped")
    for name, (inputs, nodes) in LOOKED_UP.items():
        symbols, sizes = ({}, {}) if name != "symbol" else (SYMBOL_OF_ROWS, {"m": 32})
        yield Case(f"gathered {name}", model(name, inputs, nodes, symbols=symbols), sizes=sizes, inputs="--random=3", most=RESULTS,
                   group="gathered")


def beside_launches(run):
    return run.beside["launches"]


def pairs():
    for name, form in PAIRED.items():
        beside = Case("", paired(*form, "halves" if form[-1] else "depth"), inputs="--random")
        yield Case(name, paired(*form, "turns"), beside=beside, inputs="--random", group="pairs", exactly={"launches": 1, beside_launches: 1},
                   most={"instructions": lambda run: 1.15 * run.beside["instructions"]})


def across():
    m, n, k = 256, 512, 512
    for codes, (scales, most) in ACROSS.items():
        inputs = [tensor("x", "bfloat16", m, k), tensor("w", codes, k, n), tensor("ws", scales, k // 32, n)]
        nodes = [node("d", "dequantize", ["w", "ws"], dtype="bfloat16", axis=0, block=32), node("h", "matmul", ["x", "d"])]
        yield Case(f"{codes} across", model("across", inputs, nodes), inputs="--random", group="across",
                   most=RESULTS | {"instructions": most * m * n * k / 1000})


def of_blocks(block):
    m, n, k = 128, 128, 480
    inputs = [tensor("x", "bfloat16", m, k), tensor("w", "int4", n, k), tensor("ws", "bfloat16", n, k // block),
              tensor("wz", "int8", n, k // block)]
    nodes = [node("d", "dequantize", ["w", "ws", "wz"], dtype="bfloat16", axis=1, block=block), node("h", "linear", ["x", "d"])]
    case = Case(f"int4 in blocks of {block}", model("blocks", inputs, nodes), inputs="--random", least={"multiply-adds": 1},
                most=UNSPILLED, group="blocks")
    if block != 32:
        case.beside = of_blocks(32)
        case.most = UNSPILLED | {"instructions": lambda run: UNEVEN_BLOCKS[block] * run.beside["instructions"]}
    return case


def one_kernel():
    for name, (inputs, nodes) in WITHOUT_CONFLICTS.items():
        plan = {"fusec_plan": 1, "model": name, "strategy": "full", "max_fused_ops": 256, "max_args": None,
                "groups": [{"name": "whole", "nodes": [n["name"] for n in nodes]}]}
        yield Case(f"one kernel {name}", model(name, inputs, nodes), files={"plan.json": plan}, inputs="--random",
                   options=("--plan={folder}/plan.json",), exactly={"launches": 1}, least={"multiply-adds": 1},
                   most={"instructions": MOST_INSTRUCTIONS.get(name)}, group="one kernel")


def tf32():
    inputs, nodes = TF32
    product = r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.tf32\.tf32\.f32"
    graph = model("tf32", inputs, nodes) | {"outputs": ["y", "q", "r", "o"]}
    yield Case("float32", graph, texts=(("ptx", product, False),), verify="--verify=1e-5,1e-5", most=RESULTS, inputs="--random",
               group="tf32")
    yield Case("tf32", graph, options=("--allow-tf32",), texts=(("ptx", product, True),), verify=TF32_VERIFIED, inputs="--random",
               most={"local bytes": None}, least={"least multiply-adds of a kernel": 1}, group="tf32")
    large = model("large", [tensor("x", "float32", 2048, 2047), tensor("w", "float32", 2048, 2047)],
                  [node("h", "linear", ["x", "w"])])
    yield Case("predicted time of tf32", large, options=("--allow-tf32",), beside=Case("", large), executed=False,
               group="predicted", most={"predicted us of a group": lambda run: run.beside["predicted us of a group"] / 2})


def without_spills():
    for m, n, k, (of_rows, of_columns) in FLOAT8_WITHOUT_SPILLS:
        inputs = [tensor("x", "float8_e4m3fn", m, k), tensor("w", "float8_e4m3fn", n, k), tensor("xs", "float32", of_rows),
                  tensor("ws", "float32", of_columns), tensor("b", "bfloat16", n)]
        nodes = [node("p", "fp8_linear", ["x", "w", "xs", "ws", "b"], out_dtype="bfloat16"), node("h", "silu", ["p"])]
        yield Case(f"float8 {m}x{n}x{k}", model("spills", inputs, nodes), blocks=1, inputs="--random", most=UNSPILLED,
                   group="spills")
    for m, n, k, dtype, lies in WITHOUT_SPILLS:
        right = tensor("w", dtype, *((n, k) if lies == "nk" else (k, n)))
        nodes = [node("p", "linear" if lies == "nk" else "matmul", ["x", "w"]), node("h", "gelu", ["p"])]
        yield Case(f"{dtype} {m}x{n}x{k}", model("spills", [tensor("x", dtype, m, k), right], nodes), inputs="--random",
                   most=UNSPILLED, blocks=1 if m * n * k > 2e8 else 0, verify="", group="spills")  # all blocks with split-K
    for name, (inputs, nodes) in IN_LANES.items():
        yield Case(f"in lanes: {name}", model(name, inputs, nodes), blocks=1, inputs="--random", most=UNSPILLED,
                   exactly={"launches": 1}, group="lanes")


def later_groups(run):
    return run["groups"][1:]


def narrowed():
    """An operand computed for a product is cast to 16 bits where it is written, not where it is read: attention weights
    of heads so large that attention is two products and a softmax."""
    return Case("narrowed", model("narrowed", [tensor(name, "bfloat16", 1, 8, 1024, 320) for name in "qkv"],
                                  [node("h", "scaled_dot_product_attention", list("qkv"))]),
                exactly={later_groups: ["fused_softmax_cast", "matmul"]}, executed=False, group="narrowed")


def cases():
    return [of_layer(300, 2184, 272, 0), of_layer(4096, 4096, 4096, 4), *shares(), *groups(), *pairs(), *across(),
            *map(of_blocks, UNEVEN_BLOCKS), *one_kernel(), *tf32(), *without_spills(), narrowed()]
