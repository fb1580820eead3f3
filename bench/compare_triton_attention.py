#!/usr/bin/env python3
"""compare_triton_attention.py [--only=NAME,...] [--arch=80,90] [--sample] [--markdown=FILE] [BIN_DIR]: attention, ours
beside Triton's.

Compiles a streaming attention kernel in Triton (PyPI; no GPU needed) at eight shapes, for sm_80 and sm_90a, and runs its
PTX on the emulator beside what fusec emits for the same graph and the same inputs. Triton's kernel knows every size at
compile time, walks over keys that need no mask and those that do in loops of their own, and takes the fewest executed
instructions of several tiles and warps; configurations that exceed the target's shared memory are left out.

Causal shapes are executed whole; of others two blocks stand for all (of odd sizes eight), of ours and of Triton's;
where all is executed, outputs are held against float64. Printed for each shape: executed warp instructions for 2048
multiply-adds that are needed (one mma of 16x8x16), bytes of global memory, bank conflicts, registers, bytes of machine
code. Moves are left out.

Demand, exit 1 where it is not met: ours executes no more instructions a multiply-add, and has no bank conflicts,
at every shape. Exits with 77 where Triton or NumPy is missing."""
import argparse
import os
import sys
import tempfile

from triton_peers import (LETTERS, ROOT, SHARED_BYTES, compiled, numpy, our_run, ptx_run, stored, target_name, tl, triton,
                          write_tensors)

DTYPE = "bfloat16"
# name: heads, heads of keys, queries, keys, head size, causal
SHAPES = {
    "head 64": (16, 16, 1024, 1024, 64, False),
    "head 64, causal": (16, 16, 1024, 1024, 64, True),
    "head 64, odd sizes": (16, 16, 2000, 1999, 64, False),
    "head 128": (16, 16, 1024, 1024, 128, False),
    "head 128, causal": (16, 16, 1024, 1024, 128, True),
    "head 128, grouped": (32, 8, 2048, 2048, 128, False),
    "head 128, long": (8, 8, 8192, 8192, 128, False),
    "head 256": (16, 16, 1024, 1024, 256, False),
}
SAMPLE = ["head 64", "head 128"]
BLOCKS = 2      # of a sample, where all blocks have as much to do
ODD_BLOCKS = 8  # where some have less
# rows and keys of a tile, warps, stages
CONFIGURATIONS = [(128, 128, 8, 2), (128, 64, 8, 2), (128, 64, 4, 2), (128, 64, 4, 3), (64, 64, 4, 3), (64, 32, 4, 2)]


@triton.jit
def attend(total, greatest, most, query, k, v, row, first, end, keys: tl.constexpr, scale: tl.constexpr,
           MASKED: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr, HEAD: tl.constexpr):
    """One loop over keys; `total` is what was summed up, `most` the sum of weights."""
    column = tl.arange(0, HEAD)
    for start in tl.range(first, end, KEYS):
        key = start + tl.arange(0, KEYS)
        if MASKED:
            turned = tl.load(k + key[None, :] * HEAD + column[:, None], mask=key[None, :] < keys, other=0.0)
        else:
            turned = tl.load(k + key[None, :] * HEAD + column[:, None])
        score = tl.dot(query, turned)
        if MASKED:
            seen = key[None, :] < keys
            if CAUSAL:
                seen = seen & (key[None, :] <= row[:, None])
            score = tl.where(seen, score * scale, -float("inf"))
            now = tl.maximum(greatest, tl.max(score, 1))
            weight = tl.math.exp2(score - now[:, None])
        else:
            now = tl.maximum(greatest, tl.max(score, 1) * scale)
            weight = tl.math.exp2(score * scale - now[:, None])
        shrink = tl.math.exp2(greatest - now)
        most = most * shrink + tl.sum(weight, 1)
        total = total * shrink[:, None]
        if MASKED:
            value = tl.load(v + key[:, None] * HEAD + column[None, :], mask=key[:, None] < keys, other=0.0)
        else:
            value = tl.load(v + key[:, None] * HEAD + column[None, :])
        total = tl.dot(weight.to(value.dtype), value, total)
        greatest = now
    return total, greatest, most


@triton.jit
def attention(q, k, v, y, queries: tl.constexpr, keys: tl.constexpr, group: tl.constexpr, scale: tl.constexpr,
              CAUSAL: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, HEAD: tl.constexpr):
    tile = tl.program_id(0)
    head = tl.program_id(1)
    row = tile * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, HEAD)
    q += head * queries * HEAD
    y += head * queries * HEAD
    k += head // group * keys * HEAD
    v += head // group * keys * HEAD
    there = row[:, None] < queries
    query = tl.load(q + row[:, None] * HEAD + column[None, :], mask=there, other=0.0)
    total = tl.zeros([ROWS, HEAD], dtype=tl.float32)
    most = tl.zeros([ROWS], dtype=tl.float32)
    greatest = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    if CAUSAL:
        plain = tl.minimum(tile * ROWS // KEYS * KEYS, keys // KEYS * KEYS)
        end = tl.minimum((tile + 1) * ROWS, keys)
    else:
        plain = keys // KEYS * KEYS
        end = keys
    total, greatest, most = attend(total, greatest, most, query, k, v, row, 0, plain, keys, scale, False, CAUSAL, KEYS,
                                   HEAD)
    if CAUSAL or keys % KEYS != 0:
        total, greatest, most = attend(total, greatest, most, query, k, v, row, plain, end, keys, scale, True, CAUSAL,
                                       KEYS, HEAD)
    tl.store(y + row[:, None] * HEAD + column[None, :], (total / most[:, None]).to(y.dtype.element_ty), mask=there)


def needed(shape):
    """Multiply-adds of both products, of keys that are seen."""
    heads, _, queries, keys, head, causal = shape
    pairs = sum(min(row + 1, keys) for row in range(queries)) if causal else queries * keys
    return 2 * heads * pairs * head


def whole(figures, shape):
    """Executed instructions for 2048 multiply-adds that are needed; of a sample, as if all blocks were alike."""
    return figures["executed"] * figures["blocks"] * 2048 / needed(shape)


def sampled(shape):
    queries, keys, causal = shape[2], shape[3], shape[5]
    whole_tiles = queries % 128 == 0 and keys % 128 == 0
    return [] if causal else [f"--sample-blocks={BLOCKS if whole_tiles else ODD_BLOCKS}"]


def triton_run(shape, arch, configuration, inputs, folder, fusec_run):
    heads, key_heads, queries, keys, head, causal = shape
    rows_of_tile, keys_of_tile, warps, stages = configuration
    constants = {"queries": queries, "keys": keys, "group": heads // key_heads, "scale": head**-0.5 * 1.4426950408889634,
                 "CAUSAL": causal, "ROWS": rows_of_tile, "KEYS": keys_of_tile, "HEAD": head}
    made = compiled(attention, {name: "*" + LETTERS[DTYPE] for name in "qkvy"}, constants, arch, warps, stages)
    if made.metadata.shared > SHARED_BYTES[arch]:
        return None
    arguments = [f"in:{name}" for name in "qkv"] + [f"out:y:{DTYPE}:{heads}x{queries}x{head}"]
    return ptx_run(made.asm["ptx"], "attention", (-(-queries // rows_of_tile), heads, 1), 32 * warps, made.metadata.shared,
                   arguments, inputs, "y", folder, fusec_run, options=sampled(shape)) | {"how": configuration}


def model_of(shape):
    heads, key_heads, queries, keys, head, causal = shape
    shapes = {"q": [1, heads, queries, head], "k": [1, key_heads, keys, head], "v": [1, key_heads, keys, head]}
    return {"fusec": 1, "name": "attention",
            "inputs": [{"name": n, "dtype": DTYPE, "shape": s} for n, s in shapes.items()],
            "nodes": [{"name": "y", "op": "scaled_dot_product_attention", "inputs": ["q", "k", "v"],
                       "attrs": {"is_causal": causal, "enable_gqa": heads != key_heads}}], "outputs": ["y"]}


def float64_attention(shape, q, k, v):
    heads, key_heads, queries, keys, head, causal = shape
    results = []
    for h in range(heads):
        score = q[0, h] @ k[0, h * key_heads // heads].T / head**0.5
        if causal:
            score = numpy.where(numpy.arange(keys)[None, :] <= numpy.arange(queries)[:, None], score, -numpy.inf)
        weight = numpy.exp(score - score.max(-1, keepdims=True))
        results.append(weight @ v[0, h * key_heads // heads] / weight.sum(-1, keepdims=True))
    return numpy.stack(results)


def compare(name, arch, folder, fusec, fusec_run):
    shape = SHAPES[name]
    heads, key_heads, queries, keys, head, causal = shape
    random = numpy.random.default_rng([queries, keys, head, arch])
    tensors, values = {}, []
    for n, extents in (("q", (1, heads, queries, head)), ("k", (1, key_heads, keys, head)), ("v", (1, key_heads, keys, head))):
        data, held = stored(random.standard_normal(extents), DTYPE)
        tensors[n] = (DTYPE, extents, data)
        values.append(held)
    inputs = os.path.join(folder, "inputs.safetensors")
    write_tensors(inputs, tensors)
    tried = (triton_run(shape, arch, c, inputs, folder, fusec_run) for c in CONFIGURATIONS)
    theirs = min((t for t in tried if t), key=lambda figures: whole(figures, shape))
    ours = our_run(model_of(shape), "y", arch, inputs, folder, fusec, fusec_run, sampled(shape))
    if causal:
        want = float64_attention(shape, *values).ravel()
        for who, figures in (("our", ours), ("Triton's", theirs)):
            wrong = ~(numpy.abs(figures["output"] - want) <= 3e-2 + 3e-2 * numpy.abs(want))  # NaN is wrong
            if wrong.any():
                sys.exit(f"compare_triton_attention: {who} {name}, sm_{arch}: {wrong.sum()} elements are wrong")
    return shape, ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="shapes, by name, with ; between them")
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("--sample", action="store_true", help="two shapes of the eight")
    parser.add_argument("--markdown", default="")
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    fusec, fusec_run = (os.path.join(options.bin_dir, p) for p in ("fusec", "fusec-run"))
    heads = ["attention", "executed for 2048 multiply-adds, ours", "Triton's", "ratio", "bytes a multiply-add, ratio",
             "bank conflicts", "registers", "machine code", "Triton's tile, warps, stages"]
    lines, broken = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)], []
    chosen = SAMPLE if options.sample else [n for n in SHAPES if not options.only or n in options.only.split(";")]
    with tempfile.TemporaryDirectory() as folder:
        for arch in map(int, options.arch.split(",")):
            for name in chosen:
                shape, ours, theirs = compare(name, arch, folder, fusec, fusec_run)
                mine, other = whole(ours, shape), whole(theirs, shape)
                moved = ours["requested_bytes"] * ours["blocks"] / (theirs["requested_bytes"] * theirs["blocks"])
                where = f"{name}, {target_name(arch)}"
                cells = [where, f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.3f}", f"{moved:.2f}"]
                cells += [f"{ours[key]} / {theirs[key]}" for key in ("bank_conflicts", "registers", "code_bytes")]
                lines.append("| " + " | ".join([*cells, str(theirs["how"])]) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
                if mine > other:
                    broken.append(f"{where}: {mine:.2f} instructions, Triton's {other:.2f}")
                if ours["bank_conflicts"]:
                    broken.append(f"{where}: {ours['bank_conflicts']} bank conflicts")
    summary = "\n".join(broken + [f"{len(broken)} demands not met"])
    print(summary)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write("\n".join([*lines, "", summary]) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
