#!/usr/bin/env python3
"""check_kernels.py FUSEC FUSEC_RUN FAMILY... [--sample=N] [--seed=N] [--shard=I/N] [--only=TEXT] [--keep=FOLDER]
[--update] [--show] [--list]

Kernels against their budgets: each row of the tables in tests/kernels is a model, its targets, and bounds on what its
kernels launch, move and execute. A family is a table, tests/kernels/FAMILY.py, whose comment says what it demands. The
emulator executes and verifies the kernels. Unless a row says otherwise they have no findings, bank conflicts or local
memory. Status 77: no NVRTC.

--sample: N rows of each family, of every group of its rows, chosen by the seed. NVRTC's time is measured only without
it. --show prints the figures that are bounded. --update writes the figures of recorded.json anew and prints each that
got worse: say in the commit why. --keep: a folder for the models that fail."""
import argparse
import importlib
import json
import os
import random
import shutil
import sys
import tempfile

from kernels.run import Programs, Run, Wrong, faults_of, shown

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels", "recorded.json")


def rows_of(family, only):
    """(case, target) of the family, in the order of its table."""
    cases = importlib.import_module("kernels." + family).cases()
    return [(case, target) for case in cases for target in case.targets if only in case.name]


def sampled(rows, count, seed):
    """`count` rows, each group in turn."""
    groups = {}
    for row in random.Random(seed).sample(rows, len(rows)):
        groups.setdefault(row[0].group, []).append(row)
    found = []
    while len(found) < count and any(groups.values()):
        found += [group.pop() for group in groups.values() if group]
    return found[:count]


def worst(recorded, run):
    """The recorded figures of a case: the worst of its targets."""
    figures = {f: round(run[f], 3) if isinstance(run[f], float) else run[f] for f in run.case.recorded}
    return {figure: max(value, recorded.get(figure, 0)) for figure, value in figures.items()}


def figures_of(run):
    return ", ".join(f"{figure} {shown(value)}" for figure, value in run.figures.items() if isinstance(figure, str))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("families", nargs="+")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="", help="a folder for the models that fail")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the figures that are bounded")
    parser.add_argument("--list", action="store_true", help="print the rows")
    options = parser.parse_args()
    if options.update and (options.sample or options.shard != "1/1"):
        parser.error("--update needs every target of a case: neither --sample nor --shard")
    if options.sample and "nvrtc_time" in options.families:
        parser.error("nvrtc_time is measured without --sample only")
    programs = Programs(options.fusec, options.fusec_run, with_times=not options.sample)
    with open(RECORDED, encoding="utf-8") as f:
        recorded = json.load(f)
    shard, shards = map(int, options.shard.split("/"))
    count = failures = 0
    for family in options.families:
        rows = rows_of(family, options.only)
        rows = (sampled(rows, options.sample, options.seed) if options.sample else rows)[shard - 1::shards]
        known, found = recorded.get(family, {}), {}
        for case, target in rows:
            count += 1
            if options.list:
                print(f"{family}: {case.name}, {target}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                run = Run(programs, case, target, folder)
                try:
                    if options.update:
                        found[case.name] = worst(found.get(case.name, {}), run)
                        for figure, value in found[case.name].items():
                            before = recorded.get(family, {}).get(case.name, {}).get(figure, value)
                            if value > before:
                                print(f"worse {family}: {case.name}, {target}: {figure}: {shown(value)}, {shown(before)} before")
                    faults = faults_of(run, {**known, **found}.get(case.name, {}))
                except Wrong as wrong:
                    faults = [str(wrong)]
                if faults and options.keep:
                    shutil.copytree(folder, os.path.join(options.keep, f"{family}_{count}"))
            if options.show:
                print(f"{family}: {case.name}, {target}: {figures_of(run)}", flush=True)
            for fault in faults:
                print(f"FAILED {family}: {case.name}, {target}: {fault}", flush=True)
            failures += bool(faults)
        if options.update and any(found.values()):
            recorded[family] = {name: figures for name, figures in {**known, **found}.items() if figures}
    if options.update:
        lines = [f"{json.dumps(family)}: {{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(f)}" for n, f in rows.items()) + "\n}"
                 for family, rows in recorded.items()]
        with open(RECORDED, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{', '.join(options.families)}: {count} kernels, {failures} failures")
    return failures != 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
