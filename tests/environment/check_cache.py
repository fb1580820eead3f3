#!/usr/bin/env python3
"""check_cache.py FUSEC FUSEC_RUN STAND_IN FAIL_CALLS [--flips=N] [--kills=N] [--processes=N]

The compile cache as a user has it: damaged entries are compiled again, the folder is private and bounded, many processes
share it, and processes that are killed while they write leave nothing wrong."""
import json, os, random, signal, stat, subprocess, threading, time

import around_fusec
from around_fusec import MODEL, Failures, World, read, write

options = around_fusec.parse(__doc__, flips=20, kills=20, processes=50)
failures = Failures()


def emit(world, *arguments, **settings):
    return world.run(MODEL, "--emit=ptx", "--cache-dir=" + world.cache, *arguments, **settings)


def entries(world):
    return sorted(os.path.join(world.cache, name) for name in os.listdir(world.cache))


def of_result(path):
    """Whether the entry holds a whole compilation; the others hold what NVRTC made."""
    return b'"summary"' in read(path)


def entry_of(world, result):
    return next(path for path in entries(world) if of_result(path) == result)


def compiled_again(world, right, what, result=False):
    """A run with what is in the cache now: right, whether it was found there or not. True where it was compiled. Only
    without `result` the entry of the whole compilation goes first, so that NVRTC's is looked for."""
    if not result:
        os.remove(entry_of(world, True))
    before = world.logged("compiled")
    done = emit(world)
    failures.expect(done.returncode == 0 and done.stdout == right, f"{what}: {done.returncode} {done.stderr[-300:]!r}")
    return world.logged("compiled") > before


def is_kept_and_private():
    world = World(options)
    os.umask(0o002)
    right = emit(world).stdout
    failures.expect(b"// of " in right and world.logged("compiled") == 1, "the stand-in did not compile")
    for result in (False, True):
        failures.expect(not compiled_again(world, right, "again", result), "what is in the cache is compiled again")
    mode = lambda path: stat.S_IMODE(os.stat(path).st_mode)
    failures.expect(mode(world.cache) == 0o700, f"the folder has mode {mode(world.cache):o}")
    failures.expect([mode(path) for path in entries(world)] == [0o600] * 2, "an entry is not private")
    return world, right


def damage_is_compiled_again(world, right, result):
    entry = entry_of(world, result)
    good = read(entry)
    noise = random.Random(7)
    damaged = []
    for _ in range(options.flips):
        bit = noise.randrange(8 * len(good))
        damaged.append((f"bit {bit}", good[:bit // 8] + bytes([good[bit // 8] ^ 1 << bit % 8]) + good[bit // 8 + 1:]))
    damaged += [("empty", b""), ("cut", good[:-1]), ("longer", good + b"\0"), ("of length 4 GiB", good[:49] + b"\0\0\0\0\1\0\0\0" + good[57:]),
                ("of length 2**64-1", good[:49] + b"\xff" * 8 + good[57:]), ("other text", b"fusec" * 1000)]
    for what, content in damaged:
        write(entry, content)
        # NVRTC's entry is compiled again; the whole compilation's is made again from NVRTC's.
        failures.expect(compiled_again(world, right, what, result) != result, f"{what}: a damaged entry is believed")
        failures.expect(read(entry) == good, f"{what}: the entry is not mended")
    os.truncate(entry, 1 << 33)
    failures.expect(compiled_again(world, right, "8 GiB", result) != result, "an entry of 8 GiB is believed")


def others_are_not_believed(world, right):
    entry = entry_of(world, False)
    os.chmod(entry, 0o666)
    failures.expect(compiled_again(world, right, "mode 0666"), "an entry that others can write is believed")
    if os.geteuid() == 0:
        os.chown(entry, 12345, 12345)
        failures.expect(compiled_again(world, right, "another's"), "another user's entry is believed")
    os.chmod(world.cache, 0o1777)
    done = emit(world)
    failures.expect(done.returncode == 3 and b"mode 1777" in done.stderr, f"a shared folder: {done.returncode} {done.stderr!r}")
    os.chmod(world.cache, 0o700)
    home = world.path("home", ".cache", "fusec")
    os.makedirs(home)
    os.chmod(home, 0o777)
    done = world.run(MODEL, "--emit=ptx")
    failures.expect(done.returncode == 0 and done.stdout == right and b"nothing is kept" in done.stderr,
                    f"a shared default folder: {done.returncode} {done.stderr!r}")
    failures.expect(os.listdir(home) == [], "something is kept in a shared folder")


def results_follow_what_they_depend_on():
    """A whole compilation is found again until the model, an option, a file that is read or NVRTC changes."""
    world = World(options)
    model, patterns, nvrtc = (world.path(name) for name in ("model.json", "own.patterns", "nvrtc.so"))
    write(model, read(MODEL))
    write(patterns, b"# none\n")
    write(nvrtc, read(options.stand_in))
    os.chmod(nvrtc, 0o700)
    arguments = [model, "--patterns=" + patterns, "--cache-dir=" + world.cache, "-o", world.path("out.ptx"), "--json"]

    def run(*added):
        done = world.run(*arguments, *added, more={"FUSEC_NVRTC": nvrtc})
        failures.expect(done.returncode == 0, f"{added}: {done.stderr[-300:]!r}")
        return json.loads(done.stderr)["from_cache"]

    def change(path, content):
        return lambda: write(path, content) or ()

    for what, alter in [("the first run", lambda: ()), ("another model", change(model, read(MODEL) + b" ")),
                        ("other patterns", change(patterns, b"# still none\n")), ("an option", lambda: ("--precise-math",)),
                        ("another NVRTC", lambda: os.utime(nvrtc, (1, 1)) or ())]:
        added = alter()
        failures.expect([run(*added), run(*added)] == [False, True], f"{what}: kept before, or not kept then")
    failures.expect(not run("--explain=all") and not run("--time-passes"), "what is not kept is taken from the cache")


def stats_tell_hits():
    world = World(options)
    for found in (0, 1):
        done = emit(world, "--stats", "--emit=ptx=" + os.path.join(world.folder, "out.ptx"))
        text = f"compile cache: {found} of 1 NVRTC sources were in it"
        failures.expect(text.encode() in done.stderr, f"--stats: {done.stderr[-400:]!r}, expected {text!r}")


def size_is_bounded():
    world = World(options)
    write(os.path.join(world.cache, "notes.txt"), b"x" * 100000)
    os.chmod(world.cache, 0o700)
    targets = [f"--arch=sm_{arch}" for arch in ("80", "86", "89", "90a", "100a", "120a")]
    size = lambda: sum(os.path.getsize(path) for path in entries(world) if not path.endswith("notes.txt"))
    for arguments, more in ((["--cache-size=60K"], {}), ([], {"FUSEC_CACHE_SIZE": "60K"})):
        for target in targets:
            done = emit(world, target, *arguments, more=more)
            failures.expect(done.returncode == 0, f"{target}: {done.stderr[-300:]!r}")
            failures.expect(size() <= 60 << 10, f"{size()} bytes are kept, at most {60 << 10} are allowed")
        failures.expect(len(entries(world)) > 2, "nothing is kept")
        failures.expect(os.path.join(world.cache, "notes.txt") in entries(world), "a user's file is removed")
    for wrong in ("many", "-1", ""):
        failures.expect(emit(world, "--cache-size=" + wrong).returncode == 2, f"--cache-size={wrong} is accepted")


def nothing_in_the_working_directory():
    for more in ({"HOME": "relative"}, {"HOME": None, "XDG_CACHE_HOME": "relative"}, {"HOME": ""}, {"HOME": "."}):
        world = World(options)
        done = world.run(MODEL, "--emit=ptx", more=more)
        made = set(os.listdir(world.folder)) - {"log"}
        failures.expect(done.returncode == 0 and not made, f"{more}: {done.returncode}, made {made}")


def processes_share_it():
    world = World(options)
    targets = ["--arch=sm_80", "--arch=sm_90a", "--arch=sm_100a"]
    right = {target: world.run(MODEL, "--emit=ptx", "--no-cache", target).stdout for target in targets}
    results = []

    def one(target):
        results.append((target, emit(world, target, "--jobs=1", timeout=280)))

    threads = [threading.Thread(target=one, args=(targets[i % 3],)) for i in range(options.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = sum(done.returncode != 0 or done.stdout != right[target] for target, done in results)
    failures.expect(wrong == 0 and len(results) == options.processes, f"{wrong} of {len(results)} processes are wrong")
    kinds = min(len(targets), options.processes)
    made = 2 * kinds  # NVRTC's, and that of the whole compilation
    failures.expect(len(entries(world)) == made, f"{len(entries(world))} files are in the cache, {made} were made")
    before = world.logged("compiled")
    for target in targets[:kinds]:
        failures.expect(emit(world, target).stdout == right[target], "the cache that was shared is wrong")
    failures.expect(world.logged("compiled") == before, "the cache that was shared is not used")


def kills_leave_nothing_wrong():
    """kill -9 in the middle of every call that writes, names or opens a file, and at random times."""
    world = World(options)
    out = world.path("out.ptx")
    arguments = [MODEL, "-o", out, "--cache-dir=" + world.cache]
    world.run(*arguments)
    right = read(out)
    for path in entries(world):
        os.remove(path)

    def check(what, killed):
        left = read(out)
        failures.expect(left in (b"old", right), f"{what}: the output is neither old nor new: {left and left[:60]!r}")
        for name in os.listdir(world.folder):
            if name.startswith("out.ptx."):  # between two calls the whole result stands beside the old one
                whole = read(world.path(name)) == right
                failures.expect(whole or "unnamed" in what, f"{what}: {name} is left, and partial")
                os.remove(world.path(name))
        done = emit(world)
        failures.expect(done.returncode == 0 and done.stdout == right, f"{what}: the next run is wrong")
        for path in entries(world):
            os.remove(path)
        return killed

    kills = 0
    if around_fusec.can_preload(options):
        for unnamed in (False, True):
            count = world.calls(*arguments, unnamed=unnamed)
            calls = range(1, count + 1)
            if 2 * count > options.kills:
                calls = random.Random(11).sample(calls, max(1, options.kills // 2))
            for call in calls:
                write(out, b"old")
                done = world.run(*arguments, more=world.failing(call, "kill", unnamed))
                kills += check(f"kill at call {call}{', unnamed' if unnamed else ''}", done.returncode == -signal.SIGKILL)
    else:
        print("skipped: kills at calls (a sanitizer wants to be loaded first)")
    start = time.monotonic()
    world.run(*arguments)
    seconds = time.monotonic() - start
    noise = random.Random(13)
    for _ in range(max(2, options.kills - kills)):
        write(out, b"old")
        for path in entries(world):
            os.remove(path)
        process = subprocess.Popen([options.fusec, *arguments], env=world.environment, stderr=subprocess.DEVNULL)
        time.sleep(seconds * noise.uniform(0.3, 1.1))
        process.kill()
        check("kill at random", process.wait() == -signal.SIGKILL)
    print(f"{kills} kills at calls")


def main():
    world, right = is_kept_and_private()
    for result in (False, True):
        damage_is_compiled_again(world, right, result)
    others_are_not_believed(world, right)
    results_follow_what_they_depend_on()
    stats_tell_hits()
    size_is_bounded()
    nothing_in_the_working_directory()
    processes_share_it()
    kills_leave_nothing_wrong()
    failures.finish()


main()
