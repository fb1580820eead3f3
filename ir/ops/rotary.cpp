// Rotary position embedding: rotates pairs of elements of the last dimension by an angle, given by its cosine and sine.
// The pairs are (j, j + half) or, interleaved, (2j, 2j + 1).
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

std::vector<ValueType> rope_type(const OpCall& call) {
  require_float(call, 0);
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  require_divisible(call, x.shape.back(), 2, "last dimension of x", input_place(0));
  for (const std::size_t angle : {1, 2}) {
    require_float(call, angle);
    const TensorType& type = tensor_of_min_rank(call, angle, 1);
    require_equal(call, x.shape.back(), type.shape.back(), "last dimensions of x, cos and sin", input_place(angle));
    require_broadcastable(call, angle, x.shape);
  }
  return {x};
}

// The other element of the pair, negated for the first one of the pair.
E partner(Formula& f, Formula::Index i, ScalarType type) {
  const IndexExpr& j = i.back();
  std::vector<IndexExpr> index(i.begin(), i.end());
  if (f.attributes().flag("interleaved", false)) {
    const IndexExpr odd = f.simplified(floor_mod(j, 2));
    index.back() = j + 1 - odd * 2;
    const E other = f.load(0, index, type);
    return select(f.less(odd, 1), -other, other);
  }
  const IndexExpr size = f.type(0).shape.back();
  const IndexExpr half = f.simplified(floor_div(size, 2));
  index.back() = f.simplified(floor_mod(j + half, size));
  const E other = f.load(0, index, type);
  return select(f.less(j, half), -other, other);
}

}  // namespace

std::vector<OpDef> rotary_ops() {
  OpDef row;
  row.name = "rope";
  row.family = "rotary";
  row.summary = "x * cos + (x with each pair turned by 90 degrees) * sin";
  row.operands = {"x", "cos", "sin"};
  row.attributes = {{"interleaved", AttributeType::kFlag}};
  row.infer = rope_type;
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const ScalarType type = compute_type(f.type(0).dtype);
    return f.load(0, i, type) * f.load_broadcast(1, i, type) + partner(f, i, type) * f.load_broadcast(2, i, type);
  };
  return {std::move(row)};
}

}  // namespace fusec::ops
