#!/usr/bin/env python3
"""check_model_schema.py FUSEC [--mutants=N] [--seed=N] [--all]

docs/schemas/model.schema.json and the reader agree, as far as a schema can:

- every model of tests/ and examples/ fits the schema (those over 100 KB only with --all);
- of tests/errors, and of N seeded mutants of the golden models and of tests/ops, models that the reader accepts fit the
  schema, and models that it refuses do not, unless the reason is one of BEYOND_A_SCHEMA.

If the module jsonschema is installed, it judges the mutants, too."""
import argparse, collections, concurrent.futures, glob, json, os, random, re, subprocess, sys, tempfile

import golden_models, json_schema

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "docs", "schemas", "model.schema.json")
LARGE = 100_000

# Errors that a schema cannot express (docs/graph_format.md): the syntax of the text, references to other elements and
# their types, values that depend on others, and files.
BEYOND_A_SCHEMA = re.compile("|".join([
    "a key (stands|given) twice", "not JSON", "not UTF-8", "nested deeper", "number out of range", "overflows 63 bits",
    "an integer of 64 bits", "found -?[0-9.]+[.e][0-9.e+-]*, expected (an integer|a non-negative integer|the integer)",
    "undefined (operand|output)", "undeclared symbol", "duplicate", "a cycle", "no input determines", "too many",
    "a dimension (is not an expression|divides|is too complicated)", "negative dimension", "a symbol's (hint|max)",
    "bounds that leave no value", "data of the wrong length", "data of a symbolic shape", "data out of the range",
    "weight", "does not agree", "alias", "buffer", "an output: found", "wrong (dtype|rank|kind|number|shape)",
    "an op with an expression", "the expression", "not an expression", "unknown function", "the launcher's name",
    "wrong number of (outputs|arguments)", "the output's type is not declared",
    # rules of type inference for operands and attributes
    "attribute out of range", "attribute dim: found an array", "out of range", "given twice", "stands twice", "differ",
    "broadcast", "expand", "no permutation", "step of a", "fits into", "keeps the number", "k of topk",
    "last dimension", "channels", "more groups", "number of (repeats|chunks|paddings|elements)", "size of a piece",
    "normalized_shape", "dilation of an average", "align_corners with mode", "a divisor of zero", "an empty dimension",
    "padding is at most", "does not promote", "no common dtype", "is positive", "has elements", "no index", "kind of",
    "integers? dimension", "more indices", "is no larger", "range of a dimension", "a negative power",
    "clamp without bounds"]))
STRUCTURAL = re.compile(r": (unknown (key|op|dtype|pattern kind|attribute of \w+)|missing (key|attribute of \w+)): ")


def load(path):
    """The model in a file; None if it is no JSON or no model."""
    try:
        with open(path, encoding="utf-8") as f:
            model = json.load(f)
    except (ValueError, RecursionError):
        return None
    return model if isinstance(model, dict) and "fusec" in model else None


def refusal(fusec, model):
    """The reader's error for the model; None if it accepts it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(model, f)
        p = subprocess.run([fusec, path, "--strategy=none", "--emit=partition", "--no-nvrtc"], encoding="utf-8",
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return p.stderr.replace(path, "model.json") if p.returncode else None


# --- mutants


def places(value, where=()):
    """(pointer, element) of everything in a model but metadata."""
    yield where, value
    if isinstance(value, dict):
        for key, member in value.items():
            if where or key != "metadata":
                yield from places(member, where + (key,))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, where + (i,))


def at(model, where):
    for step in where:
        model = model[step]
    return model


OTHERS = [None, True, False, 0, -3, 7, 2.5, "", "x", "float32", "2*n", [], [1], ["y"], {}, {"dim": 2}, {"name": "y"}]


def mutate(model, chance):
    """Changes the model in one place, and describes the change."""
    where, element = chance.choice([p for p in places(model) if p[0]])
    parent = at(model, where[:-1])
    kind = chance.choice(["replace", "remove", "add", "rename", "harmless"])
    if kind == "remove":
        del parent[where[-1]]
    elif kind == "add" and isinstance(element, dict):
        element[chance.choice(["extra", "name", "dim", "value", "dtype"])] = chance.choice(OTHERS)
    elif kind == "rename" and isinstance(element, str):
        parent[where[-1]] = element + chance.choice(["_", "s", "2"])
    elif kind == "harmless":
        node = chance.choice(model["nodes"])
        node["fuse"] = chance.choice([True, False])
        model["metadata"] = chance.choice(OTHERS)
        model["name"] = chance.choice(["", "another", "\n"])
    else:
        parent[where[-1]] = chance.choice(OTHERS)
    return f"{kind} {'/'.join(map(str, where))}"


def bases():
    """Golden models, and single nodes of tests/ops with their inputs."""
    found = [golden_models.load(name) for name in golden_models.names()]
    for path in sorted(glob.glob(os.path.join(HERE, "ops", "*.json"))):
        model = load(path)
        tensors = {key: {t["name"]: t for t in model.get(key, [])} for key in ("inputs", "constants")}
        for node in model["nodes"][::5]:
            used = [v for v in node["inputs"] if isinstance(v, str)]
            if not all(any(v in tensors[key] for key in tensors) for v in used):
                continue
            found.append({"fusec": 1, "nodes": [node], "outputs": [o["name"] for o in node["outputs"]],
                          **{key: [tensors[key][v] for v in dict.fromkeys(used) if v in tensors[key]] for key in tensors}})
    return found


def mutants(count, seed):
    chance, models = random.Random(seed), bases()
    for _ in range(count):
        model = json.loads(json.dumps(chance.choice(models)))
        what = mutate(model, chance)
        yield what, model


# --- both directions


class Tally:
    def __init__(self, schema):
        self.schema, self.counts, self.failures = schema, collections.Counter(), []
        try:
            import jsonschema
            self.second = jsonschema.Draft202012Validator(schema)
        except ImportError:
            self.second = None

    def judge(self, what, model, refused):
        problems = json_schema.problems(model, self.schema)
        if self.second and self.second.is_valid(model) == bool(problems) and "." not in (refused or ""):
            self.failures.append(f"{what}: jsonschema says otherwise than tests/json_schema.py: {problems}")
        if refused is None:
            self.counts["taken"] += 1
            if problems:
                self.failures.append(f"{what}: the reader takes it, the schema does not: {problems[0]}")
        elif problems:
            self.counts["refused by both"] += 1
        elif BEYOND_A_SCHEMA.search(refused) and not STRUCTURAL.search(refused):
            self.counts["beyond a schema"] += 1
        else:
            self.failures.append(f"{what}: only the reader refuses it: {refused.strip()[:300]}")


def corpus(tally, everything):
    for path in sorted(glob.glob(os.path.join(HERE, "**", "*.json"), recursive=True) +
                       glob.glob(os.path.join(HERE, "..", "examples", "*.json"))):
        name = os.path.relpath(path, HERE)
        if name.startswith("errors") or (os.path.getsize(path) > LARGE and not everything):
            continue
        model = load(path)
        if model is not None:
            tally.counts["models"] += 1
            for problem in json_schema.problems(model, tally.schema)[:1]:
                tally.failures.append(f"{name}: {problem}")


def errors(tally):
    for path in sorted(glob.glob(os.path.join(HERE, "errors", "*.json"))):
        model = load(path)
        if model is not None:
            with open(path[:-5] + ".error", encoding="utf-8") as f:
                tally.judge(os.path.basename(path), model, f.read())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    with open(SCHEMA, encoding="utf-8") as f:
        tally = Tally(json.load(f))
    corpus(tally, args.all)
    errors(tally)
    cases = list(mutants(args.mutants, args.seed))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda case: refusal(args.fusec, case[1]), cases))
    for (what, model), refused in zip(cases, said):
        tally.judge(what, model, refused)
    for failure in tally.failures[:40]:
        print(failure)
    print(", ".join(f"{count} {what}" for what, count in tally.counts.items()) + f", {len(tally.failures)} failures")
    few = args.mutants >= 200 and min(tally.counts[k] for k in ("models", "taken", "refused by both")) < 50
    sys.exit(1 if tally.failures or few else 0)


if __name__ == "__main__":
    main()
