#!/usr/bin/env python3
"""check_sources.py REPOSITORY: what the build cannot say about the sources.

- #include goes ir <- analysis <- {transforms, codegen} <- runtime <- src only, and nothing but .cpp files includes
  nlohmann's headers; include/fusec includes nothing internal, and of it the folders below src know the exception type.
- No file names a path of somebody's machine.
- Headers have an include guard or #pragma once; there is no TODO.
Prints each offence as FILE:LINE: what; exit 0 when there is none."""
import os, re, sys

MAY_INCLUDE = {
    "ir": {"ir"},
    "analysis": {"ir", "analysis"},
    "transforms": {"ir", "analysis", "transforms"},
    "codegen": {"ir", "analysis", "codegen"},
    "runtime": {"ir", "analysis", "codegen", "runtime"},
    "src": {"ir", "analysis", "transforms", "codegen", "runtime", "src", "fusec"},
    "include": {"fusec"},
}
FOLDERS = {"ir", "analysis", "transforms", "codegen", "runtime", "src", "fusec"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Put together from parts, so that this file does not name them itself.
MACHINE_PATHS = re.compile("|".join(["/" + "work/", r"\.\./" + "shared", r"(?<!\w)\." + "library", "/" + "home/", "farm" + "-[a-z]"]))
SKIPPED = {".git", "build", ".deps", ".cache", "__pycache__", "corpus"}


def files(root):
    for folder, names, leaves in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED)
        for leaf in sorted(set(leaves) - SKIPPED):
            yield os.path.relpath(os.path.join(folder, leaf), root)


def offences(path, lines):
    top = path.split(os.sep)[0]
    is_source = path.endswith((".h", ".cpp"))
    for number, line in enumerate(lines, 1):
        if MACHINE_PATHS.search(line):
            yield number, "names a path of somebody's machine"
        if is_source and re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, "unfinished work belongs in an issue, not in a comment"
        found = INCLUDE.match(line) if is_source else None
        if not found:
            continue
        target = found[2].split("/")[0] if "/" in found[2] else ""
        if found[2] == "fusec/error.h":
            continue
        if top in MAY_INCLUDE and target in FOLDERS and target not in MAY_INCLUDE[top]:
            yield number, f"{top} must not include {found[2]}"
        if path.endswith(".h") and target == "nlohmann" and top in MAY_INCLUDE:
            yield number, "nlohmann's headers stay out of headers (they cost seconds a source)"
    if path.endswith(".h") and not any(re.match(r"#pragma once|#ifndef \w+_H_?$", line.rstrip()) for line in lines):
        yield 1, "no include guard"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    count = bad = 0
    for path in files(sys.argv[1]):
        try:
            with open(os.path.join(sys.argv[1], path), encoding="utf-8") as f:
                lines = f.read().split("\n")
        except (UnicodeDecodeError, OSError):
            continue
        count += 1
        for number, what in offences(path, lines):
            bad += 1
            print(f"{path}:{number}: {what}")
    print(f"{count} files read, {bad} offences")
    sys.exit(1 if bad or not count else 0)


if __name__ == "__main__":
    main()
