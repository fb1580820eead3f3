"""Handlers of network layers (see op_handlers.py): normalization, products, convolution, pooling, resampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sympy
import torch

from .dimensions import expression_of
from .model_file import Value
from .op_handlers import handles, require

if TYPE_CHECKING:
    from .complex_pairs import Result
    from .convert import Arguments, Converter


# --- normalization ------------------------------------------------------------------------------------------------


@handles("batch_norm.default", "native_batch_norm.default", "cudnn_batch_norm.default", "_batch_norm_no_update.default")
def batch_norm(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(not a.get("training", False), "batch_norm in training mode (call module.eval())")
    require(a["running_mean"] is not None, "batch_norm without running statistics")
    result = node.meta["val"]
    several = not isinstance(result, torch.Tensor)
    out = c.emit(
        node,
        "batch_norm",
        [a["input"], a["weight"], a["bias"], a["running_mean"], a["running_var"]],
        {"eps": a.get("eps", a.get("epsilon"))},
        like=result[0] if several else result,
    )
    return [out] + [None] * (len(result) - 1) if several else out


@handles("instance_norm.default")
def instance_norm(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(a["use_input_stats"], "instance_norm with running statistics")
    return c.emit(node, "instance_norm", [a["input"], a["weight"], a["bias"]], {"eps": a["eps"]})


@handles("native_group_norm.default")
def native_group_norm(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    out = c.emit(
        node,
        "group_norm",
        [a["input"], a["weight"], a["bias"]],
        {"num_groups": a["group"], "eps": a["eps"]},
        like=node.meta["val"][0],
    )
    return [out, None, None]


# --- attention --------------------------------------------------------------------------------------------------------


@handles(
    "_scaled_dot_product_flash_attention_for_cpu.default",
    "_scaled_dot_product_flash_attention.default",
    "_scaled_dot_product_efficient_attention.default",
    "_scaled_dot_product_cudnn_attention.default",
    "_scaled_dot_product_fused_attention_overrideable.default",
)
def fused_attention(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """What scaled_dot_product_attention calls on one device; its first result alone."""
    require(a["dropout_p"] == 0, "attention with dropout")
    require(not c.used_results(node) - {0}, "a result other than the first is used")
    operands = [a["query"], a["key"], a["value"]]
    mask = a.get("attn_mask", a.get("attn_bias"))
    attributes = {"is_causal": True} if a["is_causal"] else {}
    if a["scale"] is not None:
        attributes["scale"] = a["scale"]
    if a["query"].shape[1] != a["key"].shape[1]:
        attributes["enable_gqa"] = True
    result = node.meta["val"]
    out = c.emit(
        node,
        "scaled_dot_product_attention",
        operands if mask is None else [*operands, mask],
        attributes,
        like=result[0],
    )
    return [out] + [None] * (len(result) - 1)


# --- 8-bit and grouped products ---------------------------------------------------------------------------------------


@handles("_int_mm.default")
def int8_matmul(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """int8 factors, int32 sums."""
    return c.emit(node, "matmul", [c.cast(a[name], torch.int32, node) for name in ("self", "mat2")])


@handles("_scaled_mm.default")
def scaled_matmul(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """x [M, K] @ w [K, N] in fp8. Scales are one for each operand, or one for each row of x and each column of w.

    The format's fp8_linear takes w as [N, K].
    """
    x, w = a["self"], a["mat2"]
    fp8 = torch.float8_e4m3fn
    require(
        x.dtype == fp8 and w.dtype == fp8 and a["scale_result"] is None, "a scaled product that is not of float8_e4m3fn"
    )
    weight = c.emit(node, "transpose", [w], {"dim0": 0, "dim1": 1}, like=Value("", fp8, (w.shape[1], w.shape[0])))
    scales: list[Value] = []
    for scale, length, axis in ((a["scale_a"], x.shape[0], 0), (a["scale_b"], w.shape[1], 1)):
        one = all(expression_of(n) == 1 for n in scale.shape)
        require(one or (len(scale.shape) == 2 and expression_of(scale.shape[1 - axis]) == 1), "block scales")
        length = 1 if one else length
        like = Value("", scale.dtype, (length,))
        flat = len(scale.shape) == 1
        scales.append(scale if flat else c.emit(node, "reshape", [scale], {"shape": [length]}, like=like))
    bias = [a["bias"]] if a["bias"] is not None else []
    return c.emit(node, "fp8_linear", [x, weight, *scales, *bias], {"out_dtype": node.meta["val"].dtype})


@handles("_grouped_mm.default")
def grouped_matmul(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(
        len(a["self"].shape) == 2 and len(a["mat2"].shape) == 3 and a["offs"] is not None,
        "a grouped product not over the rows of x",
    )
    offsets = c.cast(a["offs"], torch.int32, node)
    bias = [a["bias"]] if a["bias"] is not None else []
    like = Value("", a["self"].dtype, tuple(node.meta["val"].shape))
    product = c.emit(node, "grouped_matmul", [a["self"], a["mat2"], offsets, *bias], like=like)
    return c.cast(product, node.meta["val"].dtype, node)


@handles("grouped_mm_fallback.default", library="transformers")
def transformers_grouped_matmul(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return c.emit(node, "grouped_matmul", [a["input"], a["weight"], c.cast(a["offs"], torch.int32, node)])


# --- convolutions, pooling, resampling ----------------------------------------------------------------------------


def batched(
    c: Converter,
    node: torch.fx.Node,
    source: Value,
    spatial: int,
    emit: Callable[[Value, Value | None], Value],
) -> Value:
    """Runs `emit(source, like)`, on a batch of one where `source` has no batch dimension."""
    if len(source.shape) == spatial + 2:
        return emit(source, None)
    result = node.meta["val"]
    one = c.emit(node, "unsqueeze", [source], {"dim": 0}, like=Value("", source.dtype, (1, *source.shape)))
    out = emit(one, Value("", result.dtype, (1, *result.shape)))
    return c.emit(node, "squeeze", [out], {"dim": 0})


def window(a: Arguments, *names: str, **defaults: int) -> dict[str, Any]:
    """The arguments `names` that differ from their defaults."""
    found: dict[str, Any] = {}
    for name in names:
        value, default = a.get(name), defaults.get(name)
        values = value if isinstance(value, list) else [value]
        if value is not None and value != [] and not all(v == default for v in values):
            found[name] = value
    return found


CONVOLUTION_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "output_padding": 0}


def convolution_call(c: Converter, node: torch.fx.Node, op: str, spatial: int, a: Arguments) -> Value:
    attributes = window(a, *CONVOLUTION_DEFAULTS, **CONVOLUTION_DEFAULTS)
    operands = [a["weight"]] + ([a["bias"]] if a["bias"] is not None else [])
    return batched(
        c, node, a["input"], spatial, lambda x, like: c.emit(node, op, [x, *operands], attributes, like=like)
    )


@handles(*(f"conv{n}d.{overload}" for n in (1, 2, 3) for overload in ("default", "padding")))
def convolution(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    spatial = len(a["weight"].shape) - 2
    return convolution_call(c, node, f"conv{spatial}d", spatial, a)


@handles("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def transposed_convolution(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    spatial = len(a["weight"].shape) - 2
    return convolution_call(c, node, f"conv_transpose{spatial}d", spatial, a)


@handles("convolution.default", "_convolution.default")
def any_convolution(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    spatial = len(a["weight"].shape) - 2
    if not a["transposed"]:
        a = {**a, "output_padding": None}
    return convolution_call(c, node, f"conv{'_transpose' if a['transposed'] else ''}{spatial}d", spatial, a)


@handles(
    *(f"{kind}_pool{n}d{tail}.default" for n in (1, 2, 3) for kind in ("max", "avg") for tail in ("", "_with_indices"))
)
def pool(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(a.get("divisor_override") is None, "avg_pool with divisor_override")
    kind, spatial = ("max", "avg")["avg" in str(node.target)], int(str(node.target).split("pool")[1][0])
    attributes = {"kernel_size": a["kernel_size"]}
    if a.get("stride") and a["stride"] != a["kernel_size"]:
        attributes["stride"] = a["stride"]
    attributes |= window(
        a,
        "padding",
        "dilation",
        "ceil_mode",
        "count_include_pad",
        padding=0,
        dilation=1,
        ceil_mode=False,
        count_include_pad=True,
    )
    if "indices" in str(node.target):
        result = node.meta["val"][0]
        require(len(a["self"].shape) == spatial + 2, "max_pool with indices and without a batch dimension")
        return [c.emit(node, f"max_pool{spatial}d", [a["self"]], attributes, like=result), None]
    return batched(
        c, node, a["self"], spatial, lambda x, like: c.emit(node, f"{kind}_pool{spatial}d", [x], attributes, like=like)
    )


@handles("adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    attributes = {"output_size": a["output_size"]}
    return batched(
        c, node, a["self"], 2, lambda x, like: c.emit(node, "adaptive_avg_pool2d", [x], attributes, like=like)
    )


@handles(
    "upsample_nearest2d.vec", "upsample_nearest2d.default", "upsample_bilinear2d.vec", "upsample_bilinear2d.default"
)
def interpolate(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    result, source = node.meta["val"], a["self"] if "self" in a else a["input"]
    scales = a.get("scale_factors") or [a.get("scales_h"), a.get("scales_w")]
    for axis, scale in zip((2, 3), scales):
        # The format's interpolate maps by the ratio of the sizes. Another scale would select other pixels.
        exact = sympy.Rational(scale or 1) * expression_of(source.shape[axis]) == expression_of(result.shape[axis])
        require(
            scale is None or a.get("align_corners") or exact,
            "interpolate by a scale that is not the ratio of the sizes",
        )
    attributes: dict[str, Any] = {"size": list(result.shape[2:])}
    if "bilinear" in str(node.target):
        attributes["mode"] = "bilinear"
        attributes |= {"align_corners": True} if a["align_corners"] else {}
    return c.emit(node, "interpolate", [source], attributes)
