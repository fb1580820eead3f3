#!/usr/bin/env python3
"""check_resource_limits.py FUSEC FUSEC_RUN

The programs' limits on time, memory and files: for every file that is read, an input pipe without a writer, an output
pipe without a reader, and a system with little memory. Exceeding a limit is an error with status 1 that names the
limit, and leaves no partial file."""
import os, resource, subprocess, sys, tempfile, time

import golden_models
from hostile import make, measured

FUSEC, RUN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODEL = os.path.join(golden_models.FOLDER, "linear_gelu.json")
failures = []


def expect(what, holds, seen):
    if not holds:
        failures.append(f"{what}: {seen}")


def outcome(arguments, program=FUSEC, **more):
    start = time.monotonic()
    process = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100, **{"stdin": subprocess.DEVNULL, **more})
    return process.returncode, process.stderr, time.monotonic() - start


def endless_files():
    for arguments, program in [(["/dev/zero"], FUSEC), ([MODEL, "--patterns=/dev/zero"], FUSEC), ([MODEL, "--plan=/dev/zero"], FUSEC),
                               ([MODEL, "--target=/dev/zero"], FUSEC), ([MODEL, "--tuning-db=/dev/zero"], FUSEC),
                               ([MODEL, "--inputs=/dev/zero"], RUN), (["--ptx=/dev/zero", "--kernel=k"], RUN)]:
        status, error, _ = outcome([*arguments, "--max-file-size=1M"], program)
        expect(f"{arguments}", status == 1 and "larger than the limit" in error and "--max-file-size" in error, (status, error))
    with open("/dev/zero", "rb") as zeros:
        status, error, _ = outcome(["-", "--max-file-size=1M"], stdin=zeros)
        expect("standard input", status == 1 and "larger than the limit" in error, (status, error))
    status, error, _ = outcome(["/dev/zero", "--max-memory=100M"])
    expect("/dev/zero within little memory", status == 1 and "memory limit" in error, (status, error))
    status, error, _ = outcome([MODEL, "--max-file-size=100"])
    expect("a file of more than 100 bytes", status == 1 and MODEL in error and "larger than the limit" in error, (status, error))


def blocked():
    reader, writer = os.pipe()
    status, error, seconds = outcome(["-", "--timeout=0.5"], stdin=reader)
    expect("input that never comes", status == 1 and "time limit" in error and "stage read" in error and seconds < 5, (status, error, seconds))
    with subprocess.Popen([FUSEC, MODEL, "--no-nvrtc", "--timeout=1.5", "-o", "-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        # The pipe holds less than the output, and nobody reads it.
        status, error = process.wait(timeout=60), process.stderr.read()
    expect("output that nobody takes", status in (0, 1) and (status == 0 or "time limit" in error), (status, error))
    os.close(reader)
    os.close(writer)


def within_limits():
    """Each limit is exceeded in some stage, and the output file stays unchanged."""
    long, large = make("chain.reshape_permute", 12, 0), make("wired.independent", 3000, 0)
    for limit in ["--timeout=0.02", "--timeout=0.1", "--timeout=0.4", "--max-memory=4M", "--max-memory=20M"]:
        run = measured.run(FUSEC, long if "timeout" in limit else large, [limit, "-o", "out.cu", "--no-nvrtc"], "out.cu", 100)
        expect(limit, run.status in (0, 1) and not run.left, (run.status, run.error, run.left))
        if run.status == 1:
            word = "time limit" if "timeout" in limit else "memory limit"
            expect(limit, word in run.error and "stage" in run.error and run.output == measured.KEPT, (run.error, run.output[:80]))
    for option in ["--max-memory=much", "--max-memory=-1", "--timeout=-1", "--timeout=soon", "--max-file-size=1X"]:
        status, error, _ = outcome([MODEL, option])
        expect(option, status == 2 and "error:" in error, (status, error))


def plan_deadline():
    """Past the deadline the plan until then is compiled, with a warning, and replays; before it nothing changes."""
    model = os.path.join(os.path.dirname(golden_models.FOLDER), "corpus", "models", "dag60_f32.full.json")
    with tempfile.TemporaryDirectory() as folder:
        plan, cuda, again = (os.path.join(folder, name) for name in ("plan.json", "out.cu", "again.cu"))
        emitted = {}
        for deadline in ("0.000001", "0.004", "60"):
            status, error, _ = outcome([model, "--no-nvrtc", f"--plan-deadline={deadline}", f"--emit=plan={plan}", "-o", cuda])
            late = "the plan deadline of" in error and "the best plan until then is taken" in error
            expect(f"deadline of {deadline} s", status == 0 and late == (deadline != "60"), (status, error))
            status, error, _ = outcome([model, "--no-nvrtc", f"--plan={plan}", "-o", again])
            emitted[deadline] = open(cuda, encoding="utf-8").read()
            expect(f"plan of {deadline} s again", status == 0 and open(again, encoding="utf-8").read() == emitted[deadline], (status, error))
        status, error, _ = outcome([model, "--no-nvrtc", "-o", cuda])
        expect("a late deadline", status == 0 and open(cuda, encoding="utf-8").read() == emitted["60"], (status, error))
        expect("an early deadline", emitted["0.000001"] != emitted["60"], "")
    status, error, _ = outcome([MODEL, "--random", "--verify", "--device=emulator", "--plan-deadline=0.000001"], RUN)
    expect("values of an early plan", status in (0, 77) or "NVRTC" in error, (status, error))
    status, error, _ = outcome([MODEL, "--plan-deadline=soon"])
    expect("--plan-deadline=soon", status == 2 and "error:" in error, (status, error))


def little_memory():
    """If the system gives no more memory, the program reports that and does not abort, at any size."""
    with tempfile.TemporaryDirectory() as folder:
        measured.lay_out(make("chain.layer_norm", 200, 0), folder)
        model = os.path.join(folder, "model.json")
        statuses = set()
        for mebibytes in [*range(6, 60, 3), 70, 100, 200]:
            limit = mebibytes << 20
            little = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
            if outcome([], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, **little)[0] != 0:
                continue  # the dynamic loader has no room for the libraries
            status, error, _ = outcome([model, "--emit=partition"], **little)
            statuses.add(status)
            expect(f"{mebibytes} MiB", status in (0, 1, 3) and (status == 0 or "memory" in error), (status, error[:300]))
        expect("some size is too small, some is not", {0, 3} <= statuses, statuses)


def long_line():
    """An error in a line of 5 MB, of which 80 characters are shown, takes little memory."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as model:
        model.write("[" * 5_000_000)
        model.flush()
        process = subprocess.Popen([FUSEC, model.name], stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    expect("an error in a long line", process.returncode == 1 and usage.ru_maxrss < 64 << 10, (process.returncode, usage.ru_maxrss))


endless_files()
long_line()
blocked()
within_limits()
plan_deadline()
little_memory()
print("\n".join(failures) or "all limits hold")
sys.exit(1 if failures else 0)
