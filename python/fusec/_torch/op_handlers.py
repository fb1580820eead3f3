"""Handlers of ATen operators that need more than a row of op_rows.py: attributes computed from shapes, casts, no-ops.

Handlers of network layers are in layer_handlers.py. A handler takes the converter `c`, the node, and the node's
arguments `a` by schema name. It returns a Value, or for an operator with several results a list of Values, with None
for a result that it does not write. It raises Refused for a call that the format cannot express. The operator is then
decomposed, or reported where PyTorch has no decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import sympy
import torch

from .._importer import require as require  # other files of handlers read it here
from .dimensions import expression_of
from .model_file import Value

if TYPE_CHECKING:
    from torch.types import IntLikeType

    from .complex_pairs import Result
    from .convert import Arguments, Converter

    Handler: TypeAlias = Callable[[Converter, torch.fx.Node, Arguments], Result]
    HandlerType = TypeVar("HandlerType", bound=Handler)

HANDLERS: dict[str, Handler] = {}


def handles(*names: str, library: str = "aten") -> Callable[[HandlerType], HandlerType]:
    """Registers the decorated handler for operators of a library: "view.default", ..."""

    def register(function: HandlerType) -> HandlerType:
        for name in names:
            HANDLERS[f"{library}.{name}"] = function
        return function

    return register


def same_shape(a: Sequence[IntLikeType], b: Sequence[IntLikeType]) -> bool:
    """Whether two shapes are equal as expressions, so that no guard on a symbol is added."""
    return len(a) == len(b) and all(expression_of(x) == expression_of(y) for x, y in zip(a, b))


# --- nothing to compute -------------------------------------------------------------------------------------------


@handles(
    "detach.default",
    "detach_.default",
    "alias.default",
    "clone.default",
    "contiguous.default",
    "positive.default",
    "lift_fresh.default",
    "lift_fresh_copy.default",
    "lift.default",
    "resolve_conj.default",
    "resolve_neg.default",
    "conj.default",
    "_conj.default",
    "conj_physical.default",
    "real.default",
    "view_as.default",
)
def no_op(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    return x


@handles(
    "dropout.default",
    "feature_dropout.default",
    "alpha_dropout.default",
    "feature_alpha_dropout.default",
    "native_dropout.default",
)
def dropout(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(not a["train"] or a["p"] == 0, "dropout in training mode draws random numbers (call module.eval())")
    x: Value = a["input"]
    return [x, None] if "native" in str(node.target) else x


# --- types and shapes ---------------------------------------------------------------------------------------------


@handles(
    "_to_copy.default",
    "to.dtype",
    "to.dtype_layout",
    "to.device",
    "to.other",
    "type_as.default",
    "to.prim_Device",
    "to.prim_dtype",
    "to.prim_other",
)
@handles("convert_element_type.default", library="prims")
def cast(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return c.cast(a["self"] if "self" in a else a["a"], node.meta["val"].dtype, node)


@handles("copy.default")
def copy(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """self.copy_(src) is src, cast to self's dtype and expanded to self's shape."""
    source = c.cast(a["src"], a["self"].dtype, node)
    if same_shape(source.shape, a["self"].shape):
        return source
    return c.emit(node, "expand", [source], {"shape": list(a["self"].shape)})


@handles(
    "view.default",
    "reshape.default",
    "_unsafe_view.default",
    "view_copy.default",
    "_reshape_alias.default",
    "unflatten.int",
    "reshape_as.default",
)
def reshape(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    if same_shape(x.shape, node.meta["val"].shape):
        return x
    return c.emit(node, "reshape", [x], {"shape": list(node.meta["val"].shape)})


@handles("flatten.using_ints")
def flatten(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    if same_shape(x.shape, node.meta["val"].shape):
        return x
    return c.emit(node, "flatten", [x], {"start_dim": a["start_dim"], "end_dim": a["end_dim"]})


@handles("expand.default", "expand_as.default", "expand_copy.default", "broadcast_to.default")
def expand(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    if same_shape(x.shape, node.meta["val"].shape):
        return x
    return c.emit(node, "expand", [x], {"shape": list(node.meta["val"].shape)})


@handles("broadcast_tensors.default")
def broadcast_tensors(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return [
        t if same_shape(t.shape, like.shape) else c.emit(node, "expand", [t], {"shape": list(like.shape)}, like=like)
        for t, like in zip(a["tensors"], node.meta["val"])
    ]


@handles("t.default", "numpy_T.default", "mT.default", "adjoint.default", "matrix_H.default")
def matrix_transpose(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    rank = len(x.shape)
    if rank < 2:
        return x
    if rank > 2 and "numpy_T" in str(node.target):
        return c.emit(node, "permute", [x], {"dims": list(reversed(range(rank)))})
    return c.emit(node, "transpose", [x], {"dim0": rank - 2, "dim1": rank - 1})


@handles("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def movedim(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    rank = len(x.shape)
    source = [d % rank for d in (a["source"] if isinstance(a["source"], list) else [a["source"]])]
    target = [d % rank for d in (a["destination"] if isinstance(a["destination"], list) else [a["destination"]])]
    order = [d for d in range(rank) if d not in source]
    for place, dim in sorted(zip(target, source)):
        order.insert(place, dim)
    return x if order == list(range(rank)) else c.emit(node, "permute", [x], {"dims": order})


@handles("squeeze.default", "squeeze.dim", "squeeze.dims")
def squeeze(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    shape = x.shape
    dims = a.get("dim", list(range(len(shape))))
    dims = [d % max(len(shape), 1) for d in (dims if isinstance(dims, list) else [dims])]
    dims = [d for d in dims if d < len(shape) and expression_of(shape[d]) == 1]
    if not dims:
        return x
    return c.emit(node, "squeeze", [x], {"dim": dims[0] if len(dims) == 1 else dims})


@handles("slice.Tensor")
def slice_(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    x: Value = a["self"]
    step = a["step"]
    if step == 1 and same_shape(x.shape, node.meta["val"].shape):
        return x
    attributes = {"dim": a["dim"]}
    if a["start"] not in (None, 0):
        attributes["start"] = a["start"]
    if a["end"] is not None and a["end"] != 2**63 - 1:
        attributes["end"] = a["end"]
    if step != 1:
        attributes["step"] = step
    return c.emit(node, "slice", [x], attributes)


@handles(
    "split.Tensor",
    "split_with_sizes.default",
    "split.sizes",
    "chunk.default",
    "unsafe_split.Tensor",
    "unsafe_split_with_sizes.default",
    "unsafe_chunk.default",
    "tensor_split.sections",
    "split_with_sizes_copy.default",
)
def split(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    pieces = node.meta["val"]
    if len(pieces) == 1:
        return [a["self"]]
    dim = a["dim"] % len(a["self"].shape)
    if "chunk" in str(node.target) and len(pieces) == a["chunks"]:
        return c.emit_several(node, "chunk", [a["self"]], {"chunks": a["chunks"], "dim": a["dim"]})
    sizes = [piece.shape[dim] for piece in pieces]
    return c.emit_several(node, "split", [a["self"]], {"split_sizes": sizes, "dim": a["dim"]})


@handles("unbind.int")
def unbind(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    pieces = node.meta["val"]
    used = c.used_results(node)
    return [
        c.emit(node, "select", [a["self"]], {"dim": a["dim"], "index": i}, like=piece) if i in used else None
        for i, piece in enumerate(pieces)
    ]


@handles("cat.default", "concat.default", "concatenate.default")
def concat(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    rank = len(node.meta["val"].shape)
    # PyTorch allows an empty vector among tensors of any rank.
    parts = [t for t in a["tensors"] if rank == 1 or len(t.shape) != 1]
    if len(parts) == 1:
        return c.cast(parts[0], node.meta["val"].dtype, node)
    return c.emit(node, "concat", parts, {"dim": a["dim"]})


# --- creation -----------------------------------------------------------------------------------------------------


@handles(
    "full.default",
    "full_like.default",
    "new_full.default",
    "scalar_tensor.default",
    "zeros.default",
    "ones.default",
    "zeros_like.default",
    "zero.default",
    "fill.Scalar",
    "ones_like.default",
    "new_zeros.default",
    "new_ones.default",
    "empty.memory_format",
    "empty_like.default",
    "new_empty.default",
    "empty_strided.default",
    "new_empty_strided.default",
    "empty_permuted.default",
)
def full(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    value = next((a[key] for key in ("fill_value", "value", "s") if key in a), int("ones" in str(node.target)))
    result = node.meta["val"]
    if isinstance(value, (bool, int, float)):
        return c.full(result.shape, value, result.dtype, node)
    ones = c.full(result.shape, True if result.dtype == torch.bool else 1, result.dtype, node)
    scaled = c.emit(node, "mul", [ones, value])  # a size, or a computed scalar
    return c.cast(scaled._replace(dtype=result.dtype), result.dtype, node)


@handles("arange.default", "arange.start", "arange.start_step")
def arange(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    attributes = {"end": a["end"]}
    if a.get("start", 0) != 0:
        attributes["start"] = a["start"]
    if a.get("step", 1) != 1:
        attributes["step"] = a["step"]
    require(not any(isinstance(x, Value) for x in attributes.values()), "a range whose bounds are computed at run time")
    return c.emit(node, "arange", [], {**attributes, "dtype": node.meta["val"].dtype})


# --- pointwise ----------------------------------------------------------------------------------------------------


@handles("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    value = a["value"]
    if isinstance(value, Value):
        value = c.cast(value, a["self"].dtype, node)
    elif isinstance(value, (bool, int, float)) and not a["self"].dtype.is_floating_point:
        value = bool(value) if a["self"].dtype == torch.bool else int(value)
    return c.emit(node, "where", [a["mask"], value, a["self"]])


@handles("clamp.default", "clip.default", "clamp_min.default", "clamp_max.default")
def clamp(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """The format's clamp takes numbers. With a symbolic size as a bound it becomes maximum and minimum."""
    bounds = {key: a[key] for key in ("min", "max") if a.get(key) is not None}
    if not any(isinstance(bound, sympy.Basic) for bound in bounds.values()):
        return c.emit(node, "clamp", [a["self"]], bounds)
    result: Value = a["self"]
    for key, bound in bounds.items():
        result = c.emit(node, "maximum" if key == "min" else "minimum", [result, bound])
    return result


@handles("rrelu.default", "rrelu_with_noise_functional.default")
def rrelu(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    require(not a["training"], "rrelu in training mode draws random numbers (call module.eval())")
    several = "noise" in str(node.target)
    out = c.emit(
        node,
        "leaky_relu",
        [a["self"]],
        {"negative_slope": (a["lower"] + a["upper"]) / 2},
        like=node.meta["val"][0] if several else None,
    )
    return [out, None] if several else out


@handles("isfinite.default")
def isfinite(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    either = c.emit(node, "logical_or", [c.emit(node, "isnan", [a["self"]]), c.emit(node, "isinf", [a["self"]])])
    return c.emit(node, "logical_not", [either])


@handles("erfc.default", "special_erfc.default")
def erfc(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return c.emit(node, "sub", [1, c.emit(node, "erf", [a["self"]])])


# --- reductions ---------------------------------------------------------------------------------------------------


def reduce(
    c: Converter,
    node: torch.fx.Node,
    op: str,
    a: Arguments,
    like: torch.Tensor | Value | None = None,
    **more: Any,
) -> Value:
    """Writes the reduction `op` of a["self"]. like: its result, by default the node's. more: further attributes."""
    source = a["self"]
    if a.get("dtype") is not None:
        source = c.cast(source, a["dtype"], node)
    dims = a.get("dim")
    attributes: dict[str, Any] = {} if dims is None or dims == [] else {"dim": dims}
    if a.get("keepdim"):
        attributes["keepdim"] = True
    made: torch.Tensor | Value = node.meta["val"] if like is None else like
    narrow = op in ("sum", "prod", "cumsum", "cumprod") and made.dtype in (
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
    )
    result = Value("", torch.int64, tuple(made.shape)) if narrow else made  # sums and products of integers are int64
    if op in ("any", "all"):  # PyTorch's are uint8 for uint8
        result = Value("", torch.bool, tuple(made.shape))
    return c.cast(c.emit(node, op, [source], {**attributes, **more}, like=result), made.dtype, node)


def reductions(op: str, *overloads: str) -> None:
    """Registers a handler that writes each of the overloads as the reduction `op`."""

    @handles(*overloads)
    def handler(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
        return reduce(c, node, op, a)


reductions("sum", "sum.default", "sum.dim_IntList")
reductions("mean", "mean.default", "mean.dim")
reductions("amax", "amax.default", "max.default")
reductions("amin", "amin.default", "min.default")
reductions("prod", "prod.default", "prod.dim_int")
reductions("any", "any.default", "any.dim", "any.dims")
reductions("all", "all.default", "all.dim", "all.dims")
reductions("logsumexp", "logsumexp.default", "special_logsumexp.default")
reductions("cumsum", "cumsum.default")
reductions("cumprod", "cumprod.default")


@handles(
    "var.correction",
    "std.correction",
    "var.dim",
    "std.dim",
    "var.default",
    "std.default",
    "var_mean.correction",
    "std_mean.correction",
)
def variance(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    correction = a.get("correction", a.get("unbiased", True))
    correction = 1 if correction is None else correction
    attributes: dict[str, Any] = {}
    if correction != 1:
        attributes["correction"] = int(correction) if isinstance(correction, bool) else correction
    name = str(node.target)
    op = "var" if ".var" in name else "std"
    if "_mean" not in name:
        return reduce(c, node, op, a, **attributes)
    spread, mean = node.meta["val"]
    return [reduce(c, node, op, a, like=spread, **attributes), reduce(c, node, "mean", a, like=mean)]


@handles("linalg_vector_norm.default")
def vector_norm(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    return reduce(c, node, "vector_norm", a, **({} if a["ord"] == 2 else {"ord": a["ord"]}))


@handles("max.dim", "min.dim")
def extreme(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """The extreme value and its position: two reductions. Only those in use are written."""
    kind = "max" if "max" in str(node.target) else "min"
    used = c.used_results(node)
    return [
        reduce(c, node, op, a, like=like) if i in used else None
        for i, (op, like) in enumerate(zip(["a" + kind, "arg" + kind], node.meta["val"]))
    ]


@handles("softmax.int", "log_softmax.int", "_softmax.default", "_log_softmax.default")
def softmax(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    source = c.cast(a["self"], node.meta["val"].dtype, node)
    return c.emit(node, "log_softmax" if "log" in str(node.target) else "softmax", [source], {"dim": a["dim"]})


# --- indexing -----------------------------------------------------------------------------------------------------


@handles("_unsafe_index_put.default")
def index_put(c: Converter, node: torch.fx.Node, a: Arguments) -> Result:
    """index_put after index_rewrites.py: the indices are of the leading dimensions and count from the start."""
    require(
        all(i is not None and i.dtype in (torch.int64, torch.int32) for i in a["indices"]), "indices by mask or gap"
    )
    return c.emit(
        node, "index_put", [a["self"], a["values"], *a["indices"]], {"accumulate": True} if a["accumulate"] else {}
    )
