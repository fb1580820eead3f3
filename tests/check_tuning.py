#!/usr/bin/env python3
"""check_tuning.py FUSEC FUSEC_RUN [--sample]

`fusec-run --tune` on the emulator measures every candidate of a kernel and keeps the fastest. --tuning-db compiles with
the candidates of the file, and results are right. Errors in a file are reported. --sample: without GEMM and
convolution. Status 77: no NVRTC."""
import json
import os
import subprocess
import sys
import tempfile

FUSEC, RUN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SAMPLE = "--sample" in sys.argv
failures = []


def model(name, nodes, **inputs):
    return {"fusec": 1, "name": name, "outputs": [nodes[-1]["name"]], "nodes": nodes,
            "inputs": [{"name": n, "dtype": d, "shape": s} for n, (d, s) in inputs.items()]}


PRODUCT = model("layer", [{"name": "p", "op": "linear", "inputs": ["x", "w"]}, {"name": "y", "op": "gelu", "inputs": ["p"]}],
                x=("bfloat16", [200, 128]), w=("bfloat16", [264, 128]))
SHARED = model("deep", [{"name": "p", "op": "linear", "inputs": ["x", "w"]}, {"name": "y", "op": "relu", "inputs": ["p"]}],
               x=("bfloat16", [72, 2056]), w=("bfloat16", [136, 2056]))
CODES = model("codes", [{"name": "w", "op": "dequantize", "inputs": ["c", "s"],
                         "attrs": {"dtype": "float32", "axis": 1, "block": 128}},
                        {"name": "f", "op": "cast", "inputs": ["x"], "attrs": {"dtype": "float32"}},
                        {"name": "y", "op": "linear", "inputs": ["f", "w"]}],
              x=("float16", [40, 4224]), c=("int4", [40, 4224]), s=("float32", [40, 33]))
IMAGE = model("image", [{"name": "i", "op": "permute", "inputs": ["x"], "attrs": {"dims": [0, 3, 1, 2]}},
                        {"name": "v", "op": "permute", "inputs": ["w"], "attrs": {"dims": [0, 3, 1, 2]}},
                        {"name": "p", "op": "conv2d", "inputs": ["i", "v"], "attrs": {"padding": [1, 1]}},
                        {"name": "y", "op": "permute", "inputs": ["p"], "attrs": {"dims": [0, 2, 3, 1]}}],
              x=("float16", [2, 11, 13, 40]), w=("float16", [72, 3, 3, 40]))
FEW_ROWS = model("decode", [{"name": "p", "op": "linear", "inputs": ["x", "w"]}, {"name": "y", "op": "silu", "inputs": ["p"]}],
                 x=("float16", [5, 1024]), w=("float16", [264, 1024]))
POINTWISE = model("gate", [{"name": "s", "op": "silu", "inputs": ["g"]}, {"name": "y", "op": "mul", "inputs": ["s", "u"]}],
                  g=("float16", [1024, 2048]), u=("float16", [1024, 2048]))
ROWS = [model(f"norm{columns}", [{"name": "y", "op": "rms_norm", "inputs": ["x", "w"], "attrs": {"normalized_shape": [columns]}}],
              x=("bfloat16", [rows, columns]), w=("bfloat16", [columns]))
        for rows, columns in [(300, 33), (64, 512), (10, 4096)]]


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


def expect(what, holds, found=""):
    if not holds:
        failures.append(f"{what}: {found}")


def compiled(path, *options):
    done = run(FUSEC, path, "--no-nvrtc", "-o", "-", *options)
    expect("a compilation with " + " ".join(options), done.returncode == 0, done.stderr)
    return done.stdout


def check_model(folder, graph, arch):
    path, database = os.path.join(folder, graph["name"] + ".json"), os.path.join(folder, f"{graph['name']}.{arch}.db")
    with open(path, "w") as file:
        json.dump(graph, file)
    tuned = run(RUN, path, "--random=3", "--device=emulator", "--tune", "--tuning-db=" + database, "--arch=" + arch)
    if tuned.returncode == 3 and "libnvrtc" in tuned.stderr:
        print("skipped: no NVRTC")
        sys.exit(77)
    expect(f"{graph['name']} on {arch}", tuned.returncode == 0, tuned.stderr)
    content = json.load(open(database))
    expect("one kernel is tuned", len(content["kernels"]) == 1, content)
    kernel = content["kernels"][0]
    times = kernel["microseconds"]
    expect("several ways were measured", len(times) > 1, times)
    expect("the least is kept", times[kernel["choice"]] == min(times.values()), kernel)
    expect("as the emulator's", kernel["device"] == "emulator" and kernel["arch"] == arch, kernel)
    plain, sources = compiled(path, "--arch=" + arch), set()
    for way in times:
        kernel["choice"] = way
        with open(database, "w") as file:
            json.dump(content, file)
        sources.add(compiled(path, "--arch=" + arch, "--tuning-db=" + database))
        verified = run(RUN, path, "--random=5", "--device=emulator", "--verify", "--arch=" + arch, "--tuning-db=" + database)
        expect(f"{graph['name']} on {arch}, {way}", verified.returncode == 0, verified.stderr)
    expect("every way is a kernel of its own", len(sources) == len(times), len(sources))
    expect("the predicted way is one of them", plain in sources)
    kernel["choice"] = "a way of another version"
    with open(database, "w") as file:
        json.dump(content, file)
    done = run(FUSEC, path, "--no-nvrtc", "-o", "-", "--arch=" + arch, "--tuning-db=" + database)
    expect("an unknown way counts for nothing", done.returncode == 0 and done.stdout == plain, done.stderr)
    expect("an unknown way is named", 'found "a way of another version"' in done.stderr and kernel["kernel"] in done.stderr
           and next(iter(times)) in done.stderr, done.stderr)
    other = "sm_80" if arch != "sm_80" else "sm_90a"
    kernel["choice"] = next(way for way in times)
    expect("another architecture's counts for nothing",
           compiled(path, "--arch=" + other, "--tuning-db=" + database) == compiled(path, "--arch=" + other))
    return set(times)


def check_errors(folder):
    path, database = os.path.join(folder, "layer.json"), os.path.join(folder, "bad.db")
    with open(path, "w") as file:
        json.dump(PRODUCT, file)
    for text, wanted in [("{", "bad.db"), ('{"fusec_tuning": 2, "kernels": []}', "/fusec_tuning"),
                         ('{"fusec_tuning": 1, "kernels": [{"arch": 3}]}', "/kernels/0/arch"),
                         ('{"fusec_tuning": 1, "kernels": [{"arch": "sm_80"}]}', 'missing key "key"')]:
        with open(database, "w") as file:
            file.write(text)
        for command in ([FUSEC, path, "--no-nvrtc", "-o", "-"], [RUN, path, "--random", "--device=emulator", "--tune"]):
            done = run(*command, "--tuning-db=" + database)
            expect(f"the file {text}", done.returncode == 1 and wanted in done.stderr, done.stderr)
        expect("a wrong file stays as it is", open(database).read() == text)
    expect("a file that is not there", run(FUSEC, path, "--tuning-db=/nowhere").returncode == 1)
    expect("--tune without a file", run(RUN, path, "--random", "--device=emulator", "--tune").returncode == 2)
    expect("--tune on the reference", run(RUN, path, "--random", "--tune", "--tuning-db=" + database).returncode == 2)


def check_products(scratch):
    of_warps = check_model(scratch, PRODUCT, "sm_80")
    ways = check_model(scratch, PRODUCT, "sm_90a")
    expect("warpgroups' tiles are ways beside those of warps",
           of_warps < ways and all("by warpgroups" in way for way in ways - of_warps), ways)
    ways = check_model(scratch, SHARED, "sm_90a")
    expect("shares of the depth are ways, of warps and of warpgroups",
           {"by warps", "by warpgroups"} <= {kind for way in ways if "shares of the depth" in way
                                             for kind in ("by warps", "by warpgroups") if kind in way}, ways)
    ways = check_model(scratch, CODES, "sm_80")
    expect("shares of the depth are ways of codes in groups", any("shares of the depth" in way for way in ways), ways)
    ways = check_model(scratch, IMAGE, "sm_90a")
    expect("a convolution's tiles are ways, of warps and of warpgroups",
           {"by warps", "by warpgroups"} <= {kind for way in ways for kind in ("by warps", "by warpgroups") if kind in way},
           ways)


with tempfile.TemporaryDirectory() as scratch:
    check_model(scratch, FEW_ROWS, "sm_80")
    check_model(scratch, ROWS[0], "sm_80")
    check_model(scratch, POINTWISE, "sm_90a")
    if not SAMPLE:
        check_products(scratch)
        check_model(scratch, POINTWISE, "sm_80")
        check_model(scratch, ROWS[1], "sm_80")
        check_model(scratch, ROWS[2], "sm_90a")
    check_errors(scratch)
print("\n".join(failures) or "tuning: 0 failures")
sys.exit(1 if failures else 0)
