"""Nodes whose operands are known, computed while the model is imported; arithmetic with sizes stays symbolic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from .errors import Refused
from .node import OnnxNode
from .sizes import Dim, Size, Sizes, product, texts
from .values import WIDE, Array, Value, dtype_of, known

LARGEST = 2**16  # elements: larger results stay nodes

# Ops that draw random numbers, take subgraphs, or are said as briefly by a node.
KEPT = set(
    """RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Dropout If Loop Scan
    ConstantOfShape SequenceMap""".split()
)


ALWAYS = ("Constant", "Shape", "Size")  # which need no elements of an operand


def fold(node: OnnxNode, inferred: Mapping[str, onnx.TypeProto]) -> list[Value] | None:
    """The results, or None where the node must be written. ``inferred``: types of results by name."""
    if node.domain != "":
        return None
    if node.op == "Constant":
        return [_constant(node)]
    if node.op in ("Shape", "Size"):
        return [_shape(node)]
    if node.op == "ConstantOfShape":
        return _small_constant(node)
    if node.op in KEPT or not node.inputs:
        return None
    values = [x for x in node.inputs if x is not None]
    if not all(isinstance(x, Value) and x.is_known for x in values):
        return None
    if any(isinstance(x, Value) and x.is_symbolic for x in values):
        return _symbolic(node, inferred)
    if any(isinstance(x, Value) and x.is_weight and x.count > 64 for x in values):
        return None
    return _numeric(node)


def _constant(node: OnnxNode) -> Value:
    a = node.attributes
    if "value" in a:
        tensor = a["value"]
        array = node.converter.initializers.array(tensor)
        if array.size <= 64 or tensor.data_type in WIDE:
            return known(array, kind=tensor.data_type)
        return Value(dtype_of(tensor.data_type), array.shape, elements=array, wanted=node.name, is_weight=True)
    for name, dtype in (
        ("value_int", np.int64),
        ("value_ints", np.int64),
        ("value_float", np.float32),
        ("value_floats", np.float32),
    ):
        if name in a:
            return known(np.array(a[name], dtype))
    raise Refused("a constant that is no dense tensor of numbers")


def _shape(node: OnnxNode) -> Value:
    shape = node.tensor(0).shape
    if node.op == "Size":
        return known(_objects(np.array(product(shape), object)))
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    return known(_objects(_array(list(shape)[slice(start, end)])))


def _small_constant(node: OnnxNode) -> list[Value] | None:
    """Integers that a shape is made of; other tensors of one value are nodes."""
    given, shape = node.attributes.get("value"), node.tensor(0)
    if given is None or not shape.is_known or shape.is_symbolic or np.prod(shape.elements) > 64:
        return None
    value = onnx.numpy_helper.to_array(given).reshape(-1)
    return [known(np.full(shape.elements, value[0]))] if value.dtype.kind in "iu" else None


def _array(items: list[Any]) -> Array:
    made = np.empty(len(items), object)
    made[:] = items
    return made


def _objects(array: Array) -> Array:
    return array if array.dtype == object else array.astype(object)


# --- symbolic -----------------------------------------------------------------------------------------------------

Symbolic = Callable[[OnnxNode, list[Array]], Any]


def _binary(function: Callable[[Sizes, Dim, Dim], Any]) -> Symbolic:
    def run(node: OnnxNode, a: list[Array]) -> Any:
        sizes = node.emitter.sizes
        return np.frompyfunc(lambda x, y: function(sizes, x, y), 2, 1)(*a)

    return run


def _compared(function: Callable[[Sizes, Dim, Dim], bool]) -> Symbolic:
    inner = _binary(function)
    return lambda node, a: np.asarray(inner(node, a)).astype(bool)


def _slice(node: OnnxNode, a: list[Array]) -> Array:
    starts, ends = (node.integers("starts"), node.integers("ends")) if node.has("starts") else (a[1], a[2])
    axes = node.axes(3) or list(range(len(starts)))
    steps = a[4] if len(a) > 4 else [1] * len(starts)
    where = [slice(None)] * a[0].ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        where[axis] = slice(int(start), int(end), int(step))
    return a[0][tuple(where)]


def _squeeze(node: OnnxNode, a: list[Array]) -> Array:
    axes = node.axes()
    return a[0].squeeze() if axes is None else a[0].squeeze(tuple(axes))


def _cast(node: OnnxNode, a: list[Array]) -> Array:
    if node.integer("to") not in (TensorProto.INT64, TensorProto.INT32):
        raise Refused("a cast of sizes to another type than integers")
    return a[0]


def _reduce(op: str) -> Symbolic:
    def run(node: OnnxNode, a: list[Array]) -> Any:
        axes, keep = node.axes(), bool(node.integer("keepdims", 1))
        axis = None if axes is None else tuple(axes)
        return getattr(np, op).reduce(a[0], axis=axis if axes is not None else tuple(range(a[0].ndim)), keepdims=keep)

    return run


def _is_negative(sizes: Sizes, x: Dim) -> bool:
    """Where the symbols' bounds do not decide it, a size is taken to be none."""
    try:
        return sizes.less(x, 0)
    except Refused:
        return False


def _divide(sizes: Sizes, x: Dim, y: Dim) -> Dim:
    if _is_negative(sizes, x) or _is_negative(sizes, y):
        raise Refused("a quotient of a negative size")  # ONNX truncates, `//` rounds down
    return x // y


def _remainder(sizes: Sizes, x: Dim, y: Dim) -> Dim:
    if _is_negative(sizes, x) or _is_negative(sizes, y):
        raise Refused("a remainder of a negative size")  # the sign of the result depends on fmod
    if isinstance(x, Size):
        return x % y
    if isinstance(y, Size):
        raise Refused("a remainder by a size that varies")
    return x % y


def _absolute(node: OnnxNode, a: list[Array]) -> Any:
    sizes = node.emitter.sizes
    return np.frompyfunc(lambda x: -x if _is_negative(sizes, x) else x, 1, 1)(a[0])


def _flatten(node: OnnxNode, a: list[Array]) -> Array:
    axis = node.integer("axis", 1)
    axis = axis + a[0].ndim if axis < 0 else axis
    return a[0].reshape(int(np.prod(a[0].shape[:axis])), -1)


def _minimum(node: OnnxNode, a: list[Array]) -> Any:
    sizes, result = node.emitter.sizes, a[0]
    function = sizes.minimum if node.op == "Min" else sizes.maximum
    for other in a[1:]:
        result = np.asarray(np.frompyfunc(function, 2, 1)(result, other))
    return result


SYMBOLIC: dict[str, Symbolic] = {
    "Identity": lambda n, a: a[0],
    "Cast": _cast,
    "Gather": lambda n, a: np.take(a[0], a[1].astype(np.int64), axis=n.integer("axis")),
    "GatherElements": lambda n, a: np.take_along_axis(a[0], a[1].astype(np.int64), axis=n.integer("axis")),
    "Slice": _slice,
    "Concat": lambda n, a: np.concatenate(a, axis=n.integer("axis")),
    "Unsqueeze": lambda n, a: np.expand_dims(a[0], tuple(n.axes() or [])),
    "Squeeze": _squeeze,
    "Reshape": lambda n, a: a[0].reshape([int(d) for d in a[1]]),
    "Flatten": _flatten,
    "Transpose": lambda n, a: np.transpose(a[0], n.attributes.get("perm")),
    "Expand": lambda n, a: a[0] * np.ones([int(d) for d in a[1]], object),
    "Tile": lambda n, a: np.tile(a[0], [int(d) for d in a[1]]),
    "Add": lambda n, a: a[0] + a[1],
    "Sub": lambda n, a: a[0] - a[1],
    "Mul": lambda n, a: a[0] * a[1],
    "Neg": lambda n, a: -a[0],
    "Abs": _absolute,
    "Div": _binary(_divide),
    "Mod": _binary(_remainder),
    "Min": _minimum,
    "Max": _minimum,
    "Where": lambda n, a: np.where(a[0].astype(bool), a[1], a[2]),
    "Equal": _compared(lambda s, x, y: s.equal(x, y)),
    "Less": _compared(lambda s, x, y: s.less(x, y)),
    "Greater": _compared(lambda s, x, y: s.less(y, x)),
    "LessOrEqual": _compared(lambda s, x, y: not s.less(y, x)),
    "GreaterOrEqual": _compared(lambda s, x, y: not s.less(x, y)),
    "ReduceProd": _reduce("multiply"),
    "ReduceSum": _reduce("add"),
}


def _symbolic(node: OnnxNode, inferred: Mapping[str, onnx.TypeProto]) -> list[Value] | None:
    handler = SYMBOLIC.get(node.op)
    if handler is None or any(x is None for x in node.inputs):
        return None
    arrays = [_objects(x.elements) for x in node.inputs if isinstance(x, Value)]
    try:
        result = handler(node, arrays)
    except (Refused, ValueError, TypeError, IndexError):
        return None  # a node computes it at run time
    if isinstance(result, (int, Size)) or not isinstance(result, np.ndarray):
        result = np.array(result, object)
    output = inferred.get(node.proto.output[0])
    return [known(result, kind=output.tensor_type.elem_type if output and result.dtype == object else None)]


# --- numeric ------------------------------------------------------------------------------------------------------


def _numeric(node: OnnxNode) -> list[Value] | None:
    """By the onnx package's own reference."""
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" if x is not None else "" for i, x in enumerate(node.inputs)]
    values = [(name, x) for name, x in zip(names, node.inputs) if isinstance(x, Value)]
    made = onnx.helper.make_node(
        node.op, names, [f"y{i}" if node.uses(i) else "" for i in range(len(node.proto.output))]
    )
    try:
        for key, attribute in node.attributes.items():
            made.attribute.append(onnx.helper.make_attribute(key, attribute))
        graph = onnx.helper.make_graph(
            [made],
            "g",
            [onnx.helper.make_tensor_value_info(n, x.kind, texts(x.shape)) for n, x in values],
            [onnx.helper.make_empty_tensor_value_info(o) for o in made.output if o],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.opset)])
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, {n: x.elements for n, x in values})
        if not all(isinstance(r, (np.ndarray, np.generic)) for r in results):
            return None  # a sequence
        arrays = [np.asarray(r) for r in results]
        if any(a.size > LARGEST or a.dtype.kind in "OSU" for a in arrays):
            return None
        outputs = [known(a) for a in arrays]
    except Exception:  # noqa: BLE001 (whatever the reference cannot do becomes a node)
        return None
    used = iter(outputs)
    return [next(used) if node.uses(i) else known(np.empty(0)) for i in range(len(node.proto.output))]
