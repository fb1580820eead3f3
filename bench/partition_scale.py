#!/usr/bin/env python3
"""partition_scale.py [PARTITION_BENCH]: runs the Google Benchmark of annotation and partition and prints, for each
family, nodes a second and nanoseconds a node at 10k, 100k and 1M nodes, and how much the time a node grows.

Demands: at least 1 million nodes a second everywhere, growth of at most 1.3 from 10k to 1M for the four families that
the project promises (tower, chain, layered, layered_outs). Exit 1 where one is not met. CPU time is taken, the median
of several repetitions; run it on an otherwise idle machine."""
import json
import subprocess
import sys

PROMISED = ("tower", "chain", "layered", "layered_outs")


def measure(bench):
    done = subprocess.run([bench, "--benchmark_format=json", "--benchmark_filter=^annotate_and_partition/",
                           "--benchmark_repetitions=5", "--benchmark_report_aggregates_only=true"],
                          stdout=subprocess.PIPE, check=True)
    times = {}
    for b in json.loads(done.stdout)["benchmarks"]:
        if b["aggregate_name"] != "median":
            continue
        _, family, size = b["run_name"].split("/")
        times.setdefault(family, {})[int(size)] = b["cpu_time"] * 1e6 / b["nodes"]
    return times


def main():
    bench = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/partition_bench"
    good = True
    print(f"{'family':14} {'ns a node':>24} {'Mnodes/s at 1M':>15} {'growth':>7}")
    for family, by_size in measure(bench).items():
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
