#!/usr/bin/env python3
"""check_hostile.py [FUSEC] [--count=300] [--seed=0] [--max-memory=2G] [--timeout=30] [--resume=FILE]
[--stop-after=SECONDS]

Random hostile models from the families of tests/hostile, within limits on memory and time. A run fails if it exceeds a
limit by more than 10 %, crashes, ends with a status other than 0, 1 or 3, reports an error other than by one `error:`
line, or leaves an output that is neither complete nor untouched. --resume keeps results in a file and continues from
there. --stop-after starts no further model after so much time."""
import argparse, collections, json, math, os, random, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile import FAMILIES, make, measured

LARGEST = 10 * 1000 * 1000  # bytes of a case
TOLERANCE = 1.1
OUTPUTS = [(["-o", "out.cu", "--no-nvrtc"], "out.cu", 14), (["--emit=partition=out.json"], "out.json", 2),
           (["--emit=report=out.json"], "out.json", 1), (["--emit=plan=out.json"], "out.json", 1),
           (["--emit=ir=out.txt"], "out.txt", 1), (["--emit=manifest=out.json"], "out.json", 1)]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec", nargs="?", default=os.path.join(os.path.dirname(__file__), "../build/release/bin/fusec"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-memory", default="2G")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--largest", type=float, default=1, help="part of each family's largest size")
    parser.add_argument("--resume")
    parser.add_argument("--summary", help="a file for the summary")
    parser.add_argument("--stop-after", type=float, default=math.inf)
    return parser.parse_args()


def bytes_of(size):
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]] if size[-1] in "KMG" else int(size)


def run_name(a):
    return f"seed {a.seed}, --max-memory={a.max_memory} --timeout={a.timeout:g}, largest {a.largest:g}"


def chosen(index, a):
    """The index-th case: its family, its size, the case, and the options of the run."""
    rng = random.Random(f"{a.seed}:{index}")
    names = list(FAMILIES)
    name = names[index % len(names)]
    most = max(1, int(FAMILIES[name][1] * a.largest))
    size = round(math.exp(rng.uniform(0, math.log(most)))) if most > 1 else 1
    case = make(name, size, f"{a.seed}:{index}")
    while case.size() > LARGEST:
        size //= 2
        case = make(name, size, f"{a.seed}:{index}")
    options, output, _ = rng.choices(OUTPUTS, [weight for *_, weight in OUTPUTS])[0]
    strategy = rng.choices(["full", "tvm", "none"], [6, 3, 1])[0]
    return name, size, case, [*options, f"--strategy={strategy}"], output


def is_whole(text, output):
    if output.endswith(".json"):
        try:
            json.loads(text)
            return True
        except ValueError:
            return False
    return text.endswith("\n")


def faults(run, output, limit_bytes, a):
    found = []
    if run.killed:
        return ["does not end"]
    if run.status not in (0, 1, 3) or "internal error" in run.error or "terminate" in run.error:
        found.append(f"crash: status {run.status}")
    if run.status == 0 and (run.output == measured.KEPT or not is_whole(run.output, output)):
        found.append("status 0 without a whole output")
    if run.status != 0 and run.output != measured.KEPT:
        found.append("a failed run changed the output")
    if run.status != 0 and run.error.count("error:") == 0:
        found.append("an error that is not told")
    if run.left:
        found.append("files left behind: " + ", ".join(run.left))
    if run.peak > TOLERANCE * limit_bytes:
        found.append(f"memory: {run.peak >> 20} MiB")
    if max(run.cpu, run.wall) > TOLERANCE * a.timeout:
        found.append(f"time: {run.cpu:.2f} s of processors, {run.wall:.2f} s")
    return found


def result_of(index, a):
    name, size, case, options, output = chosen(index, a)
    options = [*options, f"--max-memory={a.max_memory}", f"--timeout={a.timeout:g}"]
    for _ in range(3):  # the machine may be busy: only a time that every repetition exceeds counts
        run = measured.run(a.fusec, case, options, output, 4 * a.timeout + 20)
        found = faults(run, output, bytes_of(a.max_memory), a)
        if not any(f.startswith("time") for f in found):
            break
    limit = next((word for word in ("time limit", "memory limit") if word in run.error), "")
    return {"run": run_name(a), "index": index, "family": name, "size": size, "bytes": case.size(), "options": options, "status": run.status,
            "cpu": round(run.cpu, 3), "wall": round(run.wall, 3), "peak": run.peak, "limit": limit, "faults": found,
            "error": run.error[:300] if run.status else ""}


def summary(results, a):
    statuses = collections.Counter(r["limit"] or f"status {r['status']}" for r in results)
    wrong = [r for r in results if r["faults"]]
    lines = [f"{len(results)} hostile models of {len({r['family'] for r in results})} families, {run_name(a)}: {len(wrong)} wrong",
             ", ".join(f"{count} {what}" for what, count in sorted(statuses.items())),
             f"most memory {max((r['peak'] for r in results), default=0) >> 20} MiB, "
             f"most time {max((min(r['cpu'], r['wall']) for r in results), default=0):.2f} s"]
    slow = collections.Counter(r["family"] for r in results if r["limit"])
    if slow:
        lines.append("families that met a limit: " + ", ".join(f"{f} {n}" for f, n in slow.most_common()))
    lines += [f"  {r['index']} {r['family']} size {r['size']} {' '.join(r['options'])}: {'; '.join(r['faults'])}" for r in wrong]
    return "\n".join(lines) + "\n"


def main():
    a = arguments()
    a.fusec = os.path.abspath(a.fusec)
    results = []
    if a.resume and os.path.exists(a.resume):
        with open(a.resume, encoding="utf-8") as f:
            results = [json.loads(line) for line in f if line.endswith("\n")]
        results = [r for r in results if r["run"] == run_name(a)]
    done = {r["index"] for r in results}
    start = time.monotonic()
    for index in range(a.count):
        if index in done:
            continue
        if time.monotonic() - start > a.stop_after:
            break
        results.append(result_of(index, a))
        if a.resume:
            with open(a.resume, "a", encoding="utf-8") as f:
                f.write(json.dumps(results[-1]) + "\n")
    text = summary(results, a)
    print(text, end="")
    if a.summary:
        with open(a.summary, "w", encoding="utf-8") as f:
            f.write(text)
    return 1 if any(r["faults"] for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
