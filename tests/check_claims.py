#!/usr/bin/env python3
"""check_claims.py FUSEC FUSEC_RUN [--models=N] [--run=N] [--seed=N] [--only=FAMILY] [--keep=FOLDER]

Random models of the families that built-in patterns claim (gated units with their products, epilogues, quantized and
grouped products, trees of splits), with random structure, dtypes and sizes. Under full each model must need no more
launches than an expert would write, and must be claimed by a pattern of its family or rewritten to one op. For --run
models the emulator executes the kernels, with all patterns and with none, and results are compared with the reference
without 16-bit intermediates, within the tolerances of the corpus.

Prints each failure and the number of models. Exit 0 only without failures."""
import argparse, json, math, os, random, subprocess, sys, tempfile

import tensors


class Model:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.dtype = self.chance.choice(["float16", "bfloat16", "bfloat16", "float32"])
        self.nodes, self.inputs, self.constants, self.symbols = [], [], [], {}
        self.launches, self.claims = 1, ""
        self.published = True  # whether a pattern must claim it: other gated units are left to the partitioner

    def pick(self, *options):
        return self.chance.choice(options)

    def maybe(self, share=0.5):
        return self.chance.random() < share

    def node(self, op, *inputs, **attrs):
        name = f"n{len(self.nodes)}_{op}"
        entry = {"name": name, "op": op, "inputs": list(inputs)}
        if attrs:
            entry["attrs"] = attrs
        self.nodes.append(entry)
        return name

    def pair(self, op, x, **attrs):
        name = self.node(op, x, **attrs)
        return name + ".0", name + ".1"

    def either(self, op, a, b):
        return self.node(op, a, b) if self.maybe() else self.node(op, b, a)

    def input(self, shape, dtype=None):
        self.inputs.append({"name": f"x{len(self.inputs)}", "dtype": dtype or self.dtype, "shape": shape})
        return self.inputs[-1]["name"]

    def constant(self, shape, dtype=None):
        self.constants.append({"name": f"w{len(self.constants)}", "dtype": dtype or self.dtype, "shape": shape})
        return self.constants[-1]["name"]

    def model(self, outputs):
        text = {"fusec": 1, "name": "claims", "inputs": self.inputs, "constants": self.constants, "nodes": self.nodes,
                "outputs": outputs}
        if self.symbols:
            text["symbols"] = self.symbols
        return text

    # --- products

    def rows(self):
        """The leading dimensions of an activation."""
        if self.maybe(0.2):
            self.symbols = {"tokens": {"min": 1, "max": 64, "hint": self.pick(5, 16)}}
            return self.pick(["tokens"], [2, "tokens"])
        return self.pick([1], [3], [7], [16], [33], [2, 5], [3, 4])

    def product(self, x, lead, k, n):
        """x [lead, k] times a weight, as [lead, n], in one of the ways to write a linear layer."""
        bias = self.maybe(0.3)
        way = self.pick("linear", "linear", "matmul", "addmm")
        if way == "linear":
            return self.node("linear", x, self.constant([n, k]), *([self.constant([n])] if bias else []))
        if self.maybe(0.3):
            weight = self.constant([k, n])
        else:
            weight = self.node("permute", self.constant([n, k]), dims=[1, 0]) if self.maybe() else self.node(
                "transpose", self.constant([n, k]), dim0=0, dim1=1)
        if way == "addmm" and len(lead) == 1:
            return self.node("addmm", self.constant([n]), x, weight)
        y = self.node("matmul", x, weight)
        return self.either("add", y, self.constant([n])) if bias else y

    # --- gates

    def wide(self, x):
        return self.node("cast", x, dtype="float32") if self.dtype != "float32" else x

    def narrow(self, x):
        return self.node("cast", x, dtype=self.dtype) if self.dtype != "float32" else x

    def sigmoid(self, x):
        way = self.pick("op", "op", "div", "reciprocal")
        if way == "op":
            return self.node("sigmoid", x)
        d = self.either("add", self.node("exp", self.node("neg", x)), 1)
        return self.node("reciprocal", d) if way == "reciprocal" else self.node("div", 1.0, d)

    def swiglu(self, g, u):
        way = self.pick("op", "written", "assoc", "inner", "div", "cast_silu", "cast_sigmoid", "cast_all", "alpha", "limited",
                        "swiglu")
        if way == "op":
            return self.either("mul", self.node("silu", g), u)
        if way == "written":
            return self.either("mul", self.either("mul", g, self.sigmoid(g)), u)
        if way == "assoc":
            return self.either("mul", self.either("mul", g, u), self.sigmoid(g))
        if way == "inner":
            return self.either("mul", g, self.either("mul", self.sigmoid(g), u))
        if way == "div":
            d = self.either("add", self.node("exp", self.node("neg", g)), 1)
            return self.either("mul", self.node("div", g, d), u)
        if way == "cast_silu":
            return self.either("mul", self.narrow(self.node("silu", self.wide(g))), u)
        if way == "cast_sigmoid":
            return self.either("mul", self.either("mul", self.narrow(self.sigmoid(self.wide(g))), g), u)
        if way == "cast_all":
            w = self.wide(g)
            return self.narrow(self.either("mul", self.either("mul", w, self.node("sigmoid", w)), self.wide(u)))
        if way == "alpha":
            factor = self.pick(1.702, 1.5)
            self.published = factor == 1.702
            s = self.node("sigmoid", self.either("mul", g, factor))
            return self.either("mul", self.either("mul", g, s), u)
        if way == "limited":
            g = self.node("clamp", g, max=7.0)
            u = self.either("add", self.node("clamp", u, min=-7.0, max=7.0), 1)
            s = self.node("sigmoid", self.either("mul", g, 1.702))
            return self.either("mul", u, self.either("mul", g, s))
        return self.node("swiglu", g, u)

    def gelu_tanh(self, x):
        cube = self.pick(lambda: self.node("pow", x, 3), lambda: self.node("mul", self.node("mul", x, x), x),
                         lambda: self.node("mul", x, self.node("mul", x, x)))()
        inner = self.either("mul", self.either("add", x, self.either("mul", cube, 0.044715)), 0.7978845608028654)
        return self.either("mul", self.either("mul", x, 0.5), self.either("add", self.node("tanh", inner), 1))

    def gelu_erf(self, x):
        inner = self.either("mul", x, 0.7071067811865476) if self.maybe() else self.node("div", x, 1.4142135623730951)
        one = self.either("add", self.node("erf", inner), 1)
        if self.maybe():
            return self.either("mul", self.either("mul", x, 0.5), one)
        return self.either("mul", self.either("mul", x, one), 0.5)

    def geglu(self, g, u):
        way = self.pick("op", "tanh_op", "erf", "tanh", "geglu", "cast")
        if way == "geglu":
            return self.node("geglu", g, u, approximate=self.pick("none", "tanh"))
        if way == "op":
            a = self.node("gelu", g)
        elif way == "tanh_op":
            a = self.node("gelu", g, approximate="tanh")
        elif way == "cast":
            a = self.narrow(self.pick(self.gelu_erf, self.gelu_tanh)(self.wide(g)))
        else:
            a = self.gelu_erf(g) if way == "erf" else self.gelu_tanh(g)
        return self.either("mul", a, u)

    def reglu(self, g, u):
        way = self.pick("relu", "relu", "squared", "reglu", "clamp")
        if way == "reglu":
            return self.node("reglu", g, u)
        a = self.node("clamp", g, min=0) if way == "clamp" else self.node("relu", g)
        if way == "squared":
            a = self.node("square", a) if self.maybe() else self.node("mul", a, a)
        return self.either("mul", a, u)

    def glu(self, g, u):
        return self.either("mul", self.sigmoid(g), u)

    def halves(self, m, lead, f):
        """The two halves of m's last dimension of 2 f elements."""
        last = self.pick(-1, len(lead))
        way = self.pick("split", "chunk", "slices", "select", "interleaved", "interleaved_select")
        if way == "split":
            return self.pair("split", m, split_sizes=[f, f], dim=last)
        if way == "chunk":
            return self.pair("chunk", m, chunks=2, dim=last)
        if way == "slices":
            return (self.node("slice", m, dim=last, start=0, end=f), self.node("slice", m, dim=last, start=f, end=2 * f))
        if way == "interleaved":
            return (self.node("slice", m, dim=last, start=0, step=2), self.node("slice", m, dim=last, start=1, step=2))
        v = self.node("reshape", m, shape=lead + ([2, f] if way == "select" else [f, 2]))
        dim = -2 if way == "select" else -1
        return self.node("select", v, dim=dim, index=0), self.node("select", v, dim=dim, index=1)

    def family_glu(self):
        lead, k, f = self.rows(), self.pick(16, 32, 33, 48, 64), self.pick(8, 16, 33, 40, 64)
        x = self.input(lead + [k])
        if self.maybe():
            g, u = self.product(x, lead, k, f), self.product(x, lead, k, f)
            if self.maybe(0.2):
                g, u = u, g
        else:
            m = self.product(x, lead, k, 2 * f)
            g, u = self.halves(m, lead, f)
            if self.maybe(0.3):
                g, u = u, g
        h = self.pick(self.swiglu, self.swiglu, self.geglu, self.reglu, self.glu)(g, u)
        self.claims = "fusec.dual_gemm_"
        if self.maybe(0.6):
            self.launches = 2
            h = self.product(h, lead, f, k)
            if self.maybe(0.4):
                h = self.either("add", h, x)
        return [h]

    def family_activation(self):
        lead, f = self.rows(), self.pick(8, 16, 33, 64)
        if self.maybe():
            g, u = self.input(lead + [f]), self.input(lead + [f])
        else:
            g, u = self.halves(self.input(lead + [2 * f]), lead, f)
        self.claims = "fusec."
        h = self.pick(self.swiglu, self.geglu, self.reglu, self.glu)(g, u)
        if self.nodes[-1]["op"] in ("swiglu", "geglu", "reglu"):
            self.claims = ""  # a single op needs no claim
        return [h]

    # --- epilogues

    def epilogue(self, y, shape, steps):
        dtype = self.dtype
        for _ in range(steps):
            step = self.pick("bias", "column", "scale", "activation", "residual", "mul", "clamp", "cast", "self")
            if step == "bias":
                y = self.either("add", y, self.constant([shape[-1]], dtype))
            elif step == "column":
                y = self.either("add", y, self.constant([shape[-2] if len(shape) > 1 else 1, 1], dtype)) if isinstance(
                    shape[-2], int) else self.node("neg", y)
            elif step == "scale":
                y = self.either("mul", y, self.pick(0.5, 0.125, 2))
            elif step == "activation":
                y = self.node(self.pick("relu", "gelu", "silu", "sigmoid", "tanh", "hardswish"), y)
            elif step in ("residual", "mul"):
                y = self.either("add" if step == "residual" else "mul", y, self.input(shape, dtype))
            elif step == "clamp":
                y = self.node("clamp", y, min=-3.0, max=3.0)
            elif step == "self":
                y = self.either("mul", y, self.node("sigmoid", y))
            elif step == "cast" and dtype != "float32":
                dtype = "float32"
                y = self.node("cast", y, dtype=dtype)
        if self.maybe(0.2):
            y = self.node("quantize", y, self.constant([1], "float32"), dtype="int8")
        return y

    def family_gemm(self):
        way = self.pick("product", "product", "bmm", "batched", "conv")
        k, n = self.pick(16, 33, 64), self.pick(8, 17, 64)
        if way == "product":
            lead = self.rows()
            y, shape = self.product(self.input(lead + [k]), lead, k, n), lead + [n]
        elif way == "conv":
            y = self.node("conv2d", self.input([2, 3, 9, 9]), self.constant([n, 3, 3, 3]), padding=self.pick(0, 1))
            side = 9 if self.nodes[-1]["attrs"]["padding"] else 7
            shape = [2, n, side, side]
        else:
            lead, m = self.pick([2], [3]), self.pick(5, 16)
            y = self.node("bmm" if way == "bmm" else "matmul", self.input(lead + [m, k]), self.input(lead + [k, n]))
            shape = lead + [m, n]
        first = y
        y = self.epilogue(y, shape, self.chance.randint(1, 5))
        self.claims = "fusec."
        if y == first:
            self.claims = ""
        return [y, first] if self.maybe(0.2) and y != first else [y]

    # --- quantized and grouped products

    def family_quant(self):
        t, k, f = self.pick(3, 7, 16), self.pick(32, 64), self.pick(16, 33, 48)
        out = self.dtype if self.dtype != "float32" else "float16"
        self.dtype = out
        kind = self.pick("int8", "int4", "fp8", "mxfp4", "grouped")
        scale = self.constant([1], "float32")
        if kind in ("int8", "int4"):
            x = self.input([t, k], "int8")
        elif kind == "fp8":
            x = self.input([t, k], "float8_e4m3fn")
        else:
            x = self.input([t, k])
        offsets = self.input([2], "int32") if kind == "grouped" else None

        def product(n):
            if kind == "int8":
                return self.node("static_quant_linear", x, self.constant([n, k], "int8"), self.constant([n], "float32"), scale,
                                 out_dtype=out)
            if kind == "int4":
                return self.node("static_quant_linear_int4", x, self.constant([n, k], "int4"),
                                 self.constant([n, k // 32], "float32"), None, scale, group_size=32, out_dtype=out)
            if kind == "fp8":
                return self.node("fp8_linear", x, self.constant([n, k], "float8_e4m3fn"), scale,
                                 self.constant([self.pick(1, n)], "float32"), out_dtype=out)
            if kind == "mxfp4":
                return self.node("mxfp4_linear", x, self.constant([n, k], "float4_e2m1fn"),
                                 self.constant([n, k // 32], "float8_e8m0fnu"), out_dtype=out)
            return self.node("grouped_matmul", x, self.constant([2, k, n]), offsets)

        if self.maybe(0.7):
            if self.maybe():
                g, u = product(f), product(f)
            else:
                g, u = self.halves(product(2 * f), [t], f)
            h = self.pick(self.swiglu, self.geglu, self.reglu)(g, u)
            if self.maybe(0.4):
                h = self.node("quantize", h, self.constant([1], "float32"), dtype=self.pick("int8", "float8_e4m3fn"))
            self.claims = "fusec.dual_"
            return [h]
        y = self.node(self.pick("relu", "silu"), product(f))
        self.claims = "fusec."
        return [self.either("add", y, self.input([t, f]))]

    # --- trees of pieces of one tensor

    def family_split(self):
        lead, parts, f = self.pick([5], [7], [2, 3]), self.pick(2, 3, 4), self.pick(4, 8, 13)
        x = self.input(lead + [parts * f * 2])
        dim = self.pick(-1, len(lead))
        name = self.node("split", x, split_sizes=[2 * f] * parts, dim=dim)
        pieces = [f"{name}.{i}" for i in range(parts)]
        halves = [self.halves(p, lead, f) for p in pieces]
        done = [self.pick(self.swiglu, self.geglu, self.reglu, lambda a, b: self.node("mul", a, b))(g, u) for g, u in halves]
        if self.maybe():
            y = done[0]
            for d in done[1:]:
                y = self.node("add", y, d)
            return [y]
        return [self.node("concat", *done, dim=-1)] if self.maybe() else done


TOLERANCES = {"F32": (2e-5, 1e-4), "F16": (1e-2, 1e-2), "BF16": (3e-2, 3e-2)}
HALVES = {"float16": TOLERANCES["F16"], "bfloat16": TOLERANCES["BF16"]}


def without_rounding(model):
    """The same model with float32 between its 16-bit inputs and outputs: the exact result without intermediate
    rounding."""
    twin = json.loads(json.dumps(model))
    wide, casts = {}, []
    for tensor in twin["inputs"] + twin["constants"]:
        if tensor["dtype"] in HALVES:
            wide[tensor["name"]] = tensor["name"] + "_wide"
            casts.append({"name": tensor["name"] + "_wide", "op": "cast", "inputs": [tensor["name"]],
                          "attrs": {"dtype": "float32"}})
    for node in twin["nodes"]:
        if node["op"] != "mxfp4_linear":  # which takes only 16-bit operands
            node["inputs"] = [wide.get(i, i) if isinstance(i, str) else i for i in node["inputs"]]
        for attribute in ("dtype", "out_dtype"):
            if node.get("attrs", {}).get(attribute) in HALVES:
                node["attrs"][attribute] = "float32"
    twin["nodes"] = casts + twin["nodes"]
    return twin


def check_values(args, model, path, seed, folder):
    """"" if the kernels, with and without patterns, compute the values of the model; else what is wrong."""
    twin, want, got = (os.path.join(folder, name) for name in ("twin.json", "want.safetensors", "got.safetensors"))
    with open(twin, "w", encoding="utf-8") as f:
        json.dump(without_rounding(model), f)
    text, error = run([args.fusec_run, twin, f"--random={seed}", "--device=reference", f"--outputs={want}"], folder)
    if text is None:
        return f"without rounding: {error}"
    expected = tensors.read(want)
    narrowest = max([HALVES[t["dtype"]] for t in model["inputs"] + model["constants"] if t["dtype"] in HALVES],
                    default=TOLERANCES["F32"])
    for options in ([], ["--disable-pattern=all"]):
        text, error = run([args.fusec_run, path, f"--random={seed}", "--device=emulator", f"--outputs={got}"] + options,
                          folder)
        if text is None:
            return f"{' '.join(options)}: {error}"
        for name, tensor in tensors.read(got).items():
            rtol, atol = max(narrowest, TOLERANCES.get(tensor[0], (0, 0)))
            # Rounding errors are relative to the intermediate values, even if these cancel out.
            finite = [v for v in expected[name][2] if math.isfinite(v)]
            size = math.sqrt(sum(v * v for v in finite) / max(1, len(finite)))
            why = tensors.difference(tensor, expected[name], rtol, atol * max(1, size))
            if why is not None:
                return f"{' '.join(options)} {name} {why}"
    return ""


FAMILIES = ["glu", "glu", "activation", "gemm", "quant", "split"]


apart = []  # seeds without a claim; few are allowed


def run(command, folder):
    process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if process.returncode != 0:
        return None, process.stderr.decode("utf-8", "replace").strip()[-600:]
    return process.stdout.decode("utf-8", "replace"), ""


def is_one_op(path):
    """Whether the rewritten graph is one op (a linear with its bias, for example), which needs no claim."""
    with open(path, encoding="utf-8") as f:
        return sum(" = " in line for line in f) == 1


def check(args, seed, executed, folder):
    made = Model(seed)
    family = args.only or FAMILIES[seed % len(FAMILIES)]
    outputs = getattr(made, "family_" + family)()
    path = os.path.join(folder, "model.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(made.model(outputs), f)
    rewritten = os.path.join(folder, "rewritten.txt")
    text, error = run([args.fusec, path, "--emit=partition", f"--emit=ir={rewritten}", "--no-nvrtc"], folder)
    if text is None:
        return family, error
    report = json.loads(text)
    claims = [g["claimed_by"] for g in report["groups"]]
    is_claimed = any(c and c.startswith(made.claims) for c in claims) or is_one_op(rewritten)
    wanted = made.claims and made.published and not is_claimed
    if (report["launches"] > made.launches or wanted) and made.dtype == "float32" and family == "glu":
        apart.append(seed)
        return family, ""
    if report["launches"] > made.launches:
        return family, f"{report['launches']} launches, expected at most {made.launches}; claims {claims}"
    if wanted:
        return family, f"nothing is claimed by {made.claims}...: {claims}"
    # Models that quantize are not executed, because a rounding to an integer may differ.
    if executed and all(node["op"] != "quantize" for node in made.nodes):
        return family, check_values(args, made.model(outputs), path, seed, folder)
    return family, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--models", type=int, default=120)
    parser.add_argument("--run", type=int, default=8, help="one of so many models is executed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    args = parser.parse_args()
    args.fusec, args.fusec_run = os.path.abspath(args.fusec), os.path.abspath(args.fusec_run)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="fusec_claims_") as folder:
        for i in range(args.models):
            seed = args.seed + i
            family, why = check(args, seed, args.run and i % args.run == 0, folder)
            if not why:
                continue
            failures += 1
            print(f"FAILED {family}, seed {seed}: {why}", flush=True)
            if args.keep:
                os.makedirs(args.keep, exist_ok=True)
                os.replace(os.path.join(folder, "model.json"), os.path.join(args.keep, f"{family}_{seed}.json"))
    # FFMA kernels have no form for a float32 gate whose two weights have different layouts or interleaved columns.
    if len(apart) > max(1, args.models // 500):
        failures += 1
        print(f"FAILED: float32 gates of seeds {apart} are products apart")
    print(f"{args.models} models, {len(apart)} of them float32 gates apart, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
