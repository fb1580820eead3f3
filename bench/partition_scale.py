#!/usr/bin/env python3
"""partition_scale.py [--all] [--full[=NODES]] [BIN_DIR/partition_bench]: runs the Google Benchmark of annotation and partition and prints, for
each family, nodes a second and nanoseconds a node at 10k, 100k and 1M nodes, and how much the time a node grows.

Demands: at least 1 million nodes a second everywhere, growth of at most 1.3 from 10k to 1M for the four families that
the project promises (tower, chain, layered, layered_outs); --all measures the others, too. Every time is of the whole
way from the graph to the finished plan and its release. CPU time of one core is taken, the median of five repetitions
of half a second or more each, those of all sizes and families mixed, so that a disturbance meets them alike; run it on
an otherwise idle machine. Exit 1 where a demand is not met.

--full puts `full` beside `tvm` instead, at a million nodes (or NODES): the promised families and two models of repeated
transformer layers, written with composite ops and taken apart. `fusec MODEL --emit=partition`, reading and the report
included, may take at most 5 times as long under `full` as under `tvm`; how it is for the passes alone, from graph to
plan, is shown beside it (bench/time_strategies.cpp), with the passes that take most."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYERS = (os.path.join("examples", "llama_block.json"),
          os.path.join("tests", "corpus", "models", "llama3_block_bf16_dec.tiny.json"))
PROMISED = ("tower", "chain", "layered", "layered_outs")


def measure(bench, families):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    done = subprocess.run([bench, "--benchmark_format=json", "--benchmark_repetitions=5",
                           f"--benchmark_filter=^annotate_and_partition/({families})/",
                           "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true"],
                          stdout=subprocess.PIPE, check=True)
    times = {}
    for b in json.loads(done.stdout)["benchmarks"]:
        if b["aggregate_name"] != "median":
            continue
        _, family, size = b["run_name"].split("/")
        times.setdefault(family, {})[int(size)] = b["cpu_time"] * 1e6 / b["nodes"]
    return times


def command_seconds(fusec, model, strategy):
    """CPU seconds of the whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([fusec, model, "--strategy=" + strategy, "--emit=partition=/dev/null", "--no-nvrtc"], check=True,
                   stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_full(bin_dir, nodes):
    print("| family | nodes | tvm s | full s | full / tvm | passes: tvm s | full s | full / tvm | passes of full |")
    print("| --- |" + " ---: |" * 7 + " --- |")
    good = True
    for family in PROMISED + LAYERS:
        with tempfile.TemporaryDirectory() as scratch:
            model = os.path.join(scratch, "model.json")
            what = os.path.join(ROOT, family) if family.endswith(".json") else family
            done = subprocess.run([os.path.join(bin_dir, "time_strategies"), what, str(nodes), "3", model], check=True,
                                  stdout=subprocess.PIPE)
            passes = json.loads(done.stdout)
            tvm, full = (command_seconds(os.path.join(bin_dir, "fusec"), model, s) for s in ("tvm", "full"))
        slowest = sorted(passes["passes"].items(), key=lambda p: -p[1])[:4]
        whole = sum(passes["passes"].values())
        shares = ", ".join(f"{name} {100 * seconds / whole:.0f} %" for name, seconds in slowest)
        met = full <= 5 * tvm
        good &= met
        print(f"| {re.sub('.*/|[.]json', '', family)} | {passes['nodes']} | {tvm:.2f} | {full:.2f} | {full / tvm:.2f} |"
              f" {passes['tvm']:.3f} | {passes['full']:.3f} | {passes['ratio']:.2f} | {shares} |"
              f"{'' if met else '  NOT MET'}", flush=True)
    return good


def main():
    for a in sys.argv[1:]:
        if a.startswith("--full"):
            bench = [b for b in sys.argv[1:] if not b.startswith("--")]
            bin_dir = os.path.dirname(bench[0]) if bench else os.path.join(ROOT, "build", "release", "bin")
            sys.exit(0 if compare_full(bin_dir, int(a[7:] or 1000000)) else 1)
    arguments = [a for a in sys.argv[1:] if a != "--all"]
    bench = arguments[0] if arguments else "build/release/bin/partition_bench"
    families = ".*" if "--all" in sys.argv[1:] else "|".join(PROMISED)
    good = True
    print(f"{'family':14} {'ns a node':>24} {'Mnodes/s at 1M':>15} {'growth':>7}")
    for family, by_size in measure(bench, families).items():
        sizes = sorted(by_size)
        growth = by_size[sizes[-1]] / by_size[sizes[0]]
        rate = 1e3 / by_size[sizes[-1]]
        met = max(by_size.values()) <= 1000 and (growth <= 1.3 or family not in PROMISED)
        good &= met
        print(f"{family:14} {' '.join(f'{by_size[s]:7.1f}' for s in sizes):>24} {rate:15.2f} {growth:7.2f}"
              f"{'' if met else '  NOT MET'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
