#!/usr/bin/env python3
"""check_full_disk.py FUSEC FUSEC_RUN STAND_IN FAIL_CALLS [--every=N]

The disk is full from every (or every N-th) call on that opens, writes, closes, names or links a file, and writes are cut
short: a run ends with a clear error or with the right result, nothing is half-written, and the next run is right."""
import os, sys

import around_fusec
from around_fusec import MODEL, Failures, World, read, write

options = around_fusec.parse(__doc__, every=1)
failures = Failures()


def commands(world):
    out = world.path("out")
    cache = "--cache-dir=" + world.cache
    yield "source", options.fusec, [MODEL, "-o", out + ".cu", cache], [out + ".cu"]
    yield "PTX and plan", options.fusec, [MODEL, "-o", out + ".ptx", "--emit=plan=" + out + ".plan", cache], [out + ".ptx", out + ".plan"]
    yield "tensors", options.fusec_run, [MODEL, "--random", "--outputs=" + out + ".safetensors"], [out + ".safetensors"]


def empty_cache(world):
    for name in os.listdir(world.cache) if os.path.exists(world.cache) else []:
        os.remove(os.path.join(world.cache, name))


def check(world, what, program, arguments, files, right, call, how, unnamed):
    what = f"{what}, {how} at call {call}{', no unnamed files' if unnamed else ''}"
    empty_cache(world)
    for path in files:
        write(path, b"old")
    done = world.run(*arguments, program=program, more=world.failing(call, how, unnamed))
    said = done.stderr.decode(errors="replace")
    failures.expect(done.returncode in ((0, 3) if how == "full" else (0,)), f"{what}: status {done.returncode}: {said[-300:]}")
    failures.expect(done.returncode == 0 or "No space left" in said or "cannot" in said, f"{what}: no clear error: {said[-300:]}")
    for path in files:
        good = [right[path]] if done.returncode == 0 else [right[path], b"old"]
        failures.expect(read(path) in good, f"{what}: {path} is neither the old file nor the new one")
    left = [name for name in os.listdir(world.folder) if ".partial" in name]
    # A named file cannot be removed where removing fails, which a full disk does not do.
    failures.expect(not left, f"{what}: left {left}")
    again = world.run(*arguments, program=program)
    failures.expect(again.returncode == 0 and all(read(path) == right[path] for path in files), f"{what}: the next run is wrong")


def main():
    if not around_fusec.can_preload(options):
        print("skipped: a sanitizer wants to be loaded first")
        sys.exit(77)
    world = World(options)
    runs = 0
    for what, program, arguments, files in commands(world):
        for unnamed in (False, True):
            empty_cache(world)
            count = world.calls(*arguments, program=program, unnamed=unnamed)
            right = {path: read(path) for path in files}
            failures.expect(count >= 3 and None not in right.values(), f"{what}: {count} calls")
            for how in ("full", "short"):
                for call in range(1 + runs % options.every, count + 1, options.every):
                    check(world, what, program, arguments, files, right, call, how, unnamed)
                    runs += 1
    print(f"{runs} runs")
    failures.finish()


main()
