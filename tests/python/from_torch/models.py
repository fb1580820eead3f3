"""Small models of many kinds, written as their users write them. Each function returns module, example arguments and,
where dimensions are symbolic, dynamic shapes; all have random weights from a fixed seed."""

import math

import torch
from torch import nn
from torch.nn import functional as F

Dim = torch.export.Dim


def filled(module, seed=0):
    """Random parameters and running statistics: a fresh batch norm is nearly the identity and hides mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point() and "cache" not in name and "inv_freq" not in name:
                noise = torch.rand(tensor.shape, generator=generator) - 0.5
                centre = 1.0 if tensor.dim() == 1 and ("weight" in name or "var" in name) else 0.0
                tensor.copy_(centre + noise * (1.0 if tensor.dim() == 1 else 2 / math.sqrt(max(tensor.shape[-1], 1))))
    return module.eval()


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def randint(high, *shape, seed=2):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


# --- state space model --------------------------------------------------------------------------------------------


class SelectiveScan(nn.Module):
    """A Mamba block: causal depthwise convolution, input-dependent state transition, a scan over the sequence."""

    def __init__(self, width=12, inner=16, state=4, rank=3):
        super().__init__()
        self.state, self.rank, self.inner = state, rank, inner
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.x_proj = nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.A_log = nn.Parameter(torch.zeros(inner, state))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        length = x.shape[1]
        hidden, gate = self.in_proj(x).chunk(2, dim=-1)
        hidden = F.silu(self.conv(hidden.transpose(1, 2))[..., :length]).transpose(1, 2)
        dt, B, C = self.x_proj(hidden).split([self.rank, self.state, self.state], dim=-1)
        dt = F.softplus(self.dt_proj(dt))
        decay = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.A_log.float()))
        drive = (dt * hidden).unsqueeze(-1) * B.unsqueeze(2)
        state, outputs = torch.zeros_like(decay[:, 0]), []
        for t in range(length):
            state = decay[:, t] * state + drive[:, t]
            outputs.append(torch.einsum("bis,bs->bi", state, C[:, t]))
        y = torch.stack(outputs, dim=1) + hidden * self.D
        return self.out_proj(y * F.silu(gate))


def mamba():
    return filled(SelectiveScan()), (rand(2, 5, 12),)


# --- convolutional networks ---------------------------------------------------------------------------------------


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(F.adaptive_avg_pool2d(x, 1)))))


class InvertedResidual(nn.Module):
    def __init__(self, channels, wide, kernel, act):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            act(),
            nn.Conv2d(wide, wide, kernel, padding=kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            act(),
            SqueezeExcite(wide, 4),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return x + self.block(x)


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(inplace=True)
        )
        self.blocks = nn.Sequential(
            InvertedResidual(8, 16, 3, lambda: nn.ReLU(inplace=True)), InvertedResidual(8, 24, 5, nn.Hardswish)
        )
        self.classifier = nn.Sequential(
            nn.Linear(8, 16), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(16, 10)
        )

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def mobilenet_v3():
    return filled(MobileNetV3()), (rand(2, 3, 17, 15),), {"x": {0: Dim("batch", min=1, max=64)}}


class UNet(nn.Module):
    """Down, up by interpolation and by transposed convolution, odd sizes padded, group norm and silu."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding="same")
        self.norm1, self.norm2, self.norm3 = nn.GroupNorm(4, 8), nn.GroupNorm(4, 16), nn.InstanceNorm2d(8, affine=True)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.mid, self.out = nn.Conv2d(16, 8, 3, padding=1, padding_mode="reflect"), nn.Conv2d(8, 2, 1)
        self.slope = nn.PReLU(8)

    def forward(self, x):
        a = F.silu(self.norm1(self.down1(x)))
        b = F.silu(self.norm2(self.down2(F.max_pool2d(a, 2))))
        c = F.interpolate(F.avg_pool2d(b, 2), scale_factor=2, mode="nearest")
        c = F.interpolate(c, size=b.shape[-2:], mode="bilinear", align_corners=False) + b
        up = self.up(c)
        up = F.pad(up, [0, a.shape[-1] - up.shape[-1], 0, a.shape[-2] - up.shape[-2]])
        return self.out(self.slope(self.norm3(self.mid(torch.cat([up, a], dim=1)))))


def unet():
    return filled(UNet()), (rand(2, 3, 13, 18),)


# --- transformers -------------------------------------------------------------------------------------------------


class RotaryAttention(nn.Module):
    """Llama's: grouped queries, rotary positions computed from position ids, causal."""

    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, groups, groups))
        self.o = nn.Linear(width, width, bias=False)
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, self.size, 2) / self.size), persistent=False)

    def rotate(self, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin

    def forward(self, x, positions):
        batch, length, _ = x.shape
        angles = positions[:, :, None].float() * self.inv_freq
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        q = self.rotate(self.q(x).view(batch, length, self.heads, -1).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(x).view(batch, length, self.groups, -1).transpose(1, 2), cos, sin)
        v = self.v(x).view(batch, length, self.groups, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


class LlamaBlock(nn.Module):
    def __init__(self, width=32, hidden=48):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width)
        self.attention = RotaryAttention(width)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, positions):
        x = x + self.attention(self.attention_norm(x), positions)
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def llama_block():
    batch, tokens = Dim("batch", min=1, max=8), Dim("tokens", min=1, max=512)
    shapes = {"x": {0: batch, 1: tokens}, "positions": {0: batch, 1: tokens}}
    return (
        filled(LlamaBlock()).to(torch.bfloat16),
        (rand(2, 7, 32).to(torch.bfloat16), torch.arange(7).repeat(2, 1)),
        shapes,
    )


class ComplexRotary(nn.Module):
    """Rotary positions as the first Llama had them: complex numbers of length one, multiplied."""

    def __init__(self, size=8, room=32):
        super().__init__()
        angles = torch.outer(torch.arange(room).float(), 1.0 / 10000 ** (torch.arange(0, size, 2) / size))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles), persistent=False)
        self.scale = nn.Parameter(torch.ones(size // 2))

    def forward(self, q, k, start: int = 3):
        turn = self.freqs_cis[start : start + q.shape[1]].view(1, q.shape[1], 1, -1)
        turned = [
            torch.view_as_real(torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * turn)
            .flatten(3)
            .type_as(x)
            for x in (q, k)
        ]
        stretched = torch.polar(self.scale.expand(3, -1), q[0, :3, 0, ::2].float()) * turn[0, :3, 0].conj()
        return turned[0], turned[1], stretched.abs() + stretched.imag


def complex_rotary():
    return filled(ComplexRotary()), (rand(2, 5, 3, 8).half(), rand(2, 5, 1, 8).half())


class CachedGPT(nn.Module):
    """A GPT-2 with a key/value cache in buffers, written in place at the position of the new tokens."""

    def __init__(self, vocabulary=50, width=24, heads=3, layers=2, room=16):
        super().__init__()
        self.heads, self.room = heads, room
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(room, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "proj": nn.Linear(width, width),
                    "ln2": nn.LayerNorm(width),
                    "fc": nn.Linear(width, 4 * width),
                    "out": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight  # tied
        for i in range(layers):
            self.register_buffer(f"k_cache{i}", torch.zeros(1, heads, room, width // heads))
            self.register_buffer(f"v_cache{i}", torch.zeros(1, heads, room, width // heads))

    def forward(self, ids, position):
        x = self.tokens(ids) + self.places(position)
        mask = torch.arange(self.room)[None, :] <= position[:, None]
        for i, layer in enumerate(self.layers):
            q, k, v = layer["qkv"](layer["ln1"](x)).chunk(3, dim=-1)
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
            k_cache, v_cache = getattr(self, f"k_cache{i}"), getattr(self, f"v_cache{i}")
            k_cache.index_copy_(2, position, k)
            v_cache[:, :, position] = v
            y = F.scaled_dot_product_attention(q, k_cache, v_cache, attn_mask=mask)
            x = x + layer["proj"](y.transpose(1, 2).flatten(-2))
            x = x + layer["out"](F.gelu(layer["fc"](layer["ln2"](x)), approximate="tanh"))
        return {"logits": self.head(self.norm(x))}


def gpt2_cached():
    return filled(CachedGPT()), (randint(50, 1, 3), torch.tensor([4, 5, 6]))


class ViT(nn.Module):
    """Patches by convolution, a class token, nn.TransformerEncoder as the library has it."""

    def __init__(self, width=16, patches=9):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, stride=4)
        self.token, self.place = (
            nn.Parameter(torch.zeros(1, 1, width)),
            nn.Parameter(torch.zeros(1, patches + 1, width)),
        )
        layer = nn.TransformerEncoderLayer(width, 2, 32, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 5)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        return self.head(self.encoder(x)[:, 0]).log_softmax(-1)


def vit():
    return filled(ViT()), (rand(2, 3, 12, 12),), ({0: Dim("batch", min=2, max=32)},)


class Conformer(nn.Module):
    """A speech encoder: strided convolutions, a half feed-forward, attention with a padding mask, GLU convolution."""

    def __init__(self, mels=10, width=16, heads=2):
        super().__init__()
        self.sub1, self.sub2 = nn.Conv1d(mels, width, 3, padding=1), nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.ff_norm, self.ff1, self.ff2 = nn.LayerNorm(width), nn.Linear(width, 32), nn.Linear(32, width)
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.conv_norm, self.pointwise1 = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.depthwise, self.batch_norm = nn.Conv1d(width, width, 5, padding=2, groups=width), nn.BatchNorm1d(width)
        self.pointwise2, self.final = nn.Conv1d(width, width, 1), nn.LayerNorm(width)
        frequencies = torch.exp(-math.log(10000.0) * torch.arange(width // 2) / (width // 2 - 1))
        angles = torch.arange(64)[:, None] * frequencies
        self.register_buffer("sinusoids", torch.cat([angles.sin(), angles.cos()], dim=1))

    def forward(self, mel, padding):
        x = F.gelu(self.sub2(F.gelu(self.sub1(mel)))).transpose(1, 2)
        x = x * math.sqrt(x.shape[-1]) + self.sinusoids[: x.shape[1]]
        x = x + 0.5 * self.ff2(F.dropout(F.silu(self.ff1(self.ff_norm(x))), 0.1, self.training))
        h = self.norm(x)
        x = x + self.attention(h, h, h, key_padding_mask=padding, need_weights=False)[0]
        h = F.glu(self.pointwise1(self.conv_norm(x).transpose(1, 2)), dim=1)
        x = x + self.pointwise2(F.silu(self.batch_norm(self.depthwise(h)))).transpose(1, 2)
        return self.final(x).masked_fill(padding.unsqueeze(-1), float("-inf")).amax(dim=1)


def conformer():
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1, 6:] = True
    return filled(Conformer()), (rand(2, 10, 18), padding)


# --- recommendation, recurrence, graphs, mixtures -----------------------------------------------------------------


class DLRM(nn.Module):
    """Embedding bags (sum and mean), a bottom and a top network, pairwise dot products of the features."""

    def __init__(self, width=8):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, width, mode=mode) for n, mode in ((11, "sum"), (7, "mean")))
        self.ragged = nn.EmbeddingBag(13, width, mode="mean")
        self.bottom = nn.Sequential(nn.Linear(5, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense, indices, items, offsets):
        dense = self.bottom(dense)
        features = torch.stack(
            [dense, *(bag(i) for bag, i in zip(self.bags, indices)), self.ragged(items, offsets)], dim=1
        )
        products = torch.bmm(features, features.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.rows, self.columns]], dim=1)).squeeze(-1)


def dlrm():
    indices = [randint(11, 3, 4), randint(7, 3, 2)]
    return filled(DLRM()), (rand(3, 5), indices, randint(13, 8), torch.tensor([0, 2, 7]))


class Recurrent(nn.Module):
    """A bidirectional LSTM and a GRU over the same sequence."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4, batch_first=True)

    def forward(self, x):
        h, _ = self.lstm(x)
        out, last = self.gru(h)
        return out, last


def recurrent():
    return filled(Recurrent()), (rand(2, 4, 6),)


class MixtureOfExperts(nn.Module):
    """Two experts a token, chosen by top-k and applied densely with weights scattered back."""

    def __init__(self, width=8, hidden=12, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.w1, self.w2 = (
            nn.Parameter(torch.zeros(experts, width, hidden)),
            nn.Parameter(torch.zeros(experts, hidden, width)),
        )

    def forward(self, x):
        scores, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        scores = scores / scores.sum(-1, keepdim=True)
        weights = torch.zeros(x.shape[0], 4).scatter(1, chosen, scores)
        h = F.relu(torch.einsum("td,edh->eth", x, self.w1))
        return torch.einsum("eth,ehd,te->td", h, self.w2, weights), F.one_hot(chosen, 4).sum((0, 1))


def mixture_of_experts():
    return filled(MixtureOfExperts()), (rand(5, 8),), {"x": {0: Dim("tokens", min=2, max=256)}}


class GraphConvolution(nn.Module):
    """Messages gathered along edges and added up at their targets."""

    def __init__(self, width=6):
        super().__init__()
        self.message, self.update = nn.Linear(width, width), nn.Linear(2 * width, width)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        messages = F.leaky_relu(self.message(x[source]), 0.2)
        total = torch.zeros_like(x).index_add(0, target, messages)
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones(target.shape[0])).clamp(min=1)
        return F.elu(self.update(torch.cat([x, total / degree[:, None]], dim=-1)))


def graph_convolution():
    return filled(GraphConvolution()), (rand(5, 6), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 0, 2, 2, 4]]))


class Corners(nn.Module):
    """What Python makes easy and exporters get wrong: in-place writes, negative and mixed indices, numbers, sizes."""

    def forward(self, x, index, count):
        y = x.clone()
        y[:, 1:3] = 0.5
        y[:, -1] += x.sum(-1)
        y[y > 2] = -1
        z = x[index - 3][:, None] + x.T[[0, 2]].unsqueeze(-1).mean()
        tail = x[-2:, ::2].flip(0).roll(1, 1)
        size = torch.full((2,), x.shape[0]) / x.shape[1] + torch.tensor([1, 2]) * x.shape[0] ** 2
        whole = torch.div(count, 2, rounding_mode="floor") + count // 3 - count % 4
        least, where = x.min(dim=1)
        spread = torch.var_mean(x, dim=0, correction=0)
        bounded = x.clamp(max=0.75).sub(count.float().mean(), alpha=2).masked_fill(x == x.max(), float("inf"))
        return {
            "y": y,
            "z": z,
            "tail": tail,
            "size": size,
            "whole": whole,
            "least": least,
            "where": where,
            "spread": spread[0] + spread[1],
            "bounded": bounded,
            "bucket": torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
            "same": x,
            "finite": torch.isfinite(bounded),
        }


def corners():
    return (
        Corners(),
        (rand(6, 5), torch.tensor([0, 5, 3]), randint(20, 4)),
        ({0: Dim("rows", min=3, max=99)}, None, None),
    )


ALL = {
    f.__name__: f
    for f in (
        mamba,
        mobilenet_v3,
        unet,
        llama_block,
        complex_rotary,
        gpt2_cached,
        vit,
        conformer,
        dlrm,
        recurrent,
        mixture_of_experts,
        graph_convolution,
        corners,
    )
}
