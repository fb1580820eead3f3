#!/usr/bin/env python3
"""generate_docs.py FUSEC FUSEC_RUN [--check]: writes the files of docs/ and packaging/ that are made of
the programs' own tables.

--check writes nothing: it prints what would change and exits with 1 if anything would."""
import argparse, difflib, os, sys

from documentation import (c_reference, command_line, completions, cpp_reference, manual, model_schema, op_reference,
                           pattern_reference)
from documentation.tables import Programs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def generated(programs):
    """{path below the repository: text}"""
    ops = programs.listed("ops")
    version = programs.output("--version").split()[-1]
    helps = {os.path.basename(p): command_line.help_text(programs, p) for p in (programs.fusec, programs.fusec_run)}
    helps["fusec"] = command_line.with_diff(helps["fusec"], command_line.help_of_diff(programs))
    manuals = {f"packaging/man/{name}.1": manual.page(name, version, text) for name, text in helps.items()}
    return {"docs/schemas/model.schema.json": model_schema.text(model_schema.model_schema(ops)),
            "docs/ops.md": op_reference.text(programs, ROOT),
            "docs/pattern_reference.md": pattern_reference.text(programs),
            "docs/cpp_api.md": cpp_reference.text(ROOT),
            "docs/c_reference.md": c_reference.text(ROOT),
            "docs/command_line.md": command_line.text(programs),
            **manuals,
            "packaging/completions/fusec.bash": completions.bash(helps),
            "packaging/completions/_fusec": completions.zsh(helps),
            "packaging/completions/fusec.fish": completions.fish(helps)}


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    programs = Programs(os.path.abspath(args.fusec), os.path.abspath(args.fusec_run))
    os.chdir(ROOT)
    changed = 0
    for path, text in generated(programs).items():
        old = read(path)
        if old == text:
            continue
        changed += 1
        if args.check:
            difference = difflib.unified_diff(old.split("\n"), text.split("\n"), path, "generated", lineterm="", n=1)
            print("\n".join(list(difference)[:40]))
        else:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            print("wrote " + path)
    if args.check:
        print(f"{changed} generated files differ" + (": run scripts/generate_docs.py FUSEC FUSEC_RUN" if changed else ""))
    sys.exit(1 if args.check and changed else 0)


if __name__ == "__main__":
    main()
