#!/usr/bin/env python3
"""check_hidden_names.py FUSEC

No local variable of an emitted kernel hides a size that the kernel is given. Each symbol of some models gets every name
in turn that a kernel declares. A kernel that declares the name of one of its own parameters is a failure, unless it is
a constant such as kKeyBytes. NVRTC accepts such a kernel, and it may compute something else.

    const int m;  for (int m = 0; m < 4; ++m) row_there[m] = 8 * m + group < m;      no row is there"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = [os.path.join(HERE, "..", "examples", "llama_block.json"), os.path.join(HERE, "golden", "guards.json"),
          os.path.join(HERE, "golden", "symbols.json")]
DECLARED = re.compile(r"\b(?:int|unsigned|float|double|bool|auto|size_t|long long)\s+\(?&?([A-Za-z_]\w*)\s*(?=[=\[;,){:])")


def kernels(text):
    """(parameters, body) of each kernel."""
    for found in re.finditer(r'extern "C" __global__ .*?\n?(\w+)\(([^{]*)\) \{\n(.*?)\n\}\n', text, re.S):
        yield set(re.findall(r"(\w+)\s*(?:,|$)", found[2])), found[3]


def emitted(fusec, model, target, folder):
    path, out = os.path.join(folder, "model.json"), os.path.join(folder, "out.cu")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    subprocess.run([fusec, path, "--no-nvrtc", "--quiet", f"--arch={target}", "-o", out], check=True)
    with open(out, encoding="utf-8") as f:
        return f.read()


def renamed(value, old, new):
    """The model with its symbol `old` called `new`, in dimensions and in attributes."""
    if isinstance(value, dict):
        return {(new if key == old else key): renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, old, new) for each in value]
    return re.sub(rf"\b{old}\b", new, value) if isinstance(value, str) else value


def with_name(model, symbol, name):
    result = copy.deepcopy(model)
    for part in ("symbols", "inputs", "constants"):
        result[part] = renamed(model.get(part, {} if part == "symbols" else []), symbol, name)
    for node in result["nodes"]:
        node["attrs"] = renamed(node.get("attrs", {}), symbol, name)
    return result


def main():
    failures, tried = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for path in MODELS:
            with open(path, encoding="utf-8") as f:
                model = json.load(f)
            taken = {v["name"] for part in ("inputs", "constants", "nodes") for v in model.get(part, [])} | set(model["symbols"])
            for target in ("sm_80", "sm_90a"):
                declared = set()
                for _, body in kernels(emitted(sys.argv[1], model, target, folder)):
                    declared |= {name for name in DECLARED.findall(body) if not re.search(r"^k[A-Z]|_\d+$", name)}
                for name in sorted(declared - taken):
                    tried += 1
                    for parameters, body in kernels(emitted(sys.argv[1], with_name(model, min(model["symbols"]), name), target, folder)):
                        hidden = parameters & set(DECLARED.findall(body))
                        failures += [f"{os.path.basename(path)} {target}: {one} is hidden" for one in hidden if not re.match("k[A-Z]", one)]
    print("\n".join([*sorted(set(failures)), f"{tried} names, {len(set(failures))} failures"]))
    sys.exit(1 if failures or tried < 100 else 0)


if __name__ == "__main__":
    main()
