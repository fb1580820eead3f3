#include "analysis/kernel_forms.h"

#include <algorithm>
#include <utility>

#include "analysis/copy_expr.h"

namespace fusec {
namespace {

// The answer of find_product: the product, or why there is none.
struct ProductAnswer {
  std::optional<Product> product;
  std::string_view why_not;
};

ProductAnswer no_product(std::string_view why) {
  return {std::nullopt, why};
}

bool contains(const std::vector<std::uint32_t>& axes, std::uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool all_one(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](std::uint32_t a) { return pool.extent(a).is(1); });
}

// The 16-bit dtype on whose grid a factor lies.
std::optional<DType> tensor_core_dtype(const ExprPool& pool, ExprId factor) {
  const ExprNode& n = pool[factor];
  const auto usable = [](DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; };
  if ((n.op == ExprOp::kLoad || n.op == ExprOp::kRound) && usable(n.dtype)) return n.dtype;
  if (n.op == ExprOp::kSelect) {
    const ExprNode& otherwise = pool[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0) return tensor_core_dtype(pool, n.args[1]);
  }
  return std::nullopt;
}

std::optional<DType> common_tensor_core_dtype(const ExprPool& pool, const Product& p) {
  const auto left = tensor_core_dtype(pool, p.left), right = tensor_core_dtype(pool, p.right);
  return left && left == right && pool[p.reduction].type == ScalarType::kFloat32 ? left : std::nullopt;
}

ProductAnswer find_product(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  for (const KernelOutput& output : kernel.outputs)
    if (output.axes != kernel.outputs[0].axes) return no_product("its outputs run over different axes");
  if (writes_half_bytes(kernel)) return no_product("it writes half-byte elements");
  Product p;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kReduce) continue;
    if (p.reduction != kNoExpr) return no_product("it holds more than one reduction");
    p.reduction = id;
  }
  if (pool[p.reduction].reduction != Reduction::kSum) return no_product("its reduction is no sum");
  const ExprNode& body = pool[pool[p.reduction].args[0]];
  if (body.op != ExprOp::kMul) return no_product("what it sums is no product of two factors");
  p.left = body.args[0];
  p.right = body.args[1];
  p.depth = pool[p.reduction].axes;
  const auto depends = dependences(pool);
  const auto &left = depends[p.left], &right = depends[p.right];
  for (const std::uint32_t k : p.depth)
    if (!contains(left, k) && !contains(right, k)) return no_product("neither factor runs along a summed axis");
  for (const std::uint32_t a : kernel.outputs[0].axes) {
    const bool in_left = contains(left, a), in_right = contains(right, a);
    if (pool.extent(a).is(1))
      p.shared_rest.push_back(a);
    else if (!in_left && !in_right)
      return no_product("neither factor depends on one of the output's axes");
    else if (in_left && in_right)
      p.batch.push_back(a);
    else
      (in_left ? p.rows : p.columns).push_back(a);
  }
  if (all_one(pool, p.rows) || all_one(pool, p.columns) || all_one(pool, p.depth))
    return no_product("a factor has no output axis of its own: a product of a matrix and a vector");
  // The last axis of the result belongs to the columns: neighbouring threads then store neighbouring elements.
  std::uint32_t last = kNone;
  for (const std::uint32_t a : kernel.outputs[0].axes)
    if (!pool.extent(a).is(1)) last = a;
  if (contains(p.rows, last)) {
    std::swap(p.left, p.right);
    std::swap(p.rows, p.columns);
  }
  p.tensor_dtype = common_tensor_core_dtype(pool, p);
  return {std::move(p), ""};
}

// The divisor c of an output axis that occurs in some load as axis // c: the channels of a group.
std::optional<std::pair<std::size_t, std::int64_t>> grouped_axis(const Kernel& kernel) {
  constexpr std::int64_t kFewestMembers = 8;  // a tile of fewer columns would be mostly empty
  const ExprPool& pool = kernel.pool;
  const auto& axes = kernel.outputs[0].axes;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      for (const IndexTerm& term : e.terms())
        for (const IndexAtomPtr& factor : term.factors) {
          if (factor->kind != IndexAtom::Kind::kFloorDiv) continue;
          const auto v = factor->a.as_variable();
          const auto c = factor->b.as_constant();
          if (!v || !c || *c < kFewestMembers || v->kind != Variable::Kind::kAxis) continue;
          const auto at = std::find(axes.begin(), axes.end(), v->id);
          const auto extent = pool.extent(v->id).as_constant();
          if (at != axes.end() && extent && *extent % *c == 0)
            return std::pair{static_cast<std::size_t>(at - axes.begin()), *c};
        }
  }
  return std::nullopt;
}

// Output axis `which` as two, group and member.
Kernel split_grouped_axis(const Kernel& kernel, std::size_t which, std::int64_t members) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr extent = kernel.pool.extent(axes[i]);
      if (i != which) {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
        continue;
      }
      const std::uint32_t group = pool.new_axis(floor_div(extent, members)), member = pool.new_axis(members);
      change.new_axes.push_back(group);
      change.new_axes.push_back(member);
      change.values.push_back(IndexExpr::axis(group) * members + IndexExpr::axis(member));
    }
    return change;
  });
}

bool has_reduction(const Kernel& kernel) {
  return std::ranges::any_of(reachable(kernel.pool, roots_of(kernel)),
                             [&](ExprId id) { return kernel.pool[id].op == ExprOp::kReduce; });
}

FormOfKernel form_of_product(Product product, std::optional<Kernel> split) {
  FormOfKernel answer;
  answer.form = product.tensor_dtype ? KernelForm::kTensorCoreProduct : KernelForm::kProduct;
  answer.why_not_better = product.tensor_dtype ? "it holds a reduction"
                                               : "its factors are not of one 16-bit float dtype, summed in float32";
  answer.product = std::move(product);
  answer.split = std::move(split);
  return answer;
}

}  // namespace

std::string_view name(KernelForm form) {
  switch (form) {
    case KernelForm::kPointwise:
      return "pointwise";
    case KernelForm::kTensorCoreProduct:
      return "tensor_core_product";
    case KernelForm::kProduct:
      return "product";
    case KernelForm::kRows:
      return "rows";
    case KernelForm::kElements:
      return "elements";
  }
  return "";
}

FormOfKernel form_of(const Kernel& kernel) {
  if (!has_reduction(kernel)) return {.form = KernelForm::kPointwise, .why_not_better = ""};
  ProductAnswer answer = find_product(kernel);
  if (answer.product) return form_of_product(std::move(*answer.product), std::nullopt);
  if (const auto grouped = grouped_axis(kernel)) {
    Kernel split = split_grouped_axis(kernel, grouped->first, grouped->second);
    if (ProductAnswer in_groups = find_product(split); in_groups.product)
      return form_of_product(std::move(*in_groups.product), std::move(split));
  }
  if (writes_half_bytes(kernel))
    return {.form = KernelForm::kElements, .why_not_better = "it writes half-byte elements"};
  if (!row_reductions(kernel).empty()) return {.form = KernelForm::kRows, .why_not_better = answer.why_not};
  return {.form = KernelForm::kElements, .why_not_better = "its reductions depend on axes of other reductions"};
}

std::vector<ExprId> row_reductions(const Kernel& kernel) {
  const auto depends = dependences(kernel.pool);
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  std::vector<ExprId> found;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kReduce &&
        std::ranges::all_of(depends[id], [&](std::uint32_t a) { return contains(axes, a); }))
      found.push_back(id);
  return found;
}

bool writes_half_bytes(const Kernel& kernel) {
  return std::ranges::any_of(kernel.outputs, [](const KernelOutput& o) { return bits(o.type.dtype) == 4; });
}

}  // namespace fusec
