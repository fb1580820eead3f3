#!/usr/bin/env python3
"""check_command_line.py FUSEC FUSEC_RUN

The rules of the command lines: where outputs go, which status a run ends with, and that an option's name or value never
consumes the model after it."""
import json, os, re, subprocess, sys, tempfile

import golden_models

FUSEC, RUN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(golden_models.FOLDER, "linear_gelu.json")
CHAIN = os.path.join(golden_models.FOLDER, "view_chain.json")
CUSTOM = os.path.join(golden_models.FOLDER, "custom_ops.json")
failures = []


def run(*arguments, program=FUSEC, stdin=None, folder=None, env=None):
    return subprocess.run([program, *arguments], stdin=stdin, cwd=folder, capture_output=True, text=True, timeout=300,
                          env=env)


def expect(what, process, status, out=None, err=None):
    """`out` and `err` are regular expressions; out="" means no output."""
    wrong = []
    if process.returncode != status:
        wrong.append(f"exit status {process.returncode}, expected {status}")
    if out is not None and (process.stdout != "" if out == "" else not re.search(out, process.stdout)):
        wrong.append(f"standard output lacks {out!r}: {process.stdout[:300]!r}")
    if err is not None and not re.search(err, process.stderr):
        wrong.append(f"standard error lacks {err!r}: {process.stderr[:300]!r}")
    if wrong:
        failures.append(f"{what}: " + "; ".join(wrong))
    return process


def usage_errors():
    for arguments, message in [
            ([], "no model is given"),
            ([MODEL, CHAIN], "one model"),
            ([MODEL, "--strategy=most"], "strategy"),
            ([MODEL, "--arch=sm_70"], "sm_80"),
            ([MODEL, "--arch=sm_89", "--target=h200"], "another architecture"),
            ([MODEL, "--max-fused-ops=0"], "max-fused-ops"),
            ([MODEL, "--max-args=-3"], "max-args"),
            ([MODEL, "--max-fused-ops=99999999999"], "max-fused-ops"),
            ([MODEL, "--jobs=-1"], "jobs"),
            ([MODEL, "--color=red"], "color"),
            ([MODEL, "--symbol=n"], "NAME=VALUE"),
            ([MODEL, "--emit=hypertext"], "partition"),
            ([MODEL, "--profile=x.json"], "without --emit=html"),
            ([MODEL, "--emit=ir="], "has no file"),
            ([MODEL, "--emit=ir", "--emit=plan"], "standard output"),
            ([MODEL, "-o", "x.htm"], r"\.htm"),
            ([MODEL, "-o", "x.weird"], r"\.weird"),
            ([MODEL, "--no-nvrtc", "-o", "x.ptx"], "no-nvrtc"),
            ([MODEL, "-o", "x.cu", "--emit=ir=x.cu"], "twice"),
            ([MODEL, "-o", MODEL], "would be overwritten"),
            ([MODEL, "--dump-ir-after=inlining"], "one of read, keep-apart, .*nvrtc"),
            ([MODEL, "--require-one-kernel=[1"], "JSON array"),
    ]:
        expect(" ".join(arguments), run(*arguments), 2, "", "error: .*" + message)
    for later in ["--tuning-table=db", "--no-such-option"]:
        expect(later, run(MODEL, later), 2, "", "error: unknown option " + later.split("=")[0] + " ")


def wrong_values_have_parts():
    """An error about an option's value has its parts, in words of ours, as JSON as well."""
    for program, option, found, expected in [
            (FUSEC, "--timeout=x", '"x"', "a number of seconds, not negative"),
            (FUSEC, "--max-fused-ops=abc", '"abc"', "a whole number from 1 to 2147483647"),
            (FUSEC, "--max-memory=12X", '"12X"', "a size, as 512M or 2G"),
            (FUSEC, "--cache-size=-1", '"-1"', "a size, as 512M or 2G"),
            (FUSEC, "--precise-math=banana", '"banana"', "true or false, or no value"),
            (FUSEC, "--strategy=tvn", '"tvn"', "one of none, tvm, full"),
            (FUSEC, "-o", "no value", "FILE"), (FUSEC, "--jobs", "no value", "N"),
            (FUSEC, "--emit=", "an empty value", "a value"),
            (RUN, "--sample-blocks=x", '"x"', "a whole number from 0 to 2147483647"),
            (RUN, "--host-part=x", '"x"', "one of plan, recorded"),
            (RUN, "--device=emu", '"emu"', "reference, emulator or cuda[:N]")]:
        process = expect(option, run(MODEL, "--json", option, program=program), 2, "")
        told = json.loads(process.stderr)["errors"][0]
        if (told["what"], told["found"], told["expected"]) != (option.split("=")[0], found, expected):
            failures.append(f"{option}: {told}")
    twice = run(MODEL, "--strategy=tvm", "--strategy=full")
    expect("an option twice", twice, 2, "", "--strategy: found 2 values, expected one")


def words_before_the_model(scratch):
    for arguments, message in [
            (["dif", MODEL, CHAIN], "did you mean fusec diff"), ([MODEL, CHAIN], "fusec diff A B sets two"),
            (["compile", MODEL], "no word goes before the model: fusec "), (["view"], "expected fusec view model.json"),
            (["help", "foo"], 'no such command: found "foo", expected one of diff, view, cache, doctor'),
            (["view", MODEL, "-o", "x.svg"], r"expected a file that ends in \.html or \.htm")]:
        expect("fusec " + " ".join(arguments), run(*arguments, folder=scratch), 2, "", "error: .*" + message)
    if os.listdir(scratch):
        failures.append(f"wrong words left {os.listdir(scratch)}")


def folders_that_cannot_be_made(scratch):
    """A file stands where the folder of the compile cache should be made."""
    file = os.path.join(scratch, "file")
    with open(file, "w", encoding="utf-8") as f:
        f.write("in the way")
    wrong = f"--cache-dir={file}/cache"
    process = run(MODEL, "--no-nvrtc", "-o", os.path.join(scratch, "out.cu"), wrong)
    expect("a cache that cannot be made", process, 0, "", "warning: nothing is kept in .*/file/cache: Not a directory")
    if process.stderr.count("warning") != 1:
        failures.append("the cache's warning: " + process.stderr)
    findings = {f["subject"]: f for f in json.loads(run("doctor", "--json", wrong).stdout)}
    if findings["compile cache"]["state"] != "missing" or "Not a directory" not in findings["compile cache"]["found"]:
        failures.append(f"doctor of a cache that cannot be made: {findings['compile cache']}")


def runs_as_json(scratch):
    """fusec-run --json prints one object."""
    out = os.path.join(scratch, "out.safetensors")
    told = json.loads(expect("fusec-run --json", run(MODEL, "--random", "--json", f"--outputs={out}", program=RUN), 0,
                             "").stderr)
    if told != {"device": "reference", "good": True, "compared": [], "outputs": 1, "outputs_file": out}:
        failures.append(f"fusec-run --json: {told}")
    verified = json.loads(run(MODEL, "--random", "--json", "--verify", program=RUN).stderr)["compared"]
    if [(c["with"], c["agrees"], c["largest_error"]) for c in verified] != [("the reference", True, 0)]:
        failures.append(f"fusec-run --json --verify: {verified}")
    model = os.path.join(golden_models.FOLDER, "softmax.json")
    wrong = run(model, "--random=1", "--device=emulator", "--verify=0,0", "--json", program=RUN)
    if wrong.returncode == 3:
        return
    told = json.loads(expect("fusec-run --json --verify=0,0", wrong, 1, "").stderr)
    found = told["compared"][0]["difference"]["output"], told["begins_with"]["node"]
    if told["good"] or found not in (("y", "weights"), ("y", "y")):
        failures.append(f"fusec-run --json --verify=0,0: {told}")


def profiles_of_other_models(scratch):
    profile = os.path.join(scratch, "profile.json")
    with open(profile, "w", encoding="utf-8") as f:
        json.dump({"fusec_profile": 1, "kernels": [{"name": "diamond_0_conv2d"}]}, f)
    page = os.path.join(scratch, "page.html")
    expect("a profile of another model", run(MODEL, "--no-nvrtc", "--emit=html=" + page, "--profile=" + profile), 1, "",
           'model "linear_gelu" lacks: found "diamond_0_conv2d"')
    if os.path.exists(page):
        failures.append("a page with the profile of another model")


def input_errors(scratch):
    for arguments, message in [
            (["nosuch.json"], "nosuch.json"),
            ([MODEL, "--no-fuse-node=scale"], 'did you mean "scaled"'),
            ([MODEL, "--no-fuse=geluu"], 'did you mean "gelu"'),
            ([MODEL, "--explain=hidden,scale"], "no such node"),
            ([MODEL, "--require-one-kernel=hidden,scale"], "no such node"),
            ([MODEL, "--no-fuse-node=scaled", "--require-one-kernel=hidden,scaled"], "not one kernel"),
            ([MODEL, "--symbol=n=3"], "no symbol"),
            ([MODEL, "--plan=nosuch"], "nosuch"),
            ([MODEL, "--target=nosuch"], "nosuch"),
            ([MODEL, "--target=" + CHAIN], '/fusec|"fusec_target"'),
    ]:
        path = os.path.join(scratch, "out.cu")
        with open(path, "w", encoding="utf-8") as f:
            f.write("kept")
        expect(" ".join(arguments), run(*arguments, "--no-nvrtc", "-o", path), 1, "", "error: .*" + message)
        with open(path, encoding="utf-8") as f:
            if f.read() != "kept":
                failures.append(f"{arguments}: a failed run changed its output")
    if os.listdir(scratch) != ["out.cu"]:
        failures.append(f"a failed run left files: {os.listdir(scratch)}")


def wrong_outputs_are_traced():
    """With tolerance 0 the emulator's exponential differs from the reference's, and the message names that node."""
    model = os.path.join(golden_models.FOLDER, "softmax.json")
    for more in [[], ["--host-part=recorded"]]:
        process = run(model, "--random=1", "--device=emulator", "--verify=0,0", *more, program=RUN)
        if process.returncode == 3 and "no libnvrtc found" in process.stderr:
            return
        expect("--verify=0,0", process, 1, "", r'output "y" \[\d+, \d+\]: got (.|\n)*it begins with node "(weights|y)"')
    for options, message in [
            (["--verify=-1,-1"], "found -1,-1.*not negative"), (["--verify=nan,0"], "not negative"),
            (["--bench=3"], "found --device=reference"), (["--device=emulator", "--bench"], "found --device=emulator"),
            (["--profile=-"], "expected --device=emulator"), (["--sample-blocks=2"], "expected --device=emulator"),
            (["--host-part=recorded"], "expected --device=emulator")]:
        expect(" ".join(options), run(model, "--random=1", *options, program=RUN), 2, "", "error: .*" + message)
    expect("--host-part=guessed", run(model, "--random=1", "--host-part=guessed", program=RUN), 2, "", "host-part")


def graphviz_is_looked_for_first(scratch):
    """Before the model is read, which does not exist here."""
    environment = {**os.environ, "PATH": scratch}
    expect("--emit=svg without Graphviz", run("nosuch.json", "--emit=svg", env=environment), 3, "", "Graphviz")


def counts_say_what_they_count(scratch):
    """A model with different counts of groups, launches and kernels."""
    model = os.path.join(scratch, "counts.json")
    with open(model, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "symbols": {"n": {"max": 8192}},
                   "inputs": [{"name": "x", "dtype": "float16", "shape": ["n", 1000]}],
                   "constants": [{"name": "w", "dtype": "float16", "shape": [1000, 1000]}],
                   "nodes": [{"name": "v", "op": "softmax", "inputs": ["w"], "attrs": {"dim": 0}},
                             {"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": 1}},
                             {"name": "z", "op": "matmul", "inputs": ["y", "v"]},
                             {"name": "x1", "op": "reshape", "inputs": ["x"], "attrs": {"shape": [1, "n", 1000]}}],
                   "outputs": ["z", "x1"]}, f)
    expect("counts", run(model, "--no-nvrtc", "-o", os.path.join(scratch, "counts.cu")), 0, "",
           r"4 nodes in 4 groups, 1 of them prepared once for each set of weights; 3 launches a run "
           r"\(\d+ kernels?, and \d+ variants? for other sizes\), 1 launch to prepare; workspace [\d.]+ [kM]?B")


def guilty_fusions_are_found(scratch):
    out = os.path.join(scratch, "bisected.cu")
    guilty = run(MODEL, "--no-nvrtc", "-o", out, r"""--bisect=! grep -Eq '"hidden".*"scaled"' $FUSEC_PLAN""")
    expect("--bisect", guilty, 0, r'"hidden", .*"scaled".*with this fusion alone the command fails', "the command passes")
    if not os.path.exists(out):
        failures.append("--bisect left no result")
    expect("--bisect=true", run(MODEL, "--no-nvrtc", "-o", out, "--bisect=true"), 1, "nothing to find")
    expect("--bisect=false", run(MODEL, "--no-nvrtc", "-o", out, "--bisect=false"), 1, "fusion is not to blame")
    # A decomposed softmax becomes one op before fusion, so its pattern is to blame, not a fusion.
    decomposed = {"fusec": 1, "name": "pieces", "inputs": [{"name": "x", "dtype": "float32", "shape": [7, 100]}],
                  "nodes": [{"name": "m", "op": "amax", "inputs": ["x"], "attrs": {"dim": [-1], "keepdim": True}},
                            {"name": "d", "op": "sub", "inputs": ["x", "m"]}, {"name": "e", "op": "exp", "inputs": ["d"]},
                            {"name": "s", "op": "sum", "inputs": ["e"], "attrs": {"dim": [-1], "keepdim": True}},
                            {"name": "y", "op": "div", "inputs": ["e", "s"]}], "outputs": ["y"]}
    pieces = os.path.join(scratch, "pieces.json")
    with open(pieces, "w", encoding="utf-8") as f:
        json.dump(decomposed, f)
    plan = os.path.join(scratch, "left_out.json")
    guilty = run(pieces, "--no-nvrtc", "-o", out,
                 f"""--bisect=cp $FUSEC_PLAN {plan}; {FUSEC} {pieces} --plan=$FUSEC_PLAN --no-nvrtc --emit=partition """
                 """| grep '"nodes"' | grep -v '"nodes": \\["[mdesy]"\\]' && exit 1 || exit 0""")
    expect("--bisect of a rewriting", guilty, 0, r'pattern fusec\.softmax \("m", "d", "e", "s", "y"\)',
           "0 fusions: the command passes")
    again = run(pieces, "--no-nvrtc", "--emit=plan", "--plan=" + plan)
    with open(plan, encoding="utf-8") as f:
        if again.stdout != f.read():
            failures.append("the plan that --bisect leaves is another one when it is given back")
    expect("--bisect to standard output", run(MODEL, "--emit=plan", "--bisect=true"), 2, "", "--bisect needs files")
    os.remove(out)


def values_do_not_swallow_the_model():
    for option in ["--no-fuse=gelu", "--no-fuse-node=scaled", "--explain=all", "--require-one-kernel=hidden,scaled",
                   "--emit=partition"]:
        name, value = option.split("=")
        expect(option + " MODEL", run(option, MODEL), 0)
        expect(f"{name} {value} MODEL", run(name, value, MODEL), 0)
    for option in ["--random", "--random=3"]:
        expect(option + " MODEL", run(option, MODEL, program=RUN), 0)
    expect("--verify MODEL", run("--random", "--verify", MODEL, program=RUN), 0, "", "verified")
    apart = run("--no-fuse=mul", "--no-fuse", "gelu", MODEL, "--emit=partition")
    if [g["nodes"] for g in json.loads(apart.stdout)["groups"]] != [["hidden"], ["scaled"], ["y"]]:
        failures.append("--no-fuse twice: " + apart.stdout)
    custom = json.loads(run(CUSTOM, "--no-fuse=acme.quick_gate", "--emit=partition").stdout)
    if ["gated"] not in [g["nodes"] for g in custom["groups"]]:
        failures.append(f"--no-fuse of a custom op: {custom['groups']}")


def lists_of_names(scratch):
    """A,B or a JSON array, for names with commas and quotes."""
    model = os.path.join(scratch, "names.json")
    nodes = [{"name": "a,b", "op": "exp", "inputs": ["x"]}, {"name": "[c]", "op": "neg", "inputs": ["a,b"]}]
    with open(model, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "inputs": [{"name": "x", "dtype": "float32", "shape": [4]}], "nodes": nodes,
                   "outputs": ["[c]"]}, f)
    expect("a JSON array", run(model, '--require-one-kernel=["a,b", "[c]"]'), 0)
    expect("a JSON array, apart", run(model, '--require-one-kernel=["a,b", "[c]"]', "--no-fuse=neg"), 1, "", "not one kernel")
    answer = expect("--explain", run(model, '--explain=["a,b", "[c]"]', "--json"), 0)
    if json.loads(answer.stdout)["one_kernel"] is not True:
        failures.append("--explain of a JSON array: " + answer.stdout)
    expect("two lists", run(MODEL, "--require-one-kernel=hidden,scaled", "--require-one-kernel=scaled,y"), 0)


def names_of_a_model(scratch):
    """--name: two architectures' files link into one program."""
    expect("--name", run(MODEL, "--emit=header", "--name=for.sm_90a", "--arch=sm_90a"), 0, r"cudaError_t for_sm_90a_launch\(")
    expect("--name, empty", run(MODEL, "--emit=header", "--name="), 2)


def outputs(scratch):
    def content(name):
        with open(os.path.join(scratch, name), encoding="utf-8") as f:
            return f.read()

    def go(*arguments, out=""):
        expect(" ".join(arguments), run(MODEL, "--no-nvrtc", *arguments, folder=scratch), 0, out, "linear_gelu: 3 nodes")

    go()
    go("-o", "-", out="__global__")
    go("--emit=ir", out='model "linear_gelu"')
    go("-o", "a.cu", "--emit=partition", out='"fusec_partition"')
    go("-o", "b.json")
    go("-o", "c.json", "--emit=plan")
    go("-o", "d.txt", "--emit=partition=e.json", "--emit=dot=f.dot")
    go("-o", "g.report", "--emit=ledger")
    go("-o", os.devnull, "--emit=cu")
    os.symlink("target.cu", os.path.join(scratch, "link.cu"))
    go("-o", "link.cu")
    for name, start in [("a.cu", "//"), ("b.json", '{\n  "fusec_manifest"'), ("c.json", '{\n  "fusec_plan"'),
                        ("d.txt", 'model "linear_gelu"'), ("e.json", '{\n  "fusec_partition"'), ("f.dot", "digraph"),
                        ("g.report", '{\n  "fusec_ledger"'), ("target.cu", "//")]:
        if not re.sub(r"\{\s*", "{\n  ", content(name), count=1).startswith(start):
            failures.append(f"{name} begins with {content(name)[:60]!r}")
    if not os.path.islink(os.path.join(scratch, "link.cu")):
        failures.append("a link was replaced")
    if [name for name in os.listdir(scratch) if ".partial" in name]:
        failures.append("partial files are left")
    with open(MODEL, encoding="utf-8") as f:
        expect("-", run("-", "--emit=partition", stdin=f), 0, '"fusec_partition"')
    # The textual form is a model, too, and compiles to the same. A header is an output kind of its own.
    go("--strategy=none", "--emit=ir=t.ir", "-o", "t.h")
    again = run("t.ir", "--strategy=none", "--no-nvrtc", "-o", "again.cu", "--emit=header=again.h", folder=scratch)
    expect("a model as text", again, 0, "", "linear_gelu: 3 nodes")
    go("--strategy=none", "-o", "first.cu")
    if content("again.cu") != content("first.cu") or content("again.h") != content("t.h"):
        failures.append("the textual form of a model is compiled to something else")
    if "#ifndef linear_gelu_FUSEC_H_" not in content("t.h"):
        failures.append(f"the header is {content('t.h')[:200]!r}")
    with open(os.path.join(scratch, "wrong.ir"), "w", encoding="utf-8") as f:
        f.write('model "m"\ninput x: float32[4]\n\ny = sigmoyd(x)\nreturn y\n')
    expect("a wrong model as text", run("wrong.ir", folder=scratch), 1, "", r"wrong\.ir: line 4: unknown op: .*sigmoid")
    expect("a folder that is not there", run(MODEL, "--no-nvrtc", "-o", "no/such.cu", folder=scratch), 3, "", "no/such.cu")


def native_and_nvrtc(scratch):
    """Without a GPU, `native` is refused with a message. Source, PTX and cubin together are one compilation."""
    native = run(MODEL, "--arch=native", "--emit=partition")
    if native.returncode not in (0, 3) or (native.returncode == 3 and "sm_80" not in native.stderr):
        failures.append(f"--arch=native: {native.returncode} {native.stderr}")
    kinds = ["-o", os.path.join(scratch, "x.cu"), "--emit=ptx=" + os.path.join(scratch, "x.ptx"),
             "--emit=cubin=" + os.path.join(scratch, "x.cubin")]
    together = run(MODEL, *kinds, "--time-passes", "--no-cache")
    if together.returncode == 3 and "NVRTC" in together.stderr:
        print("skipped: PTX and cubin (no NVRTC here)")
        return
    expect("source, PTX and cubin", together, 0, "", r"x\.cu, compiled by NVRTC")
    if together.stderr.count("  nvrtc\n") != 1:
        failures.append("source, PTX and cubin are not compiled once: " + together.stderr)


def passes():
    """--list-passes, --time-passes and --dump-ir-* use one list."""
    listed = [p["name"] for p in json.loads(run("--list-passes", "--json").stdout)]
    timed = re.findall(r"^ *[\d.]+ ms  ([a-z-]+)$", run(MODEL, "--time-passes", "--emit=manifest").stderr, re.M)
    if [name for name in listed if name in timed] != timed or set(listed) - set(timed) - {"nvrtc"}:
        failures.append(f"passes listed {listed}, timed {timed}")
    given = run(MODEL, "--time-passes", "--emit=partition", "--strategy=tvm").stderr
    if re.search("^.* simplify-algebra$", given, re.M):
        failures.append("canonicalization runs under tvm: " + given)
    for name in listed:
        expect("--dump-ir-before=" + name, run(MODEL, "--dump-ir-before=" + name, "--no-nvrtc"), 0)
        expect("--dump-ir-after=" + name, run(MODEL, "--dump-ir-after=" + name, "--no-nvrtc"), 0)
    shown = expect("dump", run(MODEL, "--dump-ir-after=all", "--dump-ir-before=simplify-algebra"), 0, "", "# after simplify-algebra\nmodel")
    if shown.stderr.count("# before simplify-algebra") != 1:
        failures.append("--dump-ir-before: " + shown.stderr)


def informative():
    expect("--help", run("--help"), 0, "--require-one-kernel")
    expect("--version", run("--version"), 0, r"^fusec \d+\.\d+")
    expect("fusec-run --help", run("--help", program=RUN), 0, "--device")
    for option in ["--list-ops", "--list-passes", "--list-targets"]:
        expect(option, run(option), 0, r"\w")
        if not all(row["name"] for row in json.loads(run(option, "--json").stdout)):
            failures.append(option + " --json: a row without a name")
    expect("color", run(MODEL, "--color=always", "--emit=no"), 2, "", "\033\\[1;31merror")
    if "\033" in run(MODEL, "--emit=no").stderr:
        failures.append("colours though standard error is no terminal")


def doctor():
    """`fusec doctor` reports what is installed. Without NVRTC its status is 3, and it says what to do."""
    findings = {f["subject"]: f for f in json.loads(expect("doctor", run("doctor", "--json"), 0).stdout)}
    for subject in ("fusec", "NVRTC", "CUDA driver", "compile cache", "Graphviz"):
        if subject not in findings:
            failures.append(f"doctor says nothing of {subject}")
    expect("doctor without NVRTC", run("doctor", env={**os.environ, "FUSEC_NVRTC": "/nowhere/libnvrtc.so.13"}), 3,
           out="broken +NVRTC.*/nowhere(.|\n)*install the CUDA toolkit(.|\n)*models cannot be compiled")


def main():
    usage_errors()
    wrong_values_have_parts()
    for check in (words_before_the_model, folders_that_cannot_be_made, runs_as_json, profiles_of_other_models,
                  input_errors, lists_of_names, names_of_a_model, outputs, native_and_nvrtc,
                  graphviz_is_looked_for_first, counts_say_what_they_count):
        with tempfile.TemporaryDirectory(prefix="fusec_command_line_") as scratch:
            check(scratch)
    with tempfile.TemporaryDirectory() as scratch:
        guilty_fusions_are_found(scratch)
    values_do_not_swallow_the_model()
    wrong_outputs_are_traced()
    passes()
    informative()
    doctor()
    for failure in failures:
        print("FAILED", failure)
    print(f"the command line: {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
