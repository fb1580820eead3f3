#!/usr/bin/env python3
"""check_tensors.py: the comparison that other tests rely on (tensors.difference) refuses a wrong value of every class."""
import math, sys

import tensors

FINITE = [0.0, 1.0, -1.0, 1e-40, 3e38]
VALUES = FINITE + [math.inf, -math.inf, math.nan]
TOLERANCES = [(0, 0), (2e-5, 1e-4), (2e-5, math.inf), (math.nan, 0)]


def main():
    failures = []

    def expect(same, dtype, got, want, rtol, atol):
        why = tensors.difference((dtype, [3], [1.0, got, 1.0]), (dtype, [3], [1.0, want, 1.0]), rtol, atol)
        if (why is None) != same:
            failures.append(f"{dtype}, within {rtol} and {atol}: {got} for {want}: {why}")

    for want in VALUES:
        for got in VALUES:
            same = got == want or (math.isnan(got) and math.isnan(want))
            for rtol, atol in TOLERANCES:
                near = math.isfinite(rtol + atol) and abs(got - want) <= atol  # among the values above: those near 0
                expect(same or near, "F32", got, want, rtol, atol)
    for want in [0, 1, -2**63, -2**63 + 1, 2**63 - 2, 2**63 - 1]:
        for got in [0, 1, -2**63, -2**63 + 1, 2**63 - 2, 2**63 - 1]:
            expect(got == want, "I64", got, want, 1, 1)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
