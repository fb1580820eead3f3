"""Convolutions of one to three dimensions, grouped, dilated, strided, padded, transposed, channels first or last, with
epilogues, at random sizes that are no multiple of any tile. A staged pipeline without local memory is used wherever the
guards of an operand's loads depend only on the position in the window. Then warpgroup convolutions on sm_90a, on a
device of few multiprocessors: requested bytes, fewer instructions than by warps, NVRTC within 400 ms of CPU, and the
launches of the compiled host part."""
import math
import re

from kernels.case import RESULTS, Case
from kernels.convolution_models import GROUPS, LIVE_TAPS, ON_TENSOR_CORES, PIPELINED, PLANES, WINDOWS, cases as models
from kernels.figures import executed
from kernels.run import Run, faults_of
from kernels.warpgroup_convolution_models import by_warpgroups


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


def tile_of(run):
    """Columns and K of a tile, the blocks of a cluster, the parts of split-K."""
    source = run.text("cu")
    tile = re.search(r"makes 128x(\d+) at a time.*?; (\d+) of k are a tile", source)
    shares = re.search(r"of what (\d+) blocks have summed", source)
    cluster = 2 if "__cluster_dims__(2" in source else 1
    return (*map(int, tile.groups()), cluster, int(shares[1]) if shares else 0) if tile else None


def tile_faults(run):
    name, tile = run.case.name, tile_of(run)
    if not tile:
        if "convolution_wgmma" in run["schedules"][:1]:
            yield "no tile in the comment of the kernel"
        return
    columns, depth, cluster, shares = tile
    products, requested = run.kernels[0]["tensor_multiply_adds"], run.kernels[0]["requested_bytes"]
    steps, rest = divmod(products, 128 * columns * depth)
    of_tile = steps_of_tile(name, run.case.model, depth)
    if rest != 0 or steps % of_tile != 0:
        yield f"{products} multiply-adds are no whole tiles"
    # In each step a block copies the rows inside the image, and its part of the weights. The epilogue reads and writes
    # up to 4 bytes three times, or each split-K part writes its partial sums.
    pixels, results = (128, columns // cluster) if "first to last" in name else (columns // cluster, 128)
    needed = steps * (results + pixels * sectors_of_pixels(run.case.model)) * 128
    needed += max(12, 4 * shares) * steps // of_tile * 128 * columns
    if requested > needed:
        yield f"{requested} bytes of global memory, {needed} needed"
    if executed(run.kernels[0]) >= products / 250 + 12000 * steps / of_tile:
        yield f"{executed(run.kernels[0])} instructions for {products} multiply-adds"


def of_warpgroups(name, graph, multiprocessors, schedules):
    def first_schedules(run):
        """The kernels of M_prepare, which lay out weights, follow the launched kernels."""
        return run["schedules"][:len(schedules)]

    return Case(name, graph, targets=("sm_90a",), chip={"multiprocessors": multiprocessors}, inputs="--random",
                run_options=("--host-part=recorded",), most={"NVRTC / limit": 1}, exactly={first_schedules: schedules},
                also=tile_faults, group="warpgroups")


def tf32_twin_faults(run):
    """With --allow-tf32, float32 uses tensor cores in one pass."""
    twin = Case("", run.case.model, options=("--allow-tf32",), verify="--verify=5e-3,3e-2", most=RESULTS, least={"multiply-adds": 1},
                inputs="--random", also=tf32_faults)
    yield from (f"in tf32: {fault}" for fault in faults_of(Run(run.programs, twin, run.target, run.file("tf32")), {}))


def tf32_faults(run):
    in_groups = {k["name"] for k in run.json("manifest")["kernels"] if k["schedule"] == GROUPS}
    for k in run.kernels:
        most = 0.1 * executed(k) if k["name"] in in_groups else 0
        if k["tensor_multiply_adds"] > 0 and (k["bank_conflicts"] > most or k["resources"]["spill_bytes"]):
            yield f"{k['bank_conflicts']} bank conflicts or spills in {k['name']}"


def channels_of_group(entry):
    weights = entry["constants"][0]
    return weights["shape"][-1 if entry["nodes"][0]["op"] == "permute" else 1] * (1 if weights["dtype"] == "int8" else 2)


def spill_faults(run):
    for k, schedule in zip(run.kernels, run["schedules"]):
        if k["resources"]["spill_bytes"] and schedule in PIPELINED + WINDOWS:
            yield f"spills in {schedule}"


def schedule_faults(run, wanted):
    """What the schedules that were taken promise, and whether they are among those that are wanted."""
    made, entry = run["schedules"], run.case.model
    wide = entry["inputs"][0]["dtype"] == "float32"
    yield from spill_faults(run)
    for k, schedule in zip(run.kernels, made):
        if k["bank_conflicts"] > (0.1 * executed(k) if schedule == GROUPS else 0) and not wide:
            yield f"bank conflicts in {k['name']}"
        # Elements of a window are read once for several results, and weights once by each block.
        if schedule in WINDOWS and (k["bank_conflicts"] or k["requested_bytes"] >= 10 * k["least_bytes"]):
            yield (f"{k['name']} reads {k['requested_bytes']} bytes with {k['bank_conflicts']} bank conflicts, "
                   f"{k['least_bytes']} are the least")
        few_bytes = run.case.name.startswith(("bytes False", "dequantized"))
        if wanted == ON_TENSOR_CORES and k["requested_bytes"] > 7 * k["least_bytes"] and not few_bytes:
            yield f"{k['name']} reads more than its tiles need"
    if wanted == ON_TENSOR_CORES and not set(made) <= {*ON_TENSOR_CORES, GROUPS, "staged_copy"}:
        yield f"{made}, not on tensor cores"
    if wanted == ("groups and points",):
        if not {GROUPS, "side_by_side"} & set(made) or not set(PIPELINED) & set(made):
            yield f"{made}, not groups and points"
    elif wanted and not (wide and "contraction" in made):  # small float32 images need no pipeline
        if not any(s in (*wanted, GROUPS) or s.startswith("skinny_gemm") for s in made):
            yield f"{made}, not one of {wanted}"
    if "convolution" in made:
        yield from tf32_twin_faults(run)


def of(name, entry, wanted):
    """A row of convolution_models.py: the schedules of which one is wanted, or another demand and its figures."""
    base = dict(inputs="--random", group=name.split(" ")[0])
    demand, *figures = wanted or ("",)
    if demand == "laid out":
        # Layouts add no launch and save instructions. Instructions of M_prepare do not count.
        before = Case("", entry, options=("--disable-pass=choose-layouts",), verify="", inputs="--random")
        return Case(name, entry, **base, beside=before, exactly={"launches": lambda run: run.beside["launches"]},
                    most=RESULTS | {"lane instructions": lambda run: 0.85 * run.beside["lane instructions"]})
    if demand == "groups in tf32":
        return Case(name, entry, **base, most=RESULTS, also=tf32_twin_faults)
    if demand == LIVE_TAPS:  # instructions of threads per multiply-add of a tap that meets an element
        return Case(name, entry, **base, most=RESULTS | {"lane instructions": figures[0], "spilled bytes": 0})
    if demand == PLANES:  # a block reads each position once, for all results of a group's channels
        return Case(name, entry, **base, exactly={"schedules": [PLANES]},
                    most={"lane instructions": figures[0], "requested / least of a kernel": 7, "spilled bytes": 0,
                          "local bytes": None,
                          "conflicts": lambda run: 0.02 * run["lane instructions"] / 32})
    if demand == GROUPS:
        # Grouped convolutions on tensor cores. Each block reads each position once. Groups of whole 16-byte vectors are
        # read by ldmatrix.
        first = lambda of: lambda run: of(run.kernels[0])
        lanes = first(lambda k: 32 * (executed(k) - k["instructions"]["move"]))
        whole = channels_of_group(entry) % 16 == 0
        return Case(name, entry, **base, least={first(lambda k: k["tensor_multiply_adds"]): 1}, also=spill_faults,
                    exactly={first_schedule: GROUPS},
                    most=RESULTS | {lanes: figures[0], first(lambda k: k["requested_bytes"] / k["least_bytes"]): figures[1],
                                first(lambda k: k["bank_conflicts"]): lambda run: (0.03 if whole else 0.1) * lanes(run) / 32,
                                first(lambda k: k["resources"]["spill_bytes"]): 0})
    more = {}
    if isinstance(demand, int):
        more, wanted = {"most": RESULTS | {"multiply-adds": 1.05 * demand}}, ()
    elif demand == "any on tensor cores":
        more, wanted = {"least": {"multiply-adds": 1}}, ()
    return Case(name, entry, **base, **({"most": RESULTS} | more), also=lambda run: schedule_faults(run, wanted))


def first_schedule(run):
    return run["schedules"][0]


def cases():
    return [of(*row) for row in models()] + [of_warpgroups(*row) for row in by_warpgroups()]
