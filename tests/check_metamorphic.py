#!/usr/bin/env python3
"""check_metamorphic.py FUSEC [--sample=N] [--seed=N]

A model written in another way is compiled to the same thing. For every golden model and a seeded sample of the tiny
networks, under strategies full and tvm:

  repeated, jobs       compiled again, with --jobs=1 and with --jobs=8: the same bytes of every output
  spelling             other whitespace, the keys of every object shuffled: the same bytes
  node order           nodes standing elsewhere in the file, but taken by the loader in the same order: the same bytes
  argument order       inputs and constants shuffled: the same kernels and groups
  defaults             attributes given that have their default value anyway: the same kernels and groups
  names                every value and node renamed: the same kernels and groups, but for identifiers
  identities           (full) nodes that pass a value on put between a value and its users: the same kernels and groups
  topological order    (full) nodes taken by the loader in another order: the same kernels and groups. Under tvm the order
                       of nodes decides which of two takes a common user, as it does in TVM

The kernels are compared without comments, since those quote the model."""
import argparse, glob, heapq, json, os, random, re, sys, tempfile

import check_defaults, golden_models
from golden_models import Failure

TINY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "models", "*.tiny.json")
ALL_KINDS = ["cu", "partition", "plan", "manifest", "ledger", "ir"]
RENAMED = "other_"
PUT_IN = "put_in_"


# ---- the model written in another way ----------------------------------------------------------------------------


def copy(model):
    return json.loads(json.dumps(model))


def shuffled_keys(value, chance):
    if isinstance(value, dict):
        items = [(key, shuffled_keys(member, chance)) for key, member in value.items()]
        chance.shuffle(items)
        return dict(items)
    return [shuffled_keys(item, chance) for item in value] if isinstance(value, list) else value


def other_spelling(model, chance):
    # The order of the symbols is part of the model, because their values are kernel parameters.
    other = shuffled_keys(model, chance)
    if "symbols" in model:
        other["symbols"] = {name: shuffled_keys(bounds, chance) for name, bounds in model["symbols"].items()}
    return re.sub("\n( *)", lambda blanks: "\r\n\t" + blanks.group(1) if chance.random() < 0.5 else " ",
                  json.dumps(other, indent=3, ensure_ascii=chance.random() < 0.5))


def output_names(node):
    """The names a node gives its values, as far as the file says them."""
    return [o["name"] if isinstance(o, dict) else o for o in node.get("outputs", [])]


class LoaderOrder:
    """The order in which the loader takes nodes: always the ready node that is earliest in the file."""

    def __init__(self, nodes):
        maker = {}
        for i, node in enumerate(nodes):
            for value in output_names(node) or [node["name"]]:
                maker[value] = i
        self.makers = []
        for node in nodes:
            given = [v for v in node.get("inputs", []) if isinstance(v, str)]
            # A value without an own entry is an input, a constant, or result i of a node: "node.i".
            found = {maker.get(v, maker.get(v.rpartition(".")[0])) for v in given}
            self.makers.append(found - {None})
        self.users = [[] for _ in nodes]
        for i, makers in enumerate(self.makers):
            for m in makers:
                self.users[m].append(i)

    def of(self, file_order):
        """The nodes in the order in which the loader takes them from a file with this order."""
        place = {node: at for at, node in enumerate(file_order)}
        waiting = [len(makers) for makers in self.makers]
        ready = [(place[i], i) for i in file_order if waiting[i] == 0]
        heapq.heapify(ready)
        taken = []
        while ready:
            node = heapq.heappop(ready)[1]
            taken.append(node)
            for user in self.users[node]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, (place[user], user))
        return taken


def other_node_order(model, chance):
    """The nodes in another order in the file that the loader takes in the same order; None if there is none."""
    loader = LoaderOrder(model["nodes"])
    order = list(range(len(model["nodes"])))
    wanted = loader.of(order)
    best = order
    for _ in range(60):
        start = chance.randrange(len(order))
        end = min(len(order), start + chance.randint(2, 6))
        candidate = best[:start] + best[start:end][::-1] + best[end:]
        if loader.of(candidate) == wanted:
            best = candidate
    if best == order:
        return None
    other = copy(model)
    other["nodes"] = [model["nodes"][i] for i in best]
    return other


def other_argument_order(model, chance):
    other = copy(model)
    for key in ("inputs", "constants"):
        chance.shuffle(other.get(key, []))
    return other


def with_defaults(model, known):
    other, changed = copy(model), False
    for node in other["nodes"]:
        for name, value in known.get(node["op"], {}).items():
            if name not in node.get("attrs", {}):
                node.setdefault("attrs", {})[name] = value
                changed = True
    return other if changed else None


def with_identities(model, chance):
    """The model with a node inserted that returns its operand unchanged, before some of the users of a value; None if
    there is no user."""
    other = copy(model)
    uses = [(node, i) for node in other["nodes"] for i, v in enumerate(node.get("inputs", [])) if isinstance(v, str)]
    if not uses:
        return None
    for number, (node, i) in enumerate(chance.sample(uses, min(3, len(uses)))):
        put_in = {"name": f"{PUT_IN}{number}", "op": "identity", "inputs": [node["inputs"][i]]}
        node["inputs"][i] = put_in["name"]
        other["nodes"].insert(other["nodes"].index(node), put_in)
    return other


def other_topological_order(model, chance):
    """The model with its nodes in another topological order; None if there is only one."""
    loader = LoaderOrder(model["nodes"])
    shuffled = list(range(len(model["nodes"])))
    chance.shuffle(shuffled)
    order = loader.of(shuffled)
    if order == loader.of(list(range(len(model["nodes"])))):
        return None
    other = copy(model)
    other["nodes"] = [model["nodes"][i] for i in order]
    return other


def renamed(model):
    """The model with other names, and a map from new names to old ones. Symbols keep their names, because they occur in
    expressions."""
    new_names, old_names = {}, {}

    def rename(name):
        if name not in new_names:
            new_names[name] = f"{RENAMED}{len(new_names)}"
            old_names[new_names[name]] = name
        return new_names[name]

    def reference(name):
        node, dot, index = name.rpartition(".")
        return rename(name) if name in new_names or not dot else f"{rename(node)}.{index}"

    other = copy(model)
    for tensor in other["inputs"] + other.get("constants", []):
        tensor["name"] = rename(tensor["name"])
    for node in other["nodes"]:
        node["name"] = rename(node["name"])
        for i, output in enumerate(node.get("outputs", [])):
            if isinstance(output, dict):
                output["name"] = rename(output["name"])
            else:
                node["outputs"][i] = rename(output)
    for node in other["nodes"]:
        node["inputs"] = [reference(v) if isinstance(v, str) else v for v in node.get("inputs", [])]
    other["outputs"] = [reference(v) for v in other["outputs"]]
    if "aliases" in other:
        other["aliases"] = {reference(to): reference(source) for to, source in other["aliases"].items()}
    return other, old_names


# ---- what is compared --------------------------------------------------------------------------------------------


def kernels(source):
    """The kernels of an emitted file, each as a list of tokens, comments and host part left out."""
    text = source.decode("ascii").split("#ifndef __CUDACC_RTC__")[0]
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    return [re.findall(r'"[^"]*"|[A-Za-z_]\w*|[0-9][\w.]*|\S', part) for part in text.split('extern "C" __global__')[1:]]


def without_number(identifier):
    """e for e_2: the number distinguishes local names from the model's."""
    return re.sub(r"_\d+$", "", identifier)


def first_difference(expected, got, renamed_too):
    """The first difference of two kernels, or None. With renamed_too they may differ by a one-to-one renaming of
    identifiers that come from the model's names."""
    there, back = {}, {}
    scopes = []
    before_loop, open_brackets = None, 0
    for i, (a, b) in enumerate(zip(expected, got)):
        same = a == b
        # Declarations end with their block or loop; the next one may reuse a name.
        if a == "for" and before_loop is None:
            before_loop, open_brackets = (dict(there), dict(back)), 0
        open_brackets += (a == "(") - (a == ")")
        if a == "{":
            scopes.append(before_loop or (dict(there), dict(back)))
            before_loop = None
        elif a == ";" and before_loop and open_brackets == 0:
            (there, back), before_loop = before_loop, None
        elif a == "}" and scopes:
            there, back = scopes.pop()
        # Skips members such as threadIdx.x, which are no names of the model.
        if renamed_too and re.match(r"[A-Za-z_]", a) and expected[i - 1] != ".":
            if re.match(r"[A-Za-z_]", expected[i - 1]) and expected[i - 1] != "return":
                # A declaration, as in "int i": it may hide a parameter that its block does not use.
                back.pop(there.pop(a, None), None)
                there.pop(back.pop(b, None), None)
            same = (there.setdefault(a, b) == b and back.setdefault(b, a) == a and
                    (without_number(a) == without_number(b) or RENAMED.rstrip("_") in b))
        if not same:
            return i
    return None if len(expected) == len(got) else min(len(expected), len(got))


def groups(report, old_names=None):
    """A partition report with the original names."""
    def original(name):
        node, behind = name, ""
        while node and node not in old_names:  # "x.1" of a tuple, "x.1.piece" of a piece that became a slice
            node, dot, index = node.rpartition(".")
            behind = dot + index + behind
        return old_names[node] + behind if node else name

    parsed = json.loads(report)
    if old_names:
        for group in parsed["groups"]:
            for key in ("nodes", "duplicated", "inputs", "outputs"):
                group[key] = [original(n) for n in group[key]]
            group["anchor"] = group["anchor"] and original(group["anchor"])
            if "parts" in group:
                group["parts"] = {part: original(n) for part, n in group["parts"].items()}
        for key in ("dropped", "folded", "prepared"):
            parsed[key] = [original(n) for n in parsed[key]]
    for key in ("dropped", "folded", "prepared"):  # in the order of the file
        parsed[key].sort()
    return parsed


def require_same_bytes(what, expected, got):
    for kind in expected:
        if expected[kind] != got[kind]:
            raise Failure(f"{what}: {kind} differs")


def require_same_kernels(what, expected, got, old_names=None):
    if groups(expected["partition"]) != groups(got["partition"], old_names):
        raise Failure(f"{what}: the groups differ")
    ours, theirs = kernels(expected["cu"]), kernels(got["cu"])
    if len(ours) != len(theirs):
        raise Failure(f"{what}: {len(theirs)} kernels, expected {len(ours)}")
    for a, b in zip(ours, theirs):
        at = first_difference(a, b, old_names is not None)
        if at is not None:
            near = slice(max(0, at - 25), at + 8)
            raise Failure(f"{what}: a kernel differs:\n    {' '.join(b[near])}\n    expected\n    {' '.join(a[near])}")


def without_put_in(report):
    parsed = json.loads(report)
    for names in [parsed["dropped"], parsed["folded"]] + [group["nodes"] for group in parsed["groups"]]:
        names[:] = [name for name in names if not name.startswith(PUT_IN)]
    return json.dumps(parsed)


def check(fusec, model, strategy, chance, scratch):
    path = os.path.join(scratch, "model.json")

    def compiled(text, *options):
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return golden_models.emit(fusec, path, ALL_KINDS, scratch, ["--strategy=" + strategy, *options])

    base = compiled(model)
    if not kernels(base["cu"]) and json.loads(base["partition"])["kernels"]:
        raise Failure("no kernels found in the emitted source")
    require_same_bytes("repeated", base, compiled(model))
    for jobs in (1, 8):
        require_same_bytes(f"--jobs={jobs}", base, compiled(model, f"--jobs={jobs}"))
    require_same_bytes("spelling", base, compiled(other_spelling(model, chance)))
    other = other_node_order(model, chance)
    if other:
        require_same_bytes("node order", base, compiled(other))
    require_same_kernels("argument order", base, compiled(other_argument_order(model, chance)))
    other = with_defaults(model, check_defaults.defaults(fusec))
    if other:
        require_same_kernels("defaults", base, compiled(other))
    other, old_names = renamed(model)
    require_same_kernels("names", base, compiled(other), old_names)
    if strategy == "tvm":
        return
    other = with_identities(model, chance)
    if other:
        got = compiled(other)
        require_same_kernels("identities", base, {**got, "partition": without_put_in(got["partition"])})
    other = other_topological_order(model, chance)
    if other:
        require_same_kernels("topological order", base, compiled(other))


def check_compiled(fusec, name, scratch):
    """Compares PTX of one and of eight parallel compilations; False if NVRTC is missing."""
    outputs = []
    for jobs in (1, 8):
        path = os.path.join(scratch, f"jobs_{jobs}.ptx")
        process = golden_models.run([fusec, os.path.join(golden_models.FOLDER, name + ".json"), "-o", path,
                                     "--no-cache", f"--jobs={jobs}"], good=(0, 3))
        if golden_models.lacks_nvrtc(process):
            return False
        if process.returncode:
            raise Failure(process.stderr.decode("utf-8", "replace")[-1500:])
        with open(path, "rb") as f:
            outputs.append(f.read())
    if outputs[0] != outputs[1]:
        raise Failure("PTX differs between --jobs=1 and --jobs=8")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--sample", type=int, default=0, help="tiny networks; 0: all")
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    fusec = os.path.abspath(args.fusec)

    models = {name: golden_models.load(name) for name in golden_models.names()}
    tiny = sorted(glob.glob(TINY))
    for path in random.Random(args.seed).sample(tiny, min(args.sample or len(tiny), len(tiny))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        # Weight files are in the original model's folder; this model is written elsewhere.
        if '"safetensors"' not in text:
            models[os.path.basename(path)] = json.loads(text)

    failures = 0
    with tempfile.TemporaryDirectory(prefix="fusec_metamorphic_") as scratch:
        for name, model in models.items():
            for strategy in ("full", "tvm"):
                try:
                    check(fusec, model, strategy, random.Random(f"{args.seed} {name}"), scratch)
                except Failure as e:
                    failures += 1
                    print(f"FAILED {name} ({strategy}, seed {args.seed})\n    {e}", flush=True)
        for name in ("reductions", "layer_norm"):
            try:
                if not check_compiled(fusec, name, scratch):
                    print("skipped: PTX under --jobs=1 and --jobs=8: NVRTC is not on this machine")
                    break
            except Failure as e:
                failures += 1
                print(f"FAILED {name}\n    {e}")
    print(f"{len(models)} models written in other ways, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
