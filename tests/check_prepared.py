#!/usr/bin/env python3
"""check_prepared.py FUSEC FUSEC_RUN [--random=N] [--seed=N]

Work on constants, which M_prepare does. Small models state what is prepared and how many launches remain; N random
models pass their weights through casts, sums, concatenations, permutes and reductions. Each is compiled under every
strategy, its report and manifest are checked, and the emulator runs it through its compiled host part, M_prepare first.
Exit 0 only without failures."""
import argparse, json, os, random, subprocess, sys, tempfile


class Model:
    def __init__(self, name, symbols=None):
        self.data = {"fusec": 1, "name": name, "symbols": symbols or {}, "inputs": [], "constants": [], "nodes": [],
                     "outputs": []}

    def tensor(self, kind, name, shape, dtype="float32", **more):
        self.data[kind].append({"name": name, "dtype": dtype, "shape": shape, **more})
        return name

    def input(self, name, shape, dtype="float32"):
        return self.tensor("inputs", name, shape, dtype)

    def constant(self, name, shape, dtype="float32", **more):
        return self.tensor("constants", name, shape, dtype, **more)

    def op(self, name, op, inputs, **attributes):
        self.data["nodes"].append({"name": name, "op": op, "inputs": inputs, "attrs": attributes})
        return name

    def output(self, *names):
        self.data["outputs"] += names
        return self


def cast_weight():
    """A cast to fewer bytes is prepared."""
    m = Model("cast_weight", {"n": {"max": 64, "hint": 8}})
    x, w = m.input("x", ["n", 64], "float16"), m.constant("w", [48, 64])
    return m.output(m.op("y", "linear", [x, m.op("c", "cast", [w], dtype="float16")])), ["c"], 1


def transposed_weight():
    """A transpose that a product reads is index arithmetic and is not prepared; neither are views before and after it.
    """
    m = Model("transposed_weight")
    x, w = m.input("x", [32, 64], "float16"), m.constant("w", [48, 64], "float16")
    return m.output(m.op("y", "matmul", [x, m.op("t", "transpose", [w], dim0=0, dim1=1)])), [], 1


def concatenated():
    m = Model("concatenated")
    x = m.input("x", [32, 64], "float16")
    parts = [m.constant(f"w{i}", [16 * (i + 1), 64], "float16") for i in range(3)]
    return m.output(m.op("y", "linear", [x, m.op("w", "concat", parts, dim=0)])), ["w"], 1


def weight_norm():
    """g * v / |v|: reductions over weights are computed once."""
    m = Model("weight_norm")
    x, v, g = m.input("x", [32, 64]), m.constant("v", [48, 64]), m.constant("g", [48, 1])
    norm = m.op("norm", "vector_norm", [v], dim=[1], keepdim=True)
    w = m.op("w", "mul", [m.op("d", "div", [v, norm]), g])
    return m.output(m.op("y", "linear", [x, w])), ["norm", "d", "w"], 1


def low_rank():
    """A product of weights, added to another weight."""
    m = Model("low_rank")
    x = m.input("x", [32, 64], "float16")
    w, a, b = (m.constant(*t, "float16") for t in (("w", [48, 64]), ("a", [8, 64]), ("b", [48, 8])))
    ba = m.op("ba", "matmul", [b, a])
    return m.output(m.op("y", "linear", [x, m.op("sum", "add", [w, ba])])), ["ba", "sum"], 1


def batch_norm_parts():
    """The values that a norm computes from its statistics before it reads the input."""
    m = Model("batch_norm_parts", {"n": {"max": 16, "hint": 2}})
    x = m.input("x", ["n", 8, 10, 10])
    gamma, beta, mean, var = (m.constant(c, [8, 1, 1]) for c in ("gamma", "beta", "mean", "var"))
    scale = m.op("scale", "mul", [m.op("r", "rsqrt", [m.op("e", "add", [var, 1e-5])]), gamma])
    shift = m.op("shift", "sub", [beta, m.op("ms", "mul", [mean, scale])])
    y = m.op("y", "add", [m.op("s", "mul", [x, scale]), shift])
    return m.output(y), ["e", "r", "scale", "ms", "shift"], 1


def wider_where_read():
    """A result larger than its constants is computed where it is read: one kernel, fewer bytes."""
    m = Model("wider_where_read")
    x, w, s = m.input("x", [64, 512]), m.constant("w", [512], "float16"), m.constant("s", [64, 1])
    wide = m.op("wide", "mul", [m.op("c", "cast", [w], dtype="float32"), s])
    return m.output(m.op("y", "add", [x, wide])), [], 1


def kept_apart():
    m = Model("kept_apart")
    x, w = m.input("x", [8, 16], "float16"), m.constant("w", [16])
    m.op("c", "cast", [w], dtype="float16")
    m.data["nodes"][-1]["fuse"] = False
    return m.output(m.op("y", "mul", [x, "c"])), [], 2


def an_output():
    """An output is written at every launch, even if it depends on constants only."""
    m = Model("an_output")
    x, w = m.input("x", [8, 16]), m.constant("w", [16, 16])
    s = m.op("s", "softmax", [w], dim=1)
    return m.output(m.op("y", "linear", [x, s]), s), [], 2


def symbolic():
    """A value that depends on a symbol is not prepared."""
    m = Model("symbolic", {"n": {"max": 64, "hint": 16}})
    x, table = m.input("x", ["n", 16]), m.constant("table", [64, 16])
    rows = m.op("rows", "slice", [m.op("soft", "softmax", [table], dim=1)], dim=0, start=0, end="n")
    return m.output(m.op("y", "mul", [x, rows])), ["soft"], 1


def view_of_prepared():
    """A view of a prepared value; as an output it is a copy."""
    m = Model("view_of_prepared")
    x, w = m.input("x", [32, 64], "float16"), m.constant("w", [64, 48])
    c = m.op("c", "cast", [w], dtype="float16")
    v = m.op("v", "reshape", [c], shape=[16, 4, 48])
    return m.output(m.op("y", "matmul", [x, c]), v), ["c"], 2


def shared_by_layers():
    m = Model("shared_by_layers")
    x = m.input("x", [32, 64], "float16")
    w = m.op("c", "cast", [m.constant("w", [64, 64])], dtype="float16")
    for i in range(3):
        x = m.op(f"a{i}", "relu", [m.op(f"y{i}", "linear", [x, w])])
    return m.output(x), ["c"], 3


def tables():
    """Cosine and sine tables of RoPE, read twice."""
    m = Model("tables")
    q, k = m.input("q", [2, 4, 32, 16]), m.input("k", [2, 4, 32, 16])
    positions = m.constant("positions", [32, 1])
    angles = m.op("angles", "mul", [positions, m.constant("frequency", [16])])
    c, s = m.op("c", "cos", [angles]), m.op("s", "sin", [angles])
    return m.output(m.op("rq", "rope", [q, c, s]), m.op("rk", "rope", [k, c, s])), None, 1


def with_aliases():
    m = Model("with_aliases")
    state, w = m.input("state", [16, 16]), m.constant("w", [16, 16])
    soft = m.op("soft", "softmax", [w], dim=1)
    m.output(m.op("next", "add", [state, soft]))
    m.data["aliases"] = {"next": "state"}
    return m, ["soft"], 1


def integers():
    """Sorted weights and cumulative sums: kernels with scratch memory."""
    m = Model("integers")
    x, w = m.input("x", [4, 64]), m.constant("w", [4, 64])
    total = m.op("total", "cumsum", [w], dim=1)
    return m.output(m.op("y", "mul", [x, total])), ["total"], 1


EXAMPLES = [cast_weight, transposed_weight, concatenated, weight_norm, low_rank, batch_norm_parts, wider_where_read,
            kept_apart, an_output, symbolic, view_of_prepared, shared_by_layers, tables, with_aliases, integers]


def random_model(seed):
    """Weights go through a few ops each, alone and combined, then meet the input in products or sums."""
    r = random.Random(seed)
    m = Model(f"random_{seed}", {"n": {"max": 40, "hint": r.randint(1, 33)}} if r.random() < 0.5 else None)
    rows = "n" if m.data["symbols"] else r.choice([1, 7, 32])
    k = r.choice([8, 16, 24])
    dtype = r.choice(["float32", "float16"])
    pool = [(m.constant(f"w{i}", s, d), s, d) for i, (s, d) in enumerate(
        (r.choice([[k, k], [k], [k, 1], [1, k], [2, k // 2, k]]), r.choice(["float32", dtype]))
        for _ in range(r.randint(2, 4)))]
    if r.random() < 0.3:
        pool.append((m.constant("known", [k], data=[round(r.uniform(-2, 2), 3) for _ in range(k)]), [k], "float32"))
    for i in range(r.randint(2, 9)):
        name, shape, dt = r.choice(pool)
        kind = r.choice(["cast", "unary", "binary", "binary", "concat", "permute", "reshape", "softmax", "sum", "slice"])
        node = f"t{i}"
        if kind == "cast":
            other = "float16" if dt == "float32" else "float32"
            pool.append((m.op(node, "cast", [name], dtype=other), shape, other))
        elif kind == "unary":
            pool.append((m.op(node, r.choice(["neg", "tanh", "sigmoid", "abs"]), [name]), shape, dt))
        elif kind == "binary":
            others = [p for p in pool if p[2] == dt and (p[1] == shape or (len(shape) == 2 and p[1] in ([k], [1, k])
                                                                         and shape[-1] == k))]
            pool.append((m.op(node, r.choice(["add", "mul", "sub", "maximum"]), [name, r.choice(others)[0]]), shape, dt))
        elif kind == "concat":
            both = m.op(node + "c", "concat", [name, name], dim=0)
            pool.append((m.op(node, "slice", [both], dim=0, start=shape[0] // 2, end=shape[0] // 2 + shape[0]), shape, dt))
        elif kind == "permute" and len(shape) == 2:
            pool.append((m.op(node, "permute", [name], dims=[1, 0]), shape[::-1], dt))
        elif kind == "reshape" and len(shape) == 3:
            pool.append((m.op(node, "reshape", [name], shape=[k, k]), [k, k], dt))
        elif kind == "softmax":
            pool.append((m.op(node, "softmax", [name], dim=-1), shape, dt))
        elif kind == "sum" and shape == [k, k]:
            pool.append((m.op(node, "mean", [name], dim=[0]), [k], dt))
        elif kind == "slice" and shape == [k]:
            pool.append((m.op(node, "flip", [name], dims=[0]), shape, dt))
    x = m.input("x", [rows, k], dtype)
    used = [p for p in pool if p[1] in ([k, k], [k], [1, k])]
    r.shuffle(used)
    for i, (name, shape, dt) in enumerate(used[:4]):
        if dt != dtype:
            name = m.op(f"u{i}", "cast", [name], dtype=dtype)
        x = m.op(f"y{i}", "linear" if shape == [k, k] else r.choice(["add", "mul"]), [x, name])
    m.output(m.op("result", "tanh", [x]))
    if r.random() < 0.3 and used:
        m.output(used[0][0])
    return m


class Checker:
    def __init__(self, args, folder):
        self.fusec, self.fusec_run, self.folder, self.failures = args.fusec, args.fusec_run, folder, 0

    def fail(self, name, why):
        self.failures += 1
        print(f"FAILED {name}: {why}", flush=True)

    def run(self, command):
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        return p.returncode, p.stdout.decode(), p.stderr.decode("utf-8", "replace")

    def emitted(self, path, kind, *options):
        code, out, err = self.run([self.fusec, path, f"--emit={kind}", "--no-nvrtc", *options])
        if code != 0:
            raise RuntimeError(err.strip()[-800:])
        return json.loads(out)

    def check_report(self, name, path):
        """Lists, launches, manifest and plan agree. Only full prepares anything."""
        counts = {}
        for strategy in ("none", "tvm", "full"):
            partition = self.emitted(path, "partition", "--strategy=" + strategy)
            counts[strategy] = partition["launches"]
            prepared = partition["prepared"]
            if strategy != "full" and prepared:
                self.fail(name, f"{strategy} prepares {prepared}")
        nodes = [n for g in partition["groups"] for n in g["nodes"] if n not in g["duplicated"]]
        everything = sorted(nodes + partition["dropped"] + partition["folded"] + prepared)
        with open(path, encoding="utf-8") as f:
            if everything != sorted(n["name"] for n in json.load(f)["nodes"]):
                self.fail(name, f"nodes are missing or stand twice: {everything}")
        if counts["full"] > counts["tvm"]:
            self.fail(name, f"full launches {counts['full']}, tvm {counts['tvm']}")
        manifest = self.emitted(path, "manifest")
        if bool(manifest["prepare"]) != (manifest["prepared_bytes"] != "0") or len(manifest["launches"]) != counts["full"]:
            self.fail(name, f"manifest: {len(manifest['prepare'])} steps into {manifest['prepared_bytes']} bytes")
        plan = os.path.join(self.folder, "plan.json")
        code, out, err = self.run([self.fusec, path, f"--emit=plan={plan}", "--emit=cu=-", "--no-nvrtc"])
        again = self.run([self.fusec, path, f"--plan={plan}", "--emit=cu=-", "--no-nvrtc"])
        if code != 0 or again[:2] != (0, out):
            self.fail(name, "the plan does not replay: " + again[2][-400:])
        return partition

    def check_numbers(self, name, path):
        command = [self.fusec_run, path, "--random=7", "--device=emulator", "--verify", "--host-part=recorded",
                   "--round-intermediates"]  # the reference rounds; otherwise sums that cancel differ
        code, _, err = self.run(command)
        if code != 0:
            self.fail(name, err.strip()[-1500:])

    def check(self, model, prepared=None, launches=None):
        name = model.data["name"]
        path = os.path.join(self.folder, name + ".json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(model.data, f)
        try:
            partition = self.check_report(name, path)
        except RuntimeError as e:
            return self.fail(name, e)
        if prepared is not None and sorted(partition["prepared"]) != sorted(prepared):
            self.fail(name, f"prepared are {partition['prepared']}, expected {prepared}")
        if launches is not None and partition["launches"] != launches:
            self.fail(name, f"{partition['launches']} launches, expected {launches}")
        self.check_numbers(name, path)
        return len(partition["prepared"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--random", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fusec_prepared_") as folder:
        checker = Checker(args, folder)
        for example in EXAMPLES:
            checker.check(*example())
        some = sum(bool(checker.check(random_model(args.seed + i))) for i in range(args.random))
        if args.random >= 8 and some < args.random // 2:
            checker.fail("random models", f"only {some} of {args.random} prepare anything")
    print(f"{len(EXAMPLES)} examples and {args.random} random models, {checker.failures} failures")
    sys.exit(1 if checker.failures else 0)


if __name__ == "__main__":
    main()
