#!/usr/bin/env python3
"""check_packaging.py: manual pages have no warnings, completions complete, and a workflow fits GitHub's schema.

Each is checked with the program that reads it: man, bash, zsh, fish, check-jsonschema. A missing program is named and
skipped; status 77 if all are missing."""
import os, re, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
failures, missing = [], []


def run(*command, **more):
    return subprocess.run(command, cwd=ROOT, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def with_program(name, check):
    path = shutil.which(name)
    if path:
        check(path)
    else:
        missing.append(name)


def expect(what, text, pattern):
    if not re.search(pattern, text):
        failures.append(f"{what}: expected {pattern}, found {text[-500:]!r}")


def manuals(man):
    for page in ("fusec.1", "fusec-run.1"):
        plain = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}
        p = subprocess.run([man, "--warnings", "-l", os.path.join("packaging", "man", page)], cwd=ROOT, encoding="utf-8",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=plain)
        expect(page, p.stdout, r"EXIT STATUS")
        expect(page, p.stdout, r"--strategy")
        if p.stderr:
            failures.append(f"{page}: {p.stderr[:500]}")


def bash(program):
    def completed(*words):
        script = ". packaging/completions/fusec.bash; compopt() { :; }; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); " \
                 "_fusec; echo \"${COMPREPLY[@]}\""
        return run(program, "-c", script, "bash", *words).stdout

    expect("bash, an option", completed("fusec", "--strat"), "^--strategy=$")
    expect("bash, a choice", completed("fusec", "--strategy", "=", "t"), "^tvm$")
    expect("bash, a kind", completed("fusec", "--emit", "=", "part"), "^partition$")
    expect("bash, a device", run(program, "-c", ". packaging/completions/fusec.bash; compopt() { :; }; "
                                 "COMP_WORDS=(fusec-run --device = emu); COMP_CWORD=3; _fusec_run; "
                                 "echo \"${COMPREPLY[@]}\"").stdout, "^emulator$")
    expect("bash, a word", completed("fusec", "doc"), "doctor")


# Completes a line in an interactive shell. The function fusec stands for the program: it prints a list of one row, else
# what it was given.
ZSH = r"""
zmodload zsh/zpty
zpty shell "$1" -f -i
zpty -w shell 'fpath=(packaging/completions $fpath); autoload -U compinit; compinit -u -D
fusec() {
  case $1 in
    (--list-*) print "    \"name\": \"h200\",\n    \"arch\": \"sm_90a\",";;
    (*) print "given $*.";;
  esac
}
print read""y'
zpty -r -m shell shown '*ready*'
zpty -w -n shell "fusec m $2"$'\t\n'
zpty -r -m shell shown '*given m*.*'
print -r -- ${shown#*given m}
"""


def zsh(program):
    expect("zsh", run(program, "-n", "packaging/completions/_fusec").stdout + "good", "^good$")
    for typed, completed in (("--arch=sm_9", "--arch=sm_90a"), ("--target=h", "--target=h200"),
                             ("--strategy=t", "--strategy=tvm")):
        shown = run("timeout", "30", program, "-f", "-c", ZSH, "zsh", program, typed).stdout
        expect("zsh, a value", shown, f"^ {completed}\\.")


def fish(program):
    p = run(program, "-c", "source packaging/completions/fusec.fish; complete -C 'fusec --strategy t'")
    expect("fish", p.stdout, "^tvm\t")


def workflow():
    own = os.path.join(ROOT, ".deps", "docs", "bin", "python")
    if not os.path.exists(own):
        missing.append("check-jsonschema (scripts/setup.sh docs)")
        return
    p = run(own, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", ".github/workflows/ci.yml")
    expect("workflow", p.stdout, "^ok")


def main():
    for name, check in (("man", manuals), ("bash", bash), ("zsh", zsh), ("fish", fish)):
        with_program(name, check)
    workflow()
    print("\n".join(failures + [f"missing: {', '.join(missing) or 'nothing'}; {len(failures)} failures"]))
    sys.exit(1 if failures else 77 if len(missing) == 5 else 0)


if __name__ == "__main__":
    main()
