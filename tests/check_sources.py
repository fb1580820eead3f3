#!/usr/bin/env python3
"""check_sources.py REPOSITORY: rules about the sources that the build does not check.

- #include goes ir <- analysis <- schedule <- {transforms, codegen} <- runtime <- src only, and only .cpp files include
  nlohmann's and Boost's headers (ir/digraph_concepts.h is the exception). include/fusec includes nothing internal, and the folders below src use only its exception type,
  limits, kernel images and collectives.
- Sub-folders of analysis/, schedule/ and codegen/ include one another without a cycle.
- No file names a path of somebody's machine.
- Programs print through src/messages.h and src/output_file.h, because fmt and iostream throw or lose output if the
  stream is closed or full.
- Headers have an include guard or #pragma once; there is no TODO.
- Overloads of a device function with the same number of parameters are in one file of codegen/prelude only. Otherwise a
  file of kernels that has parts of two prelude files could call the wrong one.

Prints each offence as FILE:LINE: what; exit 0 when there is none."""
import os, re, sys

MAY_INCLUDE = {
    "ir": {"ir"},
    "analysis": {"ir", "analysis"},
    "schedule": {"ir", "analysis", "schedule"},
    "transforms": {"ir", "analysis", "schedule", "transforms"},
    "codegen": {"ir", "analysis", "schedule", "codegen"},
    "runtime": {"ir", "analysis", "schedule", "codegen", "runtime"},
    "src": {"ir", "analysis", "schedule", "transforms", "codegen", "runtime", "src", "fusec"},
    "include": {"fusec"},
}
FOLDERS = {"ir", "analysis", "schedule", "transforms", "codegen", "runtime", "src", "fusec"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Concatenated, so that this file does not contain the paths itself.
MACHINE_PATHS = re.compile("|".join(["/" + "work/", r"\.\./" + "shared", r"(?<!\w)\." + "library", "/" + "home/", "farm" + "-[a-z]"]))
PRINTS = re.compile(r"fmt::print\(|std::(cerr|clog)\b|\b(v?f?printf|f?puts|perror)\(")
LAYERED = ("analysis", "schedule", "codegen")  # their sub-folders must form no cycle
SKIPPED = {".git", "build", ".deps", ".cache", "__pycache__", "corpus"}


PRELUDE_FUNCTION = re.compile(r"^__device__[^;{}()]*?\b(\w+)\(([^{};]*?)\)\s*\{", re.M)


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
        if is_source and top in MAY_INCLUDE and PRINTS.search(line.split("//")[0]):
            yield number, "prints past src/messages.h (standard error) and write_output (standard output)"
        found = INCLUDE.match(line) if is_source else None
        if not found:
            continue
        target = found[2].split("/")[0] if "/" in found[2] else ""
        if found[2] in ("fusec/error.h", "fusec/resource_limits.h", "fusec/kernel_image.h", "fusec/collective.h"):
            continue
        if top in MAY_INCLUDE and target in FOLDERS and target not in MAY_INCLUDE[top]:
            yield number, f"{top} must not include {found[2]}"
        slow = target in ("nlohmann", "boost") or found[2] == "ir/digraph_concepts.h"
        if path.endswith(".h") and slow and top in MAY_INCLUDE and path != os.path.join("ir", "digraph_concepts.h"):
            yield number, f"{found[2]} stays out of headers (it costs seconds a source)"
    if path.endswith(".h") and not any(re.match(r"#pragma once|#ifndef \w+_H_?$", line.rstrip()) for line in lines):
        yield 1, "no include guard"


def parameters(text):
    """The number of parameters in a list; commas within brackets do not count."""
    within = re.compile(r"\([^()]*\)|<[^<>]*>|\[[^\[\]]*\]")
    while within.search(text):
        text = within.sub("", text)
    return text.count(",") + 1 if text.strip() else 0


def overloads_apart(sources):
    """Functions that are in several prelude files, from (path, text) of each file."""
    first = {}
    for path, text in sources:
        for found in PRELUDE_FUNCTION.finditer(text):
            other = first.setdefault((found[1], parameters(found[2])), path)
            if other != path:
                yield path, text.count("\n", 0, found.start()) + 1, f"{other} has {found[1]} of as many parameters, too"


def folder_includes(path, lines):
    """(folder, included folder, line) for the includes of a source within one library's sub-folders."""
    if path.endswith((".h", ".cpp")):
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if found and found[2].split("/")[0] == path.split(os.sep)[0]:
                here, there = os.path.dirname(path), os.path.dirname(found[2])
                if here != there:
                    yield here, there, number


def cycles(edges):
    """Every include that is part of a cycle of folders, from {folder: {folder: (path, line)}}."""
    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for there in set(edges.get(waiting.pop(), ())) - seen:
                seen.add(there)
                waiting.append(there)
        return seen
    reach = {folder: reached(folder) for folder in edges}
    for here in sorted(edges):
        for there, (path, number) in sorted(edges[here].items()):
            if here in reach.get(there, ()):
                yield path, number, f"{here} and {there} include one another, by others or directly"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    count = bad = 0
    prelude = []
    edges = {}
    for path in files(sys.argv[1]):
        try:
            with open(os.path.join(sys.argv[1], path), encoding="utf-8") as f:
                lines = f.read().split("\n")
        except (UnicodeDecodeError, OSError):
            continue
        count += 1
        if path.startswith(os.path.join("codegen", "prelude", "")):
            prelude.append((path, "\n".join(lines)))
        if path.split(os.sep)[0] in LAYERED:
            for here, there, number in folder_includes(path, lines):
                edges.setdefault(here, {}).setdefault(there, (path, number))
        for number, what in offences(path, lines):
            bad += 1
            print(f"{path}:{number}: {what}")
    for path, number, what in [*overloads_apart(prelude), *cycles(edges)]:
        bad += 1
        print(f"{path}:{number}: {what}")
    print(f"{count} files read, {bad} offences")
    sys.exit(1 if bad or not count else 0)


if __name__ == "__main__":
    main()
