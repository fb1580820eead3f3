#include "analysis/warpgroup_gemm_form.h"

#include <algorithm>
#include <cmath>

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
constexpr int kAligned = 8;  // elements of 16 bytes, of which TMA's strides are multiples
constexpr std::size_t kMostBatch = 2;

IndexExpr at_origin(const IndexExpr& e, const Bounds& bounds) {
  return simplify(substitute(e,
                             [](Variable v) -> std::optional<IndexExpr> {
                               if (v.kind == Variable::Kind::kAxis) return IndexExpr(0);
                               return std::nullopt;
                             }),
                  bounds);
}

// The batch's dimensions: those whose steps are the same as of one flattened are one.
std::optional<std::vector<WarpgroupOperand::Batch>> batch_of(const ExprPool& pool, const IndexExpr& position,
                                                             const Axes& axes) {
  std::vector<WarpgroupOperand::Batch> batch;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const IndexExpr& extent = pool.extent(axes[i]);
    if (extent.is(1)) continue;
    const std::optional<IndexExpr> stride = flat_stride(position, {axes[i]}, pool);
    if (!stride) return std::nullopt;
    if (stride->is(0)) continue;
    if (!proves_multiple_of(*stride, kAligned, pool.bounds())) return std::nullopt;
    if (!batch.empty() && simplify(batch.back().stride * batch.back().extent, pool.bounds()) == *stride) {
      batch.back().position += IndexExpr::axis(axes[i]) * batch.back().extent;
      batch.back().extent = simplify(batch.back().extent * extent, pool.bounds());
    } else {
      batch.push_back({IndexExpr::axis(axes[i]), extent, *stride});
    }
  }
  if (batch.size() > kMostBatch) return std::nullopt;
  return batch;
}

std::optional<WarpgroupOperand> operand_of(const ExprPool& pool, const GemmOperand& given, const Axes& across,
                                           const Product& product) {
  const std::optional<IndexExpr> stride = flat_stride(given.across, across, pool);
  if (!stride || !given.depth_stride) return std::nullopt;
  const IndexExpr &beside = given.along_depth ? *given.depth_stride : *stride,
                  &apart = given.along_depth ? *stride : *given.depth_stride;
  if (!beside.is(1) || !proves_multiple_of(apart, kAligned, pool.bounds()) || range_of(apart, pool.bounds()).min <= 0)
    return std::nullopt;
  auto batch = batch_of(pool, given.across, product.batch);
  if (!batch) return std::nullopt;
  WarpgroupOperand operand{.load = given.load,
                           .along_depth = given.along_depth,
                           .offset = at_origin(given.across + given.depth, pool.bounds()),
                           .stride = apart,
                           .batch = *std::move(batch)};
  if (!proves_multiple_of(operand.offset, kAligned, pool.bounds())) return std::nullopt;
  return operand;
}

std::optional<std::vector<WarpgroupLoop>> loops_of(const ExprPool& pool, const GemmForm& form, const Product& product) {
  std::vector<WarpgroupLoop> loops;
  for (const GemmLoop& given : form.loops) {
    WarpgroupLoop& loop = loops.emplace_back();
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? given.left : given.right) {
        auto found = operand_of(pool, operand, left ? product.rows : product.columns, product);
        if (!found) return std::nullopt;
        (left ? loop.left : loop.right).push_back(*std::move(found));
      }
  }
  return loops;
}

struct Sizes {
  double rows, columns, batch, depth;
};

// As gemm_form's model: cycles of a multiprocessor, whose tensor cores make 2048 multiply-adds in one by wgmma, and
// which takes 40 bytes a cycle from the L2 cache.
double predicted_cycles(const WarpgroupGemmForm& form, const Sizes& sizes, const Target& target) {
  const WarpgroupTiles& t = form.tiles;
  const double down = std::ceil(sizes.rows / (t.kRows * t.cluster)), across = std::ceil(sizes.columns / t.columns);
  const double of_one = std::ceil(down * across * sizes.batch / (target.multiprocessors / t.cluster));
  const double sums = static_cast<double>(t.kRows) * t.columns * form.sums;
  double left = 0, right = 0;
  for (const WarpgroupLoop& loop : form.loops) {
    left = std::max(left, static_cast<double>(loop.left.size()));
    right = std::max(right, static_cast<double>(loop.right.size()));
  }
  const double copied = (t.kRows * left + t.columns * right / t.cluster) * 2;  // a step of the depth
  const double step = std::max(sums / 2048, copied / 40);
  return 1500 + of_one * (sizes.depth * step + 500 + sums / 64);
}

// As many stages as there is room for; false where they are too few.
bool fit(WarpgroupGemmForm& form, const Target& target) {
  constexpr int kMostStages = 8, kLeastStages = 3, kGoodStages = 4;
  for (const int least : {kGoodStages, kLeastStages})
    for (const int staged : {32, 16}) {
      form.tiles.staged_columns = staged;
      for (form.tiles.stages = kMostStages; form.tiles.stages >= least; --form.tiles.stages)
        if (shared_bytes(form) <= target.shared_bytes_per_block) return true;
    }
  return false;
}

}  // namespace

std::int64_t stage_bytes(const WarpgroupGemmForm& form) {
  std::size_t most = 0;
  for (const WarpgroupLoop& loop : form.loops)
    most = std::max(most, loop.left.size() * static_cast<std::size_t>(form.tiles.kRows) +
                              loop.right.size() * static_cast<std::size_t>(form.tiles.columns));
  return static_cast<std::int64_t>(most) * form.tiles.kDepth * 2;
}

std::int64_t staged_bytes(const WarpgroupGemmForm& form) {
  return 16ll * (form.tiles.staged_columns + 8) * 4 * form.sums;
}

std::int64_t shared_bytes(const WarpgroupGemmForm& form) {
  return form.tiles.stages * (stage_bytes(form) + 16) + staged_bytes(form) * 4 * form.tiles.kConsumers;
}

std::optional<WarpgroupGemmForm> find_warpgroup_gemm(const Kernel& kernel, const Product& product, const GemmForm& form,
                                                     const Target& target) {
  constexpr int kMostSums = 128;  // of a thread, in registers
  const ExprPool& pool = kernel.pool;
  if (target.compute_capability != 90 || !target.architecture_specific || bits(form.dtype) != 16 || !form.plain())
    return std::nullopt;
  auto loops = loops_of(pool, form, product);
  if (!loops) return std::nullopt;
  Sizes sizes{.rows = points_at_hint(pool, product.rows),
              .columns = points_at_hint(pool, product.columns),
              .batch = points_at_hint(pool, product.batch),
              .depth = 0};
  for (const ProductLoop& loop : product.loops) sizes.depth += points_at_hint(pool, loop.depth);
  std::optional<WarpgroupGemmForm> best;
  double least = form.cycles;
  for (const int columns : {256, 128, 64}) {
    WarpgroupGemmForm tried{.dtype = form.dtype, .loops = *loops, .tiles = {.columns = columns}, .sums = form.sums};
    // Each block of a cluster copies pieces of 64 columns.
    if (columns < 128 || sizes.rows <= tried.tiles.kRows || target.multiprocessors < 2) tried.tiles.cluster = 1;
    if (columns * form.sums / 2 > kMostSums || !fit(tried, target)) continue;
    const double cycles = predicted_cycles(tried, sizes, target);
    if (cycles >= least) continue;
    least = cycles;
    best = std::move(tried);
  }
  return best;
}

}  // namespace fusec
