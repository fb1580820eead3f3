"""ATen operators with a counterpart in the format, one a line:

    ATen overload    format op(operand, ...) attribute ... name=argument ... name='text'    [-> first | several]

Operands and attributes have the names of the arguments in ATen's schema. `name=argument` renames an argument,
`name='text'` is a fixed text. An argument that a row does not mention must have its default, else the call is refused
and decomposed. IGNORED lists arguments that change no value (memory_format, device, ...). `first`: only result 0 has a
counterpart. `several`: the results are name.0, name.1, ... Operators that need more than a row are in op_handlers.py.
"""

from __future__ import annotations

import re
from typing import NamedTuple

UNARY = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh
cosh tanh asinh acosh atanh erf sigmoid relu relu6 silu selu mish hardswish hardsigmoid log_sigmoid floor ceil round
trunc logical_not bitwise_not isnan isinf"""

BINARY = {  # ATen name: (format op, overloads)
    "add": ("add", "Tensor Scalar"),
    "sub": ("sub", "Tensor Scalar"),
    "mul": ("mul", "Tensor Scalar"),
    "div": ("div", "Tensor Scalar"),
    "remainder": ("remainder", "Tensor Scalar Scalar_Tensor"),
    "fmod": ("fmod", "Tensor Scalar"),
    "maximum": ("maximum", "default"),
    "minimum": ("minimum", "default"),
    "max": ("maximum", "other"),
    "min": ("minimum", "other"),
    "atan2": ("atan2", "default"),
    "true_divide": ("div", "Tensor Scalar"),
    "subtract": ("sub", "Tensor Scalar"),
    "multiply": ("mul", "Tensor Scalar"),
    "divide": ("div", "Tensor Scalar"),
    "eq": ("eq", "Tensor Scalar"),
    "ne": ("ne", "Tensor Scalar"),
    "lt": ("lt", "Tensor Scalar"),
    "le": ("le", "Tensor Scalar"),
    "gt": ("gt", "Tensor Scalar"),
    "ge": ("ge", "Tensor Scalar"),
    "logical_and": ("logical_and", "default"),
    "logical_or": ("logical_or", "default"),
    "logical_xor": ("logical_xor", "default"),
    "bitwise_and": ("bitwise_and", "Tensor Scalar Scalar_Tensor"),
    "bitwise_or": ("bitwise_or", "Tensor Scalar Scalar_Tensor"),
    "bitwise_xor": ("bitwise_xor", "Tensor Scalar Scalar_Tensor"),
}

TABLE = """
special_expit.default          sigmoid(self)
special_exp2.default           exp2(self)
special_expm1.default          expm1(self)
special_log1p.default          log1p(self)
special_erf.default            erf(self)
sgn.default                    sign(self)
fix.default                    trunc(self)
log_sigmoid_forward.default    log_sigmoid(self) -> first
gelu.default                   gelu(self) approximate
leaky_relu.default             leaky_relu(self) negative_slope
elu.default                    elu(self) alpha
softplus.default               softplus(self) beta threshold
hardtanh.default               hardtanh(self) min_val max_val

div.Tensor_mode                div(self, other) rounding_mode
div.Scalar_mode                div(self, other) rounding_mode
floor_divide.default           div(self, other) rounding_mode='floor'
floor_divide.Scalar            div(self, other) rounding_mode='floor'
rsub.Tensor                    sub(other, self)
rsub.Scalar                    sub(other, self)
pow.Tensor_Scalar              pow(self, exponent)
pow.Tensor_Tensor              pow(self, exponent)
pow.Scalar                     pow(self, exponent)
_prelu_kernel.default          prelu(self, weight)
lerp.Tensor                    lerp(self, end, weight)
lerp.Scalar                    lerp(self, end, weight)
addcmul.default                addcmul(self, tensor1, tensor2) value
addcdiv.default                addcdiv(self, tensor1, tensor2) value
where.self                     where(condition, self, other)
where.ScalarSelf               where(condition, self, other)
where.ScalarOther              where(condition, self, other)
where.Scalar                   where(condition, self, other)

permute.default                permute(self) dims
transpose.int                  transpose(self) dim0 dim1
swapaxes.default               transpose(self) dim0=axis0 dim1=axis1
unsqueeze.default              unsqueeze(self) dim
select.int                     select(self) dim index
stack.default                  stack(tensors) dim
pad.default                    pad(self) pad mode value
constant_pad_nd.default        pad(self) pad value
reflection_pad1d.default       pad(self) pad=padding mode='reflect'
reflection_pad2d.default       pad(self) pad=padding mode='reflect'
reflection_pad3d.default       pad(self) pad=padding mode='reflect'
replication_pad1d.default      pad(self) pad=padding mode='replicate'
replication_pad2d.default      pad(self) pad=padding mode='replicate'
replication_pad3d.default      pad(self) pad=padding mode='replicate'
flip.default                   flip(self) dims
roll.default                   roll(self) shifts dims
repeat.default                 repeat(self) repeats
repeat_interleave.self_int     repeat_interleave(self) repeats dim
tril.default                   tril(self) diagonal
triu.default                   triu(self) diagonal

prims.where.default            where(pred, a, b)
prims.fma.default              addcmul(c, a, b)

embedding.default              embedding(weight, indices)
gather.default                 gather(self, index) dim
index_select.default           index_select(self, index) dim
scatter.src                    scatter(self, index, src) dim
topk.default                   topk(self) k dim largest sorted -> several
sort.default                   sort(self) dim descending -> several
sort.stable                    sort(self) dim descending stable -> several

argmax.default                 argmax(self) dim keepdim
argmin.default                 argmin(self) dim keepdim

group_norm.default             group_norm(input, weight, bias) num_groups eps
layer_norm.default             layer_norm(input, weight, bias) normalized_shape eps
native_layer_norm.default      layer_norm(input, weight, bias) normalized_shape eps -> first
rms_norm.default               rms_norm(input, weight) normalized_shape eps
_fused_rms_norm.default        rms_norm(input, weight) normalized_shape eps -> first
_native_batch_norm_legit_no_training.default  batch_norm(input, weight, bias, running_mean, running_var) eps -> first

matmul.default                 matmul(self, other)
mm.default                     matmul(self, mat2)
mv.default                     matmul(self, vec)
dot.default                    matmul(self, tensor)
bmm.default                    bmm(self, mat2)
linear.default                 linear(input, weight, bias)
addmm.default                  addmm(self, mat1, mat2) beta alpha
scaled_dot_product_attention.default scaled_dot_product_attention(query, key, value, attn_mask) is_causal scale enable_gqa
"""

# Arguments that change no value of the result, or only how gradients and memory are kept.
IGNORED = set(
    """memory_format layout device pin_memory non_blocking copy sparse_grad scale_grad_by_freq sparse padding_idx
cudnn_enable cudnn_enabled momentum generator output_size requires_grad implicit""".split()
)


class Row(NamedTuple):
    """The counterpart of one ATen overload."""

    op: str
    operands: tuple[str, ...]
    attributes: tuple[tuple[str, str | None, str | None], ...]  # format name; ATen argument, or else a fixed text
    results: str  # "one", "first", "several"

    @property
    def mentioned(self) -> set[str]:
        """The ATen arguments that the row writes."""
        return set(self.operands) | {argument for _, argument, _ in self.attributes if argument}


def _parse(line: str) -> tuple[str, Row]:
    head, _, results = line.partition("->")
    name, rest = head.split(None, 1)
    found = re.fullmatch(r"(\w+)\(([^)]*)\)\s*(.*)", rest.strip())
    assert found is not None, line
    op, operands, attributes = found.groups()
    pairs: list[tuple[str, str | None, str | None]] = []
    for word in attributes.split():
        key, equals, value = word.partition("=")
        fixed = value.strip("'") if value.startswith("'") else None
        pairs.append((key, None if fixed is not None else (value if equals else key), fixed))
    return name if name.startswith("prims.") else "aten." + name, Row(
        op, tuple(x.strip() for x in operands.split(",")), tuple(pairs), results.strip() or "one"
    )


def _rows() -> dict[str, Row]:
    table = dict(_parse(line) for line in TABLE.splitlines() if line.strip())
    for name in UNARY.split():
        table[f"aten.{name}.default"] = table[f"prims.{name}.default"] = Row(name, ("self",), (), "one")
    for name, (op, overloads) in BINARY.items():
        for overload in overloads.split():
            table.setdefault(f"aten.{name}.{overload}", Row(op, ("self", "other"), (), "one"))
    for name in "add sub mul maximum minimum atan2 fmod pow eq ne lt le gt ge".split():
        table[f"prims.{name}.default"] = Row(name, ("self", "other"), (), "one")
    return table


ROWS = _rows()  # name of an ATen overload ("aten.gelu.default") -> Row
