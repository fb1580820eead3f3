#!/usr/bin/env python3
"""check_borders.py FUSEC FUSEC_RUN [--sample=N] [--seed=N] [--only=TEXT]

The pass move-borders: a widening at the end of a group (a cast, a broadcast) moves to the groups that read it. The
models quantize to int8 or float8 and multiply the values as wider numbers, or cast 16-bit norms and products to
float32. Under full no value named "wide" is stored, and the plan is predicted to be no slower than without the pass. On
the emulator, on sm_80 and sm_90a, results equal the reference's, and quantized values equal the graph's.

--sample: N of the cases, chosen by the seed."""
import argparse, json, os, random, tempfile

from emulated_run import expect, finish, run


def tensor(name, dtype, *shape):
    return {"name": name, "dtype": dtype, "shape": list(shape)}


class Model:
    def __init__(self, inputs, constants):
        self.entry = {"fusec": 1, "name": "borders", "inputs": inputs, "constants": constants, "nodes": []}

    def __call__(self, op, inputs, name=None, **attributes):
        name = name or f"n{len(self.entry['nodes'])}"
        self.entry["nodes"].append({"name": name, "op": op, "inputs": inputs, "attrs": attributes})
        return name

    def give(self, *outputs):
        return {**self.entry, "outputs": list(outputs)}


def codes_of(m, wide, least):
    """Quantizes each row to 8 bits, with a scale."""
    top = m("clamp", [m("amax", [m("abs", [wide])], dim=[-1], keepdim=True)], min=1e-8)
    scale = m("div", [top, 127.0])
    rounded = m("clamp", [m("round", [m("div", [wide, scale])])], min=least, max=127)
    return m("cast", [rounded], dtype="int8"), scale


def product(m, codes, scale, wide):
    """Multiplies quantized values as wider numbers, and then by their scale."""
    by = m("cast", ["c"], dtype=wide)
    made = m("linear", [m("cast", [codes], "wide", dtype=wide), by])
    if wide != "float32":
        made = m("cast", [made], dtype="float32")
    return m("mul", [made, scale])


def quantized(rows, dtype, depth, columns, wide, norm):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("c", "int8", columns, depth), tensor("g", dtype, depth)])
    x = m("rms_norm", ["x", "g"], normalized_shape=[depth], eps=1e-5) if norm else "x"
    codes, scale = codes_of(m, m("cast", [x], dtype="float32"), -128)
    return m.give(product(m, codes, scale, wide))


def float8(rows, dtype, depth, columns):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("c", "float8_e4m3fn", columns, depth)])
    x = m("cast", ["x"], dtype="float32")
    top = m("clamp", [m("amax", [m("abs", [x])], dim=[-1], keepdim=True)], min=1e-8)
    scale = m("div", [top, 448.0])
    codes = m("cast", [m("div", [x, scale])], dtype="float8_e4m3fn")
    return m.give(product(m, codes, scale, "float32"))


def columns_of(rows, dtype, depth):
    """A norm of rows, then a softmax along the columns."""
    m = Model([tensor("x", dtype, rows, depth)], [tensor("g", dtype, depth)])
    x = m("rms_norm", ["x", "g"], normalized_shape=[depth], eps=1e-5)
    return m.give(m("softmax", [m("cast", [x], "wide", dtype="float32")], dim=0))


def probabilities(rows, dtype, depth, columns):
    m = Model([tensor("x", dtype, rows, depth)], [tensor("w", dtype, columns, depth)])
    p = m("linear", ["x", "w"])
    return m.give(m("softmax", [m("cast", [p], "wide", dtype="float32")], dim=-1))


def cases():
    """(name, model)"""
    for dtype in ("bfloat16", "float16"):
        for rows, depth, columns in ((5, 32, 32), (33, 96, 72)):
            what = f"{rows}x{depth}x{columns} {dtype}"
            for norm in (False, True):
                for wide in ("int32", "float32"):
                    yield (f"quantized {what} {wide}{' norm' if norm else ''}",
                           quantized(rows, dtype, depth, columns, wide, norm))
            yield f"float8 {what}", float8(rows, dtype, depth, columns)
            yield f"columns {what}", columns_of(rows, dtype, depth)
            yield f"probabilities {what}", probabilities(rows, dtype, depth, columns)


def totals(options, path, arch, what, *more):
    with_report = [options.fusec, path("m.json"), f"--arch={arch}", "--no-nvrtc", f"--emit=report={path('r.json')}",
                   f"--emit=partition={path('p.json')}", *more]
    if not run(with_report, what):
        return None, []
    with open(path("r.json"), encoding="utf-8") as f:
        total = json.load(f)["totals"]["full"]
    with open(path("p.json"), encoding="utf-8") as f:
        return total, json.load(f)["groups"]


def check(options, folder, name, entry, arch):
    what = f"{name} on {arch}"
    path = lambda file: os.path.join(folder, file)
    with open(path("m.json"), "w", encoding="utf-8") as f:
        json.dump(entry, f)
    total, groups = totals(options, path, arch, what)
    without, _ = totals(options, path, arch, what, "--disable-pass=move-borders")
    if not total or not without:
        return
    expect(total["predicted_us"] <= without["predicted_us"] * 1.000001,
           f"{what}: {total['predicted_us']} us predicted, {without['predicted_us']} without the pass")
    expect(all("wide" not in g["outputs"] for g in groups), f"{what}: wide values are stored")
    run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--verify", "--device=emulator"], what)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    picked = [c for c in cases() if options.only in c[0]]
    if options.sample:
        picked = random.Random(options.seed).sample(picked, min(options.sample, len(picked)))
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, entry) in enumerate(picked):
            for arch in ("sm_80", "sm_90a") if not options.sample else (("sm_80", "sm_90a")[i % 2],):
                check(options, folder, name, entry, arch)
    finish(f"{len(picked)} models, ")


if __name__ == "__main__":
    main()
