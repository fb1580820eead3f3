#!/usr/bin/env python3
"""check_reports.py FUSEC FUSEC_RUN

Real reports fit their JSON Schemas in docs/schemas: partition, plan, manifest, ledger and cost report of the golden
models under every strategy and of some networks, and the emulator's profile if NVRTC is found. A report with a missing
or an extra key does not fit. Every node of a model has its place in the partition."""
import json, os, sys, tempfile

import golden_models
import json_schema
from golden_models import Failure

TESTS = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(TESTS, "..", "docs", "schemas")
NETWORKS = ["llama3_block_sym_bf16", "resnet18_bf16", "tuple_getitem_f32", "tp_mlp_allreduce_bf16", "adamw_f32"]
PROFILED = ["softmax", "linear_gelu"]


def schema(kind):
    with open(os.path.join(SCHEMAS, kind + ".schema.json"), encoding="utf-8") as f:
        return json.load(f)


def check(report, kind, what):
    """The report fits the schema; without one of its keys, or with an extra one, it would not."""
    found = json_schema.problems(report, schema(kind))
    if found:
        raise Failure(f"{what}: {kind}\n    " + "\n    ".join(found[:10]))
    version = "fusec_" + kind
    for spoilt in ({key: report[key] for key in report if key != version}, {**report, "surplus": 1},
                   {**report, version: 2}):
        if not json_schema.problems(spoilt, schema(kind)):
            raise Failure(f"the schema of {kind} lets a spoilt report pass: {sorted(spoilt)}")


def check_places(report, path, strategy):
    """Every node of the file has a place, and only one if nothing is recomputed."""
    with open(path, encoding="utf-8") as f:
        nodes = sorted(node["name"] for node in json.load(f)["nodes"])
    lists = [report[key] for key in ("dropped", "folded", "prepared")]
    if strategy != "full" and any(lists):
        raise Failure(f"{os.path.basename(path)} ({strategy}): nodes are taken out: {lists}")
    groups = [[n for n in g["nodes"] if n not in g["duplicated"]] for g in report["groups"]]
    placed = sorted(name for names in lists + groups for name in names)
    if placed != nodes:
        raise Failure(f"{os.path.basename(path)} ({strategy}): nodes {sorted(set(nodes) ^ set(placed))} are in no place, "
                      "or some are in two")


def check_emitted(fusec, path, strategy, scratch):
    kinds = ["partition", "plan", "manifest", "ledger", "report"]
    emitted = golden_models.emit(fusec, path, kinds, scratch, ["--strategy=" + strategy])
    for kind in kinds:
        check(json.loads(emitted[kind]), kind, f"{os.path.basename(path)} ({strategy})")
    check_places(json.loads(emitted["partition"]), path, strategy)


def check_profile(fusec_run, name, scratch):
    """False if NVRTC is missing."""
    path = os.path.join(scratch, "profile.json")
    for sampled in (False, True):
        process = golden_models.run([fusec_run, os.path.join(golden_models.FOLDER, name + ".json"), "--random=1",
                                     "--json", "--device=emulator", "--profile=" + path] +
                                    ["--sample-blocks=1"] * sampled, good=(0, 3))
        if golden_models.lacks_nvrtc(process):
            return False
        if process.returncode:
            raise Failure(process.stderr.decode("utf-8", "replace")[-1500:])
        with open(path, encoding="utf-8") as f:
            profile = json.load(f)
        check(profile, "profile", name)
        for kernel in profile["kernels"]:
            sample = kernel.get("sample")
            if sample and (not sampled or sample["blocks"] != 1 or sample["of"] < 2):
                raise Failure(f"{name}: {kernel['name']} is a sample of {sample}")
    return True


def main():
    fusec, fusec_run = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    models = [os.path.join(golden_models.FOLDER, name + ".json") for name in golden_models.names()]
    models += [os.path.join(TESTS, "corpus", "models", name + ".tiny.json") for name in NETWORKS]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="fusec_reports_") as scratch:
        for path in models:
            for strategy in ("none", "tvm", "full"):
                try:
                    check_emitted(fusec, path, strategy, scratch)
                except Failure as e:
                    failures += 1
                    print(f"FAILED {e}", flush=True)
        for name in PROFILED:
            try:
                if not check_profile(fusec_run, name, scratch):
                    print("skipped: profiles: NVRTC is not on this machine")
                    break
            except Failure as e:
                failures += 1
                print(f"FAILED {e}", flush=True)
    print(f"reports of {len(models)} models, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
