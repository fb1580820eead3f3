#!/usr/bin/env python3
"""check_explanations.py FUSEC

--explain and --require-one-kernel on nodes that were rewritten, and on a group of several kernels. The explanation in
the README is current; docs/fusion.md has every rule. Every edge that was not fused has a blocking node and a change that
would allow fusion. If the change is a plan with one group for both nodes, that plan is accepted and gives one kernel."""
import glob, json, os, re, subprocess, sys, tempfile

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

INPUT = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [8]}]}
PRODUCTS = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [16, 16]},
                                   {"name": "w", "dtype": "float32", "shape": [16, 16]}],
            "nodes": [{"name": "first", "op": "matmul", "inputs": ["x", "w"]},
                      {"name": "second", "op": "matmul", "inputs": ["first", "w"]}],
            "outputs": ["second"]}

# Its scaled weight is prepared: in the product's kernel, the weight and the scale were read in every run instead of it.
PREPARED = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [64, 256]}],
            "constants": [{"name": "w", "dtype": "float32", "shape": [256, 256]},
                          {"name": "s", "dtype": "float32", "shape": [256, 1]}],
            "nodes": [{"name": "e", "op": "exp", "inputs": ["w"]}, {"name": "scaled", "op": "mul", "inputs": ["e", "s"]},
                      {"name": "y", "op": "linear", "inputs": ["x", "scaled"]}], "outputs": ["y"]}


def refused_offers(fusec, model, edges):
    offered = [(e["from"], e["to"]) for e in edges if e["would_allow"].startswith("one group for both")]
    if not offered:
        return []
    refused = []
    with tempfile.TemporaryDirectory(prefix="fusec_plans_") as scratch:
        path = os.path.join(scratch, "plan.json")
        subprocess.run([fusec, model, "--no-nvrtc", f"--emit=plan={path}"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        with open(path, encoding="utf-8") as f:
            plan = json.load(f)
        for edge in offered:
            both = [g for g in plan["groups"] if edge[0] in g["nodes"] or edge[1] in g["nodes"]][:2]
            nodes = list(dict.fromkeys(n for g in both for n in g["nodes"]))
            messages = []
            for at in both:  # the joint group takes the position of either group
                groups = [{"name": "both", "nodes": nodes} if g is at else g
                          for g in plan["groups"] if g is at or g not in both]
                with open(path, "w", encoding="utf-8") as f:
                    json.dump({**plan, "groups": groups}, f)
                tried = subprocess.run([fusec, model, "--no-nvrtc", f"--plan={path}",
                                        "--require-one-kernel=" + json.dumps(edge)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if tried.returncode == 0:
                    break
                messages.append(tried.stderr.strip())
            else:
                refused.append(f"{os.path.basename(model)}: {edge} as one group, which is offered: {messages}")
    return refused


def optimizer(tensors):
    """AdamW with its step and learning rate as inputs. The updates of all tensors read a few numbers made of them.
    """
    node = lambda name, op, *inputs, **attrs: {"name": name, "op": op, "inputs": list(inputs), "attrs": attrs}
    nodes = [node("next", "add", "step", 1.0), node("a", "pow", 0.9, "next"), node("b", "sub", 1.0, "a"),
             node("c", "pow", 0.999, "next"), node("d", "sub", 1.0, "c"), node("e", "mul", "rate", 0.01),
             node("decay", "sub", 1.0, "e"), node("root", "sqrt", "d"), node("scale", "div", "rate", "b")]
    outputs, inputs = ["next"], [{"name": n, "dtype": "float32", "shape": []} for n in ("rate", "step")]
    for i in range(tensors):
        inputs += [{"name": f"{n}{i}", "dtype": "float32", "shape": [4096 + 1000 * i]} for n in "pgmv"]
        nodes += [node(f"f{i}", "mul", f"p{i}", "decay"), node(f"m_new{i}", "lerp", f"m{i}", f"g{i}", 0.1),
                  node(f"h{i}", "mul", f"v{i}", 0.999), node(f"v_new{i}", "addcmul", f"h{i}", f"g{i}", f"g{i}", value=0.001),
                  node(f"i{i}", "sqrt", f"v_new{i}"), node(f"j{i}", "div", f"i{i}", "root"),
                  node(f"k{i}", "add", f"j{i}", 1e-8), node(f"l{i}", "div", f"m_new{i}", f"k{i}"), node(f"n{i}", "mul", "scale", f"l{i}"),
                  node(f"p_new{i}", "sub", f"f{i}", f"n{i}")]
        outputs += [f"p_new{i}", f"m_new{i}", f"v_new{i}"]
    aliases = {"next": "step"} | {f"{n}_new{i}": f"{n}{i}" for i in range(tensors) for n in "pmv"}
    return {"fusec": 1, "name": "optimizer", "inputs": inputs, "nodes": nodes, "outputs": outputs, "aliases": aliases}


def unprepared_offers(fusec, path, model):
    """If --explain says that nodes would be prepared with constant inputs, they are prepared when the inputs are
    constants."""
    emitted = lambda what: json.loads(subprocess.run([fusec, path, "--no-nvrtc", "--emit=" + what],
                                                     stdout=subprocess.PIPE, check=True).stdout)
    offers = [re.fullmatch(r"if (.*) were constant: (.*) would be prepared then", e["would_allow"])
              for e in emitted("ledger")["edges"]]
    offers = {offer.groups() for offer in offers if offer}
    wrong = [] if offers else ["no offer to make a number constant"]
    for inputs, prepared in offers:
        constant = json.loads(f"[{inputs}]")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({**model, "inputs": [i for i in model["inputs"] if i["name"] not in constant],
                       "constants": [i for i in model["inputs"] if i["name"] in constant],
                       "aliases": {o: i for o, i in model["aliases"].items() if i not in constant}}, f)
        if json.loads(prepared) not in emitted("partition")["prepared"]:
            wrong.append(f"{prepared} is not prepared with {inputs} as constants")
    return wrong


def main():
    fusec = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory(prefix="fusec_command_line_") as scratch:
        def file(name, value):
            path = os.path.join(scratch, name)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(value, f)
            return path

        def expect(status, text, command):
            p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            said = p.stdout.decode("utf-8", "replace")
            if p.returncode != status or text not in said:
                failures.append(f"{' '.join(command)}\n    exit status {p.returncode}, expected {status} and "
                                f"{text!r} in\n    {said[-1500:]}")
            return said

        rewritten = {**INPUT, "nodes": [{"name": "same", "op": "identity", "inputs": ["x"]},
                                          {"name": "once", "op": "relu", "inputs": ["same"]},
                                          {"name": "y", "op": "exp", "inputs": ["once"]}], "outputs": ["y"]}
        expect(0, '"same" was rewritten away: "once" computes its value',
               [fusec, file("rewritten.json", rewritten), "--no-nvrtc", "--explain=same,y"])

        prepared = file("prepared.json", PREPARED)
        edges = json.loads(subprocess.run([fusec, prepared, "--no-nvrtc", "--emit=ledger"], stdout=subprocess.PIPE,
                                          check=True).stdout)["edges"]
        if [(e["rule"], e["bytes_saved"]) for e in edges] != [("prepared", -1024)]:
            failures.append(f"the ledger of a prepared weight: {edges}")
        expect(0, "joining would cost 1 024 bytes more", [fusec, prepared, "--no-nvrtc", "--explain=scaled,y"])

        failures += unprepared_offers(fusec, file("optimizer.json", optimizer(12)), optimizer(12))

        # Of one node, the edges of its kernel are told as well; the last edge is not fused.
        expect(0, '"first" -> "second": not fused', [fusec, file("products.json", PRODUCTS), "--no-nvrtc",
                                                     "--explain=first"])

        # A user's patterns of one node, which claim it or match nothing.
        def patterns(text):
            path = os.path.join(scratch, "mine.patterns")
            with open(path, "w", encoding="utf-8") as f:
                f.write("pattern mine.one priority 5000 match " + text)
            return f"--patterns={path}"

        single = file("single.json", {**PRODUCTS, "nodes": PRODUCTS["nodes"][:1], "outputs": ["first"]})
        for text, said in [("matmul(a, b) becomes group", 'mine.one claimed "first"'),
                           ("matmul(a, b) becomes sum(a, dim=0)", "sum would have another type"),
                           ("matmul(a, b) becomes call cublaslt", "--gemm=builtin calls no library")]:
            expect(0, said, [fusec, single, "--no-nvrtc", "--explain=all", patterns(text)])

        # One that changes nothing says so, by file and line.
        idle = patterns("relu(a) becomes group")
        said = f"note: {idle.removeprefix('--patterns=')}:1: pattern mine.one changed nothing"
        expect(0, said, [fusec, single, "--no-nvrtc", idle])
        if said in expect(0, "", [fusec, single, "--no-nvrtc", "--quiet", idle]):
            failures.append("--quiet does not keep a note back")
        expect(0, "tried under --strategy=full", [fusec, single, "--no-nvrtc", "--strategy=tvm", idle])
        expect(0, "less time is predicted without", [fusec, single, "--no-nvrtc", patterns("matmul(a, b) becomes mul(a, b)")])
        for text in ("matmul(a, b) becomes group", "matmul(a, b) where same_type(a, b) becomes relu(a)"):
            if "changed nothing" in expect(0, "", [fusec, single, "--no-nvrtc", patterns(text)]):
                failures.append(f"{text} changes something")

        # A given plan with a group that takes two kernels.
        products = file("products.json", PRODUCTS)
        plan = json.loads(subprocess.run([fusec, products, "--emit=plan"], stdout=subprocess.PIPE, check=True).stdout)
        plan["groups"] = [{**plan["groups"][0], "nodes": ["first", "second"]}]
        both = [fusec, products, "--no-nvrtc", f"--plan={file('plan.json', plan)}"]
        expect(1, "one group", both + ["--require-one-kernel=first,second"])
        expect(0, 'stored between them: "first"', both + ["--explain=first,second"])
        told = subprocess.run(both + ["--explain=first,second", "--json"], stdout=subprocess.PIPE, check=True).stdout
        answer = json.loads(told)
        if answer["one_kernel"] or answer["kernels"] != 2 or answer["stored"] != ["first"]:
            failures.append(f"--explain --json of a group of two kernels: {answer}")
    with open(os.path.join(PROJECT, "README.md"), encoding="utf-8") as f:
        shown = re.search(r"`fusec (\S+) (--explain=\S+)`.*?```\n(.*?)```", f.read(), re.S)
    told = subprocess.run([fusec, os.path.join(PROJECT, shown[1]), shown[2]], stdout=subprocess.PIPE, check=True).stdout
    if told.decode().split() != shown[3].split():
        failures.append(f"the README's explanation is not today's:\n{told.decode()}")
    with open(os.path.join(PROJECT, "docs", "schemas", "ledger.schema.json"), encoding="utf-8") as f:
        rules = json.load(f)["properties"]["edges"]["items"]["properties"]["rule"]["enum"]
    with open(os.path.join(PROJECT, "docs", "fusion.md"), encoding="utf-8") as f:
        table = re.findall(r"^\| `(\w+)` \|", f.read().split("## Rules")[1].split("\n## ")[0], re.M)
    if table != rules:
        failures.append(f"docs/fusion.md: the table of rules differs from the schema's: {sorted(set(table) ^ set(rules))}")
    for model in sorted(glob.glob(os.path.join(PROJECT, "tests", "corpus", "models", "*.tiny.json")))[::4]:
        told = subprocess.run([fusec, model, "--no-nvrtc", "--emit=ledger"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout
        silent = [edge for edge in json.loads(told)["edges"] if not edge["blocker"] or not edge["would_allow"]]
        if silent:
            failures.append(f"{os.path.basename(model)}: {len(silent)} edges without blocker or change, {silent[0]}")
        failures += refused_offers(fusec, model, json.loads(told)["edges"])
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
