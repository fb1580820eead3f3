"""Decomposes operators that compute a whole layer: fused kernels that PyTorch's modules call in eval mode."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from .rewrites import rewrites

aten = torch.ops.aten


def _heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """[batch, length, heads * size] -> [batch, heads, length, size]"""
    split: torch.Tensor = x.unflatten(-1, (count, -1))
    return split.transpose(1, 2)


def _broadcast_mask(mask: torch.Tensor, mask_type: int | None) -> torch.Tensor:
    """The mask for scores [batch, heads, length, keys]. Types: 0 [length, keys], 1 [batch, keys], 2 has all four."""
    return mask[:, None, None, :] if mask_type == 1 else mask


@rewrites(aten._native_multi_head_attention.default)
def multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    mask: torch.Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """nn.MultiheadAttention. The mask is true, or not 0, where a key is not seen."""
    if query is key and key is value:
        q, k, v = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    q, k, v = (_heads(x, num_head) for x in (q, k, v))
    unseen = None if mask is None else _broadcast_mask(mask.to(torch.bool), mask_type)
    attention = query.new_empty([0])
    if need_weights:
        scores = (q / math.sqrt(embed_dim // num_head)) @ k.transpose(-1, -2)
        attention = torch.softmax(scores if unseen is None else scores.masked_fill(unseen, float("-inf")), -1)
        mixed = attention @ v
        attention = attention.mean(1) if average_attn_weights else attention
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=None if unseen is None else ~unseen)
    return F.linear(mixed.transpose(1, 2).flatten(-2), proj_weight, proj_bias), attention


@rewrites(aten._transformer_encoder_layer_fwd.default)
def transformer_encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """nn.TransformerEncoderLayer."""

    def norm_1(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def norm_2(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    def attend(x: torch.Tensor) -> torch.Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, mask_type=mask_type)[0]

    def feed_forward(x: torch.Tensor) -> torch.Tensor:
        x = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(x) if use_gelu else F.relu(x), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed_forward(x))
