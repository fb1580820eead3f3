#!/usr/bin/env python3
"""check_gemm.py FUSEC FUSEC_RUN [--full]

What the tensor-core GEMM has to show without a GPU, on a linear layer with bias and GELU in bfloat16: products by mma
from fragments that ldmatrix loads, filled by 16-byte asynchronous copies, 16-byte stores of the result; no bank
conflict, no spill, no finding on the emulator; bytes asked of global memory within 1.1 times what its tiles need.
Products whose rows choose their matrices in groups are right, whatever the offsets, and rows that lie across memory go
to the same pipeline; of looked-up rows and columns nothing is looked up beyond the last, in tiles that are copied by
some of a block's threads. Those of float32 are in one pass of tf32 under --allow-tf32 and nowhere else, and spill
nothing in lanes. Long depths of few tiles are shared out, and the shares added up by a kernel more: of whatever is
multiplied, shares of codes beginning where their groups do; of these forms five, all with --full. Where tiles are some
more than whole waves, the last ones are streamed: two of such forms, all with --full.
--full: 4096 x 4096 x 4096 on a sample of its blocks; else a small one, whole. Where nvdisasm is in PATH, HMMA and
STG.E.128 are looked for in the machine code, too."""
import argparse, json, os, random, re, shutil, struct, subprocess, sys, tempfile


def model(m, n, k):
    return {"fusec": 1, "name": "layer",
            "inputs": [{"name": "x", "dtype": "bfloat16", "shape": [m, k]}],
            "constants": [{"name": "w", "dtype": "bfloat16", "shape": [n, k]},
                          {"name": "bias", "dtype": "bfloat16", "shape": [n]}],
            "nodes": [{"name": "p", "op": "linear", "inputs": ["x", "w", "bias"]},
                      {"name": "h", "op": "gelu", "inputs": ["p"]}], "outputs": ["h"]}


def tensor(name, dtype, *shape):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def node(name, op, inputs, **attributes):
    return {"name": name, "op": op, "inputs": inputs, "attrs": attributes}


# Rows in groups, each with a matrix of its own, whose offsets --random makes come in any order and beyond the rows.
GROUPED = {
    "gathered_gated": (
        [tensor("x", "bfloat16", 40, 72), tensor("t", "int64", 75), tensor("a", "bfloat16", 5, 72, 104),
         tensor("b", "bfloat16", 5, 72, 104), tensor("o", "int32", 5)],
        [node("p", "index_select", ["x", "t"], dim=0), node("g", "grouped_matmul", ["p", "a", "o"]),
         node("s", "silu", ["g"]), node("u", "grouped_matmul", ["p", "b", "o"]), node("h", "mul", ["s", "u"])]),
    "biased": (
        [tensor("x", "float32", 75, 40), tensor("a", "float32", 3, 40, 72), tensor("o", "int64", 3),
         tensor("b", "float32", 3, 72)],
        [node("h", "grouped_matmul", ["x", "a", "o", "b"])]),
    "narrow_weights": (
        [tensor("x", "float16", 75, 40), tensor("w", "float8_e4m3fn", 4, 40, 72), tensor("s", "float16", 4, 1, 72),
         tensor("o", "int32", 4)],
        [node("c", "cast", ["w"], dtype="float16"), node("a", "mul", ["c", "s"]),
         node("h", "grouped_matmul", ["x", "a", "o"])]),
    "narrow_rows": (
        [tensor("x", "float8_e4m3fn", 77, 128), tensor("xs", "bfloat16", 77, 1), tensor("w", "float8_e4m3fn", 5, 72, 128),
         tensor("s", "float32", 5, 72, 1), tensor("o", "int32", 5)],
        [node("c", "cast", ["x"], dtype="bfloat16"), node("a", "mul", ["c", "xs"]),
         node("d", "dequantize", ["w", "s"], dtype="bfloat16", axis=2, block=128),
         node("b", "transpose", ["d"], dim0=1, dim1=2), node("h", "grouped_matmul", ["a", "b", "o"])]),
    "scaled": (
        [tensor("x", "float8_e4m3fn", 277, 128), tensor("xs", "float32", 277), tensor("w", "float8_e4m3fn", 5, 72, 128),
         tensor("s", "float32", 5, 72, 1), tensor("o", "int32", 5)],
        [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=0),
         node("d", "dequantize", ["w", "s"], dtype="float32", axis=2, block=128),
         node("b", "transpose", ["d"], dim0=1, dim1=2), node("h", "grouped_matmul", ["a", "b", "o"])]),
    # What lies across the rows is copied in pieces of several, though groups begin at any row.
    "turned": (
        [tensor("x", "float16", 64, 152), tensor("a", "float16", 5, 64, 72), tensor("o", "int32", 5)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("h", "grouped_matmul", ["t", "a", "o"])]),
    "turned_float32": (
        [tensor("x", "float32", 40, 136), tensor("a", "float32", 3, 40, 72), tensor("o", "int64", 3)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("h", "grouped_matmul", ["t", "a", "o"])]),
    "turned_codes": (
        [tensor("x", "int8", 64, 152), tensor("s", "float16", 152), tensor("r", "float16", 152, 72),
         tensor("a", "float16", 5, 64, 72), tensor("o", "int32", 5)],
        [node("d", "dequantize", ["x", "s"], dtype="float16", axis=1),
         node("t", "transpose", ["d"], dim0=0, dim1=1), node("g", "grouped_matmul", ["t", "a", "o"]),
         node("h", "add", ["g", "r"])]),
    "turned_gated": (
        [tensor("x", "bfloat16", 136, 704), tensor("a", "bfloat16", 5, 136, 264), tensor("b", "bfloat16", 5, 136, 264),
         tensor("o", "int32", 5)],
        [node("t", "transpose", ["x"], dim0=0, dim1=1), node("g", "grouped_matmul", ["t", "a", "o"]),
         node("s", "silu", ["g"]), node("u", "grouped_matmul", ["t", "b", "o"]), node("h", "mul", ["s", "u"])])}


# Rows, or columns, that are looked up, of tiles with fewer lines than the block's threads copy at a time: whole tiles, so
# that nothing beyond the last line needs to be held back but those threads that have none.
LOOKED_UP = {
    "norm": ([tensor("t", "bfloat16", 9, 16), tensor("i", "int64", 16), tensor("w", "bfloat16", 64, 16)],
             [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
              node("h", "rms_norm", ["p"], normalized_shape=[64])]),
    "softmax": ([tensor("t", "float16", 9, 136), tensor("i", "int32", 96), tensor("w", "float16", 128, 136),
                 tensor("r", "float16", 96, 128)],
                [node("e", "index_select", ["t", "i"], dim=0), node("p", "linear", ["e", "w"]),
                 node("s", "add", ["p", "r"]), node("h", "softmax", ["s"], dim=-1)]),
    "float32": ([tensor("t", "float32", 9, 64), tensor("i", "int32", 32), tensor("w", "float32", 128, 64)],
                [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
                 node("h", "layer_norm", ["p"], normalized_shape=[128])]),
    "scaled": ([tensor("t", "bfloat16", 9, 32), tensor("i", "int64", 64), tensor("u", "bfloat16", 7, 1),
                tensor("j", "int64", 64), tensor("w", "bfloat16", 64, 32)],
               [node("e", "embedding", ["t", "i"]), node("f", "embedding", ["u", "j"]), node("x", "mul", ["e", "f"]),
                node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p"], normalized_shape=[64])]),
    "gathered": ([tensor("t", "float32", 9, 32), tensor("i", "int64", 16), tensor("v", "float32", 9, 1),
                  tensor("m", "int64", 16), tensor("u", "float32", 9, 32), tensor("j", "int64", 64)],
                 [node("e", "embedding", ["t", "i"]), node("f", "embedding", ["v", "m"]), node("a", "mul", ["e", "f"]),
                  node("k", "unsqueeze", ["j"], dim=1), node("l", "expand", ["k"], shape=[64, 32]),
                  node("b", "gather", ["u", "l"], dim=0), node("h", "linear", ["a", "b"])]),
    "one_expert": ([tensor("t", "float16", 73, 136), tensor("i", "int32", 64), tensor("w", "float16", 1, 136, 128),
                    tensor("o", "int32", 1)],
                   [node("e", "embedding", ["t", "i"]), node("p", "grouped_matmul", ["e", "w", "o"]),
                    node("h", "rms_norm", ["p"], normalized_shape=[128])]),
    "symbol": ([tensor("t", "bfloat16", 9, 64), tensor("i", "int32", "m"), tensor("w", "bfloat16", 96, 64)],
               [node("e", "embedding", ["t", "i"]), node("p", "linear", ["e", "w"]),
                node("h", "softmax", ["p"], dim=-1)])}
SYMBOL_OF_ROWS = {"m": {"multiple_of": 32, "max": 4096, "hint": 64}}

# Products that may be one pass of tf32: factors along the depth and across it, sizes that are multiples of no tile.
TF32 = (
    [tensor("x", "float32", 200, 136), tensor("z", "float32", 136, 200), tensor("w", "float32", 264, 136),
     tensor("v", "float32", 136, 260), tensor("b", "float32", 264), tensor("g", "float32", 2, 136, 64)],
    [node("p", "linear", ["x", "w", "b"]), node("y", "gelu", ["p"]), node("q", "matmul", ["x", "v"]),
     node("t", "transpose", ["z"], dim0=0, dim1=1), node("r", "matmul", ["t", "v"]), node("o", "matmul", ["x", "g"])])

# Few tiles and a long depth, which several blocks share: sizes that are multiples of no tile.
SHARED = {
    "layer": ([tensor("x", "bfloat16", 72, 4104), tensor("w", "bfloat16", 136, 4104), tensor("b", "bfloat16", 136),
               tensor("r", "bfloat16", 72, 136)],
              [node("p", "linear", ["x", "w", "b"]), node("g", "gelu", ["p"]), node("h", "add", ["g", "r"])]),
    "odd_results": ([tensor("x", "float16", 75, 4104), tensor("w", "float16", 131, 4104)],
                    [node("p", "linear", ["x", "w"]), node("h", "silu", ["p"])]),
    "batch": ([tensor("x", "float16", 2, 70, 4104), tensor("w", "float16", 2, 4104, 72)],
              [node("p", "matmul", ["x", "w"]), node("h", "tanh", ["p"])]),
    "symbols": ([tensor("x", "float16", "b", 40, 4104), tensor("w", "float16", "b", 4104, 72)],
                [node("h", "matmul", ["x", "w"])]),
    "gated": ([tensor("x", "bfloat16", 72, 4104), tensor("a", "bfloat16", 72, 4104), tensor("b", "bfloat16", 72, 4104)],
              [node("p", "linear", ["x", "a"]), node("q", "linear", ["x", "b"]), node("s", "silu", ["p"]),
               node("h", "mul", ["s", "q"])]),
    "warpgroups": ([tensor("x", "bfloat16", 200, 8200), tensor("w", "bfloat16", 200, 8200)],
                   [node("p", "linear", ["x", "w"]), node("h", "relu", ["p"])]),
    "float8": ([tensor("x", "float8_e4m3fn", 72, 8208), tensor("w", "float8_e4m3fn", 136, 8208)],
               [node("f", "cast", ["x"], dtype="float32"), node("g", "cast", ["w"], dtype="float32"),
                node("h", "linear", ["f", "g"])]),
    "float32": ([tensor("x", "float32", 40, 2052), tensor("w", "float32", 68, 2052), tensor("b", "float32", 68)],
                [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "computed": ([tensor("a", "bfloat16", 40, 4104), tensor("b", "bfloat16", 40, 4104), tensor("w", "bfloat16", 136, 4104)],
                 [node("s", "silu", ["a"]), node("x", "mul", ["s", "b"]), node("h", "linear", ["x", "w"])]),
    "odd_depth": ([tensor("x", "bfloat16", 40, 4099), tensor("w", "bfloat16", 72, 4099), tensor("b", "bfloat16", 72)],
                  [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "deep_symbol": ([tensor("x", "float16", 72, "k"), tensor("w", "float16", 136, "k")],
                    [node("p", "linear", ["x", "w"]), node("h", "relu", ["p"])]),
    # Codes, their scales of columns, of groups, of blocks of both factors; zero points.
    "codes": ([tensor("x", "bfloat16", 40, 4104), tensor("c", "int8", 136, 4104), tensor("s", "bfloat16", 136),
               tensor("r", "bfloat16", 40, 136)],
              [node("w", "dequantize", ["c", "s"], dtype="bfloat16", axis=0), node("p", "linear", ["x", "w"]),
               node("g", "gelu", ["p"]), node("h", "add", ["g", "r"])]),
    "groups": ([tensor("x", "float16", 60, 4224), tensor("c", "int4", 72, 4224), tensor("s", "float32", 72, 33),
                tensor("b", "float32", 72)],
               [node("w", "dequantize", ["c", "s"], dtype="float32", axis=1, block=128),
                node("f", "cast", ["x"], dtype="float32"), node("p", "linear", ["f", "w", "b"]),
                node("k", "silu", ["p"]), node("h", "cast", ["k"], dtype="float16")]),
    "groups_of_16": ([tensor("x", "int8", 65, 4128), tensor("w", "int4", 40, 4128), tensor("ws", "float32", 40, 258),
                      tensor("wo", "int8", 40, 258), tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", "wo", "xs", "xo"], group_size=16,
                           out_dtype="float16")]),
    "zero_point": ([tensor("x", "int8", 60, 8208), tensor("w", "int8", 40, 8208), tensor("ws", "float32", 40),
                    tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                   [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "float4": ([tensor("x", "bfloat16", 50, 4128), tensor("c", "float4_e2m1fn", 72, 4128),
                tensor("s", "float8_e8m0fnu", 72, 129)],
               [node("p", "mxfp4_linear", ["x", "c", "s"], out_dtype="bfloat16"), node("h", "relu", ["p"])]),
    "both_float4": ([tensor("x", "float8_e4m3fn", 50, 4128), tensor("t", "float8_e8m0fnu", 50, 129),
                     tensor("c", "float4_e2m1fn", 72, 4128), tensor("s", "float8_e8m0fnu", 72, 129),
                     tensor("b", "float32", 72)],
                    [node("h", "mxfp4_linear", ["x", "c", "s", "b", "t"], out_dtype="float32")]),
    "row_scales": ([tensor("x", "float8_e4m3fn", 72, 8208), tensor("w", "float8_e4m3fn", 136, 8208),
                    tensor("xs", "float32", 72), tensor("ws", "float32", 136)],
                   [node("p", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="bfloat16"), node("h", "silu", ["p"])]),
    "block_scales": ([tensor("x", "float8_e4m3fn", 72, 8320), tensor("w", "float8_e4m3fn", 136, 8320),
                      tensor("xs", "float32", 72, 65), tensor("ws", "float32", 136, 65)],
                     [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=1, block=128),
                      node("v", "dequantize", ["w", "ws"], dtype="float32", axis=1, block=128),
                      node("p", "linear", ["a", "v"]), node("h", "cast", ["p"], dtype="bfloat16")]),
    "wide_block_scales": ([tensor("x", "float8_e4m3fn", 200, 8448), tensor("w", "float8_e4m3fn", 200, 8448),
                           tensor("xs", "float32", 200, 66), tensor("ws", "float32", 200, 33)],
                          [node("a", "dequantize", ["x", "xs"], dtype="float32", axis=1, block=128),
                           node("v", "dequantize", ["w", "ws"], dtype="float32", axis=1, block=256),
                           node("p", "linear", ["a", "v"]), node("h", "cast", ["p"], dtype="bfloat16")])}
SYMBOLS = {"symbols": {"b": {"max": 16, "hint": 2}}, "deep_symbol": {"k": {"multiple_of": 8, "max": 65536, "hint": 4096}}}
# Depths of the symbol for kernels whose number of shares was chosen for another one: most of them empty, one of them
# short, all of them full.
DEPTHS = [8, 456, 4104]

# Some tiles more than multiprocessors, of which there are five here: the last tiles are streamed by five blocks, stretches
# end within tiles and go over from one to the next.
STREAMED = {
    "layer": ([tensor("x", "bfloat16", 200, 520), tensor("w", "bfloat16", 264, 520), tensor("b", "bfloat16", 264),
               tensor("r", "bfloat16", 200, 264)],
              [node("p", "linear", ["x", "w", "b"]), node("g", "gelu", ["p"]), node("h", "add", ["g", "r"])]),
    "batch": ([tensor("x", "float16", 7, 72, 520), tensor("w", "float16", 7, 520, 104)],
              [node("p", "matmul", ["x", "w"]), node("h", "tanh", ["p"])]),
    "gated": ([tensor("x", "bfloat16", 72, 520), tensor("a", "bfloat16", 200, 520), tensor("b", "bfloat16", 200, 520)],
              [node("p", "linear", ["x", "a"]), node("q", "linear", ["x", "b"]), node("s", "silu", ["p"]),
               node("h", "mul", ["s", "q"])]),
    "codes": ([tensor("x", "float16", 200, 544), tensor("c", "int8", 264, 544), tensor("s", "float16", 264)],
              [node("w", "dequantize", ["c", "s"], dtype="float16", axis=0), node("p", "linear", ["x", "w"]),
               node("h", "relu", ["p"])]),
    "zero_point": ([tensor("x", "int8", 136, 1040), tensor("w", "int8", 264, 1040), tensor("ws", "float32", 264),
                    tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                   [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")])}

# Products of float32 by lanes with 64 sums each: with their factors they leave little room for where all these lie.
IN_LANES = {
    "linear": ([tensor("x", "float32", 4096, 64), tensor("w", "float32", 4096, 64), tensor("b", "float32", 4096)],
               [node("p", "linear", ["x", "w", "b"]), node("h", "gelu", ["p"])]),
    "batch": ([tensor("x", "float32", 16, 512, 64), tensor("w", "float32", 16, 64, 512)],
              [node("h", "matmul", ["x", "w"])]),
    "transposed": ([tensor("x", "float32", 64, 4096), tensor("w", "float32", 4096, 64)],
                   [node("t", "transpose", ["x"], dim0=0, dim1=1), node("u", "transpose", ["w"], dim0=0, dim1=1),
                    node("h", "matmul", ["t", "u"])]),
    "convolution": ([tensor("x", "float32", 32, 64, 56, 56), tensor("w", "float32", 64, 64, 3, 3)],
                    [node("h", "conv2d", ["x", "w"], padding=[1, 1])]),
    "copied_weights": ([tensor("x", "float32", 32, 128, 28, 28), tensor("w", "float32", 128, 128, 3, 3)],
                       [node("h", "conv2d", ["x", "w"], padding=[1, 1])]),
    "strided": ([tensor("x", "float32", 16, 320, 32, 32), tensor("w", "float32", 320, 320, 1, 1)],
                [node("h", "conv2d", ["x", "w"], stride=[2, 2])])}

failures = []


def halves(folder, depth):
    """A file of inputs x and w so deep."""
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
        json.dump({"fusec": 1, "name": name, "symbols": SYMBOLS.get(name, {}), "inputs": inputs, "nodes": nodes,
                   "outputs": ["h"]}, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            if name == "warpgroups" and arch == "sm_80":
                continue
            for more in {"float32": [["--random"], ["--random", "--allow-tf32"]],
                         "symbols": [["--random"], ["--random", "--symbol=b=3"]],
                         "deep_symbol": [["--inputs=" + halves(folder, depth)] for depth in DEPTHS]}.get(name, [["--random"]]):
                profile = json.loads(run([fusec_run, path, "--device=emulator", "--json", "--profile=-",
                                          "--verify" + ("=2e-3,1e-2" if "--allow-tf32" in more else ""),
                                          "--arch=" + arch, *more]))["kernels"]
                wanted = [True, False]  # the shares', and the one that adds them up
                expect(["_shares" in k["name"] for k in profile] == wanted, f"{name} on {arch}: no shares of the depth")
                for kernel in profile:
                    expect(kernel["findings"] == 0, f"{name} on {arch}: findings on the emulator")
                    expect(kernel["bank_conflicts"] == 0, f"{name} on {arch}: bank conflicts")
                    expect(kernel["resources"]["spill_bytes"] == 0, f"{name} on {arch}: spills")
                more = [option for option in more if option == "--allow-tf32"]
                report = json.loads(run([fusec, path, "--emit=report", "--no-nvrtc", "--arch=" + arch, *more]))
                expect(report["groups"][0]["launches"] == 2, f"{name} on {arch}: the report has one launch")
        if name == "warpgroups":
            expect("multiply_warpgroup_" in run([fusec, path, "--emit=cu", "--no-nvrtc", "--arch=sm_90a"]),
                   f"{name}: not by warpgroups")


def check_streams(fusec, fusec_run, folder, forms):
    """All ways whose last tiles are streamed, whether predicted to be the fastest or not, and where that is predicted."""
    device, several = os.path.join(folder, "device.json"), 0
    json.dump({"fusec_target": 1, "arch": "sm_80", "multiprocessors": 5, "launch_seconds": 0}, open(device, "w"))
    for name in forms:
        inputs, nodes = STREAMED[name]
        path, database = os.path.join(folder, "streamed.json"), os.path.join(folder, name + ".db")
        json.dump({"fusec": 1, "name": name, "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        emulated = [fusec_run, path, "--random", "--device=emulator", "--target=" + device, "--tuning-db=" + database]
        run([*emulated, "--tune"])
        content = json.load(open(database))
        ways = [way for way in content["kernels"][0]["microseconds"] if ", the last " in way]
        expect(ways, f"{name}: no way with streamed tiles")
        for way in ways:
            content["kernels"][0]["choice"] = way
            json.dump(content, open(database, "w"))
            profile = json.loads(run([*emulated, "--verify", "--json", "--profile=-"]))["kernels"]
            expect(["_streams" in k["name"] for k in profile] == [True, False], f"{name}, {way}: not streamed")
            for kernel in profile:
                expect(kernel["findings"] == 0, f"{name}, {way}: findings on the emulator")
                expect(kernel["bank_conflicts"] == 0, f"{name}, {way}: bank conflicts")
                expect(kernel["resources"]["spill_bytes"] == 0, f"{name}, {way}: spills")
            source = run([fusec, path, "--emit=cu", "--no-nvrtc", "--target=" + device, "--tuning-db=" + database])
            several += int(re.search(r"the depth of the last (\d+) is one stream", source)[1]) > 1
    expect(several > 0, "no stretch goes over from one tile to the next")
    # 112 tiles would be two waves of 108 multiprocessors for hardly more than one; of three for two, the launch more is
    # left to measuring.
    for sizes, wanted in [((1024, 3584, 4096), False), ((512, 1792, 7168), True)]:
        json.dump(model(*sizes), open(path, "w"))
        source = run([fusec, path, "--emit=cu", "--no-nvrtc", "--arch=sm_80"])
        found = ["TileStreams<" in source, "Of 112 tiles, the depth of the last 4 is one stream" in source]
        expect(found == [wanted] * 2, f"{sizes}: streams, the last of 112 tiles: {found}")
    report = json.loads(run([fusec, path, "--emit=report", "--no-nvrtc", "--arch=sm_80"]))
    expect(report["groups"][0]["launches"] == 2, "streams are reported as one launch")


def check_grouped(fusec, fusec_run, folder):
    for name, (inputs, nodes) in GROUPED.items():
        path = os.path.join(folder, name + ".json")
        json.dump({"fusec": 1, "name": name, "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        source = run([fusec, path, "--emit=cu", "--no-nvrtc"])
        expect("rows_of_tile<" in source, f"{name}: no tiles of rows with one matrix")
        for arch in ["sm_80", "sm_90a"]:
            for seed in ["1", "2"]:
                run([fusec_run, path, f"--random={seed}", "--device=emulator", "--verify", "--arch=" + arch])


def check_last_columns_of_groups(fusec_run, folder):
    """Boxes of 64 columns of which the last lies beyond the result's: of a group's last rows nothing of it is stored, though
    the columns are a multiple of 64."""
    inputs = [tensor("x", "bfloat16", 130, 320), tensor("w", "float4_e2m1fn", 4, 320, 5760),
              tensor("s", "float8_e8m0fnu", 4, 10, 5760), tensor("o", "int32", 4)]
    nodes = [node("d", "dequantize", ["w", "s"], dtype="bfloat16", axis=1, block=32),
             node("p", "grouped_matmul", ["x", "d", "o"]), node("h", "swiglu", ["p"], interleaved=True)]
    path = os.path.join(folder, "last_columns.json")
    json.dump({"fusec": 1, "name": "last_columns", "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
    run([fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=sm_90a"])


def check_looked_up(fusec_run, folder):
    path = os.path.join(folder, "looked_up.json")
    for name, (inputs, nodes) in LOOKED_UP.items():
        model = {"fusec": 1, "name": name, "inputs": inputs, "nodes": nodes, "outputs": ["h"]}
        values = []
        if name == "symbol":
            model["symbols"] = SYMBOL_OF_ROWS
            values = ["--symbol=m=32"]
        json.dump(model, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            run([fusec_run, path, "--random=3", "--device=emulator", "--verify", "--arch=" + arch] + values)


# Rows that are reduced behind their product, of more columns than a tile of the pipeline has as well, whose lanes take
# eight columns side by side, four or one, and of columns that lie an odd number apart; a single expert, zero points and
# small groups of codes; bytes whose lines begin anywhere; each in one kernel, which a plan asks for: such long rows are
# predicted to be dearer so.
WITHOUT_CONFLICTS = {
    "norm": ([tensor("x", "bfloat16", 40, 64), tensor("w", "bfloat16", 512, 64), tensor("g", "bfloat16", 512)],
             [node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p", "g"], normalized_shape=[512])]),
    "residual_norm": ([tensor("x", "bfloat16", 70, 256), tensor("w", "bfloat16", 256, 256), tensor("r", "bfloat16", 70, 256),
                       tensor("g", "bfloat16", 256)],
                      [node("p", "linear", ["x", "w"]), node("s", "add", ["p", "r"]),
                       node("h", "rms_norm", ["s", "g"], normalized_shape=[256])]),
    "norm_of_384": ([tensor("x", "bfloat16", 70, 64), tensor("w", "bfloat16", 384, 64), tensor("g", "bfloat16", 384)],
                    [node("p", "linear", ["x", "w"]), node("h", "rms_norm", ["p", "g"], normalized_shape=[384])]),
    "softmax_of_120": ([tensor("x", "float16", 50, 64), tensor("w", "float16", 120, 64), tensor("r", "float16", 50, 120)],
                       [node("p", "linear", ["x", "w"]), node("s", "add", ["p", "r"]),
                        node("h", "softmax", ["s"], dim=-1)]),
    "softmax_of_99": ([tensor("x", "float16", 50, 64), tensor("w", "float16", 99, 64)],
                      [node("p", "linear", ["x", "w"]), node("h", "softmax", ["p"], dim=-1)]),
    "one_expert": ([tensor("x", "bfloat16", 70, 64), tensor("w", "bfloat16", 1, 64, 72), tensor("o", "int32", 1)],
                   [node("h", "grouped_matmul", ["x", "w", "o"])]),
    "zero_point": ([tensor("x", "int8", 60, 256), tensor("w", "int8", 100, 256), tensor("ws", "float32", 100),
                    tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                   [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "groups_of_16": ([tensor("x", "int8", 65, 224), tensor("w", "int4", 40, 224), tensor("ws", "float32", 40, 14),
                      tensor("wo", "int8", 40, 14), tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", "wo", "xs", "xo"], group_size=16,
                           out_dtype="float16")]),
    "groups_of_32": ([tensor("x", "int8", 77, 224), tensor("w", "int4", 141, 224), tensor("ws", "float32", 141, 7),
                      tensor("xs", "float32", 1)],
                     [node("h", "static_quant_linear_int4", ["x", "w", "ws", None, "xs"], group_size=32,
                           out_dtype="bfloat16")]),
    "scaled_codes": ([tensor("x", "float8_e4m3fn", 77, 256), tensor("xs", "float32", 77, 2),
                      tensor("w", "float8_e4m3fn", 100, 256), tensor("ws", "float32", 100, 2)],
                     [node("a", "dequantize", ["x", "xs"], dtype="bfloat16", axis=1, block=128),
                      node("b", "dequantize", ["w", "ws"], dtype="bfloat16", axis=1, block=128),
                      node("h", "linear", ["a", "b"])]),
    "triangle": ([tensor("x", "float16", 72, 64), tensor("w", "float16", 88, 64)],
                 [node("p", "linear", ["x", "w"]), node("h", "tril", ["p"])]),
    "float8_of_100": ([tensor("x", "float8_e4m3fn", 192, 100), tensor("w", "float8_e4m3fn", 129, 100),
                       tensor("xs", "float32", 192), tensor("ws", "float32", 129)],
                      [node("h", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="float16")]),
    "float8_of_129": ([tensor("x", "float8_e4m3fn", 99, 129), tensor("w", "float8_e5m2", 96, 129)],
                      [node("a", "cast", ["x"], dtype="float16"), node("b", "cast", ["w"], dtype="float16"),
                       node("h", "linear", ["a", "b"])]),
    "float8_of_17": ([tensor("x", "float8_e4m3fn", 257, 17), tensor("w", "float8_e4m3fn", 40, 17),
                      tensor("xs", "float32", 1), tensor("ws", "float32", 40)],
                     [node("p", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype="bfloat16"),
                      node("h", "rms_norm", ["p"], normalized_shape=[40])]),
    "int8_of_100": ([tensor("x", "int8", 200, 100), tensor("w", "int8", 129, 100), tensor("ws", "float32", 129),
                     tensor("xs", "float32", 1)],
                    [node("h", "static_quant_linear", ["x", "w", "ws", "xs"], out_dtype="float16")]),
    "zero_point_of_1023": ([tensor("x", "int8", 136, 1023), tensor("w", "int8", 129, 1023), tensor("ws", "float32", 129),
                            tensor("xs", "float32", 1), tensor("xo", "int8", 1)],
                           [node("h", "static_quant_linear", ["x", "w", "ws", "xs", "xo"], out_dtype="float16")]),
    "gated_int4": ([tensor("x", "float16", 33, 384)] +
                   [t for w in "wv" for t in (tensor(w, "int4", 128, 384), tensor(w + "s", "float16", 128, 3))],
                   [n for w in "wv" for n in (node(w + "d", "dequantize", [w, w + "s"], dtype="float16", axis=1, block=128),
                                              node(w + "p", "linear", ["x", w + "d"]))] +
                   [node("h", "swiglu", ["wp", "vp"])]),
    "norm_of_17": ([tensor("x", "float16", 99, 40), tensor("w", "float16", 40, 17)],
                   [node("p", "matmul", ["x", "w"]), node("h", "rms_norm", ["p"], normalized_shape=[17])]),
    "softmax_of_65": ([tensor("x", "bfloat16", 99, 40), tensor("w", "bfloat16", 40, 65)],
                      [node("p", "matmul", ["x", "w"]), node("h", "softmax", ["p"], dim=-1)])}


# Gate and up are columns of one product in turn, of matrices whose neighbours lie along the columns: as where neighbours
# lie along the depth, codes as where gate and up are halves. --- experts, rows, depth, pairs of columns, dtype, codes
PAIRED = {"pairs of experts": (2, 256, 512, 256, "bfloat16", None), "pairs of a batch": (0, 136, 264, 200, "float16", None),
          "pairs of codes": (2, 128, 256, 256, "bfloat16", "int4"),
          "pairs of mxfp4": (2, 128, 256, 256, "bfloat16", "float4_e2m1fn"), "pairs in no eights": (2, 150, 136, 100, "bfloat16", None)}


def paired(experts, rows, depth, pairs, dtype, codes, way):
    count = experts or 3
    turned = lambda *shape: [shape[0], shape[2], shape[1]] if way == "depth" else list(shape)
    inputs = [tensor("x", dtype, *([count * rows, depth] if experts else [count, rows, depth])),
              tensor("w", codes or dtype, *turned(count, depth, 2 * pairs))]
    nodes, weights = [], "w"
    if codes:
        inputs.append(tensor("ws", "float8_e8m0fnu" if codes == "float4_e2m1fn" else dtype, *turned(count, depth // 32, 2 * pairs)))
        nodes.append(node("wd", "dequantize", ["w", "ws"], dtype=dtype, axis=2 if way == "depth" else 1, block=32))
        weights = "wd"
    if way == "depth":
        nodes.append(node("wt", "transpose", [weights], dim0=1, dim1=2))
        weights = "wt"
    if experts:
        inputs.append(tensor("b", dtype, count, 2 * pairs))
        nodes.append(node("p", "grouped_matmul", ["x", weights, "o", "b"]))
    else:
        nodes.append(node("p", "matmul", ["x", weights]))
    offsets = [dict(tensor("o", "int32", count), data=[rows * (e + 1) for e in range(count)])] if experts else []
    ends = [(0, 2 * pairs), (1, 2 * pairs)] if way != "halves" else [(0, pairs), (pairs, 2 * pairs)]
    nodes += [node(name, "slice", ["p"], dim=-1, start=start, end=end, step=1 if way == "halves" else 2)
              for name, (start, end) in zip("gu", ends)]
    nodes += [node("c", "clamp", ["g"], max=7.0), node("t", "mul", ["c", 1.702]), node("s", "sigmoid", ["t"]),
              node("a", "mul", ["c", "s"]), node("d", "add", ["u", 1.0]), node("h", "mul", ["a", "d"])]
    return {"fusec": 1, "name": "pairs", "inputs": inputs, "constants": offsets, "nodes": nodes, "outputs": ["h"]}


def check_pairs(fusec_run, folder):
    path = os.path.join(folder, "pairs.json")
    for name, form in PAIRED.items():
        for arch in ["sm_80", "sm_90a"]:
            kernels = []
            for way in ("turns", "halves" if form[-1] else "depth"):
                json.dump(paired(*form, way), open(path, "w"))
                kernels.append(json.loads(run([fusec_run, path, "--random", "--device=emulator", "--json", "--profile=-",
                                               "--verify", "--arch=" + arch]))["kernels"])
            expect([len(k) for k in kernels] == [1, 1], f"{name} on {arch}: {len(kernels[0])} kernels")
            kernel, beside = kernels[0][0], kernels[1][0]
            executed, known = (sum(k["instructions"].values()) for k in (kernel, beside))
            expect(executed <= 1.15 * known, f"{name} on {arch}: {executed} instructions, {known} beside it")
            expect(kernel["bank_conflicts"] == 0, f"{name} on {arch}: bank conflicts")
            expect(kernel["resources"]["spill_bytes"] == 0, f"{name} on {arch}: spills")


# Codes with a scale for each column, columns beside one another, are widened and scaled two at a time.
ACROSS = {"float4_e2m1fn": ("float8_e8m0fnu", 23), "int4": ("bfloat16", 16)}


def check_across(fusec_run, folder):
    m, n, k = 256, 512, 512
    path = os.path.join(folder, "across.json")
    for codes, (scales, most) in ACROSS.items():
        inputs = [tensor("x", "bfloat16", m, k), tensor("w", codes, k, n), tensor("ws", scales, k // 32, n)]
        nodes = [node("d", "dequantize", ["w", "ws"], dtype="bfloat16", axis=0, block=32), node("h", "matmul", ["x", "d"])]
        json.dump({"fusec": 1, "name": "across", "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            kernels = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--json", "--profile=-",
                                      "--verify", "--arch=" + arch]))["kernels"]
            executed = 1000 * sum(sum(k["instructions"].values()) for k in kernels) / (m * n * k)
            expect(executed <= most, f"{codes} across on {arch}: {executed:.2f} instructions for a thousand multiply-adds")


# Codes whose blocks are no power of two long, scaled with zero points: as many as have one scale are computed together, so
# that they take so many times the instructions of blocks of 32.
UNEVEN_BLOCKS = {10: 2.5, 20: 1.95, 24: 1.65, 48: 1.5}


def check_uneven_blocks(fusec_run, folder):
    m, n, k = 128, 128, 480
    path = os.path.join(folder, "blocks.json")

    def executed(block, arch):
        inputs = [tensor("x", "bfloat16", m, k), tensor("w", "int4", n, k), tensor("ws", "bfloat16", n, k // block),
                  tensor("wz", "int8", n, k // block)]
        nodes = [node("d", "dequantize", ["w", "ws", "wz"], dtype="bfloat16", axis=1, block=block),
                 node("h", "linear", ["x", "d"])]
        json.dump({"fusec": 1, "name": "blocks", "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        kernels = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--json", "--profile=-", "--verify",
                                  "--arch=" + arch]))["kernels"]
        expect(sum(k["tensor_multiply_adds"] for k in kernels) > 0, f"blocks of {block} on {arch}: not on tensor cores")
        expect(all(k["resources"]["spill_bytes"] == 0 for k in kernels), f"blocks of {block} on {arch}: spills")
        return sum(sum(k["instructions"].values()) for k in kernels)

    for arch in ["sm_80", "sm_90a"]:
        even = executed(32, arch)
        for block, most in UNEVEN_BLOCKS.items():
            ratio = executed(block, arch) / even
            expect(ratio <= most, f"blocks of {block} on {arch}: {ratio:.2f} times the instructions of blocks of 32")


# What stands behind a product is read and stored by several columns at a time.
MOST_INSTRUCTIONS = {"residual_norm": 29000, "softmax_of_120": 13000, "float8_of_100": 80000, "int8_of_100": 80000,
                     "norm_of_17": 25000}


def check_no_conflicts(fusec_run, folder):
    for name, (inputs, nodes) in WITHOUT_CONFLICTS.items():
        path = os.path.join(folder, name + ".json")
        json.dump({"fusec": 1, "name": name, "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        plan = os.path.join(folder, name + ".plan")
        json.dump({"fusec_plan": 1, "model": name, "strategy": "full", "max_fused_ops": 256, "max_args": None,
                   "groups": [{"name": "whole", "nodes": [n["name"] for n in nodes]}]}, open(plan, "w"))
        for arch in ["sm_80", "sm_90a"]:
            profile = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--json", "--profile=-", "--verify",
                                      "--arch=" + arch, "--plan=" + plan]))["kernels"]
            expect(len(profile) == 1, f"{name} on {arch}: {len(profile)} kernels")
            expect(profile[0]["tensor_multiply_adds"] > 0, f"{name} on {arch}: not on tensor cores")
            for kernel in profile:
                instructions = sum(kernel["instructions"].values())
                expect(instructions <= MOST_INSTRUCTIONS.get(name, instructions), f"{name} on {arch}: {instructions} instructions")
                expect(kernel["bank_conflicts"] == 0, f"{name} on {arch}: bank conflicts")
                expect(kernel["resources"]["spill_bytes"] == 0, f"{name} on {arch}: spills")


def check_tf32(fusec, fusec_run, folder):
    inputs, nodes = TF32
    path, ptx = os.path.join(folder, "tf32.json"), os.path.join(folder, "tf32.ptx")
    json.dump({"fusec": 1, "name": "tf32", "inputs": inputs, "nodes": nodes, "outputs": ["y", "q", "r", "o"]},
              open(path, "w"))
    for arch in ["sm_80", "sm_90a"]:
        for allowed in [[], ["--allow-tf32"]]:
            run([fusec, path, "-o", ptx, "--arch=" + arch, *allowed])
            used = open(ptx).read().count("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") > 0
            expect(used == bool(allowed), f"tf32 on {arch} with {allowed}: {used}")
        for verified, allowed in [("1e-5,1e-5", []), ("2e-3,1e-2", ["--allow-tf32"])]:
            profile = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--verify=" + verified,
                                      "--arch=" + arch, "--json", "--profile=-", *allowed]))
            if allowed:
                for kernel in profile["kernels"]:
                    expect(kernel["tensor_multiply_adds"] > 0, f"{kernel['name']} on {arch}: not on tensor cores")
                    expect(kernel["bank_conflicts"] == 0, f"{kernel['name']} on {arch}: bank conflicts")
        large = {"fusec": 1, "name": "large", "inputs": [tensor("x", "float32", 2048, 2047), tensor("w", "float32", 2048, 2047)],
                 "nodes": [node("y", "linear", ["x", "w"])], "outputs": ["y"]}
        json.dump(large, open(os.path.join(folder, "large.json"), "w"))
        times = [json.loads(run([fusec, os.path.join(folder, "large.json"), "--no-nvrtc", "--emit=report", "--arch=" + arch,
                                 *more]))["groups"][0]["predicted_us"] for more in ([], ["--allow-tf32"])]
        expect(times[1] < times[0] / 2, f"tf32 on {arch}: predicted {times[1]} us, without it {times[0]}")


# (rows, columns, depth, dtype, right factor as it lies): of these some had local memory.
WITHOUT_SPILLS = [(127, 1001, 511, "bfloat16", "nk"), (64, 500, 4095, "float16", "nk"), (7, 500, 511, "float32", "nk"),
                  (4096, 1001, 511, "float32", "nk"), (127, 33, 511, "float16", "nk"),
                  (4096, 64, 1024, "bfloat16", "nk"), (64, 4096, 1024, "bfloat16", "kn")]


# (rows, columns, depth, elements of each scale) of float8, which ptxas multiplies as halves: behind these a bias and silu.
FLOAT8_WITHOUT_SPILLS = [(519, 2056, 144, (1, 1)), (300, 1024, 256, (300, 1024)), (519, 520, 528, (1, 1))]


def check_spills(fusec_run, folder):
    path = os.path.join(folder, "spills.json")
    for m, n, k, (of_rows, of_columns) in FLOAT8_WITHOUT_SPILLS:
        inputs = [tensor("x", "float8_e4m3fn", m, k), tensor("w", "float8_e4m3fn", n, k), tensor("xs", "float32", of_rows),
                  tensor("ws", "float32", of_columns), tensor("b", "bfloat16", n)]
        nodes = [node("p", "fp8_linear", ["x", "w", "xs", "ws", "b"], out_dtype="bfloat16"), node("h", "silu", ["p"])]
        json.dump({"fusec": 1, "name": "spills", "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            profile = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--sample-blocks=1", "--json",
                                      "--profile=-", "--arch=" + arch]))["kernels"]
            spilled = [kernel["resources"]["spill_bytes"] for kernel in profile]
            expect(not any(spilled), f"float8 {m}x{n}x{k} on {arch}: bytes spilled by its kernels: {spilled}")
    for m, n, k, dtype, lies in WITHOUT_SPILLS:
        right = tensor("w", dtype, n, k) if lies == "nk" else tensor("w", dtype, k, n)
        nodes = [node("p", "linear" if lies == "nk" else "matmul", ["x", "w"]), node("h", "gelu", ["p"])]
        json.dump({"fusec": 1, "name": "spills", "inputs": [tensor("x", dtype, m, k), right], "nodes": nodes,
                   "outputs": ["h"]}, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            sample = ["--sample-blocks=1"] if m * n * k > 2e8 else []  # not of shares of the depth
            profile = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--json", "--profile=-",
                                      "--arch=" + arch, *sample]))["kernels"]
            spilled = [kernel["resources"]["spill_bytes"] for kernel in profile]
            expect(not any(spilled), f"{m}x{n}x{k} {dtype} on {arch}: bytes spilled by its kernels: {spilled}")


def check_lanes(fusec_run, folder):
    path = os.path.join(folder, "lanes.json")
    for name, (inputs, nodes) in IN_LANES.items():
        json.dump({"fusec": 1, "name": name, "inputs": inputs, "nodes": nodes, "outputs": ["h"]}, open(path, "w"))
        for arch in ["sm_80", "sm_90a"]:
            profile = json.loads(run([fusec_run, path, "--random", "--device=emulator", "--sample-blocks=1", "--json",
                                      "--profile=-", "--arch=" + arch]))["kernels"]
            spilled = [kernel["resources"]["spill_bytes"] for kernel in profile]
            expect(spilled == [0], f"{name} in lanes on {arch}: bytes spilled by its kernels: {spilled}")


def check_narrowed(fusec, folder):
    """What is computed for a product is narrowed where it is written, not where it is read: weights of attention whose
    heads are so large that it is products and a softmax."""
    path, report = os.path.join(folder, "narrowed.json"), os.path.join(folder, "report.json")
    json.dump({"fusec": 1, "name": "narrowed", "inputs": [tensor(name, "bfloat16", 1, 8, 1024, 320) for name in "qkv"],
               "nodes": [node("y", "scaled_dot_product_attention", list("qkv"))], "outputs": ["y"]}, open(path, "w"))
    for arch in ["sm_80", "sm_90a"]:
        run([fusec, path, "--no-nvrtc", "--emit=report=" + report, "-o", os.path.join(folder, "narrowed.cu"), "--arch=" + arch])
        groups = [g["name"] for g in json.load(open(report))["groups"]]
        expect(groups[1:] == ["fused_softmax_cast", "matmul"], f"narrowed on {arch}: {groups}")


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 and "NVRTC" in result.stderr and "not found" in result.stderr:
        print("skipped: no NVRTC")
        sys.exit(77)
    expect(result.returncode == 0, f"{' '.join(command)}: {result.stderr[-2000:]}")
    return result.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    m, n, k = (4096, 4096, 4096) if options.full else (300, 2184, 272)
    with tempfile.TemporaryDirectory() as folder:
        check_grouped(options.fusec, options.fusec_run, folder)
        check_last_columns_of_groups(options.fusec_run, folder)
        check_looked_up(options.fusec_run, folder)
        check_tf32(options.fusec, options.fusec_run, folder)
        check_lanes(options.fusec_run, folder)
        check_spills(options.fusec_run, folder)
        check_shares(options.fusec, options.fusec_run, folder, SHARED if options.full else ["layer", "symbols", "float32", "groups", "deep_symbol"])
        check_streams(options.fusec, options.fusec_run, folder, STREAMED if options.full else ["layer", "zero_point"])
        check_no_conflicts(options.fusec_run, folder)
        check_pairs(options.fusec_run, folder)
        check_across(options.fusec_run, folder)
        check_uneven_blocks(options.fusec_run, folder)
        check_narrowed(options.fusec, folder)
        path = lambda name: os.path.join(folder, name)
        json.dump(model(m, n, k), open(path("layer.json"), "w"))
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
        profile = json.loads(run([options.fusec_run, path("layer.json"), "--random", "--device=emulator", "--json",
                                  "--profile=-"] + sample))["kernels"][0]
        expect(profile["findings"] == 0, "findings on the emulator")
        expect(profile["bank_conflicts"] == 0, f"{profile['bank_conflicts']} bank conflicts")
        expect(profile["resources"]["spill_bytes"] == 0, "spills")
        down, across = -(-m // rows), -(-n // columns)
        blocks = 4 if options.full else down * across
        depth = -(-k // 32) * 32
        expect(profile["tensor_multiply_adds"] == blocks * rows * columns * depth, "products that nobody needs")
        results = m * n * blocks // (down * across) * 2  # stored, and as much of the bias is read by its rows' lanes
        needed = blocks * (rows + columns) * k * 2 + 2 * results
        expect(profile["requested_bytes"] <= 1.1 * needed,
               f"{profile['requested_bytes']} bytes of global memory, {needed} needed")
        disassembler = shutil.which("nvdisasm")
        if disassembler:
            code = run([disassembler, path("layer.cubin")])
            expect("HMMA.16816.F32.BF16" in code, "no HMMA in the machine code")
            expect("STG.E.128" in code and not re.search(r"STG\.E(\.64)? ", code), "narrow stores in the machine code")
            expect("STL" not in code and "LDL" not in code, "local memory in the machine code")


main()
for failure in failures:
    print(failure)
print(f"{len(failures)} failures")
sys.exit(bool(failures))
