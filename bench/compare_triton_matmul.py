#!/usr/bin/env python3
"""compare_triton_matmul.py [--only=NAME;...] [--arch=80,90] [--sample] [--markdown=FILE] [BIN_DIR]: matrix products with
bias and GELU, ours beside Triton's.

Compiles two kernels in Triton (PyPI; no GPU needed) at seven shapes, for sm_80 and sm_90a, and runs their PTX on the
emulator beside what fusec emits for the same graph and the same inputs: one loads its tiles through pointers, the other,
on sm_90a, by tensor descriptors, which TMA copies. Both multiply by wgmma there. They know every size at compile time and
take the fewest executed instructions of several tiles, warps and stages: of those that occupy the most multiprocessors,
as tuning by time would, and fit the target's shared memory. An eighth, in float8, is for sm_90a alone: Triton has no such product on sm_80.

Small shapes are executed whole, and outputs are held against float64. Of large ones, which are multiples of every tile,
some blocks stand for all, by the multiply-adds that they did. Printed for each shape: executed warp instructions for 2048
multiply-adds that are needed (one mma of 16x8x16), bytes of global memory, bank conflicts, registers, bytes of machine
code. Moves are left out.

Demand, exit 1 where it is not met: ours executes no more instructions a multiply-add, and has no bank conflicts, at
every shape. Exits with 77 where Triton or NumPy is missing."""
import argparse
import math
import os
import sys
import tempfile
from dataclasses import dataclass

from triton_peers import (LETTERS, ROOT, SHARED_BYTES, compiled, numpy, our_run, ptx_run, stored, target_name, tl, triton,
                          write_tensors)


@dataclass(frozen=True)
class Shape:
    m: int
    n: int
    k: int
    dtype: str
    batch: int = 1
    transposed: bool = True  # w[n, k], of a linear layer; else w[k, n]
    sampled: bool = False
    arches: tuple = (80, 90)

    @property
    def result(self):
        return "bfloat16" if self.dtype == "float8_e4m3fn" else self.dtype


SHAPES = {
    "1024 x 1024 x 1024": Shape(1024, 1024, 1024, "bfloat16"),
    "4096 x 4096 x 4096": Shape(4096, 4096, 4096, "bfloat16", sampled=True),
    "2048 x 14336 x 4096": Shape(2048, 14336, 4096, "bfloat16", sampled=True),
    "2048 x 4096 x 14336, w[k, n]": Shape(2048, 4096, 14336, "float16", transposed=False, sampled=True),
    "999 x 1001 x 1000": Shape(999, 1001, 1000, "bfloat16"),
    "16 x 4096 x 4096": Shape(16, 4096, 4096, "bfloat16"),
    "12 times 512 x 512 x 128, w[k, n]": Shape(512, 512, 128, "float16", batch=12, transposed=False),
    "1024 x 1024 x 1024, float8": Shape(1024, 1024, 1024, "float8_e4m3fn", arches=(90,)),
}
SAMPLE = ["1024 x 1024 x 1024", "999 x 1001 x 1000"]
BLOCKS = 2  # of a sample: whole tiles all, a cluster of ours
# rows, columns and depth of a tile, warps, stages
CONFIGURATIONS = {
    80: [(128, 256, 32, 8, 3), (256, 128, 32, 8, 3), (128, 128, 32, 4, 4), (128, 128, 64, 4, 3), (64, 128, 32, 4, 4),
         (64, 64, 64, 4, 4)],
    90: [(128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (64, 128, 64, 4, 3),
         (64, 64, 64, 4, 4)],
}
FEW_ROWS = [(16, 64, 64, 4, 4), (16, 128, 64, 4, 4), (16, 64, 128, 4, 3), (16, 128, 128, 4, 3), (16, 32, 128, 2, 4)]
MULTIPROCESSORS = {80: 108, 90: 132}
SWIZZLES = ["none", "32", "64", "128"]


@triton.jit
def place(m: tl.constexpr, n: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    """The block's first row and column: blocks go down some rows of tiles before they go on to the next column."""
    down = tl.cdiv(m, ROWS)
    across = tl.cdiv(n, COLUMNS)
    band = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    return (band * GROUP + within % height) * ROWS, within // height * COLUMNS


@triton.jit
def finished(total, bias, column, n: tl.constexpr, COLUMNS: tl.constexpr):
    if n % COLUMNS == 0:
        added = tl.load(bias + column)
    else:
        added = tl.load(bias + column, mask=column < n, other=0.0)
    total += added[None, :].to(tl.float32)
    return total * 0.5 * (1 + tl.erf(total * 0.7071067811865476))


@triton.jit
def matmul(x, w, bias, y, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr, TURNED: tl.constexpr, ROWS: tl.constexpr,
           COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    row0, column0 = place(m, n, ROWS, COLUMNS, GROUP)
    one = tl.program_id(1)
    row = row0 + tl.arange(0, ROWS)
    column = column0 + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    # Rows and columns behind the last are others again: what is computed of them is not stored.
    left = x + one * m * k + (row % m)[:, None] * k + depth[None, :]
    if TURNED:
        right = w + one * n * k + (column % n)[None, :] * k + depth[:, None]
    else:
        right = w + one * n * k + (column % n)[None, :] + depth[:, None] * n
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for start in tl.range(0, k, DEPTH):
        if k % DEPTH == 0:
            a = tl.load(left)
            b = tl.load(right)
        else:
            a = tl.load(left, mask=depth[None, :] < k - start, other=0.0)
            b = tl.load(right, mask=depth[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total)
        left += DEPTH
        right += DEPTH if TURNED else DEPTH * n
    result = finished(total, bias, column, n, COLUMNS).to(y.dtype.element_ty)
    target = y + one * m * n + row[:, None] * n + column[None, :]
    if m % ROWS == 0 and n % COLUMNS == 0:
        tl.store(target, result)
    else:
        tl.store(target, result, mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def described(x, w, bias, y, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr, TURNED: tl.constexpr, ROWS: tl.constexpr,
              COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    row0, column0 = place(m, n, ROWS, COLUMNS, GROUP)
    one = tl.program_id(1)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for start in tl.range(0, k, DEPTH):
        a = x.load([one, row0, start]).reshape(ROWS, DEPTH)
        if TURNED:
            b = w.load([one, column0, start]).reshape(COLUMNS, DEPTH).T
        else:
            b = w.load([one, start, column0]).reshape(DEPTH, COLUMNS)
        total = tl.dot(a, b, total)
    result = finished(total, bias, column0 + tl.arange(0, COLUMNS), n, COLUMNS)
    y.store([one, row0, column0], result.to(y.dtype).reshape(1, ROWS, COLUMNS))


def needed(shape):
    return shape.batch * shape.m * shape.n * shape.k


def of_all(figures, shape, key):
    """A sample's figure as if of all blocks: by its share of the multiply-adds."""
    return figures[key] * (needed(shape) / figures["tensor_multiply_adds"] if shape.sampled else 1)


def whole(figures, shape):
    """Executed instructions for 2048 multiply-adds that are needed."""
    return of_all(figures, shape, "executed") * 2048 / needed(shape)


def sampled(shape):
    return [f"--sample-blocks={BLOCKS}"] if shape.sampled else []


def tensors_of(shape):
    """Shapes of x, w and y, with a batch in front where there is one."""
    batch = [shape.batch] if shape.batch > 1 else []
    w = [shape.n, shape.k] if shape.transposed else [shape.k, shape.n]
    return {"x": [*batch, shape.m, shape.k], "w": [*batch, *w], "y": [*batch, shape.m, shape.n]}


def configurations(shape, arch):
    """Those whose blocks occupy the most multiprocessors."""
    def occupied(configuration):
        rows, columns = configuration[:2]
        return min(-(-shape.m // rows) * -(-shape.n // columns) * shape.batch, MULTIPROCESSORS[arch])
    some = FEW_ROWS if shape.m <= 16 else CONFIGURATIONS[arch]
    return [c for c in some if occupied(c) == max(map(occupied, some))]


def triton_run(shape, arch, configuration, by_descriptors, inputs, folder, fusec_run):
    rows, columns, depth, warps, stages = configuration
    constants = {"m": shape.m, "n": shape.n, "k": shape.k, "TURNED": shape.transposed, "ROWS": rows, "COLUMNS": columns,
                 "DEPTH": depth, "GROUP": 8}
    kernel, types = matmul, {"x": shape.dtype, "w": shape.dtype, "bias": shape.result, "y": shape.result}
    signature = {name: "*" + LETTERS[dtype] for name, dtype in types.items()}
    if by_descriptors:
        kernel = described
        boxes = {"x": (rows, depth), "w": (columns, depth) if shape.transposed else (depth, columns), "y": (rows, columns)}
        signature |= {n: f"tensordesc<{LETTERS[types[n]]}[1,{box[0]},{box[1]}]>" for n, box in boxes.items()}
    made = compiled(kernel, signature, constants, arch, warps, stages)
    if made.metadata.shared > SHARED_BYTES[arch]:
        return None
    extents = {n: [shape.batch, *s[-2:]] for n, s in tensors_of(shape).items()}
    result = f"out:y:{shape.result}:{'x'.join(map(str, extents['y']))}"
    arguments = ["in:x", "in:w", "in:bias", result]
    if by_descriptors:
        described_now = iter(made.metadata.tensordesc_meta)

        def descriptor(name, given):
            meta = next(described_now)
            s = extents[name]
            strides = [s[1] * s[2], s[2], 1]
            box = "x".join(map(str, meta["block_size"]))
            return [f"tensormap:{given}:{box}:{SWIZZLES[meta['swizzle']]}", *(f"i32:{e}" for e in s),
                    *(f"i64:{e}" for e in strides)]
        arguments = descriptor("x", "in:x") + descriptor("w", "in:w") + ["in:bias"] + descriptor("y", result)
    grid = (-(-shape.m // rows) * -(-shape.n // columns), shape.batch, 1)
    name = "described" if by_descriptors else "matmul"
    return ptx_run(made.asm["ptx"], name, grid, 32 * warps, made.metadata.shared, arguments, inputs, "y", folder, fusec_run,
                   options=sampled(shape)) | {"how": (*configuration, "TMA") if by_descriptors else configuration}


def model_of(shape):
    shapes = tensors_of(shape)
    nodes = [{"name": "p", "op": "linear" if shape.transposed else "matmul", "inputs": ["x", "w"]}]
    inputs = [{"name": n, "dtype": shape.dtype, "shape": shapes[n]} for n in "xw"]
    inputs.append({"name": "bias", "dtype": shape.result, "shape": [shape.n]})
    constants = []
    if shape.dtype != shape.result:
        nodes[0] = {"name": "p", "op": "fp8_linear", "inputs": ["x", "w", "one", "one"], "attrs": {"out_dtype": shape.result}}
        constants.append({"name": "one", "dtype": "float32", "shape": [1], "data": [1.0]})
    nodes += [{"name": "s", "op": "add", "inputs": ["p", "bias"]}, {"name": "y", "op": "gelu", "inputs": ["s"]}]
    return {"fusec": 1, "name": "product", "inputs": inputs, "constants": constants, "nodes": nodes, "outputs": ["y"]}


def check_output(who, figures, shape, x, w, bias):
    total = (x @ (numpy.swapaxes(w, -1, -2) if shape.transposed else w) + bias).ravel()
    want = total * 0.5 * (1 + numpy.vectorize(math.erf)(total / math.sqrt(2)))
    tolerance = 1e-2 if shape.result == "float16" else 3e-2
    # Ours rounds the product before the bias is added, as the graph has it: an error of the sum's size is right.
    wrong = ~(numpy.abs(figures["output"] - want) <= tolerance * numpy.maximum(1, numpy.abs(total)))  # NaN is wrong
    if wrong.any():
        sys.exit(f"compare_triton_matmul: {who}: {wrong.sum()} elements are wrong")


def compare(name, arch, folder, fusec, fusec_run):
    shape = SHAPES[name]
    random = numpy.random.default_rng([shape.m, shape.n, shape.k, arch])
    tensors, values = {}, []
    extents = tensors_of(shape)
    for n, s, dtype in (("x", extents["x"], shape.dtype), ("w", extents["w"], shape.dtype), ("bias", [shape.n], shape.result)):
        given = random.standard_normal(s, dtype=numpy.float32) * (shape.k**-0.5 if n == "w" and shape.dtype != "float8_e4m3fn" else 1)
        data, held = stored(given, dtype)
        tensors[n] = (dtype, s, data)
        values.append(held)
    inputs = os.path.join(folder, "inputs.safetensors")
    write_tensors(inputs, tensors)
    # Triton's descriptors have a batch always.
    batched_inputs = os.path.join(folder, "batched.safetensors")
    write_tensors(batched_inputs, {n: (d, [shape.batch, *s[-2:]] if n != "bias" else s, data) for n, (d, s, data) in tensors.items()})
    tried = []
    for configuration in configurations(shape, arch):
        lines = shape.k, (shape.k if shape.transposed else shape.n), shape.n
        describable = arch == 90 and shape.m >= 64 and all(e % 8 == 0 for e in lines)
        for by_descriptors in [False, True] if describable else [False]:
            tried.append(triton_run(shape, arch, configuration, by_descriptors, batched_inputs, folder, fusec_run))
    theirs = min((t for t in tried if t), key=lambda figures: whole(figures, shape))
    ours = our_run(model_of(shape), "y", arch, inputs, folder, fusec, fusec_run, sampled(shape))
    if not shape.sampled:
        for who, figures in (("our", ours), ("Triton's", theirs)):
            check_output(f"{who} {name}, sm_{arch}", figures, shape, *values)
    return shape, ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="shapes, by name, with ; between them")
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("--sample", action="store_true", help="two shapes of them")
    parser.add_argument("--markdown", default="")
    parser.add_argument("bin_dir", nargs="?", default=os.path.join(ROOT, "build", "release", "bin"))
    options = parser.parse_args()
    fusec, fusec_run = (os.path.join(options.bin_dir, p) for p in ("fusec", "fusec-run"))
    heads = ["product", "executed for 2048 multiply-adds, ours", "Triton's", "ratio", "bytes, ratio", "bank conflicts",
             "registers", "machine code", "Triton's tile, warps, stages"]
    lines, broken = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)], []
    chosen = SAMPLE if options.sample else [n for n in SHAPES if not options.only or n in options.only.split(";")]
    with tempfile.TemporaryDirectory() as folder:
        for arch in map(int, options.arch.split(",")):
            for name in (n for n in chosen if arch in SHAPES[n].arches):
                shape, ours, theirs = compare(name, arch, folder, fusec, fusec_run)
                mine, other = whole(ours, shape), whole(theirs, shape)
                moved = of_all(ours, shape, "requested_bytes") / of_all(theirs, shape, "requested_bytes")
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
