#!/usr/bin/env python3
"""partition_scale.py [--all] [PARTITION_BENCH]: runs the Google Benchmark of annotation and partition and prints, for
each family, nodes a second and nanoseconds a node at 10k, 100k and 1M nodes, and how much the time a node grows.

Demands: at least 1 million nodes a second everywhere, growth of at most 1.3 from 10k to 1M for the four families that
the project promises (tower, chain, layered, layered_outs); --all measures the others, too. Every time is of the whole
way from the graph to the finished plan and its release. CPU time of one core is taken, the median of five repetitions
of half a second or more each, those of all sizes and families mixed, so that a disturbance meets them alike; run it on
an otherwise idle machine. Exit 1 where a demand is not met."""
import json
import os
import subprocess
import sys

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


def main():
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
