#!/usr/bin/env python3
"""check_environment.py FUSEC FUSEC_RUN STAND_IN FAIL_CALLS

What a hostile or poor environment must not do: make fusec execute what lies in the working directory, end it otherwise
than with one of its statuses, or leave partial files."""
import os, resource, shutil, signal, subprocess, time

import around_fusec
from around_fusec import MODEL, Failures, World, read, write

options = around_fusec.parse(__doc__)
failures = Failures()


def planted_libraries_are_not_loaded():
    """The stand-in, under every name and in every place that counts from the working directory, notes when it is loaded."""
    world = World(options)
    inner = world.path("models", "inner")
    os.makedirs(inner)
    with open(options.stand_in, "rb") as file:
        library = file.read()
    names = ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libcuda.so.1", "libnccl.so.2",
             "libcublasLt.so.13"]
    for above in (world.folder, world.path("models"), inner):
        for place in ("", "lib", "lib64", "lib/fusec", ".deps/nvrtc/lib", "cuda/lib64"):
            for name in names:
                write(os.path.join(above, place, name), library)
    script = b"#!/bin/sh\necho loaded >> $STAND_IN_LOG\nexit 1\n"
    for name in ("dot", "c++", "g++", "clang++", "nvcc", "ptxas", "nvdisasm"):
        write(os.path.join(inner, name), script)
        os.chmod(os.path.join(inner, name), 0o755)
    more = {"FUSEC_NVRTC": None, "PATH": ":.:./bin:" + os.environ["PATH"] + ":", "CUDA_HOME": "cuda", "CUDA_PATH": "./cuda",
            "CXX": "./c++"}
    run = lambda *arguments, program=None: world.run(*arguments, program=program, more=more, cwd=inner)
    for arguments in ([MODEL, "-o", "x.cu"], [MODEL, "-o", "x.ptx"], [MODEL, "--emit=svg"], [MODEL, "--arch=native"]):
        done = run(*arguments)
        failures.expect(done.returncode in (0, 3), f"{arguments}: {done.returncode} {done.stderr!r}")
    for device in ("emulator", "cuda"):
        run(MODEL, "--random", "--device=" + device, "--gemm=cublaslt", program=options.fusec_run)
    done = run(MODEL, "--random", "--device=emulator", "--host-part=recorded", program=options.fusec_run)
    failures.expect(done.returncode in (0, 3), f"host part: {done.returncode} {done.stderr!r}")
    for wrong in ("./libnvrtc.so.13", ".deps/nvrtc/lib/libnvrtc.so.13"):
        done = world.run(MODEL, "-o", "x.ptx", more={**more, "FUSEC_NVRTC": wrong}, cwd=inner)
        failures.expect(done.returncode == 3 and b"counts from the working directory" in done.stderr, f"{wrong}: {done.stderr!r}")
    failures.expect(world.logged("loaded") == 0, "what lies in the working directory is executed")


def installed_library_is_found():
    """lib/fusec beside the program's folder, from anywhere, unless others could have put it there."""
    world = World(options)
    program, library = world.path("prefix/bin/fusec"), world.path("prefix/lib/fusec/libnvrtc.so.13")
    for source, target in ((options.fusec, program), (options.stand_in, library)):
        os.makedirs(os.path.dirname(target))
        shutil.copy(source, target)
        os.chmod(target, 0o755)
    link = world.path("link")
    os.symlink(program, link)
    for start, folder in ((program, "/"), (link, world.folder)):
        done = world.run(MODEL, "--emit=ptx", "--no-cache", program=start, more={"FUSEC_NVRTC": None}, cwd=folder)
        failures.expect(done.returncode == 0 and b"// of " in done.stdout, f"{start} in {folder}: {done.stderr!r}")

    def refused(what):
        before = world.logged("loaded")
        world.run(MODEL, "--emit=ptx", "--no-cache", program=program, more={"FUSEC_NVRTC": None})
        failures.expect(world.logged("loaded") == before, f"{what}: the library is loaded")

    for path in (library, os.path.dirname(library)):
        mode = os.stat(path).st_mode
        os.chmod(path, 0o777)
        refused(f"{path} of mode 0777")
        os.chmod(path, mode)
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            refused(f"{path} of another user")
            os.chown(path, 0, 0)


def wrong_nvrtc_is_said():
    world = World(options)
    for path in ("/no/such/libnvrtc.so", MODEL, options.fail_calls):
        more = {"FUSEC_NVRTC": path}
        for arguments, program, status in (([MODEL, "-o", "x.cu"], None, 0), ([MODEL, "-o", "x.ptx"], None, 3),
                                           ([MODEL, "--random", "--device=emulator"], options.fusec_run, 3)):
            done = world.run(*arguments, program=program, more=more)
            failures.expect(done.returncode == status and b"FUSEC_NVRTC names no NVRTC" in done.stderr and path.encode() in done.stderr,
                            f"FUSEC_NVRTC={path} {arguments}: {done.returncode} {done.stderr!r}")
    # Before anything else is done: the model on standard input never comes.
    for program, arguments in ((options.fusec_run, ["-", "--random", "--device=emulator"]), (options.fusec, ["-", "-o", "x.ptx"])):
        receiving, sending = os.pipe()
        done = world.run(*arguments, program=program, more={"FUSEC_NVRTC": "/no/such.so"}, stdin=receiving, timeout=60)
        failures.expect(done.returncode == 3, f"{arguments}: {done.returncode}")
        os.close(receiving)
        os.close(sending)


def standard_streams():
    """Standard error closed or full changes no status; standard output closed or full is an error."""
    world = World(options)
    guilty = "--bisect=grep -q linear $FUSEC_PLAN"
    commands = [[], [MODEL], [MODEL, "-o", "x.cu"], [MODEL, "-o", "no/such.cu"], ["missing.json"], ["--wrong"], [MODEL, "-o", "x.weird"],
                [MODEL, "--emit=ptx=x.ptx", "--stats", "--time-passes"], [MODEL, "--dump-ir-after=all"],
                ["--help"], ["--version"], ["--list-ops"], ["--list-patterns", "--json"], [MODEL, "--emit=partition"],
                [MODEL, "--explain=all"], [MODEL, "-o", "-"], [MODEL, "--no-nvrtc", "-o", "x.cu", guilty]]
    runs = [(options.fusec, arguments) for arguments in commands]
    runs += [(options.fusec_run, arguments) for arguments in
             ([MODEL, "--random", "--verify"], [MODEL], ["--help"], [MODEL, "--random", "--verify=0,0", "--allow-tf32"])]
    for program, arguments in runs:
        usual = world.run(*arguments, program=program)
        failures.expect(usual.returncode in (0, 1, 2, 3), f"{arguments}: {usual.returncode} {usual.stderr!r}")
        for closed in (False, True):
            with open("/dev/full", "wb") as full:
                place = dict(preexec_fn=lambda: os.close(2), stderr=None) if closed else dict(stderr=full)
                done = world.run(*arguments, program=program, **place)
                what = f"{arguments}, standard error {'closed' if closed else 'full'}"
                failures.expect(done.returncode == usual.returncode, f"{what}: {done.returncode}, usually {usual.returncode}")
                place = dict(preexec_fn=lambda: os.close(1), stdout=None) if closed else dict(stdout=full)
                done = world.run(*arguments, program=program, **place)
                what = f"{arguments}, standard output {'closed' if closed else 'full'}"
                wanted = 3 if usual.stdout else usual.returncode
                failures.expect(done.returncode == wanted, f"{what}: {done.returncode}, expected {wanted}: {done.stderr[-300:]!r}")
                failures.expect(not usual.stdout or b"standard output cannot be written" in done.stderr, f"{what}: {done.stderr!r}")


def empty_values():
    world = World(options)
    for option in ("-o", "--emit", "--plan", "--target", "--tuning-db", "--cache-dir", "--patterns", "--explain", "--bisect", "--arch"):
        done = world.run(MODEL, option, "")
        failures.expect(done.returncode == 2 and b"error" in done.stderr, f"{option} '': {done.returncode} {done.stderr!r}")
    failures.expect(world.run("").returncode == 2, "an empty model name")
    for option in ("--inputs", "--outputs", "--profile", "--device", "--ptx", "--kernel"):
        done = world.run(MODEL, "--random", option, "", program=options.fusec_run)
        failures.expect(done.returncode == 2, f"fusec-run {option} '': {done.returncode} {done.stderr!r}")
    # "--option=" takes no further argument as its value.
    for program, option, follower in ((options.fusec, "--cache-dir=", "--no-nvrtc"), (options.fusec, "--emit=", "--json"),
                                      (options.fusec, "-o=", "--no-nvrtc"), (options.fusec_run, "--outputs=", "--device=emulator"),
                                      (options.fusec_run, "--timeout=", "--verify")):
        done = world.run(MODEL, option, follower, program=program)
        failures.expect(done.returncode == 2 and b"empty value" in done.stderr, f"{option} {follower}: {done.returncode} {done.stderr!r}")
        failures.expect(not os.path.exists(os.path.join(world.folder, follower)), f"{option} made {follower}")


def inputs_are_not_overwritten():
    world = World(options)
    model, plan = world.path("m.json"), world.path("p.json")
    write(model, read(MODEL))
    failures.expect(world.run(model, "--emit=plan=" + plan).returncode == 0, "a plan is written")
    for program, arguments, file in ((options.fusec, ["-o", model], model), (options.fusec_run, ["--random", "--outputs=" + model], model),
                                     (options.fusec, ["--plan=" + plan, "--emit=plan=" + plan], plan)):
        before = read(file)
        done = world.run(model, *arguments, program=program)
        failures.expect(done.returncode == 2 and b"overwritten" in done.stderr, f"{arguments}: {done.returncode} {done.stderr!r}")
        failures.expect(read(file) == before, f"{arguments} overwrote {file}")


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def interrupted():
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        world = World(options)
        out = world.path("x.ptx")
        write(out, b"old")
        process = subprocess.Popen([options.fusec, MODEL, "-o", out], env={**world.environment, "STAND_IN_MS": "60000"}, cwd=world.folder,
                                   stderr=subprocess.DEVNULL)
        failures.expect(until(lambda: world.logged("compiled")), "the compilation never began")
        process.send_signal(number)
        failures.expect(process.wait(20) == status, f"signal {number}: {process.returncode}, expected {status}")
        failures.expect(read(out) == b"old" and not [name for name in os.listdir(world.folder) if "partial" in name], "a partial file is left")
        children = [int(line.split()[-1]) for line in open(world.log, encoding="utf-8") if line.startswith("compiled")]
        failures.expect(until(lambda: not any(map(is_running, children))), f"signal {number}: NVRTC still runs")
    # A program that was started with a signal ignored keeps ignoring it.
    world = World(options)
    process = subprocess.Popen([options.fusec, MODEL, "--emit=ptx"], env={**world.environment, "STAND_IN_MS": "1000"}, cwd=world.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    until(lambda: world.logged("compiled"))
    process.send_signal(signal.SIGINT)
    failures.expect(process.wait(30) == 0, f"an ignored SIGINT: {process.returncode}")


def interrupted_while_a_program_runs():
    """Graphviz, a C++ compiler or the command of --bisect: nothing stays in the temporary folder."""
    out = ["--no-nvrtc", "--quiet"]
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for program, arguments in ((options.fusec, [MODEL, *out, "--emit=svg=x.svg"]),
                                   (options.fusec_run, [MODEL, "--random", "--device=emulator", "--host-part=recorded"]),
                                   (options.fusec, [MODEL, *out, "-o", "x.cu", "--bisect=dot; false"])):
            world = World(options)
            for name in ("tmp", "bin"):
                os.mkdir(world.path(name))
            for name in ("dot", "c++"):
                write(world.path("bin", name), b"#!/bin/sh\n: >" + world.path("begun").encode() + b"; exec sleep 20\n")
                os.chmod(world.path("bin", name), 0o755)
            environment = {**world.environment, "TMPDIR": world.path("tmp"), "PATH": world.path("bin") + ":" + os.environ["PATH"]}
            process = subprocess.Popen([program, *arguments], env=environment, cwd=world.folder, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            failures.expect(until(lambda: os.path.exists(world.path("begun"))), f"{arguments}: no program began")
            os.killpg(process.pid, number)
            failures.expect(process.wait(20) == status, f"{arguments}, signal {number}: {process.returncode}, expected {status}")
            failures.expect(not os.listdir(world.path("tmp")), f"{arguments}, signal {number} left {os.listdir(world.path('tmp'))}")


def limited():
    """Limits of the shell: on the size of files (SIGXFSZ), on memory, on processes."""
    world = World(options)
    for size in (0, 1, 1000, 5000):
        for what in ("x.cu", "x.ptx"):
            write(world.path(what), b"old")
            done = world.run(MODEL, "-o", world.path(what), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
            failures.expect(done.returncode == 3 and b"too large" in done.stderr.lower() and read(world.path(what)) == b"old",
                            f"{what} of at most {size} bytes: {done.returncode} {done.stderr!r}")
    failures.expect(not [name for name in os.listdir(world.folder) if "partial" in name], "a partial file is left")
    done = world.run(MODEL, "-o", "x.ptx", "--no-cache", more={"STAND_IN_ABORT": "1"})
    failures.expect(done.returncode == 3 and b"LLVM ERROR" in done.stderr, f"NVRTC aborts: {done.returncode} {done.stderr!r}")
    real = None  # where there is one
    for nvrtc, limits in ((options.stand_in, (16, 32, 48, 64, 100, 200, 400)), (real, (64, 130, 160, 250, 400))):
        for mebibytes in limits:
            limit = mebibytes << 20
            for arguments, program in (([MODEL, "-o", "x.ptx", "--no-cache"], options.fusec),
                                       ([MODEL, "--random", "--device=emulator", "--no-cache"], options.fusec_run)):
                done = world.run(*arguments, program=program, more={"FUSEC_NVRTC": nvrtc},
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                # 1: the stand-in's PTX has no kernels. 127: less than the loader needs to start the program.
                good = done.returncode in (0, 1, 3) and b"internal error" not in done.stderr or done.returncode == 127
                failures.expect(good, f"{arguments[1:]} in {mebibytes} MiB, {nvrtc}: {done.returncode} {done.stderr[-300:]!r}")


def main():
    sanitized = b"__sanitizer" in read(options.fusec) or b"__asan" in read(options.fusec)
    checks = [planted_libraries_are_not_loaded, installed_library_is_found, wrong_nvrtc_is_said, standard_streams, empty_values, inputs_are_not_overwritten,
              interrupted, interrupted_while_a_program_runs] + ([] if sanitized else [limited])
    for check in checks:
        begin, before = time.monotonic(), len(failures)
        check()
        print(f"{check.__name__}: {len(failures) - before} failures, {time.monotonic() - begin:.1f} s", flush=True)
    failures.finish()


main()
