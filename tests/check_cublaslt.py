#!/usr/bin/env python3
"""check_cublaslt.py FUSEC FUSEC_RUN [--only=TEXT]

Products under --gemm=cublaslt. Nodes that should become a library call do, with the expected pattern and launches, and
give the reference's values: the host part is compiled against a stub of the library, which refuses what the library
refuses, and the recorded calls are computed on the CPU. Nodes that should not become a call do not, for the expected
reason. Prints each failure; exit 0 without failures."""
import argparse, json, math, os, struct, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import json_schema
import tensors


def node(name, op, inputs, **attrs):
    made = {"name": name, "op": op, "inputs": inputs}
    return {**made, "attrs": attrs} if attrs else made


def model(inputs, nodes, outputs=None, symbols=None):
    """`inputs`: name -> (dtype, shape)."""
    made = {"fusec": 1, "name": "model",
            "inputs": [{"name": n, "dtype": d, "shape": s} for n, (d, s) in inputs.items()],
            "nodes": nodes, "outputs": outputs or [nodes[-1]["name"]]}
    return {**made, "symbols": symbols} if symbols else made


F32, F16, BF16, F64, I8, FP8 = "float32", "float16", "bfloat16", "float64", "int8", "float8_e4m3fn"
TOKENS = {"t": {"min": 1, "max": 64, "hint": 5}}


def product(dtype, x=(5, 24), w=(40, 24), bias=False, then=(), outputs=None, more=None):
    """linear(x, w), then the given nodes."""
    inputs = {"x": (dtype, list(x)), "w": (dtype, list(w))}
    if bias:
        inputs["b"] = (dtype, [w[0]])
    return model({**inputs, **(more or {})}, [node("p", "linear", ["x", "w"] + (["b"] if bias else [])), *then], outputs)


def calls():
    """(name, model, pattern of the last call, launches, options) of everything that must be delegated."""
    gelu = node("y", "gelu", ["p"], approximate="tanh")
    for d in (F32, F16, BF16, F64):
        yield f"matmul {d}", model({"a": (d, [5, 7]), "b": (d, [7, 9])}, [node("y", "matmul", ["a", "b"])]), "matmul", 1
        yield f"linear {d}", product(d), "matmul", 1
        yield f"linear of one row {d}", product(d, (1, 24)), "matmul", 1
        yield f"linear of one column {d}", product(d, w=(1, 24)), "matmul", 1
    for d in (F32, F16, BF16):
        yield f"bias {d}", product(d, bias=True), "matmul_bias", 1
        yield f"gelu {d}", product(d, then=[gelu]), "matmul_gelu", 1
        yield f"bias gelu {d}", product(d, bias=True, then=[gelu]), "matmul_bias_gelu", 1
        yield f"gelu aux {d}", product(d, then=[gelu], outputs=["p", "y"]), "matmul_gelu_aux", 1
        yield f"bias gelu aux {d}", product(d, bias=True, then=[gelu], outputs=["y", "p"]), "matmul_bias_gelu_aux", 1
        yield f"scale {d}", product(d, then=[node("y", "mul", ["p", 0.3])]), "matmul_scale", 1
        yield f"quotient {d}", product(d, then=[node("y", "div", ["p", 8.0])]), "matmul_scale", 1
        zero_for_nan = [node("g", "gt", ["p", 0]), node("y", "where", ["g", "p", 0.0])]
        yield f"relu of where {d}", product(d, bias=True, then=zero_for_nan), "matmul_bias_relu", 1
        residual = {"r": (d, [5, 40])}
        add = node("y", "add", ["r", "p"])
        yield f"residual {d}", product(d, then=[add], more=residual), "matmul_bias", 1
        yield f"bias residual {d}", product(d, bias=True, then=[add], more=residual), "matmul_bias_residual", 1
    for d in (F16, BF16):
        yield (f"to float32 {d}", product(d, then=[node("y", "cast", ["p"], dtype=F32)]), "matmul_cast", 1,
               "--verify=1e-2,1e-2")
        yield f"casts before {d}", model(
            {"a": (d, [5, 8]), "b": (d, [8, 16])},
            [node("af", "cast", ["a"], dtype=F32), node("bf", "cast", ["b"], dtype=F32), node("y", "matmul", ["af", "bf"])]
        ), "matmul", 1
    m, k, n = 6, 10, 14
    for at in (False, True):
        for bt in (False, True):
            nodes = [node("a2", "transpose", ["a"], dim0=0, dim1=1)] if at else []
            nodes += [node("b2", "permute", ["b"], dims=[1, 0])] if bt else []
            nodes += [node("y", "matmul", ["a2" if at else "a", "b2" if bt else "b"])]
            inputs = {"a": (F32, [k, m] if at else [m, k]), "b": (F32, [n, k] if bt else [k, n])}
            yield f"transposes {at} {bt}", model(inputs, nodes), "matmul", 1
            nodes = nodes + [node("z", "permute", ["y"], dims=[1, 0])]
            yield f"transposed result {at} {bt}", model(inputs, nodes), "matmul_permuted", 1
    yield "bmm", model({"a": (F32, [3, 5, 8]), "b": (F32, [3, 8, 6])}, [node("y", "bmm", ["a", "b"])]), "matmul", 1
    yield "batches in two dimensions", model({"a": (BF16, [2, 3, 5, 8]), "b": (BF16, [2, 3, 8, 6])},
                                             [node("y", "matmul", ["a", "b"])]), "matmul", 1
    yield "one matrix for all batches", model({"a": (F32, [4, 5, 8]), "b": (F32, [8, 6])},
                                              [node("y", "matmul", ["a", "b"])]), "matmul", 1
    yield "one left matrix for all batches", model({"a": (F32, [5, 8]), "b": (F32, [4, 8, 6])},
                                                   [node("y", "matmul", ["a", "b"])]), "matmul", 1
    yield "batches transposed", model(
        {"a": (F32, [4, 5, 8]), "b": (F32, [4, 6, 8])},
        [node("bt", "transpose", ["b"], dim0=1, dim1=2), node("y", "matmul", ["a", "bt"])]), "matmul", 1
    heads = [node("q2", "permute", ["q"], dims=[0, 2, 1, 3]), node("k2", "permute", ["k"], dims=[0, 2, 3, 1]),
             node("s", "matmul", ["q2", "k2"]), node("y", "mul", ["s", 0.125])]
    yield "heads of one sequence", model({"q": (F16, [1, 7, 4, 16]), "k": (F16, [1, 9, 4, 16])}, heads), "matmul_scale", 1
    yield "a tensor with itself", model({"a": (F32, [5, 8])}, [node("at", "transpose", ["a"], dim0=0, dim1=1),
                                                               node("y", "matmul", ["a", "at"])]), "matmul", 1
    yield "cut factors", model(
        {"x": (F16, [6, 40]), "w": (F16, [3, 32, 48])},
        [node("x2", "slice", ["x"], dim=1, start=8, end=40, step=1), node("w2", "select", ["w"], dim=0, index=1),
         node("w3", "slice", ["w2"], dim=1, start=5, end=25, step=1), node("y", "matmul", ["x2", "w3"])]), "matmul", 1
    yield "viewed factor", model(
        {"x": (F32, [4, 3, 10]), "w": (F32, [8, 10])},
        [node("x2", "reshape", ["x"], shape=[12, 10]), node("y", "linear", ["x2", "w"])]), "matmul", 1
    for attrs in ({}, {"alpha": 0.5}, {"beta": 2.0}, {"alpha": 1.5, "beta": -1.0}):
        yield f"addmm of a matrix {attrs}", model(
            {"c": (F32, [5, 12]), "a": (F32, [5, 8]), "b": (F32, [8, 12])},
            [node("y", "addmm", ["c", "a", "b"], **attrs)]), "matmul_bias", 1
    yield "addmm of a vector", model({"c": (F32, [12]), "a": (F32, [5, 8]), "b": (F32, [8, 12])},
                                     [node("y", "addmm", ["c", "a", "b"], alpha=0.25)]), "matmul_bias", 1
    yield "symbolic rows", model({"x": (BF16, ["t", 16]), "w": (BF16, [32, 16]), "b": (BF16, [32])},
                                 [node("p", "linear", ["x", "w", "b"]), gelu], ["p", "y"], TOKENS), "matmul_bias_gelu_aux", 1
    yield "symbolic batches and inner dimension", model(
        {"a": (F32, ["s", 5, "t"]), "b": (F32, ["s", 7, "t"])},
        [node("bt", "transpose", ["b"], dim0=1, dim1=2), node("y", "matmul", ["a", "bt"])], None,
        {**TOKENS, "s": {"min": 1, "max": 8, "hint": 3}}), "matmul", 1
    yield "rows that may be none", model({"x": (F32, ["t", 16]), "w": (F32, [32, 16])}, [node("y", "linear", ["x", "w"])],
                                         None, {"t": {"min": 0, "max": 8, "hint": 0}}), "matmul", 1
    yield "symbolic leading dimension", model(
        {"x": (F32, ["2*t", 8]), "w": (F32, [12, 8])},
        [node("half", "slice", ["x"], dim=0, start="t", end="2*t", step=1), node("y", "linear", ["half", "w"])], None,
        TOKENS), "matmul", 1
    integers = [node("xi", "cast", ["x"], dtype="int32"), node("wi", "cast", ["w"], dtype="int32"),
                node("y", "linear", ["xi", "wi"])]
    yield "int8", model({"x": (I8, [6, 32]), "w": (I8, [8, 32])}, integers), "matmul", 1
    fp8 = {"x": (FP8, [6, 32]), "w": (FP8, [48, 32]), "xs": (F32, [1]), "ws": (F32, [1]), "b": (BF16, [48])}
    for out in (BF16, F32):
        for bias in ([], ["b"]):
            inputs = {k: v for k, v in fp8.items() if bias or k != "b"}
            yield (f"float8 {out} {bias}", model(inputs, [node("y", "fp8_linear", ["x", "w", "xs", "ws"] + bias, out_dtype=out)]),
                   "matmul_bias" if bias else "matmul", 1, "--arch=sm_90a")
    # A scale for each row of x and each row of w. With one row, one scale counts as a vector.
    for rows, columns in ((6, 48), (1, 48)):
        for out, bias in ((BF16, []), (F32, []), (BF16, ["b"])):
            inputs = {**fp8, "x": (FP8, [rows, 32]), "xs": (F32, [rows]), "ws": (F32, [columns])}
            inputs = {k: v for k, v in inputs.items() if bias or k != "b"}
            yield (f"float8 with {rows} and {columns} scales {out} {bias}",
                   model(inputs, [node("y", "fp8_linear", ["x", "w", "xs", "ws"] + bias, out_dtype=out)]),
                   "matmul_bias" if bias else "matmul", 1, "--arch=sm_90a")
    yield "float8 with scales of symbolic rows", model(
        {"x": (FP8, ["t", 32]), "w": (FP8, [48, 32]), "xs": (F32, ["t"]), "ws": (F32, [48])},
        [node("y", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype=BF16)], None, TOKENS), "matmul", 1, "--arch=sm_90a"
    # Only the int8 product is a call; scales follow it. A zero point of x subtracts the sums of weights.
    quantized = {"x": (I8, [6, 32]), "w": (I8, [16, 32]), "ws": (F32, [16]), "xs": (F32, [1]), "xo": (I8, [1]), "b": (BF16, [16])}
    for offset in (False, True):
        for bias in (False, True):
            operands = ["x", "w", "ws", "xs"] + (["xo" if offset else None] if offset or bias else []) + (["b"] if bias else [])
            made = model({k: v for k, v in quantized.items() if k in operands},
                         [node("q", "static_quant_linear", operands, out_dtype=BF16), node("y", "silu", ["q"])])
            made["constants"] = [i for i in made["inputs"] if i["name"] not in ("x", "xs")]
            made["inputs"] = [i for i in made["inputs"] if i["name"] in ("x", "xs")]
            yield f"static_quant_linear offset {offset} bias {bias}", made, "matmul", 2
    gate = [node("g", "linear", ["x", "wg"]), node("u", "linear", ["x", "wu"]), node("a", "silu", ["g"]),
            node("h", "mul", ["a", "u"]), node("y", "linear", ["h", "wd"])]
    yield "SwiGLU, two weights", model({"x": (F32, [6, 32]), "wg": (F32, [48, 32]), "wu": (F32, [48, 32]),
                                        "wd": (F32, [32, 48])}, gate), "matmul", 4
    merged = [node("gu", "linear", ["x", "w"]), node("s", "split", ["gu"], split_sizes=[48, 48], dim=1),
              node("a", "silu", ["s.0"]), node("h", "mul", ["a", "s.1"]), node("y", "linear", ["h", "wd"])]
    merged[1]["outputs"] = ["s.0", "s.1"]
    yield "SwiGLU, a merged weight", model({"x": (F32, [6, 32]), "w": (F32, [96, 32]), "wd": (F32, [32, 48])}, merged), "matmul", 3


def refusals():
    """(name, model, node, part of the reason or None, patterns that claim nevertheless, options)."""
    erf = "cuBLASLt's GELU is the tanh form"
    nan = "cuBLASLt's ReLU answers 0 for NaN"
    yield "erf gelu", product(F32, bias=True, then=[node("y", "gelu", ["p"])]), "y", erf, ["matmul_bias"]
    yield "erf gelu without bias", product(F32, then=[node("y", "gelu", ["p"])]), "y", erf, ["matmul"]
    yield "relu", product(F16, bias=True, then=[node("y", "relu", ["p"])]), "y", nan, ["matmul_bias"]
    yield "relu without bias", product(F16, then=[node("y", "relu", ["p"])]), "y", nan, ["matmul"]
    yield "maximum", product(F32, then=[node("y", "maximum", ["p", 0.0])]), "y", None, ["matmul"]
    yield "value before a relu", product(F32, then=[node("g", "gt", ["p", 0]), node("y", "where", ["g", "p", 0.0])],
                                         outputs=["y", "p"]), "y", "output of the model as well", ["matmul"]
    yield "value before gelu in odd rows", product(F32, w=(42, 24), then=[node("y", "gelu", ["p"], approximate="tanh")],
                                                   outputs=["p", "y"]), "y", "a multiple of 8", ["matmul"]
    yield "bias along rows", product(F32, then=[node("y", "add", ["p", "r"])], more={"r": (F32, [5, 1])}), "y", \
        "another dimension than a bias", ["matmul"]
    yield "heads of several sequences", model(
        {"q": (F32, [2, 7, 4, 16]), "k": (F32, [2, 9, 4, 16])},
        [node("q2", "permute", ["q"], dims=[0, 2, 1, 3]), node("k2", "permute", ["k"], dims=[0, 2, 3, 1]),
         node("y", "matmul", ["q2", "k2"])]), "y", None, ["matmul"]
    yield "every second column", model(
        {"x": (F32, [4, 16]), "w": (F32, [8, 12])},
        [node("x2", "slice", ["x"], dim=1, start=0, end=16, step=2), node("y", "matmul", ["x2", "w"])]), "y", None, ["matmul"]
    yield "a vector", model({"x": (F32, [16]), "w": (F32, [16])}, [node("y", "matmul", ["x", "w"])]), "y", \
        None, []
    yield "inner dimension that may be 0", model({"a": (F32, [4, "t"]), "b": (F32, ["t", 6])},
                                                 [node("y", "matmul", ["a", "b"])], None,
                                                 {"t": {"min": 0, "max": 8, "hint": 3}}), "y", None, []
    yield "int8 to int8", model({"x": (I8, [4, 16]), "w": (I8, [8, 16])}, [node("y", "linear", ["x", "w"])]), "y", None, []
    yield "int32", model({"x": ("int32", [4, 16]), "w": ("int32", [8, 16])}, [node("y", "linear", ["x", "w"])]), "y", None, []

    # Built-in patterns would claim the refused nodes first, so they are disabled.
    apart = [f"--disable-pattern=fusec.{name}" for name in ("weight_only_linear", "gemm_prologue")]

    def integers(x, w, start=None):
        nodes = [node("xi", "cast", ["x"], dtype="int32"), node("wi", "cast", ["w"], dtype="int32")]
        if start is not None:
            nodes = [node("xc", "slice", ["x"], dim=1, start=start, end=start + w[-1], step=1),
                     node("xi", "cast", ["xc"], dtype="int32"), nodes[1]]
        return model({"x": (I8, x), "w": (I8, w)}, nodes + [node("y", "linear", ["xi", "wi"])])
    yield "int8 of odd depth", integers([4, 18], [8, 18]), "y", "a multiple of 4", [], *apart
    yield "int8 of odd columns", integers([4, 16], [6, 16]), "y", "a multiple of 4", [], *apart
    # A slice that the call's strides cannot express is copied first.
    yield "int8 at an odd offset", integers([4, 32], [8, 16], 2), "y", None, ["matmul"]
    yield "int8 along the other dimension", model(
        {"x": (I8, [4, 16]), "w": (I8, [16, 8])},
        [node("xi", "cast", ["x"], dtype="int32"), node("wi", "cast", ["w"], dtype="int32"),
         node("y", "matmul", ["xi", "wi"])]), "y", "run along the inner dimension", [], *apart

    def float8(k=32, n=48, scales=1, offset=0):
        nodes = [node("xc", "slice", ["x"], dim=1, start=offset, end=offset + k, step=1)] if offset else []
        nodes += [node("y", "fp8_linear", ["xc" if offset else "x", "w", "xs", "ws"], out_dtype=BF16)]
        return model({"x": (FP8, [6, k + 2 * offset]), "w": (FP8, [n, k]), "xs": (F32, [6 if scales > 1 else 1]),
                      "ws": (F32, [1])}, nodes)
    yield "float8 before sm_89", float8(), "y", None, []
    yield "float8 of odd depth", float8(k=24), "y", None, [], "--arch=sm_90a"
    yield "float8 of odd columns", float8(n=40), "y", None, [], "--arch=sm_90a"
    yield "float8 with a scale a row of one factor", float8(scales=6), "y", "where both factors have", [], "--arch=sm_90a"
    rows = model({"x": (FP8, [6, 32]), "w": (FP8, [48, 32]), "xs": (F32, [6]), "ws": (F32, [48])},
                 [node("y", "fp8_linear", ["x", "w", "xs", "ws"], out_dtype=BF16)])
    yield "float8 with scales of rows elsewhere", rows, "y", "on sm_90 alone", [], "--arch=sm_120"
    quantized = {"x": (I8, [6, 32]), "w": (I8, [18, 32]), "ws": (F32, [18]), "xs": (F32, [1])}
    yield "static_quant_linear of odd columns", model(quantized, [node("y", "static_quant_linear", list(quantized),
                                                                       out_dtype=BF16)]), "y", "a multiple of 4", []
    quantized = {"x": (I8, [6, 32]), "w": (I8, [16, 32]), "ws": (F32, [16]), "xs": (F32, [1]), "xo": (I8, [1])}
    yield "an offset and weights that change", model(quantized, [node("y", "static_quant_linear", list(quantized),
                                                                      out_dtype=BF16)]), "y", "from constant weights", []
    yield "float8 at an odd offset", float8(offset=8), "y", None, ["matmul"], "--arch=sm_90a"
    yield "rounded intermediates", product(F16, bias=True, then=[node("y", "gelu", ["p"], approximate="tanh")]), "y", None, \
        ["matmul_bias"], "--round-intermediates"
    yield "a node apart", product(F16, bias=True, then=[node("y", "gelu", ["p"], approximate="tanh")]), "y", None, \
        ["matmul_bias"], "--no-fuse-node=y"
    yield "a disabled pattern", product(F32), "p", None, [], "--disable-pattern=cublaslt.matmul"
    yield "the default", product(F32), "p", None, [], "--gemm=builtin"
    yield "auto, too small to gain", product(BF16, (1, 64), (128, 64), then=[node("y", "silu", ["p"])]), "p", None, [], "--gemm=auto"


class Checker:
    def __init__(self, args, folder):
        self.args, self.folder, self.failures, self.checked = args, folder, [], 0

    def run(self, program, file, options):
        command = [program, file, "--gemm=cublaslt", *options]
        gemm = [o for o in options if o.startswith("--gemm=")]
        if gemm:
            command.remove("--gemm=cublaslt")
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)

    def partition(self, file, options):
        told = self.run(self.args.fusec, file, [*options, "--emit=partition", "--no-nvrtc"])
        return json.loads(told.stdout) if told.returncode == 0 else {"error": told.stderr.decode(), "groups": [], "launches": 0}

    def claims(self, report):
        return [g["claimed_by"] for g in report["groups"] if g["codegen"] == "cublaslt"]

    def executes(self, file, options):
        """"" or what is wrong with the values."""
        verify = [] if any(o.startswith("--verify") for o in options) else ["--verify"]
        told = self.run(self.args.fusec_run, file, [*options, *verify, "--device=emulator", "--host-part=recorded",
                                                    "--random"])
        return "" if told.returncode == 0 else told.stderr.decode("utf-8", "replace")[-800:]

    def check(self, name, graph, wanted, launches, reason, asked, options):
        file = os.path.join(self.folder, "model.json")
        with open(file, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        planned = [o for o in options if not o.startswith("--verify")]
        report = self.partition(file, planned)
        found = self.claims(report)
        if wanted is not None and found != wanted:
            self.failures.append(f"{name}: calls {found}, expected {wanted} {report.get('error', '')}")
        if launches is not None and report["launches"] != launches:
            self.failures.append(f"{name}: {report['launches']} launches, expected {launches}")
        if reason:
            told = self.run(self.args.fusec, file, [*planned, "--no-nvrtc", f"--explain={asked}"])
            if reason not in told.stdout.decode():
                self.failures.append(f"{name}: {reason!r} is not in\n{told.stdout.decode()}{told.stderr.decode()}")
        self.checked += 1
        if self.checked % self.args.run_every == 0 and (wrong := self.executes(file, options)):
            self.failures.append(f"{name}: {wrong}")

    def check_manifest(self):
        """The manifest has the call with its sizes as formulas, and fits its schema."""
        schemas = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "schemas")
        with open(os.path.join(schemas, "manifest.schema.json"), encoding="utf-8") as f:
            schema = json.load(f)
        file = os.path.join(self.folder, "manifest.json")
        gelu = node("g", "gelu", ["p"], approximate="tanh")
        graph = model({"x": (BF16, ["t", 16]), "w": (BF16, [32, 16]), "b": (BF16, [32])},
                      [node("p", "linear", ["x", "w", "b"]), gelu], ["p", "g"], TOKENS)
        with open(file, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        report = json.loads(self.run(self.args.fusec, file, ["--emit=manifest", "--no-nvrtc"]).stdout)
        if wrong := json_schema.problems(report, schema):
            self.failures.append(f"the manifest disagrees with its schema: {wrong[:3]}")
        call = report["launches"][0]["product"]
        wanted = {"m": "32", "n": "t", "k": "16", "epilogue": "CUBLASLT_EPILOGUE_GELU_AUX_BIAS",
                  "compute_type": "CUBLAS_COMPUTE_32F", "aux": "p"}
        if {k: call.get(k) for k in wanted} != wanted or not call["a"]["transposed"]:
            self.failures.append(f"the manifest's call is {call}")
        if self.run(self.args.fusec, file, ["--gemm=cublas"]).returncode != 2:
            self.failures.append("--gemm=cublas is taken")

    def check_nan(self):
        """A ReLU written as where() turns NaN into 0, by the library's ReLU. The op relu keeps NaN, by a generated
        kernel."""
        nan = float("nan")
        inputs = os.path.join(self.folder, "nan.safetensors")
        x = [nan if i == 0 else float(i - 8) for i in range(16)]
        w = [1.0 if i % 5 == 0 else 0.0 for i in range(16)]
        tensors.write(inputs, {name: ("float32", [4, 4], struct.pack("<16f", *values)) for name, values in (("x", x), ("w", w))})
        where = [node("g", "gt", ["p", 0]), node("y", "where", ["g", "p", 0.0])]
        for name, then, wanted in (("where", where, 0.0), ("relu", [node("y", "relu", ["p"])], nan)):
            file, out = os.path.join(self.folder, "nan.json"), os.path.join(self.folder, "out.safetensors")
            with open(file, "w", encoding="utf-8") as f:
                json.dump(product(F32, (4, 4), (4, 4), then=then), f)
            told = self.run(self.args.fusec_run, file, ["--device=emulator", f"--inputs={inputs}", f"--outputs={out}",
                                                        "--verify"])
            if told.returncode != 0:
                self.failures.append(f"NaN in {name}: {told.stderr.decode()[-500:]}")
                continue
            y = tensors.read(out)["y"][2]
            if not all(v == wanted or math.isnan(v) and math.isnan(wanted) for v in y[:4]):
                self.failures.append(f"NaN in {name}: {y[:4]}, expected {wanted}")

    def check_shared_descriptors(self):
        """Repeated layers share a descriptor."""
        graph = model({"x": (BF16, ["t", 32]), **{f"w{i}": (BF16, [32, 32]) for i in range(4)}},
                      [node(f"y{i}", "linear", ["x" if i == 0 else f"y{i - 1}", f"w{i}"]) for i in range(4)], None, TOKENS)
        file, out = os.path.join(self.folder, "layers.json"), os.path.join(self.folder, "layers.cu")
        with open(file, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        self.run(self.args.fusec, file, ["-o", out, "--no-nvrtc"])
        with open(out, encoding="utf-8") as f:
            text = f.read()
        if "model_product products[1];" not in text or text.count("multiply(ctx, 0,") != 4:
            self.failures.append("four equal layers do not share a descriptor")
        self.run(self.args.fusec, file, ["-o", out, "--no-nvrtc", "--gemm=builtin"])
        with open(out, encoding="utf-8") as f:
            if "cublasLt.h" in f.read():
                self.failures.append("a file without calls includes cublasLt.h")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--only", default="")
    parser.add_argument("--run-every", type=int, default=1, help="of the models each N-th alone is executed")
    args = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory(prefix="fusec_cublaslt_") as folder:
        checker = Checker(args, folder)
        for name, graph, pattern, launches, *options in calls():
            if args.only in name:
                count += 1
                wanted = ["cublaslt." + pattern] * {3: 2, 4: 3}.get(launches, 1)
                checker.check(name, graph, wanted, launches, None, None, options)
        for name, graph, asked, reason, patterns, *options in refusals():
            if args.only in name:
                count += 1
                checker.check(name, graph, ["cublaslt." + p for p in patterns], None, reason, asked, options)
        if not args.only:
            checker.check_nan()
            checker.check_manifest()
            checker.check_shared_descriptors()
    for failure in checker.failures:
        print("FAILED", failure)
    print(f"{count} models, {len(checker.failures)} failures")
    sys.exit(1 if checker.failures else 0)


if __name__ == "__main__":
    main()
