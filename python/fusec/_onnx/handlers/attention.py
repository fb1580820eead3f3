"""Attention as the format has it; with a cache, a soft cap or a window it is taken apart into its function body."""

from __future__ import annotations

from ..emitter import Emitter
from ..node import OnnxNode
from ..registry import handles, require
from ..sizes import Size
from ..values import Value


@handles("Attention")
def attention(n: OnnxNode) -> Value:
    e, q, k, v, mask = n.emitter, n.tensor(0), n.tensor(1), n.tensor(2), n.get(3)
    plain = (
        all(n.get(i) is None for i in (4, 5, 6))
        and not any(n.uses(i) for i in (1, 2, 3))
        and not n.number("softcap")
        and not n.has("softmax_precision")
        and n.integer("left_window_size", -1) < 0
        and n.integer("right_window_size", -1) < 0
    )
    require(plain, "attention with a cache, a soft cap, a window, or scores as a result")
    causal = bool(n.integer("is_causal"))
    require(not (causal and mask is not None), "a mask of a causal attention")
    flat = q.rank == 3
    if flat:
        q, k, v = (
            _heads(e, x, n.integer(a)) for x, a in ((q, "q_num_heads"), (k, "kv_num_heads"), (v, "kv_num_heads"))
        )
    if mask is not None:
        fits = mask.rank >= 2 and mask.shape[-1] == k.shape[2] and mask.shape[-2] in (1, q.shape[2])
        require(fits and mask.dtype in ("bool", q.dtype), "a mask that is padded, or of another type")
    grouped = q.shape[1] != k.shape[1]
    y = e.op(
        "scaled_dot_product_attention",
        q,
        k,
        v,
        mask,
        is_causal=causal or None,
        scale=n.number("scale") if n.has("scale") else None,
        enable_gqa=grouped or None,
    )
    return e.reshape(e.permute(y, [0, 2, 1, 3]), [y.shape[0], y.shape[2], y.shape[1] * y.shape[3]]) if flat else y


def _heads(e: Emitter, x: Value, heads: int) -> Value:
    """[batch, length, heads * width] -> [batch, heads, length, width]"""
    width = x.shape[2] // heads
    require(not isinstance(width, Size) or heads == 1, "a symbolic width of heads")
    return e.permute(e.reshape(x, [x.shape[0], x.shape[1], heads, width]), [0, 2, 1, 3])
