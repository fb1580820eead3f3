#include "schedule/gemm/warpgroup_operand.h"

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "analysis/kernel/operation_work.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

std::optional<IndexExpr> step_along(const IndexExpr& e, std::uint32_t axis, const Bounds& bounds) {
  const IndexExpr next = substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis || v.id != axis) return std::nullopt;
    return IndexExpr::axis(axis) + 1;
  });
  IndexExpr step = simplify(next - e, bounds);
  for (const Variable v : variables_of(step))
    if (v.kind != Variable::Kind::kSymbol) return std::nullopt;
  return step;
}

// The segments of K of a K-major operand: one axis, which a division splits.
std::optional<WarpgroupOperand::KSegments> k_segments_of(const ExprPool& pool, const IndexExpr& position, const Axes& k,
                                                         const WarpgroupElements& elements) {
  std::optional<std::uint32_t> axis;
  for (const std::uint32_t a : k) {
    if (pool.extent(a).is(1)) continue;
    if (axis) return std::nullopt;
    axis = a;
  }
  const auto extent = axis ? pool.extent(*axis).as_constant() : std::nullopt;
  if (!extent) return std::nullopt;
  constexpr std::int64_t kMostLength = 1024;
  for (std::int64_t length = elements.k; length < std::min(kMostLength, *extent); length += elements.k) {
    if (*extent % length != 0) continue;
    Bounds bounds = pool.bounds();
    const auto outer = static_cast<std::uint32_t>(bounds.axes.size()), inner = outer + 1;
    bounds.axes.emplace_back(*extent / length);
    bounds.axes.emplace_back(length);
    const IndexExpr split = simplify(substitute(position,
                                                [&](Variable v) -> std::optional<IndexExpr> {
                                                  if (v.kind != Variable::Kind::kAxis || v.id != *axis)
                                                    return std::nullopt;
                                                  return IndexExpr::axis(outer) * length + IndexExpr::axis(inner);
                                                }),
                                     bounds);
    const std::optional<IndexExpr> segment_stride = step_along(split, outer, bounds),
                                   element_stride = step_along(split, inner, bounds);
    if (segment_stride && element_stride && element_stride->is(1) &&
        proves_multiple_of(*segment_stride, elements.aligned, bounds))
      return WarpgroupOperand::KSegments{length, *extent / length, *segment_stride};
  }
  return std::nullopt;
}

}  // namespace

WarpgroupElements warpgroup_elements(int element_bytes) {
  return {.aligned = 16 / element_bytes, .k = WarpgroupOperand::kLineBytes / element_bytes};
}

IndexExpr at_origin(const IndexExpr& e, const Bounds& bounds) {
  return simplify(substitute(e,
                             [](Variable v) -> std::optional<IndexExpr> {
                               if (v.kind == Variable::Kind::kAxis) return IndexExpr(0);
                               return std::nullopt;
                             }),
                  bounds);
}

std::optional<std::vector<WarpgroupOperand::Batch>> batch_of(const ExprPool& pool, const IndexExpr& position,
                                                             std::span<const std::uint32_t> axes, int aligned) {
  std::vector<WarpgroupOperand::Batch> batch;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const IndexExpr& extent = pool.extent(axes[i]);
    if (extent.is(1)) continue;
    const std::optional<IndexExpr> stride = flat_stride(position, {axes[i]}, pool);
    if (!stride) return std::nullopt;
    if (stride->is(0)) continue;
    if (!proves_multiple_of(*stride, aligned, pool.bounds())) return std::nullopt;
    if (!batch.empty() && simplify(batch.back().stride * batch.back().extent, pool.bounds()) == *stride) {
      batch.back().position += IndexExpr::axis(axes[i]) * batch.back().extent;
      batch.back().extent = simplify(batch.back().extent * extent, pool.bounds());
    } else {
      batch.push_back({IndexExpr::axis(axes[i]), extent, *stride});
    }
  }
  if (batch.size() > WarpgroupOperand::kMostBatch) return std::nullopt;
  return batch;
}

std::optional<WarpgroupOperand> gathered_operand(const GemmOperand& given) {
  if (!given.k_major || !given.k_stride || !given.k_stride->is(1)) return std::nullopt;
  return WarpgroupOperand{.load = given.load,
                          .k_major = true,
                          .offset = 0,
                          .stride = 0,
                          .k_segments = {},
                          .batch = {},
                          .scales = given.scales,
                          .gathered = given.across};
}

std::optional<WarpgroupOperand> computed_operand(const ExprPool& pool, const GemmOperand& given) {
  const auto strides = [](const GemmOperand& copy) { return copy.k_stride.has_value(); };
  if (!std::ranges::all_of(given.copies, strides)) return std::nullopt;
  double instructions = 4;  // unpacking and packing words
  for (const ExprId id : reachable(pool, std::span(&given.value, 1))) {
    const OperationWork work = operation_work(pool[id]);
    instructions += work.arithmetic + 4 * work.special;
  }
  return WarpgroupOperand{.load = given.load,
                          .k_major = given.k_major,
                          .offset = 0,
                          .stride = 0,
                          .k_segments = {},
                          .batch = {},
                          .scales = given.scales,
                          .gathered = {},
                          .transformed = given,
                          .instructions = instructions};
}

std::optional<WarpgroupOperand> tensor_operand(const ExprPool& pool, const GemmOperand& given, const Axes& across,
                                               const Axes& k, const Axes& batch_axes,
                                               const WarpgroupElements& elements) {
  const std::optional<IndexExpr> stride = flat_stride(given.across, across, pool);
  if (!stride) return std::nullopt;
  WarpgroupOperand operand{.load = given.load,
                           .k_major = given.k_major,
                           .offset = at_origin(given.across + given.k, pool.bounds()),
                           .stride = *stride,
                           .k_segments = {},
                           .batch = {},
                           .scales = given.scales};
  if (given.k_stride) {
    const bool element_stride = given.k_major ? given.k_stride->is(1) : stride->is(1);
    if (!element_stride) return std::nullopt;
    if (!given.k_major) operand.stride = *given.k_stride;
  } else {
    if (given.k_major) operand.k_segments = k_segments_of(pool, given.k, k, elements);
    if (!operand.k_segments) return std::nullopt;
  }
  auto batch = batch_of(pool, given.across, batch_axes, elements.aligned);
  if (!batch || batch->size() + (operand.k_segments ? 1 : 0) > WarpgroupOperand::kMostBatch) return std::nullopt;
  operand.batch = *std::move(batch);
  const bool aligned = proves_multiple_of(operand.stride, elements.aligned, pool.bounds()) &&
                       proves_multiple_of(operand.offset, elements.aligned, pool.bounds());
  if (!aligned || range_of(operand.stride, pool.bounds()).min <= 0) return std::nullopt;
  return operand;
}

std::optional<WarpgroupOperand> image_operand(const ConvolutionForm& form, bool left) {
  const ConvolutionOperand& convolution_operand = left ? form.left : form.right;
  if (convolution_operand.fill != ConvolutionFill::kVectorGather) return std::nullopt;
  return WarpgroupOperand{.load = convolution_operand.load,
                          .k_major = true,
                          .offset = 0,
                          .stride = 0,
                          .k_segments = {},
                          .batch = {},
                          .scales = {},
                          .gathered = convolution_operand.across,
                          .image = WarpgroupOperand::Image{convolution_operand, form.axes, form.k}};
}

std::optional<WarpgroupOperand> weights_operand(const ExprPool& pool, const ConvolutionForm& form,
                                                const Contraction& contraction, bool left) {
  const ConvolutionOperand& convolution_operand = left ? form.left : form.right;
  if (convolution_operand.fill != ConvolutionFill::kVectorCopy) return std::nullopt;
  GemmOperand weights;
  weights.load = convolution_operand.load;
  weights.k_major = true;
  weights.across = convolution_operand.across;
  weights.k = convolution_operand.k;
  weights.k_stride = 1;
  return tensor_operand(pool, weights, left ? contraction.rows : contraction.columns, form.axes, contraction.batch,
                        warpgroup_elements(form.element_bytes()));
}

std::int64_t bits_copied(const WarpgroupOperand& operand) {
  std::int64_t all = 0;
  for (const GemmOperand& copy : operand.transformed->copies) all += copy.element_bits;
  return all;
}

}  // namespace fusec
