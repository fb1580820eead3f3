"""Products of quantized operands and of groups: what the format says they mean, in float64, rounded once."""
import torch

from model import Model, dtype, float4_e2m1fn, int4


def e8m0(*shape):
    """Powers of two from 1/16 to 16."""
    return torch.randint(123, 132, shape).to(torch.uint8).view(torch.float8_e8m0fnu)


def along_k(scales, block):
    return scales.double().repeat_interleave(block, 1)


def finished(product, bias, to):
    return (product + (0 if bias is None else bias.double())).to(dtype(to))


def quantized():
    m = Model("quantized")
    T, K, N = 5, 64, 6
    m.input("x8", torch.randint(-128, 128, (T, K)).to(torch.int8))
    m.input("w8", torch.randint(-128, 128, (N, K)).to(torch.int8))
    m.input("w4", int4((N, K)))
    m.input("wfp4", float4_e2m1fn((N, K)))
    m.input("xfp8", torch.randn(T, K).to(torch.float8_e4m3fn))
    m.input("wfp8", torch.randn(N, K).to(torch.float8_e4m3fn))
    m.input("columns", torch.rand(N) + 0.5)
    m.input("rows", torch.rand(T) + 0.5)
    m.input("one", torch.tensor([0.02]))
    m.input("offset", torch.tensor([-7]).to(torch.int8))
    m.input("bias", torch.randn(N))
    m.input("groups", torch.rand(N, 2) + 0.5)
    m.input("group_offsets", torch.randint(-3, 4, (N, 2)).to(torch.int8))
    m.input("w_blocks", e8m0(N, K // 32))
    m.input("x_blocks", e8m0(T, K // 32))

    def static(to):
        def run(x, w, w_scale, x_scale, x_offset=None, bias=None):
            x = x.double() - (0 if x_offset is None else x_offset.double())
            return finished(x @ w.double().T * x_scale.double() * w_scale.double(), bias, to)
        return run

    def static_int4(to, size):
        def run(x, w, w_scale, w_offset, x_scale, x_offset=None, bias=None):
            x = x.double() - (0 if x_offset is None else x_offset.double())
            w = (w.double() - (0 if w_offset is None else along_k(w_offset, size))) * along_k(w_scale, size)
            return finished(x @ w.T * x_scale.double(), bias, to)
        return run

    def fp8(to):
        def run(x, w, x_scale, w_scale, bias=None):
            return finished(x.double() @ w.double().T * x_scale.double()[:, None] * w_scale.double(), bias, to)
        return run

    def mxfp4(to):
        def run(x, w, w_scale, bias=None, x_scale=None):
            x = x.double() * (1 if x_scale is None else along_k(x_scale, 32))
            return finished(x @ (w.double() * along_k(w_scale, 32)).T, bias, to)
        return run

    for to in ("float32", "float16", "bfloat16"):
        attrs = {"out_dtype": to}
        grouped = attrs | {"group_size": 32}
        m.node("static_quant_linear", ["x8", "w8", "columns", "one"], attrs, static(to))
        m.node("static_quant_linear", ["x8", "w8", "columns", "one", "offset", "bias"], attrs, static(to))
        m.node("static_quant_linear", ["x8", "w8", "columns", "one", None, "bias"], attrs, static(to))
        m.node("static_quant_linear_int4", ["x8", "w4", "groups", None, "one"], grouped, static_int4(to, 32))
        m.node("static_quant_linear_int4", ["x8", "w4", "groups", "group_offsets", "one", "offset", "bias"], grouped,
               static_int4(to, 32))
        for x_scale in ("one", "rows"):
            for w_scale in ("one", "columns"):
                m.node("fp8_linear", ["xfp8", "wfp8", x_scale, w_scale, "bias"], attrs, fp8(to))
        m.node("mxfp4_linear", ["xfp8", "wfp4", "w_blocks", None, "x_blocks"], attrs, mxfp4(to))
        m.node("mxfp4_linear", ["xfp8", "wfp4", "w_blocks", "bias", "x_blocks"], attrs, mxfp4(to))
    m.input("x16", torch.randn(T, K).to(torch.bfloat16))
    m.node("mxfp4_linear", ["x16", "wfp4", "w_blocks"], {"out_dtype": "bfloat16"}, mxfp4("bfloat16"))

    def experts(x, w, offsets, bias=None):
        result, begin = torch.zeros(len(x), w.shape[2]).double(), 0
        for e, end in enumerate(offsets.tolist()):
            result[begin:end] = x[begin:end].double() @ w[e].double() + (0 if bias is None else bias[e].double())
            begin = end
        return result.to(x.dtype)

    m.input("tokens", torch.randn(9, 7))
    m.input("experts", torch.randn(4, 7, 3))
    m.input("ends", torch.tensor([2, 2, 7, 8], dtype=torch.int32))
    m.input("expert_bias", torch.randn(4, 3))
    m.node("grouped_matmul", ["tokens", "experts", "ends"], {}, experts)
    m.node("grouped_matmul", ["tokens", "experts", "ends", "expert_bias"], {}, experts)
    return m
