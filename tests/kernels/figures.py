"""The figures that budgets name: each is a function of a run (kernels/run.py)."""
import re

import json_schema


def total(count):
    return lambda run: sum(map(count, run.kernels))


def greatest(count):
    return lambda run: max(map(count, run.kernels), default=0)


def executed(kernel):
    return sum(kernel["instructions"].values())


def by_lanes(kernel):
    """Instructions of threads; a move that ptxas removes counts for nothing."""
    return 32 * (executed(kernel) - kernel["instructions"]["move"])


def local_bytes(kernel):
    return max(kernel["resources"]["spill_bytes"], kernel["resources"]["stack_bytes"])


def rows(run):
    """The kernels without the one that clears the counters of co-resident blocks."""
    return [kernel for kernel in run.kernels if "clear_counters" not in kernel["name"]]


def accesses(run, wide):
    """Global accesses in the PTX that are, or are not, 16 bytes wide."""
    found = re.findall(r"\b(?:ld|st)\.global[.\w:]*", run.text("ptx"))
    return sum(bool(re.search(r"\.v4\.[ubf]32$|\.v2\.[ubf]64$", access)) == wide for access in found)


def global_sass(run, wide):
    return sum((".128" in op) == wide for op in run.sass if op.startswith(("LDG", "STG")))


def over_least(count):
    return lambda run: total(count)(run) / max(1, run["least bytes"])


FIGURES = {
    "launches": lambda run: len(run.kernels),
    "kernels of rows": lambda run: len(rows(run)),
    "findings": total(lambda k: k["findings"]),
    "conflicts": greatest(lambda k: k["bank_conflicts"]),
    "conflicts a sector": greatest(lambda k: k["bank_conflicts"] / max(1, k["sectors"])),
    "local bytes": greatest(local_bytes),
    "spilled bytes": greatest(lambda k: k["resources"]["spill_bytes"]),
    "registers": greatest(lambda k: k["resources"]["registers"]),
    "blocks a multiprocessor": lambda run: min(k["resources"]["blocks_per_multiprocessor"] for k in run.kernels),
    "occupancy": lambda run: min(k["resources"]["occupancy"] for k in run.kernels),
    # Bytes: those of whole sectors, requested ones, the greater of both, distinct ones, and the least possible.
    "sector bytes": total(lambda k: 32 * k["sectors"]),
    "requested bytes": total(lambda k: k["requested_bytes"]),
    "moved bytes": lambda run: max(run["requested bytes"], run["sector bytes"]),
    "distinct bytes": total(lambda k: k["distinct_bytes"]),
    "least bytes": total(lambda k: k["least_bytes"]),
    "sectors / least": over_least(lambda k: 32 * k["sectors"]),
    "distinct / least": over_least(lambda k: k["distinct_bytes"]),
    "sectors / moved": lambda run: run["sector bytes"] / (run.case.moved or run["distinct bytes"]),
    "sectors / least of a kernel": greatest(lambda k: 32 * k["sectors"] / max(1, k["least_bytes"])),
    "requested / least of a kernel": greatest(lambda k: k["requested_bytes"] / max(1, k["least_bytes"])),
    "sectors / least of rows": lambda run: 32 * rows(run)[0]["sectors"] / rows(run)[0]["least_bytes"],
    # Instructions: of warps, of threads without moves, and those relative to the least bytes.
    "instructions": total(executed),
    "instructions of rows": lambda run: executed(rows(run)[0]),
    "lane instructions": total(by_lanes),
    "instructions / byte": over_least(lambda k: 32 * executed(k)),
    "lane instructions / byte": over_least(by_lanes),
    # Without the edges; fewer than 10 are no gain that could be lost.
    "instructions / 16 distinct bytes": lambda run: max(10, 512 * (run["instructions"] - 2000) / run["distinct bytes"]),
    "accesses / 16 bytes": over_least(lambda k: 16 * 32 * k["instructions"]["load_store"]),
    "loads and stores": total(lambda k: k["instructions"]["load_store"]),
    "conversions": total(lambda k: k["instructions"]["convert"]),
    "float instructions": total(lambda k: k["instructions"]["float32"] + k["instructions"]["special_function"]),
    "multiply-adds": total(lambda k: k["tensor_multiply_adds"]),
    "least multiply-adds of a kernel": lambda run: min(k["tensor_multiply_adds"] for k in run.kernels),
    "instructions / 1000 multiply-adds": lambda run: 1000 * run["instructions"] / max(1, run["multiply-adds"]),
    # What fusec emits.
    "reductions": lambda run: len(re.findall(r"= (?:block|cluster|cohort)_reduce<\d", run.text("cu"))),
    "narrow accesses": lambda run: accesses(run, False),
    "wide accesses": lambda run: accesses(run, True),
    "has narrow accesses": lambda run: accesses(run, False) > 0 or accesses(run, True) == 0,
    "schedules": lambda run: [k["schedule"] for k in run.json("manifest")["kernels"]],
    "manifest problems": lambda run: json_schema.problems(run.json("manifest"), run.programs.manifest_schema),
    "launches of the partition": lambda run: run.json("partition")["launches"],
    "launches of a group": lambda run: run.json("report")["groups"][0]["launches"],
    "predicted us": lambda run: run.json("report")["totals"]["full"]["predicted_us"],
    "predicted us of a group": lambda run: run.json("report")["groups"][0]["predicted_us"],
    "groups": lambda run: [group["name"] for group in run.json("report")["groups"]],
    # The machine code; None without nvdisasm, which no bound is held against.
    "slow SASS": lambda run: run.sass and [op for op in run.sass if op.split(".")[0] in ("CALL", "LDL", "STL", "FCHK")],
    "narrow SASS": lambda run: run.sass and global_sass(run, False),
    "wide SASS": lambda run: run.sass and global_sass(run, True),
    # Times.
    "NVRTC / limit": lambda run: run.nvrtc_time(),
    "compile ms": lambda run: run.compile_ms(),
}
