#!/usr/bin/env python3
"""check_explanations.py FUSEC: --explain and --require-one-kernel on lists of nodes, names with commas and brackets
among them, and on a group that takes several kernels."""
import json, os, subprocess, sys, tempfile

AWKWARD = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [8]}],
           "nodes": [{"name": "a,b", "op": "relu", "inputs": ["x"]}, {"name": "[c]", "op": "exp", "inputs": ["a,b"]},
                     {"name": "[d,e]", "op": "neg", "inputs": ["[c]"]}],
           "outputs": ["[d,e]"]}
PRODUCTS = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [16, 16]},
                                   {"name": "w", "dtype": "float32", "shape": [16, 16]}],
            "nodes": [{"name": "first", "op": "matmul", "inputs": ["x", "w"]},
                      {"name": "second", "op": "matmul", "inputs": ["first", "w"]}],
            "outputs": ["second"]}


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

        awkward = [fusec, file("awkward.json", AWKWARD), "--no-nvrtc"]
        expect(0, "one kernel", awkward + ['--explain=["a,b","[c]"]'])
        expect(0, "", awkward + ['--require-one-kernel=["a,b","[d,e]"]'])
        expect(1, "no such node", awkward + ["--explain=a,b"])
        expect(0, "in 3 groups", awkward + ["--no-fuse-node=[c]"])
        expect(0, "in 2 groups", awkward + ["--no-fuse-node=[d,e]"])
        expect(1, "not one kernel", awkward + ["--no-fuse-node=[c]", '--require-one-kernel=["a,b","[c]"]'])

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
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
