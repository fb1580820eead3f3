#!/usr/bin/env python3
"""check_guards.py FUSEC FUSEC_RUN [--only=TEXT] [--sample=N]

Kernels over symbolic sizes with a special form under a guard on the symbols. With values on both sides of the guard,
the launch takes the form that the manifest states (as the compiled host part launches it), and results are the
reference's. The special form has what the guard is for: 16-byte or asynchronous copies, rows read once, 32-bit indices.
Longer rows are read once by the general form, as far as shared memory holds them. Skinny products, and attention of few
queries, take few more instructions than with a fixed number of rows. The number of blocks that share columns follows
the sizes of the launch. Status 77: no NVRTC."""
import argparse, json, math, os, random, re, struct, sys, tempfile

from emulated_run import finished
import tensors

WIDE = re.compile(r"\b(?:ld|st)\.global[.\w:]*\.(?:v4\.[ubf]32|v2\.[ubf]64)\b|\bcp\.async\.c[ag]\.shared\.global|\bcp\.async\.bulk")
APPORTIONED = 18  # most instructions per byte
ONCE = 1.4  # ratio to the least bytes: each row reads the operands that rows share
# Ratios to what a fixed number of rows takes. One form serves 1 to 32 rows: it reads the same bytes, which take the
# time, but eight rows fill a quarter of its tiles.
MORE_THAN_FIXED = {"instructions": 2.5, "tensor multiply-adds": 4}
NARROW = re.compile(r"\b(?:ld|st)\.global[.\w:]*")


def tensor(name, dtype, *shape):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def model(name, symbols, inputs, nodes, outputs=("y",), **more):
    return {"fusec": 1, "name": name, "symbols": symbols, "inputs": inputs, "nodes": nodes, "outputs": list(outputs), **more}


def node(name, op, *inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})}


ANY = {"hint": 256}
UP_TO_4096 = {"max": 4096, "hint": 256}
TOKENS = {"t": {"max": 8192, "hint": 2048}}
CACHE = {"n": {"max": 32768, "hint": 1024}}
FEW_AND_MANY = [((1,), 1), ((7,), 1), ((16,), 1), ((32,), 1), ((33,), 0)]


def rows_of_tokens(name, dtype, kind=None):
    """A linear layer over tokens with a residual, with plain or quantized weights."""
    weights = [tensor("w", dtype, 384, 1024)] if kind is None else [tensor("c", kind, 384, 1024), tensor("s", dtype, 384, 8)]
    decode = [] if kind is None else [node("w", "dequantize", "c", "s", dtype=dtype, axis=1, block=128)]
    return model(name, TOKENS, [tensor("x", dtype, "t", 1024), tensor("r", dtype, "t", 384), *weights],
                 [*decode, node("p", "linear", "x", "w"), node("y", "add", "p", "r")])


def attention(name, dtype, symbols, queries, heads, key_heads, mask=None, causal=False, keys="n"):
    """Attention over the keys of a cache."""
    of = lambda name, heads, length: tensor(name, dtype, 1, heads, length, 128)
    added = [tensor("mask", dtype, queries, keys)] if mask else []
    return model(name, symbols, [of("q", heads, queries), of("k", key_heads, keys), of("v", key_heads, keys), *added],
                 [node("y", "scaled_dot_product_attention", "q", "k", "v", *(["mask"] if mask else []),
                       is_causal=causal, enable_gqa=True)])


# A model; the text that its guard must contain; values of symbols, and how many steps then take their special form;
# what the special form's PTX must contain.
CASES = [
    (model("bias", {"b": {}, "n": ANY}, [tensor("x", "float16", "b", "n"), tensor("w", "float16", "n")],
           [node("y", "add", "x", "w")]),
     "n % 8", [((3, 64), 1), ((3, 61), 0), ((2, 8), 1)], "wide"),
    (model("transposed_add", {"b": UP_TO_4096, "n": UP_TO_4096},
           [tensor("x", "float32", "b", "n"), tensor("w", "float32", "b")],
           [node("u", "unsqueeze", "w", dim=1), node("y", "mul", "x", "u")]),
     "n % 4", [((3, 64), 1), ((3, 66), 0)], "wide"),
    (model("bytes", {"b": UP_TO_4096, "n": UP_TO_4096}, [tensor("x", "int8", "b", "n"), tensor("w", "int8", "n")],
           [node("y", "maximum", "x", "w")]),
     "n %", [((5, 128), 1), ((5, 40), None), ((5, 33), 0)], "wide"),
    (model("half_extent", {"b": UP_TO_4096, "n": UP_TO_4096},
           [tensor("x", "float32", "b", "2*n"), tensor("w", "float32", "2*n")], [node("y", "add", "x", "w")]),
     "n % 2", [((3, 6), 1), ((3, 7), 0)], "wide"),
    (model("long_rows", {"b": {"max": 100}, "n": {}}, [tensor("x", "float32", "b", "n")],
           [node("y", "softmax", "x", dim=1)]),
     "n <= 32768", [((2, 1000), 1), ((1, 32769), 0), ((1, 32768), 1), ((3, 39000), 0)], "once"),
    (model("far_longer", {"b": {}, "n": ANY}, [tensor("x", "float16", "b", "n")], [node("y", "log_softmax", "x", dim=1)]),
     "n <= 2048", [((9, 250), 1), ((3, 3000), 0), ((2, 20001), 0)], "once"),
    (model("norm", {"b": {}, "n": {"max": 1000000, "hint": 4096}},
           [tensor("x", "bfloat16", "b", "n"), tensor("r", "bfloat16", "b", "n"), tensor("w", "bfloat16", "n")],
           [node("s", "add", "x", "r"), node("q", "mul", "s", "s"), node("m", "mean", "q", dim=[1], keepdim=True),
            node("i", "rsqrt", "m"), node("c", "mul", "s", "i"), node("y", "mul", "c", "w")]),
     "n <=", [((2, 1024), 1), ((2, 999), 1), ((1, 70000), 0)], "once"),
    # Rows kept in shared memory. The target limits how long they may be.
    (model("layer_norm_rows", {"b": {}, "n": {"max": 65536, "hint": 4096}},
           [tensor("x", "float16", "b", "n"), tensor("w", "float16", "n"), tensor("c", "float16", "n")],
           [node("y", "layer_norm", "x", "w", "c", normalized_shape=["n"], eps=1e-5)]),
     "n <=", [((2, 4096), 1), ((3, 4095), 1), ((2, 5), 1), ((1, 32768), 1), ((1, 65533), None)], "numbers"),
    (model("rms_norm_rows", {"b": {}, "n": {"hint": 4096}}, [tensor("x", "float32", "b", "n"), tensor("w", "float32", "n")],
           [node("y", "rms_norm", "x", "w", normalized_shape=["n"])]),
     "n <=", [((2, 4096), 1), ((1, 70000), 0)], "once"),
    # Groups of channels, channels last, kept by co-resident blocks, for as many positions as fit.
    (model("groups_of_channels", {"n": {"hint": 1}, "h": {"hint": 48}, "v": {"hint": 48}},
           [tensor("x", "float16", "n", "h", "v", 320), tensor("w", "float16", 320), tensor("c", "float16", 320)],
           [node("p", "permute", "x", dims=[0, 3, 1, 2]), node("m", "group_norm", "p", "w", "c", num_groups=32),
            node("y", "permute", "m", dims=[0, 2, 3, 1])]),
     "h*v <=", [((1, 48, 48), 2), ((2, 17, 25), 2), ((1, 100, 100), 0)], "numbers"),
    (model("product", {"m": UP_TO_4096, "n": UP_TO_4096, "k": UP_TO_4096},
           [tensor("x", "bfloat16", "m", "k"), tensor("w", "bfloat16", "k", "n")], [node("y", "matmul", "x", "w")]),
     "k % 8", [((17, 64, 48), 1), ((17, 60, 48), 0), ((17, 64, 41), 0)], "wide"),
    # K may be 0: no tile is read.
    (model("product_of_nothing", {"m": UP_TO_4096, "k": {"min": 0, "max": 4096, "hint": 256}},
           [tensor("x", "float16", "m", "k"), tensor("w", "float16", "k", 64)], [node("y", "matmul", "x", "w")]),
     "k % 8", [((33, 0), 1), ((33, 48), 1), ((33, 41), 0)], "wide"),
    (model("scores", {"t": {"min": 2, "max": 2048, "hint": 128}},
           [tensor("q", "float16", 2, "t", 64), tensor("p", "float16", 2, "t", "t")],
           [node("y", "matmul", "p", "q")]),
     "t % 8", [((40,), 1), ((43,), 0)], "wide"),
    (model("sum_of_all", {"n": {"max": 1 << 26, "hint": 1 << 24}}, [tensor("x", "float32", "n", 3)],
           [node("y", "sum", "x")]),
     None, [((1000,), None), ((1001,), None)], None),
    (model("in_place", {"b": {"max": 64}, "n": UP_TO_4096},
           [tensor("x", "float32", "b", "n"), tensor("w", "float32", "n")],
           [node("a", "cumsum", "x", dim=1), node("c", "add", "a", "w"), node("y", "cumsum", "c", dim=1)]),
     "n % 4", [((3, 64), 1), ((3, 61), 0)], "wide"),
    (model("alias", {"b": {"max": 64}, "n": UP_TO_4096},
           [tensor("x", "float32", "b", "n"), tensor("w", "float32", "n")], [node("y", "add", "x", "w")],
           aliases={"y": "x"}),
     "n % 4", [((3, 64), 1), ((3, 61), 0)], "wide"),
    # Horizontally fused kernels: the launch takes the special forms if all guards hold.
    (model("side_by_side", {"b": {"max": 64}, "n": UP_TO_4096, "m": UP_TO_4096},
           [tensor("x", "float32", "b", "n"), tensor("w", "float32", "n"), tensor("u", "float16", "b", "m"),
            tensor("v", "float16", "m")],
           [node("y", "add", "x", "w"), node("z", "mul", "u", "v")], outputs=("y", "z")),
     "m % 8", [((3, 64, 48), 1), ((3, 64, 45), 0), ((3, 62, 48), 0), ((3, 61, 47), 0), ((64, 4, 8), 1)], "wide"),
    (model("side_by_side_rows", {"b": {"max": 100}, "n": UP_TO_4096},
           [tensor("x", "float32", "b", "n"), tensor("g", "float32", "n"), tensor("u", "float16", "b", 33),
            tensor("p", "bfloat16", "b", "2*n"), tensor("q", "bfloat16", "2*n")],
           [node("y", "add", "x", "g"), node("z", "softmax", "u", dim=1), node("r", "mul", "p", "q")],
           outputs=("y", "z", "r")),
     "n % 4", [((3, 64), 1), ((3, 66), 0), ((3, 61), 0)], "wide"),
    (rows_of_tokens("tokens_float16", "float16"), "t <= 32", FEW_AND_MANY, "few"),
    (rows_of_tokens("tokens_bfloat16", "bfloat16"), "t <= 32", [*FEW_AND_MANY, ((300,), 0)], "few"),
    (rows_of_tokens("tokens_codes", "float16", "int4"), "t <= 32", FEW_AND_MANY, "few"),
    (model("tokens_gated", TOKENS, [tensor("x", "bfloat16", "t", 512), tensor("g", "bfloat16", 256, 512),
                                    tensor("u", "bfloat16", 256, 512)],
           [node("p", "linear", "x", "g"), node("q", "linear", "x", "u"), node("y", "swiglu", "p", "q")]),
     "t <= 32", FEW_AND_MANY, "few"),
    # Several products of one operand are one launch in both forms.
    (model("tokens_three", TOKENS, [tensor("x", "float16", "t", 512), tensor("q", "float16", 512, 512),
                                    tensor("k", "float16", 128, 512), tensor("v", "float16", 128, 512)],
           [node("y", "linear", "x", "q"), node("z", "linear", "x", "k"), node("o", "linear", "x", "v")],
           outputs=("y", "z", "o")),
     "t <= 32", FEW_AND_MANY, "few"),
    (model("tokens_of_batches", {"b": {"max": 64, "hint": 4}, **TOKENS},
           [tensor("x", "bfloat16", "b", "t", 512), tensor("w", "bfloat16", 512, 256)], [node("y", "matmul", "x", "w")]),
     "b*t <= 32", [((2, 4), 1), ((32, 1), 1), ((11, 3), 0)], "few"),
    # Split-K adds its partial sums in a second kernel, which the skinny form does not need. If K is no multiple of a
    # vector, few rows take the general form, too.
    (model("tokens_of_depth", {**TOKENS, "k": {"max": 8192, "hint": 4096}},
           [tensor("x", "float16", "t", "k"), tensor("w", "float16", 128, "k")], [node("y", "linear", "x", "w")]),
     "t <= 32", [((1, 512), None), ((16, 520), None), ((3, 515), 0), ((33, 512), None)], "numbers"),
    (model("tokens_of_few_columns", {"t": {"max": 8192, "hint": 64}},
           [tensor("x", "float16", "t", 4096), tensor("w", "float16", 128, 4096)], [node("y", "linear", "x", "w")]),
     "t <= 32", [((1,), None), ((32,), None), ((33,), None)], "numbers"),
    # Few queries: a tile has queries of several heads, and blocks share the keys.
    (attention("prompts_and_decoding", "bfloat16", {**TOKENS, **CACHE}, "t", 8, 2),
     "t >= 17", [((1, 1500), 0), ((16, 300), None), ((17, 300), 1), ((130, 257), 1)], "decode"),
    (attention("prompts_and_decoding_masked", "float16", {"t": {"max": 4096, "hint": 1}, **CACHE}, "t", 4, 4, mask=True),
     "t >= 65", [((1, 700), 0), ((64, 130), None), ((65, 300), 1)], "decode"),
    (attention("prompts_and_decoding_causal", "bfloat16", {**TOKENS, **CACHE}, "t", 8, 1, causal=True),
     "t >= 9", [((1, 700), 0), ((5, 60), 1), ((70, 300), 1)], "numbers"),
    (attention("prompts_and_decoding_float32", "float32", {**TOKENS, **CACHE}, "t", 4, 2),
     "t >=", [((1, 700), 0), ((100, 130), 1)], "decode"),
    # A cache with a short hint may be long.
    (attention("short_cache", "bfloat16", {"n": {"max": 32768, "hint": 64}}, 1, 8, 2),
     "n <= ", [((1,), 1), ((50,), 1), ((1500,), 0)], "decode"),
    (attention("caches_of_any_length", "float32", {"n": {"max": 32768}}, 1, 2, 2),
     "n <= ", [((3,), 1), ((50,), 1), ((2000,), 0)], "decode"),
    (attention("short_caches_of_prompts", "float16", {**TOKENS, "n": {"max": 32768, "hint": 64}}, "t", 8, 2),
     "n <= ", [((1, 50), 1), ((1, 1500), 0), ((20, 50), 1)], "decode"),
    # The number of blocks that share tall columns follows the sizes of the launch.
    *((model(f"tall_columns_{op}", {"m": {"hint": 100000}, "n": {"hint": 64}}, [tensor("x", "float32", "m", "n")],
             [node("y", op, "x", dim=[0])]),
       "n % 4", [((100, 5000), None), ((3000, 64), None), ((3000, 63), None)], "apportioned")
      for op in ("sum", "var", "logsumexp")),
]


def encoded(dtype, count, r):
    """Random elements."""
    if dtype == "int4":
        return r.randbytes(count // 2)
    if dtype == "int8":
        return struct.pack(f"<{count}b", *(r.randint(-100, 100) for _ in range(count)))
    floats = [r.gauss(0, 1) for _ in range(count)]
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in floats)
    return struct.pack(f"<{count}{'f' if dtype == 'float32' else 'e'}", *floats)


def write_inputs(path, described, symbols):
    """A safetensors file of inputs; their extents give the launch its symbols."""
    r, given = random.Random(5), {}
    for t in described["inputs"]:
        shape = [eval(str(d), {"__builtins__": {}}, symbols) for d in t["shape"]]
        given[t["name"]] = (t["dtype"], shape, encoded(t["dtype"], math.prod(shape), r))
    tensors.write(path, given)


def functions(ptx):
    """Function name -> body, for each kernel."""
    parts = re.split(r"\.visible \.entry (\w+)", ptx)
    return dict(zip(parts[1::2], parts[2::2]))


def condition_text(condition):
    text = []
    if "multiple_of" in condition:
        text.append(f"{condition['value']} % {condition['multiple_of']} == 0")
    if "at_least" in condition:
        text.append(f"{condition['value']} >= {condition['at_least']}")
    if "at_most" in condition:
        text.append(f"{condition['value']} <= {condition['at_most']}")
    return text


def holds(when, values):
    for c in when:
        value = eval(c["value"], {"__builtins__": {}}, values)  # a product of symbols
        if value % c.get("multiple_of", 1) != 0 or not c.get("at_least", value) <= value <= c.get("at_most", value):
            return False
    return True


def taken_form(step, values):
    """The kernel that the step launches according to the manifest; None if it launches nothing."""
    for form in step.get("special", []):
        if holds(form["when"], values):
            return form.get("kernel")
    return step["kernel"]


def fixed(described, symbols):
    """The model with its symbols replaced by these values."""
    at = lambda t: dict(t, shape=[eval(str(d), {"__builtins__": {}}, symbols) for d in t["shape"]])
    return {key: value for key, value in dict(described, inputs=[at(t) for t in described["inputs"]]).items()
            if key != "symbols"}


def instructions(kernels):
    return sum(sum(k["instructions"].values()) for k in kernels)


def check_source(special, bodies, shows):
    """The special form's PTX has what the general form's lacks."""
    general, better = bodies[special["general"]], bodies[special["kernel"]]
    problems = []
    if shows == "wide":
        # Small operands that all threads share may be read in pieces.
        if not WIDE.search(better):
            problems.append("no access of 16 bytes in the special form")
        if len(WIDE.findall(better)) <= len(WIDE.findall(general)) and len(NARROW.findall(better)) >= len(NARROW.findall(general)):
            problems.append("the general form has as many wide accesses")
    return problems


def check_few_rows(fusec_run, folder, described, inputs, arch, kernels):
    """Compares with the model of a fixed number of rows."""
    path, profile = os.path.join(folder, "fixed.json"), os.path.join(folder, "fixed_profile.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(described, f)
    done = finished([fusec_run, path, "--arch=" + arch, "--inputs=" + inputs, "--device=emulator",
                     "--profile=" + profile])
    if done.returncode != 0:
        return [done.stderr.strip()[-800:]]
    with open(profile, encoding="utf-8") as f:
        known = json.load(f)["kernels"]
    problems = []
    if len(known) != len(kernels):
        problems.append(f"{len(kernels)} launches, {len(known)} where the rows are known")
    for what, count in (("instructions", instructions),
                        ("tensor multiply-adds", lambda ks: sum(k["tensor_multiply_adds"] for k in ks))):
        if count(kernels) > MORE_THAN_FIXED[what] * count(known):
            problems.append(f"{count(kernels)} {what}, {count(known)} where the rows are known")
    return problems


def check(programs, folder, case, arch):
    described, speaks_of, values, shows = case
    fusec, fusec_run = programs
    path = os.path.join(folder, described["name"] + ".json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(described, f)
    outputs = {kind: os.path.join(folder, f"{described['name']}_{arch}.{kind}") for kind in ("manifest", "ptx", "cu")}
    done = finished([fusec, path, "--arch=" + arch, *(f"--emit={k}={p}" for k, p in outputs.items())])
    if done.returncode != 0:
        return [done.stderr.strip()[-800:]]
    with open(outputs["manifest"], encoding="utf-8") as f:
        manifest = json.load(f)
    with open(outputs["ptx"], encoding="utf-8") as f:
        bodies = functions(f.read())
    specials = [dict(form, general=step["kernel"]) for step in manifest["launches"] for form in step.get("special", [])
                if "kernel" in form]
    conditions = [text for s in specials for c in s["when"] for text in condition_text(c)]
    problems = []
    if speaks_of and not any(speaks_of in c for c in conditions):
        problems.append(f"no guard speaks of {speaks_of}: {conditions}")
    for special in specials:
        problems += check_source(special, bodies, shows)
    for assigned, expected in values:
        symbols = dict(zip(described["symbols"], assigned))
        profile = os.path.join(folder, "profile.json")
        inputs = os.path.join(folder, "inputs.safetensors")
        write_inputs(inputs, described, symbols)
        done = finished([fusec_run, path, "--arch=" + arch, "--inputs=" + inputs, "--device=emulator", "--verify",
                         "--host-part=recorded", "--profile=" + profile])
        where = f"at {symbols}"
        if done.returncode != 0:
            problems.append(f"{where}: {done.stderr.strip()[-800:]}")
            continue
        with open(profile, encoding="utf-8") as f:
            kernels = json.load(f)["kernels"]
        launched = [k["name"] for k in kernels]
        planned = [taken_form(s, symbols) for s in manifest["launches"] if "kernel" in s]
        planned = [kernel for kernel in planned if kernel is not None]
        if launched != planned:
            problems.append(f"{where}: {launched} were launched, the manifest says {planned}")
        taken = sum(s["kernel"] in launched for s in specials)
        if expected is not None and taken != expected:
            problems.append(f"{where}: {taken} special forms, expected {expected}")
        if expected is not None and shows == ("few" if expected else "decode"):
            problems += [f"{where}: {p}" for p in check_few_rows(fusec_run, folder, fixed(described, symbols), inputs, arch, kernels)]
        least = max(k["least_bytes"] for k in kernels)
        if shows == "apportioned" and 32 * instructions(kernels) > APPORTIONED * least:
            problems.append(f"{where}: {instructions(kernels)} instructions for {least} bytes")
        if shows in ("once", "apportioned"):
            for k in kernels:
                if k["requested_bytes"] > ONCE * (k["least_bytes"] if shows == "once" else least):
                    problems.append(f"{where}: {k['requested_bytes']} bytes requested, {k['least_bytes']} needed")
    return [f"{described['name']} {arch}: {p}" for p in problems]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=0, help="so many of the models and targets, chosen by --seed")
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    failures = 0
    runs = [(case, arch) for case in CASES for arch in ("sm_80", "sm_90a") if args.only in case[0]["name"]]
    if args.sample:
        runs = random.Random(args.seed).sample(runs, min(args.sample, len(runs)))
    with tempfile.TemporaryDirectory(prefix="fusec_guards_") as folder:
        for case, arch in runs:
            for problem in check((args.fusec, args.fusec_run), folder, case, arch):
                failures += 1
                print("FAILED " + problem, flush=True)
    print(f"{len(runs)} models and targets, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
