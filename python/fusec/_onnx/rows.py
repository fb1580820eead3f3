"""ONNX ops with a counterpart in the format, one a line:

    ONNX op    format op    attribute    attribute=ONNX attribute

Operands go in ONNX's order. What does not fit a row is in handlers/.
"""

from __future__ import annotations

from typing import NamedTuple

from .node import OnnxNode
from .values import Value

TABLE = """
Abs                abs
Acos               acos
Acosh              acosh
Add                add
And                logical_and
Asin               asin
Asinh              asinh
Atan               atan
Atanh              atanh
BitwiseAnd         bitwise_and
BitwiseNot         bitwise_not
BitwiseOr          bitwise_or
BitwiseXor         bitwise_xor
Ceil               ceil
Cos                cos
Cosh               cosh
Elu                elu                 alpha
Equal              eq
Erf                erf
Exp                exp
Floor              floor
Greater            gt
GreaterOrEqual     ge
HardSwish          hardswish
LeakyRelu          leaky_relu          negative_slope=alpha
Less               lt
LessOrEqual        le
Log                log
Mish               mish
Mul                mul
Neg                neg
Not                logical_not
Or                 logical_or
Reciprocal         reciprocal
Relu               relu
Round              round
Sigmoid            sigmoid
Sign               sign
Sin                sin
Sinh               sinh
Softplus           softplus
Sqrt               sqrt
Sub                sub
Tan                tan
Tanh               tanh
Where              where
Xor                logical_xor
"""


class Row(NamedTuple):
    op: str
    attributes: tuple[tuple[str, str], ...]  # the format's name, ONNX's name


def _parse(line: str) -> tuple[str, Row]:
    name, op, *words = line.split()
    pairs = [(key, given or key) for key, _, given in (word.partition("=") for word in words)]
    return name, Row(op, tuple(pairs))


ROWS = dict(_parse(line) for line in TABLE.splitlines() if line.strip())


def row_results(node: OnnxNode, row: Row) -> Value:
    return node.emitter.op(row.op, *node.tensors(), **{k: node.attributes.get(v) for k, v in row.attributes})
