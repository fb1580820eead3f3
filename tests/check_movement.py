#!/usr/bin/env python3
"""check_movement.py FUSEC_RUN FUSEC [--sample=N] [--seed=N] [--update]: transposes, permutes, gathers, pads and concats,
with what is elementwise around them, on the emulator: verified, without bank conflicts, local memory and findings, in few
sectors more than a copy of the same bytes takes; accesses of global memory 16 bytes wide where extents and alignment
allow it. movement_figures.json has what each case was measured to take, which it may not go beyond; --update writes that
anew. Random chains of such ops are held against the reference alone. Status 77: no NVRTC."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = ("sm_80", "sm_90a")
BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "int8": 1, "uint8": 1, "bool": 1}
ALIGNED = 1.1  # sectors, over those of the bytes
# Where lines begin between sectors, elements are taken one by one: a warp's touch a sector more than they fill.
FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "movement_figures.json")
MORE_SECTORS, MORE_INSTRUCTIONS = 1.02, 1.05  # than measured; compilers differ
ODD = {"float64": 1.2, "int64": 1.2, "float32": 1.35, "int32": 1.35, "float16": 1.65, "bfloat16": 1.65, "int8": 2.4}


class Case:
    """inputs: name -> (dtype, shape); nodes; what is allowed; loads and stores that are wide"""

    def __init__(self, name, inputs, nodes, outputs=("y",), sectors=ALIGNED, wide=True, conflicts=0, moved=0,
                 symbols=None, kernels=1):
        self.name, self.inputs, self.nodes, self.outputs = name, inputs, nodes, list(outputs)
        self.symbols, self.kernels = symbols or {}, kernels
        self.sectors, self.wide, self.conflicts, self.moved = sectors, wide, conflicts, moved
        self.counted = sectors < 1e9  # else results alone count


def node(name, op, *inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs)} | ({"attrs": attrs} if attrs else {})


def permute(dtype, shape, dims, **how):
    return Case(f"permute{dims} {dtype}{shape}", {"x": (dtype, shape)}, [node("y", "permute", "x", dims=dims)], **how)


def transposes():
    cases = []
    for dtype in ("float32", "bfloat16", "int8", "float64", "int64", "bool"):
        cases += [permute(dtype, [512, 768], [1, 0]), permute(dtype, [3, 256, 384], [0, 2, 1]),
                  permute(dtype, [2, 64, 28, 32], [0, 2, 3, 1]), permute(dtype, [2, 28, 32, 64], [0, 3, 1, 2]),
                  permute(dtype, [2, 48, 16, 64], [0, 2, 1, 3])]
    for dtype in ("float32", "bfloat16", "int8", "int64"):
        # No multiples of the tile; lines that begin at sectors all the same.
        cases += [permute(dtype, [160, 352], [1, 0]), permute(dtype, [5, 96, 416], [2, 0, 1])]
        # Lines that begin anywhere.
        cases += [permute(dtype, [257, 129], [1, 0], sectors=ODD[dtype], wide=False),
                  permute(dtype, [3, 65, 100], [0, 2, 1], sectors=ODD[dtype], wide=False)]
    for dtype in ("uint8", "float16", "float32", "float64"):  # colours of images
        for colours in (2, 3, 4):
            cases += [permute(dtype, [2, colours, 64, 64], [0, 2, 3, 1], sectors=1.01),
                      permute(dtype, [2, 64, 64, colours], [0, 3, 1, 2], sectors=1.01)]
    cases += [permute("float32", [64, 64, 7], [0, 2, 1], wide=False), permute("float32", [5, 129, 3], [0, 2, 1], sectors=2, wide=False),
              permute("float64", [3, 129, 1, 65], [3, 2, 1, 0], sectors=1.7, wide=False),
              Case("padded and transposed", {"x": ("int8", [129, 5])},
                   [node("p", "pad", "x", pad=[4, 1], value=1), node("y", "permute", "p", dims=[1, 0])], sectors=3,
                   wide=False),
              # Few elements, odd extents: no conflicts either.
              permute("bfloat16", [16, 9, 15], [0, 2, 1], sectors=3, wide=False), permute("int32", [3, 17], [1, 0], sectors=3, wide=False),
              permute("bool", [17, 17, 5], [0, 2, 1], sectors=3, wide=False), permute("int64", [2, 100, 63, 2], [1, 3, 0, 2], sectors=3, wide=False),
              permute("float16", [4, 8, 32, 64], [0, 2, 3, 1]), permute("float32", [6, 40, 8, 24], [3, 1, 0, 2])]
    return cases


def around():
    x = ("float32", [384, 256])
    h = ("bfloat16", [4, 192, 128])
    return [
        Case("transposed and added", {"x": x, "z": ("float32", [256, 384])},
             [node("t", "permute", "x", dims=[1, 0]), node("s", "add", "t", "z"), node("y", "relu", "s")]),
        Case("before and behind", {"x": h, "b": ("bfloat16", [192])},
             [node("g", "gelu", "x"), node("t", "permute", "g", dims=[0, 2, 1]), node("y", "add", "t", "b")],
             sectors=1.15, wide=False),
        Case("two transposed", {"x": h, "u": h},
             [node("a", "permute", "x", dims=[0, 2, 1]), node("c", "permute", "u", dims=[0, 2, 1]),
              node("s", "silu", "a"), node("y", "mul", "s", "c")]),
        Case("permuted in two ways", {"x": ("float32", [32, 64, 96]), "u": ("float32", [32, 96, 64])},
             [node("a", "permute", "x", dims=[2, 0, 1]), node("c", "permute", "u", dims=[1, 2, 0]),
              node("d", "permute", "c", dims=[0, 2, 1]), node("y", "add", "a", "d")]),
        Case("in three ways", {"x": ("bfloat16", [64, 64, 64]), "u": ("bfloat16", [64, 64, 64]), "w": ("bfloat16", [64, 64, 64])},
             [node("a", "permute", "x", dims=[2, 0, 1]), node("c", "permute", "u", dims=[1, 2, 0]),
              node("s", "add", "a", "c"), node("y", "add", "s", "w")]),
        Case("narrowed", {"x": x}, [node("t", "permute", "x", dims=[1, 0]), node("y", "cast", "t", dtype="bfloat16")],
             wide=False),
        Case("widened", {"x": ("bfloat16", [384, 256])},
             [node("t", "permute", "x", dims=[1, 0]), node("y", "cast", "t", dtype="float32")]),
        Case("each four times, transposed", {"x": ("float32", [192, 4, 192])},
             [node("t", "permute", "x", dims=[1, 2, 0]), node("r", "repeat_interleave", "t", repeats=4, dim=2),
              node("y", "relu", "r")], sectors=4, wide=False),
        Case("heads joined", {"x": ("bfloat16", [2, 8, 96, 64])},
             [node("t", "permute", "x", dims=[0, 2, 1, 3]), node("y", "reshape", "t", shape=[2, 96, 512])]),
        Case("patches", {"x": ("float32", [2, 3, 64, 64])},
             [node("r", "reshape", "x", shape=[2, 3, 4, 16, 4, 16]), node("t", "permute", "r", dims=[0, 2, 4, 1, 3, 5]),
              node("y", "reshape", "t", shape=[2, 16, 768])]),
        Case("patches, channels last", {"x": ("bfloat16", [2, 8, 64, 64])},
             [node("r", "reshape", "x", shape=[2, 8, 4, 16, 4, 16]), node("t", "permute", "r", dims=[0, 2, 4, 3, 5, 1]),
              node("y", "reshape", "t", shape=[2, 16, 2048])], wide=False),
    ]


def rows_and_parts():
    """Gathered rows, padded and joined ones: vectors wherever they begin at one."""
    table, ids = ("bfloat16", [1000, 768]), ("int64", [4, 128])
    return [
        Case("embedding", {"w": table, "i": ids}, [node("y", "embedding", "w", "i")], wide=False,
             moved=2 * 512 * 768 * 2),
        Case("embedding and positions", {"w": ("float32", [500, 512]), "p": ("float32", [128, 512]), "i": ids},
             [node("e", "embedding", "w", "i"), node("y", "add", "e", "p")], wide=False, moved=3 * 512 * 512 * 4),
        Case("index_select", {"w": table, "i": ("int64", [300])}, [node("y", "index_select", "w", "i", dim=0)], wide=False),
        Case("padded", {"x": ("bfloat16", [64, 512])}, [node("y", "pad", "x", pad=[8, 16, 1, 1])]),
        Case("rows padded", {"x": ("float32", [3, 20, 129])}, [node("y", "pad", "x", pad=[0, 0, 4, 8])]),
        Case("joined", {"x": ("bfloat16", [64, 512]), "u": ("bfloat16", [64, 256])}, [node("y", "concat", "x", "u", dim=1)]),
        Case("rows joined", {"x": ("bfloat16", [64, 511]), "u": ("bfloat16", [32, 511])},
             [node("y", "concat", "x", "u", dim=0)]),
        Case("a part", {"x": ("float16", [96, 512])}, [node("y", "slice", "x", dim=1, start=64, end=320)]),
    ] + [case for dtype in ("float8_e4m3fn", "float8_e5m2") for case in (
        Case(f"a part of {dtype}", {"x": (dtype, [96, 512])}, [node("y", "slice", "x", dim=1, start=64, end=320)]),
        Case(f"backwards {dtype}", {"x": (dtype, [96, 512])}, [node("y", "flip", "x", dims=[0])]),
        Case(f"turned round {dtype}", {"x": (dtype, [512, 768])}, [node("y", "permute", "x", dims=[1, 0])]),
        Case(f"padded by 1.5 {dtype}", {"x": (dtype, [64, 512])}, [node("y", "pad", "x", pad=[16, 32, 1, 1], value=1.5)]))]


def windows():
    """What does not lie as the results do: some steps apart, backwards, each element several times, beginning anywhere.
    Results are stored 16 bytes at a time; sectors and executed instructions over those of a copy's 16 bytes."""
    cases = []

    def add(name, dtype, shape, nodes, sectors=ALIGNED, wide=False, **inputs):
        cases.append(Case(f"{name} {dtype}{shape}", {"x": (dtype, shape)} | {n: (dtype, s) for n, s in inputs.items()},
                          nodes, sectors=sectors, wide=wide))

    for dtype in ("uint8", "float16", "float32", "float64"):
        for step in (2, 3, 4):
            add(f"every {step}", dtype, [96, 768], [node("y", "slice", "x", dim=1, start=1, end=768, step=step)],
                wide=(dtype, step) != ("float64", 3))
        add("backwards", dtype, [96, 512], [node("y", "flip", "x", dims=[1])], wide=True)
        add("backwards", dtype, [96, 515], [node("y", "flip", "x", dims=[0, 1])], sectors=1.15)
        add("each twice", dtype, [96, 512], [node("y", "repeat_interleave", "x", repeats=2, dim=1)])
        add("twice", dtype, [96, 517], [node("y", "repeat", "x", repeats=[1, 2])], sectors=1.5)
        add("rolled", dtype, [96, 512], [node("y", "roll", "x", shifts=[1], dims=[1])], sectors=1.2)
        for before, after in ((1, 0), (0, 1), (3, 2)):
            add(f"padded by {before, after}", dtype, [96, 1023], [node("y", "pad", "x", pad=[before, after])],
                sectors=1.15)
        add("a part", dtype, [96, 1023], [node("y", "slice", "x", dim=1, start=5, end=1003)], sectors=1.15)
        add("rows joined", dtype, [31, 511], [node("y", "concat", "x", "u", dim=0)], u=[32, 511])
        add("joined", dtype, [64, 511], [node("y", "concat", "x", "u", dim=1)], sectors=1.25, u=[64, 130])
    for dtype in ("bfloat16", "float32"):
        for n in (1024, 1030):
            add("interleaved swiglu", dtype, [64, n], [node("y", "swiglu", "x", interleaved=True)], wide=n == 1024)
            add("clamped", dtype, [64, n], [node("y", "swiglu", "x", interleaved=True, alpha=1.702, limit=7.0, up_offset=1.0)],
                wide=n == 1024)
        add("a row for all", dtype, [64, 4095], [node("y", "add", "x", "b")], sectors=1.65, b=[4095])
        add("a factor for each row", dtype, [64, 4095], [node("y", "mul", "x", "b")], b=[64, 1])
    for dtype in ("uint8", "float16", "float64"):  # what stands several times is read once
        for times, dim in ((2, 0), (3, 1), (4, 2)):
            add(f"repeated {times, dim}", dtype, [12, 24, 64], sectors=1.02, nodes=[
                node("y", "repeat", "x", repeats=[times if d == dim else 1 for d in range(3)])])
        add("tiled", dtype, [12, 24, 64], sectors=1.02, nodes=[
            node("u", "unsqueeze", "x", dim=1), node("e", "expand", "u", shape=[12, 3, 24, 64]),
            node("y", "reshape", "e", shape=[36, 24, 64])])
    cases.append(Case("images normalized", {"x": ("uint8", [2, 64, 64, 3]), "m": ("float32", [3]), "s": ("float32", [3])},
                      [node("c", "cast", "x", dtype="float32"), node("d", "sub", "c", "m"), node("y", "mul", "d", "s")],
                      sectors=1.15, wide=False))
    return cases


def stretches():
    """What follows no line: reflected, replicated and circular pads, rolls, short odd rows, odd steps. A block copies what
    its points want to shared memory, in few sectors more than that has and without conflicts."""
    cases = []

    def add(name, dtype, shape, nodes, sectors=1.12, symbols=None):
        if symbols:
            name += f" of {symbols['n']['hint']}"
        cases.append(Case(f"stretches: {name} {dtype}{shape}", {"x": (dtype, shape)}, nodes, sectors=sectors, wide=False,
                          symbols=symbols))

    for dtype in ("uint8", "float16", "float32", "float64"):
        for mode in ("reflect", "replicate", "circular"):
            add(mode, dtype, [64, 1024], [node("y", "pad", "x", pad=[3, 4], mode=mode)])
            add(mode + " rows", dtype, [500, 37], [node("y", "pad", "x", pad=[2, 1], mode=mode)])
            add(mode + " images", dtype, [4, 6, 64, 56], [node("p", "pad", "x", pad=[1, 1, 1, 1], mode=mode),
                                                          node("y", "relu", "p")], sectors=1.3)
            add(mode + " volumes", dtype, [2, 3, 12, 20, 48], [node("y", "pad", "x", pad=[2, 2, 1, 1, 1, 1], mode=mode)],
                sectors=1.75)
        add("roll of odd rows", dtype, [300, 129], [node("y", "roll", "x", shifts=[1, -3], dims=[0, 1])], sectors=1.2)
        add("each three times", dtype, [300, 65], [node("y", "repeat_interleave", "x", repeats=3, dim=1)])
        add("odd rows twice", dtype, [300, 65], [node("y", "repeat", "x", repeats=[1, 2])])
        add("odd rows backwards", dtype, [40, 16, 33], [node("y", "flip", "x", dims=[0, 2])], sectors=1.6)
        for n in (255, 256):
            any_size = {"n": {"min": 1, "max": 4096, "hint": n}}
            add("symbolic roll", dtype, [128, "n"], [node("a", "roll", "x", shifts=[1], dims=[1]), node("y", "relu", "a")],
                symbols=any_size, sectors=1.3)
            add("symbolic odd steps", dtype, [128, "n+1"],
                [node("a", "slice", "x", dim=1, start=1, end=1 << 62, step=2), node("y", "relu", "a")], symbols=any_size)
    return cases


def turned():
    """Transposed where lines do not lie as they are: rolled, reflected, backwards, in steps, parts, padded, joined."""
    cases = []
    turn = node("y", "permute", "v", dims=[1, 0])
    for dtype in ("uint8", "float16", "float32", "float64"):
        beside = {"uint8": 1.55, "float16": 1.26, "float32": 1.14, "float64": 1.08}[dtype]  # what begins between sectors
        x = {"x": (dtype, [384, 256])}
        for name, op, attrs, sectors in (
                ("rolled", "roll", {"shifts": [3], "dims": [1]}, beside),
                ("rows rolled", "roll", {"shifts": [3], "dims": [0]}, 1.01),
                ("reflected", "pad", {"pad": [3, 2], "mode": "reflect"}, beside),
                ("rows reflected", "pad", {"pad": [0, 0, 16, 16], "mode": "reflect"}, 1.05),
                ("every other", "slice", {"dim": 1, "start": 0, "end": 256, "step": 2}, 1.01),
                ("backwards", "flip", {"dims": [1]}, 1.01), ("rows backwards", "flip", {"dims": [0]}, 1.01),
                ("a part", "slice", {"dim": 1, "start": 3, "end": 251}, beside),
                ("rows' part", "slice", {"dim": 0, "start": 3, "end": 377}, beside),
                ("padded", "pad", {"pad": [3, 2]}, beside), ("rows padded", "pad", {"pad": [0, 0, 3, 1]}, beside)):
            cases.append(Case(f"turned: {name} {dtype}", x, [node("v", op, "x", **attrs), turn], sectors=sectors,
                              wide=False))
        cases.append(Case(f"turned: images padded {dtype}", {"x": (dtype, [2, 30, 32, 64])},
                          [node("v", "permute", "x", dims=[0, 3, 1, 2]), node("y", "pad", "v", pad=[1, 1, 1, 1])],
                          sectors=1 + 1.8 * (beside - 1) if dtype != "uint8" else 2, wide=False))
        for shift in (0, 3):
            cases.append(Case(f"turned: windows rolled by {shift} {dtype}", {"x": (dtype, [2, 56, 56, 64])},
                              [node("r", "roll", "x", shifts=[-shift, -shift], dims=[1, 2]),
                               node("v", "reshape", "r", shape=[2, 8, 7, 8, 7, 64]),
                               node("y", "permute", "v", dims=[0, 1, 3, 2, 4, 5])], sectors=1.01))
    return cases


def any_turned(seed):
    """Permuted, with something before and behind that leaves lines not as they are: results alone count."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 8, 31, 32, 40, 64, 130]) for _ in range(chance.randint(2, 4))]
    while element_count(shape) > 200000:
        shape[chance.randrange(len(shape))] = 2
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(2, 4)):
        name, dim = f"v{step}", chance.randrange(len(shape))
        kind = chance.choice(["permute", "permute", "roll", "flip", "step", "reflect", "replicate", "circular", "add"])
        extent = shape[dim]
        if kind == "permute":
            dims = chance.sample(range(len(shape)), len(shape))
            shape = [shape[d] for d in dims]
            nodes.append(node(name, "permute", last, dims=dims))
        elif kind == "roll":
            nodes.append(node(name, "roll", last, shifts=[chance.randint(-extent, extent)], dims=[dim]))
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=[dim]))
        elif kind == "step":
            start, by = chance.randrange(extent), chance.choice([1, 2, 3])
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=extent, step=by))
            shape[dim] = -(-(extent - start) // by)
        elif kind == "add":
            inputs[f"u{step}"] = (dtype, [extent if chance.random() < 0.6 else 1 for extent in shape])
            nodes.append(node(name, "add", last, f"u{step}"))
        else:
            pad = [min(chance.randint(0, 3), shape[-1] - 1), min(chance.randint(0, 3), shape[-1] - 1)]
            nodes.append(node(name, "pad", last, pad=pad, mode=kind))
            shape[-1] += sum(pad)
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any turned {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def picks():
    """Elements looked up along the last axis: rows go through shared memory, what looks them up is read once for several.
    Which banks they lie in, chance decides."""
    cases = []

    def add(name, nodes, sectors, symbols=None, **inputs):
        cases.append(Case(f"picks: {name}", inputs, nodes, sectors=sectors, wide=False, conflicts=1 << 40,
                          symbols=symbols))

    select, gather = node("y", "index_select", "x", "i", dim=1), node("y", "gather", "x", "i", dim=1)
    for dtype in ("uint8", "float16", "float32", "float64"):
        for rows, length, count in ((1024, 1024, 1024), (4000, 100, 100), (4001, 257, 129)):
            shared = {"uint8": 1.6, "float16": 1.35}.get(dtype, 1.2)  # what looks them up has 8 bytes
            add(f"{count} of {dtype}{[rows, length]}", [select], shared, x=(dtype, [rows, length]), i=("int64", [count]))
            add(f"{count} of each of {dtype}{[rows, length]}", [gather], 1.2, x=(dtype, [rows, length]),
                i=("int64", [rows, count]))
        add(f"of two {dtype}", [node("t", "index_select", "x", "i", dim=1), node("s", "index_select", "u", "i", dim=1),
                                node("y", "add", "t", "s")], 1.9, x=(dtype, [2100, 513]), u=(dtype, [2100, 128]),
            i=("int32", [128]))
        add(f"symbolic {dtype}", [select], 1.7, {"m": {"min": 1, "max": 100000, "hint": 3001}}, x=(dtype, ["m", 65]),
            i=("int32", [65]))
    add("of looked-up rows", [node("t", "index_select", "x", "i", dim=1), node("y", "index_select", "t", "r", dim=0)],
        2, x=("float16", [300, 600]), i=("int32", [600]), r=("int64", [2000]))
    add("besides being added", [node("t", "index_select", "x", "i", dim=1), node("c", "cast", "i", dtype="float32"),
                                node("y", "add", "t", "c")], 1.6,
        x=("float32", [3000, 600]), i=("int32", [600]))
    add("256 of each of float32[1024, 1024]", [gather], 1.05, x=("float32", [1024, 1024]), i=("int64", [1024, 256]))
    return cases


def any_picks(seed):
    """Elements looked up along some axis, with something before and behind: results alone count."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 5, 64, 300]), chance.choice([1, 3, 40, 257]), chance.choice([1, 7, 64, 65, 1000])]
    count, dim = chance.choice([1, 3, 32, 65, 129]), chance.choice([2, 2, 2, 1, 0])
    index, to = chance.choice(["int32", "int64"]), [*shape[:dim], count, *shape[dim + 1:]]
    gathers = chance.random() < 0.5
    inputs = {"x": (dtype, shape), "i": (index, to if gathers else [count])}
    nodes = [node("p", "gather" if gathers else "index_select", "x", "i", dim=dim)]
    last = "p"
    for step in range(chance.randint(0, 2)):
        kind = chance.choice(["add", "of row", "permute", "again"])
        if kind == "permute":
            dims = chance.sample(range(3), 3)
            to = [to[d] for d in dims]
            nodes.append(node(f"v{step}", "permute", last, dims=dims))
        else:
            inputs[f"b{step}"] = (dtype, to if kind == "again" else [1, 1, to[2]] if kind == "add" else [*to[:2], 1])
            nodes.append(node(f"v{step}", "add", last, f"b{step}"))
        last = f"v{step}"
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any picks {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def any_windows(seed):
    """Some ops one after the other whose operands are windows: results alone count."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 5, 9]) for _ in range(chance.randint(0, 2))]
    shape.append(chance.choice([1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 255, 256, 1000]))
    if chance.random() < 0.8:  # few points are not worth windows that begin anywhere
        shape.insert(0, -(-9000 // element_count(shape)))
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(1, 3)):
        name, dim = f"v{step}", chance.choice([len(shape) - 1, len(shape) - 1, chance.randrange(len(shape))])
        kind = chance.choice(["every", "flip", "interleave", "repeat", "roll", "pad", "concat", "add", "rows"])
        extent = shape[dim]
        if kind == "every":
            start, by = chance.randrange(extent), chance.choice([1, 2, 2, 3, 4, 5])
            end = chance.randint(start + 1, extent)
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=end, step=by))
            shape[dim] = -(-(end - start) // by)
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=sorted({dim, chance.randrange(len(shape))})))
        elif kind == "interleave":
            times = chance.choice([2, 3, 4])
            nodes.append(node(name, "repeat_interleave", last, repeats=times, dim=dim))
            shape[dim] *= times
        elif kind == "repeat":
            times = chance.choice([2, 3])
            nodes.append(node(name, "repeat", last, repeats=[times if d == dim else 1 for d in range(len(shape))]))
            shape[dim] *= times
        elif kind == "roll":
            nodes.append(node(name, "roll", last, shifts=[chance.randint(-extent, extent)], dims=[dim]))
        elif kind == "pad":
            before, after = chance.choice([0, 1, 2, 5, 8, 17]), chance.choice([0, 1, 3, 8])
            nodes.append(node(name, "pad", last, pad=[0, 0] * (len(shape) - 1 - dim) + [before, after]))
            shape[dim] += before + after
        elif kind == "concat":
            other = list(shape)
            other[dim] = chance.choice([1, 2, 3, 8, 11, 64])
            inputs[f"u{step}"] = (dtype, other)
            pair = [last, f"u{step}"] + ([last] if chance.random() < 0.3 else [])
            chance.shuffle(pair)
            nodes.append(node(name, "concat", *pair, dim=dim))
            shape[dim] = shape[dim] * pair.count(last) + other[dim]
        else:
            other = [1] * (len(shape) - 1) + [shape[-1]] if kind == "add" else [*shape[:-1], 1]
            inputs[f"u{step}"] = (dtype, other)
            nodes.append(node(name, "add", last, f"u{step}"))
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any windows {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def rows_backwards():
    """Odd rows backwards, or in the reverse order: the windows of a tensor's first and last row go on outside of it,
    where the other row's lanes are. All elements together are whole vectors, but for some."""
    cases = []

    def add(name, dtype, shape, nodes, symbols=None, **inputs):
        cases.append(Case(f"rows backwards: {name} {dtype}{shape}", {"x": (dtype, shape)} | inputs,
                          [*nodes, node("y", "abs", "v")], sectors=1e9, wide=False, symbols=symbols))

    for dtype, end in (("int8", "float32"), ("float16", "float16"), ("float32", "float16"), ("float64", "float64")):
        for rows, columns in ((64, 255), (48, 337), (63, 261)):
            shape, kept = [rows, columns], columns - 1 if columns == 255 else columns
            add("columns", dtype, shape, [node("v", "flip", "x", dims=[1])])
            add("rows", dtype, shape, [node("v", "flip", "x", dims=[0])])
            add("both", dtype, [4, *shape], [node("v", "flip", "x", dims=[0, 2])])
            add("cast", dtype, shape, [node("f", "flip", "x", dims=[1]), node("v", "cast", "f", dtype=end)])
            add("a part", dtype, shape, [node("f", "flip", "x", dims=[1]),
                                         node("v", "slice", "f", dim=1, start=0, end=kept - 6)])
            for step in (2, 3) if rows != 63 else (2,):
                for dims in ([0], [1], [0, 1]):
                    add(f"{dims} in steps of {step}", dtype, [rows, step * columns],
                        [node("f", "flip", "x", dims=dims),
                         node("v", "slice", "f", dim=1, start=step - 1, end=step * columns, step=step)])
            add("added up", dtype, shape, [node("f", "flip", "x", dims=[1]), node("g", "flip", "x", dims=[0]),
                                           node("h", "add", "f", "g"), node("v", "add", "h", "b")],
                b=(dtype, [columns]))
            add("each twice", dtype, shape, [node("f", "flip", "x", dims=[1]),
                                             node("v", "repeat_interleave", "f", repeats=2, dim=0)])
            add("joined", dtype, shape, [node("f", "flip", "x", dims=[1]), node("v", "concat", "f", "x", dim=0)])
    for dtype in ("int8", "float16", "float32", "float64"):
        for dims in ([0], [1], [0, 1]):
            add(f"symbolic {dims}", dtype, ["m", 255], [node("v", "flip", "x", dims=dims)],
                {"m": {"min": 16, "max": 256, "multiple_of": 16, "hint": 64}})
            add(f"symbolic {dims} in steps of 2", dtype, ["m", 510],
                [node("f", "flip", "x", dims=dims), node("v", "slice", "f", dim=1, start=0, end=510, step=2)],
                {"m": {"min": 16, "max": 256, "multiple_of": 16, "hint": 64}})
    return cases


def any_planes(seed):
    """Images of few colours, turned round with something before and behind: results alone count."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "int8", "uint8", "int64", "float64"])
    colours, points = chance.choice([2, 3, 4]), chance.choice([[16, 16], [48], [4, 24], [8, 31], [160], [1024]])
    first = chance.random() < 0.5
    shape = [chance.choice([1, 3]), *([colours] if first else []), *points, *([] if first else [colours])]
    rank = len(shape)
    turned = [0, *range(2, rank), 1] if first else [0, rank - 1, *range(1, rank - 1)]
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"

    def extra(name):
        nonlocal last
        kind, at = chance.choice(["none", "add", "flip", "pad", "slice", "cast", "concat"]), chance.randrange(rank)
        if kind == "add":
            inputs[f"b{name}"] = (dtype, [shape[i] if i == at or chance.random() < 0.3 else 1 for i in range(rank)])
            nodes.append(node(name, "add", last, f"b{name}"))
        elif kind == "flip":
            nodes.append(node(name, "flip", last, dims=[at]))
        elif kind == "pad":
            pad = [0] * (2 * rank)
            pad[2 * (rank - 1 - at)] = chance.choice([1, 2, 16])
            nodes.append(node(name, "pad", last, pad=pad))
            shape[at] += pad[2 * (rank - 1 - at)]
        elif kind == "slice":
            step = chance.choice([1, 2])
            nodes.append(node(name, "slice", last, dim=at, start=0, end=shape[at], step=step))
            shape[at] = -(-shape[at] // step)
        elif kind == "concat":
            nodes.append(node(name, "concat", last, last, dim=at))
            shape[at] *= 2
        else:
            return
        last = name

    extra("a")
    nodes.append(node("t", "permute", last, dims=turned))
    shape, last = [shape[d] for d in turned], "t"
    extra("c")
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any planes {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def symbolic():
    """Sizes that are known at launch, as multiples of 8."""
    symbols = {"n": {"min": 8, "max": 4096, "multiple_of": 8, "hint": 256}}
    return [Case("symbolic transpose", {"x": ("bfloat16", [128, "n"])}, [node("y", "permute", "x", dims=[1, 0])],
                 symbols=symbols),
            Case("symbolic images", {"x": ("float32", [2, 64, "n"])}, [node("y", "permute", "x", dims=[0, 2, 1])],
                 symbols=symbols)]


def any_movement(seed):
    """Some permutes, slices, pads and reshapes one after the other, with elementwise ops between: results alone count."""
    chance = random.Random(seed)
    dtype = chance.choice(["float32", "float16", "bfloat16", "int8", "int64", "float64", "uint8"])
    shape = [chance.choice([1, 2, 3, 4, 8, 9, 16, 24, 31, 32, 40, 64, 100]) for _ in range(chance.randint(2, 5))]
    while element_count(shape) > 200000:
        shape[chance.randrange(len(shape))] = 2
    inputs, nodes, last = {"x": (dtype, list(shape))}, [], "x"
    for step in range(chance.randint(1, 4)):
        name, kind = f"v{step}", chance.choice(["permute", "permute", "permute", "relu", "add", "slice", "pad", "join"])
        if kind == "permute":
            dims = chance.sample(range(len(shape)), len(shape))
            shape = [shape[d] for d in dims]
            nodes.append(node(name, "permute", last, dims=dims))
        elif kind == "add":
            other = [extent if chance.random() < 0.7 else 1 for extent in shape]
            inputs[f"u{step}"] = (dtype, other)
            nodes.append(node(name, "add", last, f"u{step}"))
        elif kind == "slice":
            dim = chance.randrange(len(shape))
            start = chance.randrange(shape[dim])
            nodes.append(node(name, "slice", last, dim=dim, start=start, end=shape[dim]))
            shape[dim] -= start
        elif kind == "pad":
            before, after = chance.choice([0, 1, 4, 8]), chance.choice([0, 3, 8])
            nodes.append(node(name, "pad", last, pad=[before, after]))
            shape[-1] += before + after
        elif kind == "join" and len(shape) > 1:
            at = chance.randrange(len(shape) - 1)
            shape[at:at + 2] = [shape[at] * shape[at + 1]]
            nodes.append(node(name, "reshape", last, shape=list(shape)))
        else:
            nodes.append(node(name, "relu", last))
        last = name
    nodes.append(node("y", "neg" if dtype != "uint8" else "relu", last))
    return Case(f"any {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def joined_and_permuted(seed):
    """Operands of one column beside wider ones, joined, padded and permuted: where they are there depends on axes along
    which they do not run. Results alone count."""
    chance = random.Random(seed)
    a, b, c = chance.choice([4, 31, 64]), chance.choice([5, 31, 62]), chance.choice([1, 3, 7])
    dtype = chance.choice(["float32", "float16", "float64", "int8"])
    inputs = {"x": (dtype, [a, b, 1]), "z": (dtype, [a, b, c])}
    parts = chance.choice([["x", "z"], ["z", "x"], ["x", "z", "x"]])
    nodes, last = [node("j", "concat", *parts, dim=2)], "j"
    if chance.random() < 0.5:
        nodes.append(node("p", "pad", last, pad=chance.choice([[0, 0, 0, 2], [1, 0], [0, 1, 2, 1]])))
        last = "p"
    nodes.append(node("y", "permute", last, dims=chance.choice([[2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1]])))
    return Case(f"joined and permuted {seed}", inputs, nodes, sectors=1e9, wide=False, conflicts=1 << 40, kernels=9)


def element_count(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


def cases():
    counted = transposes() + around() + rows_and_parts() + windows() + symbolic() + picks() + turned()
    return ([(case, arch) for arch in ARCHITECTURES for case in counted]
            + [(case, ARCHITECTURES[i % 2]) for i, case in enumerate(stretches())]
            + [(any_movement(seed), ARCHITECTURES[seed % 2]) for seed in range(60)]
            + [(any_turned(seed), ARCHITECTURES[seed % 2]) for seed in range(100)]
            + [(any_picks(seed), ARCHITECTURES[seed % 2]) for seed in range(60)]
            + [(any_windows(seed), ARCHITECTURES[seed % 2]) for seed in range(100)]
            + [(case, ARCHITECTURES[i % 2]) for i, case in enumerate(rows_backwards())]
            + [(any_planes(seed), ARCHITECTURES[seed % 2]) for seed in range(60)]
            + [(joined_and_permuted(seed), ARCHITECTURES[seed % 2]) for seed in range(40)])


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 3 and "nvrtc" in done.stderr:
        print("skipped: " + done.stderr.strip())
        sys.exit(77)
    return done


def narrow_accesses(fusec, path, arch, scratch):
    ptx = os.path.join(scratch, "model.ptx")
    done = run([fusec, path, "--arch=" + arch, "-o", ptx])
    if done.returncode != 0:
        return done.stderr
    with open(ptx, encoding="utf-8") as f:
        accesses = re.findall(r"\b(?:ld|st)\.global[.\w:]*", f.read())
    narrow = [a for a in accesses if not re.search(r"\.v4\.[ubf]32$|\.v2\.[ubf]64$", a)]
    return f"{narrow[0]} among {len(accesses)} accesses" if narrow or not accesses else ""


def what_is_wrong(programs, scratch, case, arch, figures):
    """What the kernel does not keep to; its figures become those of `figures` where they are worse or there are none."""
    path, report = (os.path.join(scratch, name) for name in ("model.json", "profile.json"))
    inputs = [{"name": n, "dtype": d, "shape": s} for n, (d, s) in case.inputs.items()]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"fusec": 1, "name": "movement", "symbols": case.symbols, "inputs": inputs, "nodes": case.nodes,
                   "outputs": case.outputs}, f)
    done = run([programs.fusec_run, path, "--random=1", "--device=emulator", "--verify", "--arch=" + arch,
                "--profile=" + report, "--json"])
    if done.returncode != 0:
        return done.stdout + done.stderr
    with open(report, encoding="utf-8") as f:
        kernels = json.load(f)["kernels"]
    if len(kernels) > case.kernels:
        return f"{len(kernels)} kernels"
    if not kernels:
        return ""
    kernel = kernels[0]
    if kernel["findings"] or kernel["bank_conflicts"] > case.conflicts:
        return f"{kernel['findings']} findings, {kernel['bank_conflicts']} bank conflicts"
    if kernel["resources"]["spill_bytes"] or kernel["resources"]["stack_bytes"]:
        return "local memory is used"
    # Sectors over those of the bytes, and a warp's instructions for 16 bytes of each of its threads, edges apart.
    sectors = kernel["sectors"] * 32 / (case.moved or kernel["distinct_bytes"])
    executed = (sum(kernel["instructions"].values()) - 2000) * 512 / kernel["distinct_bytes"]
    if sectors > case.sectors:
        return f"{kernel['sectors']} sectors, {sectors:.2f} times those of the bytes"
    if not case.counted:
        return ""
    narrow = narrow_accesses(programs.fusec, path, arch, scratch)
    if narrow and case.wide:
        return narrow
    return beyond_figures(programs, case, {"sectors": round(sectors, 3), "instructions": round(executed, 1),
                                           "wide": not narrow}, figures)


def beyond_figures(programs, case, found, figures):
    known = figures.get(case.name)
    if programs.update:
        figures[case.name] = found if known is None else {
            "sectors": max(known["sectors"], found["sectors"]),
            "instructions": max(known["instructions"], found["instructions"]), "wide": known["wide"] and found["wide"]}
        return ""
    if known is None:
        return f"nothing in {os.path.basename(FIGURES)}, which --update writes"
    if found["sectors"] > MORE_SECTORS * known["sectors"]:
        return f"{found['sectors']} times the sectors of the bytes, and {known['sectors']} before"
    if found["instructions"] > MORE_INSTRUCTIONS * max(known["instructions"], 10):
        return f"{found['instructions']} instructions for 16 bytes, and {known['instructions']} before"
    return "accesses of less than 16 bytes" if known["wide"] and not found["wide"] else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusec_run")
    parser.add_argument("fusec")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--update", action="store_true")
    programs = parser.parse_args()
    chosen = [(case, arch) for case, arch in cases() if programs.only in case.name]
    if programs.sample:
        random.Random(programs.seed).shuffle(chosen)
        chosen = chosen[:programs.sample]
    failures, figures = 0, {}
    if not programs.update or programs.only or programs.sample:
        with open(FIGURES, encoding="utf-8") as f:
            figures = json.load(f)
    if programs.update:
        for case, _ in chosen:
            figures.pop(case.name, None)
    with tempfile.TemporaryDirectory() as scratch:
        for case, arch in chosen:
            wrong = what_is_wrong(programs, scratch, case, arch, figures)
            failures += bool(wrong)
            if wrong:
                print("FAILED", case.name, arch, wrong, flush=True)
    if programs.update:
        names = [name for name in dict.fromkeys(case.name for case, _ in cases()) if name in figures]
        with open(FIGURES, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(figures[n])}" for n in names) + "\n}\n")
    print(f"movement: {len(chosen)} cases, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
