"""Compiles Triton kernels to PTX for sm_80 and sm_90, without a GPU: softmax, layer norm, matmul (with and without
software pipelining, by tensor descriptors), attention, atomics, sort and scan. tests/emulator/triton.cpp runs them.

  python3 triton_kernels.py DIRECTORY

Exits with 77 where Triton is missing.
"""
import sys

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as error:
    print(error)
    sys.exit(77)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + column, e / tl.sum(e, 0), mask=mask)


@triton.jit
def layernorm(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=0.0)
    distance = tl.where(mask, value - tl.sum(value, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(distance * distance, 0) / n + eps)
    result = distance * scale * tl.load(w + column, mask=mask) + tl.load(b + column, mask=mask)
    tl.store(y + row * n + column, result, mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * K + inner[None, :]
    pb = b + inner[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def matmul_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    from_a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    from_b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    to_c = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        acc = tl.dot(from_a.load([row, k]), from_b.load([column, k]).T, acc)
    to_c.store([row, column], acc)


@triton.jit
def counts(x, bins, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(bins + value, 1, mask=at < n)
    tl.atomic_add(total, tl.sum(value, 0))


@triton.jit
def sorted_rows(x, y, sums, n: tl.constexpr):
    row = tl.program_id(0) * n + tl.arange(0, n)
    value = tl.load(x + row)
    tl.store(y + row, tl.sort(value))
    tl.store(sums + row, tl.cumsum(value, 0))


@triton.jit
def attention(q, k, v, o, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + inner[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, T, BN):
        columns = start + tl.arange(0, BN)
        scores = tl.dot(queries, tl.load(k + columns[None, :] * D + inner[:, None])) * scale
        now = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - now[:, None])
        fade = tl.exp(most - now)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + columns[:, None] * D + inner[None, :]), acc * fade[:, None])
        most = now
    tl.store(o + rows[:, None] * D + inner[None, :], acc / total[:, None])


def compile_kernel(function, signature, constants, path, arch):
    # Pointers and sizes are multiples of 16, as Triton's launcher would find out.
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t[0] == "*" or t == "i32"}
    source = ASTSource(fn=function, signature={**signature, **{name: "constexpr" for name in constants}},
                       constexprs=constants, attrs=aligned)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4})
    with open(path, "w") as file:
        file.write(made.asm["ptx"])


def main():
    folder = sys.argv[1]
    halves = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    for arch in (80, 90):
        compile_kernel(softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 512},
                       f"{folder}/softmax_{arch}.ptx", arch)
        compile_kernel(layernorm, {"x": "*fp32", "w": "*fp32", "b": "*fp32", "y": "*fp32", "n": "i32", "eps": "fp32"},
                       {"BLOCK": 512}, f"{folder}/layernorm_{arch}.ptx", arch)
        for stages in (1, 3):
            compile_kernel(matmul, halves, {"BM": 64, "BN": 64, "BK": 32, "STAGES": stages},
                           f"{folder}/matmul{stages}_{arch}.ptx", arch)
        compile_kernel(attention, {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp32", "T": "i32", "scale": "fp32"},
                       {"BM": 64, "BN": 32, "D": 64}, f"{folder}/attention_{arch}.ptx", arch)
        compile_kernel(counts, {"x": "*i32", "bins": "*i32", "total": "*i32", "n": "i32"}, {"BLOCK": 256},
                       f"{folder}/counts_{arch}.ptx", arch)
        compile_kernel(sorted_rows, {"x": "*fp32", "y": "*fp32", "sums": "*fp32"}, {"n": 256},
                       f"{folder}/sorted_{arch}.ptx", arch)
    compile_kernel(matmul_descriptors, halves, {"BM": 64, "BN": 64, "BK": 64}, f"{folder}/descriptors_90.ptx", 90)


main()
