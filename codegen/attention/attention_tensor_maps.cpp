#include "codegen/attention/attention_tensor_maps.h"

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/warpgroup_operand.h"

namespace fusec {
namespace {

constexpr int kAligned = 8;  // 16 bytes in elements; TMA strides are multiples of it
constexpr std::size_t kMostBatch = 2;

// TMA needs positive extents, also for an empty tensor that is never copied from.
IndexExpr at_least_one(const IndexExpr& e, const Bounds& bounds) {
  return range_of(e, bounds).min > 0 ? simplify(e, bounds) : max(e, 1);
}

bool add_dimension(AttentionTensorMap& made, const IndexExpr& extent, const IndexExpr& stride, const Bounds& bounds) {
  if (!proves_multiple_of(stride, kAligned, bounds) || range_of(stride, bounds).min <= 0) return false;
  made.boxes.extents.push_back(at_least_one(extent, bounds));
  made.boxes.strides.push_back(stride);
  return true;
}

// Adds the batch axes, innermost first. Axes that are contiguous with one another become one dimension.
bool add_batch(AttentionTensorMap& made, const Attention& form, const IndexExpr& position) {
  const ExprPool& pool = form.kernel.pool;
  struct Dimension {
    IndexExpr extent, stride, position;
  };
  std::vector<Dimension> batch;
  for (std::size_t i = form.batch.size(); i-- > 0;) {
    const std::uint32_t axis = form.batch[i];
    const IndexExpr& extent = pool.extent(axis);
    if (extent.is(1)) continue;
    const auto stride = flat_stride(position, {axis}, pool);
    if (!stride) return false;
    if (stride->is(0)) continue;
    if (!batch.empty() && simplify(batch.back().stride * batch.back().extent, pool.bounds()) == *stride) {
      batch.back().position += IndexExpr::axis(axis) * batch.back().extent;
      batch.back().extent = simplify(batch.back().extent * extent, pool.bounds());
    } else {
      batch.push_back({extent, *stride, IndexExpr::axis(axis)});
    }
  }
  if (batch.size() > kMostBatch) return false;
  for (const Dimension& d : batch) {
    if (!add_dimension(made, d.extent, d.stride, pool.bounds())) return false;
    made.batch.push_back(simplify(d.position, pool.bounds()));
  }
  return true;
}

}  // namespace

std::optional<AttentionTensorMap> boxes_of(const Attention& form, const Graph& graph, ExprId operand,
                                           const std::vector<std::uint32_t>& lines,
                                           const std::vector<std::uint32_t>& places) {
  const ExprPool& pool = form.kernel.pool;
  const ExprNode& n = pool[operand];
  if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || bits(n.dtype) != 16) return std::nullopt;
  const IndexExpr position = position_of(graph, pool, operand);
  for (const Variable v : variables_of(position))
    if (v.kind == Variable::Kind::kValue) return std::nullopt;
  const auto element_stride = flat_stride(position, places, pool), line_stride = flat_stride(position, lines, pool);
  if (!element_stride || !element_stride->is(1) || !line_stride) return std::nullopt;
  const auto count = [&](const std::vector<std::uint32_t>& axes) {
    IndexExpr product = 1;
    for (const std::uint32_t a : axes) product *= pool.extent(a);
    return simplify(product, pool.bounds());
  };
  AttentionTensorMap made{.source = n.source, .boxes = {.offset = at_origin(position, pool.bounds())}, .batch = {}};
  made.boxes.extents.push_back(at_least_one(count(places), pool.bounds()));
  if (!add_dimension(made, count(lines), *line_stride, pool.bounds()) || !add_batch(made, form, position))
    return std::nullopt;
  if (!proves_multiple_of(made.boxes.offset, kAligned, pool.bounds())) return std::nullopt;
  return made;
}

}  // namespace fusec
