#!/usr/bin/env python3
"""check_documentation.py FUSEC FUSEC_RUN: names in the documentation and in comments of headers exist.

- A path that begins with a folder of the repository (`ir/read`, `docs/patterns.md`) is a file or a folder; the
  extension of a source may be missing, and braces and stars stand for several. Of a path with a word in capitals
  (`bench/results/h200-DATE.md`) only the folder must exist.
- A link of a Markdown file leads to a file.
- A word `--option` is an option of fusec, of fusec-run, of a script or test program of the repository, or of a tool in
  FOREIGN.

bench/results and docs/design are excluded: they describe the past and the future. Prints each offence as FILE:LINE:
what; exit 0 without any."""
import glob, os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["ir", "analysis", "schedule", "transforms", "codegen", "runtime", "src", "include", "tests", "docs", "bench",
           "scripts", "examples", "cmake"]
# Not part of another path or of a word.
PATH = re.compile(r"(?<![\w./$<>{}*-])(?:" + "|".join(FOLDERS) + r")/[\w./{},*-]*(?!\$)\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?<!-)")
# Options of cmake, ctest, git, nvcc, pip, pkg-config and compilers that the documentation uses.
FOREIGN = {"--preset", "--build", "--install", "--prefix", "--target", "--parallel", "--output-on-failure", "--test-dir",
           "--cflags", "--libs"}
EXTENSIONS = ["", ".h", ".cpp", ".py", ".cu", ".md", ".json", ".sh", ".cmake"]


def documents():
    yield from sorted(set(glob.glob("*.md")) - {"CHANGELOG.md"})
    for folder in FOLDERS:
        for pattern in ["*.md"] + (["*.h"] if folder != "tests" else []):
            yield from sorted(p for p in glob.glob(f"{folder}/**/{pattern}", recursive=True) if not re.match("tests/corpus/|bench/results/|docs/design/", p))


def comment_lines(path, lines):
    """The comments of a header; the compiler checks its code."""
    for number, line in enumerate(lines, 1):
        if path.endswith(".md"):
            yield number, line
        elif "//" in line:
            yield number, line[line.index("//"):]


def braces(path):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [p for part in found[1].split(",") for p in braces(path[:found.start()] + part + path[found.end():])]


def exists(path):
    path = path.rstrip(".,/-")
    if re.search(r"\b[A-Z]{3,}\b", os.path.basename(path)) and not os.path.exists(path):
        path = os.path.dirname(path)
    return all(any(glob.glob(p + extension) for extension in EXTENSIONS) for p in braces(path))


def known_options(programs):
    known = set(FOREIGN)
    for program in programs:
        help_text = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        known |= set(OPTION.findall(help_text))
    for program in (p for folder in ["scripts", "bench", "tests"] for p in glob.glob(f"{folder}/**", recursive=True)):
        if program.endswith((".py", ".sh", ".cpp")):
            with open(program, encoding="utf-8", errors="replace") as f:
                text = f.read()
            known |= set(OPTION.findall(text) if program.endswith(".sh")
                         else re.findall(r"""["'](--[a-z][a-z0-9-]*)[="']""", text))
    return known


def offences(path, lines, options):
    for number, line in comment_lines(path, lines):
        for found in PATH.findall(line):
            if not exists(found):
                yield number, f"there is no {found}"
        if path.endswith(".md"):
            for target in LINK.findall(line):
                if ":" not in target and not os.path.exists(os.path.join(os.path.dirname(path), target)):
                    yield number, f"the link leads nowhere: {target}"
        for option in OPTION.findall(line):
            if option not in options:
                yield number, f"there is no option {option}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    programs = [os.path.abspath(p) for p in sys.argv[1:]]
    os.chdir(ROOT)
    options = known_options(programs)
    count = bad = 0
    for path in documents():
        count += 1
        with open(path, encoding="utf-8") as f:
            for number, what in offences(path, f.read().split("\n"), options):
                bad += 1
                print(f"{path}:{number}: {what}")
    print(f"{count} files read, {len(options)} options known, {bad} offences")
    sys.exit(1 if bad or count < 100 else 0)


if __name__ == "__main__":
    main()
