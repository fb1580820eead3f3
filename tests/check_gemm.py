#!/usr/bin/env python3
"""check_gemm.py FUSEC FUSEC_RUN [--full | --sample]

The tensor-core GEMM of sm_80, checked on the emulator with a linear layer with bias and GELU in bfloat16: mma from
fragments loaded by ldmatrix, filled by 16-byte asynchronous copies, 16-byte stores of the result, no bank conflict, no
spill, no finding, and requested bytes of global memory within 1.1 times what its tiles need. Further forms:

- grouped GEMM with any offsets, operands with a stride along K (column-major), and gathered rows and columns, which are
  not read beyond the last;
- float32 in one pass of tf32 under --allow-tf32 only, and FFMA kernels without spills;
- split-K for long K and few tiles, including quantized operands whose parts begin at scale groups (five forms, all with
  --full);
- stream-K where tiles are slightly more than whole waves (two forms, all with --full).

--full: 4096 x 4096 x 4096 on a sample of its blocks; else a small product, completely. --sample: only the quickest
checks. If nvdisasm is in PATH, checks HMMA and STG.E.128 in the machine code, too."""
import argparse, itertools, json, os, random, re, shutil, struct, tempfile

from emulated_run import emulated, executed, expect, expect_clean, finish, run
from gemm_models import (
    ACROSS, DEPTHS, FLOAT8_WITHOUT_SPILLS, GROUPED, IN_LANES, LOOKED_UP, MOST_INSTRUCTIONS, PAIRED, SHARED, STREAMED, SYMBOL_OF_ROWS,
    SYMBOLS, TF32, UNEVEN_BLOCKS, WITHOUT_CONFLICTS, WITHOUT_SPILLS, layer, model, node, paired, tensor)


def halves(folder, depth):
    """A file of random inputs x and w with this K."""
    path, values = os.path.join(folder, f"depth{depth}.safetensors"), random.Random(depth)
    header, body = {}, b""
    for name, rows in [("x", 72), ("w", 136)]:
        data = struct.pack(f"<{rows * depth}e", *(values.uniform(-1, 1) for _ in range(rows * depth)))
        header[name] = {"dtype": "F16", "shape": [rows, depth], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    return path


def check_shares(fusec, fusec_run, folder, forms):
    for name in forms:
        inputs, nodes = SHARED[name]
        path = os.path.join(folder, name + ".json")
        json.dump(model(name, inputs, nodes, symbols=SYMBOLS.get(name, {})), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            if name == "warpgroups" and arch == "sm_80":
                continue
            given = ["--inputs=" + halves(folder, depth) for depth in DEPTHS] if name == "deep_symbol" else ["--random"]
            ways = {"float32": [[], ["--allow-tf32"]], "symbols": [[], ["--symbol=b=3"]]}.get(name, [[]])
            for inputs, more in itertools.product(given, ways):
                kernels = emulated(fusec_run, path, "--arch=" + arch, "--verify" + ("=2e-3,1e-2" if "--allow-tf32" in more else ""),
                                   *more, inputs=inputs)
                wanted = [True, False]  # the split-K kernel, and the kernel that adds the partial sums
                expect(["_shares" in k["name"] for k in kernels] == wanted, f"{name} on {arch}: no shares of the depth")
                expect_clean(kernels, f"{name} on {arch}")
                more = [option for option in more if option == "--allow-tf32"]
                report = json.loads(run([fusec, path, "--emit=report", "--no-nvrtc", "--arch=" + arch, *more]))
                expect(report["groups"][0]["launches"] == 2, f"{name} on {arch}: the report has one launch")
        if name == "warpgroups":
            expect("multiply_warpgroup_" in run([fusec, path, "--emit=cu", "--no-nvrtc", "--arch=sm_90a"]),
                   f"{name}: not by warpgroups")


def check_streams(fusec, fusec_run, folder, forms):
    """All stream-K candidates, whether predicted to be the fastest or not, and where stream-K is predicted."""
    device, several = os.path.join(folder, "device.json"), 0
    json.dump({"fusec_target": 1, "arch": "sm_80", "multiprocessors": 5, "launch_seconds": 0}, open(device, "w"))
    for name in forms:
        inputs, nodes = STREAMED[name]
        path, database = os.path.join(folder, "streamed.json"), os.path.join(folder, name + ".db")
        json.dump(model(name, inputs, nodes), open(path, "w"))
        tuned = ["--target=" + device, "--tuning-db=" + database]
        run([fusec_run, path, "--random", "--device=emulator", *tuned, "--tune"])
        content = json.load(open(database))
        ways = [way for way in content["kernels"][0]["microseconds"] if ", the last " in way]
        expect(ways, f"{name}: no way with streamed tiles")
        for way in ways:
            content["kernels"][0]["choice"] = way
            json.dump(content, open(database, "w"))
            kernels = emulated(fusec_run, path, *tuned, "--verify")
            expect(["_streams" in k["name"] for k in kernels] == [True, False], f"{name}, {way}: not streamed")
            expect_clean(kernels, f"{name}, {way}")
            source = run([fusec, path, "--emit=cu", "--no-nvrtc", *tuned])
            several += int(re.search(r"the depth of the last (\d+) is one stream", source)[1]) > 1
    expect(several > 0, "no stretch goes over from one tile to the next")
    # 112 tiles on 108 multiprocessors would be two waves for little more than one. Whether three waves instead of two
    # are worth the extra launch is left to measuring.
    for sizes, wanted in [((1024, 3584, 4096), False), ((512, 1792, 7168), True)]:
        json.dump(layer(*sizes), open(path, "w"))
        source = run([fusec, path, "--emit=cu", "--no-nvrtc", "--arch=sm_80"])
        found = ["TileStreams<" in source, "Of 112 tiles, the depth of the last 4 is one stream" in source]
        expect(found == [wanted] * 2, f"{sizes}: streams, the last of 112 tiles: {found}")
    report = json.loads(run([fusec, path, "--emit=report", "--no-nvrtc", "--arch=sm_80"]))
    expect(report["groups"][0]["launches"] == 2, "streams are reported as one launch")


def check_grouped(fusec, fusec_run, folder):
    for name, (inputs, nodes) in GROUPED.items():
        path = os.path.join(folder, name + ".json")
        json.dump(model(name, inputs, nodes), open(path, "w"))
        source = run([fusec, path, "--emit=cu", "--no-nvrtc"])
        expect("rows_of_tile<" in source, f"{name}: no tiles of rows with one matrix")
        for arch in ["sm_80", "sm_90a"]:
            for seed in ["1", "2"]:
                run([fusec_run, path, f"--random={seed}", "--device=emulator", "--verify", "--arch=" + arch])


def check_last_columns_of_groups(fusec_run, folder):
    """TMA boxes of 64 columns, the last of which extends beyond the result. The last rows of a group store nothing of
    it, though the columns are a multiple of 64."""
    inputs = [tensor("x", "bfloat16", 130, 320), tensor("w", "float4_e2m1fn", 4, 320, 5760),
              tensor("s", "float8_e8m0fnu", 4, 10, 5760), tensor("o", "int32", 4)]
    nodes = [node("d", "dequantize", ["w", "s"], dtype="bfloat16", axis=1, block=32),
             node("p", "grouped_matmul", ["x", "d", "o"]), node("h", "swiglu", ["p"], interleaved=True)]
    path = os.path.join(folder, "last_columns.json")
    json.dump(model("last_columns", inputs, nodes), open(path, "w"))
    run([fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=sm_90a"])


def check_looked_up(fusec_run, folder):
    path = os.path.join(folder, "looked_up.json")
    for name, (inputs, nodes) in LOOKED_UP.items():
        symbols, values = ({}, []) if name != "symbol" else (SYMBOL_OF_ROWS, ["--symbol=m=32"])
        json.dump(model(name, inputs, nodes, symbols=symbols), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            run([fusec_run, path, "--random=3", "--device=emulator", "--verify", "--arch=" + arch] + values)


def check_pairs(fusec_run, folder):
    path = os.path.join(folder, "pairs.json")
    for name, form in PAIRED.items():
        for arch in ["sm_80", "sm_90a"]:
            kernels = []
            for way in ("turns", "halves" if form[-1] else "depth"):
                json.dump(paired(*form, way), open(path, "w"))
                kernels.append(emulated(fusec_run, path, "--arch=" + arch, "--verify"))
            expect([len(k) for k in kernels] == [1, 1], f"{name} on {arch}: {len(kernels[0])} kernels")
            taken, known = executed(kernels[0]), executed(kernels[1])
            expect(taken <= 1.15 * known, f"{name} on {arch}: {taken} instructions, {known} beside it")
            expect_clean(kernels[0], f"{name} on {arch}")


def check_across(fusec_run, folder):
    m, n, k = 256, 512, 512
    path = os.path.join(folder, "across.json")
    for codes, (scales, most) in ACROSS.items():
        inputs = [tensor("x", "bfloat16", m, k), tensor("w", codes, k, n), tensor("ws", scales, k // 32, n)]
        nodes = [node("d", "dequantize", ["w", "ws"], dtype="bfloat16", axis=0, block=32), node("h", "matmul", ["x", "d"])]
        json.dump(model("across", inputs, nodes), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            kernels = emulated(fusec_run, path, "--arch=" + arch, "--verify")
            taken = 1000 * executed(kernels) / (m * n * k)
            expect(taken <= most, f"{codes} across on {arch}: {taken:.2f} instructions for a thousand multiply-adds")


def check_uneven_blocks(fusec_run, folder):
    m, n, k = 128, 128, 480
    path = os.path.join(folder, "blocks.json")

    def taken(block, arch):
        inputs = [tensor("x", "bfloat16", m, k), tensor("w", "int4", n, k), tensor("ws", "bfloat16", n, k // block),
                  tensor("wz", "int8", n, k // block)]
        nodes = [node("d", "dequantize", ["w", "ws", "wz"], dtype="bfloat16", axis=1, block=block),
                 node("h", "linear", ["x", "d"])]
        json.dump(model("blocks", inputs, nodes), open(path, "w"))
        kernels = emulated(fusec_run, path, "--arch=" + arch, "--verify")
        expect(sum(k["tensor_multiply_adds"] for k in kernels) > 0, f"blocks of {block} on {arch}: not on tensor cores")
        expect(all(k["resources"]["spill_bytes"] == 0 for k in kernels), f"blocks of {block} on {arch}: spills")
        return executed(kernels)

    for arch in ["sm_80", "sm_90a"]:
        even = taken(32, arch)
        for block, most in UNEVEN_BLOCKS.items():
            ratio = taken(block, arch) / even
            expect(ratio <= most, f"blocks of {block} on {arch}: {ratio:.2f} times the instructions of blocks of 32")


def check_no_conflicts(fusec_run, folder):
    for name, (inputs, nodes) in WITHOUT_CONFLICTS.items():
        path = os.path.join(folder, name + ".json")
        json.dump(model(name, inputs, nodes), open(path, "w"))
        plan = os.path.join(folder, name + ".plan")
        json.dump({"fusec_plan": 1, "model": name, "strategy": "full", "max_fused_ops": 256, "max_args": None,
                   "groups": [{"name": "whole", "nodes": [n["name"] for n in nodes]}]}, open(plan, "w"))
        for arch in ["sm_80", "sm_90a"]:
            kernels = emulated(fusec_run, path, "--arch=" + arch, "--verify", "--plan=" + plan)
            expect(len(kernels) == 1, f"{name} on {arch}: {len(kernels)} kernels")
            expect(all(k["tensor_multiply_adds"] > 0 for k in kernels), f"{name} on {arch}: not on tensor cores")
            taken = executed(kernels)
            expect(taken <= MOST_INSTRUCTIONS.get(name, taken), f"{name} on {arch}: {taken} instructions")
            expect_clean(kernels, f"{name} on {arch}")


def check_tf32(fusec, fusec_run, folder):
    inputs, nodes = TF32
    path, ptx = os.path.join(folder, "tf32.json"), os.path.join(folder, "tf32.ptx")
    json.dump(model("tf32", inputs, nodes) | {"outputs": ["y", "q", "r", "o"]}, open(path, "w"))
    for arch in ["sm_80", "sm_90a"]:
        for allowed in [[], ["--allow-tf32"]]:
            run([fusec, path, "-o", ptx, "--arch=" + arch, *allowed])
            used = open(ptx).read().count("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") > 0
            expect(used == bool(allowed), f"tf32 on {arch} with {allowed}: {used}")
        for verified, allowed in [("1e-5,1e-5", []), ("2e-3,1e-2", ["--allow-tf32"])]:
            kernels = emulated(fusec_run, path, "--arch=" + arch, "--verify=" + verified, *allowed)
            for kernel in kernels if allowed else []:
                expect(kernel["tensor_multiply_adds"] > 0, f"{kernel['name']} on {arch}: not on tensor cores")
                expect(kernel["bank_conflicts"] == 0, f"{kernel['name']} on {arch}: bank conflicts")
        large = model("large", [tensor("x", "float32", 2048, 2047), tensor("w", "float32", 2048, 2047)],
                      [node("h", "linear", ["x", "w"])])
        json.dump(large, open(os.path.join(folder, "large.json"), "w"))
        times = [json.loads(run([fusec, os.path.join(folder, "large.json"), "--no-nvrtc", "--emit=report", "--arch=" + arch,
                                 *more]))["groups"][0]["predicted_us"] for more in ([], ["--allow-tf32"])]
        expect(times[1] < times[0] / 2, f"tf32 on {arch}: predicted {times[1]} us, without it {times[0]}")


def check_spills(fusec_run, folder):
    path = os.path.join(folder, "spills.json")
    for m, n, k, (of_rows, of_columns) in FLOAT8_WITHOUT_SPILLS:
        inputs = [tensor("x", "float8_e4m3fn", m, k), tensor("w", "float8_e4m3fn", n, k), tensor("xs", "float32", of_rows),
                  tensor("ws", "float32", of_columns), tensor("b", "bfloat16", n)]
        nodes = [node("p", "fp8_linear", ["x", "w", "xs", "ws", "b"], out_dtype="bfloat16"), node("h", "silu", ["p"])]
        json.dump(model("spills", inputs, nodes), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            kernels = emulated(fusec_run, path, "--arch=" + arch, "--sample-blocks=1")
            spilled = [kernel["resources"]["spill_bytes"] for kernel in kernels]
            expect(not any(spilled), f"float8 {m}x{n}x{k} on {arch}: bytes spilled by its kernels: {spilled}")
    for m, n, k, dtype, lies in WITHOUT_SPILLS:
        right = tensor("w", dtype, n, k) if lies == "nk" else tensor("w", dtype, k, n)
        nodes = [node("p", "linear" if lies == "nk" else "matmul", ["x", "w"]), node("h", "gelu", ["p"])]
        json.dump(model("spills", [tensor("x", dtype, m, k), right], nodes), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            sample = ["--sample-blocks=1"] if m * n * k > 2e8 else []  # not with split-K
            kernels = emulated(fusec_run, path, "--arch=" + arch, *sample)
            spilled = [kernel["resources"]["spill_bytes"] for kernel in kernels]
            expect(not any(spilled), f"{m}x{n}x{k} {dtype} on {arch}: bytes spilled by its kernels: {spilled}")


def check_lanes(fusec_run, folder):
    path = os.path.join(folder, "lanes.json")
    for name, (inputs, nodes) in IN_LANES.items():
        json.dump(model(name, inputs, nodes), open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            kernels = emulated(fusec_run, path, "--arch=" + arch, "--sample-blocks=1")
            spilled = [kernel["resources"]["spill_bytes"] for kernel in kernels]
            expect(spilled == [0], f"{name} in lanes on {arch}: bytes spilled by its kernels: {spilled}")


def check_narrowed(fusec, folder):
    """An operand computed for a product is cast to 16 bits where it is written, not where it is read: attention weights
    of heads so large that attention is two products and a softmax."""
    path, report = os.path.join(folder, "narrowed.json"), os.path.join(folder, "report.json")
    json.dump(model("narrowed", [tensor(name, "bfloat16", 1, 8, 1024, 320) for name in "qkv"],
                    [node("h", "scaled_dot_product_attention", list("qkv"))]), open(path, "w"))
    for arch in ["sm_80", "sm_90a"]:
        run([fusec, path, "--no-nvrtc", "--emit=report=" + report, "-o", os.path.join(folder, "narrowed.cu"), "--arch=" + arch])
        groups = [g["name"] for g in json.load(open(report))["groups"]]
        expect(groups[1:] == ["fused_softmax_cast", "matmul"], f"narrowed on {arch}: {groups}")


def check_layer(options, folder):
    m, n, k = (4096, 4096, 4096) if options.full else (300, 2184, 272)
    path = lambda name: os.path.join(folder, name)
    json.dump(layer(m, n, k), open(path("layer.json"), "w"))
    run([options.fusec, path("layer.json"), "-o", path("layer.cu")])
    run([options.fusec, path("layer.json"), "-o", path("layer.ptx")])
    run([options.fusec, path("layer.json"), "-o", path("layer.cubin")])
    source, ptx = open(path("layer.cu")).read(), open(path("layer.ptx")).read()
    tile = re.search(r"A block makes (\d+)x(\d+)", source)
    expect(tile, "the kernel is no gemm")
    if not tile:
        return
    rows, columns = int(tile[1]), int(tile[2])
    for wanted in ["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "ldmatrix.sync.aligned.m8n8.x4",
                   "cp.async.cg.shared.global", "st.global.v4"]:
        expect(wanted in ptx, f"no {wanted} in the PTX")
    expect(not re.search(r"st\.global\.(b|u|s)(16|32)|st\.global\.v2", ptx), "stores of less than 16 bytes")
    sample = ["--sample-blocks=4"] if options.full else ["--verify"]
    kernels = emulated(options.fusec_run, path("layer.json"), *sample)
    expect_clean(kernels, "layer")
    if not kernels:
        return
    profile = kernels[0]
    down, across = -(-m // rows), -(-n // columns)
    blocks = 4 if options.full else down * across
    depth = -(-k // 32) * 32
    expect(profile["tensor_multiply_adds"] == blocks * rows * columns * depth, "products that nobody needs")
    results = m * n * blocks // (down * across) * 2  # bytes stored, and bytes of the bias that are read
    needed = blocks * (rows + columns) * k * 2 + 2 * results
    expect(profile["requested_bytes"] <= 1.1 * needed,
           f"{profile['requested_bytes']} bytes of global memory, {needed} needed")
    disassembler = shutil.which("nvdisasm")
    if disassembler:
        code = run([disassembler, path("layer.cubin")])
        expect("HMMA.16816.F32.BF16" in code, "no HMMA in the machine code")
        expect("STG.E.128" in code and not re.search(r"STG\.E(\.64)? ", code), "narrow stores in the machine code")
        expect("STL" not in code and "LDL" not in code, "local memory in the machine code")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sample", action="store_true")
    options = parser.parse_args()
    fusec, fusec_run = options.fusec, options.fusec_run
    with tempfile.TemporaryDirectory() as folder:
        check_layer(options, folder)
        check_looked_up(fusec_run, folder)
        check_tf32(fusec, fusec_run, folder)
        check_lanes(fusec_run, folder)
        check_spills(fusec_run, folder)
        check_narrowed(fusec, folder)
        if options.sample:
            check_shares(fusec, fusec_run, folder, ["float32"])
            check_streams(fusec, fusec_run, folder, ["zero_point"])
            return
        check_shares(fusec, fusec_run, folder,
                     SHARED if options.full else ["layer", "symbols", "float32", "groups", "deep_symbol"])
        check_streams(fusec, fusec_run, folder, STREAMED if options.full else ["layer", "zero_point"])
        check_grouped(fusec, fusec_run, folder)
        check_last_columns_of_groups(fusec_run, folder)
        check_no_conflicts(fusec_run, folder)
        check_pairs(fusec_run, folder)
        check_across(fusec_run, folder)
        check_uneven_blocks(fusec_run, folder)


main()
finish()
