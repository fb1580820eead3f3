#!/usr/bin/env python3
"""check_view.py FUSEC [--update]: the pictures of a compiled model, --emit=html, dot and svg.

- The page has, for each strategy, what --emit=partition, report and ledger write, and groups, launches, kernels, memory
  and repeated blocks that agree with it.
- It loads nothing from a network.
- Repeated layers are one block. A line of a kernel's source leads to the node that it computes.
- tests/view/*.dot are the pictures of two small models (--update rewrites them).
- Graphviz draws ResNet-50 at most 2500 points wide. If Graphviz is missing, that is reported before anything is
  compiled."""
import json, os, re, shutil, subprocess, sys, tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
STRATEGIES = ("none", "tvm", "full")
failures = []


def check(what, holds, found=""):
    if not holds:
        failures.append(f"{what} {found}".rstrip())
        print("FAILED:", failures[-1])


def emit(fusec, model, kind, *options):
    run = subprocess.run([fusec, str(model), f"--emit={kind}", "--no-nvrtc", "--arch=sm_90a", *options], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{model}, {kind}: {run.stderr}")
    return run.stdout


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)</script>', page, re.S)[1])


def layers(count, folder):
    """A file with a model of so many equal layers."""
    model = {"fusec": 1, "name": "layers", "inputs": [{"name": "x", "dtype": "float32", "shape": [512, 1024]}],
             "constants": [], "nodes": [], "outputs": [f"r{count - 1}"]}
    value = "x"
    for i in range(count):
        model["constants"] += [{"name": f"w{i}", "dtype": "float32", "shape": [4096, 1024]},
                               {"name": f"v{i}", "dtype": "float32", "shape": [1024, 4096]}]
        model["nodes"] += [{"name": f"n{i}", "op": "softmax", "inputs": [value], "attrs": {"dim": 1}},
                           {"name": f"a{i}", "op": "linear", "inputs": [f"n{i}", f"w{i}"]},
                           {"name": f"g{i}", "op": "gelu", "inputs": [f"a{i}"]},
                           {"name": f"b{i}", "op": "linear", "inputs": [f"g{i}", f"v{i}"]},
                           {"name": f"r{i}", "op": "add", "inputs": [value, f"b{i}"]}]
        value = f"r{i}"
    path = Path(folder) / "layers.json"
    path.write_text(json.dumps(model))
    return path


def check_strategy(fusec, model, name, view):
    where = f"{model.name}, {name}:"
    for kind in ("partition", "report", "ledger"):
        check(f"{where} the page's {kind}", view[kind] == json.loads(emit(fusec, model, kind, f"--strategy={name}")))
    groups = [g for g in view["groups"] if not g.get("prepared")]
    check(f"{where} groups", [g["name"] for g in groups] == [g["name"] for g in view["partition"]["groups"]])
    check(f"{where} every node is in a group", {n for g in view["groups"] for n in g["nodes"]} == set(range(len(view["nodes"]))))
    check(f"{where} launches", sum(len(g["steps"]) for g in groups) == sum(g["launches"] for g in view["partition"]["groups"]))
    refused = {(e["from"], e["to"]) for e in view["ledger"]["edges"]}
    check(f"{where} every edge between groups is explained", bool(refused) or not view["edges"])
    manifest = json.loads(emit(fusec, model, "manifest", f"--strategy={name}"))
    check(f"{where} kernels", [k["name"] for k in view["kernels"]] == [k["name"] for k in manifest["kernels"]])
    check(f"{where} steps", len(view["steps"]) == len(manifest["launches"]))
    source = emit(fusec, model, "cu", f"--strategy={name}")
    for kernel in view["kernels"]:
        check(f"{where} source of {kernel['name']}", kernel["source"].rstrip("\n") in source)
        check(f"{where} lines of {kernel['name']}", len(kernel["lines"]) == len(kernel["source"].splitlines()))
        check(f"{where} some line of {kernel['name']} leads to a node", any(kernel["lines"]))
    for value in view["arena"]:
        check(f"{where} {value} lies in the workspace", 0 <= value["offset"] <= view["workspace"] - value["bytes"])
        check(f"{where} {value} lives", value["first"] <= value["last"] < len(view["steps"]))
    for block in view["blocks"]:
        check(f"{where} {block}", block["count"] > 1 and block["first"] + block["length"] * block["count"] <= len(view["items"]))


def check_page(fusec, model):
    page = emit(fusec, model, "html")
    # The page forbids the browser to load anything, and has nothing to load.
    check(f"{model.name}: the page's policy", "content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\"" in page)
    outside = re.sub(r"(?s)<!--.*?-->|(<script[^>]*>).*?</script>", r"\1", page)
    for word in (r"\bsrc=", r"\bhref=", "@import", r"url\("):
        check(f"{model.name}: the page loads nothing ({word})", not re.search(word, outside))
    data = data_of(page)
    check(f"{model.name}: strategies", tuple(data["strategies"]) == STRATEGIES and data["asked"] == "full")
    for name, view in data["strategies"].items():
        check_strategy(fusec, model, name, view)
    return data


def check_lines(data):
    """In the gated unit's kernel, the line that assigns `h` and the comment about `h` belong to the node h."""
    view = data["strategies"]["full"]
    group = view["groups"][0]
    places = {view["nodes"][n]["name"]: i for i, n in enumerate(group["nodes"])}
    kernel = view["kernels"][view["steps"][group["steps"][0]]["kernel"]]
    found = {"comment": False, "store": False}
    for line, nodes in zip(kernel["source"].splitlines(), kernel["lines"]):
        if line.startswith("// act = silu(gate)"):
            found["comment"] = nodes == [places["act"]]
        if re.match(r" +h_v\[.*\] = ", line):
            found["store"] = nodes == [places["h"]]
    check("lines lead to nodes", all(found.values()), found)


def check_dot(fusec, model, golden, update):
    text = emit(fusec, model, "dot")
    if update:
        golden.write_text(text)
    check(f"{golden.name} is as it was (--update)", golden.exists() and golden.read_text() == text)


def check_svg(fusec, folder):
    """Widths that a page can show: of a deep model, of one with 600 inputs, and of one without a node."""
    if shutil.which("dot") is None:
        print("not laid out: Graphviz is missing")
        return
    models = HERE / "corpus" / "models"
    nothing = Path(folder) / "nothing.json"
    x = {"name": "x", "dtype": "float32", "shape": [4]}
    nothing.write_text(json.dumps({"fusec": 1, "name": "nothing", "inputs": [x], "nodes": [], "outputs": ["x"]}))
    for model in (models / "resnet50_f32.full.json", models / "fmt_wide_args_f32.full.json", nothing):
        width = float(re.search(r'<svg width="([\d.]+)pt"', emit(fusec, model, "svg"))[1])
        check(f"{model.stem} is at most 2500 points wide", width <= 2500, width)


def check_word(fusec, folder):
    """`fusec view`: a page in a temporary file or -o FILE, whose path is printed where there is no display."""
    quiet = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")} | {"TMPDIR": str(folder)}

    def view(*options):
        return subprocess.run([fusec, "view", *options, "--no-nvrtc", "--arch=sm_90a"], capture_output=True, text=True, env=quiet)

    model = str(EXAMPLES / "swiglu_mlp.json")
    page = emit(fusec, model, "html")
    path = Path(view(model).stdout.strip())
    check("fusec view prints a page's path", path.suffix == ".html" and path.read_text() == page, path)
    path = Path(folder) / "mine.html"
    run = view(model, "-o", str(path))
    check("fusec view -o", run.stdout == f"{path}\n" and path.read_text() == page, run)
    before = set(os.listdir(folder))
    run = view(str(Path(folder) / "no.json"))
    check("fusec view of no model leaves nothing", run.returncode == 1 and set(os.listdir(folder)) == before, run)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    fusec, update = sys.argv[1], "--update" in sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        check_lines(check_page(fusec, EXAMPLES / "swiglu_mlp.json"))
        check_word(fusec, folder)
        check_page(fusec, EXAMPLES / "llama_block.json")
        stack = layers(6, folder)
        data = check_page(fusec, stack)
        for name in STRATEGIES:
            blocks = data["strategies"][name]["blocks"]
            check(f"six layers are one block under {name}", [b["count"] for b in blocks] == [6], blocks)
        check_dot(fusec, EXAMPLES / "swiglu_mlp.json", HERE / "view" / "swiglu_mlp.dot", update)
        check_dot(fusec, stack, HERE / "view" / "layers.dot", update)
        check_svg(fusec, folder)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
