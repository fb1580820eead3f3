#!/usr/bin/env python3
"""report.py [--device=emulator|reference] [--output=docs/onnx.md]

Runs every node test of the installed onnx package and writes which of them fail, and why. Those of node_tests.txt,
which the importer is held to, and the others are counted apart."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, HERE)

import node_tests
import onnx

HEAD = """# ONNX models

`fusec.from_onnx` ([python.md](python.md)) is tested with the onnx package's own tests of single nodes (onnx {version},
opsets up to {opset}). Each is imported, compiled, and run on the {device}; its results are compared with the package's
under the package's tolerance. `python tests/python/from_onnx/report.py` writes this page.

| tests | pass | of |
| --- | ---: | ---: |
| those that the importer is held to (`tests/python/from_onnx/node_tests.txt`) | {held} | {held_of} |
| the others of the package | {rest} | {rest_of} |
"""


def reason(error: BaseException) -> str:
    """One line, which tests of the same kind share."""
    text = str(error)
    if isinstance(error, AssertionError) and "Mismatched elements" in text:
        count = re.search(r"Mismatched elements: (\d+) / (\d+)", text)
        largest = re.search(r"Max absolute difference among violations: (\S+)", text)
        if count and largest:
            units = re.search(r"at most \d+ units in the last place", text)
            by = units[0] if units else f"at most by {float(largest[1]):.2g}"
            return f"{count[1]} of {count[2]} elements differ, {by}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    listed = [re.sub(r", for example \".*?\"", "", line) for line in lines if "(version " in line]
    picked = listed or lines[:1] or [type(error).__name__]
    return re.sub(r"\s+", " ", "; ".join(picked))[:300].replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["emulator", "reference"], default="emulator")
    parser.add_argument("--output", default=os.path.join(ROOT, "docs", "onnx.md"))
    given = parser.parse_args()
    held, tests = node_tests.names(), node_tests.tests()
    failed: dict[str, str] = {name: "the installed package has no such test" for name in held if name not in tests}
    with tempfile.TemporaryDirectory() as cache:
        for name, test in tests.items():
            try:
                node_tests.run(test, cache, given.device)
            except Exception as error:  # noqa: BLE001 (whatever it is, it is listed)
                failed[name] = reason(error)
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(page(held, list(tests), failed, given.device))
    print(f"{len(set(held) - failed.keys())} of {len(held)} pass; wrote {given.output}")
    return 0


def page(held: list[str], every: list[str], failed: dict[str, str], device: str) -> str:
    rest = [name for name in every if name not in set(held)]
    text = HEAD.format(
        version=onnx.__version__,
        opset=onnx.defs.onnx_opset_version(),
        device=device,
        held=sum(name not in failed for name in held),
        held_of=len(held),
        rest=sum(name not in failed for name in rest),
        rest_of=len(rest),
    )
    for title, names in (("Of those that it is held to", held), ("Of the others", rest)):
        text += f"\n## {title}, these fail\n\n| tests | why |\n| --- | --- |\n"
        by_reason: dict[str, list[str]] = {}
        for name in names:
            if name in failed:
                by_reason.setdefault(failed[name], []).append(f"`{name}`")
        text += "".join(f"| {', '.join(found)} | {why} |\n" for why, found in by_reason.items())
    return text


if __name__ == "__main__":
    sys.exit(main())
