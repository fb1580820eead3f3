// Reductions over dimensions, and running sums and products.
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/mean.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

OpDef reduction(std::string name, std::string summary) {
  OpDef row;
  row.name = std::move(name);
  row.family = "reduction";
  row.summary = std::move(summary);
  row.operands = {"x"};
  row.attributes = {{"dim", AttributeType::kIntegers}, {"keepdim", AttributeType::kFlag}};
  return row;
}

std::vector<ValueType> reduced_type(const OpCall& call, const std::vector<std::size_t>& dims, DType dtype) {
  const Shape shape = reduced_shape(tensor_operand(call, 0).shape, dims, call.attributes.flag("keepdim", false));
  return {TensorType{dtype, shape}};
}

std::vector<ValueType> reduced_type(const OpCall& call, DType dtype) {
  return reduced_type(call, reduced_dims(call.attributes, tensor_operand(call, 0).rank()), dtype);
}

// Refuses an empty reduction, which has no minimum and maximum.
void refuse_empty(const OpCall& call, const std::vector<std::size_t>& dims) {
  for (const std::size_t d : dims) {
    if (d >= call.tensor(0).rank()) continue;  // dimension 0 of a 0-d tensor
    if (range_of(call.tensor(0).shape[d], bounds_of(call)).max == 0)
      fail(input_place(0), "reduction of an empty dimension", to_string(call.tensor(0), call.symbols),
           "dimension " + std::to_string(d) + " of 1 or more");
  }
}

// The reduction of one operand at one output index: its loads and axes. Each pass of a reduction in several passes
// (mean and deviation) gets new axes.
class ReducedRow {
 public:
  ReducedRow(Formula& f, std::vector<std::size_t> dims, Formula::Index i, ScalarType type)
      : f_(f), dims_(std::move(dims)), type_(type) {
    const Shape& shape = f.type(0).shape;
    const bool keepdim = f.attributes().flag("keepdim", false);
    index_.resize(shape.size());
    std::size_t position = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (reduced(d)) {
        extents_.push_back(shape[d]);
        if (keepdim) ++position;
      } else {
        index_[d] = i[position++];
      }
    }
  }

  E reduce(Reduction r, const std::function<E(E)>& body) const {
    return f_.reduce(r, extents_, [&](Formula::Index k) { return body(f_.load(0, at(k), type_)); });
  }
  E sum(const std::function<E(E)>& body) const { return reduce(Reduction::kSum, body); }
  E count() const {
    IndexExpr n = 1;
    for (const IndexExpr& e : extents_) n *= e;
    return f_.convert(f_.index(n), type_);
  }
  E mean() const {
    return sum([](E x) { return x; }) / count();
  }
  // Finite if the elements are; the sum in `mean` may overflow.
  E scaled_mean() const {
    return ops::scaled_mean(f_, f_.type(0).dtype, extents_, [&](Formula::Index k) { return f_.load(0, at(k), type_); });
  }

 private:
  bool reduced(std::size_t d) const {
    for (const std::size_t r : dims_)
      if (r == d) return true;
    return false;
  }
  std::vector<IndexExpr> at(Formula::Index k) const {
    std::vector<IndexExpr> index = index_;
    std::size_t axis = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      if (reduced(d)) index[d] = k[axis++];
    return index;
  }

  Formula& f_;
  std::vector<std::size_t> dims_;
  ScalarType type_;
  std::vector<IndexExpr> extents_, index_;
};

ReducedRow row_at(Formula& f, Formula::Index i, ScalarType type) {
  const std::size_t rank = f.operand(0).type.tensor.rank();
  return {f, reduced_dims(f.attributes(), rank), i, type};
}

using RowBody = std::function<E(Formula&, const ReducedRow&)>;

OpDef with_row_body(OpDef row, RowBody body) {
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return body(f, row_at(f, i, compute_type(f.output_type().dtype)));
  };
  return row;
}

E itself(E x) {
  return x;
}

// sum, prod; the result of bool and integers is int64
OpDef accumulation(std::string name, std::string summary, Reduction r) {
  OpDef row = reduction(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) { return reduced_type(call, sum_dtype(tensor_operand(call, 0).dtype)); };
  return with_row_body(std::move(row), [r](Formula&, const ReducedRow& x) { return x.reduce(r, itself); });
}

// amax, amin; the result has the operand's dtype
OpDef extreme(std::string name, std::string summary, Reduction r, Reduction of_bools) {
  OpDef row = reduction(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) {
    const TensorType& x = tensor_operand(call, 0);
    refuse_empty(call, reduced_dims(call.attributes, x.rank()));
    return reduced_type(call, x.dtype);
  };
  return with_row_body(std::move(row), [r, of_bools](Formula& f, const ReducedRow& x) {
    return x.reduce(f.output_type().dtype == DType::kBool ? of_bools : r, itself);
  });
}

OpDef float_reduction(std::string name, std::string summary, RowBody body) {
  OpDef row = reduction(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) {
    require_float(call, 0);
    return reduced_type(call, call.tensor(0).dtype);
  };
  return with_row_body(std::move(row), std::move(body));
}

// The sum of squared deviations from the mean, divided by n - correction. It uses two passes, which keeps precision for
// values far from 0.
E variance(Formula& f, const ReducedRow& x) {
  const E mean = x.scaled_mean();
  const E squares = x.sum([&](E v) { return (v - mean) * (v - mean); });
  const E divisor = x.count() - f.attributes().number("correction", 1);
  return squares / maximum(divisor, f.number(0, divisor.type()));
}

OpDef with_correction(OpDef row) {
  row.attributes.push_back({"correction", AttributeType::kNumber});
  return row;
}

// log(sum(exp(x - max))) + max. An infinite maximum is not subtracted, which would give NaN.
OpDef logsumexp_row() {
  OpDef row = reduction("logsumexp", "log(sum(exp(x))), stable");
  row.infer = [](const OpCall& call) { return reduced_type(call, float_dtype(tensor_operand(call, 0).dtype)); };
  return with_row_body(std::move(row), [](Formula& f, const ReducedRow& x) {
    const E greatest = x.reduce(Reduction::kMax, itself);
    const E shift = select(apply(ExprOp::kIsInf, greatest), f.number(0, greatest.type()), greatest);
    return log(x.sum([&](E v) { return exp(v - shift); })) + shift;
  });
}

E vector_norm(Formula& f, const ReducedRow& x) {
  const double ord = f.attributes().has("ord") ? f.attributes().scalar("ord").as_double() : 2;
  auto magnitude = [](E v) { return apply(ExprOp::kAbs, v); };
  if (std::isinf(ord)) return x.reduce(ord > 0 ? Reduction::kMax : Reduction::kMin, magnitude);
  if (ord == 0) return x.sum([&](E v) { return f.convert(not_equal(v, f.number(0, v.type())), v.type()); });
  if (ord == 1) return x.sum(magnitude);
  if (ord == 2) return sqrt(x.sum([](E v) { return v * v; }));
  const E total = x.sum([&](E v) { return apply(ExprOp::kPow, magnitude(v), f.number(ord, v.type())); });
  return apply(ExprOp::kPow, total, f.number(1 / ord, total.type()));
}

OpDef vector_norm_row() {
  OpDef row =
      float_reduction("vector_norm", "sum(|x|^ord)^(1/ord); 0 counts, inf and -inf take the extremes", vector_norm);
  row.attributes.push_back({"ord", AttributeType::kScalar});
  return row;
}

// any, all on any dtype; nonzero values are true. An empty list of dimensions reduces none, as in PyTorch.
OpDef quantifier(std::string name, std::string summary, Reduction r) {
  auto dims_of = [](const Attributes& attributes, std::size_t rank) {
    const auto listed = attributes.integers("dim");
    return listed && listed->empty() ? std::vector<std::size_t>{} : reduced_dims(attributes, rank);
  };
  OpDef row = reduction(std::move(name), std::move(summary));
  row.infer = [dims_of](const OpCall& call) {
    return reduced_type(call, dims_of(call.attributes, tensor_operand(call, 0).rank()), DType::kBool);
  };
  row.formula = [dims_of, r](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const ReducedRow x(f, dims_of(f.attributes(), f.operand(0).type.tensor.rank()), i, ScalarType::kBool);
    return x.reduce(r, itself);
  };
  return row;
}

// argmax, argmin: one dimension, or the flat position over all of them
OpDef position(std::string name, std::string summary, Reduction r) {
  OpDef row = reduction(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) {
    const TensorType& x = tensor_operand(call, 0);
    if (x.dtype == DType::kBool) fail(input_place(0), "wrong dtype", "bool", "an integer or float dtype");
    if (const auto listed = call.attributes.integers("dim"); listed && listed->size() != 1)
      fail(attribute_place("dim"), "wrong number of dimensions", std::to_string(listed->size()), "one dimension");
    refuse_empty(call, reduced_dims(call.attributes, x.rank()));
    return reduced_type(call, DType::kInt64);
  };
  row.formula = [r](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return row_at(f, i, compute_type(f.operand(0).type.tensor.dtype)).reduce(r, itself);
  };
  return row;
}

OpDef scan(std::string name, std::string summary) {
  OpDef row;
  row.name = std::move(name);
  row.family = "reduction";
  row.summary = std::move(summary);
  row.operands = {"x"};
  row.attributes = {{"dim", AttributeType::kInteger, true}};
  row.special = Special::kScan;
  row.pattern = OpPattern::kOpaque;
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    const TensorType& x = tensor_operand(call, 0);
    dim_attribute(call, "dim", x.rank());
    return {TensorType{sum_dtype(x.dtype), x.shape}};
  };
  return row;
}

}  // namespace

std::vector<OpDef> reduction_ops() {
  return {
      accumulation("sum", "the sum over dim", Reduction::kSum),
      float_reduction("mean", "the mean over dim", [](Formula&, const ReducedRow& x) { return x.mean(); }),
      extreme("amax", "the greatest over dim; NaN if any is", Reduction::kMax, Reduction::kAny),
      extreme("amin", "the least over dim; NaN if any is", Reduction::kMin, Reduction::kAll),
      accumulation("prod", "the product over dim", Reduction::kProd),
      with_correction(float_reduction("var", "the variance over dim, divided by n - correction", variance)),
      with_correction(float_reduction("std", "the square root of var",
                                      [](Formula& f, const ReducedRow& x) { return sqrt(variance(f, x)); })),
      position("argmax", "the first position of the greatest along dim", Reduction::kArgMax),
      position("argmin", "the first position of the least along dim", Reduction::kArgMin),
      quantifier("any", "whether one over dim is not 0", Reduction::kAny),
      quantifier("all", "whether all over dim are not 0", Reduction::kAll),
      logsumexp_row(),
      vector_norm_row(),
      scan("cumsum", "the running sum along dim"),
      scan("cumprod", "the running product along dim"),
  };
}

}  // namespace fusec::ops
