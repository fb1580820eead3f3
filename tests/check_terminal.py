#!/usr/bin/env python3
"""check_terminal.py FUSEC FUSEC_RUN

Output for people: the table of launches, errors with their line, grouped help, on terminals of several widths and in
pipes, with and without colours, and the same as JSON."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

import golden_models

FUSEC, RUN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(golden_models.FOLDER, "linear_gelu.json")
WRONG = """{"fusec": 1,
 "inputs": [{"name": "größe", "dtype": "float32", "shape": [4]}],
 "nodes": [
  {"name": "act", "op": "relu", "inputs": ["größe"]},
  {"name": "é", "op": "swish", "inputs": ["act"]},
  {"name": "z", "op": "swish", "inputs": ["é"]},
  {"name": "y", "inputs": ["z", "z"], "op": "multiply"}],
 "outputs": ["y"]}
"""
BOLD = "\033[1"
failures = []


def expect(what, good, shown=""):
    if not good:
        failures.append(f"{what}: {shown}"[:2000])


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}, **more}


def run(*arguments, program=FUSEC, stdin=None, **more):
    return subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, timeout=300,
                          env=environment(**more))


def on_terminal(columns, *arguments, program=FUSEC, **more):
    """The output of both streams on a terminal with so many columns, without progress lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([program, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
                               env=environment(**{"TERM": "xterm", **more}))
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    process.wait()
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    return re.sub(r"\r\033\[K[^\n\r]*(?=\r\033\[K)", "", text).replace("\r\033[K", "")


def plain(text):
    return re.sub(r"\033\[[0-9;]*m", "", text)


def table_of(text):
    lines = plain(text).split("\n")
    begin = next((i for i, line in enumerate(lines) if line.startswith("  kernel ")), None)
    if begin is None:
        return []
    return [line for line in lines[begin:] if line.startswith("  ")]


def compilations(scratch):
    out = os.path.join(scratch, "out.cu")
    arguments = [MODEL, "--no-nvrtc", "-o", out]
    short = run(*arguments)
    expect("a line where nobody waits", short.stderr.count("\n") == 2 and not table_of(short.stderr), short.stderr)
    piped = run(MODEL)
    expect("in a pipe", piped.returncode == 0 and piped.stdout == "" and "\033" not in piped.stderr, piped.stderr)
    expect("a table in a pipe", len(table_of(piped.stderr)) >= 2, piped.stderr)
    expect("what is saved", "each operator alone" in piped.stderr and "times as fast" in piped.stderr, piped.stderr)
    for columns in (80, 140):
        shown = on_terminal(columns, *arguments)
        table = table_of(shown)
        expect(f"{columns} columns", len(table) >= 2 and all(len(line) <= columns for line in table), shown)
        expect("colours on a terminal", BOLD in shown, shown)
    for columns in (48, 80):
        shown = plain(on_terminal(columns, *arguments))
        table = [line for line in table_of(shown) if not line.startswith("    ")]  # at least 72 columns
        wide = [line for line in shown.split("\n") if len(line) > columns and not line.startswith("wrote")]
        expect(f"lines of {columns} columns", set(wide) <= set(table), shown)
    told = run(*arguments, "-v").stderr
    expect("a pipe's line is whole", re.search(r"each operator alone: .*; fused is ", told), told)
    empty = {"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [0]}],
             "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}], "outputs": ["y"]}
    process = run("-", "--no-nvrtc", "-v", "-o", arguments[-1], stdin=json.dumps(empty))
    expect("a model without elements", "each operator alone" in process.stderr and "; \n" not in process.stderr,
           process.stderr)
    expect("NO_COLOR", BOLD not in on_terminal(80, *arguments, NO_COLOR="1"))
    expect("TERM=dumb", BOLD not in on_terminal(80, *arguments, TERM="dumb"))
    expect("--color=never", BOLD not in on_terminal(80, *arguments, "--color=never"))
    expect("--color=always", BOLD in run(MODEL, "--color=always", NO_COLOR="1").stderr)
    quiet = run(*arguments, "--quiet")
    expect("--quiet", (quiet.stdout, quiet.stderr) == ("", ""), quiet.stderr)
    expect("-v tells times", "in all;" in run(*arguments, "-v").stderr)
    expect("-v and --quiet", run(*arguments, "-v", "--quiet").returncode == 2)
    expect("-v in a pipe", len(table_of(run(*arguments, "-v").stderr)) >= 2)


def the_same_numbers(scratch):
    """The summary as JSON has the report's figures, and the partition's launches."""
    report_file, partition_file = os.path.join(scratch, "r.json"), os.path.join(scratch, "p.json")
    process = run(MODEL, "--no-nvrtc", "--json", "-o", os.path.join(scratch, "out.cu"), f"--emit=report={report_file}",
                  f"--emit=partition={partition_file}")
    summary = json.loads(process.stderr)
    with open(report_file, encoding="utf-8") as f:
        report = json.load(f)
    with open(partition_file, encoding="utf-8") as f:
        partition = json.load(f)
    near = lambda a, b: abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-3)
    expect("predicted", near(summary["fused"]["predicted_us"], report["predicted_us"]), process.stderr)
    expect("unfused", near(summary["unfused"]["predicted_us"], report["unfused_us"]), process.stderr)
    expect("launches", summary["launches"] == partition["launches"] == summary["fused"]["launches"], process.stderr)
    expect("kernels", summary["kernels"] + summary["variants"] == partition["kernels"], process.stderr)
    total = sum(row["fused"]["predicted_us"] for row in summary["table"])
    expect("the table's sum", near(total, report["predicted_us"]), process.stderr)
    expect("what was written", [w["kind"] for w in summary["wrote"]] == ["report", "partition", "cu"], process.stderr)


def errors(scratch):
    model = os.path.join(scratch, "wrong.json")
    with open(model, "w", encoding="utf-8") as f:
        f.write(WRONG)
    process = run(model)
    expect("an error's status", process.returncode == 1 and process.stdout == "")
    expect("all unknown ops, each once", process.stderr.count("unknown op") == 2, process.stderr)
    expect("a synonym", 'did you mean "silu"?' in process.stderr and 'did you mean "mul"?' in process.stderr, process.stderr)
    expect("the place", f'  at {model}:5:23, node "é"\n' in process.stderr, process.stderr)
    lines = process.stderr.split("\n")
    carets = next(i for i, line in enumerate(lines) if "^" in line)
    begin, end = lines[carets].index("^"), lines[carets].rindex("^") + 1
    expect("the carets", lines[carets - 1][begin:end] == '"swish"', process.stderr)
    from_pipe = run("-", stdin=WRONG)
    expect("standard input", '  at -:5:23, node "é"\n' in from_pipe.stderr, from_pipe.stderr)
    told = json.loads(run(model, "--json").stderr)
    first = told["errors"][0]
    expect("errors as JSON", (len(told["errors"]), told["exit_status"], first["line"], first["column"], first["element"],
                              first["pointer"], first["hint"], first["kind"]) ==
           (2, 1, 5, 23, 'node "é"', "/nodes/1/op", 'did you mean "silu"?', "input"), str(told))
    told = json.loads(run(model, "--json", "--no-such-option").stderr)
    expect("usage as JSON", told["errors"][0]["kind"] == "usage" and told["exit_status"] == 2, str(told))
    # A model on one line: the error shows the part around the place.
    long = {**json.loads(WRONG), "metadata": {"long": "x" * 5000}}
    process = run("-", stdin=json.dumps({"metadata": long.pop("metadata"), **long}, ensure_ascii=False))
    excerpt = [line for line in process.stderr.split("\n") if line.startswith("   ")]
    expect("a long line", excerpt and all(len(line) <= 100 for line in excerpt) and '"swish"' in excerpt[0], process.stderr)
    undefined = WRONG.replace("swish", "silu").replace("multiply", "mul").replace('["act"]', '["acd"]').replace(
        '"z", "z"', '"z", "zz"')
    process = run("-", stdin=undefined)
    expect("all undefined values", process.stderr.count("undefined operand") == 2, process.stderr)
    many = json.loads(WRONG)
    many["nodes"] = [{"name": f"n{i}", "op": f"op{i}", "inputs": []} for i in range(30)]
    process = run("-", stdin=json.dumps(many))
    expect("at most 20", process.stderr.count("error:") == 20 and "there may be more" in process.stderr, process.stderr)


def other_texts(scratch):
    """Errors in patterns name line and column in words."""
    patterns = os.path.join(scratch, "own.patterns")
    with open(patterns, "w", encoding="utf-8") as f:
        f.write("# mine\n  patern x {\n")
    process = run(MODEL, "--patterns=" + patterns)
    expect("a pattern's line", f"  at {patterns}:2:12\n   2 |   patern x {{\n     |            ^" in process.stderr, process.stderr)


def nearest_names():
    for option, message in [("--emit=svgs", 'did you mean "svg"?'), ("--emit=cuda", 'did you mean "cu"?'),
                            ("--archs=sm_80", "did you mean --arch?"), ("--output=x", "did you mean -o?"),
                            ("--target=H200", 'one of sm_80, .*did you mean "h200"?'),
                            ("--arch=sm_70", "sm_80 is the least"), ("--arch=H100", 'did you mean "sm_90a"?'),
                            ("--strategy=ful", 'did you mean "full"?'), ("--explain=hidden,scale", 'did you mean "scaled"?'),
                            ("--explain=q", 'one of "'), ("--disable-pattern=swiglu", 'did you mean "fusec.swiglu"?'),
                            ("--disable-pattern=fusec.softmx", 'did you mean "fusec.softmax"?'),
                            ("--disable-pattern=fusec.dual_gemm", 'did you mean "fusec.dual_gemm_glu"?'),
                            ("--outptu=x", "did you mean -o?"), ("--cubin", "did you mean --emit=cubin?"),
                             ("--no-fuse=swish", 'did you mean "silu"?')]:
        process = run(MODEL, option)
        expect(option, process.returncode in (1, 2) and re.search(message.replace("?", r"\?"), process.stderr),
               process.stderr)


def help_texts():
    for program, groups in ((FUSEC, ["Output", "Target", "Fusion", "Numerics", "Why it is so", "Limits and cache"]),
                            (RUN, ["Running", "Checking results", "Any PTX file", "Target"])):
        for columns in (80, 140):
            shown = plain(on_terminal(columns, "--help", program=program))
            places = [shown.find(f"\n{title}:\n") for title in groups]
            expect("groups in their order", -1 not in places and places == sorted(places), shown)
            lines = [line for line in shown.split("\n") if line.startswith("  -")]
            names = [name for line in lines for name in re.findall(r"--[a-z-]+", line.split("  ")[1].split("=")[0])]
            expect("each option once", len(names) == len(set(names)) and len(names) > 30, str(names))
            expect("nothing without a group", "Other options" not in shown, shown)
            options = shown[shown.index("\nUsage:"):].split("\n")[2:]
            wide = [line for line in options if len(line) > columns]
            expect(f"help of {columns} columns", not wide, str(wide))


def side_by_side(scratch):
    def partition(strategy):
        path = os.path.join(scratch, strategy + ".json")
        run(MODEL, "--strategy=" + strategy, f"--emit=partition={path}")
        with open(path, encoding="utf-8") as f:
            return path, json.load(f)
    (full_file, full), (none_file, none) = partition("full"), partition("none")
    options = json.loads(run("diff", MODEL, "--against=--strategy=none", "--json").stdout)
    files = json.loads(run("diff", full_file, none_file, "--json").stdout)
    for told in (options, files):
        expect("launches of both", (told["a"]["launches"], told["b"]["launches"]) == (full["launches"], none["launches"]),
               str(told))
        expect("groups of one", [g["nodes"] for g in told["a"]["groups_alone"]] ==
               [g["nodes"] for g in full["groups"] if g["nodes"] not in [o["nodes"] for o in none["groups"]]], str(told))
    text = run("diff", MODEL, MODEL)
    expect("a model beside itself", text.returncode == 0 and "groups of A alone: none" in text.stdout and
           "1.00" in text.stdout, text.stdout + text.stderr)
    told = run("diff", "--help").stdout
    expect("diff's usage", "fusec diff [OPTIONS] A [B]\n" in told and "--against=OPTION" in told, told)
    expect("help diff", run("help", "diff").stdout == told)
    expect("help", run("help").stdout == run("--help").stdout)
    kinds = {kind: os.path.join(scratch, kind + ".json") for kind in ("manifest", "ledger")}
    run(MODEL, "--no-nvrtc", *(f"--emit={kind}={path}" for kind, path in kinds.items()))
    for kind, path in kinds.items():
        process = run("diff", full_file, path)
        refused = process.returncode == 1 and f'found "fusec_{kind}", expected a model' in process.stderr
        expect(f"diff of a {kind}", refused, process.stderr)
    for option, message in [("strategy=tvm", "hint: --against=--strategy=tvm"),
                            ("--stratgy=tvm", "did you mean --strategy?"), ("--strategy=tvn", 'did you mean "tvm"?')]:
        process = run("diff", MODEL, "--against=" + option)
        expect("--against=" + option, process.returncode == 2 and message in process.stderr, process.stderr)
    expect("diff of one file", run("diff", MODEL).returncode == 2)
    expect("diff of no model", run("diff", MODEL, "nosuch.json").returncode == 1)
    expect("one model at a time", run(MODEL, MODEL).returncode == 2)


def has_terminals():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:  # a root without /dev/pts
        return False
    return True


def main():
    if not has_terminals():
        print("skipped: the system has no pseudo-terminals (/dev/pts)")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        compilations(scratch)
        the_same_numbers(scratch)
        errors(scratch)
        other_texts(scratch)
        nearest_names()
        help_texts()
        side_by_side(scratch)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
