"""Texts: JSON, names, numbers, and the files beside a model: patterns, safetensors headers, plans, targets, databases."""
import json, struct

from hostile.model import Case, Model, family

SMALL = Model()
SMALL.output(SMALL.op("exp", SMALL.op("add", SMALL.input(), 1.0)))
SMALL_TEXT = json.dumps(SMALL.document())


def with_metadata(text):
    return Case(SMALL_TEXT[:-1] + f', "metadata": {text}}}')


# --- JSON

family("json.arrays", 200000)(lambda size, rng: with_metadata("[" * size + "]" * size))
family("json.arrays_open", 9000000)(lambda size, rng: Case("[" * size))
family("json.objects_open", 2000000)(lambda size, rng: Case('{"a":' * size))
family("json.objects", 100000)(lambda size, rng: with_metadata('{"a":' * size + "1" + "}" * size))
family("json.shallow", 200000)(lambda size, rng: with_metadata("[" + "[[[]]]," * size + "1]"))
family("json.blanks", 4000000)(lambda size, rng: Case(" \n\t" * size + SMALL_TEXT))
family("json.zero_bytes", 4000000)(lambda size, rng: Case(b"\0" * size))
family("json.string", 4000000)(lambda size, rng: with_metadata('"' + "a" * size + '"'))
family("json.escapes", 500000)(lambda size, rng: with_metadata('"' + "\\u00e9\\n\\ud83d\\ude00" * size + '"'))
family("json.bad_escape", 500000)(lambda size, rng: with_metadata('"' + "\\n" * size + '\\q"'))
family("json.unfinished_string", 4000000)(lambda size, rng: Case('{"name": "' + "x" * size))
family("json.keys", 200000)(lambda size, rng: with_metadata("{" + ",".join(f'"k{i}":{i}' for i in range(size)) + "}"))
family("json.repeated_keys", 200000)(lambda size, rng: with_metadata("{" + ",".join(f'"k{i % max(1, size - 1)}":{i}' for i in range(size)) + "}"))
family("json.same_key", 200000)(lambda size, rng: with_metadata("{" + ",".join('"k":1' for _ in range(size)) + "}"))
family("json.numbers", 500000)(lambda size, rng: with_metadata("[" + ",".join(repr(rng.random()) for _ in range(size)) + "]"))
family("json.digits", 2000000)(lambda size, rng: with_metadata("1" * size))
family("json.fraction", 2000000)(lambda size, rng: with_metadata("0." + "3" * size))
family("json.exponent", 1000000)(lambda size, rng: with_metadata("1e" + "9" * size))
family("json.denormals", 200000)(lambda size, rng: with_metadata("[" + ",".join(f"4.9{i}e-324" for i in range(size)) + "]"))
family("json.not_utf8", 1000000)(lambda size, rng: Case(SMALL_TEXT.encode()[:-1] + b', "metadata": "' + b"a" * size + b'\xff"}'))
family("json.truncated", 200000)(lambda size, rng: Case(json.dumps({"nodes": list(range(size))})[:-rng.randrange(1, 9)]))
family("json.random_bytes", 2000000)(lambda size, rng: Case(rng.randbytes(size)))
family("json.unknown_keys", 100000)(lambda size, rng: Case(SMALL_TEXT[:-1] + "".join(f', "nodez{i}": 1' for i in range(size)) + "}"))


@family("json.mutated", 2000)
def mutated(size, rng):
    text = bytearray(SMALL_TEXT.encode())
    for _ in range(min(size, 40)):
        text[rng.randrange(len(text))] = rng.choice(b'{}[]",:0123456789.eE-\\ntrufals')
    return Case(bytes(text))


# --- names


def renamed(name_of):
    def make(size, rng):
        m = Model()
        v = m.input()
        for i in range(size):
            v = m.op("exp", v, name=name_of(i))
        return m.output(v)

    return make


family("names.alike", 5000)(renamed(lambda i: "value_" * 10 + str(i)))
family("names.unicode", 5000)(renamed(lambda i: "ein\u00e9\u4e2d\U0001f600" + str(i)))
family("names.words", 2000)(renamed(lambda i: ("int", "__global__", "blockIdx", "return", "fusec", "x.0")[i % 6] + f" {i}"))
family("names.hostile", 2000)(renamed(lambda i: '*/ #include "/etc/passwd" \n \\ " \' %s {} ' + str(i)))


@family("names.long", 500000)
def names_long(size, rng):
    m = Model(name="m" * size)
    return m.output(m.op("exp", m.input("x" * size), name="n" * size))


@family("names.undefined", 20000)
def names_undefined(size, rng):
    m = Model()
    v = m.input()
    for i in range(size):
        v = m.op("exp", v, name=f"layer_{i}_weight")
    return m.output(m.op("add", v, "layer_x_weight"))


@family("names.undefined_symbol", 20000)
def names_undefined_symbol(size, rng):
    m = Model(symbols={f"tokens_{i}": {} for i in range(size)})
    return m.output(m.op("exp", m.input("x", ("tokens_x",))))


@family("names.twice", 20000)
def names_twice(size, rng):
    m = Model()
    v = m.input()
    for i in range(size):
        v = m.op("exp", v, name=f"a{i}")
    return m.output(m.op("exp", v, name="a0"))


@family("names.unknown_op", 5000)
def names_unknown_op(size, rng):
    m = Model()
    return m.output(m.op("reluu" * size, m.input()))


# --- attributes

family("attributes.long_list", 200000)(lambda size, rng: of_attributes("reshape", (8,), attrs={"shape": [1] * size + [8]}))
family("attributes.split_sizes", 50000)(lambda size, rng: of_attributes("split", (size,), ".0", split_sizes=[1] * size, dim=0))
family("attributes.unknown", 50000)(lambda size, rng: of_attributes("exp", (8,), **{f"a{i}": i for i in range(size)}))
family("attributes.dims", 50000)(lambda size, rng: of_attributes("sum", (8,), dim=[0] * size))
family("attributes.huge", 60)(lambda size, rng: of_attributes("slice", (8,), dim=0, start=-(1 << size), end=1 << size, step=1 << size // 2))
family("attributes.repeats", 40)(lambda size, rng: of_attributes("repeat", (8,), repeats=[1 << size]))
family("attributes.chunks", 60)(lambda size, rng: of_attributes("chunk", (8,), ".0", chunks=1 << size, dim=0))
family("attributes.split_size_of_many", 60)(lambda size, rng: of_attributes("split", (1 << size,), ".0", split_sizes=1, dim=0))
family("attributes.rolls", 60)(lambda size, rng: of_attributes("roll", (8,), shifts=[(1 << size) + 1], dims=[0]))
family("attributes.topk", 5000)(lambda size, rng: of_attributes("topk", (size, 64), ".1", k=32, dim=1))


def of_attributes(op, extents, suffix="", attrs=None, **more):
    m = Model()
    return m.output(m.op(op, m.input("x", extents), **(attrs or more)) + suffix)


# --- patterns


def with_patterns(text, model=None):
    return Case(model or SMALL_TEXT, ["--patterns=mine.patterns"], {"mine.patterns": text})


def doubling_model(size):
    m = Model()
    v = m.input()
    for _ in range(size):
        v = m.op("add", v, v)
    return json.dumps(m.output(v).document())


def pattern(name, match, becomes="group", where=""):
    where = f"  where   {where}\n" if where else ""
    return f'pattern {name}\n  "a pattern"\n  match   {match}\n{where}  becomes {becomes}\n'


family("patterns.many", 5000)(lambda size, rng: with_patterns("".join(pattern(f"p.n{i}", f"exp(x{i})") for i in range(size))))
family("patterns.same_name", 5000)(lambda size, rng: with_patterns("".join(pattern("p.n", "exp(x)") for _ in range(size))))
family("patterns.deep", 20000)(lambda size, rng: with_patterns(pattern("p.n", "exp(" * size + "x" + ")" * size)))
family("patterns.alternatives", 5000)(lambda size, rng: with_patterns(pattern("p.n", " | ".join(["exp(x)", "neg(x)"] * size))))
family("patterns.nested_alternatives", 60)(
    lambda size, rng: with_patterns(pattern("p.n", "(exp(" * size + "x" + ") | neg(y))" * size), doubling_model(size)))
family("patterns.both_orders", 24)(lambda size, rng: with_patterns(pattern("p.n", "add(" * size + "exp(x)" + ", y)" * size), doubling_model(size + 4)))
family("patterns.grows", 2000)(
    lambda size, rng: with_patterns(pattern("p.n", "add(a, b)", "add(add(a, b), 0.0)"), doubling_model(size)))
family("patterns.turns", 2000)(
    lambda size, rng: with_patterns(pattern("p.a", "exp(x)", "neg(x)") + pattern("p.b", "neg(x)", "exp(x)"), doubling_model(size)))
family("patterns.doubles", 60)(
    lambda size, rng: with_patterns(pattern("p.a", "exp(x)", "add(exp(x), exp(x))"), SMALL_TEXT))
family("patterns.defined_in_turn", 40)(
    lambda size, rng: with_patterns("define f0(x) = exp(x)\n" + "".join(f"define f{i}(x) = add(f{i - 1}(x), f{i - 1}(x))\n" for i in range(1, size + 1)) +
                                    pattern("p.n", f"f{size}(x)")))
family("patterns.defined_by_itself", 100)(lambda size, rng: with_patterns("define f(x) = exp(f(x))\n" + pattern("p.n", "f(x)")))
family("patterns.conditions", 5000)(
    lambda size, rng: with_patterns(pattern("p.n", "exp(x)", where=", ".join(["dtype(x, float32)"] * size)), doubling_model(10)))
family("patterns.chain", 300)(lambda size, rng: with_patterns(pattern("p.n", "chain(exp(x))"), json.dumps(wide_chain(size))))
family("patterns.long_names", 200000)(lambda size, rng: with_patterns(pattern("p." + "n" * size, "exp(" + "x" * size + ")")))
family("patterns.comments", 200000)(lambda size, rng: with_patterns("# nothing\n" * size + pattern("p.n", "exp(x)")))
family("patterns.random_bytes", 200000)(lambda size, rng: with_patterns(rng.randbytes(size)))
family("patterns.random_tokens", 5000)(
    lambda size, rng: with_patterns("pattern p.n\n match " + " ".join(rng.choice(["exp", "(", ")", "|", ",", "x", "~", "?", ":", "1", '"', "_", ".0"]) for _ in range(size))))


def wide_chain(size):
    m = Model()
    v = m.op("exp", m.input())
    for i in range(size):
        v = m.op("add", m.op("neg", v), m.op("abs", v)) if i % 2 else m.op("tanh", v)
    return m.output(v).document()


# --- weights


def safetensors(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def weighted(content, names=("w",), shape=(2,)):
    m = Model()
    v = m.input("x", shape)
    for name in names:
        v = m.op("add", v, m.constant(name, shape, safetensors={"file": "w.safetensors", "tensor": name}))
    return Case(m.output(v).document(), files={"w.safetensors": content})


def tensors(size, overlap=0):
    header = {f"w{i}": {"dtype": "F32", "shape": [2], "data_offsets": [i * 8, i * 8 + 8]} for i in range(size)}
    header["w"] = {"dtype": "F32", "shape": [2], "data_offsets": [size * 8 - overlap, size * 8 + 8 - overlap]}
    return safetensors(header, bytes(size * 8 + 8 - overlap))


family("weights.tensors", 60000)(lambda size, rng: weighted(tensors(size)))
family("weights.overlap", 60000)(lambda size, rng: weighted(tensors(size, 4)))
family("weights.all_used", 5000)(lambda size, rng: weighted(tensors(size), [f"w{i}" for i in range(size)]))
family("weights.missing", 60000)(lambda size, rng: weighted(tensors(size), ["nosuch"]))
family("weights.metadata", 100000)(
    lambda size, rng: weighted(safetensors({"__metadata__": {f"k{i}": "v" for i in range(size)},
                                            "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8))))
family("weights.deep_header", 100000)(lambda size, rng: weighted(safetensors(b'{"w":' + b"[" * size + b"]" * size + b"}")))
family("weights.long_shape", 100000)(
    lambda size, rng: weighted(safetensors({"w": {"dtype": "F32", "shape": [1] * size + [2], "data_offsets": [0, 8]}}, bytes(8))))
family("weights.lying_length", 63)(lambda size, rng: weighted(struct.pack("<Q", (1 << size) + rng.randrange(9)) + b"{}"))
family("weights.huge_offsets", 62)(
    lambda size, rng: weighted(safetensors({"w": {"dtype": "F32", "shape": [1 << size], "data_offsets": [0, 1 << size]}})))
family("weights.random_bytes", 200000)(lambda size, rng: weighted(rng.randbytes(size)))

# --- plans, targets, tuning databases, options


def with_file(option, text):
    return Case(SMALL_TEXT, [f"--{option}=beside"], {"beside": text})


def plan(size):
    groups = [{"name": f"g{i}", "nodes": ["n0", "n1"]} for i in range(size)]
    return json.dumps({"fusec_plan": 1, "model": "", "strategy": "full", "groups": groups})


family("plan.groups", 50000)(lambda size, rng: with_file("plan", plan(size)))
family("plan.nodes", 100000)(lambda size, rng: with_file("plan", json.dumps({"fusec_plan": 1, "groups": [{"name": "g", "nodes": ["n0"] * size}]})))
family("plan.deep", 100000)(lambda size, rng: with_file("plan", "[" * size))
family("plan.random_bytes", 100000)(lambda size, rng: with_file("plan", rng.randbytes(size)))
family("target.keys", 50000)(lambda size, rng: with_file("target", json.dumps({"fusec_target": 1, "arch": "sm_80", **{f"k{i}": i for i in range(size)}})))
family("target.numbers", 300)(lambda size, rng: with_file("target", json.dumps({"fusec_target": 1, "arch": "sm_80", "name": "t", "multiprocessors": 10 ** min(size, 300)})))
family("target.random_bytes", 100000)(lambda size, rng: with_file("target", rng.randbytes(size)))
family("tuning.kernels", 50000)(lambda size, rng: with_file("tuning-db", json.dumps({"fusec_tuning": 1, "kernels": [{"key": f"k{i}"} for i in range(size)]})))
family("tuning.random_bytes", 100000)(lambda size, rng: with_file("tuning-db", rng.randbytes(size)))


def with_options(size, option):
    m = Model()
    v = m.input()
    for i in range(size):
        v = m.op("exp", v)
    return Case(m.output(v).document(), [option.format(i) for i in range(size)])


family("options.no_fuse_node", 2000)(lambda size, rng: with_options(size, "--no-fuse-node=n{}"))
family("options.one_kernel", 500)(lambda size, rng: with_options(size, "--require-one-kernel=n0,n{}"))
family("options.explain", 300)(lambda size, rng: with_options(size, "--explain=n0,n{}"))
