#!/usr/bin/env python3
"""check_examples.py FUSEC FUSEC_RUN: the program output that the documentation shows is what the programs print.

Runs the first command of every code block of docs/ that begins with "$ ". The lines below it, if any, must occur in the
output, ignoring differences in blanks and line breaks. The file in.safetensors exists, with a float32 x of 1000
elements, and so do the tutorial's step.json and alone.json. Launches and bytes in the tables of docs/index.md and docs/fusion.md must equal those of --emit=partition and
--emit=report."""
import glob, json, os, re, shlex, struct, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def blocks():
    """(file, command, output shown below it)"""
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as f:
            for block in re.findall(r"^```\w*\n\$ (.*?)^```", f.read(), re.S | re.M):
                command, _, shown = block.replace("\\\n", " ").partition("\n")
                yield os.path.basename(path), command, shown


def write_input(path):
    header = json.dumps({"x": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<1000f", *range(1000)))


def write_tutorial_models(folder):
    """step.json is the tutorial's JSON block; alone.json returns y alone."""
    with open(os.path.join(ROOT, "docs", "tutorial.md"), encoding="utf-8") as f:
        step = json.loads(re.search(r"```json\n(.*?)```", f.read(), re.S)[1])
    for name, model in (("step.json", step), ("alone.json", {**step, "outputs": ["y"]})):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(model, f)


def tables(fusec, folder):
    """Differences between the tables of launches and bytes and the reports."""
    pages = {}
    for page in ("index.md", "fusion.md"):
        with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as f:
            pages[page] = f.read()

    def emitted(model, kind, *options):
        return json.loads(subprocess.run([fusec, f"examples/{model}.json", "--emit=" + kind, "--no-nvrtc", *options],
                                         cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)

    totals = emitted("llama_block", "report")["totals"]
    for strategy in ("none", "tvm", "full"):
        of = totals[strategy]
        moved = of["bytes"]["read"] + of["bytes"]["written"]
        row = f"(`{strategy}`) | {of['launches']} | {moved / 1e6:.0f} MB | {of['predicted_us']:.0f} µs |"
        if row not in pages["index.md"]:
            yield f"index.md has no row that ends in {row}"
        report = emitted("diamond", "partition", "--strategy=" + strategy)
        row = f"| `{strategy}` | {report['launches']} | {report['global_bytes']['read'] + report['global_bytes']['written']:,} |"
        if row not in pages["fusion.md"]:
            yield f"fusion.md has no row {row}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    programs = dict(zip(("fusec", "fusec-run"), map(os.path.abspath, sys.argv[1:])))
    count, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        write_input(os.path.join(folder, "in.safetensors"))
        write_tutorial_models(folder)
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        for where, command, shown in blocks():
            name, *arguments = shlex.split(command)
            if name not in programs:
                failures.append(f"{where}: no program {name}")
                continue
            count += 1
            p = subprocess.run([programs[name], *arguments], cwd=folder, encoding="utf-8", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            if " ".join(shown.split()) not in " ".join(p.stdout.split()) or not p.stdout:
                failures.append(f"{where}: {command}\nexpected\n{shown}\nfound\n{p.stdout}")
        failures += tables(programs["fusec"], folder)
    print("\n".join(failures + [f"{count} commands, {len(failures)} failures"]))
    sys.exit(1 if failures or count < 4 else 0)


if __name__ == "__main__":
    main()
