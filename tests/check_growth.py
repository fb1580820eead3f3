#!/usr/bin/env python3
"""check_growth.py [FUSEC] [--families=A,B,...] [--sample=N] [--stop-after=SECONDS] [--report=FILE]

How the time for a hostile model grows with its size, for each family of tests/hostile. Sizes double until a run takes a
second of processor time or the family has no larger model. Over the last doublings whose time without startup is at
least 0.1 s, the time may grow with the bytes to the power of 1.3 (n log n), times a constant of 1.25 (caches). Steeper
growth is accepted only if a limit bounds it: either no model takes more than 30 s and those beyond 64 KiB are refused
(also for text whose length hardly grows while a number in it doubles), or a limit on the search for kernels applies, so
that the time of larger models grows as it should. EXPONENTS lists families with other allowed growth. A run takes at
most 30 s and 2 GiB. A refusal counts as a run.

Times are user times, which other work on the machine can only increase. A growth that looks too steep is measured
again, all sizes in turn, and the least time of each size counts."""
import argparse, json, math, os, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile import FAMILIES, make, measured

EXPONENT, CONSTANT = 1.3, 1.25
ENOUGH, LEAST, MOST, SMALL, LARGEST = 1.0, 0.1, 30, 1 << 16, 10 * 1000 * 1000
REPETITIONS = 12
STRATEGIES = ("full", "tvm")
# Polynomial, but steeper than others, because each trial merge lowers the whole group.
EXPONENTS = {
    # A group of n nested concats of up to n parts, so that a part is n concats deep.
    "wired.dense_net": 2.0,
}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec", nargs="?", default=os.path.join(os.path.dirname(__file__), "../build/release/bin/fusec"))
    parser.add_argument("--families", default="")
    parser.add_argument("--sample", type=int, default=0, help="every so many-th family")
    parser.add_argument("--report")
    parser.add_argument("--stop-after", type=float, default=math.inf)
    return parser.parse_args()


def time_of(program, case, strategy):
    """The user time (None if the run did not end normally), and the run."""
    run = measured.run(program, case, ["-o", "out.cu", "--no-nvrtc", f"--strategy={strategy}", "--max-memory=2G"],
                       "out.cu", 30 * MOST, most_cpu=MOST)
    wrong = run.killed or run.status not in (0, 1) or "limit is exceeded" in run.error
    return None if wrong else run.user, run


def grow(program, name, strategy, points):
    """Appends [size, bytes, seconds] of larger models to `points` until one takes long enough. Returns whether there
    are larger models, and why the last one failed, if it did."""
    most = FAMILIES[name][1]
    size = min(most, points[-1][0] * 2 if points else 16 if most > 100 else 1)
    while True:
        case = make(name, size, 0)
        if case.size() > LARGEST and points:
            return False, ""
        seconds, run = time_of(program, case, strategy)
        points.append([size, case.size(), run.cpu if seconds is None else seconds])
        if seconds is None:
            return False, f"size {size} ({case.size()} bytes): status {run.status}, {run.cpu:.1f} s, {run.peak >> 20} MiB"
        if seconds > ENOUGH or size == most:
            return size < most, ""
        size = min(most, size * 2)


def told(points, start):
    """The points of the last doublings, at most three, whose times are long enough to be meaningful."""
    points = [p for p in points if p[2] - start >= LEAST][-4:]
    return points if len(points) > 1 and points[-1][1] >= 1.5 * points[0][1] else []


def exponent(points, start, power):
    """The exponent of the time over the bytes, and the allowed one; None if there are too few points."""
    points = told(points, start)
    if not points:
        return None, None
    (_, least_bytes, least), (_, most_bytes, most) = points[0], points[-1]
    grown = math.log(most_bytes / least_bytes)
    return math.log((most - start) / (least - start)) / grown, power + math.log(CONSTANT) / grown


def is_bounded(program, name, strategy, size):
    """Whether this model and larger ones are small and quick, or refused."""
    most = FAMILIES[name][1]
    while True:
        case = make(name, size, 0)
        seconds, run = time_of(program, case, strategy)
        if seconds is None:
            return False
        if run.status == 1 or size == most:
            return run.status == 1 or case.size() <= SMALL
        if case.size() > SMALL:
            return False
        size = min(most, size * 2)


def repeated(program, name, strategy, start, points):
    """The exponent and the allowed one, from the least times of several runs if the first run looks too steep."""
    power = EXPONENTS.get(name, EXPONENT)
    for _ in range(REPETITIONS):
        e, allowed = exponent(points, start, power)
        if e is None or e <= allowed:
            break
        for point in told(points, start):
            seconds, _ = time_of(program, make(name, point[0], 0), strategy)
            point[2] = min(point[2], math.inf if seconds is None else seconds)
    return exponent(points, start, power)


def judged(program, name, strategy, start):
    points, more, failure, suspicious = [], True, "", True
    while more and suspicious:
        more, failure = grow(program, name, strategy, points)
        if failure:
            break
        e, allowed = repeated(program, name, strategy, start, points)
        # The largest model may be too quick for a meaningful time.
        suspicious = points[-1][2] > ENOUGH if e is None else e > allowed
        suspicious = suspicious and not is_bounded(program, name, strategy, points[-1][0])
    e, allowed = exponent(points, start, EXPONENTS.get(name, EXPONENT))
    size, count, seconds = points[-1]
    if not failure and suspicious:
        power = "not told" if e is None else f"{e:.2f} (allowed: {allowed:.2f})"
        last = ", ".join(f"{s}: {t:.2f} s" for s, _, t in points[-4:])
        failure = f"the time grows with the bytes to the power of {power}: {last}"
    return {"family": name, "strategy": strategy, "size": size, "bytes": count, "seconds": round(seconds, 3),
            "exponent": None if e is None else round(e, 2), "failure": failure}


def main():
    a = arguments()
    program = os.path.abspath(a.fusec)
    names = [n for n in a.families.split(",") if n] or list(FAMILIES)
    if a.sample:
        names = names[::a.sample]
    begin, results = time.monotonic(), []
    start = {s: min(time_of(program, make("chain.exp", 1, 0), s)[0] for _ in range(5)) for s in STRATEGIES}
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
    exponents = [r["exponent"] for r in results if r["exponent"] is not None]
    print(f"{len(results)} growths of {len({r['family'] for r in results})} families: {len(wrong)} wrong, "
          f"largest exponent of the others {max((e for r in results if not r['failure'] and (e := r['exponent'])), default=0)}, "
          f"{len(exponents)} long enough to tell one")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
