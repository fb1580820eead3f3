#!/usr/bin/env python3
"""check_defaults.py FUSEC: the defaults that --list-ops prints are those that the compiler applies.

Compiles nodes of tests/ops twice: as they are, and with every default attribute toggled between given and absent. The
kernels must be equal. Every optional attribute has a default, or documents its absence."""
import collections, glob, json, os, re, sys, tempfile

import golden_models
from golden_models import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
A_FEW = 3
UNTRIED = {("all_reduce", "reduce_op"), ("reduce_scatter", "reduce_op"),  # no kernel
           ("sort", "stable")}  # every case asks for it


def defaults(fusec):
    """{op: {attribute: default}}"""
    found = {}
    for row in json.loads(golden_models.run([fusec, "--list-ops", "--json"]).stdout):
        for attribute in row["attributes"]:
            if not attribute["required"] and not ("default" in attribute) ^ ("absent" in attribute):
                raise Failure(f"{row['name']}: attribute {attribute['name']} is optional: --list-ops says no default and "
                              "nothing of its absence, or both (ir/attribute_defaults.cpp)")
            if "default" in attribute:
                found.setdefault(row["name"], {})[attribute["name"]] = attribute["default"]
    return found


def toggled(nodes, known, tried):
    """(nodes as they are, nodes with every default toggled between given and absent): a few for each attribute."""
    before, after = [], []
    for node in nodes:
        other = json.loads(json.dumps(node))
        attrs = other.setdefault("attrs", {})
        changed = []
        for name, value in known.get(node["op"], {}).items():
            if name not in attrs:
                attrs[name] = value
            elif attrs[name] == value and isinstance(attrs[name], bool) == isinstance(value, bool):
                del attrs[name]
            else:
                continue
            changed.append((node["op"], name))
        if any(tried[pair] < A_FEW for pair in changed):
            tried.update(changed)
            before.append(node)
            after.append(other)
    return before, after


def kernels(fusec, model, nodes, scratch):
    model = {**model, "nodes": nodes, "outputs": [o["name"] for node in nodes for o in node["outputs"]]}
    path = os.path.join(scratch, "model.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(model, f)
    text = golden_models.emit(fusec, path, ["cu"], scratch, ["--strategy=none"])["cu"].decode()
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)  # comments quote the model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    fusec, tried, failures = sys.argv[1], collections.Counter(), []
    try:
        known = defaults(fusec)
        with tempfile.TemporaryDirectory() as scratch:
            for path in sorted(glob.glob(os.path.join(HERE, "ops", "*.json"))):
                with open(path, encoding="utf-8") as f:
                    model = json.load(f)
                before, after = toggled(model["nodes"], known, tried)
                if before and kernels(fusec, model, before, scratch) != kernels(fusec, model, after, scratch):
                    failures.append(f"{os.path.basename(path)}: other kernels with the defaults given")
    except Failure as failure:
        failures.append(str(failure))
    untried = {(op, name) for op in known for name in known[op]} - set(tried) if not failures else set()
    failures += [f"no node of tests/ops has the default of {op}'s {name}" for op, name in sorted(untried - UNTRIED)]
    print("\n".join(failures + [f"{len(tried)} defaults, {len(failures)} failures"]))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
