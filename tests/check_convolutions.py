#!/usr/bin/env python3
"""check_convolutions.py FUSEC FUSEC_RUN [--sample=N] [--seed=N] [--only=TEXT]

Convolutions of one to three dimensions, grouped, dilated, strided, padded, transposed, channels first or last, with
epilogues, at random sizes that are no multiple of any tile, on the emulator for sm_80 and sm_90a. Checks results and
findings, and that a staged pipeline without local memory is used wherever the guards of an operand's loads depend only
on the position in the window. Then warpgroup convolutions on sm_90a, on a device of few multiprocessors: requested
bytes, fewer instructions than by warps, no bank conflict, no spill, NVRTC within 400 ms of CPU, and the launches of the
compiled host part.

--sample: N of the first cases and N / 4 of the second, chosen by the seed."""
import argparse, json, math, os, random, re, tempfile

from convolution_models import GROUPS, LIVE_TAPS, ON_TENSOR_CORES, PIPELINED, PLANES, WINDOWS, cases
from emulated_run import expect, expect_clean, finish, run
from nvrtc_time import NvrtcTime
from warpgroup_convolution_models import by_warpgroups


def steps_of_tile(name, model, depth):
    """With TMA boxes, each tap has whole tiles of channels."""
    in_planes = model["nodes"][0]["op"].startswith("conv") or name.startswith(("boxes", "two images"))
    steps = 0
    for weights in (c["shape"] for c in model["constants"] if len(c["shape"]) > 2):
        channels, taps = (weights[1], math.prod(weights[2:])) if in_planes else (math.prod(weights[1:]), 1)
        steps += -(-channels // depth) * taps
    return steps


def sectors_of_pixels(model):
    """Boxes of planes begin between sectors, so each row takes one sector more than its bytes. Returns the ratio.
    """
    width = model["inputs"][0]["shape"][-1]
    if not model["nodes"][0]["op"].startswith("conv") or math.prod(model["constants"][0]["shape"][2:]) == 1:
        return 1
    return 1 + 16 / next(pixels for pixels in (64, 32, 16, 8) if width % pixels == 0)


def check_by_warpgroups(options, time, folder, name, model, multiprocessors, schedules):
    path = lambda file: os.path.join(folder, file)
    json.dump({"fusec_target": 1, "arch": "sm_90a", "multiprocessors": multiprocessors}, open(path("t.json"), "w"))
    json.dump(model, open(path("m.json"), "w"))
    target = ["--arch=sm_90a", f"--target={path('t.json')}"]
    if not run([options.fusec_run, path("m.json"), *target, "--random", "--verify", "--device=emulator",
                "--host-part=recorded", "--json", f"--profile={path('p.json')}"], f"{name}: {json.dumps(model)}"):
        return
    took, limit = time.slowest(path("m.json"), "sm_90a", target[1:])
    expect(took <= limit, f"{name}: NVRTC takes {took:.0f} ms, at most {limit:.0f}")
    run([options.fusec, path("m.json"), *target, "--no-nvrtc", f"--emit=cu={path('m.cu')}",
         f"--emit=manifest={path('m.manifest')}"], name)
    # The kernels of M_prepare, which lay out weights, follow the launched kernels.
    made = [k["schedule"] for k in json.load(open(path("m.manifest")))["kernels"]][:len(schedules)]
    expect(made == schedules, f"{name}: {made}, expected {schedules}")
    kernels = json.load(open(path("p.json")))["kernels"]
    expect_clean(kernels, name)
    source = open(path("m.cu")).read()
    tile = re.search(r"makes 128x(\d+) at a time.*?; (\d+) of k are a tile", source)
    if made != schedules or not tile:
        return
    columns, depth, cluster = int(tile[1]), int(tile[2]), 2 if "__cluster_dims__(2" in source else 1
    products, requested = kernels[0]["tensor_multiply_adds"], kernels[0]["requested_bytes"]
    steps, rest = divmod(products, 128 * columns * depth)
    of_tile = steps_of_tile(name, model, depth)
    expect(rest == 0 and steps % of_tile == 0, f"{name}: {products} multiply-adds are no whole tiles")
    # In each step a block copies the rows inside the image, and its part of the weights. The epilogue reads and writes
    # up to 4 bytes three times, or each split-K part writes its partial sums.
    shares = re.search(r"of what (\d+) blocks have summed", source)
    pixels, results = (128, columns // cluster) if "first to last" in name else (columns // cluster, 128)
    needed = steps * (results + pixels * sectors_of_pixels(model)) * 128 + max(12, 4 * int(shares[1]) if shares else 0) * steps // of_tile * \
        128 * columns
    expect(requested <= needed, f"{name}: {requested} bytes of global memory, {needed} needed")
    executed = sum(kernels[0]["instructions"].values())
    expect(executed < products / 250 + 12000 * steps / of_tile,
           f"{name}: {executed} instructions for {products} multiply-adds")


def check(options, folder, name, entry, schedules, arch):
    what = f"{name} on {arch}"
    path = lambda file: os.path.join(folder, file)
    with open(path("m.json"), "w", encoding="utf-8") as f:
        json.dump(entry, f)
    if not run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--verify", "--device=emulator",
                "--json", f"--profile={path('p.json')}"], f"{what}: {json.dumps(entry)}"):
        return
    run([options.fusec, path("m.json"), f"--arch={arch}", "--no-nvrtc", f"--emit=manifest={path('m.manifest')}"], what)
    if "laid out" in schedules:
        return check_layouts(options, path, what, arch)
    if "groups in tf32" in schedules:
        return check_tf32(options, path, what, arch)
    with open(path("p.json"), encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    with open(path("m.manifest"), encoding="utf-8") as f:
        made = [k["schedule"] for k in json.load(f)["kernels"]]
    expect(all(k["findings"] == 0 for k in kernels), f"{what}: findings on the emulator")
    spills = [m for k, m in zip(kernels, made) if k["resources"]["spill_bytes"] != 0 and m in PIPELINED + WINDOWS]
    expect(not spills, f"{what}: spills in {spills}")
    if schedules and isinstance(schedules[0], int):
        pairs = sum(k["tensor_multiply_adds"] for k in kernels)
        expect(pairs <= 1.05 * schedules[0], f"{what}: {pairs} multiply-adds, {schedules[0]} are needed")
        schedules = ()
    if schedules and schedules[0] == LIVE_TAPS:
        return check_live_taps(kernels, what, schedules[1])
    if schedules and schedules[0] == PLANES:
        return check_planes(kernels, made, what, *schedules)
    if schedules and schedules[0] == GROUPS:
        return check_groups(kernels, made, what, entry, *schedules)
    if schedules == ("any on tensor cores",):
        expect(any(k["tensor_multiply_adds"] > 0 for k in kernels), f"{what}: {made}: {json.dumps(entry)}")
        schedules = ()
    if schedules == ("groups and points",):
        expect({GROUPS, "side_by_side"} & set(made) and set(PIPELINED) & set(made), f"{what}: {made}")
        schedules = ()
    if schedules == ON_TENSOR_CORES:
        expect(set(made) <= {*ON_TENSOR_CORES, GROUPS, "staged_copy"}, f"{what}: {made}")
        few_bytes = name.startswith(("bytes False", "dequantized"))
        often = [k["name"] for k in kernels if k["requested_bytes"] > 7 * k["least_bytes"] and not few_bytes]
        expect(not often, f"{what}: {often} read more than their tiles need")
    most_conflicts = lambda k, m: 0.1 * sum(k["instructions"].values()) if m == GROUPS else 0
    conflicts = [k["name"] for k, m in zip(kernels, made)
                 if k["bank_conflicts"] > most_conflicts(k, m) and entry["inputs"][0]["dtype"] != "float32"]
    expect(not conflicts, f"{what}: bank conflicts in {conflicts}")
    check_windows([k for k, m in zip(kernels, made) if m in WINDOWS], what)
    if "convolution" in made:
        check_tf32(options, path, what, arch)
    # Small float32 images need no pipeline.
    if schedules and not (entry["inputs"][0]["dtype"] == "float32" and "contraction" in made):
        expect(any(s in (*schedules, GROUPS) or s.startswith("few_rows") for s in made), f"{what}: {made}: {json.dumps(entry)}")


def check_tf32(options, path, what, arch):
    """With --allow-tf32, float32 uses tensor cores in one pass."""
    what = f"{what} in tf32"
    if not run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--verify=5e-3,3e-2", "--allow-tf32",
                "--device=emulator", "--json", f"--profile={path('p.json')}"], what):
        return
    with open(path("p.json"), encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    run([options.fusec, path("m.json"), "-o", path("tf32.cu"), f"--arch={arch}", "--no-nvrtc", "--allow-tf32",
         f"--emit=manifest={path('tf32.manifest')}"], what)
    with open(path("tf32.manifest"), encoding="utf-8") as f:
        in_groups = {k["name"] for k in json.load(f)["kernels"] if k["schedule"] == GROUPS}
    expect(any(k["tensor_multiply_adds"] > 0 for k in kernels), f"{what}: not on tensor cores")
    for k in kernels:
        expect(k["findings"] == 0, f"{what}: findings on the emulator")
        if k["tensor_multiply_adds"] > 0:
            most = 0.1 * sum(k["instructions"].values()) if k["name"] in in_groups else 0
            expect(k["bank_conflicts"] <= most, f"{what}: {k['bank_conflicts']} bank conflicts in {k['name']}")
            expect(k["resources"]["spill_bytes"] == 0, f"{what}: spills")


def check_live_taps(kernels, what, most):
    """Instructions of threads per multiply-add of a tap that meets an element, and no spills."""
    executed = 32 * sum(n for k in kernels for i, n in k["instructions"].items() if i != "move")
    expect(executed <= most, f"{what}: {executed} instructions of threads, {most} are allowed")
    expect(all(k["resources"]["spill_bytes"] == 0 for k in kernels), f"{what}: spills")


def check_planes(kernels, made, what, schedule, most):
    """A block reads each position once, for all results of a group's channels."""
    expect(made == [schedule], f"{what}: {made}")
    kernel = kernels[0]
    executed = sum(n for i, n in kernel["instructions"].items() if i != "move") * 32
    expect(executed <= most, f"{what}: {executed} instructions of threads, {most} are allowed")
    expect(kernel["requested_bytes"] < 7 * kernel["least_bytes"], f"{what}: {kernel['requested_bytes']} bytes are read, "
           f"{kernel['least_bytes']} are the least")
    expect(kernel["bank_conflicts"] <= 0.02 * executed / 32, f"{what}: {kernel['bank_conflicts']} bank conflicts")
    expect(kernel["resources"]["spill_bytes"] == 0, f"{what}: spills")


def check_groups(kernels, made, what, entry, schedule, most, bytes_asked):
    """Grouped convolutions on tensor cores. Each block reads each position once. Groups of whole 16-byte vectors are
    read by ldmatrix."""
    expect(made[0] == schedule, f"{what}: {made}")
    kernel = kernels[0]
    executed = sum(n for i, n in kernel["instructions"].items() if i != "move") * 32
    expect(executed <= most, f"{what}: {executed} instructions of threads, {most} are allowed")
    expect(kernel["tensor_multiply_adds"] > 0, f"{what}: not on tensor cores")
    expect(kernel["requested_bytes"] <= bytes_asked * kernel["least_bytes"], f"{what}: {kernel['requested_bytes']} bytes "
           f"are read, {kernel['least_bytes']} are the least")
    weights = entry["constants"][0]
    channels = weights["shape"][-1 if entry["nodes"][0]["op"] == "permute" else 1]
    whole = channels * (1 if weights["dtype"] == "int8" else 2) % 16 == 0
    expect(kernel["bank_conflicts"] <= (0.03 if whole else 0.1) * executed / 32,
           f"{what}: {kernel['bank_conflicts']} bank conflicts")
    expect(kernel["resources"]["spill_bytes"] == 0, f"{what}: spills")


def check_windows(kernels, what):
    """Elements of a window are read once for several results, and weights once by each block."""
    for k in kernels:
        expect(k["bank_conflicts"] == 0, f"{what}: bank conflicts in {k['name']}")
        expect(k["requested_bytes"] < 10 * k["least_bytes"], f"{what}: {k['name']} reads {k['requested_bytes']} bytes, "
               f"{k['least_bytes']} are the least")


def check_layouts(options, path, what, arch):
    """Layouts add no launch and save instructions. Instructions of M_prepare do not count."""
    figures = []
    for off in ([], ["--disable-pass=choose-layouts"]):
        if not run([options.fusec_run, path("m.json"), f"--arch={arch}", "--random", "--device=emulator", "--json",
                    f"--profile={path('p.json')}", *off], what):
            return
        with open(path("p.json"), encoding="utf-8") as f:
            kernels = json.load(f)["kernels"]
        expect(all(k["findings"] == 0 for k in kernels), f"{what}: findings on the emulator")
        figures.append((len(kernels), sum(n for k in kernels for i, n in k["instructions"].items() if i != "move")))
    (launches, instructions), (launches_before, instructions_before) = figures
    expect(launches == launches_before and instructions < 0.85 * instructions_before,
           f"{what}: {launches} launches and {instructions} instructions, without layouts {figures[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusec")
    parser.add_argument("fusec_run")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    picked = [c for c in cases() if options.only in c[0]]
    if options.sample:
        picked = random.Random(options.seed).sample(picked, min(options.sample, len(picked)))
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, entry, schedules) in enumerate(picked):
            for arch in ("sm_80", "sm_90a") if not options.sample else (("sm_80", "sm_90a")[i % 2],):
                check(options, folder, name, entry, schedules, arch)
        wide = [c for c in by_warpgroups() if options.only in c[0]]
        if options.sample:
            wide = random.Random(options.seed).sample(wide, min(max(1, options.sample // 4), len(wide)))
        for case in wide:
            check_by_warpgroups(options, NvrtcTime(options.fusec, folder), folder, *case)
    finish(f"{len(picked) + len(wide)} models, ")


main()
