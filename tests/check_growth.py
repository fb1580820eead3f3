#!/usr/bin/env python3
"""check_growth.py [FUSEC] [--families=A,B,...] [--sample=N] [--stop-after=SECONDS] [--report=FILE]

How the time for a hostile model grows with its size, family by family (tests/hostile), without limits on time and memory
but for a cap far above what is measured. Sizes double until a run takes two seconds of processor time or the family has
no larger model. Over the last doublings in which the time without that of the start is at least 0.1 s, the time may grow
with the size in bytes to the power of 1.3 at most (n log n and noise). Where the text hardly grows (a number in it
doubles), the largest model may take 10 s. A refusal is a run like any other."""
import argparse, json, math, os, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile import FAMILIES, make, measured

EXPONENT, ENOUGH, LEAST, CAP, LARGEST = 1.3, 2.0, 0.1, 10.0, 10 * 1000 * 1000
STRATEGIES = ("full", "tvm")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec", nargs="?", default=os.path.join(os.path.dirname(__file__), "../build/release/bin/fusec"))
    parser.add_argument("--families", default="")
    parser.add_argument("--sample", type=int, default=0, help="every so many-th family")
    parser.add_argument("--report")
    parser.add_argument("--stop-after", type=float, default=math.inf)
    return parser.parse_args()


def time_of(program, case, strategy):
    """User time, the least of three where it is short; None where the cap ends the run."""
    least = math.inf
    for _ in range(3):
        run = measured.run(program, case, ["-o", "out.cu", "--no-nvrtc", f"--strategy={strategy}", f"--timeout={3 * CAP:g}", "--max-memory=4G"],
                           "out.cu", 10 * CAP)
        if run.killed or run.status not in (0, 1) or "limit is exceeded" in run.error:
            return None, run
        least = min(least, run.user)
        if least > ENOUGH:
            break
    return least, run


def growth(program, name, strategy):
    """[(size, bytes, seconds)] of one family, and why the last size failed, if it did."""
    most = FAMILIES[name][1]
    points, size = [], min(most, 16 if most > 100 else 1)
    while True:
        case = make(name, size, 0)
        if case.size() > LARGEST and points:
            return points, ""
        seconds, run = time_of(program, case, strategy)
        if seconds is None:
            return points + [(size, case.size(), run.cpu)], f"size {size} ({case.size()} bytes): status {run.status}, {run.cpu:.1f} s, {run.peak >> 20} MiB"
        points.append((size, case.size(), seconds))
        if seconds > ENOUGH or size == most:
            return points, ""
        size = min(most, size * 2)


def exponent(points, start):
    """Of the time beside the bytes over the last doublings, at most three; None where there is nothing to tell."""
    told = [(b, s - start) for _, b, s in points if s - start >= LEAST][-4:]
    if len(told) < 2 or told[-1][0] < 1.5 * told[0][0]:
        return None
    return math.log(told[-1][1] / told[0][1]) / math.log(told[-1][0] / told[0][0])


def judged(program, name, strategy, start):
    points, failure = growth(program, name, strategy)
    e = exponent(points, start)
    size, count, seconds = points[-1]
    if not failure and e is not None and e > EXPONENT:
        failure = f"the time grows with the bytes to the power of {e:.2f}: " + ", ".join(f"{s}: {t:.2f} s" for s, _, t in points[-4:])
    if not failure and e is None and seconds > CAP:
        failure = f"size {size} takes {seconds:.1f} s"
    return {"family": name, "strategy": strategy, "size": size, "bytes": count, "seconds": round(seconds, 3),
            "exponent": None if e is None else round(e, 2), "failure": failure}


def main():
    a = arguments()
    program = os.path.abspath(a.fusec)
    names = [n for n in a.families.split(",") if n] or list(FAMILIES)
    if a.sample:
        names = names[::a.sample]
    begin, results = time.monotonic(), []
    start = {s: time_of(program, make("chain.exp", 1, 0), s)[0] for s in STRATEGIES}
    for name in names:
        for strategy in STRATEGIES:
            if time.monotonic() - begin > a.stop_after:
                break
            results.append(judged(program, name, strategy, start[strategy]))
            if a.report:
                with open(a.report, "a", encoding="utf-8") as f:
                    f.write(json.dumps(results[-1]) + "\n")
    wrong = [r for r in results if r["failure"]]
    for r in wrong:
        print(f"{r['family']} under {r['strategy']}: {r['failure']}")
    told = [r["exponent"] for r in results if r["exponent"] is not None]
    print(f"{len(results)} growths of {len({r['family'] for r in results})} families: {len(wrong)} wrong, "
          f"largest exponent of the others {max((e for r in results if not r['failure'] and (e := r['exponent'])), default=0)}, "
          f"{len(told)} long enough to tell one")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
