// Collectives between devices. They are opaque: the host part calls NCCL for them.
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

std::vector<ValueType> infer_all_reduce(const OpCall& call) {
  return {tensor_operand(call, 0)};
}

// The type of all_gather and reduce_scatter. The file does not contain the group's size, so the node declares its
// output type. It differs from the operand's in one dimension, which is larger if `gathers`.
std::vector<ValueType> declared_along_dim(const OpCall& call, bool gathers) {
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  const std::size_t dim = dim_attribute(call, "dim", x.rank());
  if (call.declared.size() != 1)
    fail("outputs", "the output's type is not declared", "no dtype and shape", "an object with name, dtype and shape",
         "the size of the group is not known here");
  if (call.declared[0].is_tuple) fail("outputs/0", "wrong type", "a tuple", "a tensor");
  const TensorType& type = call.declared[0].tensor;
  if (type.dtype != x.dtype)
    fail("outputs/0/dtype", "dtype does not agree", std::string(name(type.dtype)), std::string(name(x.dtype)));
  if (type.rank() != x.rank())
    fail("outputs/0/shape", "shape does not agree", text_of(call, type.shape), "rank " + std::to_string(x.rank()));
  for (std::size_t d = 0; d < x.rank(); ++d)
    if (d != dim)
      require_equal(call, x.shape[d], type.shape[d], "the dimensions of a collective and its operand",
                    "outputs/0/shape/" + std::to_string(d));
  const Dim& whole = gathers ? type.shape[dim] : x.shape[dim];
  const Dim& part = gathers ? x.shape[dim] : type.shape[dim];
  if (whole.is_constant() && part.is_constant() && !part.is(0))
    require_divisible(call, whole, part, "the parts of a collective", "outputs/0/shape/" + std::to_string(dim));
  return {type};
}

OpDef collective_row(std::string op, std::string summary, std::vector<AttributeSpec> attributes,
                     std::function<std::vector<ValueType>(const OpCall&)> infer) {
  OpDef def{.name = std::move(op), .family = "communication", .summary = std::move(summary)};
  def.operands = {"x"};
  def.attributes = std::move(attributes);
  def.infer = std::move(infer);
  def.special = Special::kCollective;
  def.pattern = OpPattern::kOpaque;
  return def;
}

}  // namespace

std::vector<OpDef> communication_ops() {
  using enum AttributeType;
  const AttributeSpec group{"group", kText, true}, reduce_op{"reduce_op", kText}, dim{"dim", kInteger, true};
  return {
      collective_row("all_reduce", "The tensors of all members of a group, reduced, on each of them.",
                     {group, reduce_op}, infer_all_reduce),
      collective_row("all_gather", "The tensors of all members of a group, one after the other along a dimension.",
                     {group, dim}, [](const OpCall& call) { return declared_along_dim(call, true); }),
      collective_row("reduce_scatter",
                     "The tensors of all members of a group, reduced, a part of a dimension on each of them.",
                     {group, dim, reduce_op}, [](const OpCall& call) { return declared_along_dim(call, false); }),
  };
}

}  // namespace fusec::ops
