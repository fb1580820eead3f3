// scaled_dot_product_attention: softmax(q kᵀ * scale + mask) v, as nested reductions over the keys.
//
//   score[j] = scale * sum over e of q[.., i, e] * k[.., j, e], -inf where masked out
//   out[.., i, d] = sum over j of (exp(score[j] - max score) / sum exp(score - max score)) * v[.., j, d]
#include <cmath>
#include <limits>

#include "ir/ops/matrix.h"
#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;
enum : std::size_t { kQuery, kKey, kValue, kMask };

// The batch dimensions that broadcast. With grouped queries each key head serves consecutive query heads, so the head
// dimension does not broadcast.
Shape batch_of(const TensorType& type, bool grouped) {
  return {type.shape.begin(), type.shape.end() - (grouped ? 3 : 2)};
}

std::vector<ValueType> infer_attention(const OpCall& call) {
  const bool grouped = call.attributes.flag("enable_gqa", false);
  const std::size_t least = grouped ? 3 : 2;
  const TensorType& q = tensor_of_min_rank(call, kQuery, least);
  const TensorType& k = tensor_of_min_rank(call, kKey, least);
  const TensorType& v = tensor_of_min_rank(call, kValue, least);
  require_float(call, kQuery);
  require_same_dtype(call, kKey);
  require_same_dtype(call, kValue);
  require_equal(call, q.shape.back(), k.shape.back(), "the head dimensions of queries and keys", input_place(kKey));
  require_equal(call, k.shape[k.rank() - 2], v.shape[v.rank() - 2], "the numbers of keys and values",
                input_place(kValue));
  Shape shape = broadcast_shapes(call, batch_of(q, grouped), batch_of(k, grouped), input_place(kKey));
  shape = broadcast_shapes(call, shape, batch_of(v, grouped), input_place(kValue));
  if (grouped) {
    const Dim heads = q.shape[q.rank() - 3], groups = k.shape[k.rank() - 3];
    require_equal(call, groups, v.shape[v.rank() - 3], "the heads of keys and values", input_place(kValue));
    require_divisible(call, heads, groups, "the query heads for each key head", input_place(kQuery));
    shape.push_back(heads);
  }
  shape.push_back(q.shape[q.rank() - 2]);
  Shape scores = shape;
  scores.push_back(k.shape[k.rank() - 2]);
  shape.push_back(v.shape.back());
  if (call.has(kMask)) {
    if (call.attributes.flag("is_causal", false))
      fail(attribute_place("is_causal"), "is_causal beside a mask", "true", "false, or no mask");
    require_dtype(call, kMask, {DType::kBool, q.dtype});
    require_broadcastable(call, kMask, scores);
  }
  return {TensorType{q.dtype, std::move(shape)}};
}

// The scores of one query row; at() returns the score of one key.
class Scores {
 public:
  Scores(Formula& f, Index index)
      : f_(f),
        index_(index),
        grouped_(f.attributes().flag("enable_gqa", false)),
        type_(compute_type(f.type(0).dtype)) {}

  ScalarType type() const { return type_; }
  const Dim& keys() const { return f_.type(kKey).shape[f_.type(kKey).rank() - 2]; }

  // The index of an operand's batch and head dimensions.
  std::vector<IndexExpr> batch_index(std::size_t operand) const {
    const Shape& shape = f_.type(operand).shape;
    const std::size_t own = shape.size() - 2, out = index_.size() - 2;
    if (!grouped_) return broadcast_index(shape, own, index_, out);
    std::vector<IndexExpr> result = broadcast_index(shape, own - 1, index_, out - 1);
    const Dim& heads = f_.output_type().shape[out - 1];
    const IndexExpr& head = index_[out - 1];
    result.push_back(shape[own - 1] == heads
                         ? head
                         : f_.simplified(floor_div(head, f_.simplified(quotient(heads, shape[own - 1])))));
    return result;
  }

  E at(const IndexExpr& key) const {
    const IndexExpr& query = index_[index_.size() - 2];
    std::vector<IndexExpr> q = batch_index(kQuery), k = batch_index(kKey);
    q.push_back(query);
    k.push_back(key);
    const Dim depth = f_.type(kQuery).shape.back();
    E score = scaled(sum_over(f_, {depth},
                              [&](Index e) {
                                std::vector<IndexExpr> left = q, right = k;
                                left.push_back(e[0]);
                                right.push_back(e[0]);
                                return f_.load(kQuery, left) * f_.load(kKey, right);
                              }),
                     depth);
    const double minus_infinity = -std::numeric_limits<double>::infinity();
    if (f_.attributes().flag("is_causal", false))
      score = select(E{&f_.pool(), f_.pool().nonnegative(query - key)}, score, minus_infinity);
    if (f_.has(kMask)) {
      std::vector<IndexExpr> position(index_.begin(), index_.end());
      position.back() = key;
      const E mask = f_.load_broadcast(kMask, position);
      score = mask.type() == ScalarType::kBool ? select(mask, score, minus_infinity) : score + mask;
    }
    return score;
  }

 private:
  static Dim quotient(const Dim& heads, const Dim& groups) {
    return exact_quotient(heads, groups).value_or(floor_div(heads, groups));
  }

  E scaled(E product, const Dim& depth) const {
    if (f_.attributes().has("scale")) return product * f_.attributes().number("scale");
    if (const auto known = depth.as_constant()) return product * (1.0 / std::sqrt(static_cast<double>(*known)));
    return product / sqrt(f_.convert(f_.index(depth), type_));
  }

  Formula& f_;
  Index index_;
  bool grouped_;
  ScalarType type_;
};

ExprId attention_formula(Formula& f, std::size_t, Index index) {
  const Scores scores(f, index);
  const std::vector<IndexExpr> keys{scores.keys()};
  E greatest = f.reduce(Reduction::kMax, keys, [&](Index j) { return scores.at(j[0]); });
  // A row with all keys masked out is 0, not NaN; it can occur only with a mask.
  if (f.has(kMask))
    greatest = select(equal(greatest, f.number(-std::numeric_limits<double>::infinity(), scores.type())), 0, greatest);
  E total = f.sum(keys, [&](Index j) { return exp(scores.at(j[0]) - greatest); });
  if (f.has(kMask)) total = select(equal(total, zero(f, scores.type())), 1, total);
  const std::vector<IndexExpr> value_batch = scores.batch_index(kValue);
  return f.sum(keys, [&](Index j) {
    std::vector<IndexExpr> position = value_batch;
    position.push_back(j[0]);
    position.push_back(index.back());
    return exp(scores.at(j[0]) - greatest) / total * f.load(kValue, position);
  });
}

}  // namespace

std::vector<OpDef> attention_ops() {
  using enum AttributeType;
  OpDef row{.name = "scaled_dot_product_attention", .family = "matrix"};
  row.summary = "softmax(q k^T * scale + mask) v; with enable_gqa a key head serves several query heads.";
  row.operands = {"q", "k", "v", "mask?"};
  row.attributes = {{"is_causal", kFlag}, {"scale", kNumber}, {"enable_gqa", kFlag}};
  row.infer = infer_attention;
  row.formula = attention_formula;
  return {row};
}

}  // namespace fusec::ops
