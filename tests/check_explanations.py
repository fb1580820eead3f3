#!/usr/bin/env python3
"""check_explanations.py FUSEC: --explain and --require-one-kernel on nodes that were rewritten away and
on a group that takes several kernels; the explanation that the README shows is today's; every edge that was not fused
has a node to blame and a change that would allow it; plan files with one group for both, where that is offered, are
taken and are one kernel."""
import glob, json, os, re, subprocess, sys, tempfile

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

INPUT = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [8]}]}
PRODUCTS = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [16, 16]},
                                   {"name": "w", "dtype": "float32", "shape": [16, 16]}],
            "nodes": [{"name": "first", "op": "matmul", "inputs": ["x", "w"]},
                      {"name": "second", "op": "matmul", "inputs": ["first", "w"]}],
            "outputs": ["second"]}


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
            for at in both:  # in the place of the one, or of the other
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

        # A user's patterns of one node, that do nothing or claim it.
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

        # A given plan that has in one group what takes two kernels.
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
