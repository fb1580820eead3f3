#include "schedule/gemm/tma_image_boxes.h"

#include <algorithm>

#include "analysis/kernel/linear_index.h"
#include "analysis/kernel/loads.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
using ImageBoxes = WarpgroupOperand::ImageBoxes;
constexpr std::size_t kMostDimensions = 5;  // of a TMA tensor
constexpr int kElementBytes = 2;            // wgmma needs 16-bit elements for operands that are not K-major

// The expression with the axis at 0.
IndexExpr without(const IndexExpr& e, std::uint32_t a) {
  return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    return v == axis_variable(a) ? std::optional<IndexExpr>(0) : std::nullopt;
  });
}

Axes wide_axes(const ExprPool& pool, const Axes& axes) {
  Axes wide;
  std::ranges::copy_if(axes, std::back_inserter(wide), [&](std::uint32_t a) { return !pool.extent(a).is(1); });
  return wide;
}

// The roles in a contraction: which operands are images, and which axes are pixels; the others are output channels.
struct Sides {
  bool image_left = false;
  const Contraction& contraction;

  const Axes& pixels() const { return image_left ? contraction.rows : contraction.columns; }
  const Axes& results() const { return image_left ? contraction.columns : contraction.rows; }
};

// Moves columns that are not contiguous with the following ones in the output to the batch. Returns false if no columns
// are left.
bool fold_images_into_batch(const Kernel& kernel, Contraction& contraction) {
  const ExprPool& pool = kernel.pool;
  const auto are_contiguous = [&](const KernelOutput& output) {
    const IndexExpr position = position_of(pool, output);
    const std::optional<IndexExpr> stride = flat_stride(position, contraction.columns, pool);
    return stride && stride->is(1);
  };
  while (!contraction.columns.empty() && !std::ranges::all_of(kernel.outputs, are_contiguous)) {
    contraction.batch.push_back(contraction.columns.front());
    contraction.columns.erase(contraction.columns.begin());
  }
  return !wide_axes(pool, contraction.columns).empty();
}

// The axis of K along which the weights are contiguous, the other axes, and the number of channels.
struct KAxes {
  std::uint32_t channels = 0;
  Axes taps;
  std::int64_t count = 0;
};

std::optional<KAxes> k_extent_of(const ExprPool& pool, const Axes& axes, const IndexExpr& weights) {
  KAxes k;
  bool found = false;
  for (const std::uint32_t a : wide_axes(pool, axes)) {
    if (!found && coefficient_of(weights, axis_variable(a)) == 1) {
      k.channels = a;
      found = true;
    } else {
      k.taps.push_back(a);
    }
  }
  const auto count = found ? pool.extent(k.channels).as_constant() : std::nullopt;
  if (!count || !point_count(pool, k.taps).as_constant()) return std::nullopt;
  k.count = *count;
  return k;
}

// Weights that are contiguous along the channels, with one segment per tap.
std::optional<WarpgroupOperand> weights_of(const ExprPool& pool, ExprId load, const IndexExpr& position,
                                           const Sides& sides, const KAxes& k) {
  const int aligned = warpgroup_elements(kElementBytes).aligned;
  const std::optional<IndexExpr> stride = flat_stride(position, sides.results(), pool);
  if (!stride || !proves_multiple_of(*stride, aligned, pool.bounds()) || range_of(*stride, pool.bounds()).min <= 0)
    return std::nullopt;
  WarpgroupOperand weights{.load = load,
                           .k_major = true,
                           .offset = at_origin(position, pool.bounds()),
                           .stride = *stride,
                           .k_segments = {},
                           .batch = {},
                           .scales = {}};
  if (!k.taps.empty()) {
    const std::optional<IndexExpr> apart = flat_stride(position, k.taps, pool);
    if (!apart || !proves_multiple_of(*apart, aligned, pool.bounds()) || range_of(*apart, pool.bounds()).min <= 0)
      return std::nullopt;
    weights.k_segments = WarpgroupOperand::KSegments{k.count, point_count(pool, k.taps), *apart};
  }
  auto batch = batch_of(pool, position, sides.contraction.batch, aligned);
  if (!batch || batch->size() + (weights.k_segments ? 1 : 0) > WarpgroupOperand::kMostBatch) return std::nullopt;
  weights.batch = *std::move(batch);
  return proves_multiple_of(weights.offset, aligned, pool.bounds()) ? std::optional(std::move(weights)) : std::nullopt;
}

// True if the guard holds for all indices inside the dimension.
bool holds_inside(const ExprPool& pool, const IndexComparison& guard, const IndexExpr& index, const IndexExpr& extent) {
  const Bounds& bounds = pool.bounds();
  const auto reaches = [&](const IndexExpr& least, const IndexExpr& most) {
    const auto apart = [&](const IndexExpr& e) { return range_of(simplify(e - guard.bound, bounds), bounds); };
    return guard.at_least ? apart(least).min >= 0 : apart(most).max <= 0;
  };
  const auto has_constant_stride = [&](const IndexExpr& e) {
    return std::ranges::all_of(variables_of(e), [](Variable v) { return v.kind == Variable::Kind::kSymbol; });
  };
  const IndexExpr more = simplify(guard.difference - index, bounds), less = simplify(guard.difference + index, bounds);
  if (has_constant_stride(more) && reaches(more, more + extent - 1)) return true;
  return has_constant_stride(less) && reaches(less - extent + 1, less);
}

// The tensor's dimensions of channels (and batch) and of a box's pixels; one of them must be the last dimension.
struct ImageDimensions {
  std::size_t channels = 0, pixels = 0;
};

std::optional<ImageDimensions> dimensions_of(const ExprPool& pool, const ExprNode& load, const Sides& sides,
                                             const KAxes& k) {
  const std::uint32_t last = wide_axes(pool, sides.pixels()).back();
  std::optional<std::size_t> channels, pixels;
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    const IndexExpr& index = load.indices[d];
    if (mentions(index, axis_variable(k.channels))) {
      if (channels || coefficient_of(index, axis_variable(k.channels)) != 1 || mentions_any(index, sides.pixels()) ||
          mentions_any(index, k.taps))
        return std::nullopt;
      channels = d;
    }
    if (mentions(index, axis_variable(last))) {
      if (pixels || coefficient_of(index, axis_variable(last)) != 1) return std::nullopt;
      pixels = d;
    }
  }
  if (!channels || !pixels || std::max(*channels, *pixels) + 1 != load.indices.size()) return std::nullopt;
  return ImageDimensions{*channels, *pixels};
}

// The largest box width that divides the output rows.
std::optional<int> pixels_of_box(const ExprPool& pool, const Sides& sides) {
  const IndexExpr& row = pool.extent(wide_axes(pool, sides.pixels()).back());
  for (const int pixels : {64, 32, 16, 8})
    if (proves_multiple_of(row, pixels, pool.bounds())) return pixels;
  return std::nullopt;
}

// Guards may only check that indices are inside their dimensions.
bool are_bounds_checks(const ExprPool& pool, const GuardedLoad& guarded, const Shape& shape) {
  return std::ranges::all_of(guarded.guards, [&](ExprId guard) {
    const auto compared = index_comparison(pool, guard);
    for (std::size_t d = 0; compared && d < shape.size(); ++d)
      if (holds_inside(pool, *compared, pool[guarded.load].indices[d], shape[d])) return true;
    return false;
  });
}

std::optional<WarpgroupOperand> image_of(const Graph& graph, const ExprPool& pool, const GuardedLoad& guarded,
                                         const Sides& sides, const KAxes& k) {
  const WarpgroupElements elements = warpgroup_elements(kElementBytes);
  const ExprNode& load = pool[guarded.load];
  const Shape& shape = graph.tensor(load.source).shape;
  const std::optional<ImageDimensions> found = dimensions_of(pool, load, sides, k);
  const std::optional<int> pixels = pixels_of_box(pool, sides);
  if (!found || !pixels || !are_bounds_checks(pool, guarded, shape)) return std::nullopt;
  // A tile must not read past a tap's last channel, unless TMA fills zeros there.
  const bool whole = load.indices[found->channels] == IndexExpr::axis(k.channels) && shape[found->channels].is(k.count);
  if (!whole && k.count % elements.k != 0) return std::nullopt;
  Axes all = sides.contraction.batch;
  all.insert(all.end(), sides.pixels().begin(), sides.pixels().end());
  all.insert(all.end(), k.taps.begin(), k.taps.end());
  all.push_back(k.channels);
  ImageBoxes boxes{.dimensions = {}, .taps = k.taps, .k = k.count, .pixels = *pixels};
  IndexExpr stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const IndexExpr index = simplify(load.indices[d], pool.bounds());
    if (!linear_in(index, all)) return std::nullopt;
    if (d == found->channels) boxes.channels = boxes.dimensions.size();
    if (d == found->pixels) boxes.neighbours = boxes.dimensions.size();
    if (!shape[d].is(1) || !index.is(0)) boxes.dimensions.push_back({shape[d], stride, without(index, k.channels)});
    stride = simplify(stride * shape[d], pool.bounds());
    if (d > 0 && !proves_multiple_of(stride, elements.aligned, pool.bounds())) return std::nullopt;
  }
  if (boxes.dimensions.size() > kMostDimensions || boxes.dimensions.size() < 2) return std::nullopt;
  return WarpgroupOperand{.load = guarded.load,
                          .k_major = found->channels > found->pixels,
                          .offset = 0,
                          .stride = 0,
                          .k_segments = {},
                          .batch = {},
                          .scales = {},
                          .boxes = std::move(boxes)};
}

// Pointwise convolutions: the planes of the image are a matrix for TMA.
std::optional<WarpgroupOperand> points_of(const ExprPool& pool, const GuardedLoad& guarded, const IndexExpr& position,
                                          const Sides& sides, const Axes& k) {
  const std::optional<IndexExpr> stride = flat_stride(position, k, pool);
  if (!guarded.guards.empty() || !stride) return std::nullopt;
  GemmOperand image;
  image.load = guarded.load;
  image.k_major = stride->is(1);
  image.across = position;
  for (const std::uint32_t a : k) image.across = without(image.across, a);
  image.k = simplify(position - image.across, pool.bounds());
  image.k_stride = *stride;
  return tensor_operand(pool, image, sides.pixels(), k, sides.contraction.batch, warpgroup_elements(kElementBytes));
}

std::optional<ImageLoop> loop_of(const Graph& graph, const ExprPool& pool, const Sides& sides,
                                 const ContractionLoop& given) {
  ImageLoop loop;
  std::optional<KAxes> k;
  for (const bool of_image : {false, true}) {
    const bool left = of_image == sides.image_left;
    for (const ExprId id : left ? given.left : given.right) {
      const auto guarded = guarded_load(pool, id);
      if (!guarded || pool[guarded->load].dtype != sides.contraction.tensor_dtype) return std::nullopt;
      const IndexExpr position = position_of(graph, pool, guarded->load);
      if (by_values(position) || (!of_image && !guarded->guards.empty())) return std::nullopt;
      if (!k) k = k_extent_of(pool, given.k, position);  // from the first weights
      if (!k || (!of_image && coefficient_of(position, axis_variable(k->channels)) != 1)) return std::nullopt;
      std::optional<WarpgroupOperand> operand;
      if (!of_image)
        operand = weights_of(pool, guarded->load, position, sides, *k);
      else if (k->taps.empty())
        operand = points_of(pool, *guarded, position, sides, given.k);
      if (of_image && !operand) operand = image_of(graph, pool, *guarded, sides, *k);
      if (!operand) return std::nullopt;
      (left ? loop.left : loop.right).push_back(*std::move(operand));
    }
  }
  const std::int64_t tile = warpgroup_elements(kElementBytes).k;
  if (!k->taps.empty()) loop.padded_k = (k->count + tile - 1) / tile * tile * *point_count(pool, k->taps).as_constant();
  return loop;
}

std::optional<ImageContraction> find_tma_image_boxes(const Graph& graph, const Kernel& kernel,
                                                     const Contraction& contraction, bool image_left) {
  ImageContraction found{.contraction = contraction, .loops = {}};
  const Sides sides{image_left, found.contraction};
  if (wide_axes(kernel.pool, sides.pixels()).empty()) return std::nullopt;
  for (const ContractionLoop& given : contraction.loops) {
    auto loop = loop_of(graph, kernel.pool, sides, given);
    if (!loop) return std::nullopt;
    found.loops.push_back(*std::move(loop));
  }
  return found;
}

}  // namespace

std::optional<ImageContraction> find_tma_image_boxes(const Graph& graph, const Kernel& kernel,
                                                     const Contraction& contraction) {
  const bool multiplied = contraction.tensor_dtype == DType::kFloat16 || contraction.tensor_dtype == DType::kBFloat16;
  if (!multiplied || contraction.expert_index || !contraction.row_values.empty()) return std::nullopt;
  Contraction by_images = contraction;
  if (fold_images_into_batch(kernel, by_images))
    if (auto found = find_tma_image_boxes(graph, kernel, by_images, false)) return found;
  for (Contraction rest = contraction; !rest.rows.empty();) {
    if (auto found = find_tma_image_boxes(graph, kernel, rest, true)) return found;
    rest.batch.push_back(rest.rows.front());  // pointwise: each image's planes are one matrix
    rest.rows.erase(rest.rows.begin());
  }
  return std::nullopt;
}

}  // namespace fusec
